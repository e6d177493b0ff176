#include "engine/papers/report.h"

#include <fmt/format.h>
#include <tbb/parallel_invoke.h>

#include <mutex>
#include <numeric>
#include <ostream>
#include <utility>

#include "engine/papers/condition.h"
#include "engine/papers/execution.h"
#include "engine/papers/report_row.h"

namespace rankine::claims {
namespace {

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
    out[std::string(name_of(by.fidelity))] = {{"found", by.measured}, {"agrees", by.agrees}};
  }
  return out;
}

// Of the two halves of a report.
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
    // While claims are judged that is what takes time.
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
  for (const Paper& paper : papers()) {
    if (!filter.paper.empty() && paper.key != filter.paper) continue;
    for (const Claim& claim : paper.claims) {
      if (claim.id.starts_with(filter.id)) asked.emplace_back(&paper, &claim);
    }
  }
  std::vector<Finding> findings(asked.size());
  JoinedProgress joined(progress, asked.size());
  // Statements on figures have no run in common with other claims. Both have stretches in which one
  // core works.
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
  tbb::parallel_invoke([&find] { find(false); }, [&find] { find(true); });
  return findings;
}

int Totals::of_kind(Kind kind) const {
  const auto& row = of[static_cast<int>(kind)];
  return std::accumulate(std::begin(row), std::end(row), 0);
}

int Totals::checked() const {
  int beyond = 0;
  for (const auto& row : of) beyond += row[static_cast<int>(Verdict::beyond_model)];
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

void print_brief(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter) {
  for (const std::string& line : summary_lines(totals_of(findings))) out << line << "\n";
  out << "\nClaims that fail or that the engine contradicts:\n";
  for (const Finding& finding : findings) {
    const bool failed = finding.verdict == Verdict::fails || !finding.fault.empty();
    if (failed && filter.shows(finding)) out << "  " << golden_line(finding) << "\n";
  }
}

void print_text(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter) {
  for (const std::string& line : summary_lines(totals_of(findings))) out << line << "\n";
  out << "\n";
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
    line("needs", row.needs);
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
                    {"found", finding.said.empty() ? claim.found : finding.measured},
                    {"runs", claim.runs},
                    {"sets", claim.sets},
                    {"verdict", name_of(finding.verdict)},
                    {"condition", finding.condition},
                    {"exception", finding.exception},
                    {"again", json_of(finding.again)},
                    {"needs", finding.needs},
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
  std::string line = fmt::format("{} {} {}", finding.claim->id, name_of(finding.claim->kind),
                                 name_of(finding.verdict));
  if (finding.verdict == Verdict::conditional) line += ": " + finding.condition;
  if (!finding.exception.empty()) line += ", but where " + finding.exception;
  if (finding.verdict != Verdict::conditional && !finding.needs.empty()) {
    line += ": by " + finding.needs;
  }
  return line;
}

}  // namespace rankine::claims
