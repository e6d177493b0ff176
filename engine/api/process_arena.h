// The memory that ranks share which are processes: one file, mapped by all of them at the same
// address, so that what lies in it may point into it.
//
//   lobby | names | lines | slow waits | each rank's posts and records | each rank's scratch
//
// All of it has its place from the start, so nobody allocates, and nothing moves; pages are taken
// from the machine (fallocate, so that a full machine is an error and no SIGBUS) when a rank needs
// them. A rank takes those of its own parts, and so they lie on its node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/base/status.h"
#include "engine/run/crossbar.h"

namespace rankine {

// Address space of a communicator; most of it is scratch that is never taken.
inline constexpr std::size_t kProcessSpan = std::size_t{16} << 30;
inline constexpr int kMostProcesses = 256;

// Offsets in the file.
struct ProcessLayout {
  std::size_t lobby_bytes = 0;  // from 0
  std::size_t names = 0, lines = 0, slow_waits = 0;
  std::size_t common_bytes = 0;  // of all of those
  std::size_t rank_bytes = 0;    // each rank's posts and records, from common_bytes on
  // In these.
  std::size_t board = 0, slots = 0, credits = 0, records = 0;
  std::size_t mailbox_bytes = 0;  // slots of one
  std::size_t scratch = 0, scratch_bytes = 0;

  static ProcessLayout of(int ranks, std::size_t lobby_bytes, std::size_t board_bytes,
                          std::size_t mailbox_bytes);
  std::size_t of_rank(Rank r) const {
    return common_bytes + static_cast<std::size_t>(r) * rank_bytes;
  }
  std::size_t scratch_of(Rank r) const {
    return scratch + static_cast<std::size_t>(r) * scratch_bytes;
  }
};

// Where the file may be mapped: addresses that nothing else of a process takes, with or without
// sanitizers. A rank reserves as many as it needs to agree with others on one.
class ReservedBases {
 public:
  ReservedBases() = default;
  ~ReservedBases();
  ReservedBases(const ReservedBases&) = delete;
  ReservedBases& operator=(const ReservedBases&) = delete;

  // Some of those that are free, in an order that follows from `seed`. A set of bits.
  std::uint64_t reserve(std::uint64_t seed) noexcept;
  // Maps the file at the first of these in that order, and lets go of the others. nullptr: errno
  // says why, or, of none at all, it is 0.
  std::byte* map(std::uint64_t common, std::uint64_t seed, int file) noexcept;

 private:
  std::uint64_t reserved_ = 0;
};

// Takes the file's pages there. `what` for the error's text: "scratch of rank 3".
Status take_pages(int file, std::size_t offset, std::size_t bytes, const std::string& what);

}  // namespace rankine
