// Any CPU: registers of 16 bytes, left to the compiler (SSE2 on x86-64).
#include <cstddef>

namespace rankine {
namespace {
constexpr std::size_t kWidth = 16;
}  // namespace
}  // namespace rankine

#include "engine/run/kernels/rows_body.h"

namespace rankine {

FindRows portable_rows() { return kernel_of; }

}  // namespace rankine
