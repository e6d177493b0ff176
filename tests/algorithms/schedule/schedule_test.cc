#include "algorithms/schedule/schedule.h"

#include <gtest/gtest.h>

#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

TEST(Send, TakesRanksAndBlocksModuloTheSchedules) {
  const Schedule s{3, 5, 1, [](int, Send send) {
                     send(2, 3, block(-1), copy);
                     send(-1, ranks_from(2, 2), blocks(4, 2), reduce);
                   }};
  EXPECT_EQ(messages(s, 0), (std::vector<std::string>{"2>0:4", "2>2,0:4.0+"}));
}

TEST(Send, PutsBlocksWhereTheyAreUnlessToldOtherwise) {
  const Schedule s{2, 4, 1, [](int, Send send) {
                     send(0, 1, block(5), copy);
                     send(0, 1, block(5), block(6, 1), copy);
                   }};
  std::vector<Transfer> seen;
  for_each_transfer(s, 0, [&](const Transfer& t) { seen.push_back(t); });
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].where, block(1));
  EXPECT_EQ(seen[1].what, block(1));
  EXPECT_EQ(seen[1].where, block(2, 1));
}

TEST(Send, HandsTransfersOnInTheOrderStated) {
  const Schedule s{4, 1, 1, [](int, Send send) {
                     for (Rank r : {3, 1, 2}) send(r, 0, block(0), reduce);
                   }};
  EXPECT_EQ(messages(s, 0), (std::vector<std::string>{"3>0:0+", "1>0:0+", "2>0:0+"}));
}

TEST(Schedule, PlacesAreBlocksOnPlanes) {
  Schedule s{2, 3, 0, {}};
  s.planes = 2;
  EXPECT_EQ(s.places(), 6);
  EXPECT_EQ(place_of(s, 2, 0), 2);
  EXPECT_EQ(place_of(s, 2, 1), 5);
}

TEST(Schedule, ReadsBeforeItWrites) {
  const Schedule swap{2, 1, 1, [](int, Send send) {
                        send(0, 1, block(0), copy);
                        send(1, 0, block(0), copy);
                      }};
  const auto table = Reference(swap, [](Rank r, Block) { return Value(r + 10); }).run().table();
  EXPECT_EQ(table, (std::vector<std::vector<std::int64_t>>{{11}, {10}}));
}

TEST(Ranks, CountFromZero) {
  std::vector<int> seen;
  for (Rank r : ranks(3)) seen.push_back(r);
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2}));
  for (Rank r : ranks(0)) FAIL() << r;
}

TEST(Logarithms, OfTwo) {
  for (int n = 1; n <= 5000; ++n) {
    EXPECT_LE(1 << floor_log2(n), n);
    EXPECT_GT(2 << floor_log2(n), n);
    EXPECT_GE(1 << ceil_log2(n), n);
    EXPECT_EQ(is_power_of_two(n), floor_log2(n) == ceil_log2(n)) << n;
  }
  EXPECT_FALSE(is_power_of_two(0));
  EXPECT_FALSE(is_power_of_two(-4));
}

}  // namespace
}  // namespace rankine
