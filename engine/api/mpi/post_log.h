// Calls of whose lengths a rank knows only its own (MPI_Alltoallv, MPI_Gatherv ...), as each rank
// posts its own (post_log.h), and what follows from the posts of all: one function of what all
// ranks read, so they conclude alike. MPI has no part in it.
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

// What one rank may bring to a call that is taken, in bytes. Measured with the rest
// (bench/results/mpi.md).
inline constexpr std::size_t kMostPosted = std::size_t{32} << 10;

// Whether blocks of these lengths have kMostPosted bytes at most in all.
bool is_short(std::span<const std::uint64_t> sends);

// One rank's call.
struct PostedCall {
  Function function{};
  Rank root = 0;         // 0 where there is none
  bool is_mpis = false;  // MPI has an error for these arguments: lengths mean nothing
  // Bytes to and from each rank, itself among them.
  std::span<const std::uint64_t> sends{}, receives{};
};

// By rank, all of them. Nothing: the call is taken, and every block is in its sender's post; else
// why it is MPI's own. Errors (invalid_argument; the call has no effect): ranks that make different
// calls, and blocks that are sent in another length than they are received in; the first such
// ranks are named.
Result<std::optional<Passed>> conclude(std::span<const PostedCall> posts);

// Where the ranks of a communicator post their calls, before any of them knows whether such a call
// can be taken: in memory that all of them reach, each in its own.
//
//   a post   function | root | is_mpis | bytes to each rank | bytes from each rank | data
//
// Data are the blocks that its rank sends, in the order of ranks, one behind the other, where they
// are kMostPosted bytes at most.
//
// The roll is a barrier of the engine's: whoever has left it sees every rank's post. So ranks that
// make a call of another kind meanwhile are told as in every mismatch, and waiting is as ever. A
// rank has two posts, in turn: who begins the next but one has left the roll of the next, to which
// everybody came after reading this one. So nobody waits at the end of a call.

// One rank's end; used by one thread at a time.
class PostLog {
 public:
  // No call of other ranks: memory for this rank's posts, and the plan of the roll. `member` stays
  // the caller's and outlives the log; who calls the roll waits up to `timeout` for the others.
  // Errors: those of Member::allocate() and Member::plan_of().
  static Result<PostLog> make(Member& member, std::chrono::milliseconds timeout);
  // Where this rank's posts are: the others read there.
  const std::byte* address() const { return memory_.span().data(); }
  // Where all ranks' are, before the first post.
  void meet(std::vector<const std::byte*> addresses) { addresses_ = std::move(addresses); }
  // A call of all ranks, after the last post: when it returns nobody reads there any more. (Where
  // it fails ranks have made different calls, and what they read is not promised.)
  void end() { static_cast<void>(call_roll()); }

  // This rank's next post, to be filled in.
  struct Room {
    std::span<std::uint64_t> sends, receives;  // bytes, by rank
    std::byte* data;                           // kMostPosted of them
  };
  Room begin(Function function, Rank root);
  // The post that has begun is of a call for whose arguments MPI has an error.
  void leave_to_mpi();
  // A call of all ranks, which have begun and filled in theirs. Errors: those of a barrier.
  Status call_roll();

  // From the roll to this rank's next post: all ranks' posts,
  std::span<const PostedCall> posts();
  // and what that rank sends this one, where conclude() says that the call is taken.
  const std::byte* block_from(Rank from) const;

 private:
  struct Head;
  PostLog(Member& member, std::chrono::milliseconds timeout, Payload<std::byte> memory);
  std::size_t offset_of_half() const { return number_ % 2 * half_bytes_; }

  Member* member_;
  std::chrono::milliseconds timeout_;
  Payload<std::byte> memory_;
  std::size_t half_bytes_;
  std::uint64_t number_ = 0;                 // of posts
  std::vector<const std::byte*> addresses_;  // by rank
  std::vector<PostedCall> posts_;            // by rank: of the last roll
};

}  // namespace rankine::mpi
