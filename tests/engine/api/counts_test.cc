// Collectives with one count per rank or pair (the v forms), zero counts included, by every
// algorithm.
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/team.h"

namespace rankine {
namespace {

using Elements = std::vector<std::uint32_t>;

// What rank `from` contributes to element i of natural block b.
std::uint32_t value(Rank from, std::size_t b, std::size_t i) {
  return static_cast<std::uint32_t>(from * 1'000'003) + static_cast<std::uint32_t>(b * 1009 + i);
}

// The blocks that a rank brings (or, for outputs, must end with), one after the other.
Elements expected(const Goal& natural, Rank r, std::span<const std::size_t> counts, bool output) {
  Elements all;
  for (int b = 0; b < natural.blocks; ++b) {
    const auto block = static_cast<std::size_t>(b);
    if (output ? !natural.needs(r, b) : !natural.starts(r, b)) continue;
    for (std::size_t i = 0; i < counts[block]; ++i) {
      std::uint32_t sum = 0;
      for (Rank q = 0; q < natural.ranks; ++q) {
        if (output ? natural.wants(r, b, q) : q == r) sum += value(q, block, i);
      }
      all.push_back(sum);
    }
  }
  return all;
}

struct Case {
  Collective collective;
  int ranks;
};

class Counts : public testing::TestWithParam<Case> {};

TEST_P(Counts, EveryAlgorithmMovesUnequalBlocks) {
  const auto [collective, ranks] = GetParam();
  const int blocks = natural_blocks(collective, ranks);
  std::vector<std::vector<std::size_t>> shapes(
      3, std::vector<std::size_t>(static_cast<std::size_t>(blocks)));
  for (std::size_t b = 0; b < shapes[0].size(); ++b) shapes[0][b] = b * 5 % 7;
  shapes[1][shapes[1].size() / 2] = 1000;  // all in one block
  for (std::size_t b = 0; b < shapes[2].size(); ++b) shapes[2][b] = b % 2 * 300 + 1;
  auto team = Team::create({.ranks = ranks});
  ASSERT_TRUE(team.ok()) << team.status().text();
  for (const Algorithm& algorithm : catalogue()) {
    Params params;
    params.ranks = ranks;
    if (algorithm.collective != collective || algorithm.refusal(params)) continue;
    for (const auto& counts : shapes) {
      // The engine's choice is boards, where they suit.
      for (const std::optional<Transport> transport :
           {std::optional(Transport::direct), std::optional(Transport::mailbox),
            std::optional<Transport>()}) {
        const Rank root = ranks - 1;
        const Goal natural{collective, ranks, blocks, root, 0};
        const Status status = (*team)->run([&](Member& me) {
          const Elements in = expected(natural, me.rank(), counts, false);
          const Elements want = expected(natural, me.rank(), counts, true);
          Elements out(want.size());
          me.with_counts(collective, std::span<const std::uint32_t>(in),
                         std::span<std::uint32_t>(out), counts, root, ReduceOp::sum,
                         {.algorithm = algorithm.name, .transport = transport})
              .throw_if_error();
          EXPECT_EQ(out, want) << algorithm.name << ", "
                               << (transport ? name_of(*transport) : "any transport") << ", rank "
                               << me.rank();
        });
        ASSERT_TRUE(status.ok()) << algorithm.name << ": " << status.text();
      }
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Collective c : {Collective::all_gather, Collective::reduce_scatter,
                             Collective::all_to_all, Collective::gather, Collective::scatter}) {
    for (const int n : {1, 2, 3, 5, 8}) all.push_back({c, n});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(AllCollectives, Counts, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case>& test) {
                           return std::string(name_of(test.param.collective)) + "_" +
                                  std::to_string(test.param.ranks);
                         });

// Corollary 3 of Traff's paper: unequal blocks, whatever the skips; all elements may be one rank's.
TEST(Counts, CirculantMovesUnequalBlocksWithAnySkips) {
  constexpr int kRanks = 7;
  const std::vector<std::vector<int>> all_skips = {
      {}, {6, 5, 4, 3, 2, 1}, {1, 2, 4}, {3, 1, 2}, {4, 3, 2, 1}};
  auto team = Team::create({.ranks = kRanks});
  ASSERT_TRUE(team.ok()) << team.status().text();
  for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather}) {
    const Goal natural{collective, kRanks, kRanks};
    for (const std::vector<int>& skips : all_skips) {
      for (int owner = -1; owner < kRanks; ++owner) {  // -1: everyone something else
        std::vector<std::size_t> counts(kRanks, 0);
        for (int b = 0; owner < 0 && b < kRanks; ++b) counts[static_cast<std::size_t>(b)] = b * 37u;
        if (owner >= 0) counts[static_cast<std::size_t>(owner)] = 501;
        const Status status = (*team)->run([&](Member& me) {
          const Elements in = expected(natural, me.rank(), counts, false);
          const Elements want = expected(natural, me.rank(), counts, true);
          Elements out(want.size());
          me.with_counts(collective, std::span<const std::uint32_t>(in),
                         std::span<std::uint32_t>(out), counts, 0, ReduceOp::sum,
                         {.algorithm = "circulant", .skips = skips})
              .throw_if_error();
          EXPECT_EQ(out, want) << name_of(collective) << ", rank " << me.rank();
        });
        ASSERT_TRUE(status.ok()) << status.text();
      }
    }
  }
}

TEST(Counts, WrongNumberOfCountsIsRefused) {
  auto team = Team::create({.ranks = 2});
  ASSERT_TRUE(team.ok());
  const Status status = (*team)->run([](Member& me) {
    std::vector<float> in(3), out(3);
    const std::vector<std::size_t> counts = {1, 1, 1};
    const Status refused = me.with_counts(Collective::all_gather, std::span<const float>(in),
                                          std::span<float>(out), counts);
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_NE(refused.text().find("counts has 3 entries"), std::string::npos) << refused.text();
    const std::vector<std::size_t> too_many = {4, 4};
    const Status short_buffer = me.with_counts(Collective::all_gather, std::span<const float>(in),
                                               std::span<float>(out), too_many);
    EXPECT_EQ(short_buffer.code(), Code::invalid_argument);
  });
  EXPECT_TRUE(status.ok()) << status.text();
}

}  // namespace
}  // namespace rankine
