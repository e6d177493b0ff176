// This header defines the element types and reduction operators that plans, the C ABI and the tools
// share, and the storage types of the small floats that C++20 lacks and of a bool that is one byte.
#pragma once

#include <bit>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace rankine {

// f8e4m3 and f8e5m2: OCP's 8-bit floats. b8: a byte that is 0 or 1, as bool is. c64 and c128: pairs
// of f32 and of f64. raw: elements of any size, for user operations only.
enum class DataType : std::uint8_t {
  f32,
  f64,
  f16,
  bf16,
  i8,
  u8,
  i32,
  u32,
  i64,
  u64,
  f8e4m3,
  f8e5m2,
  b8,
  c64,
  c128,
  raw
};
// user: a user operation, on raw elements.
enum class ReduceOp : std::uint8_t { sum, prod, min, max, avg, band, bor, bxor, user };

// The engine's own operators and types number from 0 to these counts, so either enum can index an
// array; raw and user come after them.
inline constexpr int kDataTypes = 15;
inline constexpr int kReduceOps = 8;

// Bytes per element; 1 for raw, since each call gives its element size.
std::size_t size_of(DataType type);

// The enumerator's name: "f32", "bf16", ... parse_*() reads it back, except raw and user.
std::string_view name_of(DataType type);
std::string_view name_of(ReduceOp op);

// Reads any usual spelling: ours (f32), NumPy's and PyTorch's (float32, int8, complex64,
// float8_e4m3fn), C's (float, double, half), nccl-tests' (bfloat16, uint64, f8e4m3). Case does not
// matter. nullopt: unknown name.
std::optional<DataType> parse_data_type(std::string_view text);
std::optional<ReduceOp> parse_reduce_op(std::string_view text);

// True for real floats; false for complex types.
constexpr bool is_float(DataType type) {
  return type <= DataType::bf16 || type == DataType::f8e4m3 || type == DataType::f8e5m2;
}
constexpr bool is_complex(DataType type) { return type == DataType::c64 || type == DataType::c128; }

// The engine's operations for a type. Integers take all; floats take none of the bit operations;
// complex numbers take neither these nor min and max, since they have no order; b8 takes all but
// avg, since a bool holds nothing between 0 and 1. On b8, sum is "or" and prod is "and", as in
// NumPy and PyTorch: the result is a bool again.
constexpr bool supports(DataType type, ReduceOp op) {
  if (type == DataType::b8) return op != ReduceOp::avg && op <= ReduceOp::bxor;
  if (is_complex(type)) {
    return op == ReduceOp::sum || op == ReduceOp::prod || op == ReduceOp::avg;
  }
  return type < DataType::raw && (is_float(type) ? op < ReduceOp::band : op <= ReduceOp::bxor);
}
// "f32 takes sum, prod, min, max and avg", for refusals.
std::string supported_ops(DataType type);

// True if the result depends on the engine's order of additions: sums and products of floats,
// complex ones included, are rounded.
constexpr bool rounds(DataType type, ReduceOp op) {
  return (is_float(type) || is_complex(type)) && op != ReduceOp::min && op != ReduceOp::max;
}

// 16-bit floats: storage only, arithmetic happens in float. From float: round to nearest, ties to
// even; overflow becomes infinity, subnormals are exact, a NaN stays a (quiet) NaN with the leading
// bits of its payload. Equal bit for bit to F16C and, except for subnormals, which it flushes, to
// AVX512-BF16.
struct Half {  // IEEE binary16: 1 sign, 5 exponent, 10 fraction bits
  std::uint16_t bits;

  Half() = default;
  constexpr explicit Half(float value) : bits(encode(std::bit_cast<std::uint32_t>(value))) {}
  constexpr explicit operator float() const { return std::bit_cast<float>(decode(bits)); }
  static constexpr Half from_bits(std::uint16_t code) {
    Half half(0.0F);
    half.bits = code;
    return half;
  }

 private:
  static constexpr std::uint16_t encode(std::uint32_t value) {
    const std::uint32_t sign = (value >> 16) & 0x8000U;
    const std::uint32_t magnitude = value & 0x7fffffffU;
    std::uint32_t code = 0;
    if (magnitude > 0x7f800000U) {
      code = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
    } else if (magnitude >= 0x47800000U) {  // 2^16 and above
      code = 0x7c00U;
    } else if (magnitude >= 0x38800000U) {  // 2^-14 and above: normal; the carry may reach infinity
      code = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
    } else if (magnitude >= 0x33000000U) {  // 2^-25 and above: a multiple of 2^-24 is nearest
      const std::uint32_t significand = (magnitude & 0x7fffffU) | 0x800000U;
      const std::uint32_t shift = 126U - (magnitude >> 23);  // 14..24
      const std::uint32_t odd = (significand >> shift) & 1U;
      code = (significand + (1U << (shift - 1)) - 1U + odd) >> shift;
    }
    return static_cast<std::uint16_t>(sign | code);
  }
  static constexpr std::uint32_t decode(std::uint16_t code) {
    const std::uint32_t sign = (code & 0x8000U) << 16;
    const std::uint32_t exponent = (code >> 10) & 0x1fU;
    std::uint32_t fraction = code & 0x3ffU;
    if (exponent == 31U) {
      return sign | 0x7f800000U | (fraction << 13) | (fraction != 0U ? 0x400000U : 0U);
    }
    if (exponent != 0U) return sign | ((exponent + 112U) << 23) | (fraction << 13);
    if (fraction == 0U) return sign;
    const auto shift = static_cast<std::uint32_t>(std::countl_zero(fraction)) - 21U;  // 1..10
    return sign | ((113U - shift) << 23) | (((fraction << shift) & 0x3ffU) << 13);
  }
};

