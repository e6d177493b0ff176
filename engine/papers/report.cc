#include "engine/papers/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <mutex>
#include <numeric>
#include <ostream>
#include <utility>

#include "engine/base/parallel.h"
#include "engine/base/units.h"
#include "engine/papers/condition.h"
#include "engine/papers/evaluate.h"

namespace rankine::claims {
namespace {

// The unit of a row's numbers: that of the quantities, if they are all of one kind and nothing is
// divided or compared; or else that of the printed number. Empty: a count or a ratio.
std::string_view unit_of(const Claim& claim) {
  constexpr std::pair<std::string_view, std::string_view> kUnitOf[] = {
      {"time", "s"},           {"best", "s"},    {"sent", "B"},          {"received", "B"},
      {"reduced", "B"},        {"largest", "B"}, {"sent_by", "B"},       {"sent_in", "B"},
      {"crossing", "B"},       {"sends", "B"},   {"rank_crossing", "B"}, {"rounds", "rounds"},
      {"messages", "messages"}};
  const std::string& side = claim.found.empty() ? claim.stated : claim.found;
  std::string_view unit;
  bool one = side.find_first_of("/*<>=") == std::string::npos;
  for (std::size_t at = 0; one && at < side.size();) {
    const auto is_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    };
    const std::size_t begin = at;
    while (at < side.size() && is_word(side[at])) ++at;
    if (at == begin) {
      ++at;
      continue;
    }
    if (at < side.size() && side[at] == '.') continue;  // the name of a run
    const std::string_view word(side.data() + begin, at - begin);
    if (word == "and" || word == "or" || word == "if" || word == "sum") one = false;
    for (const auto& [name, of] : kUnitOf) {
      if (name != word) continue;
      one = unit.empty() || unit == of;
      unit = of;
    }
  }
  if (one && !unit.empty()) return unit;
  const std::string_view printed = claim.printed;
  const std::size_t end = printed.find_first_not_of("~0123456789. ");
  if (end == std::string_view::npos || printed.substr(end) == "x" || printed.substr(end) == "%") {
    return {};
  }
  return printed.ends_with("/s") ? "B/s" : printed.ends_with("s") ? "s" : "B";
}

std::string with_unit(const Claim& claim, long double value, std::string_view format) {
  const std::string_view unit = unit_of(claim);
  return fmt::format(fmt::runtime(format), static_cast<double>(value)) +
         (unit.empty() ? "" : " " + std::string(unit));
}

nlohmann::ordered_json json_of(const Value& value) {
  return {{"exact", value.exact() ? nlohmann::ordered_json(to_string(value))
                                  : nlohmann::ordered_json(nullptr)},
          {"number", static_cast<double>(value.approximate())}};
}

nlohmann::ordered_json json_of(const Finding& finding, const Case* c) {
  if (c == nullptr) return nullptr;
  return {{"with", describe(finding.order, c->letters)},
          {"stated", json_of(c->stated)},
          {"found", json_of(c->found)},
          {"allowed", c->allowed ? json_of(*c->allowed) : nlohmann::ordered_json(nullptr)},
          {"agrees", c->agrees}};
}

nlohmann::ordered_json json_of(const std::vector<Finding::Again>& again) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const Finding::Again& by : again) {
    out[std::string(name_of(by.by))] = {{"found", by.measured}, {"agrees", by.agrees}};
  }
  return out;
}

// Merges the progress of the two halves of a report.
class JoinedProgress {
 public:
  JoinedProgress(const ReportProgress& progress, std::size_t claims)
      : progress_(progress), claims_(claims) {}

  void judged() {
    const std::lock_guard lock(mutex_);
    if (progress_) progress_("claims", ++judged_, claims_);
  }
  void executed(bool figures, std::size_t done, std::size_t all) {
    const std::lock_guard lock(mutex_);
    done_[figures ? 1 : 0] = done;
    all_[figures ? 1 : 0] = all;
    // While claims are judged, they take most of the time: runs are not reported.
    if (progress_ && judged_ == claims_) progress_("runs", done_[0] + done_[1], all_[0] + all_[1]);
  }

