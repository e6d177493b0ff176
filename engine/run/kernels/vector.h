// Vector types of kWidth bytes, as GCC and Clang vector types, and the generic register operations.
// Textual: a source file compiled for one instruction set defines kWidth, includes this, defines
// Target, then includes reduce_body.h.
//
// Everything here and in its includes has internal linkage, and no code calls an inline function of
// the standard library: a shared inline function compiled here with AVX-512 would be one definition
// of many, and the linker might keep it for a CPU that cannot run it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

#define RANKINE_INLINE [[gnu::always_inline]] inline

namespace rankine {
namespace {

template <class T, std::size_t kBytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(kBytes)));
};
template <class T, std::size_t kBytes = kWidth>
using Vec = typename VectorOf<T, kBytes>::type;
using Bytes = Vec<std::uint8_t>;

// Two registers of floats: a widened register of 16-bit floats. The widening and narrowing
// functions agree on the place of each element.
struct Floats {
  Vec<float> a;
  Vec<float> b;
};

// Four registers of floats: a widened register of 8-bit floats.
struct FourFloats {
  Vec<float> a, b, c, d;
};

template <class To, class From>
RANKINE_INLINE To as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

template <class V = Bytes>
RANKINE_INLINE V load(const char* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof(V));
  return value;
}

template <class V>
RANKINE_INLINE void store(char* to, V value) {
  __builtin_memcpy(to, &value, sizeof(V));
}

template <class T>
RANKINE_INLINE Vec<T> splat(T value) {
  Vec<T> all{};
  for (std::size_t i = 0; i < sizeof(all) / sizeof(T); ++i) all[i] = value;
  return all;
}

template <class T>
inline constexpr T kNan = T{};
template <>
inline constexpr float kNan<float> = __builtin_nanf("");
template <>
inline constexpr double kNan<double> = __builtin_nan("");

// binary16 in the low half of each lane -> float. The multiplication rebiases the exponent and
// normalises subnormals.
RANKINE_INLINE Vec<float> decode_half(Vec<std::uint32_t> code) {
  const Vec<std::uint32_t> magnitude = (code & 0x7fffU) << 13;
  const Vec<std::uint32_t> rebiased = as<Vec<std::uint32_t>>(as<Vec<float>>(magnitude) * 0x1p112F);
  const Vec<std::uint32_t> special = magnitude >= 0x0f800000U ? rebiased | 0x7f800000U : rebiased;
  return as<Vec<float>>(special | ((code & 0x8000U) << 16));
}

// float -> binary16 in the low half of each lane. Adding 0.5 leaves the rounded subnormal in the
// low bits.
RANKINE_INLINE Vec<std::uint32_t> encode_half(Vec<float> value) {
  using Words = Vec<std::uint32_t>;
  const Words bits = as<Words>(value);
  const Words magnitude = bits & 0x7fffffffU;
  const Words normal = (magnitude + 0xc8000fffU + ((magnitude >> 13) & 1U)) >> 13;
  const Words subnormal = as<Words>(as<Vec<float>>(magnitude) + 0.5F) - 0x3f000000U;
  const Words nan = ((magnitude >> 13) & 0x3ffU) | 0x7e00U;
  Words code = magnitude < 0x38800000U ? subnormal : normal;
  code = magnitude >= 0x47800000U ? Words{} + 0x7c00U : code;
  code = magnitude > 0x7f800000U ? nan : code;
  return code | ((bits >> 16) & 0x8000U);
}

// Rounds to the nearest upper half, ties to even. No test for NaN: a NaN computed from bfloat16 has
// a payload that ends in 16 zeros, and rounding cannot carry out of those.
RANKINE_INLINE Vec<std::uint32_t> round_bfloat(Vec<float> value) {
  const Vec<std::uint32_t> bits = as<Vec<std::uint32_t>>(value);
  return bits + (((bits >> 16) & 1U) + 0x7fffU);
}

// An 8-bit float with this many fraction bits in the low byte of each lane -> float. A subnormal is
// the difference between the least normal number with that fraction and the least normal number:
// the difference is exact, and no operand is a subnormal float, which costs some processors a
// hundred cycles. With infinities (e5m2) the largest exponent encodes infinities and NaNs; without
// (e4m3) only the all-ones code is a NaN.
template <int kFraction>
RANKINE_INLINE Vec<float> decode_float8(Vec<std::uint32_t> code) {
  using Words = Vec<std::uint32_t>;
  constexpr std::uint32_t kBias = kFraction == 2 ? 15 : 7;
  constexpr std::uint32_t kLeast = (128U - kBias) << 23;  // normal
  const Words magnitude = code & 0x7fU;
  const Words shifted = magnitude << (23 - kFraction);
  const Words normal = shifted + (kLeast - (1U << 23));
  const Words subnormal =
      as<Words>(as<Vec<float>>(shifted + kLeast) - __builtin_bit_cast(float, kLeast));
  Words bits = magnitude < (1U << kFraction) ? subnormal : normal;
  bits = magnitude >= (kFraction == 2 ? 0x7cU : 0x7fU)
             ? bits | (kFraction == 2 ? 0x7f800000U : 0x7fc00000U)
             : bits;
  return as<Vec<float>>(bits | ((code & 0x80U) << 24));
}

