// The simulator where messages share links: Eq. (1) of Trivance as closed forms, exactly.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/torus.h"
#include "engine/network/predict.h"
#include "engine/network/simulate.h"

namespace rankine {
namespace {

using Dims = std::vector<int>;

constexpr std::int64_t kM = 1'000'003;  // odd: its half is no whole byte
constexpr Sync kBoth[] = {Sync::dataflow, Sync::rounds};

// Plain numbers, whose ticks fit 64 bits, and numbers that need 128.
std::vector<Fabric> priced_like(const Wiring& wiring, int ports, int group = 0) {
  Fabric plain;
  plain.name = std::string(name_of(wiring.kind));
  plain.ports = ports;
  plain.link = {Rational(15, 10'000'000), Rational(1, 100'000'000'000)};
  plain.between = {Rational(5, 1'000'000), Rational(1, 25'000'000'000)};
  plain.group = group;
  plain.wiring = wiring;
  plain.alpha_hop = Rational(2, 10'000'000);
  Fabric wide = plain;
  wide.link = {Rational(7, 3'000'000), Rational(1, 11'000'000'006)};
  wide.between = {Rational(23, 6'000'000), Rational(1, 5'500'000'003)};
  wide.alpha_hop = Rational(13, 9'000'011);
  return {plain, wide};
}

Rational exact(const Simulation& result) { return {result.end, result.ticks_per_second}; }

Simulation simulated(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
                     SimulateOptions options = {}) {
  auto result = simulate(schedule, goal, fabric, kM, options);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? std::move(*result) : Simulation{};
}

Simulation simulated(const char* algorithm, const Params& params, const Fabric& fabric, Sync sync) {
  const Algorithm& line = *find_algorithm(Collective::all_reduce, algorithm);
  const Schedule schedule = line.make(params);
  return simulated(schedule, goal_of(line, params, schedule), fabric, {sync, true});
}

Rational latency(const Fabric& fabric, int hops) {
  return fabric.link.alpha + Rational(hops) * fabric.alpha_hop;
}

// alpha + hops * hop + beta * M * congestion
Rational round_of(const Fabric& fabric, int hops, Rational congestion) {
  return latency(fabric, hops) + fabric.link.beta * Rational(kM) * congestion;
}

// Everybody sends M to the rank that is `shift` away, at once.
Schedule shifts(const Dims& dims, const Dims& shift) {
  const Torus torus(dims);
  return {torus.ranks(), 1, 1, [torus, shift](int, Send send) {
            for (Rank r : ranks(torus.ranks())) {
              Rank to = r;
              for (int d = 0; d < torus.dimensions(); ++d) {
                const int at = torus.coordinate(r, d);
                const int there = (at + shift[static_cast<std::size_t>(d)]) % torus.size(d);
                to += (there - at) * torus.stride(d);
              }
              send.exactly({r, to, block(0), block(0), copy});
            }
          }};
}

Goal one_block(int ranks) { return {Collective::all_reduce, ranks, 1}; }

TEST(SharedLinks, AShiftOnARingCostsItsDistance) {
  for (const int n : {3, 4, 5, 8, 9, 27}) {
    for (const Fabric& fabric : priced_like({.kind = WiringKind::ring}, 1)) {
      for (int d = 1; d < n; ++d) {
        const int distance = std::min(d, n - d);
        // Antipodes: half of every message each way.
        const Rational congestion = 2 * d == n ? Rational(distance, 2) : Rational(distance);
        for (const Sync sync : kBoth) {
          const auto result = simulated(shifts({n}, {d}), one_block(n), fabric, {.sync = sync});
          EXPECT_TRUE(exact(result) == round_of(fabric, distance, congestion)) << n << " " << d;
          ASSERT_EQ(result.traffic.size(), 1U);
          EXPECT_EQ(result.traffic[0].hops, distance);
          EXPECT_EQ(result.traffic[0].congestion(), congestion.to_double());
        }
      }
    }
  }
}

// Every dimension on its own: all ranks cross it alike, so links of dimension d carry what a ring
// of its size would, and the busiest dimension sets the pace.
TEST(SharedLinks, AShiftOnATorusCostsItsLongestDimension) {
  for (const Dims& dims : std::vector<Dims>{{2, 3}, {3, 5}, {4, 4}, {3, 3, 3}, {2, 2, 5}, {6, 4}}) {
    int n = 1;
    for (const int size : dims) n *= size;
    for (const Fabric& fabric : priced_like({.kind = WiringKind::torus, .dims = dims}, 1)) {
      for (int s = 1; s < n; ++s) {
        Dims shift(dims.size());
        int rest = s, hops = 0;
        Rational congestion = 0;
        for (std::size_t d = dims.size(); d-- > 0; rest /= dims[d]) {
          shift[d] = rest % dims[d];
          const int distance = std::min(shift[d], dims[d] - shift[d]);
          hops += distance;
          const Rational load =
              2 * shift[d] == dims[d] ? Rational(distance, 2) : Rational(distance);
          if (congestion < load) congestion = load;
        }
        const auto result = simulated(shifts(dims, shift), one_block(n), fabric);
        EXPECT_TRUE(exact(result) == round_of(fabric, hops, congestion))
            << dims_text(dims) << " by " << dims_text(shift);
      }
    }
  }
}

// Trivance, section 2.4 and figure 1: c_k = 2^k. In the last round partners are antipodes, where
// both ways are minimal: half of 2^k.
TEST(SharedLinks, RecursiveDoublingOnARing) {
  for (const int n : {4, 8, 16, 64}) {
    for (const Fabric& fabric : priced_like({.kind = WiringKind::ring}, 2)) {
      Rational expected = 0;
      for (int distance = 1; distance < n; distance *= 2) {
        const bool last = 2 * distance == n;
        expected = expected + round_of(fabric, distance, Rational(distance, last ? 2 : 1));
      }
      for (const Sync sync : kBoth) {
        const auto result = simulated("recursive_doubling", {.ranks = n}, fabric, sync);
        EXPECT_TRUE(exact(result) == expected) << n;
      }
    }
  }
}

// A pair goes all the way round together, so every link carries n / 2 messages in every round.
TEST(SharedLinks, RecursiveDoublingOneWayRoundARing) {
  for (const int n : {4, 8, 16}) {
    for (const Fabric& fabric :
         priced_like({.kind = WiringKind::ring, .routing = Routing::one_way}, 2)) {
      Rational expected = 0;
      for (int distance = 1; distance < n; distance *= 2) {
        expected = expected + round_of(fabric, n - distance, Rational(n, 2));
      }
      const auto result = simulated("recursive_doubling", {.ranks = n}, fabric, Sync::rounds);
      EXPECT_TRUE(exact(result) == expected) << n;
    }
  }
}

// c_k = 3^k both ways round: the paper's point (section 4.1).
TEST(SharedLinks, TrivanceOnARing) {
  for (const int n : {3, 9, 27}) {
    for (const Fabric& fabric : priced_like({.kind = WiringKind::ring}, 2)) {
      Rational expected = 0;
      for (int distance = 1; distance < n; distance *= 3) {
        expected = expected + round_of(fabric, distance, Rational(distance));
      }
      for (const Sync sync : kBoth) {
        const auto result = simulated("trivance_latency", {.ranks = n}, fabric, sync);
        EXPECT_TRUE(exact(result) == expected) << n;
      }
    }
  }
}

// Neighbours share nothing: as in full wiring, a hop included.
TEST(SharedLinks, NeighboursPayOneHop) {
  for (const int n : {3, 4, 5, 9}) {
    for (const Fabric& fabric : priced_like({.kind = WiringKind::ring}, 1)) {
      Fabric full = fabric;
      full.wiring = {};
      for (const Sync sync : kBoth) {
        const auto shared = simulated("ring", {.ranks = n}, fabric, sync);
        const auto alone = simulated("ring", {.ranks = n}, full, sync);
        const Rational expected = Rational(2 * (n - 1)) * latency(fabric, 1) +
                                  fabric.link.beta * Rational(kM * 2 * (n - 1), n);
        EXPECT_TRUE(exact(shared) == expected);
        EXPECT_TRUE(exact(alone) == expected);
        EXPECT_EQ(shared.traffic.size(), static_cast<std::size_t>(2 * (n - 1)));
        EXPECT_TRUE(alone.traffic.empty());
      }
    }
  }
}

// Everybody to the same place in the next group: a group's messages share its one link up.
TEST(SharedLinks, GroupsShareTheirUplink) {
  for (const int group : {1, 2, 3, 4}) {
    const int n = 3 * group;
    for (const Fabric& fabric : priced_like({.kind = WiringKind::two_level}, 1, group)) {
      const auto far = simulated(shifts({n}, {group}), one_block(n), fabric);
      EXPECT_TRUE(exact(far) == fabric.between.alpha + Rational(2) * fabric.alpha_hop +
                                    fabric.between.beta * Rational(kM * group));
      EXPECT_EQ(far.traffic[0].hops, 2);
      // One rank's worth leaves each group; near messages have links of their own.
      const auto next = simulated(shifts({n}, {1}), one_block(n), fabric, {.sync = Sync::rounds});
      EXPECT_TRUE(exact(next) == fabric.between.alpha + Rational(2) * fabric.alpha_hop +
                                     fabric.between.beta * Rational(kM));
      EXPECT_EQ(next.traffic[0].congestion(), 1);
    }
  }
}

// Rank 0 hears from 1, then passes on in round 1; 2 sends to 4 over the same link 3-4 in round 1
// and starts long before. The round's load holds for both, whoever starts when; what other rounds
// send over the link does not count.
TEST(SharedLinks, LoadsAreThoseOfTheRoundInTheSchedule) {
  constexpr int kRanks = 9;
  const Schedule schedule{kRanks, 2, 3, [](int k, Send send) {
                            if (k == 0) send(1, 3, block(0), copy);  // 1-2 2-3
                            if (k == 1) {
                              send(3, 4, block(0), copy);  //         3-4, after round 0
                              send(2, 4, block(1), copy);  //     2-3 3-4, at once
                            }
                            if (k == 2) send(3, 4, block(0), copy);  // alone
                          }};
  const Goal goal{Collective::all_reduce, kRanks, 2};
  for (const Fabric& fabric : priced_like({.kind = WiringKind::ring}, 2)) {
    const auto at = [&](Sync sync) {
      return simulated(schedule, goal, fabric, {.sync = sync, .ideal_blocks = true});
    };
    const Rational half(1, 2);
    const Rational first = round_of(fabric, 2, half);
    const Rational passed_on = round_of(fabric, 1, Rational(1)), alone = round_of(fabric, 1, half);
    const Rational slower = round_of(fabric, 2, Rational(1));
    EXPECT_TRUE(exact(at(Sync::dataflow)) == first + passed_on);
    EXPECT_TRUE(exact(at(Sync::rounds)) == first + slower + alone);
    EXPECT_EQ(at(Sync::rounds).traffic[1].congestion(), 2);
    EXPECT_EQ(at(Sync::rounds).traffic[2].congestion(), 1);
  }
}

TEST(SharedLinks, WhatARankSendsItselfCountsNowhere) {
  const Schedule schedule{4, 2, 1, [](int, Send send) {
                            send.exactly({0, 0, block(0), block(1), copy});
                            send(0, 1, block(0), copy);
                          }};
  for (const Fabric& fabric : priced_like({.kind = WiringKind::ring}, 1)) {
    const auto result =
        simulated(schedule, {Collective::all_reduce, 4, 2}, fabric, {.ideal_blocks = true});
    EXPECT_TRUE(exact(result) == round_of(fabric, 1, Rational(1, 2)));
    EXPECT_EQ(result.traffic[0].hops, 1);
  }
}

TEST(SharedLinks, RefuseSwitchesAndTori) {
  const Algorithm& line = *find_algorithm(Collective::broadcast, "switch");
  const Schedule schedule = line.make({.ranks = 4});
  const Goal goal = goal_of(line, {.ranks = 4}, schedule);
  Fabric fabric = find_regime("torus")->fabric;
  EXPECT_NE(simulate(schedule, goal, fabric, kM).status().text().find("has no multicast"),
            std::string::npos);
  fabric.multicast = true;
  EXPECT_NE(simulate(schedule, goal, fabric, kM).status().text().find("needs full wiring"),
            std::string::npos);
  fabric.multicast = false;
  fabric.wiring.dims = {3, 2};
  EXPECT_EQ(simulate(schedule, goal, fabric, kM).status().text(),
            "dims is 3x2; the sizes must multiply to the number of ranks, 4");
}

// A chain whose neighbours are neighbours: P* of the full network whose alpha has the hop in it.
TEST(SharedLinks, BestSegmentsPayHopsAndLoads) {
  const Algorithm& line = *find_algorithm(Collective::broadcast, "chain");
  for (const Fabric& fabric : priced_like({.kind = WiringKind::ring}, 1)) {
    Fabric full = fabric;
    full.wiring = {};
    full.link.alpha = full.link.alpha + fabric.alpha_hop;
    full.alpha_hop = 0;
    const auto there = pipeline_optimum(line, {.ranks = 8}, fabric, kM);
    const auto here = pipeline_optimum(line, {.ranks = 8}, full, kM);
    ASSERT_TRUE(there.ok() && here.ok());
    EXPECT_EQ(*there, *here);
    Fabric far = fabric;
    far.alpha_hop = far.alpha_hop * Rational(100);
    EXPECT_LT(*pipeline_optimum(line, {.ranks = 8}, far, kM), *here);
  }
}

// 4096 ranks, 25 million links crossed: a matter of seconds at most, and of little memory.
TEST(SharedLinks, ManyRanks) {
  const Params params{.ranks = 4096};
  const Algorithm& line = *find_algorithm(Collective::all_reduce, "halving_doubling");
  const Schedule schedule = line.make(params);
  Fabric fabric = find_regime("torus")->fabric;
  fabric.wiring.dims = {16, 16, 16};
  const auto result = simulated(schedule, goal_of(line, params, schedule), fabric);
  ASSERT_EQ(result.traffic.size(), 24U);
  for (std::size_t k = 0; k < 12; ++k) {
    EXPECT_EQ(result.traffic[k].hops, result.traffic[23 - k].hops);
    EXPECT_EQ(result.traffic[k].hops, 1 << (k % 4)) << k;
  }
}

}  // namespace
}  // namespace rankine
