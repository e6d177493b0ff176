#include "engine/network/predict.h"

#include <algorithm>

#include "engine/network/segments.h"
#include "engine/network/wire.h"

namespace rankine {
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

// Those that differ from the cheapest by no more than a byte a round.
void put_equals_in_order(std::vector<Candidate>& candidates, const Fabric& fabric) {
  if (candidates.empty() || !candidates.front().ok()) return;
  const double byte = std::max(fabric.link.per_byte().to_double(),
                               fabric.two_level() ? fabric.between.per_byte().to_double() : 0);
  const Candidate best = candidates.front();
  const auto rest =
      std::stable_partition(candidates.begin(), candidates.end(), [&](const Candidate& c) {
        return c.ok() && c.seconds <= best.seconds + byte * std::max(best.rounds, c.rounds);
      });
  std::sort(candidates.begin(), rest,
            [](const Candidate& a, const Candidate& b) { return a.algorithm < b.algorithm; });
}

// With the best number of segments, where `params` leave it open; `wired` and they as wire() left
// them.
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
      std::count_if(catalogue().begin(), catalogue().end(), [collective](const Algorithm& each) {
        return each.collective == collective;
      }));
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
