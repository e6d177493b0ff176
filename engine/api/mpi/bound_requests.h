// A message plan's parcels as persistent requests of MPI, bound to one call's memory: made once,
// and started by every call with the same buffers.
//
// Data are sent from where they lie and received where they belong: a parcel of several pieces is a
// derived type. Everything travels as bytes, so ranks must hold numbers alike, and types that MPI
// does not have need none. What is longer than most_bytes goes in parts of so many, one after the
// other under the same tag, and so arrives in that order.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/api/mpi/homes.h"
#include "engine/api/mpi/message_plan.h"
#include "engine/base/status.h"

namespace rankine::mpi {

// Used by one thread at a time. The plan, the memory and the communicator must outlive it.
class BoundRequests {
 public:
  // Where messages go: the ranks' processes by their numbers in `comm`, and ranks by tags: that of
  // a message is first_tag to first_tag + kTags - 1, by the round, times the threads that the two
  // processes' ranks may be on.
  struct Wire {
    const Homes& homes;
    Rank self = 0;
    MPI_Comm comm = MPI_COMM_NULL;
    std::size_t most_bytes = 0;
  };
  static constexpr int kTags = 64;
  // How many tags such a communicator has for a call.
  static int tags_of_call(const Homes& homes) {
    return kTags * homes.most_threads() * homes.most_threads();
  }
  // Of those of the plan's parcels that go over the wire. Errors: MPI's.
  static Result<std::unique_ptr<BoundRequests>> make(const MessagePlan& plan,
                                                     const Addresses& memory, const Wire& wire,
                                                     int first_tag);
  // Nothing may be under way, or cancel() has said so.
  ~BoundRequests();
  BoundRequests(const BoundRequests&) = delete;
  BoundRequests& operator=(const BoundRequests&) = delete;

  const Addresses& memory() const { return memory_; }
  Status start(int parcel) noexcept;
  // Whether a parcel that was started is there, or its memory free again. Errors: MPI's; another
  // number of bytes than was to be received (mismatch).
  Status test(int parcel, bool& done) noexcept;
  // After an error: no reception writes any more. What was sent and is not over keeps its memory,
  // and is never asked for again.
  void cancel() noexcept;

 private:
  BoundRequests(const MessagePlan& plan, const Addresses& memory) : plan_(plan), memory_(memory) {}
  Status add(const Parcel& parcel, const Wire& wire, int first_tag);
  Status add_part(const Parcel& parcel, const std::vector<Piece>& pieces, std::size_t bytes,
                  const Wire& wire, int tag);
  Status misfit(int parcel, const char* what, std::size_t bytes) const noexcept;

  const MessagePlan& plan_;
  const Addresses memory_;
  std::vector<MPI_Request> requests_;
  std::vector<std::size_t> bytes_;  // by request
  std::vector<std::size_t> first_;  // by parcel: its requests; and one past all
  std::vector<MPI_Status> statuses_;
};

}  // namespace rankine::mpi
