// This header runs, times and checks batches of collective calls, by the same code for all
// contenders. It has time stamps, buffers, barriers and jobs of several processes. Header only,
// because mpicxx compiles it too.
#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/rivals/kernels.h"
#include "engine/base/statistics.h"
#include "engine/cli/harness.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace rankine::rivals {

using Ticks = std::uint64_t;

// A time stamp, cheap enough to time one call of 100 ns. The fences keep the timed work between its
// two stamps: loads have arrived, stores are issued.
inline Ticks ticks_now() noexcept {
#if defined(__x86_64__)
  _mm_lfence();
  const Ticks now = __rdtsc();
  _mm_lfence();
  return now;
#else
  return static_cast<Ticks>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Measured once per process against the steady clock, over 20 ms.
inline double nanoseconds_per_tick() noexcept {
  static const double value = [] {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const Ticks first = ticks_now();
    while (Clock::now() - begin < std::chrono::milliseconds(20)) {
    }
    const Ticks last = ticks_now();
    const std::chrono::duration<double, std::nano> elapsed = Clock::now() - begin;
    return elapsed.count() / static_cast<double>(last - first);
  }();
  return value;
}

// The time that one pair of stamps adds to the timed work. The counter may advance in steps of 10
// ns, so this takes means; it takes the least of several, because an interruption lengthens a mean.
inline double stamp_cost_ns() noexcept {
  constexpr int kPairs = 500;
  Ticks least = ~Ticks{0};
  for (int series = 0; series < 20; ++series) {
    Ticks sum = 0;
    for (int i = 0; i < kPairs; ++i) {
      const Ticks first = ticks_now();
      sum += ticks_now() - first;
    }
    least = std::min(least, sum);
  }
  return static_cast<double>(least) / kPairs * nanoseconds_per_tick();
}

// Page-aligned memory of contenders, with huge pages if the system has them. Not yet touched: a
// page goes to the node of the thread that first writes it. `shared`: processes that are forked
// later share it.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes, bool shared = false) : mapped_((bytes / kHuge + 2) * kHuge) {
    memory_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                   (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) {
      memory_ = nullptr;
      throw std::bad_alloc();
    }
    const auto address = reinterpret_cast<std::uintptr_t>(memory_);
    data_ = reinterpret_cast<float*>((address + kHuge - 1) / kHuge * kHuge);
    capacity_ = bytes;
    madvise(data_, mapped_ - kHuge, MADV_HUGEPAGE);  // advice: small pages work too
  }
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(mapped_, other.mapped_);
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Buffer() {
    if (memory_ != nullptr) munmap(memory_, mapped_);
  }

  float* data() const noexcept { return data_; }
  std::size_t capacity() const noexcept { return capacity_; }  // bytes

 private:
  static constexpr std::size_t kHuge = std::size_t{2} << 20;
  std::size_t mapped_ = 0;
  void* memory_ = nullptr;
  float* data_ = nullptr;
  std::size_t capacity_ = 0;
};

// An array that threads, and processes that are forked later, share.
template <class T>
class SharedArray {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  explicit SharedArray(std::size_t size) : memory_(size * sizeof(T), true), size_(size) {
    for (T& one : *this) new (&one) T;
  }
  T* begin() const noexcept { return reinterpret_cast<T*>(memory_.data()); }
  T* end() const noexcept { return begin() + size_; }
  std::size_t size() const noexcept { return size_; }
  T& operator[](std::size_t i) const noexcept { return begin()[i]; }

 private:
  Buffer memory_;
  std::size_t size_;
};

inline constexpr int kMaxRanks = 64;
inline constexpr int kMaxCalls = 4096;  // in one batch of protocol fresh
using tools::kLine;

// Waits with PAUSE if each rank has a core. If ranks share cores: looks a few times, then yields.
inline tools::SpinBudget patience_of(bool crowded) noexcept {
  return tools::SpinBudget(crowded ? 4 : tools::SpinBudget::kNeverYields);
}

