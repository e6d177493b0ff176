#include "bench/rivals/kernels.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// If an output is also an input, both have exactly the same address, which is correct at any vector
// width. The compiler does not know that and would add one float at a time.
#if defined(__clang__)
#define RIVALS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define RIVALS_INDEPENDENT _Pragma("GCC ivdep")
#endif
#define RIVALS_INLINE __attribute__((always_inline)) inline

namespace rankine::rivals {
namespace {

constexpr std::size_t kBlock = 1024;  // floats; a block's running sum stays in L1

RIVALS_INLINE std::uint32_t pattern(int rank, std::size_t index, std::uint32_t shift) {
  // 24 bits of the index and Fibonacci hashing: a result at the wrong place fails the check.
  const std::uint32_t key =
      static_cast<std::uint32_t>(index) + static_cast<std::uint32_t>(rank) * 977u + shift * 7919u;
  return (key * 2654435761u) >> 27;
}

RIVALS_INLINE void add_two(float* out, const float* a, const float* b, std::size_t count) {
  RIVALS_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

RIVALS_INLINE void add_two_to_two(float* out, float* other, const float* a, const float* b,
                                  std::size_t count) {
  RIVALS_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i];
    out[i] = sum;
    other[i] = sum;
  }
}

// sum = the sum of any number of inputs, for one block.
RIVALS_INLINE void add_many(float* sum, const float* const* ins, int in_count, std::size_t at,
                            std::size_t count) {
  if (in_count == 1) {
    std::memcpy(sum, ins[0] + at, count * sizeof(float));
    return;
  }
  add_two(sum, ins[0] + at, ins[1] + at, count);
  for (int k = 2; k < in_count; ++k) add_two(sum, sum, ins[k] + at, count);
}

RIVALS_INLINE void reduce_any(float* const* outs, int out_count, const float* const* ins,
                              int in_count, std::size_t begin, std::size_t end) {
  if (in_count == 2 && out_count == 1) {
    add_two(outs[0] + begin, ins[0] + begin, ins[1] + begin, end - begin);
    return;
  }
  if (in_count == 2 && out_count == 2) {
    add_two_to_two(outs[0] + begin, outs[1] + begin, ins[0] + begin, ins[1] + begin, end - begin);
    return;
  }
  alignas(64) float sum[kBlock];
  for (std::size_t at = begin; at < end; at += kBlock) {
    const std::size_t count = std::min(kBlock, end - at);
    add_many(sum, ins, in_count, at, count);
    for (int k = 0; k < out_count; ++k) std::memcpy(outs[k] + at, sum, count * sizeof(float));
  }
}

RIVALS_INLINE void fill_any(float* data, std::size_t count, int rank, std::size_t first,
                            std::uint32_t shift) {
  for (std::size_t i = 0; i < count; ++i) {
    data[i] = static_cast<float>(static_cast<std::int32_t>(pattern(rank, first + i, shift)));
  }
}

RIVALS_INLINE std::size_t count_wrong_any(const float* data, std::size_t count, int first_rank,
                                          int ranks, std::size_t first, std::uint32_t shift) {
  std::size_t wrong = 0;
  std::uint32_t sum[kBlock];
  for (std::size_t at = 0; at < count; at += kBlock) {
    const std::size_t n = std::min(kBlock, count - at);
    std::fill(sum, sum + n, 0u);
    for (int r = first_rank; r < first_rank + ranks; ++r) {
      for (std::size_t i = 0; i < n; ++i) sum[i] += pattern(r, first + at + i, shift);
    }
    for (std::size_t i = 0; i < n; ++i) {
      // Written so that a NaN counts as wrong.
      wrong += data[at + i] == static_cast<float>(static_cast<std::int32_t>(sum[i])) ? 0u : 1u;
    }
  }
  return wrong;
}

void copy_portable(float* to, const float* from, std::size_t count) {
  if (count > 0) std::memcpy(to, from, count * sizeof(float));
}

void reduce_portable(float* const* outs, int out_count, const float* const* ins, int in_count,
                     std::size_t begin, std::size_t end) {
  reduce_any(outs, out_count, ins, in_count, begin, end);
}

void fill_portable(float* data, std::size_t count, int rank, std::size_t first,
                   std::uint32_t shift) {
  fill_any(data, count, rank, first, shift);
}

std::size_t count_wrong_portable(const float* data, std::size_t count, int first_rank, int ranks,
                                 std::size_t first, std::uint32_t shift) {
  return count_wrong_any(data, count, first_rank, ranks, first, shift);
}

constexpr Kernels kPortable{"portable",      copy_portable, reduce_portable,
                            reduce_portable, fill_portable, count_wrong_portable};

#if defined(__x86_64__)

#if defined(__clang__)
#define RIVALS_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"), min_vector_width(512)))
#else
#define RIVALS_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")))
#endif

// By hand, because a compiler turns the loop into a call of memcpy, and memcpy chooses string
// instructions by sizes that a virtual machine reports wrongly.
RIVALS_AVX512 void copy_avx512(float* to, const float* from, std::size_t count) {
  std::size_t i = 0;
  for (; i + 64 <= count; i += 64) {
    const __m512 a = _mm512_loadu_ps(from + i);
    const __m512 b = _mm512_loadu_ps(from + i + 16);
    const __m512 c = _mm512_loadu_ps(from + i + 32);
    const __m512 d = _mm512_loadu_ps(from + i + 48);
    _mm512_storeu_ps(to + i, a);
    _mm512_storeu_ps(to + i + 16, b);
    _mm512_storeu_ps(to + i + 32, c);
    _mm512_storeu_ps(to + i + 48, d);
  }
  for (; i < count; i += 16) {
    const auto mask = static_cast<__mmask16>((1u << std::min<std::size_t>(16, count - i)) - 1u);
    _mm512_mask_storeu_ps(to + i, mask, _mm512_maskz_loadu_ps(mask, from + i));
  }
}

RIVALS_AVX512 void reduce_avx512(float* const* outs, int out_count, const float* const* ins,
                                 int in_count, std::size_t begin, std::size_t end) {
  reduce_any(outs, out_count, ins, in_count, begin, end);
}

RIVALS_AVX512 void reduce_streaming_avx512(float* const* outs, int out_count,
                                           const float* const* ins, int in_count, std::size_t begin,
                                           std::size_t end) {
  const auto offset = [&](int k, std::size_t i) {
    return reinterpret_cast<std::uintptr_t>(outs[k] + i) % 64;
  };
  for (int k = 1; k < out_count; ++k) {
    if (offset(k, 0) != offset(0, 0)) return reduce_any(outs, out_count, ins, in_count, begin, end);
  }
  std::size_t from = begin;
  while (from < end && offset(0, from) != 0) ++from;
  reduce_any(outs, out_count, ins, in_count, begin, from);
  std::size_t i = from;
  for (; i + 16 <= end; i += 16) {
    __m512 sum = _mm512_loadu_ps(ins[0] + i);
    for (int k = 1; k < in_count; ++k) sum = _mm512_add_ps(sum, _mm512_loadu_ps(ins[k] + i));
    for (int k = 0; k < out_count; ++k) _mm512_stream_ps(outs[k] + i, sum);
  }
  reduce_any(outs, out_count, ins, in_count, i, end);
  _mm_sfence();  // orders the non-temporal stores before the caller's flag
}

RIVALS_AVX512 void fill_avx512(float* data, std::size_t count, int rank, std::size_t first,
                               std::uint32_t shift) {
  fill_any(data, count, rank, first, shift);
}

RIVALS_AVX512 std::size_t count_wrong_avx512(const float* data, std::size_t count, int first_rank,
                                             int ranks, std::size_t first, std::uint32_t shift) {
  return count_wrong_any(data, count, first_rank, ranks, first, shift);
}

constexpr Kernels kAvx512{"avx512",    copy_avx512,       reduce_avx512, reduce_streaming_avx512,
                          fill_avx512, count_wrong_avx512};

#endif  // __x86_64__

}  // namespace

const Kernels& kernels() noexcept {
#if defined(__x86_64__)
  static const bool wide = __builtin_cpu_supports("avx512f") &&
                           __builtin_cpu_supports("avx512bw") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (wide) return kAvx512;
#endif
  return kPortable;
}

}  // namespace rankine::rivals
