#include "engine/network/predict.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "engine/network/prices.h"

namespace rankine {

Result<Fabric> wire(const Fabric& fabric, const Algorithm& algorithm, Params& params) {
  auto wired = wired_for(fabric, params.ranks, params.dims);
  if (!wired.ok()) return wired;
  if (!algorithm.takes("dims")) {
    if (params.dims == wired->wiring.dims) params.dims.clear();
  } else if (params.dims.empty()) {
    params.dims = wired->wiring.dims;
  }
  if (wired->group > 0) take_levels(algorithm, {wired->group}, params);
  return wired;
}

void take_levels(const Algorithm& algorithm, const std::vector<int>& levels, Params& params) {
  if (levels.empty()) return;
  Params filled = params;
  if (algorithm.takes("levels") && params.levels.empty()) filled.levels = levels;
  if (algorithm.takes("group") && params.group == 0) filled.group = levels.back();
  if (!algorithm.refusal(algorithm.only_taken(filled))) params = std::move(filled);
}

namespace {

// One phase for schedules without named phases.
std::vector<Phase> phases_of(const Schedule& schedule) {
  if (!schedule.phases.empty()) return schedule.phases;
  return {{"", schedule.rounds}};
}

struct Message {
  Ticks alpha = 0, total = 0;
  std::int64_t weight = 0;
};

// nullopt if a price exceeds 128 bits.
std::optional<Message> costliest(const Schedule& schedule, const Pricing& pricing,
                                 RoundPrices& prices, int first_round, int rounds) {
  Message most;
  bool all_priced = true;
  for (int k = first_round; k < first_round + rounds; ++k) {
    prices.begin_round(schedule, k);
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      const bool plain = t.from.size() == 1 && t.to.size() == 1;
      if (t.from.empty() || t.to.empty() || (plain && t.from.front() == t.to.front())) return;
      const std::int64_t weight = pricing.weight(t.what.list);
      const Ticks alpha =
          plain ? prices.latency(t.from.front(), t.to.front()) : pricing.through_switch(0);
      const std::optional<Ticks> total = plain
                                             ? prices.message(t.from.front(), t.to.front(), weight)
                                             : pricing.through_switch(weight);
      all_priced = all_priced && total;
      if (total && *total >= most.total) most = {alpha, *total, weight};
    });
  }
  if (!all_priced) return std::nullopt;
  return most;
}

// True if the algorithm has segments; sets params.segments to 1. Returns the algorithm's errors.
Result<bool> is_pipelined(const Algorithm& algorithm, Params& params) {
  params.segments = 1;
  if (const auto refusal = algorithm.refusal(params)) return invalid_argument(*refusal);
  return algorithm.takes("segments");
}

}  // namespace

