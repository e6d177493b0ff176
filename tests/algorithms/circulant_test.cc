#include "algorithms/circulant.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "algorithms/bruck.h"
#include "algorithms/circulant.h"
#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

SharedRounds rounds_with(int p, std::vector<int> skips) {
  return std::make_shared<const CirculantRounds>(p, std::move(skips));
}
SharedRounds halving(int p) { return rounds_with(p, halving_skips(p)); }

// Theorem 1, for every number of ranks up to 1024.
TEST(Circulant, EveryRankSendsReceivesAndAddsOneBlockLessThanThereAreRanks) {
  for (int p = 1; p <= 1024; ++p) {
    const Schedule s = circulant_reduce_scatter(halving(p));
    ASSERT_EQ(s.rounds, ceil_log2(p));
    std::vector<int> sent(static_cast<std::size_t>(p), 0), received = sent;
    for (int k = 0; k < s.rounds; ++k) {
      std::vector<int> messages_in(static_cast<std::size_t>(p), 0), messages_out = messages_in;
      for_each_transfer(s, k, [&](const Transfer& t) {
        ASSERT_EQ(t.from.size(), 1);
        ASSERT_EQ(t.to.size(), 1);
        ASSERT_EQ(t.act, Act::reduce);
        const auto from = static_cast<std::size_t>(t.from.front());
        const auto to = static_cast<std::size_t>(t.to.front());
        ASSERT_NE(from, to);
        sent[from] += t.what.list.size();
        received[to] += t.where.list.size();
        ++messages_out[from];
        ++messages_in[to];
      });
      EXPECT_EQ(messages_out, std::vector<int>(static_cast<std::size_t>(p), 1)) << p;
      EXPECT_EQ(messages_in, std::vector<int>(static_cast<std::size_t>(p), 1)) << p;
    }
    EXPECT_EQ(sent, std::vector<int>(static_cast<std::size_t>(p), p - 1)) << p;
    EXPECT_EQ(received, std::vector<int>(static_cast<std::size_t>(p), p - 1)) << p;
  }
}

// What rank `target` adds up, and in which order: what is received in brackets.
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

// Section 2.1, Example, line by line.
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

TEST(Circulant, NearFirstAllToAllAmongAPowerOfTwoIsBrucks) {
  for (int p : {2, 4, 8, 16, 32}) {
    const auto c = rounds_with(p, find_skip_scheme("halving_near")->skips(p));
    EXPECT_EQ(text_of(circulant_all_to_all(c)), text_of(bruck_all_to_all(p)));
  }
}

// Corollary 2 and its uses: every order of every valid set of skips, executed.
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

TEST(Circulant, ScatterServesNobodyTwiceAtOnce) {
  for (const SkipScheme& scheme : skip_schemes()) {
    for (int p = 1; p <= 40; ++p) {
      const Schedule s = circulant_scatter(rounds_with(p, scheme.skips(p)), p / 3);
      for (int k = 0; k < s.rounds; ++k) {
        std::vector<int> in(static_cast<std::size_t>(p), 0), out = in;
        for_each_transfer(s, k, [&](const Transfer& t) {
          EXPECT_EQ(++out[static_cast<std::size_t>(t.from.front())], 1) << scheme.name << p;
          EXPECT_EQ(++in[static_cast<std::size_t>(t.to.front())], 1) << scheme.name << p;
        });
      }
    }
  }
}

}  // namespace
}  // namespace rankine
