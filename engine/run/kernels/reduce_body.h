// This body defines the reduction kernels: sweep() makes one pass over memory. Sources give the
// registers that a fold combines, and a Put stores the results. Textual, like vector.h.
#pragma once

#include <type_traits>
#include <utility>

#include "engine/run/kernels/reduce.h"
#include "engine/run/kernels/vector.h"

namespace rankine {
namespace {

// Folds combine registers of one element type. A fold begins with a register (first()), adds the
// others (step()), and converts the total back to memory's format (last()). Signed integers occur
// only where the sign matters (min, max); elsewhere the unsigned type wraps correctly.

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

// Named pointers, so that they stay in registers. kCount is 1 or 2.
template <int kCount>
struct FewSources {
  const char *p0, *p1;

  RANKINE_INLINE explicit FewSources(const void* const* srcs)
      : p0(static_cast<const char*>(srcs[0])), p1(static_cast<const char*>(srcs[kCount - 1])) {}

  template <class F, class Load>
  RANKINE_INLINE typename F::Total fold(std::size_t at, Load get) const {
    typename F::Total total = F::first(get(p0 + at));
    if constexpr (kCount > 1) total = F::step(total, get(p1 + at));
    return total;
  }

  template <class F, std::size_t kRegisters>
  RANKINE_INLINE void fold_many(typename F::Total* totals, std::size_t at) const {
    using Register = typename F::Register;
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRegisters; ++r) {
      totals[r] = fold<F>(at + r * sizeof(Register), load<Register>);
    }
  }
};

// If there are three or more vectors of at least kFar bytes, they are fetched kAhead bytes early:
// the prefetcher cannot follow that many streams, and 16-bit floats keep the core too busy to run
// ahead (four bf16 sources in L3: 27 -> 60 GB/s). In L1 it would cost 15 %.
inline constexpr std::size_t kFar = std::size_t{128} << 10;
inline constexpr std::size_t kAhead = 1024;

template <bool kMayFetch>
struct AnySources {
  const void* const* srcs;
  int count;
  bool fetching = false;

  RANKINE_INLINE const char* source(int s) const { return static_cast<const char*>(srcs[s]); }

  template <class F, class Load>
  RANKINE_INLINE typename F::Total fold(std::size_t at, Load get) const {
    typename F::Total total = F::first(get(source(0) + at));
    for (int s = 1; s < count; ++s) total = F::step(total, get(source(s) + at));
    return total;
  }

  template <class F, std::size_t kRegisters>
  RANKINE_INLINE void fold_many(typename F::Total* totals, std::size_t at) const {
    using Register = typename F::Register;
    const char* from = source(0) + at;
    fetch<kRegisters * sizeof(Register)>(from);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRegisters; ++r) {
      totals[r] = F::first(load<Register>(from + r * sizeof(Register)));
    }
    for (int s = 1; s < count; ++s) {
      from = source(s) + at;
      fetch<kRegisters * sizeof(Register)>(from);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < kRegisters; ++r) {
        totals[r] = F::step(totals[r], load<Register>(from + r * sizeof(Register)));
      }
    }
  }

 private:
  // Runs past the end by kAhead; a prefetch never faults.
  template <std::size_t kBytes>
  RANKINE_INLINE void fetch(const char* from) const {
    if constexpr (kMayFetch) {
      if (!fetching) return;
#pragma GCC unroll 8
      for (std::size_t b = 0; b < kBytes; b += 64) __builtin_prefetch(from + kAhead + b);
    }
  }
};

// Bytes to the next multiple of the register that F stores.
template <class F>
RANKINE_INLINE std::size_t to_alignment(const void* p) {
  return (0 - reinterpret_cast<std::uintptr_t>(p)) % sizeof(typename F::Register);
}

// True if alignment is reached at a whole element.
template <class F>
RANKINE_INLINE bool can_align(const void* dst) {
  return to_alignment<F>(dst) % sizeof(typename F::Element) == 0;
}

