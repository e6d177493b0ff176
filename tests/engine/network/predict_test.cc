// Predictions on modelled networks: ordered, exact, and with a reason for each algorithm left out.
#include "engine/network/predict.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rankine {
namespace {

Params among(int ranks) {
  Params params;
  params.ranks = ranks;
  params.segments = 0;
  return params;
}

std::vector<Candidate> candidates(Collective collective, int ranks, std::uint64_t bytes,
                                  const Fabric& fabric) {
  auto all = predict(collective, among(ranks), bytes, fabric);
  EXPECT_TRUE(all.ok()) << all.status().text();
  return *all;
}

const Candidate& find(const std::vector<Candidate>& all, std::string_view name) {
  return *std::find_if(all.begin(), all.end(),
                       [&](const Candidate& c) { return c.algorithm->name == name; });
}

// By how much two that cost the same may differ: a byte a round of whichever has more.
double rounding(const Candidate& a, const Candidate& b) {
  return plain_regime().fabric.link.beta.to_double() * std::max(a.rounds, b.rounds);
}

// Work is done for messages, not for ports.
TEST(Predict, PortsThatNoMessageUsesCostNothing) {
  Fabric fabric = plain_regime().fabric;
  fabric.ports = Fabric::kMostPorts;
  const auto all = candidates(Collective::all_reduce, 8, 1 << 20, fabric);
  fabric.ports = 2048;  // already more than there are segments for one rank to send at once
  const auto fewer = candidates(Collective::all_reduce, 8, 1 << 20, fabric);
  ASSERT_EQ(all.size(), fewer.size());
  EXPECT_LE(all.front().seconds, fewer.front().seconds);
}

TEST(Predict, EveryAlgorithmOfTheCollectiveIsThereCheapestFirst) {
  for (const Collective collective : all_collectives()) {
    const auto all = candidates(collective, 6, 4096, plain_regime().fabric);
    const auto lines =
        std::count_if(catalogue().begin(), catalogue().end(),
                      [&](const Algorithm& a) { return a.collective == collective; });
    EXPECT_EQ(static_cast<std::ptrdiff_t>(all.size()), lines);
    for (std::size_t i = 1; i < all.size(); ++i) {
      EXPECT_TRUE(all[i - 1].ok() || !all[i].ok());
      if (all[i].ok()) {
        EXPECT_LE(all[i - 1].seconds, all[i].seconds + rounding(all[i - 1], all[i]));
      }
    }
  }
}

TEST(Predict, LatencyAndBandwidthWantDifferentAlgorithms) {
  const Fabric& fabric = plain_regime().fabric;
  EXPECT_EQ(candidates(Collective::all_reduce, 16, 8, fabric).front().algorithm->name,
            "recursive_doubling");
  EXPECT_EQ(candidates(Collective::all_reduce, 16, 1 << 28, fabric).front().algorithm->name,
            "halving_doubling");
}

TEST(Predict, TheSwitchIsRefusedWithoutTheAbilityAndUsedWithIt) {
  const auto without = candidates(Collective::all_reduce, 8, 1024, plain_regime().fabric);
  const Candidate& refused = find(without, "switch");
  EXPECT_FALSE(refused.ok());
  EXPECT_NE(refused.refusal.find("ALU"), std::string::npos) << refused.refusal;
  const auto with = candidates(Collective::all_reduce, 8, 1024, find_regime("switch")->fabric);
  EXPECT_EQ(with.front().algorithm->name, "switch");
}

TEST(Predict, WhereTheSwitchPermutesAnAllToAllInOneRoundIsTheBest) {
  Fabric fabric = find_regime("scale_up")->fabric;
  EXPECT_EQ(candidates(Collective::all_to_all, 16, 64, fabric).front().algorithm->name, "bruck");
  fabric.permute = true;
  for (const std::uint64_t bytes : {64ULL, 1ULL << 20, 1ULL << 28}) {
    EXPECT_EQ(candidates(Collective::all_to_all, 16, bytes, fabric).front().algorithm->name,
              "direct");
  }
}

// One multicast is cheaper than three rounds down a tree, and than what six ranks cost doubling.
TEST(Predict, ASwitchThatOnlyCopiesBringsTheSumDown) {
  Fabric fabric = find_regime("pcie")->fabric;
  EXPECT_FALSE(find(candidates(Collective::all_reduce, 6, 64, fabric), "binomial_multicast").ok());
  fabric.multicast = true;
  fabric.alpha_switch = Rational(150, 1'000'000'000);
  const auto all = candidates(Collective::all_reduce, 6, 64, fabric);
  for (const char* by_messages : {"binomial_near", "binomial_far", "recursive_doubling", "ring"}) {
    EXPECT_LT(find(all, "binomial_multicast").seconds, find(all, by_messages).seconds);
  }
  EXPECT_FALSE(find(all, "switch").ok());
  for (const Collective sums : {Collective::reduce, Collective::reduce_scatter}) {
    EXPECT_NE(find(candidates(sums, 6, 64, fabric), "switch").refusal.find("no ALU"),
              std::string::npos);
  }
  for (const Collective copies : {Collective::broadcast, Collective::all_gather}) {
    EXPECT_TRUE(find(candidates(copies, 6, 64, fabric), "switch").ok());
  }
}

TEST(Predict, SegmentsAreChosenBySize) {
  const Fabric& fabric = plain_regime().fabric;
  const auto small = candidates(Collective::broadcast, 8, 8, fabric);
  const auto large = candidates(Collective::broadcast, 8, 1 << 26, fabric);
  EXPECT_EQ(find(small, "chain").params.segments, 1);
  EXPECT_GT(find(large, "chain").params.segments, 16);
}

TEST(Predict, ABadFabricIsAnError) {
  Fabric fabric = plain_regime().fabric;
  fabric.ports = 0;
  const auto all = predict(Collective::all_reduce, among(4), 8, fabric);
  ASSERT_FALSE(all.ok());
  EXPECT_NE(all.status().text().find("ports"), std::string::npos);
}

// Where two algorithms cost the same but for how blocks are rounded to whole bytes, which of them
// is chosen does not change from size to size: once left, a winner does not come back.
TEST(Predict, EqualsAreChosenAlikeAtEverySize) {
  for (const char* network : {"scale_up", "scale_out"}) {
    for (int ranks = 2; ranks <= 12; ++ranks) {
      std::vector<std::string_view> winners;
      for (std::uint64_t bytes = 64; bytes <= std::uint64_t{256} << 20; bytes *= 2) {
        const std::string_view winner =
            candidates(Collective::all_reduce, ranks, bytes, find_regime(network)->fabric)
                .front()
                .algorithm->name;
        if (!winners.empty() && winners.back() == winner) continue;
        EXPECT_EQ(std::count(winners.begin(), winners.end(), winner), 0)
            << network << ", " << ranks << " ranks, " << bytes << " bytes: " << winner << " again";
        winners.push_back(winner);
      }
    }
  }
}

// Among 4 ranks on the plain network linear sends 3 messages and binomial_near 2, one after the
// other: of 300,000 bytes, each is a quarter alpha (1 us) and the rest bytes (100 GB/s).
TEST(Predict, WeighMultipliesAndPutsInOrder) {
  const Fabric& fabric = plain_regime().fabric;
  auto all = candidates(Collective::broadcast, 4, 300'000, fabric);
  const auto measured = [](const Algorithm& line) -> std::optional<CReal> {
    if (line.name == "linear") return CReal{.latency = 0.5, .bandwidth = 0.7};
    if (line.name == "binomial_near") return CReal{.latency = 1, .bandwidth = 1.5};
    if (line.name == "switch") return CReal{.latency = 0.01, .bandwidth = 0.01};
    return std::nullopt;
  };
  ASSERT_TRUE(weigh(all, measured, fabric).ok());
  EXPECT_EQ(all[0].algorithm->name, "linear");
  EXPECT_DOUBLE_EQ(*all[0].c_real, 0.65);
  EXPECT_DOUBLE_EQ(all[0].seconds, 12e-6);
  EXPECT_DOUBLE_EQ(all[0].expected(), 7.8e-6);
  EXPECT_EQ(all[1].algorithm->name, "binomial_near");
  EXPECT_DOUBLE_EQ(*all[1].c_real, 1.375);
  EXPECT_DOUBLE_EQ(all[1].expected(), 11e-6);
  // Then what nobody measured, the cheapest first, and what cannot run.
  for (std::size_t i = 2; i < all.size(); ++i) EXPECT_FALSE(all[i].c_real) << i;
  EXPECT_TRUE(all[2].ok());
  EXPECT_EQ(all.back().algorithm->name, "switch");
}

TEST(Predict, TheShareOfAlphasIsThatOfTheMessagesWithoutBytes) {
  const Fabric& fabric = plain_regime().fabric;
  const auto share = [&](std::uint64_t bytes) {
    const auto all = candidates(Collective::broadcast, 4, bytes, fabric);
    return *latency_share(find(all, "linear"), fabric);
  };
  EXPECT_DOUBLE_EQ(share(0), 1);
  EXPECT_DOUBLE_EQ(share(100'000), 0.5);
  EXPECT_DOUBLE_EQ(share(300'000), 0.25);
}

}  // namespace
}  // namespace rankine
