// AVX2: registers of 32 bytes. Compiled with -mavx2 -mf16c.
#include "engine/run/kernels/rows.h"

#if defined(__AVX2__) && defined(__F16C__)

#include <cstddef>

namespace rankine {
namespace {
constexpr std::size_t kWidth = 32;
}  // namespace
}  // namespace rankine

#include "engine/run/kernels/rows_body.h"

namespace rankine {

FindRows avx2_rows() { return kernel_of; }

}  // namespace rankine

#else

namespace rankine {

FindRows avx2_rows() { return nullptr; }

}  // namespace rankine

#endif
