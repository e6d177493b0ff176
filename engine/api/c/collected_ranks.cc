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
      Status status = check_as_first(other->ranks, other->settings, one.ranks, one.settings);
      if (!status.ok()) return named(*other, status);
      ranks.push_back(other->rank);
    }
    auto met = meet_processes(one.id, one.ranks, ranks, one.settings);
    if (!met.ok()) return named(one, met.status());
    for (std::size_t i = 0; i < here.size(); ++i) {
      *here[i]->comm =
          add_rank(std::move((*met)[i].member), true, std::move((*met)[i].communicator));
    }
  }
  return {};
}

}  // namespace rankine
