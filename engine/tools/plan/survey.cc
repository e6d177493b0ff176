#include "engine/tools/plan/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <string_view>

#include "engine/papers/claim.h"
#include "engine/papers/runs.h"
#include "engine/tools/plan/plan_report.h"

namespace rankine::tools {
namespace {

constexpr std::string_view kRows = "lu-9-";

// "DP, ring AR: ..." is of dp.
Axis axis_of(const claims::Claim& claim) {
  std::string name = claim.text.substr(0, claim.text.find(','));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (std::size_t a = 0; a < kAxes; ++a) {
    if (name == name_of(static_cast<Axis>(a))) return static_cast<Axis>(a);
  }
  throw std::logic_error("claim '" + claim.id + "' begins with no axis");
}

// "all_reduce ring" runs an all-reduce.
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
    // What is said of it all runs nothing, and is none of the rows.
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
      table.notes.push_back(
          fmt::format("{} {}: {}; {}", verdict, what,
                      claim->condition.empty() ? "differs" : "as stated where " + claim->condition,
                      claim->why));
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
