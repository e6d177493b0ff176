// Time stamps cheap enough to stand on both sides of one 100 ns call. Header only, also compiled by
// mpicxx.
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
#include "engine/cli/probe.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace rankine::rivals {

using Ticks = std::uint64_t;

// The fences keep the work that is timed between its two stamps: loads have arrived, stores are
// issued.
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

// What one pair of stamps adds to whatever stands between them. The counter may move in steps of 10
// ns, hence means; the least of several, because a mean takes in whoever interrupts.
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

// Memory of contenders: page-aligned, with huge pages where the system has them, the same for
// everybody; and what ranks share that are processes. Header only.

// Untouched memory: pages go to the node of the thread that writes them first. Shared: processes
// that are forked later have the same.
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

// Objects that processes share which are forked later, and threads anyway.
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

}  // namespace rankine::rivals

// Where the ranks of one contender meet around timed calls. Ranks are threads of the driver or
// processes of an MPI job: a Meeting holds no address, so it works in a shared mapping too, and
// every contender has the same barrier with the same skew. Header only, also compiled by mpicxx.

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rankine::rivals {

inline constexpr int kMaxRanks = 64;
inline constexpr int kMaxCalls = 4096;  // in one batch whose calls are timed one by one
inline constexpr std::size_t kLine =
    128;  // two cache lines, because hardware fetches them in pairs

inline void pause_cpu() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Waits while ranks have a core each: PAUSE. Where they share cores: a few probes, then the core
// goes to somebody else.
class Patience {
 public:
  explicit Patience(bool crowded) noexcept : crowded_(crowded) {}
  void wait() noexcept {
    if (crowded_ && ++probes_ > 4) {
      sched_yield();
    } else {
      pause_cpu();
    }
  }

 private:
  bool crowded_;
  int probes_ = 0;
};

struct Meeting {
  struct alignas(kLine) Seat {
    std::atomic<std::uint64_t> arrived{0};
    Ticks whole_batch = 0;        // written by the seat's rank, read by rank 0 after a barrier
    std::uint64_t wrong = 0;      // likewise
    Ticks calls[kMaxCalls] = {};  // likewise
  };

  int ranks = 0;
  bool crowded = false;  // ranks share cores
  Seat seats[kMaxRanks];

  // Nobody leaves before everybody has come.
  void barrier(int rank) noexcept {
    const std::uint64_t round = seats[rank].arrived.load(std::memory_order_relaxed) + 1;
    seats[rank].arrived.store(round, std::memory_order_release);  // pairs with the acquire below
    for (int peer = 0; peer < ranks; ++peer) {
      Patience patience(crowded);
      while (seats[peer].arrived.load(std::memory_order_acquire) < round) patience.wait();
    }
  }
};

// One batch: some calls of one collective at one size by one contender, timed and checked. The same
// code runs in the driver's threads and in the processes of an MPI job, so all contenders are timed
// alike. Header only.
//
//   warm   all buffers stay untouched, calls run back to back; a call's time is the batch's time
//   over its calls, of the
//          slowest rank.
//   fresh  before each call every rank rewrites its own input, not timed; after a barrier the time
//   covers the call and
//          one read of the whole result. A call's time is that of its slowest rank; the batch's is
//          the mean of the middle half of its calls.
//
// Sizes follow nccl-tests: M bytes are a rank's input of an all-reduce, a broadcast, a reduce, an
// all-to-all and a reduce-scatter, and a rank's output of an all-gather. What does not divide by
// the ranks is left out.

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
  int calls = 1;          // timed; at most kMaxCalls where protocol is fresh
  int warmups = 0;        // the same calls before them
  bool in_place =
      false;  // all-reduce on one buffer; fresh only, since a sum of sums soon overflows
  std::uint32_t seed = 0;  // of the data, so that a result left over from another batch is wrong
};

struct Measured {
  double us = 0;  // per call, as defined above
  double wall_us =
      0;  // per call with everything around it: what the next batch's length is planned by
  std::uint64_t wrong = 0;  // elements of the last call's result, over all ranks
};

