// Unique ids, and the meeting of their ranks: an id's ranks are threads of the process that made
// it, or processes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/c/rankine.h"
#include "engine/api/c/settings.h"
#include "engine/api/communicator.h"
#include "engine/base/status.h"

namespace rankine {

// Makes an id for threads of this process. Throws std::bad_alloc.
rkUniqueId make_unique_id();
// Make an id for processes, with a unique name or with the given name. Errors: no random numbers;
// an invalid name (checked here and when ranks meet).
Result<rkUniqueId> make_process_id();
Result<rkUniqueId> make_process_id(std::string_view name);

// Makes a rank of the communicator that meets under an id. Among threads the first rank makes the
// communicator. Errors: an invalid id, an id of another process, or a used one; ranks or settings
// that differ from the first rank's; Communicator's errors.
struct Met {
  std::shared_ptr<Communicator> communicator;
  std::unique_ptr<Member> member;
};
Result<Met> meet(const rkUniqueId& id, int ranks, Rank rank, const Settings& settings);

// For processes: makes the ranks `here`, in this order, which this process plays. Errors as meet().
bool is_of_processes(const rkUniqueId& id) noexcept;
std::string name_of_processes(const rkUniqueId& id);
Result<std::vector<Met>> meet_processes(const rkUniqueId& id, int ranks, std::span<const Rank> here,
                                        const Settings& settings);

// Ranks among processes that a thread's group collects (group.h). The ranks of one id belong to one
// communicator and are made together when the group ends.

struct CollectedRank {
  const char* function;
  rkComm_t* comm;  // receives the handle
  int ranks;
  rkUniqueId id;
  Rank rank;
  Settings settings;
};

// Makes the communicators in the order of the first use of their ids, so all processes begin with
// the same one. Errors: numbers of ranks or settings that differ under one id; Communicator's
// errors. Stops at the first error, which names its function; communicators made before it stay.
Status meet_collected(const std::vector<CollectedRank>& all);

}  // namespace rankine
