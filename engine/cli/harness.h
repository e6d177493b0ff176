// The measuring harness: how calls among ranks are timed. The command line (perf, tune, run) and
// bench share these definitions. Header only, of the standard library and a pause of the processor,
// because MPI's compilers compile it too (bench/rivals).
//
//   ranks       threads, or processes that share memory, meet at a flat barrier: meet(). Processes
//               without shared memory meet by calls of the engine (workbench.cc).
//   warm        time_warm(): buffers stay untouched, and the calls of a batch run back to back.
//   fresh       time_fresh(): each rank writes its input anew, the ranks meet, and the time covers
//               one call and one read of its result, like a program that computes and uses the
//               data.
//   batches     BatchSize: as many calls as take the time that a clock needs to be exact.
//   judgement   the longest time of any rank is the time of a batch (RankTime has the others); of
//               the batches engine/base/statistics.h takes a median or the mean of the middle half.
//   machine     LatencyProbe and calmest(): a virtual machine may move its cores between two rounds
//               of a measurement, which changes the time of small messages by a factor of 2 to 6.
//               A probe brackets a measurement, which is repeated if the latency has changed.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/run/machine.h"

namespace rankine::tools {

inline constexpr std::size_t kLine = 128;  // two cache lines: hardware fetches them in pairs

// Reads the monotonic clock.
inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A wait looks at a word again and again, with a pause after each of the first looks; after each
// further look it yields the core.
class SpinBudget {
 public:
  static constexpr std::uint64_t kNeverYields = ~std::uint64_t{0};

  explicit SpinBudget(std::uint64_t looks) noexcept : left_(looks) {}
  void wait() noexcept {
    if (left_ == 0) {
      sched_yield();
    } else {
      --left_;
      pause_cpu();
    }
  }

 private:
  std::uint64_t left_;
};

// A rank's line at the barrier.
struct alignas(kLine) Arrival {
  std::atomic<std::uint64_t> arrived{0};
};

// The barrier of the measuring ranks: returns when all of them have called it, or false after
// `stopped`. Each rank counts on its own line, and no line holds an address, so threads and
// processes that share the memory meet alike. What a rank wrote before is visible to all after.
// Seat derives from Arrival.
template <class Seat>
bool meet(Seat* seats, int ranks, int rank, const SpinBudget& patience,
          const std::atomic<bool>* stopped = nullptr) noexcept {
  const std::uint64_t turn = seats[rank].arrived.load(std::memory_order_relaxed) + 1;
  seats[rank].arrived.store(turn, std::memory_order_release);  // pairs with the acquire below
  for (int peer = 0; peer < ranks; ++peer) {
    SpinBudget left = patience;
    while (seats[peer].arrived.load(std::memory_order_acquire) < turn) {
      if (stopped != nullptr && stopped->load(std::memory_order_relaxed)) return false;
      left.wait();
    }
  }
  return stopped == nullptr || !stopped->load(std::memory_order_relaxed);
}

// The number of calls of a batch that takes about `target`, found batch by batch. The first calls
// may take a hundred times longer than later ones, so growth is bounded and an early plan is not
// final.
struct BatchSize {
  int calls = 1;
  bool settled = false;

  // A batch took `per_call`, in the unit of `target`.
  void learn(double per_call, double target, int least, int most) {
    constexpr int kFinal = 64, kGrowth = 8;
    const double wanted = std::round(target / std::max(per_call, target * 1e-9));
    const int planned = static_cast<int>(std::clamp<double>(wanted, least, most));
    settled = calls >= planned || calls >= kFinal;
    calls = settled ? planned : std::min(kGrowth * calls, planned);
  }
};

// The measure of the machine's state: the one-way latency of a cache line between two cores.
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

// Reads a result once, as a program that uses it does.
//
// Four sums in the widest vectors of the machine, side by side: reading dominates the time, not
// adding. (A loop whose sums the compiler keeps in memory reads 15 GB/s; this loop reads 70 GB/s
// from the other core's cache.)

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

// Calls f; a function without a result cannot fail.
template <class F>
bool succeeds(const F& f) {
  if constexpr (std::is_void_v<decltype(f())>) {
    f();
    return true;
  } else {
    return f();
  }
}

// The time of `calls` calls back to back; none if call() returns false. begin() and now() read the
// clock; begin() may first delay the rank.
template <class Begin, class Now, class Call>
auto time_warm(const Begin& begin, const Now& now, int calls, const Call& call)
    -> std::optional<std::decay_t<decltype(now() - begin())>> {
  const auto from = begin();
  for (int i = 0; i < calls; ++i) {
    if (!succeeds(call)) return std::nullopt;
  }
  return now() - from;
}

// The time of one call and one read of its result. Before it, untimed, write() writes this rank's
// input and wait() returns when all ranks have written theirs. None if wait() or call() returns
// false.
template <class Write, class Wait, class Begin, class Now, class Call>
auto time_fresh(const Write& write, const Wait& wait, const Begin& begin, const Now& now,
                const Call& call, const void* result, std::size_t bytes)
    -> std::optional<std::decay_t<decltype(now() - begin())>> {
  write();
  if (!succeeds(wait)) return std::nullopt;
  const auto from = begin();
  if (!succeeds(call)) return std::nullopt;
  const std::uint64_t sum = read_result(result, bytes);
  asm volatile("" : : "r"(sum));  // no compiler may leave out the reading
  return now() - from;
}

}  // namespace rankine::tools
