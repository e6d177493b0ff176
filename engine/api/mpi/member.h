// An mpi::Member makes collective calls among MPI processes, or among threads of MPI processes. It
// has the calls of engine/api/member.h, with the same algorithms, kernels and checks; data move as
// MPI messages, and within a node through memory.
//
//   MPI_Init(&argc, &argv);
//   {
//     auto me = rankine::mpi::join(MPI_COMM_WORLD).value();
//     me->all_reduce(std::span<const float>(x), std::span<float>(sum)).throw_if_error();
//   }
//   MPI_Finalize();
//
// Optional: //engine/api/mpi:member_openmpi and :member_mpich are built where an MPI is installed
// (third_party/mpi); nothing else needs MPI. A translation unit uses this header for one MPI, and
// includes that MPI's mpi.h first.
//
// As for Member: all ranks make calls in the same order, the same collectives may run in place, a
// member is used by one thread at a time, results have the same bits on every rank, and arguments
// are checked before any byte moves. Differences:
//  - If a call names no algorithm, a network model (JoinOptions::network) decides, as for calls on
//    a modelled network. The model's clock is not used.
//  - If there are several nodes and a call sets no groups or levels, algorithms with groups or
//    levels get the nodes. If the nodes cannot serve as groups, the call is refused.
//  - The transport is messages; a call that names another transport is refused. Within a node, data
//    bypass MPI (JoinOptions::within): threads read each other's buffers, and processes read copies
//    in memory that they share, as ranks of a Communicator do.
//  - Numbers travel as bytes, so all processes must use the same number formats. Each rank runs its
//    own copy of a user operation; the copies are not compared.
//  - Calls block. There are no requests, groups, messages and payloads: MPI provides these.
//
// Threads. join_threads() makes several ranks in one process, one per thread. With
// MPI_THREAD_MULTIPLE each thread calls MPI itself. With MPI_THREAD_FUNNELED or
// MPI_THREAD_SERIALIZED, the thread of the process's first rank calls MPI for all of them
// (JoinOptions::carriers): it must be a thread that may call MPI, and a call of the first rank
// returns only when the same call of the process's other ranks is over, or at the timeout. In this
// mode that thread destroys all members, after the other threads have returned from their calls.
//
// Errors. invalid_argument: found before any message is sent; the communicator stays usable. Any
// other error ends the communicator: other ranks learn it while they wait or at their next call,
// and every later call returns the same error. timeout: a message did not arrive in time (counted
// from the first long wait of a call); the text names the waiting rank and the missing rank. If
// messages of another call arrived instead, the error is mismatch. mismatch: also a message of
// another length. system: an MPI error, with MPI's text. After a failed call its messages may still
// be in flight: the buffers must stay valid until MPI_Finalize. If a process dies, MPI ends the job
// if it is configured so; otherwise the other ranks time out.
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
class RankLocations;
}

namespace rankine::mpi {

// The threads that call MPI for the ranks of a process: each rank's thread, or one leading thread.
enum class Carriers : std::uint8_t { each, leader };
// The message path between processes of one node.
enum class Within : std::uint8_t { memory, messages };

struct JoinOptions {
  // As in CommunicatorOptions.
  std::chrono::milliseconds timeout{30'000};
  std::size_t plan_bytes = std::size_t{1} << 30;
  std::optional<Order> order{};
  // Chooses the algorithms. Unset: the network of RANKINE_NETWORK; without it two_level if the
  // ranks lie on nodes of equally many consecutive ranks, otherwise scale_out.
  std::shared_ptr<const CallNetwork> network{};
  // Longer messages are sent in parts of this many bytes: 1 to 2^30.
  std::size_t most_message_bytes = std::size_t{1} << 30;
  // Unset: memory if the ranks are on several nodes; messages on a single node (for memory on one
  // node use a Communicator, communicator.h). If unset and the system provides no shared memory, or
  // there are more than Communicator::kMaxProcesses ranks, the path is messages, and a warning is
  // printed.
  std::optional<Within> within{};
  // A made-up node: processes with equal numbers that share memory according to MPI form a node.
  // Unset: the node of RANKINE_MPI_NODES (rank_locations.h); without it all processes that share
  // memory.
  std::optional<int> node{};
  // Unset: each if MPI allows it, otherwise leader.
  std::optional<Carriers> carriers{};
};

// The messages and bytes that a rank has sent over MPI, and through the node's memory.
struct Sent {
  std::uint64_t messages = 0, bytes = 0;
  std::uint64_t messages_within = 0, bytes_within = 0;
};

class Member : public TypedCalls<Member, Status> {
 public:
  ~Member();  // collective, as MPI_Comm_free is
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  Rank rank() const;
  int ranks() const;
  // The placement of all ranks.
  const RankLocations& locations() const;

  // Makes any collective call, untyped. typed_calls.h has the typed calls.
  Status call(const Call& call);
  Status barrier(const CallOptions& options = {});

  // As in engine/api/member.h. Errors: the errors of call() that are known before the call
  // begins.
  Result<std::string> plan_of(const Call& call);
  Result<OrderSet> orders_of(const Call& call);

  // Ends the communicator on all ranks, with Code::aborted.
  void abort(std::string_view why);
  // ok while the communicator works, otherwise the reason of its end. Ends caused by other ranks
  // are known only once a call has received them.
  Status health() const;

  Sent sent() const;  // sum over this member's calls so far

  struct State;

 private:
  friend class TypedCalls<Member, Status>;
  friend Result<std::vector<std::unique_ptr<Member>>> join_threads(MPI_Comm comm, int threads,
                                                                   const JoinOptions& options);
  explicit Member(ProcessOwned<State> state);
  Status submit(const Call& request) { return call(request); }

  ProcessOwned<State> state_;
};

// Makes the calling process a rank of `comm`, an intracommunicator. Collective over `comm`. The
// member uses two private communicators, separate from other traffic on `comm`. If one rank has
// an error, all ranks return an error: MPI is not initialized or is finalized; `comm` is null or an
// intercommunicator; more than 1,024 ranks; an option is out of range or differs between ranks; an
// environment variable is invalid or differs between ranks (RANKINE_TRANSPORT must be unset or
// mailbox); MPI_Init_thread does not allow the thread to call MPI; requested memory is not
// available; an MPI error.
Result<std::unique_ptr<Member>> join(MPI_Comm comm, const JoinOptions& options = {});

// As join(), for `threads` ranks of this process. Processes may have different numbers of threads.
// The ranks of a process have consecutive numbers, and processes keep their order in `comm`.
// Further errors: 0 threads; carriers that MPI_Init_thread does not allow; more threads than MPI
// has tags for.
Result<std::vector<std::unique_ptr<Member>>> join_threads(MPI_Comm comm, int threads,
                                                          const JoinOptions& options = {});

// measure_network() measures the network of ranks over MPI: the cost of a message within a node,
// and between two nodes.

// Collective. Sends short and long messages back and forth between two ranks of one node, and
// between two ranks of different nodes, while the other ranks wait; alpha and beta come from the
// medians (line_through(), rank_locations.h). Then all ranks of a node send to another node at
// once: if they slow each other down, the nodes share an up and a down link (two_level wiring);
// otherwise each rank has its own link. All ranks get the same network, with the nodes as groups.
// write_network() makes a file of it for RANKINE_NETWORK and for every tool. Errors
// (invalid_argument): one rank; nodes that do not form groups; times that give no valid alpha or
// bandwidth after several attempts. Also the errors of calls.
Result<Fabric> measure_network(Member& me);

}  // namespace rankine::mpi
