#include "engine/papers/report_row.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/units.h"
#include "engine/papers/condition.h"

namespace rankine::claims {
namespace {

std::string verdict_text(const Finding& finding) {
  std::string text(words_of(finding.verdict));
  if (finding.verdict == Verdict::conditional) text += " " + finding.condition;
  if (!finding.exception.empty()) text += ", but where " + finding.exception;
  return text;
}

std::string stated_text(const Claim& claim) {
  if (claim.printed.empty()) return claim.stated;
  if (claim.stated.empty()) return claim.printed;
  return fmt::format("{} = {}", claim.printed, claim.stated);
}

// "~ stated/50" is a share of one side, "~ 1/10" a distance.
std::string relation_text(const Claim& claim) {
  if (!claim.printed.empty()) return "rounds to";
  if (!claim.relation.starts_with("~ ")) return claim.relation;
  const std::string allowed = claim.relation.substr(2);
  for (const std::string side : {"stated", "found"}) {
    if (!allowed.starts_with(side + "/")) continue;
    const Value share = formulas::evaluate(allowed.substr(side.size() + 1), Letters{});
    return fmt::format("=, within {:.4g} %",
                       static_cast<double>((Value(100) / share).approximate()));
  }
  return "=, within " + allowed;
}

// In decimals beside a printed number.
std::string number(const Claim& claim, const Value& value) {
  return claim.printed.empty() ? to_string(value) : to_string(Value::real(value.approximate()));
}

std::string case_text(const Finding& finding, const Case& c) {
  const Claim& claim = *finding.claim;
  const std::string letters = describe(finding.order, c.letters);
  std::string text = fmt::format("{}{}stated {}, found {}", letters, letters.empty() ? "" : ": ",
                                 claim.printed.empty() ? to_string(c.stated) : claim.printed,
                                 number(claim, c.found));
  if (c.allowed)
    text += fmt::format(" (within {:.4g})", static_cast<double>(c.allowed->approximate()));
  if (!c.agrees) text += "  <- differ";
  return text;
}

std::string cases_text(const Finding& finding) {
  const auto agreeing = std::count_if(finding.cases.begin(), finding.cases.end(),
                                      [](const Case& c) { return c.agrees; });
  std::string text = fmt::format("{} of {}", agreeing, counted(finding.cases.size(), "case"));
  if (finding.executed > 0) text += fmt::format(", {} executed", finding.executed);
  if (finding.skipped > 0) text += fmt::format(", {} not defined", finding.skipped);
  return text;
}

}  // namespace

ReportRow report_row(const Finding& finding) {
  ReportRow row;
  row.verdict = verdict_text(finding);
  row.why = finding.verdict == Verdict::beyond_model && !finding.reason.empty()
                ? finding.reason
                : finding.claim->why;
  if (!finding.measured.empty()) {
    row.stated = finding.said;
    row.relation = "within";
    row.shown = fmt::format("stated {}, found {}", finding.said, finding.measured);
    for (const Finding::Again& by : finding.again) {
      row.again.push_back(fmt::format("by {}: found {}", name_of(by.fidelity), by.measured));
    }
    if (!finding.needs.empty()) row.needs = finding.needs;
    if (finding.executed > 0) row.cases = fmt::format("{} executed", finding.executed);
    return row;
  }
  row.stated = stated_text(*finding.claim);
  row.relation = relation_text(*finding.claim);
  const Case *own = finding.own(), *shown = finding.shown();
  if (own != nullptr) row.own = case_text(finding, *own);
  if (shown != nullptr && shown != own) row.shown = case_text(finding, *shown);
  if (shown != nullptr) row.cases = cases_text(finding);
  return row;
}

std::vector<std::string> summary_lines(const Totals& totals) {
  std::vector<std::string> lines;
  for (int k = 0; k < kKinds; ++k) {
    const auto kind = static_cast<Kind>(k);
    std::string line = fmt::format("{} {}:", totals.of_kind(kind), name_of(kind));
    bool first = true;
    for (int v = 0; v < kVerdicts; ++v) {
      if (totals.of[k][v] == 0) continue;
      line += fmt::format("{} {} {}", first ? "" : ",", totals.of[k][v],
                          words_of(static_cast<Verdict>(v)));
      first = false;
    }
    if (!first) lines.push_back(std::move(line));
  }
  lines.push_back(fmt::format(
      "{} claims. {} different runs made by live ranks under the virtual clock, {} of them with "
      "another result.",
      totals.claims, totals.executed, totals.faults));
  constexpr std::string_view kReasons[kUnexecuted] = {"", "of more ranks than a communicator takes",
                                                      "beyond the model or the catalogue"};
  int rows = 0;
  std::string reasons;
  for (int u = 1; u < kUnexecuted; ++u) {
    if (totals.unexecuted[u] == 0) continue;
    rows += totals.unexecuted[u];
    reasons +=
        fmt::format("{} {} {}", reasons.empty() ? ";" : ",", totals.unexecuted[u], kReasons[u]);
  }
  if (rows > 0) {
    lines.push_back(
        fmt::format("Rows on a network of which nothing is executed: {}{}.", rows, reasons));
  }
  return lines;
}

}  // namespace rankine::claims
