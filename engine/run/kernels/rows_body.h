// The row, conversion and packing kernels of one instruction set (reduce.h), and the table of all
// its kernels. Textual, like vector.h.
//
// A row passes through `scratch` as floats, which the first-level cache holds: one pass to load,
// add and sum up, one for the deviation of a layer norm, one to normalise, activate and store, and
// for i8 and f8e4m3 one more when the largest element is known.
#pragma once

#include <type_traits>

#include "engine/run/kernels/reduce_body.h"

namespace rankine {
namespace {

constexpr std::size_t kLanes = kWidth / sizeof(float);
constexpr std::size_t kGroup = 64;  // partial sums of a row
constexpr std::size_t kVectors = kGroup / kLanes;
using F = Vec<float>;
using Words = Vec<std::uint32_t>;
using Ints = Vec<std::int32_t>;

template <DataType kType>
inline constexpr std::size_t kBytes = kType == DataType::f32                              ? 4
                                      : kType == DataType::f16 || kType == DataType::bf16 ? 2
                                                                                          : 1;

template <DataType kType>
RANKINE_INLINE F widened(const char* from) {
  if constexpr (kType == DataType::f32) {
    return load<F>(from);
  } else {
    if constexpr (kType == DataType::f16) return Target::load_half(from);
    if constexpr (kType == DataType::i8) {
      return __builtin_convertvector(as<Ints>(Target::load_8(from) << 24) >> 24, F);
    }
    if constexpr (kType == DataType::f8e4m3) return decode_float8<3>(Target::load_8(from));
    if constexpr (kType == DataType::f8e5m2) return decode_float8<2>(Target::load_8(from));
    return as<F>(Target::load_16(from) << 16);
  }
}

// The result is in the low bits of each lane. The input may be any NaN, so it is tested.
template <DataType kType>
RANKINE_INLINE Words narrowed(F x) {
  if constexpr (kType == DataType::f16) return encode_half(x);
  if constexpr (kType == DataType::f8e4m3) return encode_float8<3>(x);
  if constexpr (kType == DataType::f8e5m2) return encode_float8<2>(x);
  if constexpr (kType == DataType::bf16) {
    const Words rounded = x != x ? as<Words>(x) | 0x400000U : round_bfloat(x);
    return rounded >> 16;
  }
  // i8: adding 1.5 * 2^23 leaves the rounded integer in the low bits.
  return as<Words>(x + 0x1.8p23F);
}

template <DataType kType>
RANKINE_INLINE void store_narrowed(char* to, F x) {
  if constexpr (kType == DataType::f32) {
    store(to, x);
  } else if constexpr (kBytes<kType> == 2) {
    Target::store_16(to, narrowed<kType>(x));
  } else {
    Target::store_8(to, narrowed<kType>(x));
  }
}

// Loads n elements, at most a whole register, and fills up with zeros.
template <DataType kType>
RANKINE_INLINE F load_some(const void* row, std::size_t at, std::size_t n) {
  const char* from = static_cast<const char*>(row) + at * kBytes<kType>;
  if (n == kLanes) return widened<kType>(from);
  char all[kWidth] = {};
  __builtin_memcpy(all, from, n * kBytes<kType>);
  return widened<kType>(all);
}

template <DataType kType>
RANKINE_INLINE void store_some(void* row, std::size_t at, std::size_t n, F x) {
  char* to = static_cast<char*>(row) + at * kBytes<kType>;
  if (n == kLanes) return store_narrowed<kType>(to, x);
  char all[kWidth];
  store_narrowed<kType>(all, x);
  __builtin_memcpy(to, all, n * kBytes<kType>);
}

// Calls visit(k, at, n) for each register of a row: k is its number in its group, at its first
// element, n its number of elements.
template <class Visit>
RANKINE_INLINE void each_register(std::size_t elements, const Visit& visit) {
  std::size_t i = 0;
  for (; i + kGroup <= elements; i += kGroup) {
#pragma GCC unroll 16
    for (std::size_t k = 0; k < kVectors; ++k) visit(k, i + k * kLanes, kLanes);
  }
  for (std::size_t k = 0; i < elements; ++k, i += kLanes) {
    visit(k, i, elements - i < kLanes ? elements - i : kLanes);
  }
}

struct Sums {
  F part[kVectors] = {};

