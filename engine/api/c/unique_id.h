// The unique ids of this process, and the ranks that meet under them.
#pragma once

#include <memory>

#include "engine/api/c/rankine.h"
#include "engine/api/c/settings.h"
#include "engine/api/communicator.h"

namespace rankine {

// Errors: no memory, as an exception.
rkUniqueId make_unique_id();

// A rank of the communicator that meets under that id, made by whoever comes first. Errors: what is
// no id, one of another process or one used up; ranks or settings other than those of the first;
// and Communicator's.
struct Met {
  std::shared_ptr<Communicator> communicator;
  std::unique_ptr<Member> member;
};
Result<Met> meet(const rkUniqueId& id, int ranks, Rank rank, const Settings& settings);

}  // namespace rankine
