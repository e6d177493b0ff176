// What C++ users call: a communicator of N ranks in one process.
//
//   auto comm = rankine::Communicator::create({.ranks = 2});
//   // on the thread that plays rank r:
//   auto member = (*comm)->join(r);
//   Status s = member->all_reduce(std::span<const float>(x), std::span<float>(sum));
//
// A Communicator is shared by all ranks and thread-safe; it must outlive its members. A Member is
// one rank's handle and is used by one thread at a time. Every rank makes the same calls in the
// same order, as in MPI and NCCL. Engine-owned pinned threads are in team.h.
//
// Buffers belong to the caller, must stay valid until the call returns, need no alignment, and may
// be in place: all_reduce, reduce, broadcast and all_to_all with in == out; all_gather with in at
// the rank's own block of out; reduce_scatter with out at the rank's own block of in. all_reduce
// and all_to_all are in place on all ranks or on none; a rank that brings and gets nothing says so
// too, by equal pointers that are not null or by others.
//
// An all-reduce leaves the same bits on every rank, whatever the type, the algorithm, the transport
// and however its buffers lie: sums of floats are added up in one order, which does not depend on
// who adds (schedule.h). The algorithms that cannot say so in the catalogue (other_bits); they run
// where they are asked for by name, and are never chosen.
//
// What a rank gets is its own: its output may overlap with no buffer, input or output, of another
// rank in the same call, not even where both would store the same. (One input for all ranks is
// fine, and buffers that a call does not use, such as `out` where nothing is to be had, may be
// anything.) Ranks that share all the same are told, by a mismatch that ends the communicator,
//   - in the first call of a kind (of one plan): any two ranks, before either has a result;
//   - in later ones: two ranks one of which hears from the other directly (from everybody in one
//     shot, from a neighbour in a ring), of any overlap on direct transport, and on mailboxes and
//     boards where the other's output begins where a buffer of its own does. Ranks that were done
//     by then may have got wrong results, if only some share.
// A rank that has left the call already (such as the root of a small broadcast) is not looked at:
// its buffers may be another one's by now. Sharing that is not found out gives wrong results.
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
// any thread means: rank_lost at once where its Member is destroyed, else their deadline.
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

#include "engine/api/call.h"
#include "engine/api/payload.h"
#include "engine/base/costs.h"
#include "engine/base/status.h"
#include "engine/run/process_owned.h"
#include "engine/run/wait_policy.h"
#include "numa/arena.h"

namespace rankine {

class Member;
class RoundObserver;
struct CallNetwork;
struct NetworkReport;

struct CommunicatorOptions {
  int ranks = 2;
  // A call that is not done by then ends the communicator on all ranks. milliseconds::max(): it may
  // take for ever.
  std::chrono::milliseconds timeout{30'000};
  std::optional<WaitPolicy>
      wait{};  // none: spin where every rank has a core, else yield, then park
  // Where each rank's mailboxes and scratch lie; empty: wherever first touched.
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
};

// The policy for that many ranks on the cores that this process may use (affinity and quota).
WaitPolicy choose_wait_policy(int ranks, const Costs& costs = {});
std::string to_string(const WaitPolicy& policy);

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

  // Errors: ranks outside 1 .. kMaxRanks, a timeout or plan_bytes that is not positive, a wait
  // policy, arenas or levels that there are not, out of memory.
  static Result<std::unique_ptr<Communicator>> create(const CommunicatorOptions& options);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int ranks() const;

  // The handle of one rank, once per rank and at a time. Errors: rank out of range or already
  // joined.
  Result<std::unique_ptr<Member>> join(Rank rank);

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

  // On a modelled network, while no rank makes a call: what became of the calls so far (network.h;
  // all zero at full speed); and the model's time begins again at 0, for all ranks and for all
  // communicators that share their seats.
  NetworkReport network_report() const;
  void restart_model_time();

 private:
  friend class Member;
  friend class Team;
  struct Shared;
  // For Team: ranks whose functions return have left, until the next run. `rank` is one of ours.
  void leave(Rank rank);
  void come_back();
  explicit Communicator(ProcessOwned<Shared> shared);
  ProcessOwned<Shared> shared_;
};

class Member {
 public:
  ~Member();  // the rank leaves: others that still need it get Code::rank_lost
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  Rank rank() const;
  int ranks() const;

  // Zeroes for n elements, near this rank: see payload.h for where, how long and for whom. No
  // collective, and what it refuses leaves the communicator as it is. Errors: invalid_argument for
  // an n whose bytes no pointers can tell apart, out_of_memory, forked.
  template <PayloadElement T>
  Result<Payload<T>> allocate(std::size_t n);

