#include "algorithms/circulant.h"
#include "algorithms/bruck.h"
#include "algorithms/catalogue.h"
#include "algorithms/halving_doubling.h"
#include "algorithms/recursive_doubling.h"
#include "algorithms/run_sums.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/schedule.h"
#include "algorithms/tree.h"
#include "algorithms/trivance.h"
#include "tests/algorithms/reference.h"
#include "tests/testing.h"

namespace rankine {
namespace {

SharedRounds rounds_with(int p, std::vector<int> skips) {
  return std::make_shared<const CirculantRounds>(p, std::move(skips));
}
SharedRounds halving(int p) { return rounds_with(p, halving_skips(p)); }

// The sum that rank `target` computes, in its order of additions; each received partial sum is in
// brackets.
std::string sum_at(const Schedule& schedule, Rank target) {
  std::vector<std::vector<std::string>> held;
  for (Rank r : ranks(schedule.ranks)) {
    held.emplace_back(static_cast<std::size_t>(schedule.blocks), std::to_string(r));
  }
  const auto at = [&held](Rank r, Block b) -> std::string& {
    return held[static_cast<std::size_t>(r)][static_cast<std::size_t>(b)];
  };
  for (int k = 0; k < schedule.rounds; ++k) {
    const auto before = held;
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      t.what.list.for_each([&](Block b) {
        std::string part =
            before[static_cast<std::size_t>(t.from.front())][static_cast<std::size_t>(b)];
        if (part.find('+') != std::string::npos) part = "(" + part + ")";
        at(t.to.front(), b) += "+" + part;
      });
    });
  }
  return at(target, target);
}

// The example of section 2.1, line by line.
TEST(Circulant, AddsInTheOrderOfThePapersExample) {
  EXPECT_EQ(sum_at(circulant_reduce_scatter(halving(22)), 21),
            "21+10"
            "+(15+4)"
            "+(18+7+(12+1))"
            "+(19+8+(13+2)+(16+5))"
            "+(20+9+(14+3)+(17+6+(11+0)))");
}

TEST(Circulant, WithPowersOfTwoIsBrucks) {
  for (int p = 1; p <= 70; ++p) {
    const auto c = rounds_with(p, find_skip_scheme("powers_of_two")->skips(p));
    const Schedule ours = circulant_reduce_scatter(c), brucks = bruck_reduce_scatter(p);
    ASSERT_EQ(ours.rounds, brucks.rounds);
    for (int k = 0; k < ours.rounds; ++k) {
      auto a = messages(ours, k), b = messages(brucks, k);
      std::sort(a.begin(), a.end());
      std::sort(b.begin(), b.end());
      EXPECT_EQ(a, b) << p << ", round " << k;
    }
  }
}

// Corollary 2 and its uses: executes every order of every valid set of skips.
TEST(Circulant, EveryValidSequenceServesEveryCollective) {
  int valid = 0;
  for (int p = 1; p <= 6; ++p) {
    for (unsigned set = 0; set < 1u << (p - 1); ++set) {
      std::vector<int> skips;
      for (int s = 1; s < p; ++s) {
        if (set >> (s - 1) & 1u) skips.push_back(s);
      }
      do {
        if (skips_refusal(skips, p)) continue;
        ++valid;
        SCOPED_TRACE(std::to_string(p) + " ranks, skips " + skips_text(skips));
        const auto c = rounds_with(p, skips);
        using enum Collective;
        EXPECT_EQ(failure(circulant_reduce_scatter(c), {reduce_scatter, p, p}), "");
        EXPECT_EQ(failure(circulant_all_gather(c), {all_gather, p, p}), "");
        EXPECT_EQ(failure(circulant_all_reduce(c), {all_reduce, p, p}), "");
        EXPECT_EQ(failure(circulant_all_to_all(c), {all_to_all, p, p * p}), "");
        for (Rank root : ranks(p)) {
          EXPECT_EQ(failure(circulant_scatter(c, root), {scatter, p, p, root}), "");
          EXPECT_EQ(failure(circulant_gather(c, root), {gather, p, p, root}), "");
          EXPECT_EQ(failure(circulant_reduce(c, root), {Collective::reduce, p, 1, root}), "");
          EXPECT_EQ(failure(circulant_broadcast(c, root), {broadcast, p, 1, root}), "");
        }
      } while (std::next_permutation(skips.begin(), skips.end()));
    }
  }
  EXPECT_GT(valid, 50);
}

// Catches a wrong beginning of the first turn and a block received twice: `verify` tries three
// numbers of blocks only, which leave most remainders of the turns' q rounds out.
TEST(CirculantPipelined, BringsEveryBlockOnceInTheFewestRounds) {
  for (const int p : {2, 3, 5, 16, 17, 22, 33}) {
    for (int n = 1; n <= 20; ++n) {
      const Schedule s = broadcast_of(circulant_pipelined_all_gather(p, n), p / 2);
      EXPECT_EQ(s.rounds, n - 1 + ceil_log2(p));
      EXPECT_EQ(failure(s, {Collective::broadcast, p, n, p / 2}), "") << p << " " << n;
      int received = 0;
      for (int k = 0; k < s.rounds; ++k) {
        for_each_transfer(s, k, [&](const Transfer& t) { received += t.what.list.size(); });
      }
      EXPECT_EQ(received, n * (p - 1)) << p << " " << n;
    }
  }
}

