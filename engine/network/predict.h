// Selection on a modelled network: what every algorithm of a collective would cost there, exactly
// as the simulator has it, and why the others lose.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/status.h"
#include "engine/network/c_real.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"

namespace rankine {

struct Candidate {
  const Algorithm* algorithm = nullptr;
  Params params;       // as simulated: segments are the best found
  double seconds = 0;  // predicted; where it was refused, nothing
  int rounds = 0;
  std::string refusal;  // why it cannot run here: N, or an ability that the network lacks
  // What weigh() gave it, for times like this one; none: nobody measured it, or nobody asked.
  std::optional<double> c_real{};

  bool ok() const { return refusal.empty(); }
  double expected() const { return seconds * c_real.value_or(1); }
};

// How many algorithms of a collective are done, of how many.
using PredictProgress = std::function<void(std::size_t done, std::size_t all)>;

// Every algorithm of the collective, the cheapest first, refused ones last (in catalogue order).
// Blocks are whole bytes, which makes algorithms that cost the same differ by a byte a round, now
// the one, now the other way: those that come as near as that to the cheapest are its equals, and
// among equals the first is the one that stands first in the catalogue. `params.segments` of 0 or
// less: best_segments() of each. What an algorithm does not take of `params` is
// left aside; dims are the network's and the algorithm's as in wire.h. `may_go_on` is asked before
// each simulation, and ends it by an error; empty: nothing ends it. `progress` is told before each
// algorithm. Errors: those of wire() and Pricing.
Result<std::vector<Candidate>> predict(Collective collective, const Params& params,
                                       std::uint64_t bytes, const Fabric& fabric,
                                       const SimulateOptions& options = {},
                                       const std::function<Status()>& may_go_on = {},
                                       const PredictProgress& progress = {});

// One algorithm likewise. What `params` has that it does not take is a refusal.
Result<Candidate> predict_one(const Algorithm& algorithm, Params params, std::uint64_t bytes,
                              const Fabric& fabric, const SimulateOptions& options = {},
                              const std::function<Status()>& may_go_on = {});

// How much of the candidate's time is alphas: what its schedule takes of 0 bytes over that, at most
// 1. Requires a candidate of this fabric that is ok(). Errors: those of wire() and Pricing.
Result<double> latency_share(const Candidate& candidate, const Fabric& fabric,
                             const SimulateOptions& options = {});

// Multiplies what the model says by what was measured: gives candidates their c_real and puts them
// in order again, the least expected() first, behind them those without a c_real, refused ones
// last; equal ones stay in order. `measured`: of an algorithm, or nullopt. Errors: those of
// latency_share().
Status weigh(std::vector<Candidate>& candidates,
             const std::function<std::optional<CReal>(const Algorithm&)>& measured,
             const Fabric& fabric, const SimulateOptions& options = {});

}  // namespace rankine
