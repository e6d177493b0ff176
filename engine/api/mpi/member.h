// The collective calls among MPI processes, or among threads of theirs: the calls of
// engine/api/member.h, by the same algorithms, kernels and checks, as messages of MPI, and within a
// node through memory.
//
//   MPI_Init(&argc, &argv);
//   {
//     auto me = rankine::mpi::join(MPI_COMM_WORLD).value();
//     me->all_reduce(std::span<const float>(x), std::span<float>(sum)).throw_if_error();
//   }
//   MPI_Finalize();
//
// Optional: //engine/api/mpi:member_openmpi and :member_mpich are built where an MPI is installed
// (third_party/mpi), and nothing else needs one. This header is for one MPI at a time, whose mpi.h
// comes first.
//
// What holds of a Member holds here: calls in the same order on all ranks, who may be in place, one
// thread at a time, the same bits on every rank, checks before any byte moves. What differs:
//  - Which algorithm a call gets that names none follows from a network (JoinOptions::network), as
//    for calls on a modelled one. Nobody keeps its time.
//  - Algorithms that have groups or levels get the nodes, where there are several and a call says
//    nothing else; where nodes are no such groups it is refused.
//  - The transport is messages; a call that asks for another one is refused. Within a node none of
//    MPI's (JoinOptions::within): threads read each other's buffers, processes what is shown to
//    them in memory that they share.
//  - Numbers travel as bytes: processes hold them alike. Operations of the user's are each rank's
//    own; that they are the same is not compared.
//  - Calls are waited for; there are no requests, groups, messages and payloads: MPI has these.
//
// Threads. join_threads() makes several ranks of a process, each for a thread of its own. Where MPI
// gives MPI_THREAD_MULTIPLE each thread calls MPI itself. With less, and MPI_THREAD_FUNNELED at
// least, the thread of the first of them does it for all (JoinOptions::carriers): it is the one
// that may call MPI, and a call of its rank ends when those of the others here have, or with its
// time. Members are destroyed by that thread then, when no other is in a call any more.
//
// Errors. invalid_argument: found before anything is sent; the communicator goes on. Else it has
// ended: its other ranks are told as they wait or make their next call, and every call returns the
// same error. timeout: of a message that does not come (from a call's first long wait on); says who
// waits for whom, and is a mismatch where messages of another call have come instead. mismatch: a
// message of another length. system: MPI's error, its text. Of a call that failed what was sent may
// still be under way: its buffers stay as they are until MPI_Finalize. A process that dies ends the
// job where MPI is set up so; else the others' time passes.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/call.h"
#include "engine/api/network.h"
#include "engine/api/typed_calls.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/run/process.h"

namespace rankine {
class Homes;
}

namespace rankine::mpi {

// Who calls MPI for the ranks of a process: each its own thread, or one thread for all.
enum class Carriers : std::uint8_t { each, leader };
// How messages go between processes of one node.
enum class Within : std::uint8_t { memory, messages };

struct JoinOptions {
  // As in CommunicatorOptions.
  std::chrono::milliseconds timeout{30'000};
  std::size_t plan_bytes = std::size_t{1} << 30;
  std::optional<Order> order{};
  // By which algorithms are chosen; none: that of RANKINE_NETWORK, or two_level where ranks lie on
  // nodes of equally many neighbours, or scale_out.
  std::shared_ptr<const CallNetwork> network{};
  // Longer messages go in parts of so many bytes: 1 to 2^30.
  std::size_t most_message_bytes = std::size_t{1} << 30;
  // None: memory where ranks are on several nodes; of one node messages, since who wants memory
  // there has a Communicator (communicator.h). Where it is none's and the system gives no memory,
  // it is messages, and a warning says so.
  std::optional<Within> within{};
  // A made-up node: processes that say the same, of those that MPI says share memory. None: that of
  // RANKINE_MPI_NODES (homes.h), or all that share memory.
  std::optional<int> node{};
  // None: each where MPI allows it.
  std::optional<Carriers> carriers{};
};

// What a rank has sent over MPI, and through memory of its node.
struct Sent {
  std::uint64_t messages = 0, bytes = 0;
  std::uint64_t messages_within = 0, bytes_within = 0;
};

class Member : public TypedCalls<Member, Status> {
 public:
  ~Member();  // a call of all ranks, as MPI_Comm_free is
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  Rank rank() const;
  int ranks() const;
  // Where they all are.
  const Homes& homes() const;

  // Any collective, untyped; the typed calls are those of typed_calls.h.
  Status call(const Call& call);
  Status barrier(const CallOptions& options = {});

  // As in engine/api/member.h. Errors: those of call() that can be told before it begins.
  Result<std::string> plan_of(const Call& call);
  Result<OrderSet> orders_of(const Call& call);

  // Ends the communicator on all ranks, with Code::aborted.
  void abort(std::string_view why);
  // ok while the communicator works, else why it ended; of other ranks' ends what calls have heard.
  Status health() const;

  Sent sent() const;  // by its calls so far

  struct State;

 private:
  friend class TypedCalls<Member, Status>;
  friend Result<std::vector<std::unique_ptr<Member>>> join_threads(MPI_Comm comm, int threads,
                                                                   const JoinOptions& options);
  explicit Member(ProcessOwned<State> state);
  Status submit(const Call& request) { return call(request); }

  ProcessOwned<State> state_;
};

// The calling process's rank of `comm`, an intracommunicator: a call of all its ranks. It keeps two
// communicators of its own, so what else goes on on `comm` is kept apart. Errors, on all ranks
// where one has any: an MPI that is not initialized or has ended, a null or an intercommunicator;
// more than 1,024 ranks; options that are out of range or not the same on all; an environment
// variable that is wrong, or not the same on all (RANKINE_TRANSPORT other than mailbox is wrong
// here); a thread that MPI_Init_thread has not allowed to call MPI; memory that was asked for and
// is not to be had; MPI's.
Result<std::unique_ptr<Member>> join(MPI_Comm comm, const JoinOptions& options = {});

// The same of so many ranks of this process, which other processes may have fewer or more of: those
// of a process follow one another, in the order of the processes. Errors also: 0 threads; carriers
// that MPI_Init_thread has not allowed; more threads than MPI has tags for.
Result<std::vector<std::unique_ptr<Member>>> join_threads(MPI_Comm comm, int threads,
                                                          const JoinOptions& options = {});

// The network that ranks over MPI are on, measured: what a message costs within a node, and what it
// costs between two nodes.

// A call of all ranks: messages to and fro between two ranks of a node, and between two of
// different ones, short and long, while the others wait; alpha and beta are those of medians
// (message_line.h). Then all ranks of a node send to another node at once: where they are in each
// other's way the nodes share a link up and down (two_level wiring), else each has its own. The
// same network on all ranks, with the nodes as its groups: write_network() makes a file of it,
// which RANKINE_NETWORK and every tool take. Errors: one rank, nodes that are no groups, and times
// from which, measured several times over, no alpha or bandwidth follows (invalid_argument); those
// of calls.
Result<Fabric> measure_network(Member& me);

}  // namespace rankine::mpi