// One rank's share of a batch, in floats.
struct Shape {
  std::size_t in;     // of the input
  std::size_t out;    // of the result
  std::size_t block;  // what goes to or comes from one peer
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

// Every rank calls this with the same batch; call(in, out, shape) makes one call of the collective.
// Each rank's times end up in its seat, for summarise() once all ranks have returned.
template <class Call>
void run_batch(const Batch& batch, Meeting& meeting, int rank, float* in, float* out, Call&& call) {
  const Kernels& k = kernels();
  const Shape s = shape(batch, meeting.ranks, rank);
  Meeting::Seat& seat = meeting.seats[rank];
  if (batch.in_place) out = in;
  std::uint32_t shift = batch.seed;
  k.fill(in, s.in, rank, 0, shift);
  if (!batch.in_place) std::memset(out, 0xff, s.out * sizeof(float));  // NaNs
  Ticks begin;
  Ticks end;
  if (batch.protocol == Protocol::warm) {
    meeting.barrier(rank);
    for (int i = 0; i < batch.warmups; ++i) call(in, out, s);
    meeting.barrier(rank);
    begin = ticks_now();
    for (int i = 0; i < batch.calls; ++i) call(in, out, s);
    end = ticks_now();
  } else {
    volatile std::uint64_t sink = 0;
    begin = ticks_now();
    for (int i = -batch.warmups; i < batch.calls; ++i) {
      k.fill(in, s.in, rank, 0, ++shift);
      meeting.barrier(rank);
      const Ticks start = ticks_now();
      call(in, out, s);
      sink = tools::read_result(out, s.out * sizeof(float));
      const Ticks stop = ticks_now();
      if (i >= 0) seat.calls[i] = stop - start;
    }
    end = ticks_now();
    (void)sink;
  }
  seat.whole_batch = end - begin;
  seat.wrong = count_wrong(batch, meeting.ranks, rank, out, shift);
}

// What the seats hold after a batch, as one measurement.
inline Measured summarise(const Batch& batch, const Meeting& meeting) {
  Measured measured;
  Ticks longest = 0;
  for (int r = 0; r < meeting.ranks; ++r) {
    longest = std::max(longest, meeting.seats[r].whole_batch);
    measured.wrong += meeting.seats[r].wrong;
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
    for (int r = 0; r < meeting.ranks; ++r) most = std::max(most, meeting.seats[r].calls[i]);
    slowest[i] = static_cast<double>(most) * us_per_tick;
  }
  measured.us = middle_mean(slowest);
  return measured;
}

// How many calls make a batch of about target_us; and how many go before them.
inline int planned_calls(Protocol protocol, double wall_us, double target_us) {
  const double most = protocol == Protocol::warm ? 100000 : kMaxCalls;
  return static_cast<int>(std::clamp(std::round(target_us / std::max(wall_us, 1e-3)), 3.0, most));
}
inline int planned_warmups(int calls) { return 2 + calls / 8; }

// Short batches grow until one is long enough to plan by. run(batch) makes one and returns
// Measured.
template <class Run>
int calibrated_calls(Batch batch, double target_us, Run&& run) {
  int calls = 1;
  for (;;) {
    batch.calls = calls;
    batch.warmups = planned_warmups(calls);
    // The least of three, because whoever is interrupted now would be measured too briefly later.
    double wall_us = run(batch).wall_us;
    for (int i = 0; i < 2 && wall_us < target_us; ++i)
      wall_us = std::min(wall_us, run(batch).wall_us);
    const int planned = planned_calls(batch.protocol, wall_us, target_us);
    // A first call may cost a hundred times what the others do, so growth is bounded and an early
    // plan is not final.
    if (calls >= planned || calls >= 64) return planned;
    calls = std::min(8 * calls, planned);
  }
}

// A job: the ranks of one contender as processes of their own, asleep until a batch is announced,
// which they then make together. Lies in memory that all of them have mapped, and holds no address.
// Announcements, barriers and times go this way for every contender, so that all are timed by the
// same code and nothing polls between batches. Header only, also compiled by mpicxx.

inline constexpr unsigned kBatchLimitS = 150;  // a contender that takes longer for one batch hangs
// After so long a rank ends itself, by SIGALRM: before anybody gives it up.
inline constexpr unsigned kRankLimitS = 120;

inline void wake_all(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Until somebody wakes, at most so long; so whoever waits can see whether the others still live.
inline void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value,
                        const timespec& limit) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

struct Job {
  std::atomic<std::uint32_t> order{0};  // counts announcements
  // Ranks that have made what was announced last: for a conductor that is no rank itself.
  std::atomic<std::uint32_t> finished{0};
  bool stop = false;  // these two belong to the announcement
  Batch batch;
  pid_t conductor = 0;  // the process that announces
  Meeting meeting;
  std::atomic<bool> has_words{false};
  char words[300] = {};  // of the first rank that failed