// Catches another way of a block than the paper's: with one block both papers' ways are equal.
TEST(CirculantPipelined, WithOneBlockIsTheAllGatherOfTheHalvingSkips) {
  for (int p = 1; p <= 70; ++p) {
    const Schedule ours = circulant_pipelined_all_gather(p, 1);
    const Schedule plain = mirrored(circulant_all_gather(halving(p)));
    ASSERT_EQ(ours.rounds, plain.rounds);
    for (int k = 0; k < ours.rounds; ++k) {
      std::set<std::tuple<Rank, Rank, std::set<Block>>> a, b;
      for (auto [schedule, out] : {std::pair(&ours, &a), std::pair(&plain, &b)}) {
        for_each_transfer(*schedule, k, [out = out](const Transfer& t) {
          const std::vector<int> what = t.what.list.to_vector();
          out->insert({t.from.front(), t.to.front(), {what.begin(), what.end()}});
        });
      }
      EXPECT_EQ(a, b) << p << ", round " << k;
    }
  }
}

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

// "about sqrt(p)" rounds: the long strides, then one halving phase.
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
  EXPECT_TRUE(text({4, 0, 1}, 5).starts_with("skips is 4,0,1: 0 "));
  EXPECT_TRUE(text({5, 2, 1}, 5).starts_with("skips is 5,2,1: 5 "));
  EXPECT_TRUE(text({2, 2, 1}, 5).starts_with("skips is 2,2,1: 2 "));
  EXPECT_TRUE(text({1}, 1).starts_with("skips is 1: "));
  EXPECT_NE(text({3, 1, 2}, 4).find("the skip 3 in round 0"), std::string::npos);
}

// The sums of different skips, from all subsets.
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

// Checks Corollary 2's condition independently: every order of every set of skips up to 7 ranks,
// and every set in falling and in rising order up to 10.
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
  if (are_windows(skips, p)) {  // each skip brings at least the block at that distance
    EXPECT_EQ(lost, 0) << skips_text(skips);
    idle = false;
  }
  const std::string text = skips_refusal(skips, p).value_or("");
  const std::string_view expected = lost > 0 ? "would be lost" : idle ? "the skip " : "";
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

constexpr RunParts kLeft{true, false, false}, kOwn{false, true, false}, kRight{false, false, true},
    kAll{true, true, true};

TEST(RunSums, PowersOfThreeNeedOneVectorOnly) {
  for (const int n : {3, 9, 27, 81}) {
    EXPECT_EQ(run_sums_all_reduce(n, trivance_plan(n)).planes, 1) << n;
    EXPECT_EQ(run_sums_all_reduce(n, bruck_ternary_plan(n)).planes, 1) << n;
  }
  EXPECT_GT(run_sums_all_reduce(7, trivance_plan(7)).planes, 1);
}

// Trees, butterflies, Bruck's algorithm and dissemination with any radix.

std::string title(const Algorithm& entry) {
  return std::string(name_of(entry.collective)) + " " + std::string(entry.name);
}

TEST(Radix, IsTwoWhereNothingIsSaid) {
  for (const Algorithm& entry : catalogue()) {
    if (!entry.takes("radix")) continue;
    const auto text = [&entry](int radix) {
      return text_of(
          entry.make({.ranks = 13, .group = entry.takes("group") ? 13 : 0, .radix = radix}));
    };
    EXPECT_EQ(text(Params().radix), text(2)) << title(entry);
    EXPECT_NE(text(Params().radix), text(3)) << title(entry);
  }
}

const std::vector<int> kTori[] = {{1},    {2},    {5},    {9},    {16},
                                  {2, 2}, {3, 3}, {5, 3}, {4, 6}, {3, 2, 4}};

// The definition, from the messages of all ranks: the broadcast has exactly the all-gather's
// messages, cut down to the root's blocks.
TEST(OneBlock, BroadcastIsWhatTheAllGatherDoesWithTheRootsBlocks) {
  using Told = std::tuple<int, Rank, Rank, Block>;
  for (const std::vector<int>& dims : kTori) {
    const Schedule all = trivance_all_gather(dims);
    const int s = all.blocks / all.ranks;
    for (const Rank root : ranks(all.ranks)) {
      const Schedule one = trivance_broadcast(dims, root);
      EXPECT_EQ(one.rounds, all.rounds);
      EXPECT_EQ(one.blocks, s);
      std::vector<Told> expected, told;
      for (int k = 0; k < all.rounds; ++k) {
        for_each_transfer(all, k, [&](const Transfer& t) {
          t.what.list.for_each([&](Block b) {
            if (b / s == root) expected.emplace_back(k, t.from.front(), t.to.front(), b % s);
          });
        });
        for_each_transfer(one, k, [&](const Transfer& t) {
          t.what.list.for_each(
              [&](Block b) { told.emplace_back(k, t.from.front(), t.to.front(), b); });
        });
      }
      std::sort(expected.begin(), expected.end());
      std::sort(told.begin(), told.end());
      EXPECT_EQ(told, expected) << dims_text(dims) << ", root " << root;
    }
  }
}

TEST(OneBlock, IsOfAllGathersInWhichEveryoneDoesTheSame) {
  EXPECT_THROW(broadcast_of(recursive_doubling_all_gather(4), 0), std::logic_error);
  EXPECT_THROW(broadcast_of(trivance_latency_line(4), 0), std::logic_error);
}

}  // namespace
}  // namespace rankine
