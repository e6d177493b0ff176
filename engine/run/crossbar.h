// Who ends when something ends: the communicators that were split from one.
//
// tell() may run in a signal handler, so it takes no lock: it finds those to be told in slots that
// are never moved. Who leaves empties its slot and waits until nobody is telling any more.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "algorithms/schedule/blocks.h"
#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "engine/run/machine.h"
#include "engine/run/policy.h"
#include "engine/run/staging_stores.h"

namespace rankine {

template <class Dependent>
class Dependents {
 public:
  Dependents() = default;
  ~Dependents() {
    for (Chunk* chunk = first_.next.load(std::memory_order_relaxed); chunk != nullptr;) {
      const std::unique_ptr<Chunk> last(chunk);
      chunk = chunk->next.load(std::memory_order_relaxed);
    }
  }
  Dependents(const Dependents&) = delete;
  Dependents& operator=(const Dependents&) = delete;

  // It is told from now on: whoever looks afterwards, sequentially consistent, for what is said
  // before tell() finds it, or it is told. May throw std::bad_alloc.
  void add(Dependent& one) {
    const std::lock_guard lock(changing_);
    for (Chunk* chunk = &first_;;) {
      for (Atomic<Dependent*>& slot : chunk->slots) {
        if (slot.load(std::memory_order_relaxed) != nullptr) continue;
        slot.store(&one, std::memory_order_seq_cst);  // pairs with tell()
        return;
      }
      Chunk* next = chunk->next.load(std::memory_order_relaxed);
      if (next == nullptr) {
        next = new Chunk;
        will_write(next, sizeof(Chunk));
        chunk->next.store(next, std::memory_order_seq_cst);  // as the slot's
      }
      chunk = next;
    }
  }

  // When this returns it is not told anything, and will not be.
  void remove(Dependent& one) noexcept {
    {
      const std::lock_guard lock(changing_);
      for (Chunk* chunk = &first_; chunk != nullptr;
           chunk = chunk->next.load(std::memory_order_relaxed)) {
        for (Atomic<Dependent*>& slot : chunk->slots) {
          if (slot.load(std::memory_order_relaxed) != &one) continue;
          slot.store(nullptr, std::memory_order_seq_cst);  // pairs with tell()
        }
      }
    }
    // Whoever began to tell before the store above may have found it; who begins later does not.
    while (telling_.load(std::memory_order_seq_cst) != 0) sleep_ns(1'000);
  }

  template <class Tell>
  void tell(const Tell& say) noexcept {
    telling_.fetch_add(1, std::memory_order_seq_cst);  // pairs with remove()
    for (Chunk* chunk = &first_; chunk != nullptr;
         chunk = chunk->next.load(std::memory_order_seq_cst)) {  // pairs with add()
      if (chunk != &first_) will_read(chunk, sizeof(Chunk));
      for (Atomic<Dependent*>& slot : chunk->slots) {
        Dependent* one = slot.load(std::memory_order_seq_cst);  // pairs with add(), remove()
        if (one != nullptr) say(*one);
      }
    }
    telling_.fetch_sub(1, std::memory_order_release);  // pairs with remove()
  }

 private:
  struct Chunk {
    std::array<Atomic<Dependent*>, 7> slots{};
    Atomic<Chunk*> next{nullptr};
  };

  Mutex changing_;
  Chunk first_;
  Atomic<int> telling_{0};
};

// The waits of one rank that took so long that it parked, the last kWaits of them: in which call
// and round, for whom, from when until when, and how they ended. For flight records.
//
// Written by the rank on the slow side of waiting only, where it is about to sleep anyway; read by
// anybody, who may find a wait half written while the rank is at work. Plain std::atomic: nothing
// depends on what stands here, so there is nothing for the model checker to explore.

struct SlowWait {
  enum class End : std::uint8_t {
    none,      // it goes on
    came,      // what it was for
    deadline,  // passed
    lost,      // the peer had left, or its thread had ended
    mismatch,  // the peer called something else
    aborted,   // somebody ended the communicator
  };
  std::uint64_t call = 0;  // as in CallRecord
  Rank peer = 0;
  int round = 0;                          // as in Op
  std::int64_t begin_ns = 0, end_ns = 0;  // of the monotonic clock; 0: it goes on
  End end = End::none;
};

constexpr std::string_view name_of(SlowWait::End end) {
  constexpr std::string_view kNames[] = {"none", "came", "deadline", "lost", "mismatch", "aborted"};
  const auto i = static_cast<std::size_t>(end);
  return i < std::size(kNames) ? kNames[i] : "?";  // memory that processes share may say anything
}

class alignas(64) SlowWaits {
 public:
  static constexpr std::uint64_t kWaits = 64;

