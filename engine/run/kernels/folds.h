// Folds combine registers of one element type. A fold begins with a register (first()), adds the
// others (step()), and converts the total back to memory's format (last()). Signed integers occur
// only where the sign matters (min, max); elsewhere the unsigned type wraps correctly. Textual,
// like vector.h.
#pragma once

#include <type_traits>
#include <utility>

#include "engine/run/kernels/reduce.h"
#include "engine/run/kernels/vector.h"

namespace rankine {
namespace {

// Element types that only exist as bits.
struct HalfCode {
  std::uint16_t bits;
};
struct BFloatCode {
  std::uint16_t bits;
};
template <int kFraction>
struct Float8Code {
  std::uint8_t bits;
};
struct BoolCode {
  std::uint8_t byte;
};
template <class T>
struct ComplexCode {
  T real, imaginary;
};

template <DataType kType>
struct ElementOf;
template <>
struct ElementOf<DataType::f32> : std::type_identity<float> {};
template <>
struct ElementOf<DataType::f64> : std::type_identity<double> {};
template <>
struct ElementOf<DataType::f16> : std::type_identity<HalfCode> {};
template <>
struct ElementOf<DataType::bf16> : std::type_identity<BFloatCode> {};
template <>
struct ElementOf<DataType::i8> : std::type_identity<std::int8_t> {};
template <>
struct ElementOf<DataType::u8> : std::type_identity<std::uint8_t> {};
template <>
struct ElementOf<DataType::i32> : std::type_identity<std::int32_t> {};
template <>
struct ElementOf<DataType::u32> : std::type_identity<std::uint32_t> {};
template <>
struct ElementOf<DataType::i64> : std::type_identity<std::int64_t> {};
template <>
struct ElementOf<DataType::u64> : std::type_identity<std::uint64_t> {};
template <>
struct ElementOf<DataType::f8e4m3> : std::type_identity<Float8Code<3>> {};
template <>
struct ElementOf<DataType::f8e5m2> : std::type_identity<Float8Code<2>> {};
template <>
struct ElementOf<DataType::b8> : std::type_identity<BoolCode> {};
template <>
struct ElementOf<DataType::c64> : std::type_identity<ComplexCode<float>> {};
template <>
struct ElementOf<DataType::c128> : std::type_identity<ComplexCode<double>> {};

// Operators on registers.

template <ReduceOp kOp, class T>
RANKINE_INLINE Vec<T> combine(Vec<T> x, Vec<T> y) {
  if constexpr (kOp == ReduceOp::sum) {
    return x + y;
  } else if constexpr (kOp == ReduceOp::prod) {
    return x * y;
  } else if constexpr (kOp == ReduceOp::band) {
    return x & y;
  } else if constexpr (kOp == ReduceOp::bor) {
    return x | y;
  } else if constexpr (kOp == ReduceOp::bxor) {
    return x ^ y;
  } else if constexpr (kOp == ReduceOp::min) {
    if constexpr (std::is_floating_point_v<T>) {
      return Target::template min_of<T>(x, y);
    } else {
      return x < y ? x : y;
    }
  } else {
    static_assert(kOp == ReduceOp::max);
    if constexpr (std::is_floating_point_v<T>) {
      return Target::template max_of<T>(x, y);
    } else {
      return x > y ? x : y;
    }
  }
}

template <ReduceOp kOp>
RANKINE_INLINE Floats combine_floats(Floats x, Floats y) {
  return {combine<kOp, float>(x.a, y.a), combine<kOp, float>(x.b, y.b)};
}
template <ReduceOp kOp>
RANKINE_INLINE FourFloats combine_floats(FourFloats x, FourFloats y) {
  return {combine<kOp, float>(x.a, y.a), combine<kOp, float>(x.b, y.b),
          combine<kOp, float>(x.c, y.c), combine<kOp, float>(x.d, y.d)};
}
template <ReduceOp kOp>
RANKINE_INLINE Vec<float> combine_floats(Vec<float> x, Vec<float> y) {
  return combine<kOp, float>(x, y);
}

template <class T, ReduceOp kOp>
struct Fold {
  using Element = T;
  using Register = Bytes;
  using Total = Vec<T>;
  RANKINE_INLINE static Total first(Register x) { return as<Total>(x); }
  RANKINE_INLINE static Total step(Total total, Register x) {
    return combine<kOp, T>(total, as<Total>(x));
  }
  RANKINE_INLINE static Register last(Total total) { return as<Register>(total); }
};

// Sums and products of 16-bit floats, accumulated in float.
template <ReduceOp kOp>
struct HalfFold {
  using Element = HalfCode;
  using Register = typename Target::HalfRegister;
  using Total = typename Target::HalfTotal;
  RANKINE_INLINE static Total first(Register x) { return Target::widen_half(x); }
  RANKINE_INLINE static Total step(Total total, Register x) {
    return combine_floats<kOp>(total, first(x));
  }
  RANKINE_INLINE static Register last(Total total) { return Target::narrow_half(total); }
};

template <ReduceOp kOp>
struct BFloatFold {
  using Element = BFloatCode;
  using Register = Bytes;
  using Total = Floats;
  RANKINE_INLINE static Total first(Register x) { return Target::widen_bfloat(x); }
  RANKINE_INLINE static Total step(Total total, Register x) {
    return combine_floats<kOp>(total, first(x));
  }
  RANKINE_INLINE static Register last(Total total) { return Target::narrow_bfloat(total); }
};

template <int kFraction, ReduceOp kOp>
struct Float8Fold {
  using Element = Float8Code<kFraction>;
  using Register = Bytes;
  using Total = FourFloats;
  RANKINE_INLINE static Total first(Register x) { return Target::template widen_f8<kFraction>(x); }
  RANKINE_INLINE static Total step(Total total, Register x) {
    return combine_floats<kOp>(total, first(x));
  }
  RANKINE_INLINE static Register last(Total total) {
    return Target::template narrow_f8<kFraction>(total);
  }
};

// Both parts side by side.
template <class T, ReduceOp kOp>
struct ComplexFold : Fold<T, ReduceOp::sum> {
  using Element = ComplexCode<T>;
  RANKINE_INLINE static Vec<T> step(Vec<T> total, Bytes x) {
    if constexpr (kOp == ReduceOp::prod) {
      return complex_product<T>(total, as<Vec<T>>(x));
    } else {
      return total + as<Vec<T>>(x);
    }
  }
};

// Minimum and maximum of small floats need no float: flipping the magnitude of negative numbers
// makes codes compare as signed integers, -0 below +0, with the NaNs of both signs at the two ends.
// The ends are neighbours modulo 2^bits, so adding kTurn brings all NaNs to the winning end.
template <class Code>
struct Ordered;
template <>
struct Ordered<HalfCode> {
  using Word = std::uint16_t;
  using Signed = std::int16_t;
  static constexpr Word kLastNumber = 0x7c00U, kQuietNan = 0x7e00U;
};
template <>
struct Ordered<BFloatCode> {
  using Word = std::uint16_t;
  using Signed = std::int16_t;
  static constexpr Word kLastNumber = 0x7f80U, kQuietNan = 0x7fc0U;
};
template <int kFraction>
struct Ordered<Float8Code<kFraction>> {
  using Word = std::uint8_t;
  using Signed = std::int8_t;
  static constexpr Word kLastNumber = kFraction == 2 ? 0x7cU : 0x7eU;
  static constexpr Word kQuietNan = kFraction == 2 ? 0x7eU : 0x7fU;
};

template <class Code, ReduceOp kOp>
struct OrderedFold {
  using Of = Ordered<Code>;
  using Word = typename Of::Word;
  using Signed = typename Of::Signed;
  using Element = Code;
  using Register = Bytes;
  using Total = Vec<Signed>;
  using Codes = Vec<Word>;
  static constexpr Word kMagnitude = static_cast<Word>(static_cast<Word>(~Word{0}) >> 1);
  static constexpr Word kNans = kMagnitude - Of::kLastNumber;  // per sign
  static constexpr Word kTurn = kOp == ReduceOp::min ? kNans : static_cast<Word>(-kNans);

