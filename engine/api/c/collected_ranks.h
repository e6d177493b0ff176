// Ranks of processes that a thread's group collects (group.h): those of one id are ranks of one
// communicator that this process plays, and come together when the group ends.
#pragma once

#include <vector>

#include "engine/api/c/rankine.h"
#include "engine/api/c/settings.h"
#include "engine/base/status.h"

namespace rankine {

struct CollectedRank {
  const char* function;
  rkComm_t* comm;  // where the handle goes
  int ranks;
  rkUniqueId id;
  Rank rank;
  Settings settings;
};

// Communicators in the order in which their ids come first, so all processes begin with the same.
// Errors: a number of ranks or settings that differ under one id, and Communicator's; the first
// ends it, and names its function. What has been made by then is there.
Status meet_collected(const std::vector<CollectedRank>& all);

}  // namespace rankine
