// Unique ids, and the ranks that meet under them: threads of the process that has made the id, or
// processes, as the id says.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/api/c/rankine.h"
#include "engine/api/c/settings.h"
#include "engine/api/communicator.h"
#include "engine/base/status.h"

namespace rankine {

// For threads of this process. Errors: no memory, as an exception.
rkUniqueId make_unique_id();
// For processes, under a name that nobody else has; or under that one. Errors: no random numbers to
// be had; what is no name, here or where it is met under.
Result<rkUniqueId> make_process_id();
Result<rkUniqueId> make_process_id(std::string_view name);

// A rank of the communicator that meets under that id, of threads made by whoever comes first.
// Errors: what is no id, one of another process or one used up; ranks or settings other than those
// of the first; and Communicator's.
struct Met {
  std::shared_ptr<Communicator> communicator;
  std::unique_ptr<Member> member;
};
Result<Met> meet(const rkUniqueId& id, int ranks, Rank rank, const Settings& settings);

// Of processes: those ranks, which this process plays, in their order. Likewise.
bool is_of_processes(const rkUniqueId& id) noexcept;
Result<std::vector<Met>> meet_processes(const rkUniqueId& id, int ranks, std::span<const Rank> here,
                                        const Settings& settings);

// Ranks of processes that a thread's group collects (group.h): those of one id are ranks of one
// communicator that this process plays, and come together when the group ends.

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
