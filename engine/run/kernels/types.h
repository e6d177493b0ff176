// Element types and reduction operators: the two enums that plans, the C ABI and the tools share,
// and the storage types of the two 16-bit floats that C++20 lacks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace rankine {

enum class DataType : std::uint8_t { f32, f64, f16, bf16, i8, u8, i32, u32, i64, u64 };
enum class ReduceOp : std::uint8_t { sum, prod, min, max, avg, band, bor, bxor };

// Values run from 0 to these, so arrays can be indexed by either enum.
inline constexpr int kDataTypes = 10;
inline constexpr int kReduceOps = 8;

// Bytes per element.
std::size_t size_of(DataType type);

// "f32", "bf16", ...: exactly the enumerators. Round-trips through parse_*.
std::string_view name_of(DataType type);
std::string_view name_of(ReduceOp op);

// The spellings of the field: ours (f32), NumPy's and PyTorch's (float32, int8), C's (float,
// double, half), nccl-tests' (bfloat16, uint64). Case does not matter. nullopt: no such type or
// operator.
std::optional<DataType> parse_data_type(std::string_view text);
std::optional<ReduceOp> parse_reduce_op(std::string_view text);

constexpr bool is_float(DataType type) { return type <= DataType::bf16; }

// Everything except bit operations on floats.
constexpr bool supports(DataType type, ReduceOp op) {
  return op < ReduceOp::band || !is_float(type);
}

// 16-bit floats: storage only, arithmetic happens in float. From float: round to nearest, ties to
// even; overflow becomes infinity, subnormals are exact, a NaN stays a (quiet) NaN with the leading
// bits of its payload. Bit for bit what F16C does, and AVX512-BF16, but for the subnormals that the
// latter flushes.
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

namespace internal {

template <class T>
consteval DataType data_type_for() {
  if constexpr (std::is_same_v<T, float>) {
    return DataType::f32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DataType::f64;
  } else if constexpr (std::is_same_v<T, Half>) {
    return DataType::f16;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return DataType::bf16;
  } else {
    static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) != 2,
                  "no DataType for this element type");
    constexpr DataType kBySize =
        sizeof(T) == 1 ? DataType::i8 : (sizeof(T) == 4 ? DataType::i32 : DataType::i64);
    return std::is_signed_v<T> ? kBySize : static_cast<DataType>(static_cast<int>(kBySize) + 1);
  }
}

}  // namespace internal

// float -> f32, Half -> f16, std::int8_t -> i8, ... Other types do not compile.
template <class T>
inline constexpr DataType data_type_of = internal::data_type_for<std::remove_cv_t<T>>();

// The way back: calls visit.operator()<T>() with the element type and returns what it returns.
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
    case DataType::f32:
      break;
  }
  return visit.template operator()<float>();
}

}  // namespace rankine
