// Groups of ranks some of which are other processes: those of a group meet anew, while nobody else
// waits for them.
#include <string>

#include "engine/api/communicator_state.h"
#include "engine/api/split.h"
#include "engine/base/deadline.h"

namespace rankine {

Result<std::shared_ptr<CommunicatorShared>> CommunicatorShared::meet_group(
    const std::shared_ptr<CommunicatorShared>& self, GroupKey key, const std::vector<Rank>& members,
    const SplitOptions& options) {
  const auto may_wait = [&]() -> Status {
    if (crossbar.aborted()) return crossbar.reason();
    for (const Rank r : members) {
      if (!crossbar.has_left(r) && !crossbar.is_lost(r)) continue;
      return make_error(Code::rank_lost, [&] {
        return "rank " + std::to_string(r) +
               " is still needed in the group that it was split into: " + crossbar.state_of(r).text;
      });
    }
    return {};
  };
  auto met = ProcessRanks::group(*processes, members,
                                 std::to_string(key.split) + "." + std::to_string(key.color),
                                 posts_of_processes(static_cast<int>(members.size()), costs),
                                 deadline_after(now_ns(), crossbar.timeout_ns()), may_wait);
  if (!met.ok()) return met.status();
  auto made = make_group(self, members, options, *met);
  if (!made.ok()) return (*met)->fail(made.status());
  if (Status status = (*met)->begin(); !status.ok()) return status;
  return made;
}

}  // namespace rankine
