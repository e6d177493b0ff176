// Tests of max-min shares and of flows.

#include <rapidcheck.h>

#include "algorithms/catalogue.h"
#include "engine/network/simulate.h"
#include "engine/read/flow.h"
#include "tests/budget.h"
#include "tests/engine/read/listed.h"
#include "tests/testing.h"

// Max-min shares: cases worked out by hand, and the defining property on random traffic.

namespace rankine {
namespace {

using Links = std::vector<int>;

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

// Flows, compared with the exact simulator if links are not shared, with cases worked out by hand
// if they are, and with Eq. (1).

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
  const Sample sample("flows", 8);
  std::uint64_t number = 0;
  for (const Algorithm& entry : catalogue()) {
    for (const int n : {1, 2, 3, 5, 8, 12}) {
      const Params params =
          entry.only_taken({.ranks = n, .root = n / 3, .peer = n - 1, .segments = 3});
      if (entry.refusal(params) || !sample.has(number++)) continue;
      moved.places.clear();
      for (int r = 0; r < n; ++r) moved.places.push_back(11 - r * 5 % 12);
      for (const Sync sync : kBoth) {
        for (const Fabric& fabric :
             {near, two_ports, groups, able, free_latency, adds, unlike, moved}) {
          expect_simulated_times(entry, params, fabric, 1'000'003, {.sync = sync});
        }
        expect_simulated_times(entry, params, near, 1000,
                               {.sync = sync, .ideal_blocks = true, .unlimited_ports = true});
        expect_simulated_times(entry, params, near, 0, {.sync = sync});
      }
    }
  }
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

struct ByHand {
  const char* what;
  Schedule schedule;
  Fabric fabric;
  Sync sync;
  double seconds;
};

TEST(Flow, SharesLinksAsByHand) {
  const auto r = [](int ranks, int blocks, TransferList rounds) {
    return listed(ranks, blocks, std::move(rounds));
  };
  const auto m = [](Rank from, Rank to, int first, int count) {
    return message(from, to, first, count);
  };
  const auto sum = [](Rank from, Rank to, int count = 1) {
    return transfer(from, to, {consecutive(0, count)}, reduce);
  };
  const Fabric ring = seconds_fabric(kRing), square = seconds_fabric(torus({4, 4}));
  const Fabric oblong = seconds_fabric(torus({4, 5})), hops = seconds_fabric(kRing, 1, 1);
  const Fabric mesh = seconds_fabric({.kind = WiringKind::mesh, .dims = {4}});
  const Fabric one_way = seconds_fabric({.kind = WiringKind::ring, .routing = Routing::one_way});
  const Fabric tree = seconds_fabric({.kind = WiringKind::fat_tree, .group = 2, .spines = 2});
  Fabric odd = ring, odd_place = ring, places = seconds_fabric(torus({3, 4}), 1, Rational(1, 2));
  Fabric one_port = ring, adds = ring, groups = seconds_fabric({.kind = WiringKind::two_level});
  odd.odd = {{.from = 1, .to = 2, .beta = Rational(3)}};  // passes a third
  odd_place.odd = {{.at = 0, .beta = Rational(4)}};       // passes a quarter
  places.size = 12;
  places.places = {0, 6};  // one row up, and two columns on: half of the message each way
  one_port.ports = adds.ports = 1;
  adds.gamma = Rational(2);
  groups.group = 2;
  groups.between = {2, 3};
  constexpr Sync kRounds = Sync::rounds, kData = Sync::dataflow;
  // clang-format off
  const ByHand cases[] = {
      {"the longer one goes on alone", r(8, 4, {{m(0, 2, 0, 1), m(1, 3, 1, 3)}}), ring, kRounds, 1 + 2 + 2},
      // 3 pass alone from 2 to 5; the remaining 2 share with 2 of the other 5 until 9; 3 pass alone until 12.
      {"hops delay the start", r(16, 10, {{m(3, 4, 0, 5), m(0, 4, 5, 5)}}), hops, kRounds, 12},
      {"half goes each way", r(4, 4, {{m(0, 2, 0, 4)}}), ring, kRounds, 1 + 2},
      // Half a message gets half a share, so 2 pass at 1/3 and 4 at 2/3. The other half ends at 2, which has no effect.
      {"half meets a whole", r(4, 8, {{m(0, 2, 0, 4), m(0, 1, 4, 4)}}), ring, kRounds, 1 + 6},
      {"waits for the half", r(4, 8, {{m(0, 2, 0, 4), m(0, 1, 4, 4)}, {m(2, 3, 0, 4)}}), ring, kData, 7 + 1 + 4},
      {"one way only", r(4, 4, {{m(0, 2, 0, 4)}}), one_way, kRounds, 1 + 4},
      {"directions share nothing", r(5, 4, {{m(0, 1, 0, 2), m(1, 0, 2, 2)}}), ring, kRounds, 1 + 2},
      {"a pair has two wires", r(2, 4, {{m(0, 1, 0, 2), m(1, 0, 2, 2)}}), ring, kRounds, 1 + 1},
      {"an odd link", r(6, 2, {{m(0, 2, 0, 2)}}), odd, kRounds, 1 + 6},
      {"next to an odd link", r(6, 2, {{m(2, 4, 0, 2)}}), odd, kRounds, 1 + 2},
      {"the other way", r(6, 2, {{m(2, 1, 0, 2)}}), odd, kRounds, 1 + 2},
      // Both get a sixth of the odd link's rate, and the third one gets the remaining 5/6 of the link between 0 and 1.
      {"what an odd link leaves", r(6, 10, {{m(0, 2, 0, 5), m(1, 3, 0, 5), m(5, 1, 5, 5)}}), odd, kRounds, 1 + 30},
      // The first two end at 1 + 6; by then 5 of the third one's 10 have passed.
      {"after an odd link", r(6, 10, {{m(0, 2, 0, 1), m(1, 3, 0, 1), m(5, 1, 0, 10)}}), odd, kRounds, 1 + 6 + 5},
      {"an odd place", r(6, 2, {{m(0, 1, 0, 2)}}), odd_place, kRounds, 1 + 8},
      {"each port of an odd place", r(6, 2, {{m(0, 1, 0, 2), m(0, 5, 0, 2)}}), odd_place, kRounds, 1 + 8},
      {"what an odd place leaves", r(6, 6, {{m(0, 1, 0, 2), m(5, 2, 0, 6)}}), odd_place, kRounds, 1 + 8},
      {"other places", r(2, 2, {{m(0, 1, 0, 2)}}), places, kRounds, 1 + 1.5 + 1 + 1},
      // Received data are added before the port is free and before the sum is sent on.
      {"gamma by data", r(4, 1, {{sum(3, 2)}, {sum(2, 1)}, {sum(1, 0)}}), adds, kData, 3 * (1 + 1 + 2)},
      {"gamma by rounds", r(4, 1, {{sum(3, 2)}, {sum(2, 1)}, {sum(1, 0)}}), adds, kRounds, 3 * (1 + 1 + 2)},
      // From (0, 0) to (2, 2), half goes up in both dimensions and half goes down in both.
      {"halves on a torus", r(16, 4, {{m(0, 10, 0, 4)}}), square, kRounds, 1 + 2},
      {"the upper half meets", r(16, 8, {{m(0, 10, 0, 4), m(8, 9, 4, 4)}}), square, kRounds, 1 + 6},
      // Along the first dimension both ways; then one step up the second dimension, for both halves.
      {"halves join", r(20, 4, {{m(0, 11, 0, 4)}}), oblong, kRounds, 1 + 4},
      // Two leave group 0 together, one arrives there, and one stays inside.
      {"a link up", r(6, 4, {{m(0, 2, 0, 1), m(1, 4, 1, 1), m(5, 0, 2, 1), m(0, 1, 3, 1)}}), groups, kRounds, 2 + 6},
      {"links of groups", r(6, 3, {{m(0, 2, 0, 1), m(5, 1, 1, 1), m(4, 5, 2, 1)}}), groups, kRounds, 2 + 3},
      // 0 -> 2 and 1 -> 4 go up to the first spine; 1 -> 3 goes up to the other one, alone.
      {"one spine", r(6, 3, {{m(0, 2, 0, 1), m(1, 4, 1, 1), m(1, 3, 2, 1)}}), tree, kRounds, 1 + 2},
      {"two spines", r(6, 3, {{m(0, 2, 0, 1), m(1, 3, 1, 1), m(0, 1, 2, 1)}}), tree, kRounds, 1 + 1},
      // A mesh has no wrap-around wire: 3 -> 0 crosses the link of 1 -> 0.
      {"wrap-around", r(4, 4, {{m(3, 0, 0, 2), m(1, 0, 2, 2)}}), ring, kRounds, 1 + 2},
      {"no wrap-around", r(4, 4, {{m(3, 0, 0, 2), m(1, 0, 2, 2)}}), mesh, kRounds, 1 + 4},
      // The second message waits until 3, then alpha. At 4 the other has 1 of its 4 left, which takes until 6 on the shared link.
      {"rounds meet", r(8, 6, {{m(0, 1, 0, 2), m(2, 3, 2, 4)}, {m(1, 3, 0, 2)}}), ring, kData, 7},
      {"rounds do not meet", r(8, 6, {{m(0, 1, 0, 2), m(2, 3, 2, 4)}, {m(1, 3, 0, 2)}}), ring, kRounds, 8},
      // 1 -> 3 and 2 -> 4 share until 5 (2 each); 1 -> 2 flows alone from 6; 2 -> 4 has 3 left.
      {"one port", r(8, 9, {{m(1, 3, 0, 2), m(1, 2, 2, 2), m(2, 4, 4, 5)}}), one_port, kRounds, 8},
      // 0 -> 2 waits for the receive port that 1 -> 2 has claimed, although 1 -> 2 still waits for its sender.
      {"a claimed port", r(8, 6, {{m(1, 3, 0, 2), m(1, 2, 2, 2), m(0, 2, 4, 2)}}), one_port, kRounds, 9},
      // 3 -> 2 has ended at 5, so 2 -> 1 ends at 7. 9 -> 10 waits until 4 and ends at 6.
      {"a sum waits", r(16, 4, {{sum(1, 2), m(8, 9, 1, 3)}, {sum(3, 2, 4)}, {m(2, 1, 0, 1), m(9, 10, 1, 1)}}), ring, kData, 7},
      // The copy of 1 s arrives at 2; its reader at 2 does not wait for the sum's end at 5.
      {"a copy does not wait", r(16, 4, {{sum(3, 2, 4)}, {m(1, 2, 0, 1)}, {m(2, 1, 0, 1)}}), ring, kData, 5},
  };
  // clang-format on
  for (const ByHand& c : cases) {
    EXPECT_NEAR(flown(c.schedule, c.fabric, {.sync = c.sync}).seconds, c.seconds, 1e-9) << c.what;
  }
  // Eq. (1) may be less than flows of several sizes need. 0 -> 2 shares its first link with 0 -> 1
  // until 4. Meanwhile three short messages on 2 -> 3 delay 1 -> 3 on its second link, so it then
  // shares its first link with 0 -> 2. No link carries more than 5.
  const Schedule sizes = r(
      8, 10,
      {{m(0, 1, 0, 2), m(0, 2, 2, 3), m(1, 3, 5, 2), m(2, 3, 7, 1), m(2, 3, 8, 1), m(2, 3, 9, 1)}});
  EXPECT_DOUBLE_EQ(by_eq_1(sizes, ring).seconds, 1 + 5);
  EXPECT_DOUBLE_EQ(flown(sizes, ring).seconds, 1 + 6);
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
// size never end later than by Eq. (1), for any start times; and Eq. (1) is never less than the
// busiest link needs, on any number of ports. If all messages start at once, the two are equal.
TEST(EqOne, IsAtLeastWhatFlowsOfOneSizeNeed) {
  const bool holds = rc::check([] {
    const RandomRound round = random_round();
    Fabric fabric = seconds_fabric(round.wiring, *rc::gen::inRange(0, 4), *rc::gen::inRange(0, 3));
    fabric.ports = *rc::gen::inRange(1, 9);
    const Simulation eq_1 = by_eq_1(round.schedule, fabric);
    RC_ASSERT(flown(round.schedule, fabric).seconds <= eq_1.seconds * (1 + 1e-9));
    const double busy = static_cast<double>(eq_1.traffic.front().load) /
                        (2.0 * static_cast<double>(eq_1.weight_per_byte));
    RC_ASSERT(eq_1.seconds * (1 + 1e-9) >= fabric.link.alpha.to_double() + busy);

    const Fabric together = seconds_fabric(round.wiring);
    const SimulateOptions options{.sync = Sync::rounds, .unlimited_ports = true};
    const double flow = flown(round.schedule, together, options).seconds;
    RC_ASSERT(std::abs(flow / by_eq_1(round.schedule, together, options).seconds - 1) <= 1e-9);
  });
  EXPECT_TRUE(holds);
}

// Flows and packets refuse what the simulator refuses, in the same words.
TEST(Errors, AreTheSimulators) {
  const Schedule multicast = listed(3, 1, {{transfer(0, consecutive(1, 2), block(0), copy)}});
  const Schedule alu = listed(3, 1, {{transfer(consecutive(1, 2), 0, block(0), reduce)}});
  const Schedule plain = listed(8, 1, {{message(0, 1, 0)}});
  Fabric fabric = seconds_fabric({}), torn = seconds_fabric(torus({3, 2}));
  Fabric no_ports = fabric, no_mtu = fabric, permutes = fabric;
  no_ports.ports = -1;
  no_mtu.mtu = 0;
  permutes.permute = true;
  const std::tuple<Schedule, Fabric, const char*> cases[] = {{multicast, fabric, "one -> many"},
                                                             {alu, fabric, "many -> one"},
                                                             {plain, no_ports, "ports is -1"},
                                                             {plain, no_mtu, "mtu is 0"},
                                                             {plain, torn, "3x2"},
                                                             {plain, permutes, "permutes"}};
  for (const auto& [schedule, given, part] : cases) {
    const Status flow = simulate_flow(schedule, any_goal(schedule), given, 1).status();
    const Status packet = simulate_packets(schedule, any_goal(schedule), given, 1).status();
    const Status exact = simulate(schedule, any_goal(schedule), given, 1).status();
    EXPECT_EQ(flow.text(), packet.text());
    EXPECT_NE(flow.text().find(part), std::string::npos) << flow.text();
    if (!given.permute) {
      EXPECT_EQ(flow.text(), exact.text());
    }
  }
}

}  // namespace
}  // namespace rankine
