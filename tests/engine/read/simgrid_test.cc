// Flows and packets, compared with SimGrid, which shares links and keeps time by independent code.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/network/wiring.h"
#include "engine/read/flow.h"
#include "tests/engine/read/listed.h"
#include "tests/engine/read/simgrid_judge.h"

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

// Blocks of four bytes; a link passes one byte per second, and packets have up to `mtu` bytes.
void expect_packets_to_agree(const Schedule& schedule, const Wiring& wiring, int mtu,
                             const std::string& what) {
  constexpr int kBlock = 4;
  Fabric fabric = fabric_of(wiring);
  fabric.link.beta = 1;
  fabric.mtu = mtu;
  JudgedNetwork network = network_of(wiring);
  network.bandwidth = 1;
  const auto packets = simulate_packets(
      schedule, goal_of_all(schedule), fabric,
      std::uint64_t{kBlock} * static_cast<unsigned>(schedule.blocks), {.sync = Sync::rounds});
  ASSERT_TRUE(packets.ok()) << what << ": " << packets.status().text();
  const double judged = simgrid_packet_seconds(network, messages_of(schedule, kBlock), 2L * mtu);
  EXPECT_GT(judged, 0) << what;
  EXPECT_NEAR(packets->seconds, judged, 1e-6 * judged) << what << ", packets of " << mtu;
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

// The paper's algorithms on small tori.
const Wiring kSmallTori[] = {
    {.kind = WiringKind::torus, .dims = {8}},    {.kind = WiringKind::torus, .dims = {9}},
    {.kind = WiringKind::torus, .dims = {4, 4}}, {.kind = WiringKind::torus, .dims = {3, 5}},
    {.kind = WiringKind::mesh, .dims = {3, 4}},
};
class SimGridPackets : public SimGrid {};

TEST_P(SimGridPackets, AgreeOnAllReduces) {
  for (const char* name : {"bucket", "torus_doubling", "torus_doubling_latency", "swing",
                           "swing_latency", "bruck_ternary", "bruck_ternary_latency", "trivance",
                           "trivance_powers", "trivance_latency"}) {
    const Algorithm* entry = find_algorithm(Collective::all_reduce, name);
    ASSERT_NE(entry, nullptr) << name;
    const Params params =
        entry->only_taken({.ranks = ranks_of(GetParam()), .dims = GetParam().dims});
    for (const int mtu : {3, 64}) {
      expect_packets_to_agree(entry->make(params), GetParam(), mtu,
                              name + (" on " + text_of(GetParam())));
    }
  }
}

TEST_P(SimGridPackets, AgreeOnRandomRounds) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    expect_packets_to_agree(random_rounds(ranks_of(GetParam()), seed), GetParam(), 7,
                            "seed " + std::to_string(seed) + " on " + text_of(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(SmallTori, SimGridPackets, testing::ValuesIn(kSmallTori),
                         [](const auto& drawn) { return text_of(drawn.param); });

}  // namespace
}  // namespace rankine
