// PostLog makes calls in which each rank knows only its own lengths (MPI_Alltoallv, MPI_Gatherv
// ...): each rank posts its lengths and data in shared memory. conclude() decides from all posts;
// all ranks read the same posts, so all ranks decide alike. This file does not use MPI.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/schedule/blocks.h"
#include "engine/api/member.h"
#include "engine/api/mpi/preload_report.h"
#include "engine/base/status.h"

namespace rankine::mpi {

// The most bytes that one rank may send in such a call. Measured with the rest
// (bench/results/mpi.md).
inline constexpr std::size_t kMostPosted = std::size_t{32} << 10;

// Returns true if blocks of these lengths total at most kMostPosted bytes.
bool is_short(std::span<const std::uint64_t> sends);

// One rank's post.
struct PostedCall {
  Function function{};
  Rank root = 0;         // 0 for functions without a root
  bool is_mpis = false;  // MPI has an error for these arguments: ignore the lengths
  // Bytes to and from each rank, including itself.
  std::span<const std::uint64_t> sends{}, receives{};
};

// `posts` are the posts of all ranks, by rank. Returns an empty optional if the call is taken (then
// every block is in its sender's post), otherwise the reason to pass the call on to MPI. Errors
// (invalid_argument; the call has no effect): ranks make different calls, or a block's sender and
// receiver state different lengths; the text names the first such ranks.
Result<std::optional<Passed>> conclude(std::span<const PostedCall> posts);

// The ranks of a communicator post their calls before any of them knows whether the call can be
// taken: each rank in its own part of memory that all of them reach.
//
//   a post   function | root | is_mpis | bytes to each rank | bytes from each rank | data
//
// The data are the blocks that the rank sends, contiguous and in rank order, if they have at most
// kMostPosted bytes.
//
// The roll is an engine barrier: after it every rank sees every rank's post. If another rank makes
// a different kind of call, the barrier reports the mismatch as usual, and waiting works as in any
// call. A rank uses two posts in turn: before it writes a post again, it has left the next roll,
// and every rank entered that roll after reading the old post. So no wait is needed at the end of a
// call.

// One rank's end; used by one thread at a time.
class PostLog {
 public:
  // Not collective: allocates this rank's posts and makes the plan of the roll. `member` belongs to
  // the caller and must outlive the log. A roll waits at most `timeout` for the other ranks.
  // Errors: those of Member::allocate() and Member::plan_of().
  static Result<PostLog> make(Member& member, std::chrono::milliseconds timeout);
  // The address of this rank's posts; the other ranks read there.
  const std::byte* address() const { return memory_.span().data(); }
  // Sets the addresses of all ranks' posts; call it before the first post.
  void meet(std::vector<const std::byte*> addresses) { addresses_ = std::move(addresses); }
  // Collective, after the last post: when it returns, no rank reads this rank's memory. (If it
  // fails, ranks have made different calls, and their reads are undefined.)
  void end() { static_cast<void>(call_roll()); }

  // Room for this rank's next post, to be filled in.
  struct Room {
    std::span<std::uint64_t> sends, receives;  // bytes, by rank
    std::byte* data;                           // kMostPosted of them
  };
  Room begin(Function function, Rank root);
  // Marks the current post: MPI has an error for its arguments.
  void leave_to_mpi();
  // Collective, after begin() and filling in the post. Errors: a barrier's.
  Status call_roll();

  // The posts of all ranks. Valid from the roll to this rank's next begin().
  std::span<const PostedCall> posts();
  // The block that rank `from` sends to this rank. Requires that conclude() has taken the call.
  const std::byte* block_from(Rank from) const;

 private:
  struct Head;
  PostLog(Member& member, std::chrono::milliseconds timeout, Payload<std::byte> memory);
  std::size_t offset_of_half() const { return number_ % 2 * half_bytes_; }

  Member* member_;
  std::chrono::milliseconds timeout_;
  Payload<std::byte> memory_;
  std::size_t half_bytes_;
  std::uint64_t number_ = 0;                 // number of posts so far
  std::vector<const std::byte*> addresses_;  // by rank
  std::vector<PostedCall> posts_;            // by rank: posts of the last roll
};

}  // namespace rankine::mpi
