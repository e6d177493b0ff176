#include "engine/api/c/rank_handle.h"

#include <utility>

namespace rankine {

rkComm_t add_rank(std::unique_ptr<Member> member, bool among_processes,
                  std::shared_ptr<Communicator> communicator) {
  auto handle = std::make_unique<RankHandle>();
  if (communicator == nullptr) {
    communicator = {std::shared_ptr<void>(), &member->communicator()};
  }
  handle->communicator = std::move(communicator);
  handle->member = std::move(member);
  handle->among_processes = among_processes;
  return HandleTable<RankHandle>::all().add(std::move(handle));
}

}  // namespace rankine
