#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/lab/train/matrix.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rankine::tools {
namespace {

// Two elements with rising index, the first in the upper half: the instruction adds that half
// first.
using Pair = std::uint32_t;

Pair pair_of(BFloat16 first, BFloat16 second) { return Pair{first.bits} << 16 | second.bits; }
float first_of(Pair pair) { return std::bit_cast<float>(pair & 0xffff0000U); }
float second_of(Pair pair) { return std::bit_cast<float>(pair << 16); }

// Row k of the result pairs rows 2 k and 2 k + 1 of b; an odd last row is paired with zeroes.
std::vector<Pair> paired_rows(const BFloat16* b, int depth, int cols) {
  const auto width = static_cast<std::size_t>(cols);
  std::vector<Pair> pairs(static_cast<std::size_t>(depth + 1) / 2 * width);
  for (std::size_t k = 0; k < static_cast<std::size_t>(depth); ++k) {
    for (std::size_t j = 0; j < width; ++j) {
      pairs[k / 2 * width + j] |= Pair{b[k * width + j].bits} << (k % 2 == 0 ? 16 : 0);
    }
  }
  return pairs;
}

RANKINE_ANY_WIDTH void add_row(const Pair* a, const Pair* __restrict b, int pairs, int cols,
                               float* __restrict c) {
  for (int k = 0; k < pairs; ++k, b += cols) {
    const float first = first_of(a[k]), second = second_of(a[k]);
    for (int j = 0; j < cols; ++j) {
      float sum = c[j];
      sum += first * first_of(b[j]);
      sum += second * second_of(b[j]);
      c[j] = sum;
    }
  }
}

#if defined(__x86_64__)
// Four vectors of columns stay in registers while the loop goes over the rows of b.
__attribute__((target("avx512f,avx512bf16"))) void add_row_avx512_bf16(const Pair* a, const Pair* b,
                                                                       int pairs, int cols,
                                                                       float* c) {
  constexpr int kLanes = 16, kTogether = 4;
  for (int j = 0; j < cols; j += kTogether * kLanes) {
    __mmask16 lanes[kTogether];
    __m512 sum[kTogether];
    for (int r = 0; r < kTogether; ++r) {
      const int left = std::clamp(cols - j - r * kLanes, 0, kLanes);
      lanes[r] = static_cast<__mmask16>((1U << left) - 1);
      sum[r] = _mm512_maskz_loadu_ps(lanes[r], c + j + r * kLanes);
    }
    for (int k = 0; k < pairs; ++k) {
      const auto factors = reinterpret_cast<__m512bh>(_mm512_set1_epi32(static_cast<int>(a[k])));
      const Pair* const row = b + std::ptrdiff_t{k} * cols + j;
      for (int r = 0; r < kTogether; ++r) {
        const __m512i columns = _mm512_maskz_loadu_epi32(lanes[r], row + r * kLanes);
        sum[r] = _mm512_dpbf16_ps(sum[r], factors, reinterpret_cast<__m512bh>(columns));
      }
    }
    for (int r = 0; r < kTogether; ++r) {
      _mm512_mask_storeu_ps(c + j + r * kLanes, lanes[r], sum[r]);
    }
  }
}
#endif

}  // namespace

void add_bf16_product(const BFloat16* a, const BFloat16* b, int rows, int depth, int cols, float* c,
                      Isa isa) {
  const std::vector<Pair> columns = paired_rows(b, depth, cols);
  const int pairs = (depth + 1) / 2;
  std::vector<Pair> factors(static_cast<std::size_t>(pairs));
  for (int i = 0; i < rows; ++i, a += depth, c += cols) {
    for (int k = 0; k < pairs; ++k) {
      const bool has_second = 2 * k + 1 < depth;
      factors[static_cast<std::size_t>(k)] =
          pair_of(a[2 * k], has_second ? a[2 * k + 1] : BFloat16(0.0F));
    }
#if defined(__x86_64__)
    if (std::min(isa, hardware_isa()) == Isa::avx512_bf16) {
      add_row_avx512_bf16(factors.data(), columns.data(), pairs, cols, c);
      continue;
    }
#else
    static_cast<void>(isa);
#endif
    add_row(factors.data(), columns.data(), pairs, cols, c);
  }
}

}  // namespace rankine::tools
