#include "engine/lab/planner/search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/units.h"
#include "engine/lab/planner/plan_report.h"
#include "engine/papers/claim.h"
#include "engine/papers/runs.h"

namespace rankine::tools {
namespace {

std::vector<int> divisors(int whole) {
  std::vector<int> all;
  for (int d = 1; d <= whole; ++d) {
    if (whole % d == 0) all.push_back(d);
  }
  return all;
}

// All sets of axes with the product `ranks`. Sequences are split only on request, because sp costs
// more than tp if tp can still divide.
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
        // Never used in practice: parameters would come and go with every micro-batch and stage.
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

std::string slowdown_reason(const StepPlan& plan, const StepPlan& best) {
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

namespace {

constexpr std::string_view kRows = "lu-9-";

// A row's text "DP, ring AR: ..." is about dp.
Axis axis_of(const claims::Claim& claim) {
  std::string name = claim.text.substr(0, claim.text.find(','));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (std::size_t a = 0; a < kAxes; ++a) {
    if (name == name_of(static_cast<Axis>(a))) return static_cast<Axis>(a);
  }
  throw std::logic_error("claim '" + claim.id + "' begins with no axis");
}

// A row that runs "all_reduce ring" is about an all-reduce.
std::string_view collective_of(const claims::Claim& claim) {
  return std::string_view(claim.runs).substr(0, claim.runs.find(' '));
}

const PlannedCollective* find_planned(const StepPlan& plan, Axis axis,
                                      std::string_view collective) {
  const auto along = [&](std::string_view wanted) -> const PlannedCollective* {
    for (const PlannedCollective& c : plan.collectives) {
      const bool on_axis = std::find(c.along.begin(), c.along.end(), axis) != c.along.end();
      if (on_axis && name_of(c.collective) == wanted) return &c;
    }
    return nullptr;
  };
  if (plan.mapping[axis] == 1) return nullptr;
  const PlannedCollective* found = along(collective);
  return found != nullptr ? found : along(name_of(Collective::reduce_scatter));
}

claims::Letters letters_of(const StepPlan& plan, const PlannedCollective& planned) {
  const Fabric& network = plan.machine.network;
  const std::vector<Rank>& group = planned.price.group;
  const bool far = std::any_of(group.begin(), group.end(), [&](Rank rank) {
    return network.two_level() && rank / network.group != group.front() / network.group;
  });
  const Link& link = far ? network.between : network.link;
  const Fabric& with_switch = network.alu ? network : find_regime("switch")->fabric;
  return {{"N", planned.price.ranks},
          {"M", static_cast<std::int64_t>(planned.price.bytes)},
          {"alpha", link.latency()},
          {"BW", Rational(1) / link.per_byte()},
          {"alpha_switch", with_switch.alpha_switch},
          {"k", network.ports}};
}

}  // namespace

std::vector<SurveyRow> survey_rows(const StepPlan& plan) {
  const claims::Paper& paper = *claims::find_paper("lu");
  claims::Runs runs;
  std::vector<SurveyRow> rows;
  for (const claims::Claim& claim : paper.claims) {
    // A general claim of the section runs nothing and is not a row.
    if (!claim.id.starts_with(kRows) || claim.runs.empty()) continue;
    SurveyRow row{.claim = &claim, .axis = axis_of(claim)};
    row.planned = find_planned(plan, row.axis, collective_of(claim));
    if (row.planned != nullptr) {
      row.numbers = claims::compare(paper, claim, runs, letters_of(plan, *row.planned));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Table survey_table(const StepPlan& plan, const std::vector<SurveyRow>& rows) {
  Table table(as::data("claim"), as::data("axis"), as::data("runs"), as::text("along", "-"),
              as::data("along"), as::number("ranks", "-"), as::data("ranks"),
              as::bytes("M", "bytes"), as::text("collective", "-"),
              as::text("the survey's formula", "formula"), as::model_time("is", "stated"),
              as::model_time("simulated"), as::text(""), as::data("equal"),
              as::data("collective_planned"), as::data("algorithm_planned"),
              as::model_time("planned"), as::text(""), as::data("why"));
  table.title = plan_title(plan);
  for (const auto& [claim, axis, planned, numbers] : rows) {
    const std::string what(claim->runs.substr(0, claim->runs.find(';')));
    if (planned == nullptr) {
      table.add(claim->id, name_of(axis), claim->runs, name_of(axis), Cell(), 1, Cell(), Cell(),
                what, claim->stated);
      continue;
    }
    std::string verdict = "equal";
    if (!numbers.agrees) {
      verdict = fmt::format("({})", table.notes.size() + 1);
      table.notes.push_back(fmt::format(
          "{} {}: {}; {}", verdict, what,
          claim->condition.empty() ? "differs" : "as stated if " + claim->condition, claim->why));
    }
    const Price& price = planned->price;
    const std::string along = axes_text(plan.mapping, planned->along);
    const std::string_view name = name_of(planned->collective), algorithm = price.algorithm->name;
    table.add(claim->id, name_of(axis), claim->runs, along, along, price.ranks, price.ranks,
              price.bytes, what, claim->stated, static_cast<double>(numbers.stated.approximate()),
              static_cast<double>(numbers.found.approximate()), verdict, numbers.agrees, name,
              algorithm, price.seconds, fmt::format("{} {}", name, algorithm),
              numbers.agrees ? Cell() : Cell(claim->why));
  }
  return table;
}

}  // namespace rankine::tools
