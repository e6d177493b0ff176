// CommunicatorShared is the state that the ranks of one communicator share, and turns calls into
// plans. The helpers before it place the RankControl's lines (PlacedLines), own the payloads in
// use (Payloads), and record the last calls of the ranks (FlightRecord, FlightRecordFile).
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
#include "engine/api/processes/call_sites.h"
#include "engine/api/processes/ranks.h"
#include "engine/api/threads.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "engine/compile/compile.h"
#include "engine/run/fingerprint.h"
#include "engine/run/flight_recorder.h"
#include "engine/run/mailbox.h"
#include "engine/run/plan.h"
#include "engine/run/process.h"
#include "engine/run/rank_control.h"
#include "numa/memory.h"
#include "numa/placement.h"
#include "numa/topology.h"

namespace rankine {

// PlacedLines places the RankControl's lines: each rank's lines on the node of the rank that
// writes them.
//
// Five lines per rank are far less than a page, and a page lies on one node. If all ranks have one
// node (or no node is named), their lines therefore lie side by side. If they have several nodes,
// each rank gets a separate page. The lines of each rank start a little further into the page than
// the previous rank's, because lines at equal offsets of many pages would compete for one set of
// the L1 cache.
class PlacedLines {
 public:
  // `arenas`: one per rank, or empty; only their node and lock matter. Throws std::bad_alloc.
  PlacedLines(int ranks, std::span<const ArenaOptions> arenas);
  // Uses lines that the caller has placed.
  PlacedLines(int ranks, LinesMemory placed)
      : memory_(placed), bindings_(static_cast<std::size_t>(ranks)) {}

  // Valid during the life of this object.
  LinesMemory memory() const { return memory_; }
  MemoryRange range(Rank r) const {
    return {memory_.base + static_cast<std::size_t>(r) * memory_.stride, sizeof(RankLines)};
  }
  // The result of binding the rank's lines to its node; not_asked if the rank has no node.
  const Enforcement& binding(Rank r) const { return bindings_[static_cast<std::size_t>(r)]; }
  const Enforcement& locking() const { return arena_.locking(); }

 private:
  Arena arena_;
  LinesMemory memory_;
  std::vector<Enforcement> bindings_;
};

// Payloads owns the payloads of one rank that are in use, for the handles of member.h. The member
// holds it, and handles have weak references: the remaining payloads are freed with the member.
// Thread-safe.
class Payloads : public std::enable_shared_from_this<Payloads> {
 public:
  // Allocates `n` elements for that rank. Errors: those of Member::allocate().
  Result<PayloadMemory> allocate(const ArenaOptions& near, Rank rank, std::size_t n,
                                 std::size_t element_bytes);

  // Allocates memory that other processes can reach, from the memory that they share.
  Result<PayloadMemory> allocate_shared(const std::shared_ptr<ProcessRanks>& processes, Rank rank,
                                        std::size_t n, std::size_t element_bytes);
  ~Payloads();

  // Frees memory of allocate() or allocate_shared(), once. In a forked child it does nothing,
  // because the lock may be held forever.
  void free(const void* base) noexcept;

  // Adds the bytes in use and each refused binding, huge page or lock to `memory`.
  void add_to(RankMemory& memory) const;

 private:
  const HomeProcess home_{};
  mutable std::mutex mutex_;  // guards the members below
  std::map<const void*, Arena> in_use_;
  std::shared_ptr<ProcessRanks> processes_;  // owner of the shared payloads; nullptr: none
  Rank rank_ = 0;                            // the rank in `processes_`
  std::set<const void*> shared_;
};

// FlightRecord is a copy of the last calls of all ranks at one moment, separate from the
// communicator, so that the text can be made while the communicator continues or after it is
// destroyed. communicator.h describes the text.

struct FlightRecord {
  struct RankRecord {
    std::string state;
    std::vector<FlightRecorder::Call> calls;  // oldest first
    std::vector<SlowWait> waits;              // `call` counts as in `calls`
    std::array<FormFigures, kTrialClasses> trials{};
  };
  Status health;
  std::vector<RankRecord> ranks;
};

// Writes the record as JSON, in pieces, because a thousand ranks may have a thousand calls each.
// Bytes that are not UTF-8 are replaced.
void write_json(const FlightRecord& record, const std::function<void(std::string_view)>& append);

// FlightRecordFile writes the record of a communicator that ends by an error to a file. A separate
// thread writes it, so that a slow disk does not delay a call; if the system refuses a thread, the
// caller writes. Thread-safe.
class FlightRecordFile {
 public:
  // Empty path: write no record.
  explicit FlightRecordFile(std::string path) : path_(std::move(path)) {}
  FlightRecordFile(const FlightRecordFile&) = delete;
  FlightRecordFile& operator=(const FlightRecordFile&) = delete;

