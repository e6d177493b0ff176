// Any CPU: registers of 16 bytes, left to the compiler (SSE2 on x86-64, NEON on Arm).
#include "engine/run/kernels/registers_16.h"

namespace rankine {
namespace {

using Target = Registers16;

}  // namespace
}  // namespace rankine

#include "engine/run/kernels/rows_body.h"

namespace rankine {

const KernelTable* portable_kernels() {
  static constexpr KernelTable kTable = make_table();
  return &kTable;
}

}  // namespace rankine
