// Selection on a modelled network: what every algorithm of a collective would cost there, exactly
// as the simulator has it, and why the others lose.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"

namespace rankine {

struct Candidate {
  const Algorithm* algorithm = nullptr;
  Params params;       // as simulated: segments are the best found
  double seconds = 0;  // predicted; where it was refused, nothing
  int rounds = 0;
  std::string refusal;  // why it cannot run here: N, or an ability that the network lacks
  bool ok() const { return refusal.empty(); }
};

// Every algorithm of the collective, the cheapest first, refused ones last (in catalogue order).
// Blocks are whole bytes, which makes algorithms that cost the same differ by a byte a round, now
// the one, now the other way: those that come as near as that to the cheapest are its equals, and
// among equals the first is the one that stands first in the catalogue. `params.segments` of 0 or
// less: the best power of two up to 256 for each. What an algorithm does not take of `params` is
// left aside; dims are the network's and the algorithm's as in wire.h. `may_go_on` is asked before
// each simulation, and ends it by an error; empty: nobody does. Errors: those of wire() and
// Pricing.
Result<std::vector<Candidate>> predict(Collective collective, const Params& params,
                                       std::uint64_t bytes, const Fabric& fabric,
                                       const SimulateOptions& options = {},
                                       const std::function<Status()>& may_go_on = {});

// One algorithm likewise. What `params` has that it does not take is a refusal.
Result<Candidate> predict_one(const Algorithm& algorithm, Params params, std::uint64_t bytes,
                              const Fabric& fabric, const SimulateOptions& options = {},
                              const std::function<Status()>& may_go_on = {});

// "ring: 2.173e-05 s, 1.42 x the choice; 6 rounds", a line per candidate.
std::string explain(const std::vector<Candidate>& candidates);

}  // namespace rankine
