// The crossbar's lines, each rank's on the node that the rank writes them from.
//
// Five lines per rank are far less than a page, and a page lies on one node. Where all ranks have
// one node (or none is named) their lines therefore lie side by side. Where they have several, each
// rank gets a page of its own, and starts a little further into it than the rank before, since
// lines at the same place of many pages would fight for one set of the L1 cache.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/api/check.h"
#include "engine/api/communicator.h"
#include "engine/api/environment.h"
#include "engine/api/member.h"
#include "engine/api/plans.h"
#include "engine/api/processes/ranks.h"
#include "engine/api/threads.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "engine/compile/compile.h"
#include "engine/run/crossbar.h"
#include "engine/run/fingerprint.h"
#include "engine/run/flight_recorder.h"
#include "engine/run/mailbox.h"
#include "engine/run/plan.h"
#include "engine/run/process.h"
#include "numa/memory.h"
#include "numa/placement.h"
#include "numa/topology.h"

namespace rankine {

class PlacedLines {
 public:
  // arenas: of each rank, or empty; their node (and lock) is what counts. Throws std::bad_alloc.
  PlacedLines(int ranks, std::span<const ArenaOptions> arenas);
  // Where others have placed them.
  PlacedLines(int ranks, LinesMemory placed)
      : memory_(placed), bindings_(static_cast<std::size_t>(ranks)) {}

  // Valid while this object lives.
  LinesMemory memory() const { return memory_; }
  MemoryRange range(Rank r) const {
    return {memory_.base + static_cast<std::size_t>(r) * memory_.stride, sizeof(RankLines)};
  }
  // Whether the rank's lines are tied to its node. not_asked where it has none.
  const Enforcement& binding(Rank r) const { return bindings_[static_cast<std::size_t>(r)]; }
  const Enforcement& locking() const { return arena_.locking(); }

 private:
  Arena arena_;
  LinesMemory memory_;
  std::vector<Enforcement> bindings_;
};

// The payloads of one rank that are in use: the owner behind the handles of payload.h.

// Its member holds it, and handles know it weakly: what is left goes with the member. Thread-safe.
class Payloads : public std::enable_shared_from_this<Payloads> {
 public:
  // `n` elements of so many bytes each for that rank. Errors: those of Member::allocate().
  Result<PayloadMemory> allocate(const ArenaOptions& near, Rank rank, std::size_t n,
                                 std::size_t element_bytes);

  // The same where other processes reach it: with what they share.
  Result<PayloadMemory> allocate_shared(const std::shared_ptr<ProcessRanks>& processes, Rank rank,
                                        std::size_t n, std::size_t element_bytes);
  ~Payloads();

  // Of what either gave, once. In a forked child nothing happens: the lock may be held for
  // ever.
  void free(const void* base) noexcept;

  // What is in use, and what of it could not be enforced.
  void add_to(RankMemory& memory) const;

 private:
  const HomeProcess home_{};
  mutable std::mutex mutex_;  // guards what follows
  std::map<const void*, Arena> in_use_;
  std::shared_ptr<ProcessRanks> processes_;  // of what is shared; nullptr: nothing is
  Rank rank_ = 0;                            // there
  std::set<const void*> shared_;
};

// What the ranks of a communicator did last, at one moment, apart from the communicator: text of it
// can be made when that has gone on or is gone. communicator.h says what the text holds.

struct FlightRecord {
  struct OfRank {
    std::string state;
    std::vector<FlightRecorder::Call> calls;  // oldest first
    std::vector<SlowWait> waits;              // their calls counted as those above
  };
  Status health;
  std::vector<OfRank> ranks;
};

// As JSON, piece by piece: there may be a thousand ranks with a thousand calls each. Bytes that are
// no UTF-8 are replaced.
void write_json(const FlightRecord& record, const std::function<void(std::string_view)>& append);

// The file in which a communicator that ends by an error leaves its record. A thread of its own
// writes it, so that no disk keeps a call from returning; where there can be no thread, the caller
// does. Thread-safe.
class FlightRecordFile {
 public:
  // Empty: there is none to leave.
  explicit FlightRecordFile(std::string path) : path_(std::move(path)) {}
  FlightRecordFile(const FlightRecordFile&) = delete;
  FlightRecordFile& operator=(const FlightRecordFile&) = delete;

  // Begins to write what make() returns, the first time. What fails is a warning, once.
  void leave(const std::function<FlightRecord()>& make) noexcept;
  // Until what was begun is there or has failed, but at most so long.
  void wait(std::chrono::nanoseconds most) const noexcept;