  void begin(std::uint64_t call, Rank peer, int round, std::int64_t now) noexcept {
    const std::uint64_t n = begun_.load(std::memory_order_relaxed);
    Cell& cell = cells_[n % kWaits];
    cell.call.store(call, std::memory_order_relaxed);
    cell.peer.store(peer, std::memory_order_relaxed);
    cell.round.store(round, std::memory_order_relaxed);
    cell.begin_ns.store(now, std::memory_order_relaxed);
    cell.end_ns.store(0, std::memory_order_relaxed);
    cell.end.store(SlowWait::End::none, std::memory_order_relaxed);
    begun_.store(n + 1, std::memory_order_release);  // pairs with last()
  }
  // The wait that began last has ended.
  void end(SlowWait::End how, std::int64_t now) noexcept {
    Cell& cell = cells_[(begun_.load(std::memory_order_relaxed) - 1) % kWaits];
    cell.end_ns.store(now, std::memory_order_relaxed);
    cell.end.store(how, std::memory_order_relaxed);
  }

  // Oldest first.
  std::vector<SlowWait> last() const {
    const std::uint64_t begun = begun_.load(std::memory_order_acquire);  // pairs with begin()
    std::vector<SlowWait> out;
    for (std::uint64_t n = begun < kWaits ? 0 : begun - kWaits; n != begun; ++n) {
      const Cell& cell = cells_[n % kWaits];
      out.push_back(
          {cell.call.load(std::memory_order_relaxed), cell.peer.load(std::memory_order_relaxed),
           cell.round.load(std::memory_order_relaxed),
           cell.begin_ns.load(std::memory_order_relaxed),
           cell.end_ns.load(std::memory_order_relaxed), cell.end.load(std::memory_order_relaxed)});
    }
    return out;
  }

 private:
  struct Cell {
    std::atomic<std::uint64_t> call{0};
    std::atomic<std::int64_t> begin_ns{0}, end_ns{0};
    std::atomic<Rank> peer{0};
    std::atomic<int> round{0};
    std::atomic<SlowWait::End> end{SlowWait::End::none};
  };
  std::atomic<std::uint64_t> begun_{0};
  Cell cells_[kWaits];
};

// Where ranks are processes: what a crossbar needs of them beside the lines of all ranks, which lie
// in memory that all of them have at the same address.
//
// Such a crossbar runs barriers on the threads of all registered processes, wakes by futexes of the
// whole machine, and says why it has ended through here, since a Status is its process's own.
//
// Everything here is for the slow side of waiting and for the end, but for aborted() and
// have_barriers(), which are asked for once. Thread-safe.

class RankProcesses {
 public:
  virtual ~RankProcesses() = default;

  // Whether that rank is played by this process.
  virtual bool is_here(Rank r) const noexcept = 0;
  // Whether this process makes what that rank shares as it is at first.
  virtual bool sets_up(Rank r) const noexcept = 0;
  virtual int process_of(Rank r) const noexcept = 0;
  // Whether that rank's process, another one, has ended or become another program. A microsecond.
  virtual bool has_ended(Rank r) const noexcept = 0;
  // The name of an algorithm that a rank has written down as an address in memory of all: this
  // process's own copy of it. nullptr: no algorithm has that name there.
  virtual const char* known_name(const char* said) const noexcept = 0;
  // Whether that rank has said that it takes part no more, elsewhere than on its bell here.
  virtual bool has_left(Rank r) const noexcept = 0;