  RANKINE_INLINE float total() const {
    float sums[kGroup];
    __builtin_memcpy(sums, part, sizeof(sums));
    for (std::size_t half = kGroup / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
    }
    return sums[0];
  }
};

// Cephes' expf, except that subnormal results are 0.
RANKINE_INLINE F exp_of(F x) {
  constexpr float kRound = 0x1.8p23F;
  const F shifted = x * 1.44269504F + kRound;
  const F n = shifted - kRound;
  const F r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  F y = r * 1.9875691500e-4F + 1.3981999507e-3F;
  y = y * r + 8.3334519073e-3F;
  y = y * r + 4.1665795894e-2F;
  y = y * r + 1.6666665459e-1F;
  y = y * r + 5.0000001201e-1F;
  y = y * (r * r) + r + 1.0F;
  const Words power = (as<Words>(shifted) - __builtin_bit_cast(std::uint32_t, kRound)) << 23;
  F result = as<F>(as<Words>(y) + power);
  result = x > 88.7228F ? splat(__builtin_inff()) : result;
  result = x < -87.3365F ? F{} : result;
  return x != x ? x : result;
}

RANKINE_INLINE F activated(F x, Activation activation) {
  if (activation == Activation::relu) return x < 0.0F ? F{} : x;
  if (activation == Activation::silu) return x / (exp_of(-x) + 1.0F);
  if (activation == Activation::gelu_tanh) {
    const F twice_u = (x + x * x * x * 0.044715F) * (2 * 0.797884561F);
    return x / (exp_of(-twice_u) + 1.0F);
  }
  return x;
}

template <DataType kType, DataType kOut>
struct Rows {
  static constexpr bool kScales = kOut == DataType::i8 || kOut == DataType::f8e4m3;
  static constexpr float kLargest = kOut == DataType::i8 ? 127.0F : 448.0F;

  // Loads a row and adds bias and residual. Returns the sum of its elements, or of their squares.
  static float load_row(const RowWork& work, const void* row, void* residual) {
    const bool squares = work.norm == Norm::rms;
    const void* const bias = work.bias;
    float* const scratch = work.scratch;
    Sums sums;
    each_register(
        work.elements, [&](std::size_t k, std::size_t at, std::size_t n)
                           __attribute__((always_inline)) {
                             F x = load_some<kType>(row, at, n);
                             if (bias != nullptr) x += load_some<kType>(bias, at, n);
                             if (residual != nullptr) {
                               x += load_some<kType>(residual, at, n);
                               store_some<kType>(residual, at, n, x);
                               if constexpr (kType == DataType::f16)
                                 x = decode_half(narrowed<kType>(x));
                               if constexpr (kType == DataType::bf16)
                                 x = as<F>(narrowed<kType>(x) << 16);
                             }
                             store(reinterpret_cast<char*>(scratch + at), x);
                             sums.part[k] += squares ? x * x : x;
                           });
    return sums.total();
  }

  static float deviation(const RowWork& work, float mean) {
    for (std::size_t i = work.elements; i % kLanes != 0; ++i) work.scratch[i] = mean;
    Sums sums;
    each_register(
        work.elements, [&](std::size_t k, std::size_t at,
                           std::size_t) __attribute__((always_inline)) {
          const F x = load<F>(reinterpret_cast<const char*>(work.scratch + at)) - mean;
          sums.part[k] += x * x;
        });
    return sums.total();
  }

  // Bits of the largest magnitude; a NaN's bits exceed those of all numbers.
  struct Largest {
    Ints of_lane{};

    std::int32_t bits() const {
      std::int32_t most = 0;
      for (std::size_t i = 0; i < kLanes; ++i) most = of_lane[i] > most ? of_lane[i] : most;
      return most;
    }
  };

