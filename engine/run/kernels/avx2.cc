// AVX2 and F16C: registers of 32 bytes. Compiled with -mavx2 -mf16c.
#include "engine/run/kernels/reduce.h"

#if defined(__AVX2__) && defined(__F16C__)

#include <immintrin.h>

namespace rankine {
namespace {
constexpr std::size_t kWidth = 32;
}  // namespace
}  // namespace rankine

#include "engine/run/kernels/vector.h"

namespace rankine {
namespace {

struct Target : Generic<Target> {
  using HalfRegister = Vec<std::uint8_t, 16>;
  using HalfTotal = Vec<float>;
  RANKINE_INLINE static HalfTotal widen_half(HalfRegister x) {
    return as<HalfTotal>(_mm256_cvtph_ps(as<__m128i>(x)));
  }
  RANKINE_INLINE static HalfRegister narrow_half(HalfTotal x) {
    return as<HalfRegister>(_mm256_cvtps_ph(as<__m256>(x), _MM_FROUND_TO_NEAREST_INT));
  }

  template <class Register>
  RANKINE_INLINE static Register load_partial(const char* from, std::size_t bytes) {
    if constexpr (sizeof(Register) == 16) {
      return as<Register>(load_up_to_16(from, bytes));
    } else {
      if (bytes <= 16) {
        return as<Register>(_mm256_castsi128_si256(as<__m128i>(load_up_to_16(from, bytes))));
      }
      return as<Register>(
          _mm256_set_m128i(as<__m128i>(load_up_to_16(from + 16, bytes - 16)), load<__m128i>(from)));
    }
  }
  template <class Register>
  RANKINE_INLINE static void store_partial(char* to, Register value, std::size_t bytes) {
    if constexpr (sizeof(Register) == 16) {
      store_up_to_16(to, as<Quarter>(value), bytes);
    } else {
      const __m128i low = _mm256_castsi256_si128(as<__m256i>(value));
      if (bytes <= 16) return store_up_to_16(to, as<Quarter>(low), bytes);
      store(to, low);
      const __m128i high = _mm256_extracti128_si256(as<__m256i>(value), 1);
      store_up_to_16(to + 16, as<Quarter>(high), bytes - 16);
    }
  }

  RANKINE_INLINE static void stream(char* to, HalfRegister value) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), as<__m128i>(value));
  }
  RANKINE_INLINE static void stream(char* to, Bytes value) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), as<__m256i>(value));
  }
  RANKINE_INLINE static void fence() { _mm_sfence(); }

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

const KernelTable* avx2_kernels() {
  static constexpr KernelTable kTable = make_table();
  return &kTable;
}

}  // namespace rankine

#else

namespace rankine {

const KernelTable* avx2_kernels() { return nullptr; }

}  // namespace rankine

#endif