struct BFloat16 {  // the upper half of a float: 1 sign, 8 exponent, 7 fraction bits
  std::uint16_t bits;

  BFloat16() = default;
  constexpr explicit BFloat16(float value) : bits(encode(std::bit_cast<std::uint32_t>(value))) {}
  constexpr explicit operator float() const {
    const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
    return std::bit_cast<float>((wide & 0x7fffffffU) > 0x7f800000U ? wide | 0x400000U : wide);
  }
  static constexpr BFloat16 from_bits(std::uint16_t code) {
    BFloat16 value(0.0F);
    value.bits = code;
    return value;
  }

 private:
  static constexpr std::uint16_t encode(std::uint32_t value) {
    if ((value & 0x7fffffffU) > 0x7f800000U) {
      return static_cast<std::uint16_t>((value >> 16) | 0x40U);
    }
    return static_cast<std::uint16_t>((value + 0x7fffU + ((value >> 16) & 1U)) >> 16);
  }
};

// OCP 8-bit floats (OFP8, revision 1.0, 2023): storage only. From float: one rounding to nearest,
// ties to even; a value above the largest number, infinity included, becomes the largest number
// ("saturating"); a NaN stays a NaN. To float: exact.
template <int kFraction>  // bits
struct Float8 {
  static constexpr bool kHasInfinity = kFraction == 2;
  static constexpr std::uint32_t kBias = kHasInfinity ? 15 : 7;
  static constexpr std::uint32_t kLargest = kHasInfinity ? 0x7bU : 0x7eU;  // 57344, 448
  static constexpr std::uint32_t kQuietNan = kHasInfinity ? 0x7eU : 0x7fU;

  std::uint8_t bits;

  Float8() = default;
  constexpr explicit Float8(float value) : bits(encode(std::bit_cast<std::uint32_t>(value))) {}
  constexpr explicit operator float() const {
    const std::uint32_t sign = (bits & 0x80U) << 24;
    const std::uint32_t magnitude = bits & 0x7fU;
    if (magnitude > (kHasInfinity ? 0x7cU : 0x7eU)) {
      return std::bit_cast<float>(sign | 0x7fc00000U);
    }
    if (kHasInfinity && magnitude == 0x7cU) return std::bit_cast<float>(sign | 0x7f800000U);
    const std::uint32_t exponent = magnitude >> kFraction;
    std::uint32_t fraction = magnitude & ((1U << kFraction) - 1U);
    std::uint32_t wide = 0;
    if (exponent != 0U) {
      wide = ((exponent + 127U - kBias) << 23) | (fraction << (23 - kFraction));
    } else if (fraction != 0U) {
      const auto shift = static_cast<std::uint32_t>(std::countl_zero(fraction)) - 31U + kFraction;
      fraction = (fraction << shift) & ((1U << kFraction) - 1U);
      wide = ((128U - kBias - shift) << 23) | (fraction << (23 - kFraction));
    }
    return std::bit_cast<float>(sign | wide);
  }
  static constexpr Float8 from_bits(std::uint8_t code) {
    Float8 value(0.0F);
    value.bits = code;
    return value;
  }

 private:
  static constexpr std::uint8_t encode(std::uint32_t value) {
    constexpr int kDrop = 23 - kFraction;
    constexpr std::uint32_t kLeastNormal = (128U - kBias) << 23;
    const std::uint32_t sign = (value >> 24) & 0x80U;
    const std::uint32_t magnitude = value & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return static_cast<std::uint8_t>(sign | kQuietNan);
    std::uint32_t code = 0;
    if (magnitude >= kLeastNormal) {
      const std::uint32_t rebiased = magnitude - ((127U - kBias) << 23);
      code = (rebiased + (1U << (kDrop - 1)) - 1U + ((magnitude >> kDrop) & 1U)) >> kDrop;
    } else if (magnitude >= kLeastNormal - ((kFraction + 1U) << 23)) {  // half the least one and up
      const std::uint32_t significand = (magnitude & 0x7fffffU) | 0x800000U;
      const std::uint32_t shift = (151U - kBias - kFraction) - (magnitude >> 23);
      const std::uint32_t odd = (significand >> shift) & 1U;
      code = (significand + (1U << (shift - 1)) - 1U + odd) >> shift;
    }
    return static_cast<std::uint8_t>(sign | (code < kLargest ? code : kLargest));
  }
};
using Float8E4M3 = Float8<3>;  // "fn": no infinities
using Float8E5M2 = Float8<2>;

