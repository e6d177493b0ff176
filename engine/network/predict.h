// predict() computes the time of every algorithm of a collective on a modelled network. This header
// also has CReal (measured factors), wire() (a network and an algorithm's parameters) and the
// choice of segments.
//
// c_real is the factor by which a call takes longer in reality than the alpha-beta model says of
// its schedule (Lu, Collective Algorithms, 5.3): pipelines are not deep enough, every step costs
// time beside its messages, steps overlap less than possible. The survey has one number, for the
// time that bytes take. Measured factors differ between time of alphas and time of bytes, so CReal
// has two.
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
  double latency = 1;    // if all of the model's time is alphas
  double bandwidth = 1;  // if none of the model's time is alphas

  // The allowed range of both. Measured factors lie between 0.1 and 10.
  static constexpr double kLeast = 1e-3, kMost = 1e3;
  static bool allows(double factor) { return factor >= kLeast && factor <= kMost; }

  // The factor for a time with this share of alphas, 0 to 1.
  double at(double latency_share) const {
    return latency_share * latency + (1 - latency_share) * bandwidth;
  }
  bool operator==(const CReal&) const = default;
};

// Returns the fabric for params.ranks ranks, as wired_for() does, and completes `params`. The sizes
// of a torus are needed once: a network without dims takes params.dims; an algorithm that takes
// dims gets the network's if `params` has none; if the algorithm takes no dims, they are removed
// from `params` after the network took them. Groups: an algorithm that takes a group gets the
// network's if `params` has none. Errors: those of wired_for().
Result<Fabric> wire(const Fabric& fabric, const Algorithm& algorithm, Params& params);

// Gives sizes of groups of neighbours, innermost first, to an algorithm that takes levels, or the
// last size to one that takes a group, if `params` has none. If a group does not suit the number of
// ranks, the algorithm's default stays.
void take_levels(const Algorithm& algorithm, const std::vector<int>& levels, Params& params);

// The number of segments of a pipelined algorithm on a network: P* of the alpha-beta model in
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

// As above, for an algorithm of the catalogue, from its schedule: a phase that has R rounds at P =
// 1 and `step` more per further segment adds (R - step) times beta's share of its most expensive
// message at P = 1 to `filling`, and step times that message's alpha to `per_segment`. So chains,
// trees, double trees (half of M down each) and trees in two colours (two rounds per segment) all
// get the optimum of their closed forms. At most kMostSegments, and no segment below one byte; 1
// for algorithms without segments. If messages share links, hops are part of alpha, and the loads
// are those of the round at P = 1. The model assumes as many ports as the algorithm can use.
// Returns the errors of the algorithm and of Pricing.
Result<int> pipeline_optimum(const Algorithm& algorithm, Params params, const Fabric& fabric,
                             std::uint64_t bytes);

inline constexpr int kMostSegments = 1 << 14;

// The best P by the simulator, with the network's ports: `--segments auto` and calls on a network
// use it. From the best of pipeline_optimum() and 1 to 8, the search walks in steps of a factor of
// 1.4 until time rises again, then halves the step around the best, and goes on while any of the
// eight numbers on either side is better: some forty simulations, of at most kMostMessages segments
// times ranks (and 256 segments in any case). Time is nearly convex in P, not quite: blocks are
// whole bytes, and ports come in whole numbers. `fabric` comes from wire(). `may_go_on` is called
// before each simulation, and its error ends the search; empty: no check. Errors: those of
// pipeline_optimum() and simulate().
Result<int> best_segments(const Algorithm& algorithm, Params params, const Fabric& fabric,
                          std::uint64_t bytes, const SimulateOptions& options = {},
                          const std::function<Status()>& may_go_on = {});

inline constexpr int kMostMessages = 1 << 16;

// An algorithm's cost on a modelled network, as simulated, or the reason why it cannot run there.
struct Candidate {
  const Algorithm* algorithm = nullptr;
  Params params;       // as simulated: segments are the best found
  double seconds = 0;  // predicted; 0 if the algorithm was refused
  int rounds = 0;
  // the reason why it cannot run here: N, or an ability that the network lacks
  std::string refusal;
  // The factor set by weigh() for times like this one; nullopt: not measured, or weigh() was not
  // called.
  std::optional<double> c_real{};

  bool ok() const { return refusal.empty(); }
  double expected() const { return seconds * c_real.value_or(1); }
};

// Receives the number of algorithms done, and the number of algorithms of the collective.
using PredictProgress = std::function<void(std::size_t done, std::size_t all)>;

// Returns every algorithm of the collective, the cheapest first, refused ones last (in catalogue
// order). Blocks are whole bytes, so equally expensive algorithms differ by a byte a round, in
// either direction: algorithms within that distance of the cheapest count as equal to it, and equal
// ones are in catalogue order. If `params.segments` is 0 or less, each algorithm gets its
// best_segments(). Members of `params` that an algorithm does not take are ignored; dims go to the
// network and the algorithm as in wire(). `may_go_on` is called before each simulation, and its
// error ends predict(); empty: no check. `progress` is called before each algorithm. Errors: those
// of wire() and Pricing.
Result<std::vector<Candidate>> predict(Collective collective, const Params& params,
                                       std::uint64_t bytes, const Fabric& fabric,
                                       const SimulateOptions& options = {},
                                       const std::function<Status()>& may_go_on = {},
                                       const PredictProgress& progress = {});

// predict() for one algorithm. A member of `params` that it does not take is a refusal.
Result<Candidate> predict_one(const Algorithm& algorithm, Params params, std::uint64_t bytes,
                              const Fabric& fabric, const SimulateOptions& options = {},
                              const std::function<Status()>& may_go_on = {});

// The share of alphas in the candidate's time: the time of its schedule with 0 bytes divided by the
// candidate's time, at most 1. The candidate must be of this fabric and ok(). Errors: those of
// wire() and Pricing.
Result<double> latency_share(const Candidate& candidate, const Fabric& fabric,
                             const SimulateOptions& options = {});

// Multiplies modelled times by measured factors: sets the candidates' c_real and sorts them, the
// least expected() first, then those without a c_real, refused ones last; equal ones keep their
// order. `measured` returns the factors of an algorithm, or nullopt. Errors: those of
// latency_share().
Status weigh(std::vector<Candidate>& candidates,
             const std::function<std::optional<CReal>(const Algorithm&)>& measured,
             const Fabric& fabric, const SimulateOptions& options = {});

}  // namespace rankine
