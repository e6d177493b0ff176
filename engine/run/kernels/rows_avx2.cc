// AVX2: registers of 32 bytes. Compiled with -mavx2 -mf16c.
#include "engine/run/kernels/reduce.h"

#if defined(__AVX2__) && defined(__F16C__)

#include <immintrin.h>

#include <cstddef>

namespace rankine {
namespace {
constexpr std::size_t kWidth = 32;
}  // namespace
}  // namespace rankine

#include "engine/run/kernels/vector.h"

namespace rankine {
namespace {

struct Lanes {
  RANKINE_INLINE static Vec<std::uint32_t> load_16(const char* from) {
    return as<Vec<std::uint32_t>>(_mm256_cvtepu16_epi32(load<__m128i>(from)));
  }
  RANKINE_INLINE static Vec<std::uint32_t> load_8(const char* from) {
    const Vec<std::uint64_t, 16> codes{load<std::uint64_t>(from), 0};
    return as<Vec<std::uint32_t>>(_mm256_cvtepu8_epi32(as<__m128i>(codes)));
  }
  RANKINE_INLINE static Vec<float> load_half(const char* from) {
    return as<Vec<float>>(_mm256_cvtph_ps(load<__m128i>(from)));
  }
  RANKINE_INLINE static void store_16(char* to, Vec<std::uint32_t> x) { store(to, low_16(x)); }
  RANKINE_INLINE static void store_8(char* to, Vec<std::uint32_t> x) {
    const __m128i words = low_16(x & 0xffU);
    store(to, as<Vec<std::uint64_t, 16>>(_mm_packus_epi16(words, words))[0]);
  }

 private:
  // For lanes below 2^16.
  RANKINE_INLINE static __m128i low_16(Vec<std::uint32_t> x) {
    const __m256i pairs = _mm256_packus_epi32(as<__m256i>(x), as<__m256i>(x));
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(pairs, 0b1000));
  }
};

}  // namespace
}  // namespace rankine

#include "engine/run/kernels/rows_body.h"

namespace rankine {

FindRows avx2_rows() { return kernel_of; }
FindConversions avx2_conversions() { return conversions_of; }

}  // namespace rankine

#else

namespace rankine {

FindRows avx2_rows() { return nullptr; }
FindConversions avx2_conversions() { return nullptr; }

}  // namespace rankine

#endif
