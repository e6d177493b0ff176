// Avx512 holds the operations that the AVX-512 instruction sets share: registers of 64 bytes, F,
// BW, DQ, VL and BMI2. Textual, see vector.h.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace rankine {
namespace {

constexpr std::size_t kWidth = 64;

}  // namespace
}  // namespace rankine

#include "engine/run/kernels/vector.h"

namespace rankine {
namespace {

// The zero-masking forms under a full mask equal the plain instructions. g++ 12 warns that the
// plain forms' undefined pass-through operand is an uninitialised variable.
struct Avx512 : Generic<Avx512> {
  // VRANGE orders -0 below +0; only NaN needs a second look.
  template <class T>
  RANKINE_INLINE static Vec<T> min_of(Vec<T> x, Vec<T> y) {
    return range<T, 0b0100>(x, y);
  }
  template <class T>
  RANKINE_INLINE static Vec<T> max_of(Vec<T> x, Vec<T> y) {
    return range<T, 0b0101>(x, y);
  }

  // Half a register of memory at a time: converting from memory and to memory needs no shuffles.
  using HalfRegister = Vec<std::uint8_t, 32>;
  using HalfTotal = Vec<float>;
  RANKINE_INLINE static HalfTotal widen_half(HalfRegister x) {
    return as<HalfTotal>(_mm512_maskz_cvtph_ps(0xffff, as<__m256i>(x)));
  }
  RANKINE_INLINE static HalfRegister narrow_half(HalfTotal x) {
    return as<HalfRegister>(
        _mm512_maskz_cvtps_ph(0xffff, as<__m512>(x), _MM_FROUND_TO_NEAREST_INT));
  }

  // Both 8-bit formats become binary16 by moving bits, except the NaN of e4m3, and binary16
  // becomes float by one instruction. .a and .b get the even elements, .c and .d the odd ones.
  template <int kFraction>
  RANKINE_INLINE static FourFloats widen_f8(Bytes x) {
    using Halves = Vec<std::uint16_t>;
    const auto halves = [](Halves codes) {
      if constexpr (kFraction == 2) return codes;
      const Halves magnitude = codes & std::uint16_t{0x7f00};
      const Halves moved = (codes & std::uint16_t{0x8000}) | (magnitude >> 1);
      return magnitude == std::uint16_t{0x7f00} ? splat(std::uint16_t{0x7e00}) : moved;
    };
    const auto floats = [](Vec<std::uint64_t, 32> part) {
      const auto wide = as<Vec<float>>(_mm512_maskz_cvtph_ps(0xffff, as<__m256i>(part)));
      return kFraction == 3 ? wide * 0x1p8F : wide;
    };
    const auto low = [&](Vec<std::uint64_t> all) {
      return floats(__builtin_shufflevector(all, all, 0, 1, 2, 3));
    };
    const auto high = [&](Vec<std::uint64_t> all) {
      return floats(__builtin_shufflevector(all, all, 4, 5, 6, 7));
    };
    const auto even = as<Vec<std::uint64_t>>(halves(as<Halves>(x) << 8));
    const auto odd = as<Vec<std::uint64_t>>(halves(as<Halves>(x) & std::uint16_t{0xff00}));
    return {low(even), high(even), low(odd), high(odd)};
  }
  template <int kFraction>
  RANKINE_INLINE static Bytes narrow_f8(FourFloats x) {
    const auto bytes = [](Vec<float> floats) {
      return _mm512_maskz_cvtepi32_epi16(0xffff, as<__m512i>(encode_float8<kFraction>(floats)));
    };
    const auto both = [&](Vec<float> low, Vec<float> high) {
      return _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(bytes(low)), bytes(high), 1);
    };
    return as<Bytes>(as<Vec<std::uint16_t>>(both(x.a, x.b)) |
                     (as<Vec<std::uint16_t>>(both(x.c, x.d)) << 8));
  }

