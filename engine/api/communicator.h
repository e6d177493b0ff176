// Communicator connects N ranks, which are threads of one process or processes of one machine; each
// rank joins it and gets a Member (member.h), which makes the calls.
//
//   auto comm = rankine::Communicator::create({.ranks = 2});
//   // on the thread that plays rank r:
//   auto member = (*comm)->join(r);
//   Status s = member->all_reduce(std::span<const float>(x), std::span<float>(sum));
//
// Among processes, each process makes a communicator with a name and joins as its rank:
//
//   auto comm = rankine::Communicator::create({.ranks = 2, .rank = r, .name = "job"});
//   auto member = (*comm)->join(r);
//
// Processes: calls, messages and groups are the same as among threads, in buffers of any kind; data
// for other processes passes through memory that all of them share. If a process ends or becomes
// another program, ranks that wait for it get rank_lost within 0.1 s. If a process is stopped,
// ranks that wait for it get their deadline. In no case does a file remain in /dev/shm. A process
// may play several ranks (CommunicatorOptions::more_ranks) on threads that join as these ranks.
// Among themselves they are threads of one process; messages and groups within the process take no
// detour.
//
// Thread safety: all ranks share a Communicator, which is thread-safe. Members continue to work
// after the Communicator is destroyed. One thread at a time uses a Member. Every rank makes the
// same calls in the same order, as in MPI and NCCL. team.h has pinned threads that the engine owns.
//
// Errors. invalid_argument is found before any byte moves: the buffers are untouched and the
// communicator continues (but the other ranks wait for this call until their deadline). Every other
// error ends the communicator on all ranks: each of their calls returns the same error, outputs are
// undefined, and the process can make a new communicator.
//
// Forked children: every call in a forked child returns `forked`. The child may destroy inherited
// objects (this affects no other process, and the memory stays with the child) and may make its own
// communicators.
//
// Threads that end: no call is a cancellation point. A thread that is cancelled inside a call
// (deferred, the default) ends after the call, in its caller's code. The other ranks notice the end
// of a thread as follows. If its Member is destroyed or leave() is called: rank_lost at once. If
// the thread has made all calls of its rank and the Member stays: rank_lost after 50 to 100 ms, for
// ranks that their own first threads still play, unless these threads made that Member. Otherwise
// another thread may take over the rank (as in programs that start and join threads step by step),
// and the deadline ends the wait. To move a rank to another thread while threads of other ranks
// stay, let the next thread make a call (progress() is enough) before the first thread ends. A
// thread that has waited for long keeps a short time slice (engine/run/process.h): beside other
// work it continues at once; its share of the core, its policy and its nice value are unchanged.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/member.h"
#include "engine/base/costs.h"
#include "engine/base/status.h"
#include "engine/run/policy.h"
#include "numa/memory.h"
#include "numa/placement.h"

