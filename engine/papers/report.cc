#include "engine/papers/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "engine/papers/condition.h"

namespace rankine::claims {
namespace {

bool shown(const Finding& finding, const Filter& filter) {
  return !filter.verdict || finding.verdict == *filter.verdict;
}

// "holds only if N is a power of two".
std::string verdict_text(const Finding& finding) {
  std::string text(words_of(finding.verdict));
  if (finding.verdict == Verdict::holds_if) text += " " + finding.condition;
  return text;
}

std::string reason_text(const Finding& finding) {
  if (finding.verdict == Verdict::open) return finding.reason;
  return std::string(finding.claim->why);
}

// What the paper says: its formula, its number, or both.
std::string stated_text(const Claim& claim) {
  if (claim.printed.empty()) return std::string(claim.stated);
  if (claim.stated.empty()) return std::string(claim.printed);
  return fmt::format("{} = {}", claim.printed, claim.stated);
}

// The paper's number as it stands there; what is compared with it in decimals, too.
std::string stated_value(const Claim& claim, const Case& c) {
  return claim.printed.empty() ? to_string(c.stated) : std::string(claim.printed);
}
std::string found_value(const Claim& claim, const Case& c) {
  return claim.printed.empty() ? to_string(c.found) : to_string(Value::real(c.found.approximate()));
}

std::string relation_text(const Claim& claim) {
  if (!claim.printed.empty()) return "rounds to";
  return claim.relation.starts_with("~ ") ? "~" : std::string(claim.relation);
}

std::string cases_text(const Finding& finding) {
  const auto agreeing = std::count_if(finding.cases.begin(), finding.cases.end(),
                                      [](const Case& c) { return c.agrees; });
  std::string text = fmt::format("{} of {} cases", agreeing, finding.cases.size());
  if (finding.executed > 0) text += fmt::format(", {} executed on threads", finding.executed);
  if (finding.skipped > 0) text += fmt::format(", {} not defined", finding.skipped);
  return text;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string summary(const Totals& totals) {
  std::string text = fmt::format("{} claims, {} checked:", totals.claims, totals.checked());
  for (int v = 0; v < kVerdicts; ++v) {
    text += fmt::format("{} {} {}", v == 0 ? "" : ",", totals.by_verdict[v],
                        words_of(static_cast<Verdict>(v)));
  }
  text += fmt::format(
      ". {} different runs repeated on threads under the virtual clock, {} of them with another "
      "result.",
      totals.executed, totals.faults);
  return text;
}

nlohmann::ordered_json json_of(const Value& value) {
  return {{"exact", value.exact() ? nlohmann::ordered_json(to_string(value))
                                  : nlohmann::ordered_json(nullptr)},
          {"number", static_cast<double>(value.approximate())}};
}

}  // namespace

std::vector<Finding> find_out(const Filter& filter, const EvaluateOptions& options,
                              const std::function<void(std::size_t, std::size_t)>& progress) {
  std::vector<std::pair<const Paper*, const Claim*>> asked;
  for (const Paper& paper : papers()) {
    if (!filter.paper.empty() && paper.key != filter.paper) continue;
    for (const Claim& claim : paper.claims) {
      if (claim.id.starts_with(filter.id)) asked.emplace_back(find_paper(paper.key), &claim);
    }
  }
  Runs runs;
  std::vector<Finding> findings;
  for (const auto& [paper, claim] : asked) {
    if (progress) progress(findings.size(), asked.size());
    findings.push_back(evaluate(*paper, *claim, runs, options));
  }
  return findings;
}

Totals totals_of(const std::vector<Finding>& findings) {
  Totals totals;
  for (const Finding& finding : findings) {
    ++totals.claims;
    ++totals.by_verdict[static_cast<int>(finding.verdict)];
    totals.executed += finding.first_executed;
    totals.faults += finding.fault.empty() ? 0 : 1;
  }
  return totals;
}

void print_text(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter) {
  const Paper* paper = nullptr;
  for (const Finding& finding : findings) {
    if (!shown(finding, filter)) continue;
    const Claim& claim = *finding.claim;
    if (finding.paper != paper) {
      paper = finding.paper;
      out << fmt::format("{}{}\n  {}\n", out.tellp() > 0 ? "\n" : "", paper->title, paper->letters);
    }
    out << fmt::format("\n{}  [{}]  {}\n  {}\n", claim.id, claim.where, verdict_text(finding),
                       claim.text);
    if (const Case* c = finding.shown()) {
      const std::string letters = describe(finding.order, c->letters);
      out << fmt::format("  stated  {}\n", stated_text(claim));
      if (!claim.found.empty()) out << fmt::format("  found   {}\n", claim.found);
      if (!claim.runs.empty()) out << fmt::format("  of      {}\n", claim.runs);
      out << fmt::format("  {}{}stated {}, found {}{}  ({})\n", letters,
                         letters.empty() ? "" : ":  ", stated_value(claim, *c),
                         found_value(claim, *c), c->agrees ? "" : "  <- differ",
                         cases_text(finding));
    }
    if (!finding.measured.empty()) {
      out << fmt::format("  stated {}, found {}\n", finding.said, finding.measured);
    }
    const std::string reason = reason_text(finding);
    if (!reason.empty()) out << fmt::format("  {}\n", reason);
    if (!finding.fault.empty()) out << fmt::format("  ENGINE: {}\n", finding.fault);
  }
  out << "\n" << summary(totals_of(findings)) << "\n";
}

void print_markdown(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter) {
  const Paper* paper = nullptr;
  for (const Finding& finding : findings) {
    if (!shown(finding, filter)) continue;
    const Claim& claim = *finding.claim;
    if (finding.paper != paper) {
      out << fmt::format("{}## {}\n\n{}\n\n", paper == nullptr ? "" : "\n", finding.paper->title,
                         finding.paper->letters);
      out << "| where | claim | stated | with | value stated | value found | verdict | why |\n"
             "|---|---|---|---|---|---|---|---|\n";
      paper = finding.paper;
    }
    const Case* c = finding.shown();
    out << fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} |\n", escaped(claim.where), escaped(claim.text),
        claim.stated.empty() && claim.printed.empty() ? ""
                                                      : "`" + escaped(stated_text(claim)) + "`",
        c == nullptr ? "" : escaped(describe(finding.order, c->letters)),
        escaped(c == nullptr ? finding.said : stated_value(claim, *c)),
        escaped(c == nullptr ? finding.measured : found_value(claim, *c)),
        "**" + escaped(verdict_text(finding)) + "**", escaped(reason_text(finding)));
  }
  out << "\n" << summary(totals_of(findings)) << "\n";
}

