// c_real: how many times as long a call takes in reality as the alpha-beta model says of its
// schedule (Lu, Collective Algorithms, 5.3): pipelines that are not deep enough, what every step
// costs beside its messages, steps that overlap less than they might.
//
// The survey has one number, of the part that is bytes. Measured ones differ by what takes the
// time, alphas or bytes, so there are two.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"

namespace rankine {

struct CReal {
  double latency = 1;    // where all of the model's time is alphas
  double bandwidth = 1;  // where none of it is

  // Allowed of both. Measured ones lie between 0.1 and 10.
  static constexpr double kLeast = 1e-3, kMost = 1e3;
  static bool allows(double factor) { return factor >= kLeast && factor <= kMost; }

  // Of a time of which alphas make up this part, 0 to 1.
  double at(double latency_share) const {
    return latency_share * latency + (1 - latency_share) * bandwidth;
  }
  bool operator==(const CReal&) const = default;
};

// What a network and an algorithm's parameters leave to each other.

// The fabric for params.ranks ranks, as wired_for() has it. The sizes of a torus are asked for
// once: a network without any takes params.dims, an algorithm that takes dims the network's where
// `params` has none, and from `params` of one that does not take them goes what the network took.
// Of groups likewise: an algorithm that takes them gets the network's where `params` has none.
// Errors: those of wired_for().
Result<Fabric> wire(const Fabric& fabric, const Algorithm& algorithm, Params& params);

// Sizes of groups of neighbours, innermost first, to an algorithm that takes levels, or the last of
// them as its group, where `params` has none. Not every group suits every number of ranks: then
// its default is left.
void take_levels(const Algorithm& algorithm, const std::vector<int>& levels, Params& params);

// How many segments a pipelined algorithm should have on a network: P* of the alpha-beta model in
// closed form, and the best that the simulator finds around it.

// The whole P from 1 to `most` that minimises
//
//   T(P) = (L + P - 1) (alpha + M beta / P) = L alpha + M beta - alpha + [P alpha + (L - 1) M beta
//   / P]
//
// given what its last bracket needs: per_segment = alpha, and filling = (L - 1) M beta, the time in
// which a pipeline fills and drains. Over the reals that is P* = sqrt(filling / per_segment) (Lu,
// Collective Algorithms, C.3); here neighbours are compared exactly: it is the first P with
// T(P) <= T(P + 1), that is P (P + 1) per_segment >= filling. Neither is negative.
int pipeline_optimum(Rational filling, Rational per_segment, int most);

// The same for a line of the catalogue, from its schedule: each phase whose rounds grow by `step`
// per segment, from R rounds at P = 1, adds (R - step) times beta's share of its most expensive
// message at P = 1 to `filling`, and step times that message's alpha to `per_segment`. So chains,
// trees, double trees (half of M down each) and trees in two colours (two rounds per segment) all
// get the optimum of their own closed form. At most kMostSegments, and no segment below one byte; 1
// for algorithms without segments. Where messages share links, hops are part of alpha, and the
// loads are those of the round at P = 1. Ports count as many as the algorithm wants: that is the
// model. Errors: what the algorithm and Pricing refuse.
Result<int> pipeline_optimum(const Algorithm& algorithm, Params params, const Fabric& fabric,
                             std::uint64_t bytes);

inline constexpr int kMostSegments = 1 << 14;

// The same as the simulator has it, with the ports that there are: what --segments auto means, and
// what calls on a network plan by. From the best of pipeline_optimum() and 1 to 8 it walks in steps
// of a factor of 1.4 to where time rises again, then halves the step around the best, and goes on
// while any of the eight numbers on either side is better: some forty simulations, of at most
// kMostMessages segments times ranks (and 256 segments in any case). Time is nearly convex in P, not
// quite: blocks are whole bytes, and ports come in whole numbers.
// `fabric` as wire() has it. `may_go_on` is asked before each simulation, and ends the search by
// its error; empty: nobody does. Errors: those of pipeline_optimum() and simulate().
Result<int> best_segments(const Algorithm& algorithm, Params params, const Fabric& fabric,
                          std::uint64_t bytes, const SimulateOptions& options = {},
                          const std::function<Status()>& may_go_on = {});

inline constexpr int kMostMessages = 1 << 16;

// Selection on a modelled network: what every algorithm of a collective would cost there, exactly
// as the simulator has it, and why the others lose.

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
