// bench/RESULTS.md from the documents of rivals (document.h) and of bench/mailbox: what was
// measured where and how, a table per document and protocol, and a line per target.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace rankine::rivals {

struct Source {
  std::string stem;  // of its file; its picture is <stem>.png
  nlohmann::json document;
};

// Ratios of one kind over the sizes of one protocol. Unsteady rows do not count.
struct Ratios {
  std::vector<double> values;
  std::vector<std::size_t> sizes;  // theirs
  int unsteady = 0;                // rows left out
  double geometric_mean() const;
  std::size_t worst() const;  // index of the greatest; values are not empty
};
Ratios ratios_of(const nlohmann::json& document, std::string_view protocol, const char* title,
                 std::size_t least_bytes = 0);
// What these ratios would be if Rankine took the limit's time in each row: rankine/x by
// rankine/limit (shared/x by shared/limit), over the rows that have both.
Ratios limit_ratios_of(const nlohmann::json& document, std::string_view protocol, const char* title,
                       std::size_t least_bytes = 0);

// "Reached" is a number to be at most `allowed`; none: not measured.
struct Verdict {
  std::string target;
  std::optional<double> reached;
  double allowed = 0;
  std::string remark;              // where, how many rows did not count
  std::optional<double> at_limit;  // of means: the limit's in Rankine's place
  bool met() const { return reached && *reached <= allowed; }
  // The machine does not allow it, as far as the limit tells.
  bool beyond_limit() const { return at_limit && *at_limit > allowed; }
};
std::vector<Verdict> verdicts(const std::vector<Source>& sources);

// pictures: the folder of the pictures, as the links in the text have it. notes: Markdown that is
// put below the verdicts.
std::string results_markdown(const std::vector<Source>& sources, const std::string& pictures,
                             const std::string& notes);

// "all_reduce in place, 2 ranks" or "all_reduce, 4 processes on 2 cores": the measured call of a document.
std::string subject(const nlohmann::json& document);

// Rankine's name in a document: "rankine", or "rankine_processes".
std::string our_name(const nlohmann::json& document);

}  // namespace rankine::rivals
