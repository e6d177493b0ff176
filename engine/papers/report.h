// Findings as people and programs read them: text, Markdown, HTML, JSON.
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/papers/evaluate.h"

namespace rankine::claims {

struct Filter {
  std::string paper{};               // its key; empty: all
  std::optional<Verdict> verdict{};  // only these rows; the counts are of all that were evaluated
  std::optional<Kind> kind{};        // likewise
  std::string id{};                  // only claims whose id begins so

  bool shows(const Finding& finding) const {
    return (!verdict || finding.verdict == *verdict) && (!kind || finding.claim->kind == *kind);
  }
};

// Called with how many "claims" have been judged, or "runs" have been made by live ranks, and how
// many are to be; from any thread, one call at a time.
using ReportProgress =
    std::function<void(std::string_view what, std::size_t done, std::size_t all)>;

// All claims of the papers asked for, in their order.
std::vector<Finding> find_out(const Filter& filter, const EvaluateOptions& options,
                              const ReportProgress& progress = {});

struct Totals {
  int claims = 0;
  int of[kKinds][kVerdicts] = {};
  int executed = 0;                  // different runs made by live ranks
  int faults = 0;                    // of the engine: executed and simulated differ
  int unexecuted[kUnexecuted] = {};  // rows

  int of_kind(Kind kind) const;
  int checked() const;  // all that are not beyond the model
};
Totals totals_of(const std::vector<Finding>& findings);

// The totals, and a line for each claim that fails or on which the engine contradicts itself.
void print_brief(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter);
// The totals, and each claim with what was found.
void print_text(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter);
void print_markdown(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter);
// A page of its own, to print or hand out.
void print_html(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter);
nlohmann::ordered_json to_json(const std::vector<Finding>& findings, const Filter& filter);

// "lu-5.1-time executed holds", "lu-b1-time executed conditional: N is a power of two": a line of
// the golden list.
std::string golden_line(const Finding& finding);

// A finding in words, for every form of the report.

struct ReportRow {
  std::string verdict;   // "holds only if N is a power of two"
  std::string stated;    // what the paper says: its formula, its number, or both
  std::string relation;  // "rounds to", "<=", "=, within 2 %"
  std::string own;       // what was found at the paper's own parameters; empty: it gives none
  std::string shown;     // the case that shows the verdict best, where it is not that one
  std::string cases;     // "19 of 38 cases, 4 executed"
  std::vector<std::string> again;  // by other fidelities, "by flow: found ..."
  std::string needs;  // which of the three finds what is stated; empty: all that were asked
  std::string why;
};
ReportRow report_row(const Finding& finding);

// The counts, kind by kind; then of what live ranks have executed, and of the rows on a network of
// which they have executed nothing, with the reasons.
std::vector<std::string> summary_lines(const Totals& totals);

}  // namespace rankine::claims
