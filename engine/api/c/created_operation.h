// Operations that a rank has made by rkRedOpCreate() and rkRedOpCreatePreMulSum(): numbers behind
// those of rkRedOp_t, of one handle, which are not given twice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/api/c/rankine.h"
#include "engine/api/call.h"
#include "engine/run/kernels/types.h"
#include "engine/run/user_op.h"

namespace rankine {

// A user's function, or, where there is none, a factor.
struct CreatedOperation {
  rkRedFunction_t function = nullptr;
  void* context = nullptr;
  UserOp user_op{};       // calls the function; its context is this object
  std::uint64_t tag = 0;  // tells functions of one process apart where ranks are compared
  DataType type = DataType::raw;
  alignas(std::max_align_t) std::array<std::byte, 16> factor{};

  // Into a call, which refers to this object; `type` is its rkDataType_t. Throws a Refusal of a
  // type that is not the operation's.
  void describe(Call& call, int type) const;
};

}  // namespace rankine
