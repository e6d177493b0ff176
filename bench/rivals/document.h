// This header converts the rows of a run of rivals into one JSON document, which report.py reads.
//
//   context   the measured call and its machine: collective, ranks (threads or processes), machine,
//             levels of the memory, contenders with family, version and reason if missing
//   rows      size, protocol, ping_pong_ns (before each round and after the last), steady, limit,
//             contenders (median_us of batches, calls_us: percentiles of single calls if fresh,
//             ...), ratios and their other side ("against")
#pragma once

#include <memory>
#include <optional>
#include <string>
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

}  // namespace rankine::rivals
