#include "algorithms/circulant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "algorithms/circulant.h"
#include "algorithms/schedule/schedule.h"

namespace rankine {
namespace {

using Skips = std::vector<int>;

Skips made(std::string_view scheme, int p) { return find_skip_scheme(scheme)->skips(p); }

TEST(SkipSchemes, GiveThePapersSequences) {
  EXPECT_EQ(made("halving", 22), (Skips{11, 6, 3, 2, 1}));
  EXPECT_EQ(made("powers_of_two", 22), (Skips{16, 8, 4, 2, 1}));
  EXPECT_EQ(made("powers_of_two", 16), (Skips{8, 4, 2, 1}));
  EXPECT_EQ(made("linear", 6), (Skips{5, 4, 3, 2, 1}));
  EXPECT_EQ(made("square_root", 22), (Skips{17, 12, 7, 4, 2, 1}));
  EXPECT_EQ(made("square_root", 100), (Skips{90, 80, 70, 60, 50, 40, 30, 20, 10, 5, 3, 2, 1}));
  EXPECT_EQ(made("halving_near", 22), (Skips{1, 2, 3, 6, 11}));
  EXPECT_EQ(find_skip_scheme("thirds"), nullptr);
  EXPECT_EQ(skip_scheme_names(), "halving, powers_of_two, linear, square_root, halving_near");
}

TEST(SkipSchemes, AreReadByNameOrAsNumbers) {
  EXPECT_EQ(read_skips("halving", 22), (Skips{11, 6, 3, 2, 1}));
  EXPECT_EQ(read_skips("1,2,4", 8), (Skips{1, 2, 4}));
  EXPECT_EQ(read_skips("7", 8), (Skips{7}));
  for (const char* text : {"", "thirds", "1,", ",1", "1;2", "1, 2", "-1", "4x", "99999999999"}) {
    EXPECT_EQ(read_skips(text, 8), std::nullopt) << text;
  }
}

TEST(SkipSchemes, AreAllowedForAnyNumberOfRanks) {
  for (const SkipScheme& scheme : skip_schemes()) {
    EXPECT_TRUE(scheme.skips(1).empty()) << scheme.name;
    for (int p = 1; p <= 600; ++p) {
      EXPECT_EQ(skips_refusal(scheme.skips(p), p), std::nullopt) << scheme.name << " " << p;
      const bool near = scheme.name == "halving_near" && p > 2;
      EXPECT_EQ(are_windows(scheme.skips(p), p) || p == 1, !near) << scheme.name << " " << p;
    }
  }
}

// "about sqrt(p)": the long strides, and halving once.
TEST(SkipSchemes, SquareRootTakesAboutASquareRootOfRounds) {
  for (int p = 2; p <= 5000; ++p) {
    int root = 1;
    while (root * root < p) ++root;
    EXPECT_LE(static_cast<int>(made("square_root", p).size()), root + ceil_log2(root)) << p;
  }
}

TEST(Refusal, NamesTheFirstRankAndBlockThatWouldBeLost) {
  const auto text = [](const Skips& skips, int p) { return skips_refusal(skips, p).value_or(""); };
  EXPECT_EQ(text({5, 3, 1}, 7),
            "skips is 5,3,1: rank 0's part of block 2 would be lost; every distance below 7 must "
            "be a sum of different skips");
  EXPECT_EQ(text({4, 2}, 8),
            "skips is 4,2: rank 0's part of block 1 would be lost; every distance below 8 must be "
            "a sum of different skips");
  EXPECT_EQ(text({}, 2),
            "skips is empty: rank 0's part of block 1 would be lost; every distance below 2 must "
            "be a sum of different skips");
  EXPECT_EQ(text({4, 0, 1}, 5),
            "skips is 4,0,1: 0 is not allowed; among 5 ranks skips are from 1 to 4");
  EXPECT_EQ(text({5, 2, 1}, 5),
            "skips is 5,2,1: 5 is not allowed; among 5 ranks skips are from 1 to 4");
  EXPECT_EQ(text({2, 2, 1}, 5), "skips is 2,2,1: 2 is there twice; skips must be different");
  EXPECT_EQ(text({1}, 1), "skips is 1: one rank has nobody to skip to; none are allowed");
  EXPECT_EQ(text({3, 1, 2}, 4),
            "skips is 3,1,2: nothing would be left for the skip 3 in round 0; what it could bring, "
            "later ones bring without it");
}

// Sums of different ones of these skips, by trying all subsets.
std::set<int> sums_of(const Skips& skips, std::size_t from) {
  std::set<int> sums;
  const std::size_t many = skips.size() - from;
  for (unsigned subset = 0; subset < 1u << many; ++subset) {
    int sum = 0;
    for (std::size_t j = 0; j < many; ++j) sum += subset >> j & 1u ? skips[from + j] : 0;
    sums.insert(sum);
  }
  return sums;
}

// Corollary 2's condition, checked on its own: every order of every set of skips up to 7 ranks, and
// every set in falling and in rising order up to 10.
void check_against_all_subsets(const Skips& skips, int p) {
  int lost = 0;
  const std::set<int> sums = sums_of(skips, 0);
  for (int i = p - 1; i >= 1; --i) lost = sums.count(i) == 0 ? i : lost;
  bool idle = false;
  for (std::size_t k = 0; k < skips.size(); ++k) {
    const std::set<int> later = sums_of(skips, k + 1);
    const auto new_here = [&](int sum) {
      return sum + skips[k] < p && later.count(sum + skips[k]) == 0;
    };
    idle |= std::none_of(later.begin(), later.end(), new_here);
  }
  if (are_windows(skips, p)) {  // each skip brings at least the block that is as far away
    EXPECT_EQ(lost, 0) << skips_text(skips);
    idle = false;
  }
  const std::string text = skips_refusal(skips, p).value_or("");
  const std::string_view expected = lost > 0 ? "would be lost"
                                    : idle   ? "nothing would be left"
                                             : "";
  EXPECT_EQ(text.empty(), expected.empty()) << p << ": " << skips_text(skips) << ": " << text;
  EXPECT_NE(text.find(expected), std::string::npos) << p << ": " << skips_text(skips);
  if (lost > 0) {
    EXPECT_NE(text.find("block " + std::to_string(lost) + " "), std::string::npos) << text;
  }
}

TEST(Refusal, IsRightForEverySetOfSkipsUpToTenRanks) {
  int tried = 0;
  for (int p = 2; p <= 10; ++p) {
    for (unsigned set = 1; set < 1u << (p - 1); ++set) {
      Skips skips;
      for (int s = 1; s < p; ++s) {
        if (set >> (s - 1) & 1u) skips.push_back(s);
      }
      ++tried;
      check_against_all_subsets(skips, p);
      if (p <= 7) {
        while (std::next_permutation(skips.begin(), skips.end())) {
          check_against_all_subsets(skips, p);
        }
      } else {
        std::reverse(skips.begin(), skips.end());
        check_against_all_subsets(skips, p);
      }
    }
  }
  EXPECT_EQ(tried, 1013);
}

TEST(CirculantRounds, SendWindowsAsAlgorithm1Does) {
  const CirculantRounds c(22, {11, 6, 3, 2, 1});
  EXPECT_EQ(c.sent(0), ranks_from(11, 11));
  EXPECT_EQ(c.sent(1), ranks_from(6, 5));
  EXPECT_EQ(c.sent(2), ranks_from(3, 3));
  EXPECT_EQ(c.sent(3), IndexList(2));
  EXPECT_EQ(c.sent(4), IndexList(1));
  EXPECT_EQ(c.next(14), 3);
  EXPECT_EQ(c.sent_in(0), 5);
}

TEST(CirculantRounds, SendOtherSkipsInTheLastRoundThatServes) {
  const CirculantRounds near(8, {1, 2, 4});
  EXPECT_EQ(near.sent(0), ranks_from(1, 4, 2));
  EXPECT_EQ(near.sent(1), ranks_from(2, 2, 4));
  EXPECT_EQ(near.sent(2), IndexList(4));
  const CirculantRounds mixed(7, {3, 1, 2});  // 3 goes as 1 + 2, so that 6 can go as 3 + 3
  EXPECT_EQ(mixed.sent(0), ranks_from(4, 3));
  EXPECT_EQ(mixed.sent(1), ranks_from(1, 2, 2));
  EXPECT_EQ(mixed.sent(2), IndexList(2));
}

TEST(CirculantRounds, WayIsASumOfDifferentSkipsInTheOrderOfTheRounds) {
  for (const SkipScheme& scheme : skip_schemes()) {
    for (int p = 1; p <= 130; ++p) {
      const CirculantRounds c(p, scheme.skips(p));
      int hops = 0;
      for (int way = 1; way < p; ++way) {
        for (int left = way, round = -1; left > 0; left = c.next(left)) {
          ASSERT_GT(c.sent_in(left), round) << scheme.name << " " << p << " " << way;
          round = c.sent_in(left);
          ++hops;
        }
      }
      std::size_t moving = 0;
      for (const auto& round : c.ways()) moving += round.size();
      EXPECT_EQ(moving, static_cast<std::size_t>(hops));
    }
  }
}

}  // namespace
}  // namespace rankine
