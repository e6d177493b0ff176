// The crossbar's lines, each rank's on the node that the rank writes them from.
//
// Five lines per rank are far less than a page, and a page lies on one node. Where all ranks have
// one node (or none is named) their lines therefore lie side by side. Where they have several, each
// rank gets a page of its own, and starts a little further into it than the rank before, since
// lines at the same place of many pages would fight for one set of the L1 cache.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/run/crossbar.h"
#include "numa/arena.h"

namespace rankine {

class PlacedLines {
 public:
  // arenas: of each rank, or empty; their node (and lock) is what counts. Throws std::bad_alloc.
  PlacedLines(int ranks, std::span<const ArenaOptions> arenas);
  // Where others have placed them.
  PlacedLines(int ranks, LinesMemory placed)
      : memory_(placed), bindings_(static_cast<std::size_t>(ranks)) {}

  // Valid while this object lives.
  LinesMemory memory() const { return memory_; }
  MemoryRange range(Rank r) const {
    return {memory_.base + static_cast<std::size_t>(r) * memory_.stride, sizeof(RankLines)};
  }
  // Whether the rank's lines are tied to its node. not_asked where it has none.
  const Enforcement& binding(Rank r) const { return bindings_[static_cast<std::size_t>(r)]; }
  const Enforcement& locking() const { return arena_.locking(); }

 private:
  Arena arena_;
  LinesMemory memory_;
  std::vector<Enforcement> bindings_;
};

}  // namespace rankine
