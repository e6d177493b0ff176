#include <cmath>
#include <optional>

#include "engine/tools/reproduce_report.h"

namespace rankine::reproduce {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Value& value) {
  return {{"exact", value.exact() ? Json(formulas::to_string(value)) : Json(nullptr)},
          {"number", static_cast<double>(value.approximate())}};
}
Json json_of(const std::optional<Value>& value) { return value ? json_of(*value) : Json(nullptr); }
Json json_of(const TableEntry& entry) {
  return {{"printed", json_of(entry.printed)},
          {"derived", json_of(entry.derived)},
          {"found", json_of(entry.found)},
          {"exact", entry.exact()}};
}

Json json_of(const Panel& panel) {
  Json curves = Json::array();
  const auto sizes = figure_sizes();
  for (const Curve& curve : panel.curves) {
    Json seconds = Json::array(), gains = Json::array(), forms = Json::array();
    for (const std::uint64_t size : sizes) {
      const auto bytes = static_cast<double>(size);
      seconds.push_back(panel.time(curve, bytes));
      gains.push_back(100 * panel.gain(curve, bytes));
      forms.push_back(letter_of(panel.form(curve, bytes)));
    }
    const auto change = panel.change_of_form(curve);
    curves.push_back({{"algorithm", curve.contender->name},
                      {"seconds", std::move(seconds)},
                      {"gain_percent", std::move(gains)},
                      {"form", std::move(forms)},
                      {"change_of_form_bytes", change ? Json(*change) : Json(nullptr)}});
  }
  Json changes = Json::array();
  for (const Crossover& crossover : crossovers(panel)) {
    changes.push_back({{"bytes", crossover.bytes},
                       {"before", crossover.before->contender->name},
                       {"after", crossover.after->contender->name}});
  }
  return {{"id", panel.spec.id},
          {"title", panel.spec.title},
          {"dims", panel.spec.dims},
          {"gigabits_per_second", panel.spec.gigabits},
          {"sizes", sizes},
          {"curves", std::move(curves)},
          {"crossovers", std::move(changes)}};
}

Json end_of(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const Outcome& outcome) {
  const Statement& s = *outcome.statement;
  return {{"id", s.id},
          {"where", s.where},
          {"statement", s.text},
          {"measure", name_of(s.measure)},
          {"unit", name_of(unit_of(s.measure))},
          {"panels", s.panels},
          {"others", s.others},
          {"stated", {{"text", stated_text(s)}, {"low", end_of(s.low)}, {"high", end_of(s.high)}}},
          {"found",
           {{"text", found_text(outcome)},
            {"low", end_of(outcome.low.value)},
            {"low_at", outcome.low.at},
            {"high", end_of(outcome.high.value)},
            {"high_at", outcome.high.at}}},
          {"allowed", s.allowed},
          {"distance", end_of(outcome.distance)},
          {"verdict", outcome.agrees ? "agrees" : "differs"},
          {"why", outcome.agrees ? "" : s.why}};
}

}  // namespace

nlohmann::ordered_json to_json(const Trivance& trivance) {
  Json tables = Json::array(), figures = Json::array(), rows = Json::array();
  for (const TableRow& row : trivance.rows) {
    tables.push_back({{"table", row.table},
                      {"algorithm", row.line->name},
                      {"line", row.line->line},
                      {"routing", rankine::name_of(row.line->routing)},
                      {"dims", row.dims},
                      {"lambda", json_of(row.lambda)},
                      {"delta", json_of(row.delta)},
                      {"theta", json_of(row.theta)},
                      {"why", row.why}});
  }
  for (const Panel& panel : trivance.panels) figures.push_back(json_of(panel));
  for (const Outcome& outcome : trivance.outcomes) rows.push_back(json_of(outcome));
  return {{"paper", kTrivanceKey},         {"title", kTrivanceTitle},
          {"tables", std::move(tables)},   {"figures", std::move(figures)},
          {"statements", std::move(rows)}, {"agree", agreeing(trivance.outcomes)}};
}

nlohmann::ordered_json to_json(const std::vector<TraffOutcome>& outcomes) {
  Json rows = Json::array();
  for (const TraffOutcome& outcome : outcomes) {
    const TraffStatement& s = *outcome.statement;
    rows.push_back({{"id", s.id},
                    {"where", s.where},
                    {"statement", s.text},
                    {"processors", outcome.processors},
                    {"cases", outcome.cases},
                    {"agreeing", outcome.agreeing},
                    {"stated", outcome.shown.stated},
                    {"found", outcome.shown.found},
                    {"verdict", outcome.agrees() ? "agrees" : "differs"},
                    {"why", outcome.agrees() ? "" : s.why}});
  }
  return {{"paper", kTraffKey},
          {"title", kTraffTitle},
          {"statements", std::move(rows)},
          {"agree", agreeing(outcomes)}};
}

}  // namespace rankine::reproduce