// Handles less than a register. Sizes of a few elements get plain loads and stores: unlike masked
// ones, these are forwarded from store to load.
template <class F, class Sources, class Finish, class Put>
RANKINE_INLINE void sweep_partial(char* dst, Sources sources, std::size_t bytes, Finish finish,
                                  Put put) {
  using Register = typename F::Register;
  const auto exact = [&]<std::size_t kBytes>() {
    if constexpr (kBytes < sizeof(Register)) {
      const auto total = sources.template fold<F>(0, Target::load_exact<kBytes, Register>);
      put.each(dst, [value = F::last(finish(total))](char* to) {
        Target::store_exact<kBytes, Register>(to, value);
      });
    }
  };
  switch (bytes) {
    case 0:
      return;
    case 4:
      return exact.template operator()<4>();
    case 8:
      return exact.template operator()<8>();
    case 16:
      return exact.template operator()<16>();
    case 32:
      return exact.template operator()<32>();
    default:
      const auto total = sources.template fold<F>(
          0, [bytes](const char* p) { return Target::load_partial<Register>(p, bytes); });
      put.each(dst, [value = F::last(finish(total)), bytes](char* to) {
        Target::store_partial<Register>(to, value, bytes);
      });
  }
}

// Registers per turn. More would help three and more sources in L1 (by 5 %) and hurt them in L2 (by
// 20 to 50 %), where short visits to each source suit the prefetcher.
inline constexpr std::size_t kRegisters = 2;

// From this many registers on, one overlapping register at the start pays, to align the stores.
inline constexpr std::size_t kAlignFrom = 16;

// Temporal stores the results in one vector: edge() for the ends, which overlap their neighbours,
// operator() for the rest.
struct Temporal {
  template <class Put>
  RANKINE_INLINE void each(char* to, Put one) const {
    one(to);
  }
  template <class Register>
  RANKINE_INLINE void operator()(char* to, Register value) const {
    store(to, value);
  }
  template <class Register>
  RANKINE_INLINE void edge(char* to, Register value) const {
    store(to, value);
  }
  RANKINE_INLINE void done() const {}
};

// Spread stores the results in one or several vectors, past the caches or not. The choice is made
// per register, so that far vectors need only one body: they wait for memory anyway.
struct Spread {
  char* first;
  void* const* all;
  int count;
  std::ptrdiff_t second;  // distance from the first; the others are looked up
  bool streaming;

  RANKINE_INLINE Spread(void* const* dsts, int n_dsts, bool stream)
      : first(static_cast<char*>(dsts[0])),
        all(dsts),
        count(n_dsts),
        second(n_dsts > 1 ? static_cast<char*>(dsts[1]) - first : 0),
        streaming(stream) {}

  template <class Put>
  RANKINE_INLINE void each(char* to, Put one) const {
    one(to);
    if (count == 1) return;
    one(to + second);
    for (int d = 2; d < count; ++d) one(static_cast<char*>(all[d]) + (to - first));
  }
  template <class Register>
  RANKINE_INLINE void operator()(char* to, Register value) const {
    each(to, [&](char* at) {
      if (streaming) {
        Target::stream(at, value);
      } else {
        store(at, value);
      }
    });
  }
  template <class Register>
  RANKINE_INLINE void edge(char* to, Register value) const {
    each(to, [&](char* at) { store(at, value); });
  }
  RANKINE_INLINE void done() const {
    if (streaming) Target::fence();
  }
};

// An end that does not fill a register overlaps its neighbour instead of being masked. Both ends
// are folded before any store and stored after all others, so a destination may be one of the
// sources.
template <class F, class Sources, class Finish, class Put>
RANKINE_INLINE void sweep(char* dst, Sources sources, std::size_t bytes, Finish finish, Put put) {
  using Register = typename F::Register;
  constexpr std::size_t kBytes = sizeof(Register);
  if (bytes < kBytes) return sweep_partial<F>(dst, sources, bytes, finish, put);
  const auto one = [&](std::size_t at) {
    return F::last(finish(sources.template fold<F>(at, load<Register>)));
  };
  const std::size_t end = bytes - kBytes;
  const Register tail = one(end);
  Register head = tail;
  std::size_t begin = 0;
  if (bytes >= kAlignFrom * kBytes) {
    begin = can_align<F>(dst) ? to_alignment<F>(dst) : 0;
    if (begin != 0) head = one(0);
  }
  std::size_t at = begin;
  for (; at + kRegisters * kBytes <= end; at += kRegisters * kBytes) {
    typename F::Total totals[kRegisters];
    sources.template fold_many<F, kRegisters>(totals, at);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRegisters; ++r) {
      put(dst + at + r * kBytes, F::last(finish(totals[r])));
    }
  }
  for (; at < end; at += kBytes) put(dst + at, one(at));
  if (begin != 0) put.edge(dst, head);
  put.edge(dst + end, tail);
  put.done();
}

}  // namespace

