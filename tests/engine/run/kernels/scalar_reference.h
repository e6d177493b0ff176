// Scalar reductions that follow the contract of reduce.h, one element at a time, and share no code
// with the kernels. Arithmetic on doubles decodes and rounds 16-bit floats; integers wrap through
// 64 bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "engine/run/kernels/types.h"

namespace rankine::reference {

// An IEEE-like format of 16 bits with kFraction fraction bits.
template <int kFraction>
struct SixteenBits {
  static constexpr int kExponent = 15 - kFraction;
  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr int kSpecial = (1 << kExponent) - 1;
  static constexpr std::uint16_t kQuietNan =
      static_cast<std::uint16_t>((kSpecial << kFraction) | (1 << (kFraction - 1)));

  static double decode(std::uint16_t code) {
    const double sign = (code & 0x8000) != 0 ? -1.0 : 1.0;
    const int exponent = (code & 0x7fff) >> kFraction;
    const int fraction = code & ((1 << kFraction) - 1);
    if (exponent == kSpecial) {
      return std::copysign(fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                                         : std::numeric_limits<double>::infinity(),
                           sign);
    }
    const int significand = exponent == 0 ? fraction : fraction + (1 << kFraction);
    return sign * std::ldexp(significand, (exponent == 0 ? 1 : exponent) - kBias - kFraction);
  }

  // decode() by a table.
  static float decoded(std::uint16_t code) {
    static const std::vector<float> all = [] {
      std::vector<float> values;
      for (int c = 0; c < 0x10000; ++c) {
        values.push_back(static_cast<float>(decode(static_cast<std::uint16_t>(c))));
      }
      return values;
    }();
    return all[code];
  }

  // The code of a value: the value in units of the last place of its binade, rounded by the FPU's
  // default mode (nearest even).
  static std::uint16_t encode(double value) {
    const int sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value)) return kQuietNan;
    const double magnitude = std::fabs(value);
    if (magnitude == 0) return static_cast<std::uint16_t>(sign);
    if (std::isinf(magnitude)) return static_cast<std::uint16_t>(sign | (kSpecial << kFraction));
    int exponent = std::ilogb(magnitude) + kBias;
    if (exponent < 1) exponent = 1;
    const double units = std::nearbyint(std::ldexp(magnitude, kBias + kFraction - exponent));
    // A subnormal has no implicit one to subtract; a carry out of the fraction moves to the next
    // exponent.
    const double code = units + static_cast<double>(exponent - 1) * (1 << kFraction);
    const double infinity = static_cast<double>(kSpecial) * (1 << kFraction);
    return static_cast<std::uint16_t>(sign | static_cast<int>(code < infinity ? code : infinity));
  }
};

// An 8-bit float of OCP, by the definition of its fields. Saturating.
template <int kFraction>
struct TinyFloat {
  static constexpr bool kInfinity = kFraction == 2;
  static constexpr int kBias = kInfinity ? 15 : 7;
  static constexpr std::uint8_t kQuietNan = kInfinity ? 0x7e : 0x7f;
  static double decode(std::uint8_t code) {
    const double sign = (code & 0x80) != 0 ? -1.0 : 1.0;
    const int magnitude = code & 0x7f;
    if (magnitude == 0x7f || (kInfinity && magnitude > 0x7c)) {
      return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
    }
    if (kInfinity && magnitude == 0x7c) return sign * std::numeric_limits<double>::infinity();
    const int exponent = magnitude >> kFraction, fraction = magnitude & ((1 << kFraction) - 1);
    const int significand = exponent == 0 ? fraction : fraction + (1 << kFraction);
    return sign * std::ldexp(significand, (exponent == 0 ? 1 : exponent) - kBias - kFraction);
  }
  static float decoded(std::uint8_t code) {
    static const std::vector<double> all = values(0x100);
    return static_cast<float>(all[code]);
  }
  // The nearest number; of two, the even one; beyond the largest, the largest.
  static std::uint8_t encode(double value) {
    if (std::isnan(value)) return kQuietNan;
    static const std::vector<double> numbers = values(kInfinity ? 0x7c : 0x7f);
    const double magnitude = std::fabs(value);
    const auto above = std::lower_bound(numbers.begin(), numbers.end(), magnitude);
    auto code = static_cast<int>(above - numbers.begin());
    if (above == numbers.end()) {
      --code;
    } else if (code > 0) {
      const double up = *above - magnitude, down = magnitude - above[-1];
      if (down < up || (down == up && code % 2 != 0)) --code;
    }
    return static_cast<std::uint8_t>(code | (std::signbit(value) ? 0x80 : 0));
  }

 private:
  static std::vector<double> values(int count) {
    std::vector<double> all;
    for (int code = 0; code < count; ++code) all.push_back(decode(static_cast<std::uint8_t>(code)));
    return all;
  }
};

