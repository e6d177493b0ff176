// Registers16 holds the operations that instruction sets with registers of 16 bytes share. Textual,
// see vector.h.
#pragma once

#include <cstddef>

namespace rankine {
namespace {
constexpr std::size_t kWidth = 16;
}  // namespace
}  // namespace rankine

#include "engine/run/kernels/vector.h"

namespace rankine {
namespace {

struct Registers16 : Generic<Registers16> {
  template <class Register>
  RANKINE_INLINE static Register load_partial(const char* from, std::size_t bytes) {
    return as<Register>(load_up_to_16(from, bytes));
  }
  template <class Register>
  RANKINE_INLINE static void store_partial(char* to, Register value, std::size_t bytes) {
    store_up_to_16(to, as<Quarter>(value), bytes);
  }
  // Standard C++ has no store around the caches, and Arm's cores stop to fetch lines by themselves
  // when a stream of stores fills whole lines.
  RANKINE_INLINE static void stream(char* to, Bytes value) { store(to, value); }
  RANKINE_INLINE static void fence() {}
};

}  // namespace
}  // namespace rankine
