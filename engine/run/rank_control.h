// The rank_control is the shared state of a communicator's ranks: progress counters, buffer
// addresses, call records, futex bells and the way to abort. This header also holds its parts: the
// list of dependent communicators, the interface to ranks that are processes, and the agreement of
// the survivors.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "algorithms/schedule/blocks.h"
#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "engine/run/form_trials.h"
#include "engine/run/machine.h"
#include "engine/run/policy.h"
#include "engine/run/slow_waits.h"
#include "engine/run/staging_stores.h"

namespace rankine {

// AbortListeners is the list of communicators that end when this one does: its splits.
//
// tell() may run in a signal handler, so it takes no lock: dependents stand in slots that never
// move. remove() empties the slot and then waits until no thread is inside tell().

template <class AbortListener>
class AbortListeners {
 public:
  AbortListeners() = default;
  ~AbortListeners() {
    for (Chunk* chunk = first_.next.load(std::memory_order_relaxed); chunk != nullptr;) {
      const std::unique_ptr<Chunk> last(chunk);
      chunk = chunk->next.load(std::memory_order_relaxed);
    }
  }
  AbortListeners(const AbortListeners&) = delete;
  AbortListeners& operator=(const AbortListeners&) = delete;

  // From now on tell() reaches `one`. A caller that looks (sequentially consistent) after add() for
  // a state set before tell() either sees that state or is told. May throw std::bad_alloc.
  void add(AbortListener& one) {
    const std::lock_guard lock(changing_);
    for (Chunk* chunk = &first_;;) {
      for (Atomic<AbortListener*>& slot : chunk->slots) {
        if (slot.load(std::memory_order_relaxed) != nullptr) continue;
        slot.store(&one, std::memory_order_seq_cst);  // pairs with tell()
        return;
      }
      Chunk* next = chunk->next.load(std::memory_order_relaxed);
      if (next == nullptr) {
        next = new Chunk;
        will_write(next, sizeof(Chunk));
        // pairs with tell(), as the slot's store does
        chunk->next.store(next, std::memory_order_seq_cst);
      }
      chunk = next;
    }
  }

  // After this returns, tell() no longer reaches `one`.
  void remove(AbortListener& one) noexcept {
    {
      const std::lock_guard lock(changing_);
      for (Chunk* chunk = &first_; chunk != nullptr;
           chunk = chunk->next.load(std::memory_order_relaxed)) {
        for (Atomic<AbortListener*>& slot : chunk->slots) {
          if (slot.load(std::memory_order_relaxed) != &one) continue;
          slot.store(nullptr, std::memory_order_seq_cst);  // pairs with tell()
        }
      }
    }
    // A tell() that began before the store above may have found `one`; a later tell() does not.
    while (telling_.load(std::memory_order_seq_cst) != 0) sleep_ns(1'000);
  }

  template <class Tell>
  void tell(const Tell& say) noexcept {
    telling_.fetch_add(1, std::memory_order_seq_cst);  // pairs with remove()
    for (Chunk* chunk = &first_; chunk != nullptr;
         chunk = chunk->next.load(std::memory_order_seq_cst)) {  // pairs with add()
      if (chunk != &first_) will_read(chunk, sizeof(Chunk));
      for (Atomic<AbortListener*>& slot : chunk->slots) {
        AbortListener* one = slot.load(std::memory_order_seq_cst);  // pairs with add(), remove()
        if (one != nullptr) say(*one);
      }
    }
    telling_.fetch_sub(1, std::memory_order_release);  // pairs with remove()
  }

 private:
  struct Chunk {
    std::array<Atomic<AbortListener*>, 7> slots{};
    Atomic<Chunk*> next{nullptr};
  };

  Mutex changing_;
  Chunk first_;
  Atomic<int> telling_{0};
};

// RankProcesses is the interface that a rank_control needs when ranks are processes. The lines of
// all ranks lie in memory that all processes map at the same address.
//
// Such a rank_control runs barriers on the threads of all registered processes, wakes with
// machine-wide futexes, and reports the reason for its end through this interface, because a Status
// belongs to one process.
//
// The members are called on the slow side of waiting and at the end, except aborted() and
// have_barriers(), which the RankControl calls once. Thread-safe.

class RankProcesses {
 public:
  virtual ~RankProcesses() = default;

