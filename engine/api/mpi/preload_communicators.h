// Collective calls that a program has made ready (MPI_Allreduce_init), each of which it knows as a
// persistent request of MPI's.
//
// That is one of its own: of a reception of nothing from this process itself, which MPI starts,
// waits for, tests, lays into arrays and frees as any other. What is sent there, once a started
// call is over, completes it.
//
// Ranks may start such calls in different orders, and the engine makes a communicator's calls in
// one. So each of them has a channel of its own until it is freed: a backend for no other call.
// Making ready is a call of all ranks in one order, which agree there on everything that starting
// would have to ask about.
//
// What moves them on is what moves on any started call (preload_requests.h).
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/api/mpi/preload_backend.h"
#include "engine/api/mpi/preload_blocks.h"
#include "engine/api/mpi/preload_report.h"
#include "engine/base/status.h"

namespace rankine::mpi {

// A communicator of this library's with the ranks of one of the program's, which may go before what
// was made ready on it.
struct CommOfOurs {
  explicit CommOfOurs(MPI_Comm of);  // a call of all its ranks
  ~CommOfOurs();
  CommOfOurs(const CommOfOurs&) = delete;
  CommOfOurs& operator=(const CommOfOurs&) = delete;
  MPI_Comm comm = MPI_COMM_NULL;
};

// Who carries one call that is made ready.
struct Channel {
  std::shared_ptr<const CommOfOurs> on;  // goes after its backend
  std::unique_ptr<Backend> backend;
};

// Of a communicator of the program's. Used by its calls that make ready, one at a time as MPI wants
// them.
class Channels {
 public:
  // A call of all ranks.
  explicit Channels(MPI_Comm comm) : on_(std::make_shared<const CommOfOurs>(comm)) {}

  MPI_Comm comm() const { return on_->comm; }

  // One that nobody has, on all ranks the same: a call of them all. nullptr, on all ranks alike:
  // why not.
  std::shared_ptr<Channel> find(Passed* why);

 private:
  // More are MPI's: each has memory of its own.
  static constexpr std::size_t kMost = 64;

  std::shared_ptr<const CommOfOurs> on_;
  std::vector<std::shared_ptr<Channel>> all_;
  bool by_messages_ = false;  // then there are none
};

struct Prepared {
  // Types that the program may free, and the same that it does not.
  void keep(MPI_Datatype type);
  MPI_Datatype ours(MPI_Datatype type) const;

  int rank = 0, ranks = 1;
  std::unordered_map<MPI_Datatype, std::unique_ptr<const TypeOfOurs>> types;
  std::shared_ptr<Channel> channel;  // nullptr: the call is MPI's
  // Where each rank knew only its own: bytes from each to each.
  std::vector<std::size_t> lengths;
  // Starts it: of its StartedCollective this is `prepared`. An error of MPI's.
  std::function<int(const std::shared_ptr<Prepared>&)> start;
  bool packs = false;  // each time, so it goes through `start` each time
  // Else what it has started once, and restarts; goes before the channel.
  std::shared_ptr<StartedCollective> again;
  // Set by PreparedCalls.
  MPI_Request handle = MPI_REQUEST_NULL;
  int tag = 0;
  std::atomic<bool> is_under_way{false};  // what it has started is not over yet
};

// This process's; thread-safe.
class PreparedCalls {
 public:
  // Gives the handle of one that has a channel. system: MPI has none to give.
  Status add(const std::shared_ptr<Prepared>& call, MPI_Request* handle);
  // nullptr: none of ours.
  std::shared_ptr<Prepared> find(MPI_Request handle);
  // As MPI's functions of these names do it: of one of ours, or whatever it is. One of ours that is
  // under way is MPI_ERR_REQUEST to start(), and goes on after free().
  int start(MPI_Request* request);
  int free(MPI_Request* request);
  // A started call is over: its request becomes complete, or has failed. By a thread that may call
  // MPI.
  void complete(Prepared& call, bool is_well);
  // One of these that is started and not over; nullptr: none.
  std::shared_ptr<Prepared> under_way(int count, const MPI_Request requests[]);
  // Forgets those that have been freed and are over.
  void sweep();
  // Before MPI ends.
  void end();

 private:
  int begin();
  static int restart(const std::shared_ptr<Prepared>& call);

  std::atomic<std::size_t> known_{0};  // handles: most programs have none
  std::atomic<int> under_way_{0};
  std::mutex mutex_;  // guards what follows
  MPI_Comm self_ = MPI_COMM_NULL;
  std::unordered_map<MPI_Request, std::shared_ptr<Prepared>> calls_;
  std::vector<std::shared_ptr<Prepared>> freed_;
  std::vector<int> tags_;  // of calls that are no more
  int tags_made_ = 0;
};

PreparedCalls& prepared_calls();

// The program's communicators, each with who carries its calls.

// Calls of MPI that the engine itself makes, on this thread while there is one of these, are not
// taken.
class Inside {
 public:
  Inside();
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool is_now();
};

// A communicator's backend is its attribute, so it goes when the communicator does.
struct Attached {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, ranks = 1;
  bool is_ours = false;  // all its processes have this library (preload_presence.h)
  int calls = 0;         // of collective functions so far, while there is no backend
  bool made = false;     // the backend, if one could be, on all ranks alike
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Channels> channels;  // of calls that are made ready, once there are any

  std::string_view name() const {
    if (backend == nullptr) return {};
    return backend->name();
  }
};

// This process's; thread-safe.
class Communicators {
 public:
  // nullptr: an intercommunicator.
  Attached* find(MPI_Comm comm);
  // Its next call begins, of all ranks where that makes the backend: a call that waits for them.
  // Whether there is one now, or cannot be.
  static bool begin_call(Attached& attached, Form form);
  // Before MPI ends. In one order on all ranks, whose lists may have another: who has posted calls
  // waits for the others.
  void forget_all();

 private:
  Attached& attached_to(MPI_Comm comm);
  static void make(Attached& attached);
  static int forget(MPI_Comm comm, int keyval, void* attribute, void* self);

  std::mutex mutex_;
  int keyval_ = MPI_KEYVAL_INVALID;
  std::list<Attached> all_;
  std::atomic<std::uint64_t> gone_{0};  // communicators
};

Communicators& communicators();

}  // namespace rankine::mpi