  // Norm and activation. Stores to `out`, or back to scratch if the row is scaled afterwards.
  static std::int32_t bend(const RowWork& work, float sum, void* out) {
    const auto count = static_cast<float>(work.elements);
    const float mean = work.norm == Norm::layer ? sum / count : 0.0F;
    float factor = 1.0F;
    if (work.norm != Norm::none) {
      const float squares = work.norm == Norm::layer ? deviation(work, mean) : sum;
      factor = 1.0F / __builtin_sqrtf(squares / count + work.epsilon);
    }
    const bool norms = work.norm != Norm::none;
    const void *const weight = work.weight, *const shift = work.shift;
    float* const scratch = work.scratch;
    const Activation activation = work.activation;
    Largest largest;
    each_register(
        work.elements, [&](std::size_t, std::size_t at,
                           std::size_t n) __attribute__((always_inline)) {
          F x = load<F>(reinterpret_cast<const char*>(scratch + at));
          if (norms) {
            x = (x - mean) * factor;
            if (weight != nullptr) x *= load_some<kType>(weight, at, n);
            if (shift != nullptr) x += load_some<kType>(shift, at, n);
          }
          x = activated(x, activation);
          if constexpr (kScales) {
            store(reinterpret_cast<char*>(scratch + at), x);
            Ints magnitude = as<Ints>(x) & 0x7fffffff;
            for (std::size_t i = n; i < kLanes; ++i) magnitude[i] = 0;
            largest.of_lane = magnitude > largest.of_lane ? magnitude : largest.of_lane;
          } else {
            store_some<kOut>(out, at, n, x);
          }
        });
    return largest.bits();
  }

  // Scales a row into `out` and returns the row's scale.
  static float scale_row(const RowWork& work, std::int32_t largest_bits, void* out) {
    const float largest = __builtin_bit_cast(float, largest_bits);
    const bool is_number = largest_bits < 0x7f800000;
    if (!is_number || largest <= 0x1p-100F) {
      __builtin_memset(out, 0, work.elements);
      return is_number ? 0.0F : largest;
    }
    const float factor = kLargest / largest;
    each_register(
        work.elements, [&](std::size_t, std::size_t at, std::size_t n)
                           __attribute__((always_inline)) {
                             const F x = load<F>(reinterpret_cast<const char*>(work.scratch + at));
                             store_some<kOut>(out, at, n, x * factor);
                           });
    return largest / kLargest;
  }

  static void run(const RowWork& work) noexcept {
    const auto* row = static_cast<const char*>(work.rows);
    auto* residual = static_cast<char*>(work.residual);
    auto* out = static_cast<char*>(work.out);
    for (std::size_t r = 0; r < work.count; ++r) {
      const float sum = load_row(work, row, residual);
      if (out != nullptr) {
        const std::int32_t largest = bend(work, sum, out);
        if constexpr (kScales) {
          const float scale = scale_row(work, largest, out);
          if (work.scales != nullptr) work.scales[r] = scale;
        }
        out += work.elements * kBytes<kOut>;
      }
      row += work.elements * kBytes<kType>;
      if (residual != nullptr) residual += work.elements * kBytes<kType>;
    }
  }
};

template <DataType kType>
RowKernel kernel_to(DataType out) noexcept {
  switch (out) {
    case DataType::f32:
      return Rows<kType, DataType::f32>::run;
    case DataType::f16:
      return Rows<kType, DataType::f16>::run;
    case DataType::bf16:
      return Rows<kType, DataType::bf16>::run;
    case DataType::i8:
      return Rows<kType, DataType::i8>::run;
    case DataType::f8e4m3:
      return Rows<kType, DataType::f8e4m3>::run;
    default:
      return nullptr;
  }
}

RowKernel kernel_of(DataType type, DataType out) noexcept {
  switch (type) {
    case DataType::f32:
      return kernel_to<DataType::f32>(out);
    case DataType::f16:
      return kernel_to<DataType::f16>(out);
    case DataType::bf16:
      return kernel_to<DataType::bf16>(out);
    default:
      return nullptr;
  }
}

template <DataType kFrom, DataType kTo>
void convert(void* dst, const void* src, std::size_t count) noexcept {
  each_register(
      count, [&](std::size_t, std::size_t at, std::size_t n) __attribute__((always_inline)) {
        store_some<kTo>(dst, at, n, load_some<kFrom>(src, at, n));
      });
}

template <DataType kType>
constexpr Conversions conversions() {
  return {convert<kType, DataType::f32>, convert<DataType::f32, kType>};
}

Conversions conversions_of(DataType type) noexcept {
  switch (type) {
    case DataType::f16:
      return conversions<DataType::f16>();
    case DataType::bf16:
      return conversions<DataType::bf16>();
    case DataType::f8e4m3:
      return conversions<DataType::f8e4m3>();
    case DataType::f8e5m2:
      return conversions<DataType::f8e5m2>();
    default:
      return {};
  }
}

template <DataType kType, DataType kAs>
struct Packed {
  static constexpr float kLargest = kAs == DataType::i8 ? 127.0F : 448.0F;