  // True if this process plays rank r.
  virtual bool is_here(Rank r) const noexcept = 0;
  // True if this process initialises rank r's shared memory.
  virtual bool sets_up(Rank r) const noexcept = 0;
  virtual int process_of(Rank r) const noexcept = 0;
  // True if rank r's process, not this one, has ended or has become another program. Takes 1 us.
  virtual bool has_ended(Rank r) const noexcept = 0;
  // This process's own copy of an algorithm name that a rank stored as an address in shared memory.
  // nullptr: unknown name.
  virtual const char* known_name(const char* said) const noexcept = 0;
  // True if rank r has left, as said in a place other than its wake_futex here.
  virtual bool has_left(Rank r) const noexcept = 0;
  // Copies bytes from the private memory of rank r's process to memory of this process, and back.
  // Return 0 or errno. ESRCH: that process has ended or has become another program; EFAULT: one of
  // the two places is no memory.
  virtual int read(Rank r, void* to, const void* from, std::size_t bytes) const noexcept = 0;
  virtual int write(Rank r, void* to, const void* from, std::size_t bytes) const noexcept = 0;

  // True if membarrier of all processes reaches each of these processes. All processes get one
  // answer.
  virtual bool have_barriers() const noexcept = 0;

  // In shared memory, zeroed at first.
  virtual Atomic<bool>& aborted() const noexcept = 0;
  virtual SlowWaits* slow_waits() const noexcept = 0;  // by rank

  // Called once, by the thread that set aborted(). Async-signal-safe.
  virtual void publish_reason(Code code, const char* text) noexcept = 0;
  // The text given to publish_reason(). Waits a little for it: the process may end before it says
  // why.
  virtual Status why() const noexcept = 0;
};

// The rank_control holds the shared state of a communicator's ranks: their progress, their waits,
// and the abort. Each rank has one cache line per purpose, and each line has a single writer.
//
// Words that ranks wait for (progress counters, message flags, credits) are 32-bit counters that
// only grow, modulo 2^32; a wait is "until the word has reached a value". One rank writes a word:
// its *owner*. wait_until() in wait.h waits for a word.
//
// Parking. A rank that has waited long parks on its own *wake_futex*, a futex word that any thread
// may ring. It first adds itself to the owner's `parked` count. A publisher looks at its own count
// after its store (announce()) and rings the bells of the ranks parked on that word. The
// wake_futex's lowest bit says "aborted", so the count and the abort are one word, and no rank
// sleeps through an abort.
//
// A full barrier stands between publishing and looking, and between parking and looking again. The
// parked side calls membarrier(2), which runs the barrier on all cores, so publishers pay only for
// a plain store and a plain load. If the kernel refuses membarrier, publishers use a
// read-modify-write of their `parked` count instead (strict mode). The count itself then orders
// both sides.

// Counters of ranks stay less than two of these apart (bound_counter_skew() in walk.h).
inline constexpr std::uint32_t kCounterStretch = 1U << 29;

// True if a counter that may wrap has reached a value: true for the next 2^31 values.
constexpr bool reached(std::uint32_t counter, std::uint32_t value) {
  return static_cast<std::int32_t>(counter - value) >= 0;
}

// A counter with one writer, on its own line.
struct alignas(kCacheLine) Counter {
  Atomic<std::uint32_t> value{0};
};

// Entry is the data that a rank offers to the others for a call. Its owner writes it before it
// publishes anything else of the call: the buffers on every transport, the rest on the direct one.
struct alignas(kCacheLine) Entry {
  Atomic<std::uint32_t> call{0};  // call number; release, pairs with wait_entry's acquire
  // Relaxed: `call` publishes these. `base` is this rank's progress base in the call; it differs
  // from a peer's if the two ranks made different calls before. A rank that is in another
  // collective than its peers may go on to later calls while they look: the addresses are for a
  // peer only if `base` equals the peer's own.
  Atomic<std::uint32_t> base{0};
  Atomic<std::uint64_t> fingerprint{0};
  std::byte* scratch = nullptr;
  Atomic<std::byte*> input{nullptr}, output{nullptr};  // the user's buffers
};
static_assert(sizeof(Entry) == kCacheLine);

// A rank's entries of even and of odd calls: a peer may still read the entry of the previous call.
struct Entries {
  Entry& of(std::uint64_t call) { return by_last_bit[call & 1]; }
  // Before any call: calls are numbered from first_count + 1 on.
  void count_from(std::uint32_t first_count) {
    for (Entry& entry : by_last_bit) entry.call.store(first_count, std::memory_order_relaxed);
  }
  Entry by_last_bit[2];
};

// CallRecord describes the last calls of a rank, for reports. Relaxed (except `number` and
// `inside`): read only to explain an error.
struct alignas(kCacheLine) CallRecord {
  Atomic<std::uint64_t> number{0};  // calls begun
  // Of even and of odd calls: of this call and of the previous one. A peer that waits in the
  // previous call still finds its description.
  Atomic<std::uint64_t> fingerprint[2] = {}, count[2] = {};
  Atomic<const char*> algorithm[2] = {};  // strings that all ranks can read
  Atomic<bool> inside{false};             // in a call, where it may read the others' memory
  Atomic<int> thread{0};                  // kernel id of the thread that makes the calls