template <class T>
struct Format;
template <>
struct Format<Float8E4M3> : TinyFloat<3> {};
template <>
struct Format<Float8E5M2> : TinyFloat<2> {};
template <>
struct Format<Half> : SixteenBits<10> {};
template <>
struct Format<BFloat16> : SixteenBits<7> {};

template <class T>
inline constexpr bool kIsSmallFloat = SmallFloat<T>;
template <class T>
inline constexpr bool kIsFloat = kIsSmallFloat<T> || std::is_floating_point_v<T>;

// The type that a fold accumulates in.
template <class T>
using Accumulator = std::conditional_t<kIsSmallFloat<T>, float,
                                       std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>>;

template <class T>
Accumulator<T> widen(T value) {
  if constexpr (kIsSmallFloat<T>) {
    return Format<T>::decoded(value.bits);
  } else {
    return static_cast<Accumulator<T>>(value);
  }
}

template <class T>
T narrow(Accumulator<T> value) {
  if constexpr (kIsSmallFloat<T>) {
    return T::from_bits(Format<T>::encode(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
bool is_nan(T value) {
  if constexpr (Complex<T>) {
    return std::isnan(value.real()) || std::isnan(value.imag());
  } else if constexpr (kIsFloat<T>) {
    return std::isnan(widen(value));
  } else {
    return false;
  }
}

template <class T>
T quiet_nan() {
  if constexpr (kIsSmallFloat<T>) {
    return T::from_bits(Format<T>::kQuietNan);
  } else {
    return std::numeric_limits<T>::quiet_NaN();
  }
}

// True if x comes before y; -0 comes before +0.
template <class T>
bool less(T x, T y) {
  if constexpr (kIsFloat<T>) {
    const auto a = widen(x);
    const auto b = widen(y);
    return a < b || (a == b && std::signbit(a) && !std::signbit(b));
  } else {
    return x < y;
  }
}

template <class T>
T extreme(ReduceOp op, const T* values, int count) {
  T best = values[0];
  for (int i = 0; i < count; ++i) {
    if constexpr (kIsFloat<T>) {
      if (is_nan(values[i])) return quiet_nan<T>();
    }
    if (op == ReduceOp::min ? less(values[i], best) : less(best, values[i])) best = values[i];
  }
  return best;
}

// Complex numbers by parts, without contraction and without special cases for infinities.
template <Complex T>
T reduce(ReduceOp op, const T* values, int count, int divisor) {
  T total = values[0];
  for (int i = 1; i < count; ++i) {
    const T x = total, y = values[i];
    if (op == ReduceOp::prod) {
      const volatile auto ac = x.real() * y.real(), bd = x.imag() * y.imag();
      const volatile auto ad = x.real() * y.imag(), bc = x.imag() * y.real();
      total = T(ac - bd, ad + bc);
    } else {
      total = T(x.real() + y.real(), x.imag() + y.imag());
    }
  }
  if (op != ReduceOp::avg || divisor == 0) return total;
  const auto by = static_cast<typename T::value_type>(divisor);
  return T(total.real() / by, total.imag() / by);
}

// Booleans.
template <class T>
requires std::is_same_v<T, Bool> T reduce(ReduceOp op, const T* values, int count, int) {
  int trues = 0;
  for (int i = 0; i < count; ++i) trues += values[i].byte;
  if (op == ReduceOp::bxor) return Bool(trues % 2 != 0);
  const bool all = op == ReduceOp::prod || op == ReduceOp::min || op == ReduceOp::band;
  return Bool(all ? trues == count : trues > 0);
}

// One element: values[0] op values[1] op ...
template <class T>
T reduce(ReduceOp op, const T* values, int count, int divisor) {
  if (count == 1 && (op != ReduceOp::avg || divisor <= 1)) return values[0];  // bits, not a number
  if (op == ReduceOp::min || op == ReduceOp::max) return extreme(op, values, count);
  using Total = Accumulator<T>;
  Total total = widen(values[0]);
  for (int i = 1; i < count; ++i) {
    const Total value = widen(values[i]);
    if (op == ReduceOp::sum || op == ReduceOp::avg) total += value;
    if (op == ReduceOp::prod) total *= value;
    if constexpr (std::is_integral_v<T>) {
      if (op == ReduceOp::band) total &= value;
      if (op == ReduceOp::bor) total |= value;
      if (op == ReduceOp::bxor) total ^= value;
    }
  }
  if (op != ReduceOp::avg || divisor == 0) return narrow<T>(total);
  if constexpr (std::is_integral_v<T>) {
    __extension__ using Wide = __int128;
    return static_cast<T>(static_cast<Wide>(narrow<T>(total)) / divisor);
  } else {
    return narrow<T>(total / static_cast<Total>(divisor));
  }
}

}  // namespace rankine::reference