  // Any collective, untyped.
  Status call(const Call& call);
  // The same, and `observer` is told of every round (interpret.h). Slow.
  Status call(const Call& call, RoundObserver& observer);

  // On a modelled network (network.h): seconds of the model from the communicator's beginning until
  // this rank's last message had ended, and its own work; and work of its own that takes so long,
  // from when its last call ended. At full speed 0, and an error.
  double model_time() const;
  Status compute(double seconds);

  // What such a call would get: "ring, mailbox transport", "double_tree, P = 8, direct transport".
  Result<std::string> plan_of(const Call& call);

  // out[i] = in of all ranks, reduced. Sizes must agree.
  template <class T>
  Status all_reduce(std::span<const T> in, std::span<T> out, ReduceOp op = ReduceOp::sum,
                    const CallOptions& options = {});
  template <class T>
  Status all_reduce(std::span<T> in_place, ReduceOp op = ReduceOp::sum,
                    const CallOptions& options = {});
  // out = the ranks' inputs one after the other: ranks() * in.size() elements.
  template <class T>
  Status all_gather(std::span<const T> in, std::span<T> out, const CallOptions& options = {});
  // out = this rank's block of the reduced inputs: in has ranks() * out.size() elements.
  template <class T>
  Status reduce_scatter(std::span<const T> in, std::span<T> out, ReduceOp op = ReduceOp::sum,
                        const CallOptions& options = {});
  // Everyone's data = the root's.
  template <class T>
  Status broadcast(std::span<T> data, Rank root, const CallOptions& options = {});
  // out at the root = in of all ranks, reduced; elsewhere out is not used and may be empty.
  template <class T>
  Status reduce(std::span<const T> in, std::span<T> out, Rank root, ReduceOp op = ReduceOp::sum,
                const CallOptions& options = {});
  // Block d of in goes to rank d, which puts it at the place of the sender: in and out have ranks()
  // blocks of the same size.
  template <class T>
  Status all_to_all(std::span<const T> in, std::span<T> out, const CallOptions& options = {});
  // out at the root = the ranks' inputs one after the other; elsewhere out may be empty.
  template <class T>
  Status gather(std::span<const T> in, std::span<T> out, Rank root,
                const CallOptions& options = {});
  // out = this rank's block of the root's in; elsewhere in may be empty.
  template <class T>
  Status scatter(std::span<const T> in, std::span<T> out, Rank root,
                 const CallOptions& options = {});
  // The receiver's data = the sender's. All ranks call it; the others' data are not touched.
  template <class T>
  Status send_recv(std::span<T> data, Rank from, Rank to, const CallOptions& options = {});
  // Returns when all ranks have called it.
  Status barrier(const CallOptions& options = {});

  // With one count per rank, zeros included (all_gather, reduce_scatter, gather, scatter), or one
  // per pair, [from * ranks() + to] (all_to_all). Counts must be the same on all ranks; buffers
  // hold what the rank gives and gets, without gaps.
  template <class T>
  Status with_counts(Collective collective, std::span<const T> in, std::span<T> out,
                     std::span<const std::size_t> counts, Rank root = 0,
                     ReduceOp op = ReduceOp::sum, const CallOptions& options = {});

 private:
  friend class Communicator;
  friend class Buckets;
  struct State;
  Member(Communicator& communicator, Rank rank);
  // For what makes calls of many: this rank cannot make its next one, so nobody else shall wait for
  // it. Returns the reason.
  Status give_up(Status reason);
  template <class Run>
  Status run(const Call& call, Run run);
  Status size_mismatch(std::string_view what, std::size_t got, std::size_t allowed) const;
  // Whether buffers of so many elements are what a call with counts needs of this rank.
  Status check_sizes(const Call& call, std::size_t in, std::size_t out) const;
  Result<PayloadMemory> allocate_elements(std::size_t n, std::size_t element_bytes);

