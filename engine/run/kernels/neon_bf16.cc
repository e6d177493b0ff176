// NEON with bfloat16 instructions (Neoverse N2, V1 and later): its own sums and products of
// bfloat16, the rest is NEON's. BFCVT follows the modes of other arithmetic and so rounds as
// types.h does, subnormals included. BFDOT and BFMMLA flush subnormals and round to odd, so they do
// not add here.
#include "engine/run/kernels/neon_target.h"

namespace rankine {
namespace {

struct Target : Neon {
  // .a has the lower four elements, .b the upper four.
  RANKINE_INLINE static Floats widen_bfloat(Bytes x) {
    const auto bfloats = as<uint16x8_t>(x);
    return {as<Vec<float>>(vshll_n_u16(vget_low_u16(bfloats), 16)),
            as<Vec<float>>(vshll_high_n_u16(bfloats, 16))};
  }
  RANKINE_INLINE static Bytes narrow_bfloat(Floats x) {
    return as<Bytes>(
        vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(as<float32x4_t>(x.a)), as<float32x4_t>(x.b)));
  }
};

}  // namespace
}  // namespace rankine

#include "engine/run/kernels/reduce_body.h"

namespace rankine {

const KernelTable* neon_bf16_kernels() {
  static const KernelTable table = with_own_bfloats(*neon_kernels());
  return &table;
}

}  // namespace rankine