// float -> 8-bit float in the low byte of each lane, saturating: rounds as encode_half() does, and
// a value that is too large, infinity included, becomes the largest number.
template <int kFraction>
RANKINE_INLINE Vec<std::uint32_t> encode_float8(Vec<float> value) {
  using Words = Vec<std::uint32_t>;
  constexpr int kDrop = 23 - kFraction;
  constexpr std::uint32_t kBias = kFraction == 2 ? 15 : 7;
  constexpr std::uint32_t kLargest = kFraction == 2 ? 0x7bU : 0x7eU;
  constexpr std::uint32_t kNan = kFraction == 2 ? 0x7eU : 0x7fU;
  // A float whose last place is the least subnormal: adding it rounds to that place.
  constexpr std::uint32_t kPlace = (151U - kBias - kFraction) << 23;
  constexpr std::uint32_t kRound = (1U << (kDrop - 1)) - 1U - ((127U - kBias) << 23);
  const Words bits = as<Words>(value);
  const Words magnitude = bits & 0x7fffffffU;
  const Words normal = (magnitude + kRound + ((magnitude >> kDrop) & 1U)) >> kDrop;
  const Words subnormal =
      as<Words>(as<Vec<float>>(magnitude) + __builtin_bit_cast(float, kPlace)) - kPlace;
  Words code = magnitude < ((128U - kBias) << 23) ? subnormal : normal;
  code = code > kLargest ? Words{} + kLargest : code;
  code = magnitude > 0x7f800000U ? Words{} + kNan : code;
  return code | ((bits >> 24) & 0x80U);
}

// Lanes of pairs: firsts() doubles the first ones, seconds() the second ones, swapped() swaps each
// pair.
template <std::size_t... kLanes>
struct Pairs {
  template <class V>
  RANKINE_INLINE static V firsts(V x) {
    return __builtin_shufflevector(x, x, (kLanes & ~std::size_t{1})...);
  }
  template <class V>
  RANKINE_INLINE static V seconds(V x) {
    return __builtin_shufflevector(x, x, (kLanes | 1)...);
  }
  template <class V>
  RANKINE_INLINE static V swapped(V x) {
    return __builtin_shufflevector(x, x, (kLanes ^ 1)...);
  }
};
template <std::size_t kCount, std::size_t... kLanes>
struct PairsOf : PairsOf<kCount - 1, kCount - 1, kLanes...> {};
template <std::size_t... kLanes>
struct PairsOf<0, kLanes...> : Pairs<kLanes...> {};

// Products of complex numbers, (a + bi)(c + di) = (ac - bd) + (ad + bc)i, each part rounded three
// times, without C99's special treatment of infinities.
template <class T>
RANKINE_INLINE Vec<T> complex_product(Vec<T> x, Vec<T> y) {
  using Lanes = PairsOf<kWidth / sizeof(T)>;
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  Vec<Word> minus{};
  for (std::size_t i = 0; i < kWidth / sizeof(T); i += 2) minus[i] = Word{1} << (8 * sizeof(T) - 1);
  const Vec<T> cross = Lanes::seconds(x) * Lanes::swapped(y);  // bd, bc
  return Lanes::firsts(x) * y + as<Vec<T>>(as<Vec<Word>>(cross) ^ minus);
}

// The default operations of a Target without special instructions. `Of` is the Target, which
// supplies the rest.
template <class Of>
struct Generic {
  // IEEE minimum and maximum. Both orders of the comparison agree except on zeros, where OR keeps
  // the minus and AND drops it, and on NaN, which the last line handles.
  template <class T>
  RANKINE_INLINE static Vec<T> min_of(Vec<T> x, Vec<T> y) {
    const Vec<T> xy = x < y ? x : y;
    const Vec<T> yx = y < x ? y : x;
    const Vec<T> both = as<Vec<T>>(as<Bytes>(xy) | as<Bytes>(yx));
    return ((x != x) | (y != y)) ? splat(kNan<T>) : both;
  }
  template <class T>
  RANKINE_INLINE static Vec<T> max_of(Vec<T> x, Vec<T> y) {
    const Vec<T> xy = x > y ? x : y;
    const Vec<T> yx = y > x ? y : x;
    const Vec<T> both = as<Vec<T>>(as<Bytes>(xy) & as<Bytes>(yx));
    return ((x != x) | (y != y)) ? splat(kNan<T>) : both;
  }

  using HalfRegister = Bytes;
  using HalfTotal = Floats;
  RANKINE_INLINE static Floats widen_half(Bytes halves) {
    const Vec<std::uint32_t> pairs = as<Vec<std::uint32_t>>(halves);
    return {decode_half(pairs & 0xffffU), decode_half(pairs >> 16)};
  }
  RANKINE_INLINE static Bytes narrow_half(Floats floats) {
    return as<Bytes>(encode_half(floats.a) | (encode_half(floats.b) << 16));
  }

