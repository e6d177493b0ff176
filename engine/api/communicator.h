// What C++ users call: a communicator of N ranks, threads of one process.
//
//   auto comm = rankine::Communicator::create({.ranks = 2});
//   // on the thread that plays rank r:
//   auto member = (*comm)->join(r);
//   Status s = member->all_reduce(std::span<const float>(x), std::span<float>(sum));
//
// Or among processes, each of which makes one with a name and joins as the rank that it plays:
//
//   auto comm = rankine::Communicator::create({.ranks = 2, .rank = r, .name = "job"});
//   auto member = (*comm)->join(r);
//
// Calls are the same there, messages and groups too, in buffers of any kind: what others read of
// them passes through memory that all of them share. A process that ends or becomes another program
// is rank_lost for whoever waits for it, within 0.1 s of its end; one that is stopped, their
// deadline. Nothing is left behind in /dev/shm in any case. A process may play several of the ranks
// (CommunicatorOptions::more_ranks), on threads that join as such: among themselves these are
// threads of one process, with messages and groups that nobody else is in without a detour.
//
// A Communicator is shared by all ranks and thread-safe; members go on where it is destroyed before
// them. A Member is one rank's handle and is used by one thread at a time. Every rank makes the
// same calls in the same order, as in MPI and NCCL. Engine-owned pinned threads are in team.h.
//
// Errors. invalid_argument: found before any byte moves; the buffers are untouched and the
// communicator goes on (but the other ranks wait for this call until their deadline). Everything
// else ends the communicator on all ranks: each of their calls returns the same error, outputs are
// undefined, and a new communicator can be made in the same process.
//
// Processes and threads. A forked child is told `forked` by every call; it may destroy what it has
// inherited, which leaves all of it alone (the memory stays with the child), and make communicators
// of its own. No call is a cancellation point: a thread that is cancelled inside one (deferred, the
// default) ends after it, in its caller's code. What its end means to the others is what the end of
// any thread means. Where its Member is destroyed, or leave() is called: rank_lost at once. Where the
// thread that has made all calls of its rank ends and the Member stays: rank_lost after 50 to 100 ms
// for ranks that are still played by their own first threads, if these did not make that Member.
// Else another thread may take the rank over, as where threads are started and joined step by step,
// and the deadline ends the wait. To move a rank to another thread while threads of other ranks
// stay, let the next one make a call, if only progress(), before the first one ends. A thread
// that has waited for long keeps a short time slice (engine/run/time_slice.h): beside other work it
// goes on at once, and its share of the core, policy and nice value are as they were.
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

struct CallNetwork;
struct CommunicatorShared;
struct NetworkReport;