namespace rankine {

struct Algorithm;
struct CallNetwork;
struct CommunicatorShared;
struct NetworkReport;
struct WireOptions;

struct CommunicatorOptions {
  int ranks = 2;
  // A call that is not done after this time ends the communicator on all ranks.
  // milliseconds::max(): no limit.
  std::chrono::milliseconds timeout{30'000};
  std::optional<WaitPolicy>
      wait{};  // none: spin where every rank has a core, else yield, then park
  // Memory for each rank's mailboxes and scratch; empty: each page lies on the node that first
  // touches it. If the kernel refuses to bind to a node, that is not an error: the engine warns and
  // reports it in RankMemory::binding.
  std::span<const ArenaOptions> arenas{};
  // Sizes of groups of neighbouring ranks, innermost first (level_groups() in numa/placement.h).
  // Calls that name no levels use these; calls that name no group use the last size.
  std::span<const int> levels{};
  // Algorithms beside the catalogue, for calls that name them; made by given_algorithm() of
  // algorithms/catalogue.h. Their schedules must be correct: verify() proves that, planning does
  // not. Invalid for ranks that are processes, because each process could bring another schedule.
  std::vector<std::shared_ptr<const Algorithm>> algorithms{};
  // If true and this machine has a tuning table, the table chooses for calls that name no algorithm
  // (tuning/tuning.h).
  bool tuned = true;
  // The costs that decide the form of calls; none: the costs of the tuning table if `tuned` is true
  // and there is a table, otherwise the defaults.
  std::optional<Costs> costs{};
  // If true, the flight record (below) has the begin and end times of calls, and `rankine top`
  // shows the times and waits of this process's ranks by call site (Member::set_call_site()): two
  // clock readings per call and per wait, and calls do not take their short ways.
  bool record_times = false;
  // The memory that planning one call may take. A call that needs more is refused
  // (invalid_argument, on all ranks alike); the text names the algorithm that needs least.
  std::size_t plan_bytes = std::size_t{1} << 30;
  // The modelled network of the calls (network.h); none: the network of RANKINE_NETWORK, if set.
  std::shared_ptr<const CallNetwork> network{};
  // The order for calls that set none (call.h); none: coherent, except for algorithms that a call
  // names.
  std::optional<Order> order{};
  // The CPU, by the operating system's number, of a helper thread that advances the started calls
  // of all ranks while the ranks compute (request.h), on this communicator and on those that are
  // split from it; none: ranks advance their calls. The helper sleeps while no call is started, and
  // needs a separate core: teams that are made later avoid it if they can. On a modelled network
  // there is no helper, because started calls overlap with compute() anyway.
  std::optional<int> progress_core{};
  // For ranks that are processes of one user on one machine: the rank of this process, and a common
  // name of letters, digits, '.', '-' and '_' by which they find each other. Set both or none.
  std::optional<Rank> rank{};
  std::string_view name{};
  // Further ranks of this process, each on a separate thread.
  std::span<const Rank> more_ranks{};
  // The CPUs of the ranks: join() pins the calling thread to its rank's CPU, and the rank's memory
  // lies on that CPU's node, unless `arenas` is set. The pin stays after the member ends, and
  // threads that the pinned thread makes later inherit it. If the kernel refuses a pin, that is not
  // an error: the engine warns, and Member::cpu() shows it. A process with one rank is pinned
  // before the processes meet. None: threads are not pinned.
  std::optional<PlacementPolicy> placement{};
  // With `placement` (compact and scatter, among threads): prefer cores on which this process has
  // placed no other ranks.
  bool share_out_cores = true;
  // With `placement`: keeps the engine's memory, payloads too, from being swapped out.
  bool lock_memory = false;
  // The budget of network ports: the largest number of messages of a rank that may be in flight in
  // each direction (engine/compile/lower_mailbox.cc says how it is kept). ports_in_use() reports
  // the number reached. All calls then use mailboxes. Each communicator that is split from this
  // one, and each pair of ranks that exchange messages, has a separate budget. 0: no budget and no
  // cost. Invalid with a modelled network, which has its own ports.
  int ports = 0;
  // Ranks on several nodes (communicator_state.h), for mpi/member.h. nullptr: one node.
  std::shared_ptr<const WireOptions> wire{};
};

// The largest number of messages in flight at once, sent and received by one rank.
struct PortsInUse {
  int most_sent = 0, most_received = 0;
};

// The wait policy for `ranks` ranks on the cores that this process and the processes with these ids
// may use between them (affinity and quota).
WaitPolicy choose_wait_policy(int ranks, const Costs& costs = {},
                              const std::vector<int>& processes = {});
std::string to_string(const WaitPolicy& policy);
// The costs for that many threads on the cores of this process.
Costs costs_among(int ranks, const Costs& costs);

// A part of a communicator's memory: the bytes in use, and the mappings that contain them.
struct MemoryPart {
  std::size_t bytes = 0;
  std::vector<MemoryRange> ranges;
};

// The memory that a communicator holds for one rank, near the rank, and each refused request.
struct RankMemory {
  MemoryPart lines;      // progress, entry, record, wake_futex
  MemoryPart mailboxes;  // message slots of this reader, credit as sender, board; whole pages
  int senders = 0;       // the number of ranks from which it has a mailbox
  MemoryPart scratch;
  MemoryPart payloads;  // allocated by the user (member.h); whole pages
  Enforcement binding, huge_pages, locking;
  // Equal on all ranks. Enforced: each process reaches the others' private memory, so large calls
  // copy their data once; refused: all data are staged in shared memory; not_asked: threads.
  Enforcement private_access;
};

// The memory that a communicator holds for all ranks, on any node, in bytes.
struct SharedMemory {
  std::size_t plans = 0;
  std::size_t flight_record = 0;
  std::size_t tables = 0;  // the members' plan caches and mailbox ends; a modelled network's clock
};

class Communicator {
 public:
  static constexpr int kMaxRanks = 1024;
  // The limit if the options name a modelled network; plans may take as long and as much memory as
  // plan_bytes allows.
  static constexpr int kMaxOnNetwork = 4096;
  static constexpr int kMaxProcesses = 256;

