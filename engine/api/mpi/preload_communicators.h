// The state that the preload library keeps for the program's communicators: a backend for each
// (Attached), and the collective calls that the program has prepared (MPI_Allreduce_init).
//
// The program knows a prepared call as a persistent MPI request: a persistent reception of an empty
// message from the process itself. MPI starts it, waits for it, tests it and frees it as any other
// request. When a started call is over, the library sends that message, which completes the
// request.
//
// Ranks may start prepared calls in different orders, but the engine needs one order per
// communicator. So each prepared call has a private channel, a backend for no other call, until it
// is freed. Preparing is a collective call in one order on all ranks; there the ranks agree on
// everything that a start would otherwise need to ask.
//
// Prepared calls make progress as started calls do (preload_requests.h).
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

// A communicator of this library with the ranks of a communicator of the program. The program's
// communicator may be freed before the calls prepared on it.
struct CommOfOurs {
  explicit CommOfOurs(MPI_Comm of);  // collective over `of`
  ~CommOfOurs();
  CommOfOurs(const CommOfOurs&) = delete;
  CommOfOurs& operator=(const CommOfOurs&) = delete;
  MPI_Comm comm = MPI_COMM_NULL;
};

// The backend of one prepared call.
struct Channel {
  std::shared_ptr<const CommOfOurs> on;  // destroyed after its backend
  std::unique_ptr<Backend> backend;
};

// The channels of one communicator of the program. Its preparing calls use them, one at a time as
// MPI demands.
class Channels {
 public:
  // Collective.
  explicit Channels(MPI_Comm comm) : on_(std::make_shared<const CommOfOurs>(comm)) {}

  MPI_Comm comm() const { return on_->comm; }

  // Collective. Returns a free channel, the same one on all ranks. Returns nullptr, on all ranks
  // alike, with the reason in `why`.
  std::shared_ptr<Channel> find(Passed* why);

 private:
  // Further prepared calls are passed on to MPI, because each channel allocates memory.
  static constexpr std::size_t kMost = 64;

  std::shared_ptr<const CommOfOurs> on_;
  std::vector<std::shared_ptr<Channel>> all_;
  bool by_messages_ = false;  // true: no channels
};

struct Prepared {
  // Duplicates a type that the program may free.
  void keep(MPI_Datatype type);
  MPI_Datatype ours(MPI_Datatype type) const;

  int rank = 0, ranks = 1;
  std::unordered_map<MPI_Datatype, std::unique_ptr<const TypeOfOurs>> types;
  std::shared_ptr<Channel> channel;  // nullptr: the call is passed on to MPI
  // For calls in which each rank knew only its own lengths: bytes from each rank to each rank.
  std::vector<std::size_t> lengths;
  // Starts the call; the new StartedCollective has this object as `prepared`. Returns an MPI error
  // code.
  std::function<int(const std::shared_ptr<Prepared>&)> start;
  bool packs = false;  // packs data at each start, so each start runs `start`
  // Otherwise: the started call, which later starts reuse. Destroyed before the channel.
  std::shared_ptr<StartedCollective> again;
  // Set by PreparedCalls.
  MPI_Request handle = MPI_REQUEST_NULL;
  int tag = 0;
  std::atomic<bool> is_under_way{false};  // the started call is not over
};

// One object per process; thread-safe.
class PreparedCalls {
 public:
  // Makes the handle of a call that has a channel. system: MPI provides no handle.
  Status add(const std::shared_ptr<Prepared>& call, MPI_Request* handle);
  // Returns nullptr if the handle is not from this library.
  std::shared_ptr<Prepared> find(MPI_Request handle);
  // As MPI_Start and MPI_Request_free, for any request. For a prepared call in flight, start()
  // returns MPI_ERR_REQUEST, and after free() the call continues to its end.
  int start(MPI_Request* request);
  int free(MPI_Request* request);
  // Marks a started call as over: its request becomes complete, or fails. Call from a thread that
  // may call MPI.
  void complete(Prepared& call, bool is_well);
  // Returns a call among `requests` that is started and not over, or nullptr.
  std::shared_ptr<Prepared> under_way(int count, const MPI_Request requests[]);
  // Destroys freed calls that are over.
  void sweep();
  // Call before MPI is finalized.
  void end();

 private:
  int begin();
  static int restart(const std::shared_ptr<Prepared>& call);

  std::atomic<std::size_t> known_{0};  // number of handles: 0 in most programs
  std::atomic<int> under_way_{0};
  std::mutex mutex_;  // guards the members below
  MPI_Comm self_ = MPI_COMM_NULL;
  std::unordered_map<MPI_Request, std::shared_ptr<Prepared>> calls_;
  std::vector<std::shared_ptr<Prepared>> freed_;
  std::vector<int> tags_;  // tags of destroyed calls, free for reuse
  int tags_made_ = 0;
};

PreparedCalls& prepared_calls();

// The program's communicators and their backends.

// While an object of this class exists on a thread, MPI calls of that thread come from the engine
// and are not taken over.
class Inside {
 public:
  Inside();
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool is_now();
};

// A communicator's backend is an MPI attribute of it, so freeing the communicator destroys the
// backend.
struct Attached {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, ranks = 1;
  bool is_ours = false;  // all processes have this library (preload_presence.h)
  int calls = 0;         // collective calls so far, until the backend is made
  bool made = false;     // an attempt to make the backend was made, on all ranks alike
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Channels> channels;  // for prepared calls; made with the first of them

  std::string_view name() const {
    if (backend == nullptr) return {};
    return backend->name();
  }
};

// One object per process; thread-safe.
class Communicators {
 public:
  // Returns nullptr for an intercommunicator.
  Attached* find(MPI_Comm comm);
  // Counts the communicator's next call, and makes the backend when it is time to; this step is
  // collective and waits for all ranks. Returns true if the backend exists, or if it cannot be
  // made.
  static bool begin_call(Attached& attached, Form form);
  // Call before MPI is finalized. The order is equal on all ranks, although their lists may be
  // ordered differently, because ending a post log waits for the other ranks.
  void forget_all();

 private:
  Attached& attached_to(MPI_Comm comm);
  static void make(Attached& attached);
  static int forget(MPI_Comm comm, int keyval, void* attribute, void* self);

  std::mutex mutex_;
  int keyval_ = MPI_KEYVAL_INVALID;
  std::list<Attached> all_;
  std::atomic<std::uint64_t> gone_{0};  // number of freed communicators
};

Communicators& communicators();

}  // namespace rankine::mpi
