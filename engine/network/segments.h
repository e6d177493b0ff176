// How many segments a pipelined algorithm should have on a network: P* of the alpha-beta model in
// closed form, and the best that the simulator finds around it.
#pragma once

#include <cstdint>
#include <functional>

#include "algorithms/catalogue.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"

namespace rankine {

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

}  // namespace rankine