  // Whether membarrier of all processes reaches each of these: the same in all of them.
  virtual bool have_barriers() const noexcept = 0;

  // In memory of all, zeroed at first.
  virtual Atomic<bool>& aborted() const noexcept = 0;
  virtual SlowWaits* slow_waits() const noexcept = 0;  // by rank

  // By whoever has set aborted(), once. Async-signal-safe.
  virtual void say_why(Code code, const char* text) noexcept = 0;
  // What that was: waits for it a little, since its process may have ended before it could say.
  virtual Status why() const noexcept = 0;
};

// What the ranks of a communicator share: who has come how far, who waits for whom, and the way to
// end it all. One cache line per rank and purpose, each with a single writer.
//
// Words that ranks wait for (progress counters, message flags, credits) are 32-bit counters that
// only grow, modulo 2^32; a wait is "until the word has reached a value". The writer of a word is
// one rank, its *owner*; waiting for it goes through wait_until() in wait.h.
//
// Parking. A rank that has waited long parks on its own *bell*, a futex word that everybody may
// ring. It first adds itself to the owner's `parked` count; whoever publishes looks at its own
// count afterwards (announce()) and rings the bells of those parked on that word. The bell's lowest
// bit says "aborted", so the count and the abort are one word and no abort can be slept through.
//
// Between publishing and looking, and between parking and looking again, stands a full barrier: the
// parked side calls membarrier(2), which runs it on all cores, so that publishers pay for a plain
// store and a plain load. Where the kernel refuses membarrier, publishers use a read-modify-write
// of their `parked` count instead (strict mode). Both sides' order is then that of the count
// itself.

// Has a counter that may wrap reached a value? True for the next 2^31 values.
constexpr bool reached(std::uint32_t counter, std::uint32_t value) {
  return static_cast<std::int32_t>(counter - value) >= 0;
}

// A counter with one writer on a line of its own.
struct alignas(kCacheLine) Counter {
  Atomic<std::uint32_t> value{0};
};

// What a rank offers to the others for the call that it is in. Written by its owner, before
// anything else of the call is published: the buffers on every transport, the rest on the direct
// one.
struct alignas(kCacheLine) Entry {
  Atomic<std::uint32_t> call{0};  // number of the call; release, pairs with wait_entry's acquire
  // Relaxed, these come with `call`. The base of this rank's progress in the call: it differs from
  // ours if the rank came here by other calls. A rank that is in another collective than its peers
  // may go on to its next call while they look: only where this is their own are the addresses for
  // them.
  Atomic<std::uint32_t> base{0};
  Atomic<std::uint64_t> fingerprint{0};
  std::byte* scratch = nullptr;
  // What the user gave, of a call and the one before: a peer that is in that one still can see
  // whether it shares buffers with this rank.
  struct Buffers {
    Atomic<std::byte*> input{nullptr}, output{nullptr};
  };
  Buffers buffers[2];

  Buffers& of(std::uint64_t number) { return buffers[number & 1]; }
};
static_assert(sizeof(Entry) == kCacheLine);

// What a rank last called, for reports. Relaxed (but for `number` and `inside`): read only to
// explain an error.
struct alignas(kCacheLine) CallRecord {
  // A call, and the one before: a peer that waits in that one still finds out what it was here.
  struct What {
    Atomic<std::uint64_t> fingerprint{0};
    Atomic<std::uint64_t> count{0};
    Atomic<const char*> algorithm{nullptr};  // a string that all ranks reach
  };
  Atomic<std::uint64_t> number{0};  // calls begun
  What what[2];
  Atomic<bool> inside{false};  // a call, in which it may read the others' memory
  Atomic<int> thread{0};       // that makes them: its id in the kernel

  What& of(std::uint64_t call) { return what[call & 1]; }

