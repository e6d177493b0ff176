// Any CPU: registers of 16 bytes, left to the compiler (SSE2 on x86-64).
#include <cstddef>

namespace rankine {
namespace {
constexpr std::size_t kWidth = 16;
}  // namespace
}  // namespace rankine

#include "engine/run/kernels/vector.h"

namespace rankine {
namespace {

struct Target : Generic<Target> {
  template <class Register>
  RANKINE_INLINE static Register load_partial(const char* from, std::size_t bytes) {
    return as<Register>(load_up_to_16(from, bytes));
  }
  template <class Register>
  RANKINE_INLINE static void store_partial(char* to, Register value, std::size_t bytes) {
    store_up_to_16(to, as<Quarter>(value), bytes);
  }
  // Standard C++ has no store around the caches.
  RANKINE_INLINE static void stream(char* to, Bytes value) { store(to, value); }
  RANKINE_INLINE static void fence() {}
};

}  // namespace
}  // namespace rankine

#include "engine/run/kernels/reduce_body.h"

namespace rankine {

const KernelTable* portable_kernels() {
  static constexpr KernelTable kTable = make_table();
  return &kTable;
}

}  // namespace rankine
