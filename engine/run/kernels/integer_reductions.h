// These functions reduce integers and truth values one element at a time: a reference for tests of
// the kernels that follows reduce.h's contract and shares no code with it.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "engine/run/kernels/types.h"

namespace rankine {

// Sums and products wrap; avg accumulates like sum.
template <std::integral T>
constexpr T combined(ReduceOp op, T a, T b) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  switch (op) {
    case ReduceOp::prod:
      return static_cast<T>(x * y);
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    case ReduceOp::band:
      return static_cast<T>(x & y);
    case ReduceOp::bor:
      return static_cast<T>(x | y);
    case ReduceOp::bxor:
      return static_cast<T>(x ^ y);
    case ReduceOp::sum:
    case ReduceOp::avg:
    case ReduceOp::user:  // not an operation of the engine
      break;
  }
  return static_cast<T>(x + y);
}

// Truth values: sum is "or", prod is "and".
constexpr Bool combined(ReduceOp op, Bool a, Bool b) {
  if (op == ReduceOp::sum) op = ReduceOp::bor;
  if (op == ReduceOp::prod) op = ReduceOp::band;
  return Bool(combined(op, a.byte, b.byte) != 0);
}

// The average of `count` values from their (wrapped) total, truncated toward zero.
template <std::integral T>
constexpr T average(T total, int count) {
  using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  return static_cast<T>(static_cast<Wide>(total) / static_cast<Wide>(count));
}

}  // namespace rankine
