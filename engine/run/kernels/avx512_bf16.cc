// AVX-512 with bfloat16 instructions (Cooper Lake, Sapphire Rapids, Zen 4 and later): its own sums
// and products of bfloat16, the rest is AVX-512's. Compiled as avx512.cc, and with -mavx512bf16.
#include "engine/run/kernels/reduce.h"

#if defined(__AVX512BF16__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__) && defined(__BMI2__)

#include "engine/run/kernels/avx512_target.h"

namespace rankine {
namespace {

struct Target : Avx512 {
  // Within each 16 bytes: .a gets the lower four elements, .b the upper four.
  RANKINE_INLINE static Floats widen_bfloat(Bytes x) {
    const __m512i zero = _mm512_setzero_si512();
    return {as<Vec<float>>(_mm512_unpacklo_epi16(zero, as<__m512i>(x))),
            as<Vec<float>>(_mm512_unpackhi_epi16(zero, as<__m512i>(x)))};
  }
  // The conversion flushes subnormals for any MXCSR; they are rare enough for a branch. Against
  // Generic's integer rounding: 3.2 cycles per 64 bytes of sums instead of 4.5.
  RANKINE_INLINE static Bytes narrow_bfloat(Floats x) {
    const __m512 a = as<__m512>(x.a);
    const __m512 b = as<__m512>(x.b);
    constexpr int kSubnormal = 0x20;
    if (!_kortestz_mask16_u8(_mm512_fpclass_ps_mask(a, kSubnormal),
                             _mm512_fpclass_ps_mask(b, kSubnormal))) [[unlikely]] {
      const Vec<std::uint32_t> low = round_bfloat(x.a) >> 16;
      const Vec<std::uint32_t> high = round_bfloat(x.b) >> 16;
      return as<Bytes>(_mm512_packus_epi32(as<__m512i>(low), as<__m512i>(high)));
    }
    const __m512i halves = as<__m512i>(_mm512_cvtne2ps_pbh(b, a));  // all of a's, all of b's
    const __m512i order = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
    return as<Bytes>(_mm512_maskz_permutexvar_epi64(0xff, order, halves));
  }
};

}  // namespace
}  // namespace rankine

#include "engine/run/kernels/reduce_body.h"

namespace rankine {

const KernelTable* avx512_bf16_kernels() {
  static const KernelTable table = with_own_bfloats(*avx512_kernels());
  return &table;
}

}  // namespace rankine

#else

namespace rankine {

const KernelTable* avx512_bf16_kernels() { return nullptr; }

}  // namespace rankine

#endif
