// LatencyProbe measures the machine's present state: the one-way latency of a cache line between
// two cores. The header also declares read_result(), one read of a result.
//
// A virtual machine may move its cores between two rounds of a measurement, which changes the time
// of small messages by a factor of 2 to 6. Therefore this probe brackets a measurement, and the
// measurement is repeated if the latency has changed.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rankine::tools {

class LatencyProbe {
 public:
  // Called by two threads at once, on two cores, with side 0 and side 1: both spin, so on one core
  // this would take time slices. Side 0 gets ns, side 1 gets 0. The result is the least of a few
  // short series, so that only the machine's state counts, not other load. Both sides must pass
  // equal series and trips. May be played again.
  double play(int side, int series = 7, int trips = 500) noexcept {
    using Clock = std::chrono::steady_clock;
    auto least = Clock::duration::max();
    // Both sides leave a game with its last value.
    std::uint64_t& value = side == 0 ? mine_ : theirs_;
    for (int i = 0; i < series; ++i) {
      const auto begin = Clock::now();
      for (int trip = 0; trip < trips; ++trip, value += 2) {
        if (side == 0) {
          ball_.store(value + 1, std::memory_order_release);  // pairs with side 1's acquire
          await(value + 2);
        } else {
          await(value + 1);
          ball_.store(value + 2, std::memory_order_release);  // pairs with side 0's acquire
        }
      }
      least = std::min(least, Clock::now() - begin);
    }
    if (side != 0) return 0;
    return std::chrono::duration<double, std::nano>(least).count() / (2 * trips);
  }

 private:
  static constexpr std::size_t kLine = 128;  // two cache lines: hardware fetches them in pairs

  void await(std::uint64_t value) noexcept {
    while (ball_.load(std::memory_order_acquire) != value) {  // pairs with the other side's store
    }
  }

  alignas(kLine) std::atomic<std::uint64_t> ball_{0};
  alignas(kLine) std::uint64_t mine_ = 0;    // side 0's
  alignas(kLine) std::uint64_t theirs_ = 0;  // side 1's
};

// A measurement is unsteady if the probe changed by more than this factor.
inline constexpr double kSteady = 1.5;
inline constexpr int kRepeats = 3;  // per unsteady measurement

// The greatest change among the probes of one measurement, at least 1; probes are zero, and so
// never change, if two ranks do not have two cores.
inline double drift(const std::vector<double>& probes) {
  const auto [least, most] = std::minmax_element(probes.begin(), probes.end());
  return least == probes.end() || *least <= 0 ? 1 : *most / *least;
}

// Measures once, and again if the result is unsteady, up to kRepeats times; returns the steadiest
// result. drift_of() returns the drift of once()'s result. repeats: number of repetitions.
template <class Once, class DriftOf>
auto calmest(Once&& once, DriftOf&& drift_of, int& repeats) {
  auto best = once();
  for (repeats = 0; repeats < kRepeats && drift_of(best) > kSteady; ++repeats) {
    auto again = once();
    if (drift_of(again) < drift_of(best)) best = std::move(again);
  }
  return best;
}

// Reads a result once, as a program that uses it does: for timing a call and the use of its result
// (perf --fresh, bench/rivals).
//
// Four sums in the widest vectors of the machine, side by side: reading dominates the time, not
// adding. (A loop whose sums the compiler keeps in memory reads 15 GB/s; this loop reads 70 GB/s
// from the other core's cache.) Needs only this header.

namespace read_result_detail {

// Two, four and eight words.
using Words2 __attribute__((vector_size(16))) = std::uint64_t;
using Words4 __attribute__((vector_size(32))) = std::uint64_t;
using Words8 __attribute__((vector_size(64))) = std::uint64_t;

// Loads from any address. (A template argument loses the attribute aligned(1).)
template <class Words>
__attribute__((always_inline)) inline void add(Words& sum, const unsigned char* memory) {
  Words words;
  __builtin_memcpy(&words, memory, sizeof(words));
  sum += words;
}

template <class Words>
__attribute__((always_inline)) inline std::uint64_t sum_of(const unsigned char* memory,
                                                           std::size_t bytes) {
  Words a{}, b{}, c{}, d{};
  std::size_t at = 0;
  for (; at + 4 * sizeof(Words) <= bytes; at += 4 * sizeof(Words)) {
    add(a, memory + at);
    add(b, memory + at + sizeof(Words));
    add(c, memory + at + 2 * sizeof(Words));
    add(d, memory + at + 3 * sizeof(Words));
  }
  for (; at + sizeof(Words) <= bytes; at += sizeof(Words)) {
    add(a, memory + at);
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

// The sum of the words in the machine's byte order (the last word may be short), so that no
// compiler may leave out the reading; equal for every vector width. `memory` may be null if bytes
// is 0.
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