 private:
  const std::string path_;
  std::atomic<bool> begun_{false};
  // Of the thread, too, which may outlive us. True: there is nothing more to come.
  const std::shared_ptr<std::atomic<bool>> done_ = std::make_shared<std::atomic<bool>>(false);
};

// What the ranks of a communicator share, and how a call becomes a plan: the inside of
// communicator.h.

// One rank's scratch, as its member has it: for reports.
struct ScratchNote {
  MemoryRange range;
  Enforcement binding, huge_pages, locking;
};

// Slots and bytes per slot of a mailbox. Less for many ranks, since there may be N * (N - 1): 0.2
// MiB in all at N = 4, 1.2 at 16, 2.0 at 32, 2.2 at 64.
struct MailboxShape {
  std::uint32_t slots = kSlots;
  std::uint32_t stride = 0;
};
MailboxShape mailbox_shape(int ranks);
// What ranks post calls in that are processes.
ProcessRanks::Posts posts_of_processes(int ranks, const Costs& costs);

// Where the ranks of a communicator run, and the cores that this takes from others.
struct RankPlaces {
  Topology topology;
  Placement placement;
  TakenCores taken;
};

// What a child of the process that made a communicator gets from it.
inline Status forked_status() noexcept {
  return make_error(Code::forked, [] {
    return "this process was forked from the one whose ranks these are; make a communicator of its "
           "own";
  });
}

// Of ranks that are processes: in memory that they share, whose pages it takes. None of threads.
Result<SharedClock> shared_clock(ProcessRanks* processes);

class Agenda;
class ProgressThread;

// One per communicator. Const members and the crossbar need no lock.
struct SplitOptions;

struct CommunicatorShared {
  CommunicatorShared(const CommunicatorOptions& options, const Costs& costs_, WaitPolicy policy,
                     Crowd crowd, const Environment& environment, std::unique_ptr<CallClock> clock_,
                     std::shared_ptr<ProcessRanks> processes_ = nullptr)
      : ranks(options.ranks),
        processes(std::move(processes_)),
        costs(costs_),
        forced(environment),
        first_count(FirstCount::current()),
        mail(processes != nullptr
                 ? MailboxShape{processes->shape().slots, processes->shape().slot_stride}
                 : mailbox_shape(options.ranks)),
        most_plan_bytes(options.plan_bytes),
        levels(clock_ != nullptr ? std::vector<int>()
                                 : std::vector<int>(options.levels.begin(), options.levels.end())),
        tuning(options.tuned ? machine_tuning() : nullptr),
        order(options.order),
        recorder(options.ranks, options.record_times || environment.flight_times,
                 processes != nullptr ? processes->records() : nullptr,
                 processes != nullptr ? processes->record_stride() : 0),
        record_file(environment.flight_record),
        lines(processes != nullptr ? PlacedLines(options.ranks, processes->lines())
                                   : PlacedLines(options.ranks, options.arenas)),
        crossbar(options.ranks, policy, saturated_ns(options.timeout), std::nullopt, lines.memory(),
                 crowd, processes.get()),
        clock(std::move(clock_)),
        network_is_environments(options.network == nullptr),
        ports(options.ports),
        joined(static_cast<std::size_t>(options.ranks), false),
        mailboxes(static_cast<std::size_t>(options.ranks) *
                  static_cast<std::size_t>(options.ranks)),
        boards(static_cast<std::size_t>(options.ranks)),
        plans(options.ranks) {
    for (Rank r = 0; r < ranks; ++r) {
      const auto i = static_cast<std::size_t>(r);
      arena_options.push_back(options.arenas.empty() ? ArenaOptions{} : options.arenas[i]);
      ArenaOptions near = arena_options.back();
      near.chunk_bytes = 64 * 1024;
      near.huge_pages = false;
      arenas.emplace_back(near);
      if (processes != nullptr && !processes->sets_up(r)) continue;
      crossbar.progress(r).value.store(first_count, std::memory_order_relaxed);
      crossbar.entry(r).call.store(first_count, std::memory_order_relaxed);
    }
    if (processes != nullptr) share_posts();
  }

  ~CommunicatorShared();
  // A rank takes part no more, in its messages to others neither; or does again, while it makes no
  // call.
  void leave(Rank rank);
  void come_back(Rank rank);
  // What a rank is here, and at its end of every pair.
  template <class Act>
  void at_all_ends_of(Rank rank, const Act& act);
  // A rank that is gone looks for no group any more: those whose other ranks have found it end
  // there for it.
  void find_no_groups(Rank rank) noexcept;
  // The communicator ends; `reason` says why.
  void end_with(Status reason);

  // Takes the lock below for a call. Whoever plans holds it for long, and may be stopped with it;
  // so who waits for it gives up when its time has passed, which ends the communicator, or when
  // that has ended.
  Status lock_for_call(std::unique_lock<std::mutex>& lock, Waiter& waiter);
  // Whether this process is a child of the one that made the communicator.
  bool forked() const { return !home.is_this(); }

  // Whoever plans looks at these as it goes on: the call's deadline, and whether the communicator
  // has ended.
  Status may_go_on_planning(Waiter& waiter) const;