  struct What {
    Atomic<std::uint64_t>&fingerprint, &count;
    Atomic<const char*>& algorithm;
  };
  What of(std::uint64_t call) {
    return {fingerprint[call & 1], count[call & 1], algorithm[call & 1]};
  }

  // Records the call that the rank is about to make on the thread in `thread`.
  [[gnu::always_inline]] void announce(std::uint64_t call, std::uint64_t print,
                                       std::uint64_t elements, const char* name) {
    const What mine = of(call);
    mine.fingerprint.store(print, std::memory_order_relaxed);
    mine.count.store(elements, std::memory_order_relaxed);
    mine.algorithm.store(name, std::memory_order_relaxed);
    number.store(call, std::memory_order_release);  // pairs with disagreement() in wait.cc
  }
  // announce() on the thread with id `caller`.
  void announce(std::uint64_t call, std::uint64_t print, std::uint64_t elements, const char* name,
                int caller) {
    thread.store(caller, std::memory_order_relaxed);
    announce(call, print, elements, name);
  }
};
static_assert(sizeof(CallRecord) == kCacheLine);

// WakeFutex is the slow side of waiting: only ranks that wait long and their wakers touch it.
struct alignas(kCacheLine) WakeFutex {
  Atomic<std::uint32_t> word{0};  // futex. Bit 0: aborted; above it: number of rings
  Atomic<bool> left{false};       // this rank has left
  Atomic<int> waits_for{-1};      // for reports: peer and round of a long wait
  Atomic<int> waits_in_round{0};
  Atomic<const Atomic<std::uint32_t>*> parked_on{nullptr};
  // Thread ids, only compared (relaxed): the thread that made the rank's first call and the thread
  // that made its member; 0: none yet.
  Atomic<int> first_caller{0};
  Atomic<int> made_by{0};
  // For reports: this rank's maximum number of messages in flight. Relaxed; only this rank writes.
  Atomic<int> most_sent{0}, most_received{0};
};
static_assert(sizeof(WakeFutex) == kCacheLine);

// Ballot is a rank's part of the agreements (Agreement below).
struct Ballot {
  // The number of the rank's last step, above three bits: the rank takes no further step; it has
  // taken the last step; it has taken the step before.
  Atomic<std::uint64_t> state{0};
  Atomic<std::uint64_t> said[2] = {};  // by the step's last bit: the words of its last two steps
  std::uint64_t begun = 0;             // the steps that the rank has begun; only its thread uses it
  static constexpr std::uint64_t kOut = 1, kTaken = 2, kTakenBefore = 4;

