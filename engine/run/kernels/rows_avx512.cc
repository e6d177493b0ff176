// AVX-512 (F, BW, DQ, VL): registers of 64 bytes.
#include "engine/run/kernels/reduce.h"

#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__BMI2__)

#include <immintrin.h>

#include <cstddef>

namespace rankine {
namespace {
constexpr std::size_t kWidth = 64;
}  // namespace
}  // namespace rankine

#include "engine/run/kernels/vector.h"

namespace rankine {
namespace {

// The zero-masking forms under a full mask: see avx512_target.h.
struct Lanes {
  RANKINE_INLINE static Vec<std::uint32_t> load_16(const char* from) {
    return as<Vec<std::uint32_t>>(_mm512_maskz_cvtepu16_epi32(0xffff, load<__m256i>(from)));
  }
  RANKINE_INLINE static Vec<std::uint32_t> load_8(const char* from) {
    return as<Vec<std::uint32_t>>(_mm512_maskz_cvtepu8_epi32(0xffff, load<__m128i>(from)));
  }
  RANKINE_INLINE static Vec<float> load_half(const char* from) {
    return as<Vec<float>>(_mm512_maskz_cvtph_ps(0xffff, load<__m256i>(from)));
  }
  RANKINE_INLINE static void store_16(char* to, Vec<std::uint32_t> x) {
    store(to, _mm512_maskz_cvtepi32_epi16(0xffff, as<__m512i>(x)));
  }
  RANKINE_INLINE static void store_8(char* to, Vec<std::uint32_t> x) {
    store(to, _mm512_maskz_cvtepi32_epi8(0xffff, as<__m512i>(x)));
  }
};

}  // namespace
}  // namespace rankine

#include "engine/run/kernels/rows_body.h"

namespace rankine {

FindRows avx512_rows() { return kernel_of; }
FindConversions avx512_conversions() { return conversions_of; }

}  // namespace rankine

#else

namespace rankine {

FindRows avx512_rows() { return nullptr; }
FindConversions avx512_conversions() { return nullptr; }

}  // namespace rankine

#endif