// The barrier and the results of one contender's ranks around timed calls. Ranks are threads of the
// driver or processes of an MPI job: a BatchBarrier holds no address, so it works in a shared
// mapping too, and every contender has the same barrier with the same skew.
struct BatchBarrier {
  struct Seat : tools::Arrival {
    Ticks whole_batch = 0;        // written by the seat's rank, read by rank 0 after a barrier
    std::uint64_t wrong = 0;      // written by the seat's rank, read by rank 0 after a barrier
    Ticks calls[kMaxCalls] = {};  // written by the seat's rank, read by rank 0 after a barrier
  };

  int ranks = 0;
  bool crowded = false;  // ranks share cores
  Seat seats[kMaxRanks];

  // Returns when all ranks have called it.
  void barrier(int rank) noexcept { tools::meet(seats, ranks, rank, patience_of(crowded)); }
};

// A batch: some calls of one collective at one size by one contender, timed and checked. The
// driver's threads and the processes of an MPI job run the same code, so all contenders are timed
// alike.
//
//   warm   All buffers stay untouched, calls run back to back. A call's time is the slowest rank's
//          time of the batch over the number of calls.
//   fresh  Before each call every rank rewrites its own input, not timed. After a barrier the time
//          covers the call and one read of the whole result. A call's time is that of its slowest
//          rank; the batch's time is the mean of the middle half of its calls.
//
// Sizes follow nccl-tests: M bytes are a rank's input of an all-reduce, a broadcast, a reduce, an
// all-to-all and a reduce-scatter, and a rank's output of an all-gather. A remainder of M by the
// ranks is dropped.

