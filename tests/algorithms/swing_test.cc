#include "algorithms/exchange.h"

#include <gtest/gtest.h>

#include "algorithms/exchange.h"
#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

TEST(Swing, PartnersAreMutual) {
  for (const int a : {2, 4, 6, 8, 10, 12, 16, 22, 64}) {
    for (int k = 0; k < ceil_log2(a); ++k) {
      for (Rank r : ranks(a)) {
        const Rank partner = swing_partner(a, r, k);
        EXPECT_NE(partner, r);
        EXPECT_EQ(swing_partner(a, partner, k), r) << a << ", round " << k;
      }
    }
  }
}

// Section 3 of the Swing paper: distances 1, 1, 3, 5, 11 to alternating sides.
TEST(Swing, SwingsFromSideToSide) {
  std::vector<int> ways;
  for (int k = 0; k < 5; ++k) ways.push_back(swing_partner(1024, 512, k) - 512);
  EXPECT_EQ(ways, (std::vector<int>{1, -1, 3, -5, 11}));
}

void expect_right(const std::vector<int>& dims, Schedule (*make)(const std::vector<int>&),
                  Collective collective) {
  SCOPED_TRACE(dims_text(dims));
  const Schedule s = make(dims);
  EXPECT_EQ(failure(s, {collective, Torus(dims).ranks(), s.blocks, 0, 0}), "");
}

TEST(Swing, ExchangesGiveTheRightNumbers) {
  for (const std::vector<int>& dims :
       std::vector<std::vector<int>>{{2}, {8}, {16}, {2, 4}, {4, 2}, {4, 4}, {2, 2, 4}}) {
    for (const auto& make : {swing_all_reduce, swing_latency_all_reduce, torus_doubling_all_reduce,
                             torus_doubling_latency_all_reduce}) {
      expect_right(dims, make, Collective::all_reduce);
    }
    for (const auto& make : {swing_all_gather, torus_doubling_all_gather}) {
      expect_right(dims, make, Collective::all_gather);
    }
  }
}

TEST(Swing, HalvesOnAnyEvenLine) {
  for (const std::vector<int>& dims : std::vector<std::vector<int>>{
           {6}, {10}, {12}, {36}, {100}, {6, 4}, {4, 6}, {1, 6}, {12, 10}, {6, 2, 10}}) {
    expect_right(dims, swing_all_reduce, Collective::all_reduce);
    expect_right(dims, swing_all_gather, Collective::all_gather);
    expect_right(dims, swing_reduce_scatter, Collective::reduce_scatter);
  }
}

TEST(Swing, WholeVectorsAreFoldedOnOtherLines) {
  for (const std::vector<int>& dims :
       std::vector<std::vector<int>>{{3}, {6}, {27}, {3, 5}, {5, 4}, {27, 3}, {3, 4, 5}, {1, 7}}) {
    expect_right(dims, swing_latency_all_reduce, Collective::all_reduce);
    expect_right(dims, torus_doubling_latency_all_reduce, Collective::all_reduce);
  }
}

// On odd lines one rank is folded, and for doubling all beyond a power of two.
TEST(Swing, HalvesOnAnyTorusWithTheRestFolded) {
  for (const std::vector<int>& dims : std::vector<std::vector<int>>{
           {3}, {7}, {9}, {33}, {3, 4}, {4, 3}, {5, 7}, {6, 6}, {3, 4, 5}, {1, 5}, {7, 2, 6}}) {
    for (const auto& make : {swing_all_reduce, torus_doubling_all_reduce}) {
      expect_right(dims, make, Collective::all_reduce);
    }
    for (const auto& make : {swing_all_gather, torus_doubling_all_gather}) {
      expect_right(dims, make, Collective::all_gather);
    }
    for (const auto& make : {swing_reduce_scatter, torus_doubling_reduce_scatter}) {
      expect_right(dims, make, Collective::reduce_scatter);
    }
  }
}

// What each hears of is what Swing's recursion says: everybody whom one reaches in later rounds.
TEST(Swing, HearsOfWhomItReaches) {
  EXPECT_EQ(heard_of(8, 0, 3, swing_partner), (std::vector<Rank>{0}));
  EXPECT_EQ(heard_of(8, 0, 2, swing_partner), (std::vector<Rank>{0, 3}));
  EXPECT_EQ(heard_of(8, 0, 1, swing_partner), (std::vector<Rank>{0, 3, 4, 7}));
  EXPECT_EQ(heard_of(8, 0, 0, swing_partner), (std::vector<Rank>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(heard_of(8, 5, 1, doubling_partner), (std::vector<Rank>{1, 3, 5, 7}));
}

}  // namespace
}  // namespace rankine