  // Bytes beyond kBytes of the register are unspecified.
  template <std::size_t kBytes, class Register>
  RANKINE_INLINE static Register load_exact(const char* from) {
    if constexpr (kBytes == 32) {
      return as<Register>(_mm512_castsi256_si512(load<__m256i>(from)));
    } else if constexpr (sizeof(Register) == 64) {
      return as<Register>(_mm512_castsi128_si512(load_short<kBytes>(from)));
    } else {
      return as<Register>(_mm256_castsi128_si256(load_short<kBytes>(from)));
    }
  }
  template <std::size_t kBytes, class Register>
  RANKINE_INLINE static void store_exact(char* to, Register value) {
    if constexpr (kBytes == 4) {
      store<std::uint32_t>(to, as<Vec<std::uint32_t, sizeof(Register)>>(value)[0]);
    } else {
      const auto words = as<Vec<std::uint64_t, sizeof(Register)>>(value);
      if constexpr (kBytes == 8) {
        store<std::uint64_t>(to, words[0]);
      } else if constexpr (kBytes == 16) {
        store(to, __builtin_shufflevector(words, words, 0, 1));
      } else {
        store(to, __builtin_shufflevector(words, words, 0, 1, 2, 3));
      }
    }
  }
  template <class Register>
  RANKINE_INLINE static Register load_partial(const char* from, std::size_t bytes) {
    if constexpr (sizeof(Register) == 64) {
      return as<Register>(_mm512_maskz_loadu_epi8(first_bytes(bytes), from));
    } else {
      return as<Register>(
          _mm256_maskz_loadu_epi8(static_cast<__mmask32>(first_bytes(bytes)), from));
    }
  }
  template <class Register>
  RANKINE_INLINE static void store_partial(char* to, Register value, std::size_t bytes) {
    if constexpr (sizeof(Register) == 64) {
      _mm512_mask_storeu_epi8(to, first_bytes(bytes), as<__m512i>(value));
    } else {
      _mm256_mask_storeu_epi8(to, static_cast<__mmask32>(first_bytes(bytes)), as<__m256i>(value));
    }
  }

  RANKINE_INLINE static void stream(char* to, HalfRegister value) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), as<__m256i>(value));
  }
  RANKINE_INLINE static void stream(char* to, Bytes value) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), as<__m512i>(value));
  }
  RANKINE_INLINE static void fence() { _mm_sfence(); }

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

 private:
  template <std::size_t kBytes>
  RANKINE_INLINE static __m128i load_short(const char* from) {
    if constexpr (kBytes == 4) {
      return _mm_cvtsi32_si128(load<std::int32_t>(from));
    } else if constexpr (kBytes == 8) {
      return _mm_cvtsi64_si128(load<long long>(from));
    } else {
      return load<__m128i>(from);
    }
  }
  RANKINE_INLINE static __mmask64 first_bytes(std::size_t bytes) {
    return _bzhi_u64(~0ULL, static_cast<unsigned>(bytes));
  }
  template <class T, int kControl>
  RANKINE_INLINE static Vec<T> range(Vec<T> x, Vec<T> y) {
    const Vec<T> nan = splat(kNan<T>);
    if constexpr (sizeof(T) == 4) {
      const __m512 a = as<__m512>(x);
      const __m512 b = as<__m512>(y);
      const __mmask16 unordered = _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
      return as<Vec<T>>(
          _mm512_mask_mov_ps(_mm512_range_ps(a, b, kControl), unordered, as<__m512>(nan)));
    } else {
      const __m512d a = as<__m512d>(x);
      const __m512d b = as<__m512d>(y);
      const __mmask8 unordered = _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q);
      return as<Vec<T>>(
          _mm512_mask_mov_pd(_mm512_range_pd(a, b, kControl), unordered, as<__m512d>(nan)));
    }
  }
};

}  // namespace
}  // namespace rankine