  // The conductor, while no rank makes calls.
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

  // A rank that has seen so many announcements sleeps until there is one more. False: it is
  // dismissed. Where the conductor has died, the rank ends.
  bool next_order(std::uint32_t seen) noexcept {
    while (order.load(std::memory_order_acquire) == seen) {  // pairs with announce(), dismiss()
      sleep_while(order, seen, {1, 0});
      if (kill(conductor, 0) != 0) _exit(1);
    }
    return !stop;
  }

  // A rank: it is done with the batch, or ready for the first one.
  void finish() noexcept {
    const auto ranks = static_cast<std::uint32_t>(meeting.ranks);
    // Pairs with the conductor's acquire load: it reads the seats afterwards.
    if (finished.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks) wake_all(finished);
  }

  void say(const std::string& text) noexcept {
    if (has_words.exchange(true, std::memory_order_acq_rel)) return;
    std::memcpy(words, text.data(), std::min(text.size(), sizeof(words) - 1));
  }
};

// One rank's part of the batch that was announced: make(batch) makes its calls. When this returns,
// all seats are written.
template <class Make>
void take_part(Job& job, int rank, Make&& make) {
  const Batch batch = job.batch;
  alarm(kRankLimitS);
  make(batch);
  job.meeting.barrier(rank);
  alarm(0);
  job.finish();
}

// A rank that only follows, until it is dismissed.
template <class Make>
void follow(Job& job, int rank, Make&& make) {
  for (std::uint32_t seen = 0; job.next_order(seen); ++seen) take_part(job, rank, make);
}

// What ranks tell each other before they can send: an all-gather of a few bytes, in which nobody
// waits, through memory that processes share which are forked later. Header only.

struct alignas(kLine) ExchangeSeat {
  static constexpr std::size_t kMost = std::size_t{64} << 10;  // bytes that a rank can tell at once

  std::atomic<std::uint64_t> begun{0};  // exchanges
  // Of exchanges in turn: who has ended one and begins the next leaves the one before untouched,
  // which others may be reading. Nobody gets further ahead, since all must have begun.
  std::byte told[2][kMost];
};

using ExchangeSeats = SharedArray<ExchangeSeat>;  // one for each rank

// One rank's side. All ranks make the same exchanges in the same order, one at a time.
class Exchange {
 public:
  Exchange(const ExchangeSeats& seats, std::size_t rank) noexcept : seats_(seats), rank_(rank) {}

  // Begins one: `own` is read now; `all`, which has room for so many bytes of each rank, is
  // written when it ends. False: these are more than kMost, and nothing has begun.
  bool begin(const void* own, void* all, std::size_t bytes) noexcept {
    if (bytes > ExchangeSeat::kMost) return false;
    under_way_ = true;
    all_ = static_cast<std::byte*>(all);
    bytes_ = bytes;
    ExchangeSeat& seat = seats_[rank_];
    ++begun_;
    std::copy_n(static_cast<const std::byte*>(own), bytes, seat.told[begun_ % 2]);
    seat.begun.store(begun_, std::memory_order_release);  // pairs with the acquire in ended()
    return true;
  }

  // Whether the one that has begun has ended; if not, others on this core get a turn.
  bool ended() noexcept {
    if (!under_way_) return true;
    for (const ExchangeSeat& seat : seats_) {
      if (seat.begun.load(std::memory_order_acquire) >= begun_) continue;
      sched_yield();
      return false;
    }
    std::byte* to = all_;
    for (const ExchangeSeat& seat : seats_) to = std::copy_n(seat.told[begun_ % 2], bytes_, to);
    under_way_ = false;
    return true;
  }

 private:
  const ExchangeSeats& seats_;
  const std::size_t rank_;
  std::uint64_t begun_ = 0;
  bool under_way_ = false;
  std::byte* all_ = nullptr;  // of the one that is
  std::size_t bytes_ = 0;
};

}  // namespace rankine::rivals
