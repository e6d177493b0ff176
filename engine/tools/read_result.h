// One read of a result, as a program that uses it has it: for whatever times the call and the use
// of what it gave (perf --fresh, bench/rivals).
//
// Four sums of the widest vectors that the machine has, side by side: the reading takes the time,
// not the adding. (A loop whose sums the compiler keeps in memory reads 15 GB/s where this one
// reads 70 from the other core's cache.) Needs nothing but this header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankine::tools {

namespace read_result_detail {

// Two, four and eight words; anywhere in memory, of any type.
using Words2 __attribute__((vector_size(16), aligned(1), may_alias)) = std::uint64_t;
using Words4 __attribute__((vector_size(32), aligned(1), may_alias)) = std::uint64_t;
using Words8 __attribute__((vector_size(64), aligned(1), may_alias)) = std::uint64_t;

template <class Words>
__attribute__((always_inline)) inline std::uint64_t sum_of(const unsigned char* memory,
                                                           std::size_t bytes) {
  Words a{}, b{}, c{}, d{};
  std::size_t at = 0;
  for (; at + 4 * sizeof(Words) <= bytes; at += 4 * sizeof(Words)) {
    const auto* words = reinterpret_cast<const Words*>(memory + at);
    a += words[0];
    b += words[1];
    c += words[2];
    d += words[3];
  }
  for (; at + sizeof(Words) <= bytes; at += sizeof(Words)) {
    a += *reinterpret_cast<const Words*>(memory + at);
  }
  a += b + (c + d);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < sizeof(Words) / sizeof(sum); ++i) sum += a[i];
  for (; at + sizeof(sum) <= bytes; at += sizeof(sum)) {
    std::uint64_t word;
    __builtin_memcpy(&word, memory + at, sizeof(word));
    sum += word;
  }
  for (; at < bytes; ++at) sum += std::uint64_t{memory[at]} << at % sizeof(sum) * 8;
  return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) inline std::uint64_t sum_avx512(const unsigned char* memory,
                                                                   std::size_t bytes) {
  return sum_of<Words8>(memory, bytes);
}
__attribute__((target("avx2"))) inline std::uint64_t sum_avx2(const unsigned char* memory,
                                                              std::size_t bytes) {
  return sum_of<Words4>(memory, bytes);
}
#endif

}  // namespace read_result_detail

// The sum of its words as the machine has them (the last one may be short), so that no compiler may
// leave the reading out; the same with every width. `memory` may be null where bytes is 0.
inline std::uint64_t read_result(const void* memory, std::size_t bytes) {
  const auto* from = static_cast<const unsigned char*>(memory);
#if defined(__x86_64__)
  using Sum = std::uint64_t (*)(const unsigned char*, std::size_t);
  static const Sum sum = __builtin_cpu_supports("avx512f") ? read_result_detail::sum_avx512
                         : __builtin_cpu_supports("avx2")
                             ? read_result_detail::sum_avx2
                             : Sum{read_result_detail::sum_of<read_result_detail::Words2>};
  return sum(from, bytes);
#else
  return read_result_detail::sum_of<read_result_detail::Words2>(from, bytes);
#endif
}

}  // namespace rankine::tools