 private:
  const ReportProgress& progress_;
  const std::size_t claims_;
  std::mutex mutex_;
  std::size_t judged_ = 0, done_[2] = {}, all_[2] = {};
};

}  // namespace

std::vector<Finding> find_out(const Filter& filter, const EvaluateOptions& options,
                              const ReportProgress& progress) {
  std::vector<std::pair<const Paper*, const Claim*>> asked;
  std::size_t number = 0;
  for (const Paper& paper : papers()) {
    if (!filter.paper.empty() && paper.key != filter.paper) continue;
    for (const Claim& claim : paper.claims) {
      if (!claim.id.starts_with(filter.id) && !is_at(claim, filter.id)) continue;
      if (!filter.keeps || filter.keeps(number++)) asked.emplace_back(&paper, &claim);
    }
  }
  std::vector<Finding> findings(asked.size());
  JoinedProgress joined(progress, asked.size());
  // Statements on figures share no run with other claims, so both halves run at once: each has
  // phases that use only one core.
  const auto find = [&](bool figures) {
    Runs runs;
    std::vector<Finding*> rows;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const auto& [paper, claim] = asked[i];
      if (claim->reproduced != figures) continue;
      findings[i] = judge(*paper, *claim, runs, options.most_cases);
      rows.push_back(&findings[i]);
      joined.judged();
    }
    if (!options.execute) return;
    execute(rows, runs, options, [&joined, figures](std::size_t done, std::size_t all) {
      joined.executed(figures, done, all);
    });
  };
  parallel_for(2, [&find](std::size_t half) { find(half == 1); });
  return findings;
}

int Totals::of_kind(Kind kind) const {
  const auto& row = of[static_cast<int>(kind)];
  return std::accumulate(std::begin(row), std::end(row), 0);
}

int Totals::checked() const {
  int beyond = 0;
  for (const auto& row : of) beyond += row[static_cast<int>(Verdict::not_reproduced)];
  return claims - beyond;
}

Totals totals_of(const std::vector<Finding>& findings) {
  Totals totals;
  for (const Finding& finding : findings) {
    ++totals.claims;
    ++totals.of[static_cast<int>(finding.claim->kind)][static_cast<int>(finding.verdict)];
    totals.executed += finding.first_executed;
    ++totals.unexecuted[static_cast<int>(finding.unexecuted)];
    totals.faults += finding.fault.empty() ? 0 : 1;
  }
  return totals;
}

namespace {

std::string counts_text(const int (&of)[kVerdicts]) {
  std::string text;
  for (int v = 0; v < kVerdicts; ++v) {
    if (of[v] == 0) continue;
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", of[v], words_of(static_cast<Verdict>(v)));
  }
  return text;
}

}  // namespace

Page first_page(const std::vector<Finding>& findings) {
  Page page = {
      {"All claims", summary_lines(totals_of(findings))},
      {"Paper by paper", {}},
      {"How to read a row",
       {"holds: in all cases tried. holds if: in the cases of the condition. does not hold: in "
        "none, or where an agreement proves nothing. not reproduced: the model lacks a part, or no "
        "computation finds the number.",
        "kind: executed rows run schedules on a network; arithmetic rows compare the paper's "
        "formulas and numbers; definition rows repeat the network model; own_formula rows have our "
        "formula instead of the paper's.",
        "stated and found: the paper's side and the engine's, with the relation between them and "
        "the distance allowed. Seconds (s), bytes (B); numbers without a unit are counts, ratios "
        "or coefficients."}}};
  std::vector<const Paper*> papers;
  for (const Finding& finding : findings) {
    if (papers.empty() || papers.back() != finding.paper) papers.push_back(finding.paper);
  }
  for (const Paper* paper : papers) {
    int of[kVerdicts] = {};
    std::vector<std::string> useful;
    for (const Finding& finding : findings) {
      if (finding.paper == paper) ++of[static_cast<int>(finding.verdict)];
    }
    for (const std::string& id : paper->useful) {
      const auto row = std::find_if(findings.begin(), findings.end(),
                                    [&id](const Finding& each) { return each.claim->id == id; });
      if (row == findings.end()) continue;
      useful.push_back(fmt::format("{} [{}] {} {}: {}", id, row->claim->where, row->claim->text,
                                   report_row(*row).verdict, report_row(*row).why));
    }
    page[1].second.push_back(fmt::format("{}: {}", paper->title, counts_text(of)));
    if (!useful.empty()) page.emplace_back("Most useful to the authors: " + paper->title, useful);
  }
  return page;
}

