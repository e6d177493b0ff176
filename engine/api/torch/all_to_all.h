// An all-to-all in which each rank knows only what it sends and receives itself, as PyTorch's do;
// the engine's ranks know all counts before they begin.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/api/call.h"
#include "engine/api/member.h"

namespace rankine::torch_backend {

// Elements that this rank sends to each one, and receives from each one, block after block.
struct OwnCounts {
  std::vector<std::size_t> sent, received;
};

// `call` has no counts. Ranks first tell each other theirs. Throws an Error; what two ranks
// disagree on is invalid_argument on all of them, names both, and the communicator goes on.
void all_to_all(Member& me, Call call, const OwnCounts& own);

}  // namespace rankine::torch_backend