  // The rank is about to make this call.
  void announce(std::uint64_t call, std::uint64_t print, std::uint64_t elements, const char* name) {
    What& mine = of(call);
    mine.fingerprint.store(print, std::memory_order_relaxed);
    mine.count.store(elements, std::memory_order_relaxed);
    mine.algorithm.store(name, std::memory_order_relaxed);
    thread.store(thread_id(), std::memory_order_relaxed);
    number.store(call, std::memory_order_release);  // pairs with disagreement() in wait.cc
  }
};
static_assert(sizeof(CallRecord) == kCacheLine);

// The slow side of waiting: touched only by ranks that wait long and those who wake them.
struct alignas(kCacheLine) Bell {
  Atomic<std::uint32_t> word{0};  // futex. Bit 0: aborted; above it: how often it rang
  Atomic<bool> left{false};       // this rank takes part no more
  Atomic<int> waits_for{-1};      // for reports: peer and round of a wait that takes long
  Atomic<int> waits_in_round{0};
  Atomic<const Atomic<std::uint32_t>*> parked_on{nullptr};
  // Ids of threads, compared with others only (relaxed): the thread that made the rank's first call
  // and the thread that made its member; 0: none yet.
  Atomic<int> first_caller{0};
  Atomic<int> made_by{0};
  // For reports: the most messages that this rank has had in flight. Relaxed; it alone writes them.
  Atomic<int> most_sent{0}, most_received{0};
};
static_assert(sizeof(Bell) == kCacheLine);

struct alignas(kCacheLine) Parked {
  Atomic<std::uint32_t> count{0};  // ranks parked on any word of this owner
};

// All lines of one rank.
struct RankLines {
  Counter progress;
  Entry entry;
  CallRecord record;
  Bell bell;
  Parked parked;
  StagingTimes staging;
};
static_assert(sizeof(RankLines) == 6 * kCacheLine && std::is_trivially_destructible_v<RankLines>);

// Memory for the lines of all ranks, those of rank r at base + r * stride. Zeroed, aligned to a
// cache line; the caller's, for as long as the crossbar lives.
struct LinesMemory {
  std::byte* base = nullptr;  // nullptr: the crossbar takes its own
  std::size_t stride = sizeof(RankLines);
};

// How many of the process's threads play ranks, and what waiting costs where they outnumber the
// cores: for ranks that would spin if they were alone.
struct Crowd {
  const Atomic<int>* threads = nullptr;  // nullptr: nobody counts
  int cpus = 0;
  WaitPolicy policy;  // in a crowd
};

class Crossbar {
 public:
  // strict: do without membarrier; none: where the kernel refuses it to any of them. processes: where ranks are
  // not threads of this one; then each has a crossbar of its own, of which these and the lines, of
  // each rank made by who sets it up, are what all share.
  Crossbar(int ranks, WaitPolicy policy, std::int64_t timeout_ns,
           std::optional<bool> strict = std::nullopt, LinesMemory lines = {}, Crowd crowd = {},
           RankProcesses* processes = nullptr);
  Crossbar(const Crossbar&) = delete;
  Crossbar& operator=(const Crossbar&) = delete;

  int ranks() const { return ranks_; }
  // In force now: crowds come and go.
  const WaitPolicy& policy() const {
    // Relaxed: a number, for a choice that is right sooner or later.
    if (crowd_.threads == nullptr || crowd_.threads->load(std::memory_order_relaxed) <= crowd_.cpus)
        [[likely]] {
      return policy_;
    }
    return crowd_.policy;
  }
  const WaitPolicy& policy_alone() const { return policy_; }
  const Crowd& crowd() const { return crowd_; }
  std::int64_t timeout_ns() const { return timeout_ns_; }
  bool strict() const { return strict_; }

  Counter& progress(Rank r) { return lines(r).progress; }
  Entry& entry(Rank r) { return lines(r).entry; }
  CallRecord& record(Rank r) { return lines(r).record; }
  Bell& bell(Rank r) { return lines(r).bell; }
  Parked& parked(Rank r) { return lines(r).parked; }
  StagingTimes& staging(Rank r) { return lines(r).staging; }
  SlowWaits& slow_waits(Rank r) { return slow_waits_[index(r)]; }
  const SlowWaits& slow_waits(Rank r) const { return slow_waits_[index(r)]; }

