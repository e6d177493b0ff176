// Trees, butterflies, Bruck's and dissemination with any radix.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "algorithms/bruck.h"
#include "algorithms/catalogue.h"
#include "algorithms/halving_doubling.h"
#include "algorithms/tree.h"
#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

std::string title(const Algorithm& line) {
  return std::string(name_of(line.collective)) + " " + std::string(line.name);
}

TEST(Radix, AnyGivesTheRightNumbers) {
  int lines = 0;
  for (const Algorithm& line : catalogue()) {
    if (!line.takes("radix")) continue;
    ++lines;
    for (int n = 1; n <= 28; ++n) {
      for (int radix = 2; radix <= n; ++radix) {
        Params params;
        params.ranks = n;
        params.radix = radix;
        params.root = has_root(line.collective) ? n / 2 : 0;
        params.segments = line.takes("segments") ? 2 : 1;
        ASSERT_EQ(line.refusal(params), std::nullopt);
        const Schedule s = line.make(params);
        EXPECT_EQ(failure(s, goal_of(line, params, s)), "")
            << title(line) << " N=" << n << " K=" << radix;
      }
    }
  }
  EXPECT_GT(lines, 20);
}

TEST(Radix, IsTwoWhereNothingIsSaid) {
  for (const Algorithm& line : catalogue()) {
    if (!line.takes("radix")) continue;
    EXPECT_EQ(text_of(line.make({.ranks = 13})), text_of(line.make({.ranks = 13, .radix = 2})))
        << title(line);
    EXPECT_NE(text_of(line.make({.ranks = 13})), text_of(line.make({.ranks = 13, .radix = 3})))
        << title(line);
  }
}

TEST(Radix, OutsideItsRangeIsRefused) {
  const Algorithm& line = *find_algorithm(Collective::all_reduce, "recursive_doubling");
  for (const int radix : {-1, 1, 9}) {
    EXPECT_EQ(line.refusal({.ranks = 8, .radix = radix}),
              "all_reduce 'recursive_doubling': radix is " + std::to_string(radix) +
                  "; allowed are 2 to 8, and 0 for the default");
  }
  EXPECT_EQ(line.refusal({.ranks = 8, .radix = 8}), std::nullopt);
  EXPECT_EQ(line.refusal({.ranks = 1, .radix = 2}), std::nullopt);
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring");
  EXPECT_EQ(ring.refusal({.ranks = 8, .radix = 3}),
            "all_reduce 'ring': radix is 3, which it does not take; it takes no parameter");
}

// Who sends to whom in a round, in the order stated.
std::vector<std::pair<Rank, Rank>> sent_in(const Schedule& s, int k) {
  std::vector<std::pair<Rank, Rank>> out;
  for_each_transfer(s, k,
                    [&](const Transfer& t) { out.emplace_back(t.from.front(), t.to.front()); });
  return out;
}

// Ruefenacht, Bull & Booth: nine ranks in two rounds of threes, neighbours first.
TEST(RecursiveMultiplying, ExchangesInGroupsOfTheRadix) {
  const Schedule s = recursive_doubling_all_reduce(9, 3);
  ASSERT_EQ(s.rounds, 2);
  for (int k = 0; k < 2; ++k) {
    const int d = k == 0 ? 1 : 3;
    std::set<std::pair<Rank, Rank>> expected;
    for (Rank a = 0; a < 9; ++a) {
      for (Rank b = 0; b < 9; ++b) {
        const bool near = a / 3 == b / 3, alike = a % 3 == b % 3;
        if (a != b && (d == 1 ? near : alike)) expected.insert({a, b});
      }
    }
    const auto stated = sent_in(s, k);
    EXPECT_EQ((std::set<std::pair<Rank, Rank>>(stated.begin(), stated.end())), expected);
    EXPECT_EQ(stated.size(), expected.size());
  }
}

// With a radix of all ranks one round is left, in which everybody tells everybody.
TEST(Radix, OfAllRanksIsDirect) {
  for (const int n : {2, 5, 8}) {
    const auto one = static_cast<std::size_t>(n) * static_cast<std::size_t>(n - 1);
    for (const Schedule& s : {recursive_doubling_all_reduce(n, n), bruck_all_gather(n, n),
                              bruck_all_to_all(n, n), dissemination_barrier(n, n)}) {
      EXPECT_EQ(s.rounds, 1);
      EXPECT_EQ(sent_in(s, 0).size(), one);
    }
    EXPECT_EQ(k_ary_tree(n, n), knomial_far(n, n));
  }
}

// Nine ranks to base three: surplus ranks of 14 go to the first five of nine; of 26, two to eight.
TEST(Fold, SharesSurplusRanksOut) {
  const Fold some(14, 9), most(26, 9), none(9, 9);
  EXPECT_EQ(some.rank(4), 8);
  EXPECT_EQ(some.rank(5), 10);
  EXPECT_EQ(some.rank(9), 14);
  EXPECT_EQ(some.surplus(), 1);
  EXPECT_EQ(most.rank(8), 24);
  EXPECT_EQ(most.surplus(), 2);
  EXPECT_EQ(none.surplus(), 0);
  std::set<Rank> seen;
  for_each_surplus(most, [&](Rank c, Rank r) {
    EXPECT_LT(c, r);
    EXPECT_TRUE(seen.insert(r).second);
  });
  EXPECT_EQ(seen.size(), 26u - 9u);
}

}  // namespace
}  // namespace rankine