  static constexpr std::uint64_t step_of(std::uint64_t state) { return state >> 3; }
  // The state after one more step, which the rank takes or not.
  static constexpr std::uint64_t next(std::uint64_t state, bool takes) {
    return (step_of(state) + 1) << 3 | ((state & kTaken) != 0 ? kTakenBefore : 0) |
           (takes ? kTaken : 0);
  }
  // The rank waits for no earlier step, and what it saw before is visible. Acquire: pairs with
  // Agreement::take_step().
  bool has_reached(std::uint64_t step) const {
    return step_of(state.load(std::memory_order_acquire)) >= step;
  }
};

// Ranks that publish read `count`; the ballot, which only agreements write, takes no line of its
// own.
struct alignas(kCacheLine) Parked {
  Atomic<std::uint32_t> count{0};  // ranks parked on any word of this owner
  Ballot ballot;
};
static_assert(sizeof(Parked) == kCacheLine);

// All lines of one rank.
struct RankLines {
  Counter progress;
  Entries entries;
  CallRecord record;
  WakeFutex wake_futex;
  Parked parked;
  StagingTimes staging;
  FormTimes form_times;
};
static_assert(sizeof(RankLines) == 8 * kCacheLine && std::is_trivially_destructible_v<RankLines>);

// Memory for the lines of all ranks; rank r's lines are at base + r * stride. Zeroed, aligned to a
// cache line. The caller owns it and must keep it as long as the RankControl lives.
struct LinesMemory {
  std::byte* base = nullptr;  // nullptr: the RankControl allocates its own
  std::size_t stride = sizeof(RankLines);
};

// The number of the process's threads that play ranks, and the wait policy when they outnumber the
// cores. For ranks that would spin otherwise.
struct Crowd {
  const Atomic<int>* threads = nullptr;  // nullptr: threads are not counted
  int cpus = 0;
  WaitPolicy policy;  // when threads outnumber cpus
};

class RankControl {
 public:
  // `strict`: true does without membarrier; nullopt chooses strict if the kernel refuses
  // membarrier. `processes`: given if ranks are processes. Each process then has its own
  // rank_control; `processes` and the lines are shared, and each rank's lines are initialised where
  // sets_up() is true.
  RankControl(int ranks, WaitPolicy policy, std::int64_t timeout_ns,
              std::optional<bool> strict = std::nullopt, LinesMemory lines = {}, Crowd crowd = {},
              RankProcesses* processes = nullptr);
  RankControl(const RankControl&) = delete;
  RankControl& operator=(const RankControl&) = delete;