struct CommunicatorOptions {
  int ranks = 2;
  // A call that is not done by then ends the communicator on all ranks. milliseconds::max(): it may
  // take for ever.
  std::chrono::milliseconds timeout{30'000};
  std::optional<WaitPolicy>
      wait{};  // none: spin where every rank has a core, else yield, then park
  // Where each rank's mailboxes and scratch lie; empty: wherever first touched. A node that the
  // kernel does not bind to is no error, but a warning, and in RankMemory::binding.
  std::span<const ArenaOptions> arenas{};
  // Sizes of groups of neighbouring ranks, innermost first (level_groups() in numa/levels.h): what
  // calls that name no levels get, and the last one what calls that name no group get.
  std::span<const int> levels{};
  // Whether this machine's tuning table, where there is one, chooses for calls that name no
  // algorithm (tuning.h).
  bool tuned = true;
  // What decides the form of calls; none: the tuning table's, where there is one and `tuned` says
  // so, else the defaults.
  std::optional<Costs> costs{};
  // Whether the flight record (below) says when calls began and ended: two clock readings per call.
  bool record_times = false;
  // Of memory that the planning of a call may take. A call that needs more is refused
  // (invalid_argument, on all ranks alike), with the algorithm that needs least.
  std::size_t plan_bytes = std::size_t{1} << 30;
  // A modelled network to put the calls on (network.h); none: that of RANKINE_NETWORK, or none.
  std::shared_ptr<const CallNetwork> network{};
  // For calls that say nothing themselves (order.h); none: coherent, but for algorithms that are
  // asked for by name.
  std::optional<Order> order{};
  // The CPU, by the operating system's number, of a thread that moves on what ranks have started
  // while they do other things (request.h), on this communicator and those that are split from it;
  // none: ranks do so themselves. It sleeps while nothing is started, and wants a core of its own:
  // teams that are made later keep off it where they can. On a modelled network there is none:
  // started calls overlap with compute() as they are.
  std::optional<int> progress_core{};
  // Ranks that are processes of one user on one machine: the rank that this one plays, and a name
  // by which they find each other, of letters, digits, '.', '-' and '_'. Both or none.
  std::optional<Rank> rank{};
  std::string_view name{};
  // Further ranks that this process plays, each on a thread of its own, where it plays several.
  std::span<const Rank> more_ranks{};
  // Where ranks run: join() pins the calling thread to its rank's CPU, and the rank's memory lies on
  // that CPU's node, unless `arenas` says otherwise. The pin stays when the member ends, and threads
  // that this one makes later inherit it. What the kernel refuses is no error, but a warning; cpu()
  // of a member tells. Among processes, a process that plays one rank is pinned before they meet.
  // None: threads run where they are.
  std::optional<PlacementPolicy> placement{};
  // With `placement`, compact and scatter, of threads: cores on which this process has no other
  // ranks that are placed are taken first.
  bool share_out_cores = true;
  // With `placement`: keep the engine's memory, payloads too, from being swapped out.
  bool lock_memory = false;
  // At most so many messages of a rank are in flight in each direction, as if it had so many network
  // ports (engine/compile/lower_mailbox.cc says how this is kept); ports_in_use() tells how many
  // were. All calls go through mailboxes then. A budget of its own has each communicator that is
  // split from this one, and each pair of ranks that send each other messages. 0: no budget, and no
  // cost. Not with a modelled network, which has its own ports.
  int ports = 0;
};

// The most messages that a rank has had in flight at once: its own, and those to it.
struct PortsInUse {
  int most_sent = 0, most_received = 0;
};

// The policy for that many ranks on the cores that this process may use (affinity and quota), and
// that `processes` may, by their ids, where ranks are theirs.
WaitPolicy choose_wait_policy(int ranks, const Costs& costs = {},
                              const std::vector<int>& processes = {});
std::string to_string(const WaitPolicy& policy);
// What decides the forms of calls among that many threads on those cores.
Costs costs_among(int ranks, const Costs& costs);

// A part of a communicator's memory: how much is in use, and the mappings that it lies in.
struct MemoryPart {
  std::size_t bytes = 0;
  std::vector<MemoryRange> ranges;
};

// What a communicator holds for one rank, near it, and what could not be enforced.
struct RankMemory {
  MemoryPart lines;      // progress, entry, record, bell
  MemoryPart mailboxes;  // slots of messages to it, credit for its own, its board; in whole pages
  int senders = 0;       // ranks from which it has a mailbox
  MemoryPart scratch;
  MemoryPart payloads;  // that its user has allocated (payload.h); in whole pages
  Enforcement binding, huge_pages, locking;
};

// What it holds for all, anywhere, in bytes.
struct SharedMemory {
  std::size_t plans = 0;
  std::size_t flight_record = 0;
  std::size_t tables = 0;  // of the members: caches of plans, ends of mailboxes; the clock of a
                           // modelled network
};

class Communicator {
 public:
  static constexpr int kMaxRanks = 1024;
  // On a modelled network that the options name, where plans may take as long and as much memory as
  // plan_bytes allow.
  static constexpr int kMaxOnNetwork = 4096;
  static constexpr int kMaxProcesses = 256;