// The kernels of one instruction set, made from its Target (vector.h explains why nothing here has
// external linkage): for each type and operation a sweep() with its fold and finish.

namespace {

// Streaming needs every destination aligned alike, and a length worth a fence; otherwise ordinary
// stores are used.
template <class F>
RANKINE_INLINE bool can_stream(void* const* dsts, int n_dsts, std::size_t bytes) {
  if (bytes < kAlignFrom * sizeof(typename F::Register)) return false;
  for (int d = 0; d < n_dsts; ++d) {
    if (!can_align<F>(dsts[d]) || to_alignment<F>(dsts[d]) != to_alignment<F>(dsts[0])) {
      return false;
    }
  }
  return true;
}

void copy(void* dst, const void* src, std::size_t bytes) noexcept {
  if (dst == src || bytes == 0) return;
  using F = Fold<std::uint8_t, ReduceOp::bor>;
  sweep<F>(static_cast<char*>(dst), FewSources<1>(&src), bytes, Keep{}, Temporal{});
}

inline void copy_streaming(void* dst, const void* src, std::size_t bytes) noexcept {
  if (dst == src) return;
  using F = Fold<std::uint8_t, ReduceOp::bor>;
  sweep<F>(static_cast<char*>(dst), FewSources<1>(&src), bytes, Keep{},
           Spread(&dst, 1, can_stream<F>(&dst, 1, bytes)));
}

// Any number of sources: near ones with plain code; prefetches for far ones, and for results that
// go to several places or past the caches.
template <class F, class Finish>
RANKINE_INLINE void sweep_any(const void* const* srcs, int n_srcs, std::size_t bytes, Finish finish,
                              Spread to) {
  const bool fetching = n_srcs > 2 && bytes >= kFar;
  if (fetching || to.streaming || to.count > 1) {
    sweep<F>(to.first, AnySources<true>{srcs, n_srcs, fetching}, bytes, finish, to);
  } else {
    sweep<F>(to.first, AnySources<false>{srcs, n_srcs}, bytes, finish, Temporal{});
  }
}

template <class F>
[[gnu::noinline]] void reduce_any(const void* const* srcs, int n_srcs, std::size_t bytes,
                                  Spread to) noexcept {
  sweep_any<F>(srcs, n_srcs, bytes, Keep{}, to);
}

template <class F>
void reduce(void* dst, const void* const* srcs, int n_srcs, std::size_t count, int) noexcept {
  const std::size_t bytes = count * sizeof(typename F::Element);
  if (n_srcs == 2) {
    return sweep<F>(static_cast<char*>(dst), FewSources<2>(srcs), bytes, Keep{}, Temporal{});
  }
  if (n_srcs == 1) return copy(dst, srcs[0], bytes);
  reduce_any<F>(srcs, n_srcs, bytes, Spread(&dst, 1, false));
}

template <class F>
void spread(void* const* dsts, int n_dsts, const void* const* srcs, int n_srcs, std::size_t count,
            int, bool streaming) noexcept {
  using Copy = Fold<std::uint8_t, ReduceOp::bor>;
  const std::size_t bytes = count * sizeof(typename F::Element);
  if constexpr (!std::is_same_v<F, Copy>) {
    if (n_srcs == 1) return spread<Copy>(dsts, n_dsts, srcs, 1, bytes, 0, streaming);
  }
  reduce_any<F>(srcs, n_srcs, bytes,
                Spread(dsts, n_dsts, streaming && can_stream<F>(dsts, n_dsts, bytes)));
}

// The type in which floats of type T are added up.
template <class T>
using AccumulatorOf =
    std::conditional_t<std::is_same_v<T, double> || std::is_same_v<T, ComplexCode<double>>, double,
                       float>;

template <class T>
[[gnu::noinline]] void divided_sum(const void* const* srcs, int n_srcs, std::size_t bytes,
                                   int divisor, Spread to) noexcept {
  using F = typename FoldFor<T, ReduceOp::sum>::type;
  if constexpr (std::is_integral_v<T>) {
    sweep_any<F>(srcs, n_srcs, bytes, DivideInteger<T>(divisor), to);
  } else {
    using Float = AccumulatorOf<T>;
    if ((divisor & (divisor - 1)) == 0) {
      sweep_any<F>(srcs, n_srcs, bytes, ScaleFloat<Float>{Float{1} / static_cast<Float>(divisor)},
                   to);
    } else {
      sweep_any<F>(srcs, n_srcs, bytes, DivideFloat<Float>(divisor), to);
    }
  }
}

template <class T>
void average(void* dst, const void* const* srcs, int n_srcs, std::size_t count,
             int divisor) noexcept {
  using F = typename FoldFor<T, ReduceOp::sum>::type;
  if (divisor <= 1) return reduce<F>(dst, srcs, n_srcs, count, 0);
  divided_sum<T>(srcs, n_srcs, count * sizeof(T), divisor, Spread(&dst, 1, false));
}

template <class T>
void spread_average(void* const* dsts, int n_dsts, const void* const* srcs, int n_srcs,
                    std::size_t count, int divisor, bool streaming) noexcept {
  using F = typename FoldFor<T, ReduceOp::sum>::type;
  if (divisor <= 1) return spread<F>(dsts, n_dsts, srcs, n_srcs, count, 0, streaming);
  const std::size_t bytes = count * sizeof(T);
  divided_sum<T>(srcs, n_srcs, bytes, divisor,
                 Spread(dsts, n_dsts, streaming && can_stream<F>(dsts, n_dsts, bytes)));
}

template <DataType kType, ReduceOp kOp, class Kernel>
constexpr Kernel kernel() {
  using T = typename ElementOf<kType>::type;
  constexpr bool kSpreads = std::is_same_v<Kernel, SpreadKernel>;
  if constexpr (!supports(kType, kOp)) {
    return nullptr;
  } else if constexpr (kOp == ReduceOp::avg) {
    if constexpr (kSpreads) {
      return spread_average<T>;
    } else {
      return average<T>;
    }
  } else {
    using F = typename FoldFor<T, kOp>::type;
    if constexpr (kSpreads) {
      return spread<F>;
    } else {
      return reduce<F>;
    }
  }
}

// Multiplies a rank's input by its own factor.
template <class T>
struct Multiply {
  Vec<T> factor;
  RANKINE_INLINE Vec<T> operator()(Vec<T> total) const { return total * factor; }
};
template <class T>
struct MultiplyComplex {
  Vec<T> factor;
  RANKINE_INLINE Vec<T> operator()(Vec<T> total) const { return complex_product<T>(factor, total); }
};

template <class T>
void scale(void* dst, const void* src, std::size_t count, const void* by) noexcept {
  using F = typename FoldFor<T, ReduceOp::sum>::type;
  const auto sweep_with = [&](auto finish) {
    sweep<F>(static_cast<char*>(dst), FewSources<1>(&src), count * sizeof(T), finish, Temporal{});
  };
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    sweep_with(Multiply<U>{splat(load<U>(static_cast<const char*>(by)))});
  } else if constexpr (std::is_same_v<T, ComplexCode<float>> ||
                       std::is_same_v<T, ComplexCode<double>>) {
    using Part = AccumulatorOf<T>;
    const auto factor = load<T>(static_cast<const char*>(by));
    Vec<Part> all{};
    for (std::size_t i = 0; i < kWidth / sizeof(Part); i += 2) {
      all[i] = factor.real;
      all[i + 1] = factor.imaginary;
    }
    sweep_with(MultiplyComplex<Part>{all});
  } else {
    using Float = AccumulatorOf<T>;
    const auto factor = load<Float>(static_cast<const char*>(by));
    // round_bfloat() relies on a NaN's payload.
    sweep_with(ScaleFloat<Float>{factor == factor ? factor : kNan<Float>});
  }
}

