#include "engine/tools/plan/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "engine/base/units.h"

namespace rankine::tools {
namespace {

std::vector<int> divisors(int whole) {
  std::vector<int> all;
  for (int d = 1; d <= whole; ++d) {
    if (whole % d == 0) all.push_back(d);
  }
  return all;
}

// All axes whose product is `ranks`. Sequences are split only where whoever asks says so: it costs
// more than tp wherever tp still divides.
std::vector<std::array<int, kAxes>> all_axes(const Model& model, const SearchQuestion& question) {
  std::vector<std::array<int, kAxes>> all;
  const int sp = question.common[Axis::sp];
  if (question.ranks % sp != 0) return all;
  const int rest = question.ranks / sp;
  for (const int tp : divisors(rest)) {
    for (const int pp : divisors(rest / tp)) {
      for (const int ep : divisors(rest / tp / pp)) {
        if (ep > 1 && !model.is_mixture()) break;
        all.push_back({tp, sp, ep, rest / tp / pp / ep, pp});
      }
    }
  }
  return all;
}

// All mappings with these axes that divide the model and the batch.
std::vector<Mapping> mappings_of(const Model& model, const SearchQuestion& question,
                                 const std::array<int, kAxes>& axes) {
  std::vector<Mapping> all;
  Mapping mapping = question.common;
  mapping.axes = axes;
  const int replicas = mapping.data_parallel();
  for (const int micro_batch : {1, 2, 4, 8}) {
    if (question.batch % (micro_batch * replicas) != 0) continue;
    mapping.micro_batch = micro_batch;
    mapping.micro_batches = question.batch / (micro_batch * replicas);
    mapping.splits_norms = axes[0] > 1;
    for (const int interleave : {1, 2, 3, 4, 6, 8}) {
      mapping.interleave = interleave;
      for (const int zero : {0, 1, 3}) {
        if (zero > 0 && replicas * axes[1] == 1) continue;
        // Parameters that come and go with every micro-batch and stage: nobody does that.
        if (zero == 3 && axes[4] > 1) continue;
        mapping.zero = zero;
        for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
          mapping.recompute = recompute;
          if (check_mapping(model, mapping).ok()) all.push_back(mapping);
        }
      }
    }
  }
  return all;
}

}  // namespace

Result<SearchResult> search_mappings(const Model& model, const Machine& machine, const Menu& menu,
                                     const SearchQuestion& question, std::size_t most) {
  if (Status s = check_model(model); !s.ok()) return s;
  SearchResult result;
  std::vector<Mapping> candidates;
  for (const auto& axes : all_axes(model, question)) {
    for (const Mapping& mapping : mappings_of(model, question, axes)) {
      const Memory memory = memory_of(model, mapping);
      if (memory.all() <= machine.memory_bytes) {
        candidates.push_back(mapping);
        continue;
      }
      if (result.too_large++ == 0 || memory.all() < result.least.all()) result.least = memory;
    }
  }
  if (candidates.empty() && result.too_large == 0) {
    return invalid_argument(fmt::format(
        "no mapping of {} over {} divides its heads, layers{} and a batch of {}", model.name,
        counted(question.ranks, "rank"), model.is_mixture() ? ", experts" : "", question.batch));
  }
  Prices prices(machine, question.ranks, menu);
  std::map<std::array<int, kAxes>, StepPlan> fastest;
  for (const Mapping& mapping : candidates) {
    auto plan = plan_step(model, mapping, machine, prices);
    if (!plan.ok()) return plan.status();
    ++result.tried;
    const auto found = fastest.find(mapping.axes);
    if (found == fastest.end()) {
      fastest.emplace(mapping.axes, std::move(*plan));
    } else if (plan->seconds < found->second.seconds) {
      found->second = std::move(*plan);
    }
  }
  for (auto& [axes, plan] : fastest) result.best.push_back(std::move(plan));
  std::stable_sort(result.best.begin(), result.best.end(),
                   [](const StepPlan& a, const StepPlan& b) { return a.seconds < b.seconds; });
  if (result.best.size() > most) result.best.resize(most);
  return result;
}

std::string why_slower(const StepPlan& plan, const StepPlan& best) {
  std::map<std::string, double> more;
  more["computing"] = plan.computing() - best.computing();
  more["bubble"] = plan.bubble() - best.bubble();
  for (const auto& [of, sign] : {std::pair(&plan, 1), std::pair(&best, -1)}) {
    for (const PlannedCollective& c : of->collectives) {
      more["exposed along " + axes_text(of->mapping, c.along)] += sign * c.exposed();
    }
  }
  std::vector<std::pair<double, std::string>> reasons;
  for (const auto& [what, seconds] : more) reasons.emplace_back(seconds, what);
  std::sort(reasons.rbegin(), reasons.rend());
  std::vector<std::string> parts;
  const double lost = plan.seconds - best.seconds;
  for (const auto& [seconds, what] : reasons) {
    if (seconds <= 0.1 * lost || parts.size() == 3) break;
    parts.push_back(fmt::format("{} more {}", format_duration(seconds), what));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace rankine::tools