void print_brief(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter) {
  for (const std::string& line : summary_lines(totals_of(findings))) out << line << "\n";
  out << "\nClaims that do not hold or that the engine contradicts:\n";
  for (const Finding& finding : findings) {
    const bool failed = finding.verdict == Verdict::does_not_hold || !finding.fault.empty();
    if (failed && filter.shows(finding)) out << "  " << golden_line(finding) << "\n";
  }
}

void print_text(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter) {
  if (filter.id.empty() && !filter.verdict && !filter.kind) {
    for (const auto& [heading, lines] : first_page(findings)) {
      out << heading << "\n";
      for (const std::string& line : lines) out << "  " << line << "\n";
      out << "\n";
    }
  } else {
    for (const std::string& line : summary_lines(totals_of(findings))) out << line << "\n";
    out << "\n";
  }
  const Paper* paper = nullptr;
  for (const Finding& finding : findings) {
    if (!filter.shows(finding)) continue;
    const Claim& claim = *finding.claim;
    const ReportRow row = report_row(finding);
    if (finding.paper != paper) {
      out << fmt::format("{}{}\n  {}\n", paper == nullptr ? "" : "\n", finding.paper->title,
                         finding.paper->letters);
      paper = finding.paper;
    }
    out << fmt::format("\n{}  [{}]  {}\n  {}\n", claim.id, claim.where, row.verdict, claim.text);
    const auto line = [&out](std::string_view name, const std::string& text) {
      if (!text.empty()) out << fmt::format("  {:7} {}\n", name, text);
    };
    line("kind", std::string(name_of(claim.kind)));
    if (!finding.cases.empty()) {
      line("stated", row.stated);
      line("is", claim.found.empty() ? "" : row.relation + " " + claim.found);
      line("of", claim.runs);
    }
    line("own", row.own);
    line("found", row.shown);
    for (const std::string& by : row.again) line("again", by);
    line("tried", row.cases);
    line("why", row.why);
    line("ENGINE", finding.fault);
  }
}

nlohmann::ordered_json to_json(const std::vector<Finding>& findings, const Filter& filter) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    if (!filter.shows(finding)) continue;
    const Claim& claim = *finding.claim;
    const ReportRow row = report_row(finding);
    rows.push_back({{"id", claim.id},
                    {"paper", finding.paper->key},
                    {"where", claim.where},
                    {"claim", claim.text},
                    {"kind", name_of(claim.kind)},
                    {"stated", finding.said.empty() ? claim.stated : finding.said},
                    {"printed", claim.printed},
                    {"relation", row.relation},
                    {"unit", unit_of(claim)},
                    {"found", finding.said.empty() ? claim.found : finding.measured},
                    {"runs", claim.runs},
                    {"sets", claim.sets},
                    {"verdict", name_of(finding.verdict)},
                    {"condition", finding.condition},
                    {"exception", finding.exception},
                    {"again", json_of(finding.again)},
                    {"why", row.why},
                    {"cases", finding.cases.size()},
                    {"not_defined", finding.skipped},
                    {"executed", finding.executed},
                    {"unexecuted", name_of(finding.unexecuted)},
                    {"fault", finding.fault},
                    {"own", json_of(finding, finding.own())},
                    {"shown", json_of(finding, finding.shown())}});
  }
  const Totals totals = totals_of(findings);
  nlohmann::ordered_json counts{{"claims", totals.claims}, {"checked", totals.checked()}};
  for (int k = 0; k < kKinds; ++k) {
    const auto kind = static_cast<Kind>(k);
    nlohmann::ordered_json& of = counts["kinds"][std::string(name_of(kind))];
    of["claims"] = totals.of_kind(kind);
    for (int v = 0; v < kVerdicts; ++v) {
      of[std::string(name_of(static_cast<Verdict>(v)))] = totals.of[k][v];
    }
  }
  counts["executed"] = totals.executed;
  for (int u = 1; u < kUnexecuted; ++u) {
    counts["unexecuted"][std::string(name_of(static_cast<Unexecuted>(u)))] = totals.unexecuted[u];
  }
  counts["faults"] = totals.faults;
  return {{"claims", std::move(rows)}, {"counts", std::move(counts)}};
}

