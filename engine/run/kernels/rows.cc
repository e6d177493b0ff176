#include "engine/run/kernels/reduce.h"

#include <algorithm>

namespace rankine {

RowKernel find_rows(DataType type, DataType out, Isa isa) {
  const Isa runs = std::min(isa, hardware_isa());
  if (runs >= Isa::avx512) return avx512_rows()(type, out);
  if (runs == Isa::avx2) return avx2_rows()(type, out);
  return portable_rows()(type, out);
}

Conversions find_conversions(DataType type, Isa isa) {
  const Isa runs = std::min(isa, hardware_isa());
  if (runs >= Isa::avx512) return avx512_conversions()(type);
  if (runs == Isa::avx2) return avx2_conversions()(type);
  return portable_conversions()(type);
}

}  // namespace rankine
