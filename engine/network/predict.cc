#include "engine/network/predict.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/units.h"
#include "engine/network/wire.h"

namespace rankine {
namespace {

constexpr int kMostSegments = 256;

// More segments than bytes help nobody.
bool worth_trying(int segments, std::uint64_t bytes) {
  return segments == 1 || static_cast<std::uint64_t>(segments) <= bytes;
}

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

}  // namespace

Result<Candidate> predict_one(const Algorithm& algorithm, Params params, std::uint64_t bytes,
                              const Fabric& fabric, const SimulateOptions& options,
                              const std::function<Status()>& may_go_on) {
  const auto wired = wire(fabric, algorithm, params);
  if (!wired.ok()) return wired.status();
  const bool free = params.segments <= 0 && algorithm.takes("segments");
  params.segments = std::max(1, params.segments);
  Candidate best{&algorithm, std::move(params), 0, 0, {}};
  for (int p = best.params.segments; p <= kMostSegments; p *= 2) {
    if (Status status = may_go_on ? may_go_on() : Status(); !status.ok()) return status;
    Candidate trial = best;
    trial.params.segments = p;
    Status status = simulate_into(trial, bytes, *wired, options);
    const bool first = p == best.params.segments;
    if (!status.ok()) trial.refusal = status.text();
    if (first || (trial.ok() && trial.seconds < best.seconds)) best = trial;
    if (!free || !trial.ok() || !worth_trying(2 * p, bytes)) break;
  }
  return best;
}

Result<std::vector<Candidate>> predict(Collective collective, const Params& given,
                                       std::uint64_t bytes, const Fabric& fabric,
                                       const SimulateOptions& options,
                                       const std::function<Status()>& may_go_on) {
  std::vector<Candidate> candidates;
  for (const Algorithm& algorithm : catalogue()) {
    if (algorithm.collective != collective) continue;
    Params params = given;
    const auto wired = wire(fabric, algorithm, params);
    if (!wired.ok()) return wired.status();
    auto one =
        predict_one(algorithm, algorithm.only_taken(params), bytes, *wired, options, may_go_on);
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

std::string explain(const std::vector<Candidate>& candidates) {
  std::string text;
  for (const Candidate& c : candidates) {
    if (!c.ok()) {
      text += fmt::format("  {:<22} cannot run: {}\n", c.algorithm->name, c.refusal);
      continue;
    }
    const double ratio =
        candidates.front().seconds > 0 ? c.seconds / candidates.front().seconds : 1;
    const std::string segments =
        c.algorithm->takes("segments") ? fmt::format(", {} segments", c.params.segments) : "";
    text += fmt::format("{} {:<22} {:>10}  {:6.2f} x  {} rounds{}\n",
                        &c == candidates.data() ? "*" : " ", c.algorithm->name,
                        format_duration(c.seconds), ratio, c.rounds, segments);
  }
  return text;
}

}  // namespace rankine
