// What a run of rivals leaves behind: one JSON document, from which tables, plots and reports are
// made.
//
//   context   what was measured and where: collective, ranks and whether they are processes,
//   machine, levels of the memory,
//             contenders with family, version and why they are missing
//   rows      size, protocol, ping_pong_ns (before each round and after the last), steady, limit,
//             contenders (median_us, ...), ratios and against whom they are ("against")
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/rivals/limits.h"
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

}  // namespace rankine::rivals
