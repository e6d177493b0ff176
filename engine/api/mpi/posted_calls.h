// Calls of whose lengths a rank knows only its own (MPI_Alltoallv, MPI_Gatherv ...), as each rank
// posts its own (post_log.h), and what follows from the posts of all: one function of what all
// ranks read, so they conclude alike. MPI has no part in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "algorithms/schedule/blocks.h"
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

}  // namespace rankine::mpi
