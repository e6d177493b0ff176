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
  Table table(as::text("along"), "ranks", as::bytes("M", "bytes"), as::text("collective"),
              as::text("the survey's formula", "formula"), as::model_time("is", "stated"),
              as::model_time("simulated"), as::text("", "agrees"), as::model_time("planned"),
              as::text("", "by"));
  table.title = plan_title(plan);
  for (const SurveyRow& row : rows) {
    const std::string what(row.claim->runs.substr(0, row.claim->runs.find(';')));
    if (row.planned == nullptr) {
      table.add(name_of(row.axis), 1, Cell(), what, row.claim->stated);
      continue;
    }
    std::string verdict = "equal";
    if (!row.numbers.agrees) {
      const std::size_t number = table.notes.size() + 1;
      verdict = fmt::format("({})", number);
      table.notes.push_back(fmt::format(
          "({}) {}: {}; {}", number, what,
          row.claim->condition.empty() ? "differs" : "as stated where " + row.claim->condition,
          row.claim->why));
    }
    table.add(
        axes_text(plan.mapping, row.planned->along), row.planned->price.ranks,
        row.planned->price.bytes, what, row.claim->stated,
        static_cast<double>(row.numbers.stated.approximate()),
        static_cast<double>(row.numbers.found.approximate()), verdict, row.planned->price.seconds,
        fmt::format("{} {}", name_of(row.planned->collective), row.planned->price.algorithm->name));
  }
  return table;
}

nlohmann::ordered_json survey_json(const StepPlan& plan, const std::vector<SurveyRow>& rows) {
  auto out = nlohmann::ordered_json::array();
  for (const SurveyRow& row : rows) {
    auto& json = out.emplace_back(nlohmann::ordered_json{{"claim", row.claim->id},
                                                         {"axis", name_of(row.axis)},
                                                         {"runs", row.claim->runs},
                                                         {"formula", row.claim->stated}});
    if (row.planned == nullptr) continue;
    json.update({{"along", axes_text(plan.mapping, row.planned->along)},
                 {"ranks", row.planned->price.ranks},
                 {"bytes", row.planned->price.bytes},
                 {"stated", static_cast<double>(row.numbers.stated.approximate())},
                 {"simulated", static_cast<double>(row.numbers.found.approximate())},
                 {"equal", row.numbers.agrees},
                 {"collective_planned", name_of(row.planned->collective)},
                 {"algorithm_planned", row.planned->price.algorithm->name},
                 {"planned", row.planned->price.seconds}});
    if (!row.numbers.agrees) json["why"] = row.claim->why;
  }
  return out;
}

}  // namespace rankine::tools