  // Errors: ranks outside 1 .. kMaxRanks (or kMaxOnNetwork), a timeout or plan_bytes that is not
  // positive, a wait policy, arenas, levels or a placement that there are not, negative ports or
  // ports on a modelled network, a progress_core where no thread
  // can be pinned, out of memory.
  // With a name, it waits until all ranks of that name are there, no longer than the timeout, and
  // what goes wrong for one is the error of all that are waiting: a rank that is there twice or
  // ends (rank_lost), different numbers of ranks, versions, instruction sets, tuning tables, costs
  // or options (mismatch), one that does not come (timeout), memory or a right that the system
  // refuses (system, out_of_memory).
  static Result<std::unique_ptr<Communicator>> create(const CommunicatorOptions& options);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int ranks() const;

  // The handle of one rank, once per rank: one that has left does not come back. Called by the
  // thread that is to play it where `placement` is given, which pins it. Errors: rank out of range,
  // played by another process, or joined before; forked, out_of_memory.
  Result<std::unique_ptr<Member>> join(Rank rank);
  // The same for another thread, which is pinned by Member::pin_thread(), or else by the rank's
  // first call outside of a group.
  Result<std::unique_ptr<Member>> join_for_another_thread(Rank rank);

  // Ends all calls of all ranks with Code::aborted and that text, or with that error (a code after
  // which a communicator would go on counts as aborted). From any thread, at any time.
  void abort(std::string_view why);
  void abort(Status reason);
  // The same without a text, for signal handlers: async-signal-safe.
  void abort() noexcept;
  // ok while the communicator works; else why it ended.
  Status health() const;

  // The flight record, as JSON: the communicator's health, and of every rank what it is doing, whom
  // it waits for, and its last 1,024 calls, oldest first:
  //   {"health": "timeout: ...", "ranks": [{"rank": 0, "calls": 118,
  //     "state": "rank 0 waits for rank 2 in round 3 of ...",
  //     "last": [{"call": 117, "what": "all_reduce f32 sum", "algorithm": "ring", "root": 0,
  //               "began_us": 1.5, "took_us": 3.25}, ...],
  //     "slow_waits": [{"call": 118, "for": 2, "round": 3, "began_us": 9.5, "took_us": 500000.5,
  //                     "end": "deadline"}, ...]}, ...]}
  // slow_waits are the last 64 waits so long that the rank went to sleep (or, where its policy
  // keeps it awake, that took 50 ms), and how they ended: came, deadline, lost, mismatch, aborted
  // (slow_waits.h). Times are microseconds since the earliest event recorded; of calls they are
  // there where they are recorded (took_us: of calls that have ended). From any thread, also while
  // ranks are at work; what they do meanwhile may be missing. Bytes of texts that are no UTF-8 are
  // replaced. RANKINE_FLIGHT_RECORD (environment.h) leaves it in a file when a call fails.
  std::string flight_record() const;

  // Bytes of everything below (counted, not estimated from N); nothing in a forked child. Bounded:
  // mailboxes are made for a pair of ranks when a plan first needs them, scratch is what the
  // largest call needed and at most twice that, and plans are let go above a limit
  // (communicator_state.h). Payloads are as many as users allocate.
  std::size_t memory_bytes() const;
  RankMemory memory_of(Rank rank) const;  // nothing, of a rank that there is not
  SharedMemory shared_memory() const;
  std::size_t cached_plans() const;
  const WaitPolicy& wait_policy() const;
  std::optional<Order> order() const;  // as CommunicatorOptions::order

  // On a modelled network, while no rank makes a call: what became of the calls so far (network.h;
  // all zero at full speed); and the model's time begins again at 0, for all ranks and for all
  // communicators that share their seats. Among processes the report is of the ranks that this one
  // plays (others' ports are 0), and all begin time again before any of them makes the next call.
  NetworkReport network_report() const;
  // Of the calls so far, on a modelled network or with a budget of ports; else zeros. Of a rank of
  // another process as well.
  PortsInUse ports_in_use(Rank rank) const;
  void restart_model_time();

 private:
  friend struct MemberState;
  explicit Communicator(std::shared_ptr<CommunicatorShared> shared);
  std::shared_ptr<CommunicatorShared> shared_;  // with its members
};

}  // namespace rankine
