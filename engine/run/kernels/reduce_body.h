// The kernels of one instruction set, from its Target (see vector.h, which also says why nothing
// here has external linkage): for each type and operation a sweep() with its fold and finish.
#pragma once

#include <type_traits>
#include <utility>

#include "engine/run/kernels/kernel_table.h"
#include "engine/run/kernels/sweep.h"

namespace rankine {
namespace {

// Streaming needs alignment of every destination and a length worth a fence; without them ordinary
// stores do.
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

void copy_streaming(void* dst, const void* src, std::size_t bytes) noexcept {
  if (dst == src) return;
  using F = Fold<std::uint8_t, ReduceOp::bor>;
  sweep<F>(static_cast<char*>(dst), FewSources<1>(&src), bytes, Keep{},
           Spread(&dst, 1, can_stream<F>(&dst, 1, bytes)));
}

// Any number of sources: near ones with plain code; far ones with prefetches, and everything that
// goes to several places or past the caches.
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

// What floats of type T are added up in.
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

// What each rank's own factor does to its input.
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
    // round_bfloat() counts on a NaN's payload.
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

consteval KernelTable make_table() {
  KernelTable table{};
  fill(table.reduce);
  fill(table.spread);
  fill_scales(table.scale, std::make_integer_sequence<int, kDataTypes>());
  table.copy = copy;
  table.copy_streaming = copy_streaming;
  return table;
}

}  // namespace
}  // namespace rankine