int pipeline_optimum(Rational filling, Rational per_segment, int most) {
  const auto enough = [&](int p) {
    return !(Rational(p) * Rational(p + 1) * per_segment < filling);
  };
  int low = 1, high = std::max(1, most);
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (enough(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

Result<int> pipeline_optimum(const Algorithm& algorithm, Params params, const Fabric& fabric,
                             std::uint64_t bytes) {
  const auto pipelined = is_pipelined(algorithm, params);
  if (!pipelined.ok()) return pipelined.status();
  if (!*pipelined) return 1;
  const Schedule one = algorithm.make(params);
  params.segments = 2;
  const Schedule two = algorithm.make(params);
  const CollectiveSpec goal = goal_of(algorithm, params, one);
  const auto wired = wired_for(fabric, params.ranks, params.dims);
  if (!wired.ok()) return wired.status();
  const auto pricing = Pricing::make(*wired, goal, bytes, true);
  if (!pricing.ok()) return pricing.status();
  auto prices = RoundPrices::make(*wired, *pricing, params.ranks);
  if (!prices.ok()) return prices.status();

  const std::vector<Phase> at_one = phases_of(one), at_two = phases_of(two);
  if (at_one.size() != at_two.size()) return 1;  // a phase without rounds at P = 1 has no pipeline
  Ticks filling = 0, per_segment = 0;
  int round = 0;
  for (std::size_t i = 0; i < at_one.size(); ++i) {
    const int rounds = at_one[i].rounds, step = at_two[i].rounds - rounds;
    if (step > 0) {
      const auto message = costliest(one, *pricing, *prices, round, rounds);
      if (!message) return beyond_128_bits();
      filling += std::max(0, rounds - step) * (message->total - message->alpha);
      per_segment += step * message->alpha;
    }
    round += rounds;
  }
  // A block has at least one byte per segment.
  const std::uint64_t block = bytes / static_cast<std::uint64_t>(blocks_per_m(goal));
  const int most = static_cast<int>(std::clamp<std::uint64_t>(block, 1, kMostSegments));
  try {
    return pipeline_optimum(Rational(filling, 1), Rational(per_segment, 1), most);
  } catch (const std::overflow_error&) {
    return invalid_argument(
        "alpha and beta have too many digits to find the best number of "
        "segments exactly; fewer are needed");
  }
}

Result<int> best_segments(const Algorithm& algorithm, Params params, const Fabric& fabric,
                          std::uint64_t bytes, const SimulateOptions& options,
                          const std::function<Status()>& may_go_on) {
  const auto pipelined = is_pipelined(algorithm, params);
  if (!pipelined.ok()) return pipelined.status();
  if (!*pipelined) return 1;
  // More segments than bytes are never faster.
  const auto most = static_cast<int>(std::min<std::uint64_t>(
      std::max<std::uint64_t>(1, bytes),
      static_cast<std::uint64_t>(std::clamp(kMostMessages / params.ranks, 256, kMostSegments))));

  std::map<int, double> known;  // seconds, by segments
  Status failure;
  const auto time = [&](int segments) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    if (segments < 1 || segments > most || !failure.ok()) return kNever;
    if (const auto found = known.find(segments); found != known.end()) return found->second;
    if (may_go_on) failure = may_go_on();
    params.segments = segments;
    if (!failure.ok() || algorithm.refusal(params)) return known[segments] = kNever;
    const Schedule schedule = algorithm.make(params);
    const auto result =
        simulate(schedule, goal_of(algorithm, params, schedule), fabric, bytes, options);
    if (!result.ok()) failure = result.status();
    return known[segments] = result.ok() ? result->seconds : kNever;
  };
  // Simulate one segment first: pipeline_optimum() visits its messages too, and never calls
  // may_take.
  if (options.may_take) time(1);
  if (!failure.ok()) return failure;
  const auto begin = pipeline_optimum(algorithm, params, fabric, bytes);
  if (!begin.ok()) return begin.status();
  int best = std::min(*begin, most);
  // Few segments are cheap to simulate, and not convex: there a port more or less decides.
  constexpr int kFew = 8;
  for (int p = kFew; p >= 1; --p) {
    if (time(p) <= time(best)) best = p;
  }
  const auto go = [&](auto next) {
    while (failure.ok() && time(next(best)) < time(best)) best = next(best);
  };
  const int before = best;
  go([](int p) { return std::min(p - 1, p * 5 / 7); });
  if (best == before) go([](int p) { return std::max(p + 1, p * 7 / 5); });
  for (int step = std::max(1, best / 5); step > 0 && failure.ok(); step /= 2) {
    go([step](int p) { return p - step; });
    go([step](int p) { return p + step; });
  }
  // If ports are few, times alternately rise and fall from one number to the next.
  for (bool moved = true; moved && failure.ok();) {
    moved = false;
    for (int p = best + kFew, last = best - kFew; p >= last; --p) {
      if (p == best || time(p) >= time(best)) continue;
      best = p;
      moved = true;
    }
  }
  if (!failure.ok()) return failure;
  return best;
}

namespace {

Status simulate_into(Candidate& candidate, std::uint64_t bytes, const Fabric& fabric,
                     const SimulateOptions& options) {
  const Algorithm& algorithm = *candidate.algorithm;
  if (auto refusal = algorithm.refusal(candidate.params)) {
    candidate.refusal = *refusal;
    return {};
  }
  const Schedule schedule = algorithm.make(candidate.params);
  const auto result =
      simulate(schedule, goal_of(algorithm, candidate.params, schedule), fabric, bytes, options);
  if (!result.ok()) return result.status();
  candidate.seconds = result->seconds;
  candidate.rounds = result->rounds;
  return {};
}

// Puts candidates within a byte a round of the cheapest in catalogue order. Half a byte more makes
// up for the rounding of seconds.
void put_equals_in_order(std::vector<Candidate>& candidates, const Fabric& fabric) {
  if (candidates.empty() || !candidates.front().ok()) return;
  const double byte = std::max(fabric.link.per_byte().to_double(),
                               fabric.two_level() ? fabric.between.per_byte().to_double() : 0);
  const Candidate best = candidates.front();
  const auto rest =
      std::stable_partition(candidates.begin(), candidates.end(), [&](const Candidate& c) {
        return c.ok() && c.seconds <= best.seconds + byte * (std::max(best.rounds, c.rounds) + 0.5);
      });
  std::sort(candidates.begin(), rest,
            [](const Candidate& a, const Candidate& b) { return a.algorithm < b.algorithm; });
}

// Makes a candidate, with the best number of segments if `params` leaves it open; `wired` and
// `params` come from wire().
Result<Candidate> with_best_segments(const Algorithm& algorithm, Params params, std::uint64_t bytes,
                                     const Fabric& wired, const SimulateOptions& options,
                                     const std::function<Status()>& may_go_on) {
  const bool free = params.segments <= 0 && algorithm.takes("segments");
  params.segments = std::max(1, params.segments);
  Candidate candidate{&algorithm, std::move(params), 0, 0, {}};
  Status stopped;
  const auto go_on = [&] { return stopped = may_go_on ? may_go_on() : Status(); };
  if (free && !algorithm.refusal(candidate.params)) {
    const auto best = best_segments(algorithm, candidate.params, wired, bytes, options, go_on);
    if (!stopped.ok()) return stopped;
    if (best.ok()) candidate.params.segments = *best;
  }
  if (!go_on().ok()) return stopped;
  Status status = simulate_into(candidate, bytes, wired, options);
  if (!status.ok()) candidate.refusal = status.text();
  return candidate;
}

}  // namespace

Result<Candidate> predict_one(const Algorithm& algorithm, Params params, std::uint64_t bytes,
                              const Fabric& fabric, const SimulateOptions& options,
                              const std::function<Status()>& may_go_on) {
  const auto wired = wire(fabric, algorithm, params);
  if (!wired.ok()) return wired.status();
  return with_best_segments(algorithm, std::move(params), bytes, *wired, options, may_go_on);
}

Result<std::vector<Candidate>> predict(Collective collective, const Params& given,
                                       std::uint64_t bytes, const Fabric& fabric,
                                       const SimulateOptions& options,
                                       const std::function<Status()>& may_go_on,
                                       const PredictProgress& progress) {
  std::vector<Candidate> candidates;
  const auto all = static_cast<std::size_t>(
      std::count_if(catalogue().begin(), catalogue().end(),
                    [collective](const Algorithm& each) { return each.collective == collective; }));
  for (const Algorithm& algorithm : catalogue()) {
    if (algorithm.collective != collective) continue;
    if (progress) progress(candidates.size(), all);
    Params params = given;
    const auto wired = wire(fabric, algorithm, params);
    if (!wired.ok()) return wired.status();
    auto one = with_best_segments(algorithm, algorithm.only_taken(params), bytes, *wired, options,
                                  may_go_on);
    if (!one.ok()) return one.status();
    candidates.push_back(std::move(*one));
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     if (a.ok() != b.ok()) return a.ok();
                     return a.ok() && a.seconds < b.seconds;
                   });
  put_equals_in_order(candidates, fabric);
  return candidates;
}

Result<double> latency_share(const Candidate& candidate, const Fabric& fabric,
                             const SimulateOptions& options) {
  if (!(candidate.seconds > 0)) return 1.0;
  Candidate empty = candidate;
  const auto wired = wire(fabric, *empty.algorithm, empty.params);
  if (!wired.ok()) return wired.status();
  if (Status status = simulate_into(empty, 0, *wired, options); !status.ok()) return status;
  return std::min(1.0, empty.seconds / candidate.seconds);
}

Status weigh(std::vector<Candidate>& candidates,
             const std::function<std::optional<CReal>(const Algorithm&)>& measured,
             const Fabric& fabric, const SimulateOptions& options) {
  for (Candidate& c : candidates) {
    const auto factors = c.ok() ? measured(*c.algorithm) : std::nullopt;
    c.c_real.reset();
    if (!factors) continue;
    const auto share = latency_share(c, fabric, options);
    if (!share.ok()) return share.status();
    c.c_real = factors->at(*share);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     if (a.ok() != b.ok()) return a.ok();
                     if (a.c_real.has_value() != b.c_real.has_value()) return a.c_real.has_value();
                     return a.c_real && a.expected() < b.expected();
                   });
  return {};
}

}  // namespace rankine
