// AVX-512 without its bfloat16 instructions (Skylake to Ice Lake). Compiled with -mavx512f
// -mavx512bw -mavx512dq -mavx512vl -mbmi2.
#include "engine/run/kernels/reduce.h"

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__BMI2__)

#include "engine/run/kernels/avx512_target.h"

namespace rankine {
namespace {

using Target = Avx512;

}  // namespace
}  // namespace rankine

#include "engine/run/kernels/rows_body.h"

namespace rankine {

const KernelTable* avx512_kernels() {
  static constexpr KernelTable kTable = make_table();
  return &kTable;
}

}  // namespace rankine

#else

namespace rankine {

const KernelTable* avx512_kernels() { return nullptr; }

}  // namespace rankine

#endif
