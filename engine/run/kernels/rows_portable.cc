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

struct Lanes {
  RANKINE_INLINE static Vec<std::uint32_t> load_16(const char* from) {
    return __builtin_convertvector(load<Vec<std::uint16_t, kWidth / 2>>(from), Vec<std::uint32_t>);
  }
  RANKINE_INLINE static Vec<std::uint32_t> load_8(const char* from) {
    return __builtin_convertvector(load<Vec<std::uint8_t, kWidth / 4>>(from), Vec<std::uint32_t>);
  }
  RANKINE_INLINE static Vec<float> load_half(const char* from) {
    return decode_half(load_16(from));
  }
  RANKINE_INLINE static void store_16(char* to, Vec<std::uint32_t> x) {
    store(to, __builtin_convertvector(x, Vec<std::uint16_t, kWidth / 2>));
  }
  RANKINE_INLINE static void store_8(char* to, Vec<std::uint32_t> x) {
    store(to, __builtin_convertvector(x, Vec<std::uint8_t, kWidth / 4>));
  }
};

}  // namespace
}  // namespace rankine

#include "engine/run/kernels/rows_body.h"

namespace rankine {

FindRows portable_rows() { return kernel_of; }
FindConversions portable_conversions() { return conversions_of; }

}  // namespace rankine