  // Starts to write the record that make() returns; only the first call has an effect. A failure
  // causes one warning.
  void leave(const std::function<FlightRecord()>& make) noexcept;
  // Waits until the write is finished or has failed, at most for `most`.
  void wait(std::chrono::nanoseconds most) const noexcept;

 private:
  const std::string path_;
  std::atomic<bool> begun_{false};
  // Shared with the writing thread, which may outlive this object. True: the write is finished.
  const std::shared_ptr<std::atomic<bool>> done_ = std::make_shared<std::atomic<bool>>(false);
};

// A member's scratch, as noted for reports.
struct ScratchNote {
  MemoryRange range;
  Enforcement binding, huge_pages, locking;
};

// The number of slots of a mailbox, and the bytes per slot. More ranks get less, because there may
// be N * (N - 1) mailboxes: 0.2 MiB in all at N = 4, 1.2 at 16, 2.0 at 32, 2.2 at 64.
struct MailboxShape {
  std::uint32_t slots = kSlots;
  std::uint32_t stride = 0;
};
MailboxShape mailbox_shape(int ranks);
// The sizes of mailboxes and boards of ranks that are processes.
ProcessRanks::Posts posts_of_processes(int ranks, const Costs& costs);

// The CPUs of a communicator's ranks. It holds the cores as taken.
struct RankPlaces {
  Topology topology;
  Placement placement;
  TakenCores taken;
};

// The error that a forked child gets from a communicator of its parent.
inline Status forked_status() noexcept {
  return make_error(Code::forked, [] {
    return "this process is a forked child of the process that made the communicator; make a new "
           "communicator in the child";
  });
}

// For ranks that are processes: the clock's words in their shared memory; takes the pages. For
// threads: empty.
Result<SharedClock> shared_clock(ProcessRanks* processes);

// Ranks on several nodes, which exchange messages over a wire such as MPI: all calls use mailboxes,
// and a PlanRunner of each rank provides the mailboxes between nodes (mpi/process.h).
struct WireOptions {
  std::vector<int> node;   // by rank: ranks of one node exchange messages through memory
  std::vector<Rank> here;  // this process's ranks; plans keep only their ops
  std::shared_ptr<const CallClock> network;  // chooses algorithms; no rank reads its clock