  // Bits of the largest magnitude; a NaN's bits exceed those of all numbers.
  RANKINE_INLINE static std::int32_t largest_bits(const char* from, std::size_t n) {
    Ints most[2] = {};
    each_register(
        n, [&](std::size_t k, std::size_t at, std::size_t some) __attribute__((always_inline)) {
          const Ints magnitude = as<Ints>(load_some<kType>(from, at, some)) & 0x7fffffff;
          Ints& all = most[k % 2];
          all = magnitude > all ? magnitude : all;
        });
    using Four = Vec<std::int32_t, 16>;
    constexpr std::size_t kFours = 2 * kWidth / sizeof(Four);
    Four parts[kFours];
    __builtin_memcpy(parts, most, sizeof(most));
    for (std::size_t i = 1; i < kFours; ++i) {
      parts[0] = parts[i] > parts[0] ? parts[i] : parts[0];
    }
    std::int32_t bits = 0;
    for (int i = 0; i < 4; ++i) bits = parts[0][i] > bits ? parts[0][i] : bits;
    return bits;
  }

  static void pack(const PackedBlocks& to, const void* src, std::size_t count, std::size_t block,
                   std::size_t blocks) noexcept {
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::size_t first = b * block < count ? b * block : count;
      std::size_t n = count - first < block ? count - first : block;
      const char* const from = static_cast<const char*>(src) + first * kBytes<kType>;
      std::byte* const bytes = to.bytes + b * block;
      const std::int32_t bits = largest_bits(from, n);
      float scale = __builtin_nanf("");
      if (bits < 0x7f800000) {
        scale = __builtin_bit_cast(float, bits) * (1.0F / kLargest);
        scale = scale > 0x1p-126F ? scale : 0x1p-126F;
        const float factor = 1.0F / scale;
        each_register(
            n, [&](std::size_t, std::size_t at, std::size_t some) __attribute__((always_inline)) {
              store_some<kAs>(bytes, at, some, load_some<kType>(from, at, some) * factor);
            });
      } else {
        n = 0;
      }
      __builtin_memset(bytes + n, 0, block - n);
      __builtin_memcpy(to.scales + b * sizeof(scale), &scale, sizeof(scale));
    }
  }

  static void unpack(void* dst, const PackedBlocks& first, std::size_t stride, int n_srcs,
                     std::size_t count, std::size_t block) noexcept {
    for (std::size_t b = 0; b * block < count; ++b) {
      const std::size_t done = b * block, n = count - done < block ? count - done : block;
      char* const to = static_cast<char*>(dst) + done * kBytes<kType>;
      each_register(
          n, [&](std::size_t, std::size_t at, std::size_t some) __attribute__((always_inline)) {
            F sum{};
            for (std::size_t s = 0; s < static_cast<std::size_t>(n_srcs); ++s) {
              float scale;
              __builtin_memcpy(&scale, first.scales + s * stride + b * sizeof(scale),
                               sizeof(scale));
              sum += load_some<kAs>(first.bytes + s * stride + done, at, some) * scale;
            }
            store_some<kType>(to, at, some, sum);
          });
    }
  }
};

template <DataType kType>
Packing packing_as(DataType as) noexcept {
  using I8 = Packed<kType, DataType::i8>;
  using F8 = Packed<kType, DataType::f8e4m3>;
  if (as == DataType::i8) return {I8::pack, I8::unpack};
  if (as == DataType::f8e4m3) return {F8::pack, F8::unpack};
  return {};
}

Packing packing_of(DataType type, DataType as) noexcept {
  switch (type) {
    case DataType::f32:
      return packing_as<DataType::f32>(as);
    case DataType::f16:
      return packing_as<DataType::f16>(as);
    case DataType::bf16:
      return packing_as<DataType::bf16>(as);
    default:
      return {};
  }
}

consteval KernelTable make_table() {
  KernelTable table{};
  fill(table.reduce);
  fill(table.spread);
  fill_scales(table.scale, std::make_integer_sequence<int, kDataTypes>());
  fill_weighted(table.weighted);
  table.rows = kernel_of;
  table.conversions = conversions_of;
  table.packing = packing_of;
  table.copy = copy;
  table.copy_streaming = copy_streaming;
  return table;
}

}  // namespace
}  // namespace rankine
