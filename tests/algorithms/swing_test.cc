#include "algorithms/swing.h"

#include <gtest/gtest.h>

#include "algorithms/torus_doubling.h"
#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

TEST(Swing, PartnersAreMutual) {
  for (const int a : {2, 4, 8, 16, 64}) {
    for (int k = 0; k < floor_log2(a); ++k) {
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

TEST(Swing, ExchangesGiveTheRightNumbers) {
  for (const std::vector<int>& dims :
       std::vector<std::vector<int>>{{2}, {8}, {16}, {2, 4}, {4, 2}, {4, 4}, {2, 2, 4}}) {
    const int n = Torus(dims).ranks();
    SCOPED_TRACE(dims_text(dims));
    for (const auto& make : {swing_all_reduce, swing_latency_all_reduce, torus_doubling_all_reduce,
                             torus_doubling_latency_all_reduce}) {
      const Schedule s = make(dims);
      EXPECT_EQ(failure(s, {Collective::all_reduce, n, s.blocks, 0, 0}), "");
    }
    for (const auto& make : {swing_all_gather, torus_doubling_all_gather}) {
      const Schedule s = make(dims);
      EXPECT_EQ(failure(s, {Collective::all_gather, n, s.blocks, 0, 0}), "");
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