  bool are_far(Rank a, Rank b) const {
    return node[static_cast<std::size_t>(a)] != node[static_cast<std::size_t>(b)];
  }
  std::vector<bool> far_from(Rank r) const {
    std::vector<bool> far;
    for (const int one : node) far.push_back(one != node[static_cast<std::size_t>(r)]);
    return far;
  }
};

struct CommunicatorShared;
// As Communicator::create(), but throws std::bad_alloc. `may_wait`: as in ProcessLobby::Meeting,
// for the members of a communicator that grows.
Result<std::shared_ptr<CommunicatorShared>> create_shared(
    const CommunicatorOptions& asked, const std::function<Status()>& may_wait = {});

class ProgressEngine;
class ProgressThread;

// One CommunicatorShared per communicator. Const members and the RankControl need no lock.
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
                 processes != nullptr ? processes->record_stride() : 0,
                 options.wire != nullptr ? options.wire->far_from(options.wire->here.front())
                                         : std::vector<bool>()),
        record_file(environment.flight_record),
        lines(processes != nullptr ? PlacedLines(options.ranks, processes->lines())
                                   : PlacedLines(options.ranks, options.arenas)),
        rank_control(options.ranks, policy, saturated_ns(options.timeout), std::nullopt,
                     lines.memory(), crowd, processes.get()),
        clock(std::move(clock_)),
        network_is_environments(options.network == nullptr),
        ports(options.ports),
        wire(options.wire),
        algorithms(options.algorithms),
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
      rank_control.progress(r).value.store(first_count, std::memory_order_relaxed);
      rank_control.entries(r).count_from(first_count);
    }
    if (processes != nullptr) share_posts();
    if (wire != nullptr) rank_control.leave_out(wire->far_from(wire->here.front()));
  }

  ~CommunicatorShared();
  // leave(): the rank makes no more calls and messages, and its peers are told. come_back() undoes
  // it, while the rank makes no call.
  void leave(Rank rank);
  void come_back(Rank rank);
  // Calls act(rank_control, rank) for this communicator and for each pair that the rank belongs to.
  template <class Act>
  void at_all_ends_of(Rank rank, const Act& act);
  // For a rank that has left and so will look for no group: it leaves the groups that await it.
  // Removes a group from the list if no other rank is awaited.
  void find_no_groups(Rank rank) noexcept;
  // Ends the communicator with `reason`.
  void end_with(Status reason);

  // Takes the lock below for a call. A rank that plans holds the lock for long, and may be stopped
  // while it holds it. So the waiting rank gives up when its time has passed, which ends the
  // communicator, or when the communicator has ended.
  Status lock_for_call(std::unique_lock<std::mutex>& lock, Waiter& waiter);
  // True if this process is a forked child of the process that made the communicator.
  bool forked() const { return !home.is_this(); }

  // The planning code asks this repeatedly. Error: the call's deadline has passed, or the
  // communicator has ended.
  Status may_go_on_planning(Waiter& waiter) const;

  // Returns the plan of the key's call, and makes it if no rank has made it.
  Result<CachedPlanPtr> prepare(const PlanKey& key, Waiter& waiter);
  Result<CachedPlanPtr> make(const PlanKey& key, Waiter& waiter);
  // Returns the communicator of a group, with the given members. The first rank that asks makes it,
  // without members on it; the others find it. The calling rank is rank `there` of the group. A
  // group of survivors does not depend on this communicator, which may have ended.
  struct GroupKey {
    std::uint64_t split = 0;  // number of the split, from 1
    int color = 0;
    auto operator<=>(const GroupKey&) const = default;
  };
  // The color of the survivors' communicator; `split` is then the number of the agreement's step.
  static constexpr int kSurvivors = -3;
  // The color of the communicator that a growing one becomes; `split` as for kSurvivors.
  static constexpr int kGrown = -4;
  using Made = Result<std::shared_ptr<CommunicatorShared>>;
  Made group(const std::shared_ptr<CommunicatorShared>& self, GroupKey key,
             const std::vector<Rank>& members, std::size_t there, const SplitOptions& options,
             Waiter& waiter);
  // group() in general: `make` is called by the first rank that asks.
  Made find_or_make_group(GroupKey key, const std::vector<Rank>& members, std::size_t there,
                          Waiter& waiter, const std::function<Made()>& make);
  // For a meeting of `members` after step `step` of an agreement (0: after none): they may go on
  // waiting for each other.
  Status may_meet(const std::vector<Rank>& members, std::uint64_t step, const char* needed_in);
  // For a group with ranks in other processes: waits until all have come. The first rank of this
  // process that asks calls it.
  Result<std::shared_ptr<CommunicatorShared>> meet_group(
      const std::shared_ptr<CommunicatorShared>& self, GroupKey key,
      const std::vector<Rank>& members, const SplitOptions& options);
  // The communicator for messages from rank `from` to rank `to`. The first rank that asks makes it.
  Result<std::shared_ptr<CommunicatorShared>> pair(const std::shared_ptr<CommunicatorShared>& self,
                                                   Rank from, Rank to, Waiter& waiter);
  // `self` is the parent; nullptr: the group has none.
  Result<std::shared_ptr<CommunicatorShared>> make_group(
      const std::shared_ptr<CommunicatorShared>& self, const std::vector<Rank>& members,
      const SplitOptions& options, std::shared_ptr<ProcessRanks> as_processes = nullptr,
      bool is_pair = false) const;

  // For processes: stores the places of all mailboxes and boards.
  void share_posts();
  bool is_elsewhere(Rank r) const { return processes != nullptr && !processes->is_here(r); }
  bool is_between_processes() const { return processes != nullptr || wire != nullptr; }
  bool are_far(Rank a, Rank b) const { return wire != nullptr && wire->are_far(a, b); }
  Status provide_mailboxes(const Plan& plan);
  Status provide_boards(const Plan& plan);

  // Makes the progress engine of one thread; the helper of this communicator, if any, also advances
  // it.
  std::shared_ptr<ProgressEngine> new_progress_engine() const;

  Status health() const;
  FlightRecord flight_record();
  // If times are recorded: records calls by site for `rankine top`, under these names. Call it
  // before a rank has a member.
  Status record_calls(std::string_view name, std::string_view group = {});
  std::size_t call_site_bytes() const { return call_sites == nullptr ? 0 : call_sites->bytes(); }
  // For a failed call: writes the flight record to the file, once for all ranks, and waits for it,
  // within the limit of a call that must return one second after its deadline.
  void leave_flight_record() noexcept;

  const int ranks;
  const std::shared_ptr<ProcessRanks> processes;  // nullptr: ranks are threads of this process
  Costs costs;  // final when all processes have come, before any call
  const HomeProcess home;
  const Environment forced;  // for calls that leave the choice to the engine
  const std::uint32_t first_count;
  const MailboxShape mail;
  const std::size_t most_plan_bytes;
  const std::vector<int> levels;    // empty on a modelled network: they belong to the machine
  const TuningTable* const tuning;  // or nullptr
  const std::optional<Order> order;
  FlightRecorder recorder;
  FlightRecordFile record_file;  // the file that the environment names
  const PlacedLines lines;
  RankControl rank_control;
  std::vector<ArenaOptions> arena_options;
  // Counts all living plans, including plans that only ranks hold. Relaxed: a bound, not a lock.
  std::atomic<std::size_t> plan_bytes{0};
  std::atomic<std::size_t> member_bytes{0};  // size of the members' tables
  // The clock of a modelled network, or nullptr. It stands after the members that every call uses,
  // to keep those close together.
  const std::unique_ptr<CallClock> clock;
  const bool network_is_environments;
  const int ports;                                // as CommunicatorOptions::ports
  const std::shared_ptr<const WireOptions> wire;  // as CommunicatorOptions::wire
  const std::vector<GivenAlgorithm> algorithms;   // as CommunicatorOptions::algorithms
  std::unique_ptr<const RankPlaces> places;       // nullptr: no placement
  std::unique_ptr<CallSiteFile> call_sites;       // nullptr: not recorded
  // The communicator that this one was split from, or nullptr. nullptr for a pair, which its
  // communicator owns.
  std::shared_ptr<CommunicatorShared> parent;

  mutable std::mutex mutex;  // guards the members below
  std::vector<bool> joined;
  struct Group {
    std::shared_ptr<CommunicatorShared> shared;  // nullptr: the first rank that asked is making it
    Status refusal;                              // the error that prevented it
    std::vector<Rank> awaited;  // by rank of the group: the rank here; -1: not awaited any more
    // True if all have found it.
    bool is_found() const {
      return std::all_of(awaited.begin(), awaited.end(), [](Rank r) { return r < 0; });
    }
    // That rank will never find it.
    void leave(std::size_t there) {
      awaited[there] = -1;
      if (shared != nullptr) shared->rank_control.leave(static_cast<Rank>(there));
    }
  };
  // By (from, to). They live as long as this object, because a message of a sender that has left
  // may be in flight.
  std::map<std::pair<Rank, Rank>, std::shared_ptr<CommunicatorShared>> pairs;
  std::map<GroupKey, Group> groups;  // not yet found by all of their ranks
  // by rank: slots with the receiver, credit with the sender, boards with the poster
  std::vector<Arena> arenas;
  ZeroedVector<Mailbox> mailboxes;  // [from * ranks + to]; made when a plan first needs one
  ZeroedVector<Board> boards;       // made when a plan first needs one
  PlanTable plans;  // under the lock, except find(), which any rank may call at any time
  // The last refused call and its error: the other ranks make this call too.
  struct Refused {
    OwnedKey key;
    Status why;
  };
  std::unique_ptr<const Refused> refused;
  std::vector<ScratchNote> scratch = std::vector<ScratchNote>(joined.size());
  // By rank, of members that have joined. Weak: the memory is freed with its member.
  std::vector<std::weak_ptr<Payloads>> payloads =
      std::vector<std::weak_ptr<Payloads>>(joined.size());

  std::shared_ptr<ProgressThread> progress;  // shared with the groups split from this; or nullptr
};

}  // namespace rankine