  ProcessOwned<State> state_;
};

template <PayloadElement T>
Result<Payload<T>> Member::allocate(std::size_t n) {
  auto memory = allocate_elements(n, sizeof(T));
  if (!memory.ok()) return memory.status();
  return Payload<T>(std::move(*memory), n);
}

template <class T>
Status Member::all_reduce(std::span<const T> in, std::span<T> out, ReduceOp op,
                          const CallOptions& options) {
  if (in.size() != out.size()) return size_mismatch("out", out.size(), in.size());
  return call({.collective = Collective::all_reduce,
               .in = in.data(),
               .out = out.data(),
               .count = in.size(),
               .type = data_type_of<T>,
               .op = op,
               .options = options});
}

template <class T>
Status Member::all_reduce(std::span<T> in_place, ReduceOp op, const CallOptions& options) {
  return all_reduce(std::span<const T>(in_place), in_place, op, options);
}

template <class T>
Status Member::all_gather(std::span<const T> in, std::span<T> out, const CallOptions& options) {
  const std::size_t all = in.size() * static_cast<std::size_t>(ranks());
  if (out.size() != all) return size_mismatch("out", out.size(), all);
  return call({.collective = Collective::all_gather,
               .in = in.data(),
               .out = out.data(),
               .count = in.size(),
               .type = data_type_of<T>,
               .options = options});
}

template <class T>
Status Member::reduce_scatter(std::span<const T> in, std::span<T> out, ReduceOp op,
                              const CallOptions& options) {
  const std::size_t all = out.size() * static_cast<std::size_t>(ranks());
  if (in.size() != all) return size_mismatch("in", in.size(), all);
  return call({.collective = Collective::reduce_scatter,
               .in = in.data(),
               .out = out.data(),
               .count = out.size(),
               .type = data_type_of<T>,
               .op = op,
               .options = options});
}

template <class T>
Status Member::broadcast(std::span<T> data, Rank root, const CallOptions& options) {
  return call({.collective = Collective::broadcast,
               .in = data.data(),
               .out = data.data(),
               .count = data.size(),
               .type = data_type_of<T>,
               .root = root,
               .options = options});
}

template <class T>
Status Member::reduce(std::span<const T> in, std::span<T> out, Rank root, ReduceOp op,
                      const CallOptions& options) {
  if (rank() == root && out.size() != in.size()) return size_mismatch("out", out.size(), in.size());
  return call({.collective = Collective::reduce,
               .in = in.data(),
               .out = out.data(),
               .count = in.size(),
               .type = data_type_of<T>,
               .op = op,
               .root = root,
               .options = options});
}

template <class T>
Status Member::all_to_all(std::span<const T> in, std::span<T> out, const CallOptions& options) {
  const auto n = static_cast<std::size_t>(ranks());
  if (in.size() % n != 0) return size_mismatch("in", in.size(), in.size() / n * n);
  if (out.size() != in.size()) return size_mismatch("out", out.size(), in.size());
  return call({.collective = Collective::all_to_all,
               .in = in.data(),
               .out = out.data(),
               .count = in.size() / n,
               .type = data_type_of<T>,
               .options = options});
}

template <class T>
Status Member::gather(std::span<const T> in, std::span<T> out, Rank root,
                      const CallOptions& options) {
  const std::size_t all = in.size() * static_cast<std::size_t>(ranks());
  if (rank() == root && out.size() != all) return size_mismatch("out", out.size(), all);
  return call({.collective = Collective::gather,
               .in = in.data(),
               .out = out.data(),
               .count = in.size(),
               .type = data_type_of<T>,
               .root = root,
               .options = options});
}

template <class T>
Status Member::scatter(std::span<const T> in, std::span<T> out, Rank root,
                       const CallOptions& options) {
  const std::size_t all = out.size() * static_cast<std::size_t>(ranks());
  if (rank() == root && in.size() != all) return size_mismatch("in", in.size(), all);
  return call({.collective = Collective::scatter,
               .in = in.data(),
               .out = out.data(),
               .count = out.size(),
               .type = data_type_of<T>,
               .root = root,
               .options = options});
}

template <class T>
Status Member::send_recv(std::span<T> data, Rank from, Rank to, const CallOptions& options) {
  return call({.collective = Collective::send_recv,
               .in = data.data(),
               .out = data.data(),
               .count = data.size(),
               .type = data_type_of<T>,
               .root = from,
               .peer = to,
               .options = options});
}

template <class T>
Status Member::with_counts(Collective collective, std::span<const T> in, std::span<T> out,
                           std::span<const std::size_t> counts, Rank root, ReduceOp op,
                           const CallOptions& options) {
  const Call request{.collective = collective,
                     .in = in.data(),
                     .out = out.data(),
                     .type = data_type_of<T>,
                     .op = op,
                     .root = root,
                     .counts = counts,
                     .options = options};
  Status status = check_sizes(request, in.size(), out.size());
  return status.ok() ? call(request) : status;
}

}  // namespace rankine
