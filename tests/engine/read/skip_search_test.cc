#include "engine/read/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "algorithms/circulant.h"
#include "algorithms/schedule/collective.h"
#include "engine/network/simulate.h"

namespace rankine {
namespace {

using Skips = std::vector<int>;

Ticks time_of(const Skips& skips, int p, const Fabric& fabric, std::uint64_t bytes) {
  const auto rounds = std::make_shared<const CirculantRounds>(p, skips);
  const auto result = simulate(circulant_reduce_scatter(rounds), {Collective::reduce_scatter, p, p},
                               fabric, bytes, {.sync = Sync::rounds, .ideal_blocks = true});
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result->end;
}

struct Tried {
  Ticks least = 0;
  int sequences = 0, windows = 0;
};

// Every order of every set of skips, simulated as a whole.
Tried try_everything(int p, const Fabric& fabric, std::uint64_t bytes, bool windows_only) {
  Tried out;
  for (unsigned set = 1; set < 1u << (p - 1); ++set) {
    Skips skips;
    for (int s = 1; s < p; ++s) {
      if (set >> (s - 1) & 1u) skips.push_back(s);
    }
    do {
      if (skips_refusal(skips, p)) continue;
      const bool windows = are_windows(skips, p);
      out.windows += windows ? 1 : 0;
      if (windows_only && !windows) continue;
      const Ticks time = time_of(skips, p, fabric, bytes);
      out.least = out.sequences++ == 0 ? time : std::min(out.least, time);
    } while (std::next_permutation(skips.begin(), skips.end()));
  }
  return out;
}

std::vector<Fabric> networks() {
  std::vector<Fabric> out;
  for (const char* name : {"plain", "ring", "torus", "two_level_shared"}) {
    out.push_back(find_regime(name)->fabric);
    if (out.back().group > 0) out.back().group = 2;
  }
  return out;
}

TEST(SkipSearch, FindsTheBestOfAllSequences) {
  for (const Fabric& fabric : networks()) {
    for (int p = 2; p <= 6; ++p) {
      for (const std::uint64_t bytes : {0ull, 64ull, 65'536ull, 16'000'001ull}) {
        SCOPED_TRACE(fabric.name + ", " + std::to_string(p) + " ranks, " + std::to_string(bytes));
        const Tried all = try_everything(p, fabric, bytes, false);
        const auto found = search_skips(p, fabric, bytes);
        ASSERT_TRUE(found.ok()) << found.status().text();
        EXPECT_TRUE(found->all);
        EXPECT_EQ(found->best.front().time, all.least);
        EXPECT_EQ(static_cast<int>(found->windows), all.windows);
        EXPECT_EQ(static_cast<int>(found->windows + static_cast<double>(found->others)),
                  all.sequences);
      }
    }
  }
}

TEST(SkipSearch, FindsTheBestWindowsAmongMoreRanks) {
  for (const Fabric& fabric : networks()) {
    const Tried all = try_everything(8, fabric, 65'536, true);
    const auto found = search_skips(8, fabric, 65'536, {.best = 1, .most_tried = 0});
    ASSERT_TRUE(found.ok());
    EXPECT_FALSE(found->all);
    EXPECT_EQ(found->all_up_to, 2);
    EXPECT_EQ(static_cast<int>(found->windows), all.windows);
    EXPECT_TRUE(are_windows(found->best_windows.skips, 8));
    EXPECT_EQ(found->best_windows.time, all.least);
    EXPECT_LE(found->best.front().time, all.least);
  }
}

TEST(SkipSearch, BestAreInOrderAndDifferentAndTimedAsTheyAre) {
  const Fabric ring = find_regime("ring")->fabric;
  const auto found = search_skips(22, ring, 65'536, {.best = 20});
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->best.size(), 20u);
  for (std::size_t i = 0; i < found->best.size(); ++i) {
    const RatedSkips& one = found->best[i];
    EXPECT_EQ(skips_refusal(one.skips, 22), std::nullopt);
    EXPECT_EQ(one.time, time_of(one.skips, 22, ring, 65'536));
    if (i == 0) continue;
    EXPECT_GE(one.time, found->best[i - 1].time);
    EXPECT_NE(one.skips, found->best[i - 1].skips);
  }
  EXPECT_EQ(found->halving.skips, halving_skips(22));
  EXPECT_LE(found->best.front().time, found->halving.time);
}

// On a full network every valid sequence of the fewest rounds is as fast: halving is not beaten.
TEST(SkipSearch, FindsNothingBetterThanHalvingOnAFullNetwork) {
  for (int p = 1; p <= 40; ++p) {
    const auto found = search_skips(p, plain_regime().fabric, 1'000'000, {.most_tried = 1000});
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->best.front().time, found->halving.time) << p;
  }
}

TEST(SkipSearch, EndsWhereItsWorkDoes) {
  const Fabric ring = find_regime("ring")->fabric;
  std::uint64_t others[2] = {};
  for (const bool bounded : {false, true}) {
    SkipSearchOptions options{.best = 3, .most_tried = 0};
    if (bounded) options.most_work = 22 * 100;
    const auto found = search_skips(22, ring, 65'536, options);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->stopped, bounded);
    others[bounded] = found->others;
  }
  EXPECT_LE(others[1], 100u + 30u);  // and the starts
  EXPECT_GT(others[0], 2 * others[1]);
}

TEST(SkipSearch, RefusesWhatItCannotDo) {
  EXPECT_EQ(search_skips(0, plain_regime().fabric, 1).status().text(),
            "ranks is 0; allowed are 1 to 1024");
  Fabric torus = find_regime("torus")->fabric;
  torus.wiring.dims = {3, 3};
  EXPECT_FALSE(search_skips(8, torus, 1).ok());
}

}  // namespace
}  // namespace rankine
