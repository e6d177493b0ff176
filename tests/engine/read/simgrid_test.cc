// Flows, compared with SimGrid, which shares links and keeps time by independent code.

#include "algorithms/catalogue.h"
#include "engine/network/wiring.h"
#include "engine/read/flow.h"
#include "tests/engine/read/listed.h"
#include "tests/engine/read/simgrid_judge.h"
#include "tests/testing.h"

namespace rankine {
namespace {

const Wiring kNetworks[] = {
    {.kind = WiringKind::torus, .dims = {8}},
    {.kind = WiringKind::torus, .dims = {9}},
    {.kind = WiringKind::torus, .dims = {4, 4}},
    {.kind = WiringKind::torus, .dims = {3, 5}},
    {.kind = WiringKind::torus, .dims = {3, 3, 3}},
    {.kind = WiringKind::mesh, .dims = {3, 5}},
    {.kind = WiringKind::hypercube, .dims = {2, 2, 2, 2}},
    {.kind = WiringKind::fat_tree, .dims = {16}, .group = 4, .spines = 3},
};
constexpr int kByte = 1'000'000;  // bytes per block, and per second

int ranks_of(const Wiring& wiring) {
  int n = 1;
  for (const int size : wiring.dims) n *= size;
  return n;
}

// Seconds and bytes are of similar size, because the precision of both sides is absolute.
Fabric fabric_of(const Wiring& wiring) {
  Fabric fabric;
  fabric.name = "judged";
  fabric.ports = Fabric::kMostPorts;
  fabric.link = fabric.between = {3, Rational(1, kByte)};
  fabric.group = wiring.group;
  fabric.alpha_hop = Rational(1, 2);
  fabric.wiring = wiring;
  if (!wiring.has_dims()) fabric.wiring.dims.clear();
  if (wiring.kind == WiringKind::torus && wiring.dims.size() == 1) {
    fabric.wiring = {.kind = WiringKind::ring};
  }
  return fabric;
}
JudgedNetwork network_of(const Wiring& wiring) {
  return {.dims = wiring.dims,
          .closed = wiring.has_rings(),
          .leaf = wiring.group,
          .spines = wiring.spines,
          .alpha = 3,
          .alpha_hop = 0.5,
          .bandwidth = kByte};
}

std::vector<std::vector<JudgedMessage>> messages_of(const Schedule& schedule, long block) {
  std::vector<std::vector<JudgedMessage>> rounds;
  for (const auto& round : list_of(schedule)) {
    auto& messages = rounds.emplace_back();
    for (const Transfer& t : round) {
      if (t.from.front() == t.to.front()) continue;
      messages.push_back({t.from.front(), t.to.front(), block * t.what.list.size()});
    }
  }
  return rounds;
}
// A gathering of all blocks: M is their sum.
CollectiveSpec goal_of_all(const Schedule& schedule) {
  return {.collective = Collective::all_gather, .ranks = schedule.ranks, .blocks = schedule.blocks};
}

void expect_agreement(const Schedule& schedule, const Wiring& wiring, const std::string& what) {
  const auto flow = simulate_flow(schedule, goal_of_all(schedule), fabric_of(wiring),
                                  std::uint64_t{kByte} * static_cast<unsigned>(schedule.blocks),
                                  {.sync = Sync::rounds});
  ASSERT_TRUE(flow.ok()) << what << ": " << flow.status().text();
  const double judged = simgrid_seconds(network_of(wiring), messages_of(schedule, kByte));
  EXPECT_GT(judged, 0) << what;
  EXPECT_NEAR(flow->seconds, judged, 1e-6 * judged) << what;
}

class SimGrid : public testing::TestWithParam<Wiring> {
 protected:
  void SetUp() override {
    if (const auto why = simgrid_is_missing()) GTEST_SKIP() << *why;
  }
};

std::string text_of(const Wiring& wiring) {
  std::string out(name_of(wiring.kind));
  for (const int size : wiring.dims) out += "_" + std::to_string(size);
  return out;
}

TEST_P(SimGrid, AgreesOnSchedulesOfTheCatalogue) {
  int judged = 0;
  for (const Collective collective :
       {Collective::all_reduce, Collective::all_gather, Collective::all_to_all,
        Collective::reduce_scatter, Collective::broadcast}) {
    for (const Algorithm& entry : catalogue()) {
      const Params params = entry.only_taken({.ranks = ranks_of(GetParam()), .segments = 2});
      if (entry.collective != collective || entry.refusal(params)) continue;
      const Schedule schedule = entry.make(params);
      bool wires_only = true;
      for (const auto& round : list_of(schedule)) {
        for (const Transfer& t : round) wires_only &= t.from.size() == 1 && t.to.size() == 1;
      }
      if (!wires_only) continue;
      expect_agreement(schedule, GetParam(),
                       std::string(name_of(collective)) + " " + std::string(entry.name) + " on " +
                           text_of(GetParam()));
      ++judged;
    }
  }
  EXPECT_GT(judged, 20);
}

// Rounds of messages of all sizes between random ranks, drawn from `seed`.
Schedule random_rounds(int n, std::uint64_t seed) {
  const auto below = [&seed](int bound) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return static_cast<int>((seed >> 33) % static_cast<unsigned>(bound));
  };
  constexpr int kBlocks = 16;
  TransferList rounds(2);
  for (auto& round : rounds) {
    for (int i = 1 + below(5 * n); i > 0; --i) {
      const Rank from = below(n), to = (from + 1 + below(n - 1)) % n;
      round.push_back(transfer(from, to, {Run{0, 1 + below(kBlocks), 1}}, copy));
    }
  }
  return listed(n, kBlocks, std::move(rounds));
}

TEST_P(SimGrid, AgreesOnRandomRounds) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    expect_agreement(random_rounds(ranks_of(GetParam()), seed), GetParam(),
                     "seed " + std::to_string(seed) + " on " + text_of(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, SimGrid, testing::ValuesIn(kNetworks),
                         [](const auto& drawn) { return text_of(drawn.param); });

}  // namespace
}  // namespace rankine