nlohmann::ordered_json to_json(const std::vector<Finding>& findings, const Filter& filter) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    if (!shown(finding, filter)) continue;
    const Claim& claim = *finding.claim;
    nlohmann::ordered_json row{
        {"id", claim.id},
        {"paper", finding.paper->key},
        {"where", claim.where},
        {"claim", claim.text},
        {"stated", finding.said.empty() ? std::string(claim.stated) : finding.said},
        {"printed", claim.printed},
        {"relation", relation_text(claim)},
        {"found", finding.said.empty() ? std::string(claim.found) : finding.measured},
        {"runs", claim.runs},
        {"sets", claim.sets},
        {"verdict", name_of(finding.verdict)},
        {"condition", finding.condition},
        {"why", reason_text(finding)},
        {"cases", finding.cases.size()},
        {"not_defined", finding.skipped},
        {"executed", finding.executed},
        {"fault", finding.fault}};
    if (const Case* c = finding.shown()) {
      row["shown"] = {{"with", describe(finding.order, c->letters)},
                      {"stated", json_of(c->stated)},
                      {"found", json_of(c->found)},
                      {"agrees", c->agrees}};
    }
    rows.push_back(std::move(row));
  }
  const Totals totals = totals_of(findings);
  nlohmann::ordered_json counts{{"claims", totals.claims}, {"checked", totals.checked()}};
  for (int v = 0; v < kVerdicts; ++v) {
    counts[std::string(name_of(static_cast<Verdict>(v)))] = totals.by_verdict[v];
  }
  counts["executed"] = totals.executed;
  counts["faults"] = totals.faults;
  return {{"claims", std::move(rows)}, {"counts", std::move(counts)}};
}

std::string golden_line(const Finding& finding) {
  std::string line = fmt::format("{} {}", finding.claim->id, name_of(finding.verdict));
  if (finding.verdict == Verdict::holds_if) line += ": " + finding.condition;
  return line;
}

}  // namespace rankine::claims
