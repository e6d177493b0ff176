// Which skips suit a network: the open question of Traff, "Optimal, Non-pipelined Reduce-scatter
// and Allreduce Algorithms", 2024/2025, corollary 2. The skips of a reduce-scatter are searched;
// its all-gather is the same in reverse.
//
// With a barrier between rounds and blocks of equal size, a round's time depends on its skip and on
// how many blocks travel, not on what was before: all ranks do the same. So the best of all
// sequences of Algorithm 1 (windows, see circulant_rounds.h) is a shortest path from window p to window 1, and
// it is found exactly, for any p. Sequences of other shape, nearest first among them, are tried one
// by one: every order of every valid set of up to m skips, with the largest m that the budget
// allows; then the best so far and the schemes, nearest first, are improved by one skip more, less,
// other or elsewhere, as long as that helps and the budget allows.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/ticks.h"

namespace rankine {

struct RatedSkips {
  std::vector<int> skips;
  Ticks time = 0;  // of a reduce-scatter, with a barrier between rounds
  double seconds = 0;
};

struct SkipSearchOptions {
  int best = 10;                         // sequences to return
  std::uint64_t most_tried = 1'000'000;  // sequences that are not windows, in every order of sets
  // Sequences near to the fastest that are looked at, times ranks. With this a search among 1,024
  // ranks takes half a minute or less; searches among up to 256 come to their own end before.
  std::uint64_t most_work = std::uint64_t{1} << 28;
  // Called with a part done and all parts, now and then.
  std::function<void(std::uint64_t done, std::uint64_t all)> progress{};
};

struct SkipSearch {
  std::vector<RatedSkips> best;  // the fastest first; of equals, that with fewer rounds
  RatedSkips best_windows;       // the best of Algorithm 1, of all that there are
  RatedSkips halving;            // the paper's, to compare with
  double windows = 0;            // how many sequences of Algorithm 1 there are
  std::uint64_t others = 0;      // other sequences tried
  int all_up_to = 0;             // every order of every valid set of at most so many skips is there
  bool all = false;              // all sequences that there are
  bool stopped = false;          // before all near to the fastest were looked at
};

// `bytes` is M, in p blocks of exactly M / p. Times are simulate()'s of one round each, and the
// sums are compared with simulate()'s of the whole; a difference is a mistake of our own and throws
// std::logic_error. Errors: ranks outside of 1 .. kMostSearchedRanks, those of simulate().
inline constexpr int kMostSearchedRanks = 1024;
Result<SkipSearch> search_skips(int ranks, const Fabric& fabric, std::uint64_t bytes,
                                const SkipSearchOptions& options = {});

}  // namespace rankine
