// NEON, which every 64-bit Arm CPU has.
#include "engine/run/kernels/neon_target.h"

namespace rankine {
namespace {

using Target = Neon;

}  // namespace
}  // namespace rankine

#include "engine/run/kernels/rows_body.h"

namespace rankine {

const KernelTable* neon_kernels() {
  static constexpr KernelTable kTable = make_table();
  return &kTable;
}

}  // namespace rankine
