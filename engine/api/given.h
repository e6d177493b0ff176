// What of a call is not its plan's, and what all calls of its kind and on these buffers begin with:
// so one that is started again and again works it out once. Made by MemberState::given().
#pragma once

#include <cstddef>

#include "engine/run/epilogue.h"
#include "engine/run/fingerprint.h"
#include "engine/run/rank_buffers.h"
#include "engine/run/user_op.h"

namespace rankine {

struct Given {
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  const UserOp* user_op = nullptr;
  const Epilogue* epilogue = nullptr;
  Fingerprint print;  // of the plan and the tag; each call's number joins it
  Marks marks;
};

}  // namespace rankine
