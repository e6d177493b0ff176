// Memory that the calls of a communicator pack into, one call at a time. Its address space is taken
// when all ranks agree on a kind of call, so that a call on which they have agreed finds it there;
// pages come as they are written.
#pragma once

#include <mpi.h>
#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "engine/api/call.h"
#include "engine/api/mpi/post_log.h"
#include "engine/api/mpi/preload_report.h"
#include "engine/api/mpi/preload_requests.h"
#include "engine/base/memory.h"
#include "engine/base/status.h"

namespace rankine::mpi {

// Used by one thread at a time.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch() { drop(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Room for so many bytes from now on. What was taken before is gone. False: the system refuses
  // it, and the room is what it was.
  bool have(std::size_t bytes) noexcept {
    if (bytes <= bytes_) return true;
    void* const made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) return false;
    drop();
    begin_ = static_cast<std::byte*>(made);
    bytes_ = bytes;
    return true;
  }
  // The next part, from a cache line on; nullptr: there is no room left.
  std::byte* take(std::size_t bytes) noexcept {
    if (bytes > bytes_ - used_) return nullptr;
    std::byte* const part = begin_ + used_;
    const std::size_t lines = whole_lines(bytes);
    used_ = lines < bytes_ - used_ ? used_ + lines : bytes_;
    return part;
  }
  // Nobody uses any part any more.
  void clear() noexcept { used_ = 0; }

 private:
  void drop() noexcept {
    if (begin_ != nullptr) munmap(begin_, bytes_);
    begin_ = nullptr;
    bytes_ = used_ = 0;
  }

  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0, used_ = 0;
};

// Who makes the calls that the preload library takes over: one object per communicator of the
// program's and process. The one place that knows what ranks are connected by.

// What a rank brings to a call and gets of it, in bytes, and where its input begins in its output
// when it is in place: so many bytes behind it, or, below 0, before it.
struct Traffic {
  std::size_t in = 0, out = 0;
  std::ptrdiff_t in_place = 0;
};
Traffic traffic_of(const Call& call, Rank rank, int ranks);

class Backend {
 public:
  virtual ~Backend() = default;
  // As mpi::Member has it: invalid_argument before anything is sent. Whoever carries it sets how
  // long it may take.
  virtual Status call(Call& call) = 0;
  virtual Status barrier() = 0;
  // Nothing where the call is to be made here: then every rank has a plan for it, wherever buffers
  // lie, and scratch for all that the rank brings and gets. Else why it is MPI's own. The same on
  // all ranks, which may talk about it: a call of them all, made through this backend, so that
  // ranks that make different calls are told; `failed` says why that call has failed, and whose
  // call it is then means nothing. Of the call's buffers nothing is looked at.
  virtual std::optional<Passed> leaves_to_mpi(const Call& call, Status& failed) = 0;
  // The same of a call that is started. No rank asks another: what all have to agree on they do in
  // their next call of leaves_to_mpi(), and until then such a call is MPI's.
  virtual std::optional<Passed> leaves_start_to_mpi(const Call& call) = 0;
  // Starts such a call, whose buffers stay until it is complete, and gives MPI's handle of it.
  // invalid_argument: of this rank's buffers.
  virtual Status start(Call& call, std::shared_ptr<StartedCollective> started,
                       MPI_Request* handle) = 0;
  // Where calls of whose lengths each rank knows only its own are posted. nullptr, on all ranks
  // alike: such calls are MPI's. A call of all ranks, the first time.
  virtual Result<PostLog*> post_log() = 0;
  // Ends the calls of all ranks with this error: this rank cannot make its next one.
  virtual void end(const Status& why) = 0;
  // Of calls that are waited for, and, in a channel of a call that is made ready, of that call.
  Scratch& scratch() { return scratch_; }
  virtual bool is_over_memory() const = 0;
  // Over memory: the same on all ranks, and no other communicator's.
  virtual const std::string& name() const = 0;

 private:
  Scratch scratch_;
};

// A call of all ranks of `comm`: over memory, where all can share some (shared_host.h) and there is
// enough of it, unless `messages`; else by MPI's messages. Processes that have waited in vain for
// each other, all of which could share memory as far as they can tell, do not try again.
Result<std::unique_ptr<Backend>> make_backend(MPI_Comm comm, bool messages);

}  // namespace rankine::mpi
