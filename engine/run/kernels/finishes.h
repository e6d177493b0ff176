// What happens to a total before it goes back to memory's format: nothing, or avg's division, or a
// factor. Textual, like vector.h.
#pragma once

#include "engine/run/kernels/folds.h"

namespace rankine {
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

// For avg by a power of two: the reciprocal is exact, so the product rounds the same number as the
// quotient.
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
