#include "engine/api/c/collected_ranks.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "engine/api/c/rank_handle.h"
#include "engine/api/c/unique_id.h"

namespace rankine {
namespace {

bool same(const rkUniqueId& a, const rkUniqueId& b) {
  return std::memcmp(&a, &b, sizeof(rkUniqueId)) == 0;
}

// As errors of a group's calls are (call_group.h): a code, whose text begins with the function.
Status named(const CollectedRank& one, const Status& status) {
  return {status.code(), std::string(one.function) + " of rank " + std::to_string(one.rank) + ": " +
                             status.text()};
}

// What differs among ranks that meet under one id; empty: nothing.
std::string difference(const CollectedRank& first, const CollectedRank& other) {
  if (other.ranks != first.ranks) {
    return "ranks is " + std::to_string(other.ranks) + "; the first rank of this id gave " +
           std::to_string(first.ranks);
  }
  const std::string_view name = rankine::difference(first.settings, other.settings);
  if (name.empty()) return {};
  return "config." + std::string(name) + " is not what the first rank of this id gave";
}

}  // namespace

Status meet_collected(const std::vector<CollectedRank>& all) {
  for (const CollectedRank& one : all) {
    std::vector<const CollectedRank*> here;
    for (const CollectedRank& other : all) {
      if (same(one.id, other.id)) here.push_back(&other);
    }
    if (here.front() != &one) continue;
    std::vector<Rank> ranks;
    for (const CollectedRank* other : here) {
      const std::string wrong = difference(one, *other);
      if (!wrong.empty()) return named(*other, invalid_argument(wrong));
      ranks.push_back(other->rank);
    }
    auto met = meet_processes(one.id, one.ranks, ranks, one.settings);
    if (!met.ok()) return named(one, met.status());
    for (std::size_t i = 0; i < here.size(); ++i) {
      *here[i]->comm = add_rank(std::move((*met)[i].member), std::move((*met)[i].communicator));
    }
  }
  return {};
}

}  // namespace rankine