  int ranks() const { return ranks_; }
  // The policy in force now; it changes with the number of threads.
  const WaitPolicy& policy() const {
    // Relaxed: an old number only delays the right choice.
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

  RankLines& lines(Rank r) {
    return *reinterpret_cast<RankLines*>(lines_.base + index(r) * lines_.stride);
  }
  Counter& progress(Rank r) { return lines(r).progress; }
  Entries& entries(Rank r) { return lines(r).entries; }
  Entry& entry(Rank r, std::uint64_t call) { return entries(r).of(call); }
  CallRecord& record(Rank r) { return lines(r).record; }
  WakeFutex& wake_futex(Rank r) { return lines(r).wake_futex; }
  Parked& parked(Rank r) { return lines(r).parked; }
  StagingTimes& staging(Rank r) { return lines(r).staging; }
  FormTimes& form_times(Rank r) { return lines(r).form_times; }
  Ballot& ballot(Rank r) { return lines(r).parked.ballot; }
  SlowWaits& slow_waits(Rank r) { return slow_waits_[index(r)]; }
  const SlowWaits& slow_waits(Rank r) const { return slow_waits_[index(r)]; }

  // Called by the owner of `word`, a rank with these lines, after its store. Wakes every rank
  // parked on the word.
  void announce(RankLines& owners, const Atomic<std::uint32_t>& word) {
    if (is_parked_on(owners.parked.count)) [[unlikely]]
      wake_parked_on(word);
  }
  // For is_plain(): true if announce() would wake a rank.
  bool has_sleepers(RankLines& owners) const { return is_parked_on<true>(owners.parked.count); }

  // Ends the communicator: every wait of every rank returns, now and later. The first reason
  // counts. Callable from any thread.
  void abort(Status reason);
  // abort() with Code::aborted. Async-signal-safe: neither locks nor allocates.
  void abort_now() noexcept;
  // From now on this RankControl ends when `above` does; if `both_ways`, `above` also ends when
  // this one does. `who` names these ranks in `above`: "ranks 0 and 2". Called once, before any
  // use; `above` must outlive this RankControl. May throw std::bad_alloc.
  void depend_on(RankControl& above, bool both_ways, std::string who);
  // If ranks are processes, the process that ends `above` may not know this RankControl: ranks
  // that begin or wait call this to follow the end. True: this RankControl has ended.
  bool follow_above();
  // Ends depend_on(): `above` no longer tells this RankControl. Must be called before `above` is
  // destroyed.
  void depend_no_more();
  bool aborted() const {
    // Acquire: pairs with abort(); the aborting thread's earlier writes are visible.
    return aborted_.load(std::memory_order_acquire);
  }
  // The reason for the end. When it returns, all dependents of this RankControl have ended as
  // well.
  Status reason() const;

  // begin() opens a call of the rank with these lines, in which the rank may read the others'
  // memory; end() closes it. False: the communicator was aborted, and no call is open.
  bool begin(Rank r) { return begin(lines(r)); }
  // True if no call has to look at a parent or to run barriers; `kPlain` says so.
  bool is_plain() const { return !strict_ && above_ == nullptr; }
  template <bool kPlain = false>
  [[gnu::always_inline]] bool begin(RankLines& mine) {
    Atomic<bool>& inside = mine.record.inside;
    bool over;
    // The store precedes the load; wait_until_quiet() has the reverse order. As in announce(), the
    // rare side runs the barrier for both unless the mode is strict.
    if (!kPlain && strict_) {
      inside.store(true, std::memory_order_seq_cst);
      over = aborted_.load(std::memory_order_seq_cst);
    } else {
      inside.store(true, std::memory_order_relaxed);
      compiler_fence();
      over = aborted();
    }
    if (!kPlain && above_ != nullptr) [[unlikely]]
      over = follow_above();
    if (over) [[unlikely]]
      end(mine);
    return !over;
  }
  void end(Rank r) { end(lines(r)); }
  static void end(RankLines& mine) {
    mine.record.inside.store(false, std::memory_order_release);  // pairs with wait_until_quiet()
  }
  // After an abort, for a rank that has ended its call: waits until all other ranks have left their
  // calls, so that the rank's buffers belong to its caller again. Every rank inside a call notices
  // the abort at its next wait. Gives up after kQuietNs, so a rank stopped inside a call holds up
  // the others no longer; if it ever resumes, it may still read the others' buffers. Processes wait
  // only if they have lent memory that their callers own.
  void wait_until_quiet(Rank r, bool lends = false);
  static constexpr std::int64_t kQuietNs = 700'000'000;

  // True if rank r has left. Its earlier publications are then visible.
  bool has_left(Rank r);
  // True if memory shared with rank r's process holds values that no rank writes there.
  bool is_written_over(Rank r);
  // True if rank r will publish nothing more although it has not left: its process has ended, or
  // the thread that made its last call. For a rank that waits for r.
  bool is_lost(Rank r);
  // True if the thread that made all calls of rank r has ended between two calls, as seen by
  // `waiter`, which the calling thread plays. Another thread may take a rank over, so this is true
  // only if both ranks are still played by their first threads, and only if the calling thread did
  // not make r's member: programs start threads for a step, join them and start new ones.
  bool is_abandoned(Rank r, Rank waiter);
  // nullptr: ranks are threads of this process.
  const RankProcesses* processes() const { return processes_; }
  // The threads that sleep on bells.
  Threads threads() const {
    return processes_ != nullptr ? Threads::of_all_processes : Threads::of_this_process;
  }

  // Rank r leaves: ranks that wait for it fail with rank_lost.
  void leave(Rank r);
  // Reverses leave(). Call it while no rank is inside a call; the caller orders it before the next
  // call of any rank.
  void come_back(Rank r);

  // The algorithm name of a call of any rank; nullptr: unknown.
  const char* algorithm_of(const CallRecord::What& what) const;
  // Text such as "all_reduce f32 sum (ring, count 1000), call 17". `number`: one of rank r's last
  // two calls.
  std::string describe_call(Rank r, std::uint64_t number);
  // State describes a rank: "rank 0 waits for rank 3 in round 2 of all_reduce (ring), call 17".
  struct State {
    std::string text;
    Rank waits_for = -1;  // -1: no rank
  };
  State state_of(Rank r);
  // Reports leave these ranks out, because their state is not known here. By rank; called once,
  // before any use.
  void leave_out(std::vector<bool> ranks) { left_out_ = std::move(ranks); }
  // Texts name rank r by the number ranks[r]; without this call by r. Called once, before any use.
  void show_ranks_as(std::vector<Rank> ranks) { shown_ = std::move(ranks); }
  Rank shown(Rank r) const { return shown_.empty() ? r : shown_[index(r)]; }
  std::string name(Rank r) const { return "rank " + std::to_string(shown(r)); }  // for texts
  // state_of(first), then of the rank that it waits for, and so on: "...; rank 3 is in no
  // collective".
  std::string describe_waits(Rank first);

 private:
  static std::size_t index(Rank r) { return static_cast<std::size_t>(r); }
  bool is_elsewhere(Rank r) const { return processes_ != nullptr && !processes_->is_here(r); }
  bool process_has_ended(Rank r) const;  // false for ranks of this process
  bool has_ended(Rank r);                // its process, or the thread that made its last call
  // True if any rank is parked on a word of the owner of this count. The owner has already stored
  // the new value.
  template <bool kPlain = false>
  bool is_parked_on(Atomic<std::uint32_t>& count) const {
    // Pairs with Parking's fetch_add.
    if (!kPlain && strict_) return count.fetch_add(0, std::memory_order_acq_rel) != 0;
    // The compiler must not move the load before the caller's store; a parking rank's membarrier
    // stops the processor from doing so. Relaxed: if that membarrier came before our store, we see
    // the rank's earlier writes; if later, the rank sees our store.
    compiler_fence();
    return count.load(std::memory_order_relaxed) != 0;
  }
  void wake_parked_on(const Atomic<std::uint32_t>& word);
  void ring(Rank r, bool abort) noexcept;
  // Ends this RankControl and its dependents. Tells the dependents even if this RankControl has
  // ended before, because another thread may still be telling them.
  void end_downwards(Status reason);
  void end_downwards_now() noexcept;
  void tell_dependents(const Status& reason) const;
  Status own_reason() const;

  const int ranks_;
  const WaitPolicy policy_;
  const std::int64_t timeout_ns_;
  const bool strict_;
  const std::unique_ptr<RankLines[]> own_lines_;  // nullptr: the caller gave memory
  const LinesMemory lines_;
  const Crowd crowd_;
  RankProcesses* const processes_;                     // nullptr: ranks are threads of this process
  const std::unique_ptr<SlowWaits[]> own_slow_waits_;  // nullptr: ranks are processes
  SlowWaits* const slow_waits_;                        // by rank
  Atomic<bool> own_aborted_{false};
  Atomic<bool>& aborted_;  // own_aborted_ or the processes' flag
  mutable Mutex reason_mutex_;
  Status reason_;
  mutable AbortListeners<RankControl> listeners_;
  RankControl* above_ = nullptr;
  bool ends_above_ = false;
  std::string who_;
  std::vector<bool> left_out_;  // empty: none
  std::vector<Rank> shown_;     // empty: each rank by its number
};

// Agreement is one step in which the ranks of a communicator decide which of them take it, and
// exchange a value. It works after an abort, and ranks may die between any two of its instructions.
//
// Every rank takes the same steps, numbered from 1. For each rank and step the first of two
// compare-exchanges on the rank's ballot decides, for all ranks and for ever: the rank takes the
// step, or another rank, which finds it late or lost, goes on without it. A late rank may take its
// next step; a lost one is out, and takes no further step. So every rank that takes step k finds
// the same ranks. No rank begins step k + 1 before step k is decided for every rank; therefore two
// values per rank suffice, and anything else that a rank keeps twice, by the step's last bit. A
// rank that reads them too late finds its own ballot changed: decision() is then null.
class Agreement {
 public:
  enum class Use : std::uint32_t { agree, shrink, confirm, active, grow };
  enum class Verdict : std::uint8_t { waits, late, lost };  // on a rank that has not come
  struct Decision {
    std::uint64_t step = 0;
    std::vector<Rank> survivors;              // the ranks that take the step, in order
    std::uint32_t value = ~std::uint32_t{0};  // bitwise AND of their values
    bool same_use = true;                     // false: their uses differ
    bool same_value = true;                   // false: their uses or values differ
  };