  // Errors: ranks outside 1 .. kMaxRanks (or kMaxOnNetwork); a timeout or plan_bytes that is not
  // positive; an invalid wait policy, arenas, levels or placement; negative ports, or ports on a
  // modelled network; a progress_core to which no thread can be pinned; out of memory. With a name,
  // create() waits until all ranks of that name have come, at most for the timeout. An error of one
  // process is the error of all waiting processes: a rank that is taken twice (invalid_argument) or
  // ends (rank_lost); different numbers of ranks, versions, instruction sets, tuning tables, costs
  // or options (mismatch); a rank that does not come (timeout); memory or a right that the system
  // refuses (system, out_of_memory).
  static Result<std::unique_ptr<Communicator>> create(const CommunicatorOptions& options);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int ranks() const;

  // Returns the handle of one rank, once per rank: a rank that has left does not come back. With
  // `placement`, the thread that plays the rank calls join(), which pins it. Errors: rank out of
  // range, played by another process, or joined before; forked; out_of_memory.
  Result<std::unique_ptr<Member>> join(Rank rank);
  // As join(), but does not pin the calling thread. Member::pin_thread(), or the rank's first call
  // outside of a group, pins the thread of the rank.
  Result<std::unique_ptr<Member>> join_for_another_thread(Rank rank);

  // Ends all calls of all ranks, with Code::aborted and the text `why`, or with `reason` (a code
  // after which a communicator continues counts as aborted). Any thread may call it at any time.
  void abort(std::string_view why);
  void abort(Status reason);
  // Aborts without a text; async-signal-safe, for signal handlers.
  void abort() noexcept;
  // ok while the communicator works; otherwise the reason of its end.
  Status health() const;

  // The flight record as JSON: the communicator's health, and for every rank its state (with the
  // rank that it waits for) and its last 1,024 calls, oldest first:
  //   {"health": "timeout: ...", "ranks": [{"rank": 0, "calls": 118,
  //     "state": "rank 0 waits for rank 2 in round 3 of ...",
  //     "last": [{"call": 117, "what": "all_reduce f32 sum", "algorithm": "ring", "root": 0,
  //               "began_us": 1.5, "took_us": 3.25}, ...],
  //     "slow_waits": [{"call": 118, "for": 2, "round": 3, "began_us": 9.5, "took_us": 500000.5,
  //                     "end": "deadline"}, ...],
  //     "trials": [{"collective": "all_reduce", "bytes": 8192, "in_place": false,
  //                 "took_us": {"posts": 0.4, "reads": 0.2}, "form": "reads"}, ...]}, ...]}
  // slow_waits has the last 64 waits in which the rank went to sleep (or, if its policy keeps it
  // awake, waited 50 ms), and their ends: came, deadline, lost, mismatch, aborted
  // (engine/run/rank_control.h). trials has the last trials of calls with several forms, which
  // plan_of() names, by sizes up to `bytes`: the rank's median times from call to call, and the
  // form in force. Other times are microseconds since the earliest recorded event. Calls have
  // times only if times are recorded; only calls that have ended have took_us. Any thread may
  // call flight_record(), also while ranks work; it may miss calls that ranks make meanwhile.
  // Bytes of texts that are not UTF-8 are replaced. With RANKINE_FLIGHT_RECORD (environment.h)
  // the engine writes the record to a file when a call fails.
  std::string flight_record() const;

  // Bytes of all memory below (counted, not estimated from N); 0 in a forked child. The memory is
  // bounded: a pair of ranks gets a mailbox when a plan first needs it; scratch is the size that
  // the largest call needed, at most doubled; plans above a limit are dropped
  // (communicator_state.h). The users' payloads come on top.
  std::size_t memory_bytes() const;
  RankMemory memory_of(Rank rank) const;  // zeroes for an invalid rank
  SharedMemory shared_memory() const;
  std::size_t cached_plans() const;
  const WaitPolicy& wait_policy() const;
  std::optional<Order> order() const;  // as CommunicatorOptions::order

  // For a modelled network, while no rank makes a call. network_report() describes the calls so far
  // (network.h; all zero at full speed). restart_model_time() sets the model's time to 0, for all
  // ranks and for all communicators with the same seats. Among processes the report covers the
  // ranks of this process (the ports of others are 0), and every process must restart the time
  // before any of them makes the next call.
  NetworkReport network_report() const;
  // The ports in use in the calls so far, on a modelled network or with a budget of ports;
  // otherwise zeroes. `rank` may belong to another process.
  PortsInUse ports_in_use(Rank rank) const;
  void restart_model_time();

 private:
  friend struct MemberState;
  explicit Communicator(std::shared_ptr<CommunicatorShared> shared);
  std::shared_ptr<CommunicatorShared> shared_;  // the members share it
};

}  // namespace rankine
