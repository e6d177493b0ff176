// Findings on the papers' claims, their totals, and the report as text, Markdown, HTML and JSON.
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
  std::optional<Verdict> verdict{};  // shows only these rows; the counts include all evaluated rows
  std::optional<Kind> kind{};        // shows only these rows, as above
  std::string id{};                  // only claims with an id that begins with this text, or at
                                     // the place of this name
  std::function<bool(std::size_t number)> keeps{};  // only these claims, counted from 0; empty: all

  bool shows(const Finding& finding) const {
    return (!verdict || finding.verdict == *verdict) && (!kind || finding.claim->kind == *kind);
  }
};

// Called with "claims" (judged) or "runs" (made by live ranks), the finished number and the total;
// from any thread, one call at a time.
using ReportProgress =
    std::function<void(std::string_view what, std::size_t done, std::size_t all)>;

// Findings of all claims that the filter selects by paper and id, in the order of the papers.
std::vector<Finding> find_out(const Filter& filter, const EvaluateOptions& options,
                              const ReportProgress& progress = {});

struct Totals {
  int claims = 0;
  int of[kKinds][kVerdicts] = {};
  int executed = 0;                  // different runs made by live ranks
  int faults = 0;                    // mistakes of the engine: live ranks and simulation differ
  int unexecuted[kUnexecuted] = {};  // rows

  int of_kind(Kind kind) const;
  int checked() const;  // all claims within the model
};
Totals totals_of(const std::vector<Finding>& findings);

// The first page of a report: headings with lines under them. Totals; the verdicts paper by paper;
// the meaning of the columns; the findings that the authors of each paper need most.
using Page = std::vector<std::pair<std::string, std::vector<std::string>>>;
Page first_page(const std::vector<Finding>& findings);

// The totals, and a line for each claim that fails or has a fault of the engine.
void print_brief(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter);
// The first page, or the totals if the filter shows a part; and each claim with its finding.
void print_text(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter);
void print_markdown(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter);
// A complete page to print or hand out.
void print_html(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter);
nlohmann::ordered_json to_json(const std::vector<Finding>& findings, const Filter& filter);

// A line of the golden list: "lu-5.1-time executed holds", "lu-b5-time executed holds if N is a
// power of two".
std::string golden_line(const Finding& finding);

// A finding in words, for all forms of the report.

struct ReportRow {
  std::string verdict;   // "holds if N is a power of two"
  std::string stated;    // the paper's formula, number, or both
  std::string relation;  // "rounds to", "<=", "=, within 2 %"
  std::string own;       // the case at the paper's own parameters; empty: the paper gives none
  std::string shown;     // the case that shows the verdict best; empty: it is `own`
  std::string cases;     // "19 of 38 cases, 4 executed"
  std::vector<std::string> again;  // by other ways, "by flows: found ..."
  std::string why;
};
ReportRow report_row(const Finding& finding);

// The counts kind by kind; then the counts of runs by live ranks, and of the network rows without
// any such run, with the reasons.
std::vector<std::string> summary_lines(const Totals& totals);

}  // namespace rankine::claims
