// This header converts the rows of a run of rivals into one JSON document, and documents into
// bench/RESULTS.md and rows.csv.
//
//   context   the measured call and its machine: collective, ranks (threads or processes), machine,
//             levels of the memory, contenders with family, version and reason if missing
//   rows      size, protocol, ping_pong_ns (before each round and after the last), steady, limit,
//             contenders (median_us, ...), ratios and their other side ("against")
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

// Compares the best contender of one side with the best of the other side.
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

// nullopt if one side did not run.
std::optional<Compared> compare(const Comparison& comparison, const Row& row,
                                const Contenders& contenders);

const char* family_name(Family family);

// The caller passes `machine`, with sizes of caches such as "1 KiB".
nlohmann::json context_json(const Plan& plan, const Setup& setup, const Contenders& contenders,
                            const std::vector<LevelRates>& levels, const nlohmann::json& machine);

nlohmann::json row_json(const Row& row, const Contenders& contenders);

struct Source {
  std::string stem;  // of its file; its picture is <stem>.png
  nlohmann::json document;
};

// Ratios of one kind over the sizes of one protocol. Unsteady rows do not count.
struct Ratios {
  std::vector<double> values;
  std::vector<std::size_t> sizes;  // the rows' sizes
  int unsteady = 0;                // rows left out
  double geometric_mean() const;
  std::size_t worst() const;  // index of the greatest; values are not empty
};
Ratios ratios_of(const nlohmann::json& document, std::string_view protocol, const char* title,
                 std::size_t least_bytes = 0);
// The ratios if Rankine took the limit's time in each row: rankine/x divided by rankine/limit
// (shared/x by shared/limit), over the rows that have both.
Ratios limit_ratios_of(const nlohmann::json& document, std::string_view protocol, const char* title,
                       std::size_t least_bytes = 0);

// A target: `reached` must be at most `allowed`; nullopt: not measured.
struct Verdict {
  std::string target;
  std::optional<double> reached;
  double allowed = 0;
  std::string remark;              // place of the worst size, number of unsteady rows
  std::optional<double> at_limit;  // for means: the ratio at the limit's time
  bool met() const { return reached && *reached <= allowed; }
  // The machine does not allow the target, according to the limit.
  bool beyond_limit() const { return at_limit && *at_limit > allowed; }
};
std::vector<Verdict> verdicts(const std::vector<Source>& sources);

// Returns the text of bench/RESULTS.md, from the documents of rivals and of bench/mailbox: the
// machines and methods, the targets, a summary. pictures: the folder of the pictures, of
// rows.csv and of notes.md in the text's links.
std::string results_markdown(const std::vector<Source>& sources, const std::string& pictures);

// Returns every row of the rivals' documents as CSV, which bench/plot.py draws.
std::string rows_csv(const std::vector<Source>& sources);

// "all_reduce in place, 2 ranks" or "all_reduce, 4 processes on 2 cores": a document's measured
// call.
std::string subject(const nlohmann::json& document);

// Rankine's name in a document: "rankine", or "rankine_processes".
std::string our_name(const nlohmann::json& document);

}  // namespace rankine::rivals