  RANKINE_INLINE static Floats widen_bfloat(Bytes bfloats) {
    const Vec<std::uint32_t> pairs = as<Vec<std::uint32_t>>(bfloats);
    return {as<Vec<float>>(pairs << 16), as<Vec<float>>(pairs & 0xffff0000U)};
  }
  RANKINE_INLINE static Bytes narrow_bfloat(Floats floats) {
    return as<Bytes>((round_bfloat(floats.a) >> 16) | (round_bfloat(floats.b) & 0xffff0000U));
  }

  template <int kFraction>
  RANKINE_INLINE static FourFloats widen_f8(Bytes codes) {
    const Vec<std::uint32_t> fours = as<Vec<std::uint32_t>>(codes);
    return {decode_float8<kFraction>(fours), decode_float8<kFraction>(fours >> 8),
            decode_float8<kFraction>(fours >> 16), decode_float8<kFraction>(fours >> 24)};
  }
  template <int kFraction>
  RANKINE_INLINE static Bytes narrow_f8(FourFloats floats) {
    return as<Bytes>(
        encode_float8<kFraction>(floats.a) | (encode_float8<kFraction>(floats.b) << 8) |
        (encode_float8<kFraction>(floats.c) << 16) | (encode_float8<kFraction>(floats.d) << 24));
  }

  // The row kernels have an element in each 32 bits.
  RANKINE_INLINE static Vec<std::uint32_t> load_16(const char* from) {
    return __builtin_convertvector(load<Vec<std::uint16_t, kWidth / 2>>(from), Vec<std::uint32_t>);
  }
  RANKINE_INLINE static Vec<std::uint32_t> load_8(const char* from) {
    return __builtin_convertvector(load<Vec<std::uint8_t, kWidth / 4>>(from), Vec<std::uint32_t>);
  }
  RANKINE_INLINE static Vec<float> load_half(const char* from) {
    return decode_half(Of::load_16(from));
  }
  RANKINE_INLINE static void store_16(char* to, Vec<std::uint32_t> x) {
    store(to, __builtin_convertvector(x, Vec<std::uint16_t, kWidth / 2>));
  }
  RANKINE_INLINE static void store_8(char* to, Vec<std::uint32_t> x) {
    store(to, __builtin_convertvector(x, Vec<std::uint8_t, kWidth / 4>));
  }

  template <std::size_t kBytes, class Register>
  RANKINE_INLINE static Register load_exact(const char* from) {
    return Of::template load_partial<Register>(from, kBytes);
  }
  template <std::size_t kBytes, class Register>
  RANKINE_INLINE static void store_exact(char* to, Register value) {
    Of::template store_partial<Register>(to, value, kBytes);
  }
};

// Loads and stores of at most 16 bytes through general registers. A round trip through the stack
// would stall: a wide load cannot be served from the narrow stores before it.

using Quarter = Vec<std::uint64_t, 16>;

RANKINE_INLINE std::uint64_t load_up_to_8(const char* from, std::size_t bytes) {
  if (bytes >= 4) {  // two accesses that overlap, and fit
    const std::uint64_t low = load<std::uint32_t>(from);
    const std::uint64_t high = load<std::uint32_t>(from + bytes - 4);
    return low | (high << (8 * (bytes - 4)));
  }
  if (bytes == 0) return 0;
  const std::uint64_t first = load<std::uint8_t>(from);
  const std::uint64_t middle = load<std::uint8_t>(from + bytes / 2);
  const std::uint64_t last = load<std::uint8_t>(from + bytes - 1);
  return first | (middle << (8 * (bytes / 2))) | (last << (8 * (bytes - 1)));
}

RANKINE_INLINE void store_up_to_8(char* to, std::uint64_t value, std::size_t bytes) {
  if (bytes >= 4) {
    store(to, static_cast<std::uint32_t>(value));
    store(to + bytes - 4, static_cast<std::uint32_t>(value >> (8 * (bytes - 4))));
    return;
  }
  if (bytes == 0) return;
  store(to, static_cast<std::uint8_t>(value));
  store(to + bytes / 2, static_cast<std::uint8_t>(value >> (8 * (bytes / 2))));
  store(to + bytes - 1, static_cast<std::uint8_t>(value >> (8 * (bytes - 1))));
}

RANKINE_INLINE Quarter load_up_to_16(const char* from, std::size_t bytes) {
  if (bytes == 16) return load<Quarter>(from);
  if (bytes <= 8) return Quarter{load_up_to_8(from, bytes), 0};
  return Quarter{load<std::uint64_t>(from), load_up_to_8(from + 8, bytes - 8)};
}

RANKINE_INLINE void store_up_to_16(char* to, Quarter value, std::size_t bytes) {
  if (bytes == 16) {
    store(to, value);
  } else if (bytes <= 8) {
    store_up_to_8(to, value[0], bytes);
  } else {
    store(to, static_cast<std::uint64_t>(value[0]));
    store_up_to_8(to + 8, value[1], bytes - 8);
  }
}

}  // namespace
}  // namespace rankine