  RANKINE_INLINE static Codes flip(Codes x) {
    const Codes sign = as<Codes>(as<Total>(x) < 0);
    return x ^ (sign & kMagnitude);
  }
  RANKINE_INLINE static Total first(Register x) { return as<Total>(flip(as<Codes>(x)) + kTurn); }
  RANKINE_INLINE static Total step(Total total, Register x) {
    return combine<kOp, Signed>(total, first(x));
  }
  RANKINE_INLINE static Register last(Total total) {
    const Codes code = flip(as<Codes>(total) - kTurn);
    const Codes magnitude = code & kMagnitude;
    return as<Register>(magnitude > Of::kLastNumber ? splat(Of::kQuietNan) : code);
  }
};

// Bytes that are 0 or 1: the bit operation for each operator.
constexpr ReduceOp bit_op(ReduceOp op) {
  if (op == ReduceOp::prod || op == ReduceOp::min) return ReduceOp::band;
  if (op == ReduceOp::sum || op == ReduceOp::max) return ReduceOp::bor;
  return op;
}
template <ReduceOp kOp>
struct BoolFold : Fold<std::uint8_t, bit_op(kOp)> {
  using Element = BoolCode;
};

template <class T>
inline constexpr bool kIsCode = requires {
  Ordered<T>::kQuietNan;
};
template <ReduceOp kOp>
inline constexpr bool kIsOrder = kOp == ReduceOp::min || kOp == ReduceOp::max;

template <ReduceOp kOp, int kFraction>
Float8Fold<kFraction, kOp> float8_fold(Float8Code<kFraction>);
template <ReduceOp kOp, class T>
ComplexFold<T, kOp> complex_fold(ComplexCode<T>);

template <class T, ReduceOp kOp>
struct FoldFor {
  static auto choose() {
    if constexpr (std::is_same_v<T, BoolCode>) {
      return BoolFold<kOp>{};
    } else if constexpr (requires { complex_fold<kOp>(T{}); }) {
      return decltype(complex_fold<kOp>(T{})){};
    } else if constexpr (kIsCode<T> && kIsOrder<kOp>) {
      return OrderedFold<T, kOp>{};
    } else if constexpr (std::is_same_v<T, HalfCode>) {
      return HalfFold<kOp>{};
    } else if constexpr (std::is_same_v<T, BFloatCode>) {
      return BFloatFold<kOp>{};
    } else if constexpr (kIsCode<T>) {
      return decltype(float8_fold<kOp>(T{})){};
    } else if constexpr (std::is_integral_v<T> && !kIsOrder<kOp>) {
      return Fold<std::make_unsigned_t<T>, kOp>{};
    } else {
      return Fold<T, kOp>{};
    }
  }
  using type = decltype(choose());
};

}  // namespace

// Finishes change a total before it returns to memory's format: they keep it, divide it for avg, or
// multiply it by a factor.

namespace {

struct Keep {
  template <class Total>
  RANKINE_INLINE Total operator()(Total total) const {
    return total;
  }
};

template <class T>
struct DivideFloat {
  T divisor;
  RANKINE_INLINE explicit DivideFloat(int by) : divisor(static_cast<T>(by)) {}
  RANKINE_INLINE Vec<T> operator()(Vec<T> total) const { return total / divisor; }
  RANKINE_INLINE Floats operator()(Floats total) const {
    return {total.a / divisor, total.b / divisor};
  }
  RANKINE_INLINE FourFloats operator()(FourFloats total) const {
    return {total.a / divisor, total.b / divisor, total.c / divisor, total.d / divisor};
  }
};

// avg by a power of two: the reciprocal is exact, so the product rounds to the quotient's value.
template <class T>
struct ScaleFloat {
  T factor;
  RANKINE_INLINE Vec<T> operator()(Vec<T> total) const { return total * factor; }
  RANKINE_INLINE Floats operator()(Floats total) const {
    return {total.a * factor, total.b * factor};
  }
  RANKINE_INLINE FourFloats operator()(FourFloats total) const {
    return {total.a * factor, total.b * factor, total.c * factor, total.d * factor};
  }
};

// Unsigned magnitudes by multiplication with a rounded-up reciprocal (Granlund and Montgomery, PLDI
// 1994); 64-bit ones one by one. by >= 2.
template <class U>
struct Quotient;

template <>
struct Quotient<std::uint8_t> {
  std::uint32_t reciprocal;  // 2^16 / by, rounded up: exact for 8 bits. 0: every quotient is 0.
  RANKINE_INLINE explicit Quotient(int by)
      : reciprocal(by > 255 ? 0U : 65535U / static_cast<std::uint32_t>(by) + 1U) {}
  RANKINE_INLINE Vec<std::uint8_t> operator()(Vec<std::uint8_t> x) const {
    const Vec<std::uint32_t> lanes = as<Vec<std::uint32_t>>(x);
    const Vec<std::uint32_t> q0 = ((lanes & 0xffU) * reciprocal) >> 16;
    const Vec<std::uint32_t> q1 = (((lanes >> 8) & 0xffU) * reciprocal) >> 16;
    const Vec<std::uint32_t> q2 = (((lanes >> 16) & 0xffU) * reciprocal) >> 16;
    const Vec<std::uint32_t> q3 = ((lanes >> 24) * reciprocal) >> 16;
    return as<Vec<std::uint8_t>>(q0 | (q1 << 8) | (q2 << 16) | (q3 << 24));
  }
};

template <>
struct Quotient<std::uint32_t> {
  std::uint64_t reciprocal;  // 2^(32 + bits) / by - 2^32, rounded up
  std::uint32_t bits;        // 2^bits >= by
  RANKINE_INLINE explicit Quotient(int by)
      : bits(32U - static_cast<std::uint32_t>(__builtin_clz(static_cast<unsigned>(by) - 1U))) {
    const auto divisor = static_cast<std::uint64_t>(by);
    reciprocal = ((((std::uint64_t{1} << bits) - divisor) << 32) / divisor) + 1U;
  }
  RANKINE_INLINE Vec<std::uint32_t> operator()(Vec<std::uint32_t> x) const {
    const Vec<std::uint64_t> lanes = as<Vec<std::uint64_t>>(x);
    const Vec<std::uint64_t> even = ((lanes & 0xffffffffU) * reciprocal) >> 32;
    const Vec<std::uint64_t> odd = ((lanes >> 32) * reciprocal) & 0xffffffff00000000U;
    const Vec<std::uint32_t> high = as<Vec<std::uint32_t>>(even | odd);
    return (high + ((x - high) >> 1)) >> (bits - 1U);
  }
};

template <>
struct Quotient<std::uint64_t> {
  std::uint64_t divisor;
  RANKINE_INLINE explicit Quotient(int by) : divisor(static_cast<std::uint64_t>(by)) {}
  RANKINE_INLINE Vec<std::uint64_t> operator()(Vec<std::uint64_t> x) const {
    for (std::size_t i = 0; i < kWidth / sizeof(divisor); ++i) x[i] = x[i] / divisor;
    return x;
  }
};

// T is signed or unsigned; totals come as unsigned, in two's complement.
template <class T>
struct DivideInteger {
  using Unsigned = std::make_unsigned_t<T>;
  Quotient<Unsigned> quotient;
  RANKINE_INLINE explicit DivideInteger(int by) : quotient(by) {}
  RANKINE_INLINE Vec<Unsigned> operator()(Vec<Unsigned> total) const {
    if constexpr (std::is_unsigned_v<T>) {
      return quotient(total);
    } else {
      const Vec<Unsigned> negative =
          as<Vec<Unsigned>>(as<Vec<T>>(total) >> static_cast<T>(8 * sizeof(T) - 1));
      return (quotient((total ^ negative) - negative) ^ negative) - negative;
    }
  }
};

}  // namespace
}  // namespace rankine