enum class Collective { all_reduce, broadcast, all_gather, reduce_scatter, all_to_all, reduce };
inline constexpr std::string_view kCollectiveNames[] = {
    "all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "reduce"};

inline constexpr int kCollectives = static_cast<int>(std::size(kCollectiveNames));

enum class Protocol { warm, fresh };
inline constexpr std::string_view kProtocolNames[] = {"warm", "fresh"};

inline std::string_view name_of(Collective collective) {
  return kCollectiveNames[static_cast<int>(collective)];
}
inline std::string_view name_of(Protocol protocol) {
  return kProtocolNames[static_cast<int>(protocol)];
}

struct Batch {
  Collective collective = Collective::all_reduce;
  Protocol protocol = Protocol::warm;
  std::size_t bytes = 0;  // M
  int calls = 1;          // timed calls; at most kMaxCalls if protocol is fresh
  int warmups = 0;        // calls before the timed ones
  bool in_place =
      false;  // all-reduce on one buffer; fresh only, since a sum of sums soon overflows
  std::uint32_t seed = 0;  // for the data: a result left over from another batch is wrong
};

// Parts of a batch's calls, by the slowest rank's time; the last is the greatest time.
struct Percentile {
  const char* name;
  double part;
};
inline constexpr Percentile kPercentiles[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};

struct Measured {
  double us = 0;            // per call, as defined above
  double wall_us = 0;       // per call, everything included: input for calibrated_calls()
  std::uint64_t wrong = 0;  // elements of the last call's result, over all ranks
  // Us, in the order of kPercentiles; empty if the protocol is warm, which times no single call.
  std::vector<double> percentiles{};
};

// One rank's part of a batch, in floats.
struct Shape {
  std::size_t in;     // of the input
  std::size_t out;    // of the result
  std::size_t block;  // for one peer
};

inline Shape shape(const Batch& batch, int ranks, int rank) {
  const std::size_t count = batch.bytes / sizeof(float);
  const std::size_t block = count / static_cast<std::size_t>(ranks);
  const std::size_t blocks = block * static_cast<std::size_t>(ranks);
  switch (batch.collective) {
    case Collective::all_reduce:
      return {count, count, count};
    case Collective::broadcast:
      return {rank == 0 ? count : 0, rank == 0 ? 0 : count, count};
    case Collective::all_gather:
      return {block, blocks, block};
    case Collective::reduce_scatter:
      return {blocks, block, block};
    case Collective::all_to_all:
      return {blocks, blocks, block};
    case Collective::reduce:
      return {count, rank == 0 ? count : 0, count};
  }
  return {};
}

inline std::uint64_t count_wrong(const Batch& batch, int ranks, int rank, const float* out,
                                 std::uint32_t shift) {
  const Shape s = shape(batch, ranks, rank);
  const Kernels& k = kernels();
  std::uint64_t wrong = 0;
  switch (batch.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      return k.count_wrong(out, s.out, 0, ranks, 0, shift);
    case Collective::broadcast:
      return k.count_wrong(out, s.out, 0, 1, 0, shift);
    case Collective::reduce_scatter:
      return k.count_wrong(out, s.out, 0, ranks, static_cast<std::size_t>(rank) * s.block, shift);
    case Collective::all_gather:
    case Collective::all_to_all: {
      const bool personal = batch.collective == Collective::all_to_all;
      const std::size_t first = personal ? static_cast<std::size_t>(rank) * s.block : 0;
      for (int from = 0; from < ranks; ++from) {
        const float* part = out + static_cast<std::size_t>(from) * s.block;
        wrong += k.count_wrong(part, s.block, from, 1, first, shift);
      }
      return wrong;
    }
  }
  return wrong;
}

// All ranks call run_batch() with the same batch; call(in, out, shape) makes one call of the
// collective. Writes each rank's times into its seat, for summarise() after all ranks have
// returned.
template <class Call>
void run_batch(const Batch& batch, BatchBarrier& batch_barrier, int rank, float* in, float* out,
               Call&& call) {
  const Kernels& k = kernels();
  const Shape s = shape(batch, batch_barrier.ranks, rank);
  BatchBarrier::Seat& seat = batch_barrier.seats[rank];
  if (batch.in_place) out = in;
  std::uint32_t shift = batch.seed;
  const auto write = [&] { k.fill(in, s.in, rank, 0, shift); };
  const auto wait = [&] { batch_barrier.barrier(rank); };
  const auto one = [&] { call(in, out, s); };
  write();
  if (!batch.in_place) std::memset(out, 0xff, s.out * sizeof(float));  // NaNs
  if (batch.protocol == Protocol::warm) {
    wait();
    for (int i = 0; i < batch.warmups; ++i) one();
    wait();
    seat.whole_batch = *tools::time_warm(ticks_now, ticks_now, batch.calls, one);
  } else {
    const Ticks begin = ticks_now();
    for (int i = -batch.warmups; i < batch.calls; ++i) {
      ++shift;
      const Ticks time =
          *tools::time_fresh(write, wait, ticks_now, ticks_now, one, out, s.out * sizeof(float));
      if (i >= 0) seat.calls[i] = time;
    }
    seat.whole_batch = ticks_now() - begin;
  }
  seat.wrong = count_wrong(batch, batch_barrier.ranks, rank, out, shift);
}

// Combines the ranks' seats after a batch into one measurement.
inline Measured summarise(const Batch& batch, const BatchBarrier& batch_barrier) {
  Measured measured;
  Ticks longest = 0;
  for (int r = 0; r < batch_barrier.ranks; ++r) {
    longest = std::max(longest, batch_barrier.seats[r].whole_batch);
    measured.wrong += batch_barrier.seats[r].wrong;
  }
  const double us_per_tick = nanoseconds_per_tick() / 1000;
  const bool warm = batch.protocol == Protocol::warm;
  const int calls = warm ? batch.calls : batch.calls + batch.warmups;
  measured.wall_us = static_cast<double>(longest) * us_per_tick / calls;
  if (warm) {
    measured.us = measured.wall_us;
    return measured;
  }
  std::vector<double> slowest(static_cast<std::size_t>(batch.calls));
  for (std::size_t i = 0; i < slowest.size(); ++i) {
    Ticks most = 0;
    for (int r = 0; r < batch_barrier.ranks; ++r)
      most = std::max(most, batch_barrier.seats[r].calls[i]);
    slowest[i] = static_cast<double>(most) * us_per_tick;
  }
  measured.us = interquartile_mean(slowest);
  for (const Percentile& one : kPercentiles) {
    measured.percentiles.push_back(nearest_rank(slowest, one.part));
  }
  return measured;
}

// Warm-up calls put data of several MiB where later calls find them.
inline int planned_warmups(int calls) { return 4 + calls / 8; }
inline constexpr int kLeastCalls = 8;

// Runs batches of growing length until one is long enough to plan by, and returns the number of
// calls of a batch of target_us. run(batch) runs a batch and returns Measured.
template <class Run>
int calibrated_calls(Batch batch, double target_us, Run&& run) {
  tools::BatchSize size;
  while (!size.settled) {
    batch.calls = size.calls;
    batch.warmups = planned_warmups(size.calls);
    // The least of three, because an interruption here would make later batches too short.
    double wall_us = run(batch).wall_us;
    for (int i = 0; i < 2 && wall_us < target_us; ++i)
      wall_us = std::min(wall_us, run(batch).wall_us);
    size.learn(wall_us, target_us, 3, batch.protocol == Protocol::warm ? 100000 : kMaxCalls);
  }
  return std::max(size.calls, kLeastCalls);
}

inline constexpr unsigned kBatchLimitS = 150;  // a contender that takes longer for one batch hangs
// After this time SIGALRM ends a rank: before the conductor gives it up.
inline constexpr unsigned kRankLimitS = 120;

inline void wake_all(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Sleeps until a wake-up, at most `limit`; so a waiting rank can check whether the others still
// live.
inline void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value,
                        const timespec& limit) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

// A job: the ranks of one contender, as processes that sleep until a batch is announced and then
// run it together. It lies in memory that all of them have mapped, and holds no address. All
// contenders use the same announcements, barriers and times, so the same code times all, and no
// process polls between batches.
struct Job {
  std::atomic<std::uint32_t> order{0};  // counts announcements
  // Ranks that have completed the last announcement; for a conductor outside the ranks.
  std::atomic<std::uint32_t> finished{0};
  bool stop = false;  // `stop` and `batch` belong to the announcement
  Batch batch;
  pid_t conductor = 0;  // the process that announces
  BatchBarrier batch_barrier;
  std::atomic<bool> has_words{false};
  char words[300] = {};  // the first failed rank's error text

  // Called by the conductor while no rank makes calls.
  void announce(const Batch& next) noexcept {
    batch = next;
    finished.store(0, std::memory_order_relaxed);   // published by the next line
    order.fetch_add(1, std::memory_order_release);  // pairs with next_order()
    wake_all(order);
  }
  void dismiss() noexcept {
    stop = true;
    order.fetch_add(1, std::memory_order_release);  // pairs with next_order()
    wake_all(order);
  }

  // A rank that has seen `seen` announcements sleeps until the next one. False: the rank is
  // dismissed. If the conductor has died, the rank exits.
  bool next_order(std::uint32_t seen) noexcept {
    while (order.load(std::memory_order_acquire) == seen) {  // pairs with announce(), dismiss()
      sleep_while(order, seen, {1, 0});
      if (kill(conductor, 0) != 0) _exit(1);
    }
    return !stop;
  }

  // Called by a rank when it has completed the batch, or is ready for the first one.
  void finish() noexcept {
    const auto ranks = static_cast<std::uint32_t>(batch_barrier.ranks);
    // Pairs with the conductor's acquire load: it reads the seats afterwards.
    if (finished.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks) wake_all(finished);
  }

  // Keeps the first rank's error text.
  void say(const std::string& text) noexcept {
    if (has_words.exchange(true, std::memory_order_acq_rel)) return;
    std::memcpy(words, text.data(), std::min(text.size(), sizeof(words) - 1));
  }
};

// One rank's part of the announced batch: make(batch) makes its calls. When this returns, all seats
// are written.
template <class Make>
void take_part(Job& job, int rank, Make&& make) {
  const Batch batch = job.batch;
  alarm(kRankLimitS);
  make(batch);
  job.batch_barrier.barrier(rank);
  alarm(0);
  job.finish();
}

// Runs a rank that is not the conductor, until it is dismissed.
template <class Make>
void follow(Job& job, int rank, Make&& make) {
  for (std::uint32_t seen = 0; job.next_order(seen); ++seen) take_part(job, rank, make);
}

}  // namespace rankine::rivals
