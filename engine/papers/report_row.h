// A finding in words, for every form of the report.
#pragma once

#include <string>
#include <vector>

#include "engine/papers/report.h"

namespace rankine::claims {

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