  // The plan of the key's call, made now where nobody has made it.
  Result<PreparedPtr> prepare(const PlanKey& key, Waiter& waiter);
  Result<PreparedPtr> make(const PlanKey& key, Waiter& waiter);
  // The communicator among those ranks of this one, with nobody on it: made by the first of them
  // that asks, and found by the others. Who asks is rank `there` of it.
  struct GroupKey {
    std::uint64_t split = 0;  // which of the splits, from 1
    int color = 0;
    auto operator<=>(const GroupKey&) const = default;
  };
  Result<std::shared_ptr<CommunicatorShared>> group(const std::shared_ptr<CommunicatorShared>& self,
                                                    GroupKey key, const std::vector<Rank>& members,
                                                    std::size_t there, const SplitOptions& options,
                                                    Waiter& waiter);
  // The same where some are other processes: until all are there. By the first that asks here.
  Result<std::shared_ptr<CommunicatorShared>> meet_group(
      const std::shared_ptr<CommunicatorShared>& self, GroupKey key,
      const std::vector<Rank>& members, const SplitOptions& options);
  // The one on which messages go between two of them, in that direction; likewise.
  Result<std::shared_ptr<CommunicatorShared>> pair(const std::shared_ptr<CommunicatorShared>& self,
                                                   Rank from, Rank to, Waiter& waiter);
  Result<std::shared_ptr<CommunicatorShared>> make_group(
      const std::shared_ptr<CommunicatorShared>& self, const std::vector<Rank>& members,
      const SplitOptions& options, std::shared_ptr<ProcessRanks> as_processes = nullptr) const;

  // Of processes: all that there may ever be.
  void share_posts();
  bool is_elsewhere(Rank r) const { return processes != nullptr && !processes->is_here(r); }
  Status provide_mailboxes(const Plan& plan);
  Status provide_boards(const Plan& plan);

  // For what a thread starts here, and the helper moves on, where there is one.
  std::shared_ptr<Agenda> new_agenda() const;

  Status health() const;
  FlightRecord flight_record();
  // For a call that has failed: leaves the record in the file, once for all ranks, and waits for
  // it, but no longer than a call may that has to return within a second of its deadline.
  void leave_flight_record() noexcept;

  const int ranks;
  const std::shared_ptr<ProcessRanks> processes;  // nullptr: ranks are threads of this process
  Costs costs;  // settled once all processes have come, before any call
  const HomeProcess home;
  const Environment forced;  // for calls that leave the choice to us
  const std::uint32_t first_count;
  const MailboxShape mail;
  const std::size_t most_plan_bytes;
  const std::vector<int> levels;    // none on a modelled network: they are the machine's
  const TuningTable* const tuning;  // or nullptr
  const std::optional<Order> order;
  FlightRecorder recorder;
  FlightRecordFile record_file;  // that the environment asks for
  const PlacedLines lines;
  Crossbar crossbar;
  std::vector<ArenaOptions> arena_options;
  // Of all plans that live, also of those that only ranks still hold. Relaxed: a bound, not a lock.
  std::atomic<std::size_t> plan_bytes{0};
  std::atomic<std::size_t> member_bytes{0};  // of the members' own tables
  // Of a modelled network; or nullptr. Behind what every call touches, which it would move apart.
  const std::unique_ptr<CallClock> clock;
  const bool network_is_environments;
  const int ports;                           // as CommunicatorOptions::ports
  std::unique_ptr<const RankPlaces> places;  // or nullptr: nobody is placed here
  // That this was split from; or nullptr. Not of a pair, which that one owns.
  std::shared_ptr<CommunicatorShared> parent;

  mutable std::mutex mutex;  // guards what follows
  std::vector<bool> joined;
  struct Group {
    std::shared_ptr<CommunicatorShared> shared;  // nullptr: whoever asked first is making it
    Status why_not;                              // it could not be made
    std::vector<Rank> awaited;  // the rank here of each there; -1: nobody, any more
    // By all.
    bool is_found() const {
      return std::all_of(awaited.begin(), awaited.end(), [](Rank r) { return r < 0; });
    }
    // A rank will never find it.
    void leave(std::size_t there) {
      awaited[there] = -1;
      if (shared != nullptr) shared->crossbar.leave(static_cast<Rank>(there));
    }
  };
  // From, to. They stay as long as this does: a message may be on its way whose sender has gone.
  std::map<std::pair<Rank, Rank>, std::shared_ptr<CommunicatorShared>> pairs;
  std::map<GroupKey, Group> groups;  // that not all of their ranks have found yet
  std::vector<Arena> arenas;         // by reader: slots with who receives, credit with who sends;
                                     // boards with who posts
  ZeroedVector<Mailbox> mailboxes;   // [from * ranks + to]; made when a plan first needs one
  ZeroedVector<Board> boards;        // likewise
  PlanTable plans;                   // but for find(), which any rank may call at any time
  // The call that was refused last, and why: the other ranks make it too.
  struct Refused {
    OwnedKey key;
    Status why;
  };
  std::unique_ptr<const Refused> refused;
  std::vector<ScratchNote> scratch = std::vector<ScratchNote>(joined.size());
  // Of those who have joined; theirs, since it goes when they go.
  std::vector<std::weak_ptr<Payloads>> payloads =
      std::vector<std::weak_ptr<Payloads>>(joined.size());

  std::shared_ptr<ProgressThread> progress;  // with the groups split from this; or nullptr
};

}  // namespace rankine
