// An all-to-all whose blocks lie where the rank says (Call::displacements), as one whose blocks
// follow one another: what the rank sends is brought together before the call, what it has received
// is handed out after it. Where a rank's blocks lie is its own affair, so plans, algorithms,
// transports and clocks know nothing of it.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/api/call.h"
#include "engine/base/huge_pages.h"
#include "engine/base/status.h"

namespace rankine {

// Of one rank; used again for the next call, as long as the one before has ended. Not thread-safe.
class DisplacedCall {
 public:
  // The same call without displacements: a side that has some is memory of ours, the other one the
  // caller's. Keeps nothing of the call but its buffers. Errors: those of check_call(); another
  // collective, a list of another length, a block beyond what pointers can tell apart, blocks of
  // out that overlap, a buffer that is null. Throws std::bad_alloc.
  Result<Call> plain(const Call& call, Rank rank, int ranks);
  void bring_together() noexcept;  // when the call begins
  void hand_out() const noexcept;  // when it has ended well

  std::size_t bytes() const noexcept { return memory_.capacity(); }

 private:
  struct Block {
    std::size_t at, bytes;
  };
  // What the rank sends or receives, by rank, in our memory one after the other.
  struct Side {
    std::vector<Block> blocks;
    std::size_t begin = 0;  // in our memory
    bool displaced = false;
  };
  static Side side_of(const Call& call, Rank rank, int ranks, bool out);
  static Status check(const Side& side, bool out);
  friend Status check_reach(const Call& call, Rank rank, int ranks, std::size_t in,
                            std::size_t out);

  const std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  Side sent_, received_;
  HugeVector<std::byte> memory_;
};

}  // namespace rankine
