// Exchanges level by level: what crosses between the groups of a machine, and how often.
#include "algorithms/levels.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/pat.h"
#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

const std::vector<std::pair<int, std::vector<int>>> kMachines = {
    {1, {1}},     {5, {5}},  {5, {1}},         {6, {2}},      {6, {3}},
    {12, {2, 6}}, {16, {4}}, {24, {2, 4, 12}}, {30, {3, 15}}, {32, {2, 4, 8, 16}},
};

TEST(LevelExchange, GivesTheRightNumbers) {
  for (const auto& [p, levels] : kMachines) {
    SCOPED_TRACE(p);
    const Schedule gather = level_exchange_all_gather(p, levels);
    EXPECT_EQ(failure(gather, {Collective::all_gather, p, p}), "");
    const Schedule scatter = level_exchange_reduce_scatter(p, levels);
    EXPECT_EQ(failure(scatter, {Collective::reduce_scatter, p, p}), "");
    const Schedule all = level_exchange_all_reduce(p, levels);
    EXPECT_EQ(failure(all, {Collective::all_reduce, p, p}), "");
    const Schedule to_all = level_exchange_all_to_all(p, levels);
    EXPECT_EQ(failure(to_all, {Collective::all_to_all, p, p * p}), "");
  }
}

// By pair of groups of so many ranks: messages and blocks that cross from one to the other.
std::map<std::pair<int, int>, std::pair<int, int>> crossing(const Schedule& s, int group) {
  std::map<std::pair<int, int>, std::pair<int, int>> out;
  for (int k = 0; k < s.rounds; ++k) {
    for_each_transfer(s, k, [&](const Transfer& t) {
      const int from = t.from.front() / group, to = t.to.front() / group;
      if (from == to) return;
      ++out[{from, to}].first;
      out[{from, to}].second += t.what.list.size();
    });
  }
  return out;
}

TEST(LevelExchange, EveryBlockCrossesIntoAGroupOnce) {
  for (const auto& [p, levels] : kMachines) {
    for (const int group : levels) {
      if (group == p) continue;
      std::map<int, int> into;
      for (const auto& [pair, crossed] : crossing(level_exchange_all_gather(p, levels), group)) {
        into[pair.second] += crossed.second;
      }
      for (int j = 0; j < p / group; ++j) EXPECT_EQ(into[j], p - group) << p << " " << group;
    }
  }
}

// Between two groups of the outermost level one message per member, with all that is for its like.
TEST(LevelExchange, AllToAllsSendOneMessagePerMemberAndGroup) {
  const Schedule s = level_exchange_all_to_all(24, {2, 4, 12});
  const auto crossed = crossing(s, 12);
  ASSERT_EQ(crossed.size(), 2u);
  for (const auto& [pair, all] : crossed) EXPECT_EQ(all, std::pair(12, 12 * 12));
  EXPECT_EQ(crossing(level_exchange_all_to_all(24, {24}), 12).at({0, 1}), std::pair(144, 144));
}

TEST(LevelExchange, IsRefusedWhereGroupsDoNotDivide) {
  for (const Collective c : {Collective::all_gather, Collective::all_to_all}) {
    const Algorithm& line = *find_algorithm(c, "level_exchange");
    EXPECT_EQ(line.refusal({.ranks = 12, .levels = {2, 6}}), std::nullopt);
    EXPECT_EQ(line.refusal({.ranks = 10, .levels = {4}}),
              std::string(name_of(c)) +
                  " 'level_exchange': ranks is 10; the number of ranks must be a "
                  "multiple of the largest group");
  }
}

TEST(PatRing, EveryBlockCrossesIntoAGroupOnce) {
  for (const auto& [p, g] : {std::pair(12, 3), {16, 4}, {10, 5}, {7, 1}, {7, 7}, {18, 2}}) {
    for (const int a : {1, 2, 8}) {
      const Schedule s = pat_ring_all_gather(p, g, a);
      EXPECT_EQ(failure(s, {Collective::all_gather, p, p}), "") << p << " " << g << " " << a;
      std::map<int, int> into;
      for (const auto& [pair, crossed] : crossing(s, g)) into[pair.second] += crossed.second;
      for (int j = 0; j < p / g; ++j) EXPECT_EQ(into[j], p - g);
      for (int k = 0; k < s.rounds; ++k) {
        for_each_transfer(s, k, [&, g = g](const Transfer& t) {
          const bool crosses = t.from.front() / g != t.to.front() / g;
          EXPECT_LE(t.what.list.size(), crosses ? a : p / g);
        });
      }
    }
  }
}

}  // namespace
}  // namespace rankine