  // May throw std::bad_alloc; no other function does.
  Agreement(RankControl& rank_control, Rank rank) : rank_control_(rank_control), rank_(rank) {
    decision_.step = step_ = rank_control.ballot(rank).begun + 1;
    decision_.survivors.reserve(static_cast<std::size_t>(rank_control.ranks()));
  }

  // Takes the rank's next step. False: the others have gone on without the rank. Unless it is out,
  // it then ends the step as the others do. Call it once.
  bool take_step(Use use, std::uint32_t value);
  // True if rank q takes the step, or the others go on without it. Relaxed: settle() looks again.
  bool is_settled(Rank q) const {
    return is_settled(rank_control_.ballot(q).state.load(std::memory_order_relaxed));
  }
  // Looks once. True: the step is decided for rank q. `judge(q)` is asked if it has not come.
  template <class Judge>
  bool settle(Rank q, const Judge& judge) {
    Ballot& its = rank_control_.ballot(q);
    for (;;) {
      // Acquire: pairs with take_step().
      std::uint64_t seen = its.state.load(std::memory_order_acquire);
      if (is_settled(seen)) {
        seen_ = seen;
        return true;
      }
      const Verdict verdict = judge(q);
      if (verdict == Verdict::waits) return false;
      // Relaxed: a rank that does not come publishes nothing. If the exchange fails, the rank has
      // taken the step, or another rank has decided.
      its.state.compare_exchange_strong(
          seen, verdict == Verdict::lost ? seen | Ballot::kOut : Ballot::next(seen, false),
          std::memory_order_relaxed);
    }
  }
  // settle() for all ranks, up to the first that is waited for. True: the step is decided.
  template <class Judge>
  bool is_complete(const Judge& judge) {
    for (; next_ < rank_control_.ranks(); ++next_) {
      if (!settle(next_, judge)) return false;
      // Acquire: pairs with take_step().
      if (takes_step(seen_))
        add(rank_control_.ballot(next_).said[step_ & 1].load(std::memory_order_acquire));
    }
    return true;
  }
  // After is_complete(). nullptr: this rank has not taken the step, or the others have begun a
  // later step without it, so that it may have read values of that one.
  const Decision* decision() const {
    // Relaxed: a value of a later step, read with acquire, orders this load behind the exchange
    // that went on without this rank.
    return rank_control_.ballot(rank_).state.load(std::memory_order_relaxed) == taken_ ? &decision_
                                                                                       : nullptr;
  }
  // True if this rank can take no step any more. Relaxed: only reported.
  bool is_out() const {
    return (rank_control_.ballot(rank_).state.load(std::memory_order_relaxed) & Ballot::kOut) != 0;
  }

