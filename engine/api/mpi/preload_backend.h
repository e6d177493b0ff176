// Who makes the calls that the preload library takes over: one object per communicator of the
// program's and process. The one place that knows what ranks are connected by.
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <string>

#include "engine/api/call.h"
#include "engine/api/mpi/post_log.h"
#include "engine/api/mpi/preload_report.h"
#include "engine/api/mpi/preload_requests.h"
#include "engine/base/status.h"

namespace rankine::mpi {

class Backend {
 public:
  virtual ~Backend() = default;
  // As mpi::Member has it: invalid_argument before anything is sent. Whoever carries it sets how
  // long it may take.
  virtual Status call(Call& call) = 0;
  virtual Status barrier() = 0;
  // Whether such a call can be made at all, wherever its buffers lie: the same on all ranks.
  virtual Status can(const Call& call) = 0;
  // Nothing where the call is to be made here; else why it is MPI's own. The same on all ranks,
  // which may talk about it: a call of them all.
  virtual std::optional<Passed> leaves_to_mpi(const Call& call) = 0;
  // The same of a call that is started. No rank asks another: what all have to agree on they do in
  // their next call of leaves_to_mpi(), and until then such a call is MPI's.
  virtual std::optional<Passed> leaves_start_to_mpi(const Call& call) = 0;
  // Starts such a call, whose buffers stay until it is complete, and gives MPI's handle of it.
  // invalid_argument: of this rank's buffers.
  virtual Status start(Call& call, std::shared_ptr<StartedCollective> started,
                       MPI_Request* handle) = 0;
  // Where calls of whose lengths each rank knows only its own are posted. nullptr, on all ranks
  // alike: such calls are MPI's. A call of all ranks, the first time.
  virtual PostLog* post_log() = 0;
  virtual bool is_over_memory() const = 0;
  // Over memory: the same on all ranks, and no other communicator's.
  virtual const std::string& name() const = 0;
};

// A call of all ranks of `comm`: over memory that they share, where they are on one node and there
// is enough of it, unless `messages`; else by MPI's messages.
Result<std::unique_ptr<Backend>> make_backend(MPI_Comm comm, bool messages);

}  // namespace rankine::mpi