// A byte that is 0 or 1. bool itself is also b8; this is for containers that specialise bool.
struct Bool {
  std::uint8_t byte;

  Bool() = default;
  constexpr explicit Bool(bool value) : byte(value ? 1 : 0) {}
  constexpr explicit operator bool() const { return byte != 0; }
};

template <class T>
concept SmallFloat = std::same_as<T, Half> || std::same_as<T, BFloat16> ||
    std::same_as<T, Float8E4M3> || std::same_as<T, Float8E5M2>;
template <class T>
concept Complex = std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

namespace internal {

// The compiler's binary16; std::float16_t is the same type. void: the compiler has none.
#if defined(__aarch64__) && !defined(__clang__) && __GNUC__ < 13
using NativeHalf = __fp16;  // in C++, these compilers have no _Float16 for Arm
#elif defined(__FLT16_MANT_DIG__)
using NativeHalf = _Float16;
#else
using NativeHalf = void;
#endif
template <class T>
inline constexpr bool kIsNativeHalf = std::is_same_v<T, NativeHalf>;
#if defined(__STDCPP_BFLOAT16_T__)
template <class T>
inline constexpr bool kIsNativeBFloat = std::is_same_v<T, decltype(0.0bf16)>;  // std::bfloat16_t
#else
template <class T>
inline constexpr bool kIsNativeBFloat = false;
#endif

// True if T is the element type of some DataType.
template <class T>
inline constexpr bool kHasDataType = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                                     SmallFloat<T> || Complex<T> || std::is_same_v<T, Bool> ||
                                     kIsNativeHalf<T> || kIsNativeBFloat<T> ||
                                     (std::is_integral_v<T> && sizeof(T) != 2 && sizeof(T) <= 8);

template <class T>
consteval DataType data_type_for() {
  if constexpr (std::is_same_v<T, float>) {
    return DataType::f32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DataType::f64;
  } else if constexpr (std::is_same_v<T, Half> || kIsNativeHalf<T>) {
    return DataType::f16;
  } else if constexpr (std::is_same_v<T, BFloat16> || kIsNativeBFloat<T>) {
    return DataType::bf16;
  } else if constexpr (std::is_same_v<T, Float8E4M3>) {
    return DataType::f8e4m3;
  } else if constexpr (std::is_same_v<T, Float8E5M2>) {
    return DataType::f8e5m2;
  } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, Bool>) {
    return DataType::b8;
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return DataType::c64;
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    return DataType::c128;
  } else {
    static_assert(kHasDataType<T>, "no DataType for this element type");
    constexpr DataType kBySize =
        sizeof(T) == 1 ? DataType::i8 : (sizeof(T) == 4 ? DataType::i32 : DataType::i64);
    return std::is_signed_v<T> ? kBySize : static_cast<DataType>(static_cast<int>(kBySize) + 1);
  }
}

}  // namespace internal

// float -> f32, Half -> f16, std::int8_t -> i8, ... Other types do not compile, and are no
// TypedElement.
template <class T>
concept TypedElement = internal::kHasDataType<std::remove_cv_t<T>>;
template <class T>
inline constexpr DataType data_type_of = internal::data_type_for<std::remove_cv_t<T>>();

// The inverse: calls visit.operator()<T>() with the element type and returns its result.
template <class Visit>
constexpr decltype(auto) with_element(DataType type, Visit&& visit) {
  switch (type) {
    case DataType::f64:
      return visit.template operator()<double>();
    case DataType::f16:
      return visit.template operator()<Half>();
    case DataType::bf16:
      return visit.template operator()<BFloat16>();
    case DataType::i8:
      return visit.template operator()<std::int8_t>();
    case DataType::u8:
      return visit.template operator()<std::uint8_t>();
    case DataType::i32:
      return visit.template operator()<std::int32_t>();
    case DataType::u32:
      return visit.template operator()<std::uint32_t>();
    case DataType::i64:
      return visit.template operator()<std::int64_t>();
    case DataType::u64:
      return visit.template operator()<std::uint64_t>();
    case DataType::f8e4m3:
      return visit.template operator()<Float8E4M3>();
    case DataType::f8e5m2:
      return visit.template operator()<Float8E5M2>();
    case DataType::b8:
      return visit.template operator()<Bool>();
    case DataType::c64:
      return visit.template operator()<std::complex<float>>();
    case DataType::c128:
      return visit.template operator()<std::complex<double>>();
    case DataType::f32:
    case DataType::raw:  // raw has no element type
      break;
  }
  return visit.template operator()<float>();
}

}  // namespace rankine