std::string golden_line(const Finding& finding) {
  return fmt::format("{} {} {}", finding.claim->id, name_of(finding.claim->kind),
                     report_row(finding).verdict);
}

namespace {

std::string verdict_text(const Finding& finding) {
  std::string text = words_of(finding.verdict);
  if (finding.verdict == Verdict::holds_if) text += " " + finding.condition;
  if (!finding.exception.empty()) text += ", but where " + finding.exception;
  return text;
}

std::string stated_text(const Claim& claim) {
  if (claim.printed.empty()) return claim.stated;
  if (claim.stated.empty()) return claim.printed;
  return fmt::format("{} = {}", claim.printed, claim.stated);
}

// "~ stated/50" is a share of one side, "~ 1/10" an absolute distance.
std::string relation_text(const Claim& claim) {
  if (!claim.printed.empty()) {
    return fmt::format(
        "rounds to, within {}",
        with_unit(claim, read_printed(claim.printed).tolerance.approximate(), "{:.3g}"));
  }
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

// A value with its unit; in decimals if it has one or stands beside a printed number.
std::string number(const Claim& claim, const Value& value) {
  if (!unit_of(claim).empty()) return with_unit(claim, value.approximate(), "{:.6g}");
  return claim.printed.empty() ? to_string(value) : to_string(Value::real(value.approximate()));
}

std::string case_text(const Finding& finding, const Case& c) {
  const Claim& claim = *finding.claim;
  const std::string letters = describe(finding.order, c.letters);
  std::string text = fmt::format("{}{}stated {}, found {}", letters, letters.empty() ? "" : ": ",
                                 claim.printed.empty() ? number(claim, c.stated) : claim.printed,
                                 number(claim, c.found));
  if (c.allowed)
    text += fmt::format(" (within {})", with_unit(claim, c.allowed->approximate(), "{:.4g}"));
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
  row.why = finding.claim->why;
  if (!finding.reason.empty()) row.why += (row.why.empty() ? "" : "; ") + finding.reason;
  if (!finding.measured.empty()) {
    row.stated = finding.said;
    row.relation = "within";
    row.shown = fmt::format("stated {}, found {}", finding.said, finding.measured);
    for (std::size_t i = 1; i < finding.again.size(); ++i) {
      const Finding::Again& by = finding.again[i];
      row.again.push_back(fmt::format("by {}: found {}", name_of(by.by), by.measured));
    }
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
    const std::string counts = counts_text(totals.of[k]);
    if (!counts.empty()) {
      lines.push_back(fmt::format("{} {}: {}", totals.of_kind(kind), name_of(kind), counts));
    }
  }
  lines.push_back(fmt::format(
      "{} claims. {} different runs made by live ranks under the virtual clock, {} of them with "
      "another result.",
      totals.claims, totals.executed, totals.faults));
  constexpr std::string_view kReasons[kUnexecuted] = {"", "above a communicator's limit of ranks",
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
    lines.push_back(fmt::format("Network rows without an executed run: {}{}.", rows, reasons));
  }
  return lines;
}

// The report as a document: Markdown and HTML, one table of rows per paper.

namespace {

std::string in_markdown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '<') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string in_html(std::string_view text) {
  constexpr std::pair<char, std::string_view> kEscapes[] = {
      {'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}};
  std::string out;
  for (const char c : text) {
    const auto* const known = std::find_if(std::begin(kEscapes), std::end(kEscapes),
                                           [c](const auto& each) { return each.first == c; });
    out += known == std::end(kEscapes) ? std::string_view(&c, 1) : known->second;
  }
  return out;
}

// The cells of a row, in the order of kHead.
constexpr std::string_view kHead[] = {"where",        "the paper says", "verdict", "kind",
                                      "as a formula", "found",          "why"};
std::vector<std::string> cells(const Finding& finding) {
  const Claim& claim = *finding.claim;
  const ReportRow row = report_row(finding);
  std::string formula = row.stated;
  if (!claim.found.empty()) formula += fmt::format(" {} {}", row.relation, claim.found);
  std::string found = row.own;
  std::vector<std::string> rest = {row.shown, row.cases};
  rest.insert(rest.begin() + 1, row.again.begin(), row.again.end());
  for (const std::string& more : rest) {
    if (!more.empty()) found += (found.empty() ? "" : "; ") + more;
  }
  return {claim.where, claim.text, row.verdict, std::string(name_of(claim.kind)),
          formula,     found,      row.why};
}

// Calls begin(paper) and end() around the rows of each paper that has any.
template <class Begin, class Row, class End>
void for_each_paper(const std::vector<Finding>& findings, const Filter& filter, const Begin& begin,
                    const Row& row, const End& end) {
  const Paper* paper = nullptr;
  for (const Finding& finding : findings) {
    if (!filter.shows(finding)) continue;
    if (finding.paper != paper) {
      if (paper != nullptr) end();
      begin(*finding.paper);
      paper = finding.paper;
    }
    row(finding);
  }
  if (paper != nullptr) end();
}

constexpr std::string_view kStyle =
    "body{font:15px/1.4 sans-serif;margin:2rem auto;max-width:90rem;padding:0 "
    "1rem}table{border-collapse:collapse;width:100%}th,td{border:1px solid #bbb;padding:.3rem "
    ".5rem;text-align:left;vertical-align:top}code{font-size:.9em}.holds "
    "td:nth-child(3){color:#17692a}.holds_if td:nth-child(3){color:#8a5a00}.does_not_hold "
    "td:nth-child(3){color:#a31515}.not_reproduced td:nth-child(3){color:#555}@media "
    "print{body{font-size:10px;margin:0}}";

}  // namespace

void print_markdown(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter) {
  out << "# Claims of the papers\n";
  for (const auto& [heading, lines] : first_page(findings)) {
    out << "\n## " << in_markdown(heading) << "\n\n";
    for (const std::string& line : lines) out << "- " << in_markdown(line) << "\n";
  }
  for_each_paper(
      findings, filter,
      [&out](const Paper& paper) {
        out << fmt::format("\n## {}\n\n{}\n\n|", paper.title, paper.letters);
        for (const std::string_view name : kHead) out << " " << name << " |";
        out << "\n|";
        for (std::size_t i = 0; i < std::size(kHead); ++i) out << "---|";
        out << "\n";
      },
      [&out](const Finding& finding) {
        out << "|";
        for (const std::string& cell : cells(finding)) out << " " << in_markdown(cell) << " |";
        out << "\n";
      },
      [] {});
}

void print_html(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter) {
  out << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Claims of the "
         "papers</title><style>"
      << kStyle << "</style></head><body>\n<h1>Claims of the papers</h1>\n";
  for (const auto& [heading, lines] : first_page(findings)) {
    out << "<h2>" << in_html(heading) << "</h2>\n<ul>\n";
    for (const std::string& line : lines) out << "<li>" << in_html(line) << "</li>\n";
    out << "</ul>\n";
  }
  for_each_paper(
      findings, filter,
      [&out](const Paper& paper) {
        out << fmt::format("<h2>{}</h2>\n<p>{}</p>\n<table>\n<tr>", in_html(paper.title),
                           in_html(paper.letters));
        for (const std::string_view name : kHead) out << "<th>" << name << "</th>";
        out << "</tr>\n";
      },
      [&out](const Finding& finding) {
        out << fmt::format("<tr id=\"{}\" class=\"{}\">", in_html(finding.claim->id),
                           name_of(finding.verdict));
        for (const std::string& cell : cells(finding)) out << "<td>" << in_html(cell) << "</td>";
        out << "</tr>\n";
      },
      [&out] { out << "</table>\n"; });
  out << "</body></html>\n";
}

}  // namespace rankine::claims
