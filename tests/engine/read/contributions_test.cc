#include "engine/read/contributions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace rankine {
namespace {

using Pool = ContributionPool;

Pool::Set set_of(Pool& pool, const std::vector<Rank>& ranks) {
  Pool::Set out = Pool::kEmpty;
  for (const Rank r : ranks) out = pool.sum(out, pool.of(r));
  return out;
}

TEST(Contributions, NeighboursMakeIntervalsOverTheEnd) {
  Pool pool(5);
  EXPECT_EQ(pool.to_string(pool.sum(pool.of(4), pool.of(0))), "{0, 4}");
  EXPECT_EQ(pool.sum(pool.of(4), pool.of(0)), pool.sum(pool.of(0), pool.of(4)));
  EXPECT_EQ(set_of(pool, {3, 4, 0, 1, 2}), pool.everyone());
  EXPECT_EQ(set_of(pool, {2, 0, 4, 1, 3}), pool.everyone());
}

TEST(Contributions, OneRankIsEveryone) {
  Pool pool(1);
  EXPECT_EQ(pool.of(0), pool.everyone());
  EXPECT_EQ(pool.sum(pool.of(0), pool.of(0)), Pool::kOverlap);
}

TEST(Contributions, Texts) {
  Pool pool(10);
  EXPECT_EQ(pool.to_string(Pool::kEmpty), "{}");
  EXPECT_EQ(pool.to_string(set_of(pool, {0, 1, 2, 3, 6, 8, 9})), "{0..3, 6, 8, 9}");
  EXPECT_EQ(pool.common(set_of(pool, {0, 1, 5}), set_of(pool, {1, 5, 7})), "{1, 5}");
}

// Against std::set, with ranks on both sides of the word borders, and so many that few intervals
// take fewer words than bits.
TEST(Contributions, BehaveLikeSets) {
  std::mt19937 random(20090201);
  for (const int ranks : {2, 3, 7, 63, 64, 65, 128, 130, 1000}) {
    Pool pool(ranks);
    std::map<std::set<Rank>, Pool::Set> known;  // one number for each set
    std::vector<std::pair<std::set<Rank>, Pool::Set>> sets;
    for (Rank r = 0; r < ranks; ++r) sets.push_back({{r}, pool.of(r)});
    for (int i = 0; i < 3000; ++i) {
      const auto& [a, number_a] = sets[random() % sets.size()];
      const auto& [b, number_b] = sets[random() % sets.size()];
      std::set<Rank> both = a;
      both.insert(b.begin(), b.end());
      const bool overlap = both.size() < a.size() + b.size();
      const Pool::Set united = pool.united(number_a, number_b);
      EXPECT_EQ(pool.sum(number_a, number_b), overlap ? Pool::kOverlap : united);
      EXPECT_EQ(pool.members(united), std::vector<Rank>(both.begin(), both.end()));
      const auto [at, is_new] = known.insert({both, united});
      EXPECT_EQ(at->second, united);
      const int by = static_cast<int>(random() % static_cast<unsigned>(ranks));
      std::set<Rank> turned;
      for (const Rank r : both) turned.insert((r + by) % ranks);
      EXPECT_EQ(pool.members(pool.rotated(united, Rotation({ranks}, 1, Moves::nothing), by)),
                std::vector<Rank>(turned.begin(), turned.end()));
      if (both.size() <= static_cast<std::size_t>(ranks) / 2 && sets.size() < 2000) {
        sets.push_back({both, united});
      }
    }
  }
}

// Of two sets of a few intervals and of many: what both have, however it is kept.
TEST(Contributions, WhatTwoHaveInCommon) {
  Pool pool(1000);
  Pool::Set odd = Pool::kEmpty;
  for (Rank r = 1; r < 1000; r += 2) odd = pool.sum(odd, pool.of(r));
  const Pool::Set few = pool.sum(pool.sum(pool.run(995, 10), pool.run(10, 3)), pool.run(100, 1));
  EXPECT_EQ(pool.common(odd, few), "{1, 3, 11, 995, 997, 999}");
  EXPECT_EQ(pool.common(few, pool.run(999, 12)), "{0..4, 10, 999}");
  EXPECT_EQ(pool.sum(odd, few), Pool::kOverlap);
}

}  // namespace
}  // namespace rankine
