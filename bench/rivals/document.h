// What a run of rivals leaves behind: one JSON document, from which tables, plots and reports are
// made.
//
//   context   what was measured and where: collective, ranks and whether they are processes,
//   machine, levels of the memory,
//             contenders with family, version and why they are missing
//   rows      size, protocol, ping_pong_ns (before each round and after the last), steady, limit,
//             contenders (median_us, ...), ratios and against whom they are ("against")
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/rivals/protocol.h"
#include "bench/rivals/rival.h"
#include "nlohmann/json.hpp"

namespace rankine::rivals {

using Contenders = std::vector<std::unique_ptr<Contender>>;

// Of the best contender of the one side and the best of the other.
struct Comparison {
  const char* title;
  unsigned ours;    // families
  unsigned theirs;  // families; none: the limit
};
inline constexpr Comparison kComparisons[] = {
    {"rankine/mpi", kRankine, kMpi},         {"rankine/library", kRankine, kMpi + kServer},
    {"rankine/expert", kRankine, kExpert},   {"rankine/limit", kRankine, 0},
    {"expert/mpi", kExpert, kMpi},           {"rankine/exchange", kRankine, kExchange},
    {"rankine/chain", kRankine, kReference}, {"shared/library", kRegistered, kMpi + kServer},
    {"shared/limit", kRegistered, 0},
};

struct Compared {
  double ratio = 0;     // median over the rounds of the ratio within a round
  std::string against;  // name of the contender, or "limit"
};

// Nothing where one side did not run.
std::optional<Compared> compare(const Comparison& comparison, const Row& row,
                                const Contenders& contenders);

const char* family_name(Family family);

// "1 KiB" of caches and the like come from `machine`, which the caller fills in.
nlohmann::json context_json(const Plan& plan, const Setup& setup, const Contenders& contenders,
                            const std::vector<LevelRates>& levels, const nlohmann::json& machine);

nlohmann::json row_json(const Row& row, const Contenders& contenders);

// bench/RESULTS.md from the documents of rivals (document.h) and of bench/mailbox: what was
// measured where and how, a table per document and protocol, and a line per target.

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
