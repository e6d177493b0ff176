// AVX-512 (F, BW, DQ, VL): registers of 64 bytes.
#include "engine/run/kernels/rows.h"

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__BMI2__)

#include <cstddef>

namespace rankine {
namespace {
constexpr std::size_t kWidth = 64;
}  // namespace
}  // namespace rankine

#include "engine/run/kernels/rows_body.h"

namespace rankine {

FindRows avx512_rows() { return kernel_of; }

}  // namespace rankine

#else

namespace rankine {

FindRows avx512_rows() { return nullptr; }

}  // namespace rankine

#endif