  // To be called by the owner of `word` after it has stored to it. Wakes whoever is parked on it.
  void announce(Rank owner, const Atomic<std::uint32_t>& word) {
    if (is_parked_on(owner)) [[unlikely]]
      wake_parked_on(word);
  }

  // Ends the communicator: every wait of every rank returns, now and for ever. The first reason
  // counts. From any thread.
  void abort(Status reason);
  // The same with Code::aborted; async-signal-safe: neither locks nor allocates.
  void abort_now() noexcept;
  // From now on it ends when `above` does, and where `both_ways`, that when this does. `who` these
  // ranks are there: "ranks 0 and 2". Once, before anybody uses it; `above` must outlive it. May
  // throw std::bad_alloc.
  void depend_on(Crossbar& above, bool both_ways, std::string who);
  // Where ranks are processes, whoever ends what this depends on may not know of this: for those
  // who begin or wait. True: this has ended.
  bool follow_above();
  // It is told nothing any more; where it depended on something, before that may go.
  void depend_no_more();
  bool aborted() const {
    // Acquire: pairs with abort(); what its caller did before is visible.
    return aborted_.load(std::memory_order_acquire);
  }
  // Why it has ended. Whoever has been told finds what depends on this ended as well.
  Status reason() const;

  // A rank begins a call, in which it may read the others' memory, and ends it. False: aborted, and
  // nothing has begun.
  bool begin(Rank r) {
    Atomic<bool>& inside = record(r).inside;
    bool over;
    // The store comes before the look; wait_until_quiet() has it the other way round. As in
    // announce(), the rare side runs the barrier for both where it can.
    if (strict_) {
      inside.store(true, std::memory_order_seq_cst);
      over = aborted_.load(std::memory_order_seq_cst) || (above_ != nullptr && follow_above());
    } else {
      inside.store(true, std::memory_order_relaxed);
      compiler_fence();
      over = aborted();
    }
    if (over) [[unlikely]]
      end(r);
    return !over;
  }
  void end(Rank r) {
    record(r).inside.store(false, std::memory_order_release);  // pairs with wait_until_quiet()
  }
  // After an abort, for a rank that has ended its call: until nobody else is inside one, so that
  // its buffers are its caller's again. Every rank that is inside finds out at its next wait. Gives
  // up after kQuietNs, so that a rank that is stopped inside a call stops nobody else for longer:
  // should it go on one day, it may still read what the others have brought.
  // Processes wait only where they have lent others what their callers own.
  void wait_until_quiet(Rank r, bool lends = false);
  static constexpr std::int64_t kQuietNs = 700'000'000;

  // Whether that rank has said that it takes part no more: what it published before is visible.
  bool has_left(Rank r);
  // Whether memory that processes share says of that rank what no rank writes there.
  bool is_written_over(Rank r);
  // Whether nothing will come of that rank any more, though it has not said so: its process has
  // ended, or the thread that made its last call. For a rank that waits for it.
  bool is_lost(Rank r);
  // Whether the thread that has made all calls of that rank has ended between two of them, for
  // `waiter`, which the calling thread plays. Another thread may take the rank over, so it counts
  // only for a rank that is still played by its own first thread, and not for the thread that made
  // that rank's member: programs start threads for a step, join them and start new ones.
  bool is_abandoned(Rank r, Rank waiter);
  // That sleep on bells.
  Threads threads() const {
    return processes_ != nullptr ? Threads::of_all_processes : Threads::of_this_process;
  }

  // This rank takes part no more: ranks that wait for it are told (rank_lost).
  void leave(Rank r);
  // While nobody is inside a call; whoever lets ranks begin the next one orders it before that.
  void come_back(Rank r);

