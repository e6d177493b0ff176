// Calls between rkGroupStart() and rkGroupEnd() of one thread: collected, then all started, then
// waited for together, so that one thread can play several ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/api/c/created_operation.h"
#include "engine/api/c/rank_handle.h"
#include "engine/api/c/rankine.h"

namespace rankine {

// A call of a group: what it names is its own, but for the buffers and the options, which are the
// handle's.
struct CollectedCall {
  const char* function;
  rkComm_t comm;
  Call call{};
  std::vector<std::size_t> counts{};
  std::vector<std::size_t> in_displacements{}, out_displacements{};  // where the call has some
  std::shared_ptr<const CreatedOperation> created{};                 // that the call refers to
  std::optional<Message> message{};                                  // in place of the call
};

// Whether this thread is between the two.
bool in_group() noexcept;
// For rkGroupEnd(). Errors: no memory, as an exception.
void collect(CollectedCall call);
// A call of the group was refused: rkGroupEnd() starts none and says why.
void refuse_group(rkResult_t result) noexcept;

}  // namespace rankine
