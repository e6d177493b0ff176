// Neon holds the operations for which every 64-bit Arm CPU has an instruction that the compiler
// does not find in the generic ones. Textual, see vector.h.
#pragma once

#include <arm_neon.h>

#include "engine/run/kernels/registers_16.h"

namespace rankine {
namespace {

struct Neon : Registers16 {
  // FMIN and FMAX order -0 below +0, and keep the bits of a NaN.
  template <class T>
  RANKINE_INLINE static Vec<T> min_of(Vec<T> x, Vec<T> y) {
    if constexpr (sizeof(T) == 4) {
      return without_payload<T>(as<Vec<T>>(vminq_f32(as<float32x4_t>(x), as<float32x4_t>(y))));
    } else {
      return without_payload<T>(as<Vec<T>>(vminq_f64(as<float64x2_t>(x), as<float64x2_t>(y))));
    }
  }
  template <class T>
  RANKINE_INLINE static Vec<T> max_of(Vec<T> x, Vec<T> y) {
    if constexpr (sizeof(T) == 4) {
      return without_payload<T>(as<Vec<T>>(vmaxq_f32(as<float32x4_t>(x), as<float32x4_t>(y))));
    } else {
      return without_payload<T>(as<Vec<T>>(vmaxq_f64(as<float64x2_t>(x), as<float64x2_t>(y))));
    }
  }

  // .a has the lower four elements, .b the upper four.
  RANKINE_INLINE static Floats widen_half(Bytes x) {
    const auto halves = as<float16x8_t>(x);
    return {as<Vec<float>>(vcvt_f32_f16(vget_low_f16(halves))),
            as<Vec<float>>(vcvt_high_f32_f16(halves))};
  }
  RANKINE_INLINE static Bytes narrow_half(Floats x) {
    return as<Bytes>(vcvt_high_f16_f32(vcvt_f16_f32(as<float32x4_t>(x.a)), as<float32x4_t>(x.b)));
  }
  RANKINE_INLINE static Vec<float> load_half(const char* from) {
    return as<Vec<float>>(vcvt_f32_f16(load<float16x4_t>(from)));
  }

 private:
  template <class T>
  RANKINE_INLINE static Vec<T> without_payload(Vec<T> x) {
    return x == x ? x : splat(kNan<T>);
  }
};

}  // namespace
}  // namespace rankine