  // The name of the algorithm of a call, of this rank or another one; nullptr: not known.
  const char* algorithm_of(const CallRecord::What& what) const;
  // "all_reduce f32 sum (ring, count 1000), call 17", of its last two calls.
  std::string describe_call(Rank r, std::uint64_t number);
  // What a rank is doing: "rank 0 waits for rank 3 in round 2 of all_reduce (ring), call 17".
  struct State {
    std::string text;
    Rank waits_for = -1;  // -1: nobody
  };
  State state_of(Rank r);
  // The same, and of whom it waits for, and so on: "...; rank 3 is in no collective; ..."
  std::string who_waits_for_whom(Rank first);

 private:
  static std::size_t index(Rank r) { return static_cast<std::size_t>(r); }
  RankLines& lines(Rank r) {
    return *reinterpret_cast<RankLines*>(lines_.base + index(r) * lines_.stride);
  }
  bool is_elsewhere(Rank r) const { return processes_ != nullptr && !processes_->is_here(r); }
  bool process_has_ended(Rank r) const;  // where that is another one
  bool has_ended(Rank r);                // that, or the thread that made its last call
  // Whether anybody is parked on a word of this owner, who has stored what would end its wait.
  bool is_parked_on(Rank owner) {
    Atomic<std::uint32_t>& count = parked(owner).count;
    // Pairs with Parking's fetch_add.
    if (strict_) return count.fetch_add(0, std::memory_order_acq_rel) != 0;
    // The compiler must not look before the caller's store; the processor is kept from it by the
    // membarrier of a parking rank. Relaxed: if that membarrier came before our store, we see all
    // that the rank did before it; if later, the rank sees our store.
    compiler_fence();
    return count.load(std::memory_order_relaxed) != 0;
  }
  void wake_parked_on(const Atomic<std::uint32_t>& word);
  void ring(Rank r, bool abort) noexcept;
  // This ends, and what depends on it: also where it has ended before, since another thread may
  // still be at the dependents.
  void end_downwards(Status reason);
  void end_downwards_now() noexcept;
  void tell_dependents(const Status& reason) const;
  Status own_reason() const;

  const int ranks_;
  const WaitPolicy policy_;
  const std::int64_t timeout_ns_;
  const bool strict_;
  const std::unique_ptr<RankLines[]> own_lines_;  // where nobody gave us memory
  const LinesMemory lines_;
  const Crowd crowd_;
  RankProcesses* const processes_;                     // nullptr: ranks are threads of this process
  const std::unique_ptr<SlowWaits[]> own_slow_waits_;  // likewise
  SlowWaits* const slow_waits_;                        // by rank
  Atomic<bool> own_aborted_{false};
  Atomic<bool>& aborted_;  // that, or the processes'
  mutable Mutex reason_mutex_;
  Status reason_;
  mutable Dependents<Crossbar> dependents_;
  Crossbar* above_ = nullptr;
  bool ends_above_ = false;
  std::string who_;
};

// A call that was started and waits is put down: no thread is at it, and any may come back to it.
// A rank's record then says so, where it else names the thread that is at its call.

// As CallRecord::thread.
inline constexpr int kPutDown = -1;

// By who is at the call of rank r: no longer. So a thread that ends then takes no call with it, and
// whoever waits until it is quiet need not wait for this one.
inline void put_down(Crossbar& crossbar, Rank r) noexcept {
  // Release: pairs with wait_until_quiet().
  crossbar.record(r).thread.store(kPutDown, std::memory_order_release);
}

// The calling thread goes on with the call of rank r; who has just begun it is at it already.
// False: aborted, and other ranks' buffers may be gone.
inline bool come_back_to(Crossbar& crossbar, Rank r) noexcept {
  auto& thread = crossbar.record(r).thread;
  // Relaxed: written only by who is at the rank's calls, one at a time.
  if (thread.load(std::memory_order_relaxed) != kPutDown) return true;
  // Relaxed: begin() orders it before its look, as what it stores itself.
  thread.store(thread_id(), std::memory_order_relaxed);
  return crossbar.begin(r);
}

}  // namespace rankine