  std::uint64_t step() const { return step_; }

 private:
  bool is_settled(std::uint64_t state) const {
    return Ballot::step_of(state) >= step_ || (state & Ballot::kOut) != 0;
  }
  // For the state of a rank for which the step is decided. (Two steps on, decision() is null.)
  bool takes_step(std::uint64_t state) const {
    if (Ballot::step_of(state) == step_) return (state & Ballot::kTaken) != 0;
    return Ballot::step_of(state) > step_ && (state & Ballot::kTakenBefore) != 0;
  }
  void add(std::uint64_t word);  // the word of rank next_

  RankControl& rank_control_;
  const Rank rank_;
  std::uint64_t step_ = 0;
  Rank next_ = 0;           // the step is decided for earlier ranks
  std::uint64_t seen_ = 0;  // the ballot that settle() has found
  Decision decision_;
  std::uint64_t word_ = 0;                   // of this step
  std::uint64_t taken_ = ~std::uint64_t{0};  // this rank's ballot when it took the step
};

// Data that a rank offers in a step, in words that their owner may overwrite while others read
// them. The orders are those of Ballot::said: data of a later step show that decision() is null.
inline void store_words(Atomic<std::uint64_t>* to, const void* from, std::size_t bytes) noexcept {
  for (const auto* at = static_cast<const std::byte*>(from); bytes > 0; ++to) {
    std::uint64_t word = 0;
    const std::size_t part = bytes < sizeof(word) ? bytes : sizeof(word);
    std::memcpy(&word, at, part);
    to->store(word, std::memory_order_release);  // pairs with load_words()
    at += part;
    bytes -= part;
  }
}
inline void load_words(void* to, const Atomic<std::uint64_t>* from, std::size_t bytes) noexcept {
  for (auto* at = static_cast<std::byte*>(to); bytes > 0; ++from) {
    const std::uint64_t word = from->load(std::memory_order_acquire);  // pairs with store_words()
    const std::size_t part = bytes < sizeof(word) ? bytes : sizeof(word);
    std::memcpy(at, &word, part);
    at += part;
    bytes -= part;
  }
}

// The steps of a shrink. The survivors decide who they are, make their communicator, and confirm
// it; they repeat this if a rank dies meanwhile. `decide(use, value)` takes a step and returns its
// Decision as a std::optional, or nullopt if this rank cannot go on. `make(decision)` makes the
// communicator of these survivors and returns kMade and kMayRepeat.
inline constexpr std::uint32_t kMade = 1, kMayRepeat = 2;
// Returns the last decision: its value has kMade if each survivor has the communicator, otherwise
// some survivor can never make one.
template <class Decide, class Make>
std::optional<Agreement::Decision> shrink_in_steps(const Decide& decide, const Make& make) {
  auto decided = decide(Agreement::Use::shrink, kMade | kMayRepeat);
  while (decided) {
    const std::vector<Rank> members = decided->survivors;
    decided = decide(Agreement::Use::confirm, make(*decided));
    if (!decided || (decided->value & kMayRepeat) == 0) break;
    if ((decided->value & kMade) != 0 && decided->survivors == members) break;
  }
  return decided;
}

// The steps of a grow. The members decide that all of them are here, make the larger communicator
// with the new ranks, confirm it, and only then admit the new ranks: so all members have it, or
// none uses it. `decide` is as above; each rank's word is `works` and what it asks for, `wanted`,
// which is odd. `make(decision)` makes the larger communicator and returns kHaveLarger, or a word
// with a zero bit.
inline constexpr std::uint32_t kHaveLarger = ~std::uint32_t{0};
struct Growth {
  std::optional<Agreement::Decision> last{};  // nullopt: this rank cannot go on
  bool begun = false;                         // all members were here and wanted the same
  bool done = false;                          // all members have the larger communicator
};
template <class Decide, class Make, class Admit>
Growth grow_in_steps(int members, std::uint32_t wanted, bool works, const Decide& decide,
                     const Make& make, const Admit& admit) {
  Growth out;
  const auto all_say = [&](std::uint32_t word) {
    return out.last && out.last->survivors.size() == static_cast<std::size_t>(members) &&
           out.last->value == word;
  };
  out.last = decide(Agreement::Use::grow, works ? wanted : wanted - 1);
  out.begun = all_say(wanted);
  if (!out.begun) return out;
  out.last = decide(Agreement::Use::confirm, make(*out.last));
  out.done = all_say(kHaveLarger);
  if (out.done) admit();
  return out;
}

// Arrivals counts the ranks that have come to a step of a meeting, in zeroed memory that all share.
class Arrivals {
 public:
  // Ranks that see them in the count also see what was written before.
  void add(int ranks) noexcept {
    // Release: pairs with has().
    count_.fetch_add(ranks, std::memory_order_release);
  }
  bool has(int ranks) const noexcept { return count_.load(std::memory_order_acquire) >= ranks; }
  // Waits until that many ranks have come. An error of `may_wait()` ends the wait, unless the last
  // rank has come since: it may have gone on and ended while may_wait() looked at it.
  template <class MayWait>
  Status wait(int ranks, const MayWait& may_wait) const {
    for (std::int64_t nap_ns = 20'000; !has(ranks);
         nap_ns = nap_ns < 1'000'000 ? 2 * nap_ns : nap_ns) {
      Status status = may_wait();
      if (!status.ok()) return has(ranks) ? Status() : status;
      sleep_ns(nap_ns);
    }
    return {};
  }

 private:
  Atomic<std::int32_t> count_{0};
};

// A put-down call was started and waits for later: no thread works on it, and any thread may resume
// it. CallRecord::thread is then kPutDown instead of a thread id.

// A value of CallRecord::thread.
inline constexpr int kPutDown = -1;

// The thread that works on the call of the rank with these lines puts it down. The call then
// survives the end of that thread, and wait_until_quiet() does not wait for it.
inline void put_down(RankLines& mine) noexcept {
  // Release: pairs with wait_until_quiet().
  mine.record.thread.store(kPutDown, std::memory_order_release);
}

// The calling thread resumes the put-down call of that rank; a call that has just begun needs no
// resuming. False: aborted, and other ranks' buffers may be gone.
inline bool come_back_to(RankControl& rank_control, RankLines& mine) noexcept {
  auto& thread = mine.record.thread;
  // Relaxed: only the one thread that works on the rank's calls writes it.
  if (thread.load(std::memory_order_relaxed) != kPutDown) return true;
  // Relaxed: begin() orders this store, as its own, before its load.
  thread.store(thread_id(), std::memory_order_relaxed);
  return rank_control.begin(mine);
}

}  // namespace rankine
