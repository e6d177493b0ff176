// Tests of max-min shares, of flows, and of closed forms on meshes, hypercubes and fat trees.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/network/simulate.h"
#include "engine/read/flow.h"
#include "tests/engine/read/listed.h"

// Max-min shares: cases worked out by hand, and the defining property on random traffic.

namespace rankine {
namespace {

using Links = std::vector<int>;

std::vector<int> sorted(std::span<const int> flows) {
  std::vector<int> out(flows.begin(), flows.end());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(MaxMin, OneLinkIsSharedEqually) {
  MaxMin sharing(1);
  const int a = sharing.start(1, Links{0});
  EXPECT_EQ(sorted(sharing.settle()), (std::vector<int>{a}));
  EXPECT_EQ(sharing.rate(a), 1);
  const int b = sharing.start(1, Links{0}), c = sharing.start(1, Links{0});
  EXPECT_EQ(sorted(sharing.settle()), (std::vector<int>{a, b, c}));
  for (const int f : {a, b, c}) EXPECT_DOUBLE_EQ(sharing.rate(f), 1.0 / 3);
  sharing.stop(b);
  EXPECT_EQ(sorted(sharing.settle()), (std::vector<int>{a, c}));
  EXPECT_DOUBLE_EQ(sharing.rate(a), 0.5);
}

TEST(MaxMin, WeightsAreShares) {
  MaxMin sharing(1);
  const int half = sharing.start(1, Links{0}), whole = sharing.start(2, Links{0});
  sharing.settle();
  EXPECT_DOUBLE_EQ(sharing.rate(half), 1.0 / 3);
  EXPECT_DOUBLE_EQ(sharing.rate(whole), 2.0 / 3);
}

// One flow along a line of links, and one flow on each link: every flow gets a half.
TEST(MaxMin, ParkingLot) {
  MaxMin sharing(3);
  const int along = sharing.start(1, Links{0, 1, 2});
  Links each;
  for (int l = 0; l < 3; ++l) each.push_back(sharing.start(1, Links{l}));
  sharing.settle();
  EXPECT_DOUBLE_EQ(sharing.rate(along), 0.5);
  for (const int f : each) EXPECT_DOUBLE_EQ(sharing.rate(f), 0.5);
}

// Link 0 has four flows, and link 1 has two. Link 0 limits one of these, so the other one could
// take the remaining 3/4; link 2 limits it to a half until its third flow stops.
TEST(MaxMin, WhatOneLinkHoldsBackAnotherGives) {
  MaxMin sharing(3);
  const int both = sharing.start(1, Links{0, 1});
  Links first;
  for (int i = 0; i < 3; ++i) first.push_back(sharing.start(1, Links{0}));
  const int second = sharing.start(1, Links{1, 2});
  const int third = sharing.start(1, Links{2});
  sharing.settle();
  EXPECT_DOUBLE_EQ(sharing.rate(both), 0.25);
  for (const int f : first) EXPECT_DOUBLE_EQ(sharing.rate(f), 0.25);
  EXPECT_DOUBLE_EQ(sharing.rate(second), 0.5);
  EXPECT_DOUBLE_EQ(sharing.rate(third), 0.5);
  sharing.stop(third);
  EXPECT_EQ(sorted(sharing.settle()), (std::vector<int>{second}));
  EXPECT_DOUBLE_EQ(sharing.rate(second), 0.75);
}

// Shares of several sizes: a third on the busiest link, the remainder on its neighbour, and all of
// a link for a lone flow.
TEST(MaxMin, FillsLinkByLink) {
  MaxMin sharing(4);
  const int f1 = sharing.start(1, Links{0, 1}), f2 = sharing.start(1, Links{1});
  const int f3 = sharing.start(1, Links{1, 2}), f4 = sharing.start(1, Links{2});
  const int f5 = sharing.start(1, Links{3});
  sharing.settle();
  for (const int f : {f1, f2, f3}) EXPECT_DOUBLE_EQ(sharing.rate(f), 1.0 / 3);
  EXPECT_DOUBLE_EQ(sharing.rate(f4), 2.0 / 3);
  EXPECT_DOUBLE_EQ(sharing.rate(f5), 1);
}

TEST(MaxMin, LooksOnlyAtWhatAChangeAffects) {
  MaxMin sharing(4);
  const int a = sharing.start(1, Links{0, 1}), b = sharing.start(1, Links{2, 3});
  sharing.settle();
  EXPECT_TRUE(sharing.settle().empty());
  const int c = sharing.start(1, Links{3});
  EXPECT_EQ(sorted(sharing.settle()), (std::vector<int>{b, c}));
  EXPECT_EQ(sharing.rate(a), 1);
}

struct Crossing {
  int weight = 1;
  Links links{};
};

// Every link passes at most 1; every flow has a full link on which no flow has a higher level.
void expect_fair(const MaxMin& sharing, const std::map<int, Crossing>& flows, int links) {
  constexpr double kRounding = 1e-9;
  std::vector<double> load(static_cast<std::size_t>(links), 0), highest(load);
  const auto at = [](auto& values, int l) -> auto& { return values[static_cast<std::size_t>(l)]; };
  for (const auto& [f, crossing] : flows) {
    RC_ASSERT(sharing.rate(f) > 0);
    for (const int l : crossing.links) {
      at(load, l) += sharing.rate(f);
      at(highest, l) = std::max(at(highest, l), sharing.rate(f) / crossing.weight);
    }
  }
  for (const double passed : load) RC_ASSERT(passed <= 1 + kRounding);
  for (const auto& [f, crossing] : flows) {
    const double level = sharing.rate(f) / crossing.weight;
    const bool has_bottleneck =
        std::any_of(crossing.links.begin(), crossing.links.end(), [&](int l) {
          return at(load, l) >= 1 - kRounding && at(highest, l) <= level * (1 + kRounding);
        });
    RC_ASSERT(has_bottleneck);
  }
}

TEST(MaxMin, EveryFlowHasABottleneckWhateverComesAndGoes) {
  const bool holds = rc::check([] {
    const int links = *rc::gen::inRange(1, 12);
    MaxMin sharing(links);
    std::map<int, Crossing> flows;
    std::map<int, double> rates;
    const int turns = *rc::gen::inRange(1, 30);
    for (int turn = 0; turn < turns; ++turn) {
      for (int n = *rc::gen::inRange(0, 6); n > 0; --n) {
        const int drawn = *rc::gen::inRange(1, 1 << links);
        Crossing crossing{*rc::gen::inRange(1, 3), {}};
        for (int l = 0; l < links; ++l) {
          if ((drawn >> l & 1) != 0) crossing.links.push_back(l);
        }
        flows[sharing.start(crossing.weight, crossing.links)] = crossing;
      }
      for (int n = *rc::gen::inRange(0, 5); n > 0 && !flows.empty(); --n) {
        const auto chosen =
            std::next(flows.begin(), *rc::gen::inRange(0, static_cast<int>(flows.size())));
        sharing.stop(chosen->first);
        rates.erase(chosen->first);
        flows.erase(chosen);
      }
      const auto settled = sharing.settle();
      const std::set<int> changed(settled.begin(), settled.end());
      RC_ASSERT(changed.size() == settled.size());
      // settle() returns the flows with a changed rate; no other rate changes.
      for (const auto& [f, crossing] : flows) {
        const bool same = rates.contains(f) && rates[f] == sharing.rate(f);
        RC_ASSERT(changed.contains(f) || same);
        rates[f] = sharing.rate(f);
      }
      expect_fair(sharing, flows, links);
    }
  });
  EXPECT_TRUE(holds);
}

}  // namespace

// Flows, compared with the exact simulator if links are not shared, with cases worked out by hand
// if they are, and with Eq. (1).

namespace {

constexpr Sync kBoth[] = {Sync::dataflow, Sync::rounds};

// Alpha is 1 s, a block of one byte takes 1 s on a private link, and ports are unlimited.
Fabric seconds_fabric(const Wiring& wiring, Rational alpha = 1, Rational alpha_hop = 0) {
  Fabric fabric;
  fabric.ports = 64;
  fabric.link = {alpha, 1};
  fabric.wiring = wiring;
  fabric.group = wiring.group;
  if (wiring.group > 0) fabric.between = fabric.link;
  fabric.alpha_hop = alpha_hop;
  return fabric;
}

const Wiring kRing{.kind = WiringKind::ring};
Wiring torus(std::vector<int> dims) { return {.kind = WiringKind::torus, .dims = std::move(dims)}; }

CollectiveSpec any_goal(const Schedule& schedule) {
  return {.collective = Collective::all_reduce, .ranks = schedule.ranks, .blocks = schedule.blocks};
}

IndexList consecutive(int first, int count) { return Run{first, count, 1}; }

// Blocks first .. first + count - 1, a byte each, from one rank to another.
Transfer message(Rank from, Rank to, int first, int count = 1) {
  return transfer(from, to, {consecutive(first, count)}, copy);
}

FlowTimes flown(const Schedule& schedule, const Fabric& fabric,
                const SimulateOptions& options = {.sync = Sync::rounds}) {
  auto result = simulate_flow(schedule, any_goal(schedule), fabric,
                              static_cast<std::uint64_t>(schedule.blocks), options);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? std::move(*result) : FlowTimes{};
}

Simulation by_eq_1(const Schedule& schedule, const Fabric& fabric,
                   const SimulateOptions& options = {.sync = Sync::rounds}) {
  auto result = simulate(schedule, any_goal(schedule), fabric,
                         static_cast<std::uint64_t>(schedule.blocks), options);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? std::move(*result) : Simulation{};
}

void expect_near(double seconds, double expected, const std::string& what) {
  EXPECT_NEAR(seconds, expected, 1e-9 * expected) << what;
}

// --- Private links

void expect_simulated_times(const Algorithm& entry, const Params& params, const Fabric& fabric,
                            std::uint64_t bytes, const SimulateOptions& options) {
  const std::string what = std::string(name_of(entry.collective)) + " " + std::string(entry.name) +
                           ", N = " + std::to_string(params.ranks) + ", " + fabric.name + ", " +
                           std::string(name_of(options.sync));
  const Schedule schedule = entry.make(params);
  const CollectiveSpec goal = goal_of(entry, params, schedule);
  const auto exact = simulate(schedule, goal, fabric, bytes, options);
  const auto flow = simulate_flow(schedule, goal, fabric, bytes, options);
  ASSERT_EQ(exact.ok(), flow.ok()) << what << ": " << flow.status().text();
  if (!exact.ok()) {
    EXPECT_EQ(flow.status().text(), exact.status().text()) << what;
    return;
  }
  expect_near(flow->seconds, exact->seconds, what);
  EXPECT_EQ(flow->messages, exact->messages) << what;
  ASSERT_EQ(flow->round_end.size(), exact->round_end.size()) << what;
  for (std::size_t k = 0; k < flow->round_end.size(); ++k) {
    if (flow->round_end[k] == 0) continue;  // no messages
    expect_near(flow->round_end[k], nearest_double(exact->round_end[k], exact->ticks_per_second),
                what + ", round " + std::to_string(k));
  }
}

// Too few ports and too many, groups, a switch, gamma, odd links and places, other places of ranks,
// and messages that wait for data only.
TEST(FullWiring, TakesAsLongAsTheSimulatorSays) {
  Fabric near{.name = "near", .link = {Rational(7, 3'000'000), Rational(1, 11'000'000'000)}};
  near.alpha_hop = Rational(1, 9'000'000);
  Fabric two_ports = near, groups = near, able = near, free_latency = near, adds = near,
         unlike = near, moved;
  two_ports.name = "two_ports";
  two_ports.ports = 2;
  groups.name = "groups";
  groups.ports = 3;
  groups.group = 2;
  groups.between = {Rational(1, 70'000), Rational(1, 3'000'000'000)};
  able.name = "able";
  able.multicast = able.alu = true;
  able.alpha_switch = Rational(1, 5'000'000);
  adds.name = "adds";
  adds.multicast = adds.alu = true;
  adds.gamma = Rational(1, 5'000'000'000);
  unlike.name = "unlike";
  unlike.size = 12;
  unlike.odd = {{.at = 1, .beta = Rational(1, 2'000'000'000)},
                {.from = 0, .to = 2, .alpha = Rational(1, 100'000)}};
  moved = groups;
  moved.name = "moved";
  moved.size = 12;
  free_latency.name = "free_latency";
  free_latency.link.alpha = 0;
  free_latency.alpha_hop = 0;
  int compared = 0;
  for (const Algorithm& entry : catalogue()) {
    for (const int n : {1, 2, 3, 5, 8, 12}) {
      const Params params =
          entry.only_taken({.ranks = n, .root = n / 3, .peer = n - 1, .segments = 3});
      if (entry.refusal(params)) continue;
      moved.places.clear();
      for (int r = 0; r < n; ++r) moved.places.push_back(11 - r * 5 % 12);
      for (const Sync sync : kBoth) {
        for (const Fabric& fabric :
             {near, two_ports, groups, able, free_latency, adds, unlike, moved}) {
          expect_simulated_times(entry, params, fabric, 1'000'003, {.sync = sync});
          ++compared;
        }
        expect_simulated_times(entry, params, near, 1000,
                               {.sync = sync, .ideal_blocks = true, .unlimited_ports = true});
        expect_simulated_times(entry, params, near, 0, {.sync = sync});
      }
    }
  }
  EXPECT_GT(compared, 1000);
}

// N^3 cells, kept in a hash table.
TEST(FullWiring, LargeAllToAll) {
  const Algorithm* entry = find_algorithm(Collective::all_to_all, "pairwise");
  ASSERT_NE(entry, nullptr);
  Fabric fabric{.ports = 2, .link = {Rational(1, 1'000'000), Rational(1, 1'000'000'000)}};
  for (const Sync sync : kBoth) {
    expect_simulated_times(*entry, {.ranks = 110}, fabric, 1'000'003, {.sync = sync});
  }
}

// --- Shared links, by hand

// Both cross the link from 1 to 2. They share it until the shorter one has ended.
TEST(Ring, TheLongerGoesOnAlone) {
  const Schedule schedule = listed(8, 4, {{message(0, 2, 0, 1), message(1, 3, 1, 3)}});
  const auto times = flown(schedule, seconds_fabric(kRing));
  EXPECT_DOUBLE_EQ(times.seconds, 1 + 2 + 2);
  EXPECT_EQ(times.messages, 2U);
}

// The short message starts at 1 + 1; the one of 4 hops starts at 1 + 4, after 3 of the other have
// passed.
TEST(Ring, HopsDelayTheStart) {
  const Schedule schedule = listed(16, 10, {{message(3, 4, 0, 5), message(0, 4, 5, 5)}});
  const auto times = flown(schedule, seconds_fabric(kRing, 1, 1));
  // 3 pass alone from 2 to 5; the remaining 2 share with 2 of the other 5 until 9; 3 pass alone
  // until 12.
  EXPECT_DOUBLE_EQ(times.seconds, 12);
}

TEST(Ring, WhereBothWaysAreAsLongHalfGoesEach) {
  const Schedule alone = listed(4, 4, {{message(0, 2, 0, 4)}});
  EXPECT_DOUBLE_EQ(flown(alone, seconds_fabric(kRing)).seconds, 1 + 2);
  // With a message of 4 on one of the ways: half a message gets half a share, so 2 pass at 1/3 and
  // 4 at 2/3. The other half ends at 2, which has no effect.
  const Schedule met = listed(4, 8, {{message(0, 2, 0, 4), message(0, 1, 4, 4)}});
  EXPECT_DOUBLE_EQ(flown(met, seconds_fabric(kRing)).seconds, 1 + 6);
  // A message that waits for the half message starts after 1 + 6.
  const Schedule followed =
      listed(4, 8, {{message(0, 2, 0, 4), message(0, 1, 4, 4)}, {message(2, 3, 0, 4)}});
  EXPECT_DOUBLE_EQ(flown(followed, seconds_fabric(kRing), {.sync = Sync::dataflow}).seconds,
                   7 + 1 + 4);
  // One way only: the whole message goes up.
  const Wiring one_way{.kind = WiringKind::ring, .routing = Routing::one_way};
  EXPECT_DOUBLE_EQ(flown(alone, seconds_fabric(one_way)).seconds, 1 + 4);
}

// A ring of six with one link that passes a third: two messages that cross this link, and one that
// shares another link with the first.
TEST(OddLinks, HoldUpWhoCrossesThem) {
  Fabric fabric = seconds_fabric(kRing);
  fabric.odd = {{.from = 1, .to = 2, .beta = Rational(3)}};
  // Alone: 1 s and 3 s a byte; next to the odd wire, 1 s as usual.
  EXPECT_DOUBLE_EQ(flown(listed(6, 2, {{message(0, 2, 0, 2)}}), fabric).seconds, 1 + 6);
  EXPECT_DOUBLE_EQ(flown(listed(6, 2, {{message(2, 4, 0, 2)}}), fabric).seconds, 1 + 2);
  EXPECT_DOUBLE_EQ(flown(listed(6, 2, {{message(2, 1, 0, 2)}}), fabric).seconds, 1 + 2);
  // Both get a sixth of the odd link's rate, and the third one gets the remaining 5/6 of the link
  // between 0 and 1.
  const Schedule three =
      listed(6, 10, {{message(0, 2, 0, 5), message(1, 3, 0, 5), message(5, 1, 5, 5)}});
  EXPECT_NEAR(flown(three, fabric).seconds, 1 + 30, 1e-9);
  const Schedule of_first =
      listed(6, 10, {{message(0, 2, 0, 1), message(1, 3, 0, 1), message(5, 1, 0, 10)}});
  // The first two end at 1 + 6; by then 5 of the third one's 10 have passed.
  EXPECT_NEAR(flown(of_first, fabric).seconds, 1 + 6 + 5, 1e-9);
}

// A place that passes a quarter sends two messages. Each has a port, and leaves the rest of the
// links to other messages.
TEST(OddLinks, AtAPlaceAreThoseOfItsPorts) {
  Fabric fabric = seconds_fabric(kRing);
  fabric.odd = {{.at = 0, .beta = Rational(4)}};
  EXPECT_DOUBLE_EQ(flown(listed(6, 2, {{message(0, 1, 0, 2)}}), fabric).seconds, 1 + 8);
  EXPECT_DOUBLE_EQ(
      flown(listed(6, 2, {{message(0, 1, 0, 2), message(0, 5, 0, 2)}}), fabric).seconds, 1 + 8);
  // The message from 5 to 2 has three quarters of the link from 0 to 1.
  const FlowTimes beside =
      flown(listed(6, 6, {{message(0, 1, 0, 6), message(5, 2, 0, 6)}, {message(3, 4, 0)}}), fabric);
  EXPECT_NEAR(beside.round_end[0], 1 + 24, 1e-9);
  EXPECT_NEAR(flown(listed(6, 6, {{message(0, 1, 0, 2), message(5, 2, 0, 6)}}), fabric).seconds,
              1 + 8, 1e-9);
}

TEST(Places, AreWhereMessagesGo) {
  Fabric fabric = seconds_fabric(torus({3, 4}), 1, Rational(1, 2));
  fabric.size = 12;
  fabric.places = {0, 6};  // one row and two columns on
  EXPECT_DOUBLE_EQ(flown(listed(2, 2, {{message(0, 1, 0, 2)}}), fabric).seconds,
                   by_eq_1(listed(2, 2, {{message(0, 1, 0, 2)}}), fabric).seconds);
}

// The received data are added before the port is free and before the sum is sent on.
TEST(Gamma, IsPaidAtTheEndOfAFlow) {
  Fabric fabric = seconds_fabric(kRing);
  fabric.ports = 1;
  fabric.gamma = Rational(2);
  const auto sum = [](Rank from, Rank to) {
    return transfer(from, to, {consecutive(0, 1)}, reduce);
  };
  const Schedule chain = listed(4, 1, {{sum(3, 2)}, {sum(2, 1)}, {sum(1, 0)}});
  EXPECT_DOUBLE_EQ(flown(chain, fabric, {.sync = Sync::dataflow}).seconds, 3 * (1 + 1 + 2));
  EXPECT_DOUBLE_EQ(flown(chain, fabric).seconds, 3 * (1 + 1 + 2));
}

TEST(Ring, DirectionsShareNothing) {
  const Schedule schedule = listed(5, 4, {{message(0, 1, 0, 2), message(1, 0, 2, 2)}});
  EXPECT_DOUBLE_EQ(flown(schedule, seconds_fabric(kRing)).seconds, 1 + 2);
  const Schedule pair = listed(2, 4, {{message(0, 1, 0, 2), message(1, 0, 2, 2)}});
  EXPECT_DOUBLE_EQ(flown(pair, seconds_fabric(kRing)).seconds, 1 + 1);
}

// From (0, 0) to (2, 2) on a 4 x 4 torus, half the message goes up in both dimensions and half goes
// down in both. A second message meets the upper half from (2, 0) to (2, 1).
TEST(Torus, HalvesGoTheSameWayInAllDimensions) {
  const Schedule alone = listed(16, 4, {{message(0, 10, 0, 4)}});
  EXPECT_DOUBLE_EQ(flown(alone, seconds_fabric(torus({4, 4}))).seconds, 1 + 2);
  const Schedule met = listed(16, 8, {{message(0, 10, 0, 4), message(8, 9, 4, 4)}});
  EXPECT_DOUBLE_EQ(flown(met, seconds_fabric(torus({4, 4}))).seconds, 1 + 6);
  // Along the first dimension of 4 x 5, both ways; then one step up the second dimension, for both
  // halves.
  const Schedule joined = listed(20, 4, {{message(0, 11, 0, 4)}});
  EXPECT_DOUBLE_EQ(flown(joined, seconds_fabric(torus({4, 5}))).seconds, 1 + 4);
}

TEST(TwoLevel, AGroupHasOneLinkUpAndOneDown) {
  Fabric fabric = seconds_fabric({.kind = WiringKind::two_level});
  fabric.group = 2;
  fabric.between = {2, 3};
  // Two leave group 0 together, one arrives there, and one stays inside.
  const Schedule schedule =
      listed(6, 4, {{message(0, 2, 0), message(1, 4, 1), message(5, 0, 2), message(0, 1, 3)}});
  EXPECT_DOUBLE_EQ(flown(schedule, fabric).seconds, 2 + 6);
  const Schedule apart = listed(6, 3, {{message(0, 2, 0), message(5, 1, 1), message(4, 5, 2)}});
  EXPECT_DOUBLE_EQ(flown(apart, fabric).seconds, 2 + 3);
}

// Two leaves of two, two spines: messages reach an even destination over the first spine.
TEST(FatTree, FlowsShareTheLinksToTheirSpine) {
  const Fabric fabric = seconds_fabric({.kind = WiringKind::fat_tree, .group = 2, .spines = 2});
  // 0 -> 2 and 1 -> 4 go up to the first spine; 1 -> 3 goes up to the other one, alone.
  const Schedule meet = listed(6, 3, {{message(0, 2, 0), message(1, 4, 1), message(1, 3, 2)}});
  EXPECT_DOUBLE_EQ(flown(meet, fabric).seconds, 1 + 2);
  const Schedule apart = listed(6, 3, {{message(0, 2, 0), message(1, 3, 1), message(0, 1, 2)}});
  EXPECT_DOUBLE_EQ(flown(apart, fabric).seconds, 1 + 1);
}

// A mesh of 4 has no wrap-around wire: 3 -> 0 crosses the link of 1 -> 0.
TEST(Mesh, FlowsMeetThatPassEachOtherOnARing) {
  const Schedule schedule = listed(4, 4, {{message(3, 0, 0, 2), message(1, 0, 2, 2)}});
  EXPECT_DOUBLE_EQ(flown(schedule, seconds_fabric(kRing)).seconds, 1 + 2);
  const Wiring mesh{.kind = WiringKind::mesh, .dims = {4}};
  EXPECT_DOUBLE_EQ(flown(schedule, seconds_fabric(mesh)).seconds, 1 + 4);
}

// Messages of different rounds share links while both are in flight.
TEST(Dataflow, RoundsMeetOnLinks) {
  const Schedule schedule =
      listed(8, 6, {{message(0, 1, 0, 2), message(2, 3, 2, 4)}, {message(1, 3, 0, 2)}});
  const Fabric fabric = seconds_fabric(kRing);
  // The second message waits until 3, then alpha. At 4 the other has 1 of its 4 left, which takes
  // until 6 on the shared link; 1 of the second's 2 is left, until 7.
  EXPECT_DOUBLE_EQ(flown(schedule, fabric, {.sync = Sync::dataflow}).seconds, 7);
  // By rounds it starts at 5 + 1 and shares no link.
  EXPECT_DOUBLE_EQ(flown(schedule, fabric, {.sync = Sync::rounds}).seconds, 8);
}

// One port: the second message waits for the first, and flows beside the third.
TEST(Ports, AreTakenInTheOrderStated) {
  Fabric fabric = seconds_fabric(kRing);
  fabric.ports = 1;
  const Schedule schedule =
      listed(8, 9, {{message(1, 3, 0, 2), message(1, 2, 2, 2), message(2, 4, 4, 5)}});
  // 1 -> 3 and 2 -> 4 share until 5 (2 each); 1 -> 2 flows alone from 6; 2 -> 4 has 3 left.
  const auto times = flown(schedule, fabric);
  EXPECT_DOUBLE_EQ(times.seconds, 8);
  // 0 -> 2 waits for the receive port that 1 -> 2 has claimed, although 1 -> 2 still waits for its
  // sender.
  const Schedule queued =
      listed(8, 6, {{message(1, 3, 0, 2), message(1, 2, 2, 2), message(0, 2, 4, 2)}});
  EXPECT_DOUBLE_EQ(flown(queued, fabric).seconds, 9);
}

// A sum waits for several messages; a copy removes the waits for earlier values.
TEST(Dataflow, WaitsForWhatItReads) {
  Fabric fabric = seconds_fabric(kRing);
  const Schedule sums = listed(16, 4,
                               {{transfer(1, 2, block(0), reduce), message(8, 9, 1, 3)},
                                {transfer(3, 2, {consecutive(0, 4)}, reduce)},
                                {message(2, 1, 0, 1), message(9, 10, 1, 1)}});
  // 3 -> 2 has ended at 5, so 2 -> 1 ends at 7. 9 -> 10 waits until 4 and ends at 6.
  EXPECT_DOUBLE_EQ(flown(sums, fabric, {.sync = Sync::dataflow}).seconds, 7);
  const Schedule replaced = listed(16, 4,
                                   {{transfer(3, 2, {consecutive(0, 4)}, reduce)},
                                    {message(1, 2, 0, 1)},
                                    {message(2, 1, 0, 1)}});
  // The copy of 1 s arrives at 2; its reader at 2 does not wait for the sum's end at 5.
  EXPECT_DOUBLE_EQ(flown(replaced, fabric, {.sync = Sync::dataflow}).round_end[2], 4);
}

// --- Eq. (1)

// A round of random messages of one size, on a random wiring.
struct RandomRound {
  Schedule schedule;
  Wiring wiring;
};

RandomRound random_round() {
  using enum WiringKind;
  static const std::pair<Wiring, int> kWirings[] = {
      {{.kind = ring}, 7},
      {{.kind = ring}, 8},
      {{.kind = torus, .dims = {3, 5}}, 15},
      {{.kind = torus, .dims = {4, 4}}, 16},
      {{.kind = torus, .dims = {2, 3, 4}}, 24},
      {{.kind = torus, .dims = {3, 3, 3}}, 27},
      {{.kind = mesh, .dims = {3, 5}}, 15},
      {{.kind = mesh, .dims = {2, 3, 4}}, 24},
      {{.kind = hypercube}, 16},
      {{.kind = two_level, .group = 4}, 10},
      {{.kind = fat_tree, .group = 4, .spines = 2}, 16},
      {{.kind = fat_tree, .group = 3, .spines = 3}, 11},
  };
  const auto& [wiring, n] = kWirings[*rc::gen::inRange<std::size_t>(0, std::size(kWirings))];
  const int size = *rc::gen::inRange(1, 5), count = *rc::gen::inRange(1, 60);
  TransferList rounds(1);
  for (int i = 0; i < count; ++i) {
    const Rank from = *rc::gen::inRange(0, n), by = *rc::gen::inRange(1, n);
    rounds[0].push_back(message(from, (from + by) % n, i * size, size));
  }
  return {listed(n, size * count, std::move(rounds)), wiring};
}

// The rate of a message never falls below an equal share of its busiest link, so messages of one
// size never end later than by Eq. (1), for any start times.
TEST(EqOne, IsNeverLessThanFlowsOfOneSizeNeed) {
  const bool holds = rc::check([] {
    const RandomRound round = random_round();
    Fabric fabric = seconds_fabric(round.wiring, *rc::gen::inRange(0, 4), *rc::gen::inRange(0, 3));
    fabric.ports = *rc::gen::inRange(1, 9);
    const double flow = flown(round.schedule, fabric).seconds;
    RC_ASSERT(flow <= by_eq_1(round.schedule, fabric).seconds * (1 + 1e-9));
  });
  EXPECT_TRUE(holds);
}

// The round lasts at least as long as its busiest link is busy, on any number of ports: if a rank's
// ports keep messages apart, each message is charged less, but all of them together are not.
TEST(EqOne, IsNeverLessThanTheBusiestLinkNeeds) {
  const bool holds = rc::check([] {
    const RandomRound round = random_round();
    Fabric fabric = seconds_fabric(round.wiring);
    fabric.ports = *rc::gen::inRange(1, 9);
    const Simulation eq_1 = by_eq_1(round.schedule, fabric);
    const double busy = static_cast<double>(eq_1.traffic.front().load) /
                        (2.0 * static_cast<double>(eq_1.weight_per_byte));
    RC_ASSERT(eq_1.seconds * (1 + 1e-9) >= 1 + busy);
  });
  EXPECT_TRUE(holds);
}

// If all messages start at once, the round lasts exactly as long as its busiest link has work.
TEST(EqOne, IsWhatFlowsOfOneSizeNeedWhenAllStartAtOnce) {
  const bool holds = rc::check([] {
    const RandomRound round = random_round();
    const Fabric fabric = seconds_fabric(round.wiring);
    const SimulateOptions options{.sync = Sync::rounds, .unlimited_ports = true};
    const double flow = flown(round.schedule, fabric, options).seconds;
    const double eq_1 = by_eq_1(round.schedule, fabric, options).seconds;
    RC_ASSERT(std::abs(flow - eq_1) <= 1e-9 * eq_1);
  });
  EXPECT_TRUE(holds);
}

// With several sizes Eq. (1) may be less. 0 -> 2 shares its first link with 0 -> 1 until 4.
// Meanwhile three short messages on 2 -> 3 delay 1 -> 3 on its second link, so it then shares its
// first link with 0 -> 2. No link carries more than 5.
TEST(EqOne, MayBeLessThanFlowsOfSeveralSizesNeed) {
  const Schedule schedule =
      listed(8, 10,
             {{message(0, 1, 0, 2), message(0, 2, 2, 3), message(1, 3, 5, 2), message(2, 3, 7, 1),
               message(2, 3, 8, 1), message(2, 3, 9, 1)}});
  const Fabric fabric = seconds_fabric(kRing);
  EXPECT_DOUBLE_EQ(by_eq_1(schedule, fabric).seconds, 1 + 5);
  EXPECT_DOUBLE_EQ(flown(schedule, fabric).seconds, 1 + 6);
}

// --- Size, and errors

// 4096 ranks on 16 x 16 x 16: rounds of 4096 messages that all end together.
TEST(Large, HalvingDoublingOnATorus) {
  const Algorithm* entry = find_algorithm(Collective::all_reduce, "halving_doubling");
  ASSERT_NE(entry, nullptr);
  const Params params{.ranks = 4096};
  const Schedule schedule = entry->make(params);
  Fabric fabric = seconds_fabric(torus({16, 16, 16}));
  for (const Sync sync : kBoth) {
    const SimulateOptions options{.sync = sync, .ideal_blocks = true};
    const CollectiveSpec goal = goal_of(*entry, params, schedule);
    const auto flow = simulate_flow(schedule, goal, fabric, 4096, options);
    const auto exact = simulate(schedule, goal, fabric, 4096, options);
    ASSERT_TRUE(flow.ok() && exact.ok());
    // Every round is of one size and starts at once.
    expect_near(flow->seconds, exact->seconds, std::string(name_of(sync)));
  }
}

TEST(Errors, AreTheSimulators) {
  const Schedule multicast = listed(3, 1, {{transfer(0, consecutive(1, 2), block(0), copy)}});
  const Schedule alu = listed(3, 1, {{transfer(consecutive(1, 2), 0, block(0), reduce)}});
  const Schedule plain = listed(8, 1, {{message(0, 1, 0)}});
  Fabric fabric = seconds_fabric({});
  Fabric wrong = fabric, torn = seconds_fabric(torus({3, 2}));
  wrong.ports = -1;
  const auto expect_same = [](const Schedule& schedule, const Fabric& given, const char* part) {
    const auto flow = simulate_flow(schedule, any_goal(schedule), given, 1);
    const auto exact = simulate(schedule, any_goal(schedule), given, 1);
    ASSERT_FALSE(flow.ok());
    EXPECT_EQ(flow.status().text(), exact.status().text());
    EXPECT_NE(flow.status().text().find(part), std::string::npos) << flow.status().text();
  };
  expect_same(multicast, fabric, "one -> many");
  expect_same(alu, fabric, "many -> one");
  expect_same(plain, wrong, "ports is -1");
  expect_same(plain, torn, "3x2");
}

TEST(Errors, SayThatASwitchMayNotPermute) {
  const Schedule plain = listed(8, 1, {{message(0, 1, 0)}});
  Fabric fabric = seconds_fabric({});
  fabric.permute = true;
  const auto refused = simulate_flow(plain, any_goal(plain), fabric, 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().text(),
            "the network permutes; the fidelities flow and packet cannot model that; allowed is "
            "the fidelity eq1");
}

}  // namespace

// The simulator on meshes, hypercubes and fat trees, compared exactly with closed forms; and flows
// that must take equally long there.

namespace {

constexpr std::int64_t kM = 1'000'003;  // a prime: no part of it is a whole byte

Fabric fabric_of(const Wiring& wiring) {
  Fabric fabric;
  fabric.name = std::string(name_of(wiring.kind));
  fabric.ports = 2;
  fabric.link = {Rational(7, 3'000'000), Rational(1, 11'000'000'006)};
  fabric.alpha_hop = Rational(13, 9'000'011);
  fabric.wiring = wiring;
  fabric.group = wiring.group;
  if (wiring.group > 0) fabric.between = {Rational(23, 6'000'000), Rational(1, 5'500'000'003)};
  return fabric;
}

// The simulated time with ideal blocks.
Rational simulated(const Schedule& schedule, const CollectiveSpec& goal, const Fabric& fabric,
                   Sync sync) {
  const auto result = simulate(schedule, goal, fabric, kM, {.sync = sync, .ideal_blocks = true});
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? Rational(result->end, result->ticks_per_second) : Rational(0);
}

struct Made {
  Schedule schedule;
  CollectiveSpec goal;
};
Made all_reduce(const char* name, int ranks) {
  const Algorithm& entry = *find_algorithm(Collective::all_reduce, name);
  const Params params{.ranks = ranks};
  Made made{entry.make(params), {}};
  made.goal = goal_of(entry, params, made.schedule);
  return made;
}

// alpha + hops * hop + beta * M * part
Rational message(const Link& link, const Fabric& fabric, int hops, Rational part) {
  return link.alpha + Rational(hops) * fabric.alpha_hop + link.beta * Rational(kM) * part;
}

// Partners differ in one bit, so each message of a round has a private wire.
TEST(Hypercube, RecursiveDoublingHasNoCongestion) {
  for (const int n : {2, 8, 64}) {
    const Fabric fabric = fabric_of({.kind = WiringKind::hypercube});
    const Made made = all_reduce("recursive_doubling", n);
    const Rational round = message(fabric.link, fabric, 1, 1);
    for (const Sync sync : kBoth) {
      EXPECT_TRUE(simulated(made.schedule, made.goal, fabric, sync) ==
                  Rational(made.schedule.rounds) * round);
    }
  }
}

// A ring laid on a line: the last rank's message to the first one crosses the whole line in the
// opposite direction, and shares no link with the others.
TEST(Mesh, ARingOnALinePaysItsLengthInHops) {
  for (const int n : {3, 5, 8}) {
    const Fabric fabric = fabric_of({.kind = WiringKind::mesh, .dims = {n}});
    const Made made = all_reduce("ring", n);
    EXPECT_TRUE(simulated(made.schedule, made.goal, fabric, Sync::rounds) ==
                Rational(2 * (n - 1)) * message(fabric.link, fabric, n - 1, Rational(1, n)));
  }
}

// Every rank sends M to the rank `by` further on.
Made shift(int n, int by) {
  return {{n, 1, 1,
           [n, by](int, Send send) {
             for (Rank r : ranks(n)) send.exactly({r, (r + by) % n, block(0), block(0), copy});
           }},
          {Collective::all_reduce, n, 1}};
}

TEST(FatTree, AShiftByALeafPaysForRanksPerSpine) {
  constexpr int kRanks = 16, kGroup = 4;
  const Made made = shift(kRanks, kGroup);
  for (const int spines : {1, 2, 4}) {
    const Fabric fabric =
        fabric_of({.kind = WiringKind::fat_tree, .group = kGroup, .spines = spines});
    const Rational time = simulated(made.schedule, made.goal, fabric, Sync::dataflow);
    EXPECT_TRUE(time == message(fabric.between, fabric, 2, Rational(kGroup / spines)));
    if (spines != 1) continue;
    const Fabric two_level = fabric_of({.kind = WiringKind::two_level, .group = kGroup});
    EXPECT_TRUE(simulated(made.schedule, made.goal, two_level, Sync::dataflow) == time);
  }
}

// If the messages of a round have one size and start together, fluid sharing takes as long as loads
// charged per round.
TEST(Flow, IsEquationOneWhereAllStartTogether) {
  struct Case {
    Made made;
    Wiring wiring;
  };
  using enum WiringKind;
  const std::vector<Case> kCases = {
      {all_reduce("recursive_doubling", 16), {.kind = hypercube}},
      {all_reduce("halving_doubling", 16), {.kind = hypercube}},
      {shift(16, 4), {.kind = fat_tree, .group = 4, .spines = 2}},
      {shift(16, 5), {.kind = fat_tree, .group = 4, .spines = 4}},
      {shift(16, 8), {.kind = fat_tree, .group = 4, .spines = 3}},
  };
  for (const Case& c : kCases) {
    const Fabric fabric = fabric_of(c.wiring);
    const auto flow = simulate_flow(c.made.schedule, c.made.goal, fabric, kM,
                                    {.sync = Sync::rounds, .ideal_blocks = true});
    ASSERT_TRUE(flow.ok()) << flow.status().text();
    const double eq_1 = simulated(c.made.schedule, c.made.goal, fabric, Sync::rounds).to_double();
    EXPECT_NEAR(flow->seconds, eq_1, 1e-9 * eq_1) << fabric.name;
  }
}

}  // namespace
}  // namespace rankine