template <DataType kType>
constexpr ScaleKernel scale_kernel() {
  if constexpr (kType == DataType::b8) {
    return nullptr;
  } else {
    return scale<typename ElementOf<kType>::type>;
  }
}

// Each source is multiplied by its weight; the sums begin at 0.
struct WeightedSources {
  const void* const* srcs;
  const float* weights;
  int count;

  template <class F, class Load>
  RANKINE_INLINE typename F::Total fold(std::size_t at, Load get) const {
    typename F::Total total{};
    for (int s = 0; s < count; ++s) total = step<F>(total, get(source(s) + at), s);
    return total;
  }
  template <class F, std::size_t kRegisters>
  RANKINE_INLINE void fold_many(typename F::Total* totals, std::size_t at) const {
    using Register = typename F::Register;
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRegisters; ++r) totals[r] = typename F::Total{};
    for (int s = 0; s < count; ++s) {
      const char* from = source(s) + at;
#pragma GCC unroll 8
      for (std::size_t r = 0; r < kRegisters; ++r) {
        totals[r] = step<F>(totals[r], load<Register>(from + r * sizeof(Register)), s);
      }
    }
  }

 private:
  RANKINE_INLINE const char* source(int s) const { return static_cast<const char*>(srcs[s]); }
  template <class F>
  RANKINE_INLINE typename F::Total step(typename F::Total total, typename F::Register x,
                                        int s) const {
    return combine_floats<ReduceOp::sum>(total, ScaleFloat<float>{weights[s]}(F::first(x)));
  }
};

