// Kernels are plain loops over floats, compiled once for AVX-512 and once for any machine; the
// program chooses when it starts. The test pattern is here too, so that it costs every contender
// the same.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankine::rivals {

struct Kernels {
  const char* name;  // "avx512" or "portable"

  // to[i] = from[i]
  void (*copy)(float* to, const float* from, std::size_t count);

  // outs[*][i] = ins[0][i] + ins[1][i] + ..., in this order, for begin <= i < end. An output may be
  // an input.
  void (*reduce)(float* const* outs, int out_count, const float* const* ins, int in_count,
                 std::size_t begin, std::size_t end);

  // As reduce, with non-temporal stores if all outputs have the same alignment to cache lines.
  void (*reduce_streaming)(float* const* outs, int out_count, const float* const* ins, int in_count,
                           std::size_t begin, std::size_t end);

  // data[i] = pattern(rank, first + i, shift): integers 0..31, so that any order of summation is
  // exact.
  void (*fill)(float* data, std::size_t count, int rank, std::size_t first, std::uint32_t shift);

  // The number of data[i] that differ from the sum of pattern(r, first + i, shift) over first_rank
  // <= r < first_rank + ranks.
  std::size_t (*count_wrong)(const float* data, std::size_t count, int first_rank, int ranks,
                             std::size_t first, std::uint32_t shift);
};

// The kernels for this machine.
const Kernels& kernels() noexcept;

}  // namespace rankine::rivals
