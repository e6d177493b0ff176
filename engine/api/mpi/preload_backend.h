// A Backend makes the calls that the preload library takes over: one object per communicator of the
// program and process. Only the backend knows whether ranks are connected by memory or by messages.
// Scratch is memory for packed data.
//
// Scratch holds the packed data of a communicator's calls, one call at a time. Its address space is
// reserved when all ranks agree on a kind of call, so later calls of that kind have room; the
// system provides pages on first write.
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

  // Makes room for `bytes` bytes; earlier parts become invalid. Returns false if the system refuses
  // the memory; then the room is unchanged.
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
  // Returns the next part, aligned to a cache line, or nullptr if no room is left.
  std::byte* take(std::size_t bytes) noexcept {
    if (bytes > bytes_ - used_) return nullptr;
    std::byte* const part = begin_ + used_;
    const std::size_t lines = whole_lines(bytes);
    used_ = lines < bytes_ - used_ ? used_ + lines : bytes_;
    return part;
  }
  // Releases all parts; no part may still be in use.
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

// The number of input and output bytes of one rank in a call. `in_place`: for calls in place, the
// offset in bytes of the input behind the output; negative: before it.
struct Traffic {
  std::size_t in = 0, out = 0;
  std::ptrdiff_t in_place = 0;
};
Traffic traffic_of(const Call& call, Rank rank, int ranks);

class Backend {
 public:
  virtual ~Backend() = default;
  // As mpi::Member::call(): invalid_argument is returned before any message is sent. The
  // implementation chooses the timeout.
  virtual Status call(Call& call) = 0;
  virtual Status barrier() = 0;
  // Returns an empty optional if this backend makes the call: then every rank has a plan for it,
  // for any buffers, and scratch for all its input and output. Otherwise returns the reason to pass
  // the call on to MPI. The result is equal on all ranks. The ranks may communicate to decide: they
  // make a collective call through this backend, so a mismatch with another rank's call is
  // reported. If that call fails, `failed` holds its error and the result is meaningless. The
  // buffers of `call` are not read.
  virtual std::optional<Passed> leaves_to_mpi(const Call& call, Status& failed) = 0;
  // As leaves_to_mpi(), for a started call, but without communication: the ranks agree on started
  // calls in their next leaves_to_mpi(); before that, started calls are passed on to MPI.
  virtual std::optional<Passed> leaves_start_to_mpi(const Call& call) = 0;
  // Starts a call and returns MPI's handle of it. The buffers must stay valid until the call is
  // complete. invalid_argument: this rank's buffers are not allowed.
  virtual Status start(Call& call, std::shared_ptr<StartedCollective> started,
                       MPI_Request* handle) = 0;
  // The log for calls in which each rank knows only its own lengths. nullptr, on all ranks alike:
  // the calls are passed on to MPI. The first call is collective.
  virtual Result<PostLog*> post_log() = 0;
  // Ends the calls of all ranks with the error `why`, because this rank cannot make its next call.
  virtual void end(const Status& why) = 0;
  // For blocking calls, and, in the channel of a prepared call, for that call.
  Scratch& scratch() { return scratch_; }
  virtual bool is_over_memory() const = 0;
  // Over memory: a unique name, equal on all ranks.
  virtual const std::string& name() const = 0;

 private:
  Scratch scratch_;
};

// Collective over `comm`. Connects the ranks through memory if all can share it (shared_host(),
// rank_locations.h), enough is available and `messages` is false; otherwise by MPI messages. If the
// processes have once waited for each other in vain although all seemed able to share memory, they
// do not try again.
Result<std::unique_ptr<Backend>> make_backend(MPI_Comm comm, bool messages);

}  // namespace rankine::mpi