template <class T>
void weigh(void* dst, const void* const* srcs, const float* weights, int n_srcs,
           std::size_t count) noexcept {
  using F = typename FoldFor<T, ReduceOp::sum>::type;
  sweep<F>(static_cast<char*>(dst), WeightedSources{srcs, weights, n_srcs}, count * sizeof(T),
           Keep{}, Temporal{});
}

template <DataType kType, class Kernel>
constexpr void fill_row(Kernel (&row)[kReduceOps]) {
  row[0] = kernel<kType, ReduceOp::sum, Kernel>();
  row[1] = kernel<kType, ReduceOp::prod, Kernel>();
  row[2] = kernel<kType, ReduceOp::min, Kernel>();
  row[3] = kernel<kType, ReduceOp::max, Kernel>();
  row[4] = kernel<kType, ReduceOp::avg, Kernel>();
  row[5] = kernel<kType, ReduceOp::band, Kernel>();
  row[6] = kernel<kType, ReduceOp::bor, Kernel>();
  row[7] = kernel<kType, ReduceOp::bxor, Kernel>();
}

template <class Kernel>
constexpr void fill(Kernel (&rows)[kDataTypes][kReduceOps]) {
  fill_row<DataType::f32>(rows[0]);
  fill_row<DataType::f64>(rows[1]);
  fill_row<DataType::f16>(rows[2]);
  fill_row<DataType::bf16>(rows[3]);
  fill_row<DataType::i8>(rows[4]);
  fill_row<DataType::u8>(rows[5]);
  fill_row<DataType::i32>(rows[6]);
  fill_row<DataType::u32>(rows[7]);
  fill_row<DataType::i64>(rows[8]);
  fill_row<DataType::u64>(rows[9]);
  fill_row<DataType::f8e4m3>(rows[10]);
  fill_row<DataType::f8e5m2>(rows[11]);
  fill_row<DataType::b8>(rows[12]);
  fill_row<DataType::c64>(rows[13]);
  fill_row<DataType::c128>(rows[14]);
}

template <int... kTypes>
constexpr void fill_scales(ScaleKernel (&row)[kDataTypes], std::integer_sequence<int, kTypes...>) {
  ((row[kTypes] = scale_kernel<static_cast<DataType>(kTypes)>()), ...);
}

constexpr void fill_weighted(WeightedKernel (&row)[kDataTypes]) {
  row[0] = weigh<float>;
  row[2] = weigh<HalfCode>;
  row[3] = weigh<BFloatCode>;
  row[10] = weigh<Float8Code<3>>;
  row[11] = weigh<Float8Code<2>>;
}

// The table of another instruction set, with sums and products of bfloat16 of this one.
inline KernelTable with_own_bfloats(const KernelTable& others) {
  KernelTable mine = others;
  constexpr int kRow = static_cast<int>(DataType::bf16);
  fill_row<DataType::bf16>(mine.reduce[kRow]);
  fill_row<DataType::bf16>(mine.spread[kRow]);
  return mine;
}

}  // namespace
}  // namespace rankine
