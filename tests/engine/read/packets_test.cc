// Packets by hand, against packet by packet, and against the other fidelities.
#include "engine/read/flow.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/network/prices.h"
#include "tests/engine/read/listed.h"
#include "tests/engine/read/packet_by_packet.h"

namespace rankine {
namespace {

constexpr Sync kBoth[] = {Sync::dataflow, Sync::rounds};
const Wiring kRing{.kind = WiringKind::ring};
Wiring torus(std::vector<int> dims) { return {.kind = WiringKind::torus, .dims = std::move(dims)}; }

// A byte takes 1 s, alpha 1 s; as many ports as anybody wants.
Fabric seconds_fabric(const Wiring& wiring, int mtu, Rational hop = 0, Rational alpha = 1) {
  Fabric fabric;
  fabric.ports = 64;
  fabric.link = {alpha, 1};
  fabric.wiring = wiring;
  fabric.group = wiring.group;
  if (wiring.group > 0) fabric.between = fabric.link;
  fabric.alpha_hop = hop;
  fabric.mtu = mtu;
  return fabric;
}

Goal any_goal(const Schedule& schedule) {
  return {.collective = Collective::all_reduce, .ranks = schedule.ranks, .blocks = schedule.blocks};
}

// The first so many blocks, a byte each, from one rank to another.
Transfer message(Rank from, Rank to, int bytes) {
  return transfer(from, to, {Run{0, bytes, 1}}, reduce);
}

PacketTimes packets(const Schedule& schedule, const Fabric& fabric,
                    const SimulateOptions& options = {.sync = Sync::rounds}) {
  auto result = simulate_packets(schedule, any_goal(schedule), fabric,
                                 static_cast<std::uint64_t>(schedule.blocks), options);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? std::move(*result) : PacketTimes{};
}
double seconds(const Schedule& schedule, const Fabric& fabric, Sync sync = Sync::rounds) {
  return packets(schedule, fabric, {.sync = sync}).seconds;
}
double round_end(const PacketTimes& times, std::size_t k) {
  return nearest_double(times.round_end[k], times.ticks_per_second);
}

constexpr int kBlocks = 40;

// --- By hand

// Sent, and stored, three times.
TEST(Alone, OnePacketOverThreeHops) {
  const Schedule one = listed(8, kBlocks, {{message(0, 3, 2)}});
  const PacketTimes times = packets(one, seconds_fabric(kRing, 4, Rational(1, 2)));
  EXPECT_EQ(times.seconds, 1 + 3 * (2 + 0.5));
  EXPECT_EQ(times.messages, 1U);
  EXPECT_EQ(times.packets, 1U);
}

// Four and one: the small one waits for the large one on each link.
TEST(Alone, OneMtuAndOneByte) {
  const Schedule one = listed(8, kBlocks, {{message(0, 2, 5)}});
  const PacketTimes times = packets(one, seconds_fabric(kRing, 4, Rational(1, 2)));
  EXPECT_EQ(times.seconds, 1 + 5 + 4 + 2 * 0.5);
  EXPECT_EQ(times.packets, 2U);
  // One MTU is one packet.
  EXPECT_EQ(packets(listed(8, kBlocks, {{message(0, 2, 4)}}), seconds_fabric(kRing, 4)).packets,
            1U);
  EXPECT_EQ(seconds(listed(8, kBlocks, {{message(0, 2, 4)}}), seconds_fabric(kRing, 4)), 1 + 2 * 4);
}

TEST(Alone, PacketsFollowEachOther) {
  const Schedule one = listed(8, kBlocks, {{message(0, 3, 10)}});
  EXPECT_EQ(seconds(one, seconds_fabric(kRing, 2, 3)), 1 + 10 + 3 * 3 + 2 * 2);
  // A message of nothing is a packet of nothing.
  Fabric fabric = seconds_fabric(kRing, 2, 3);
  const auto nothing = simulate_packets(one, any_goal(one), fabric, 0, {.sync = Sync::rounds});
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ(nothing->seconds, 1 + 3 * 3);
  EXPECT_EQ(nothing->packets, 1U);
}

// Both begin on the link from 0 to 1; the one stated first goes first, all of it.
TEST(Contention, TwoMessagesOnOneLink) {
  const Schedule two =
      listed(8, kBlocks, {{message(0, 1, 6), message(0, 1, 4)}, {message(4, 5, 1)}});
  const PacketTimes times = packets(two, seconds_fabric(kRing, 2));
  EXPECT_EQ(round_end(times, 0), 1 + 6 + 4);
  const Schedule next = listed(8, kBlocks, {{message(0, 1, 6), message(0, 2, 4)}});
  // The last packet of the second one leaves the first link at 11.
  EXPECT_EQ(seconds(next, seconds_fabric(kRing, 2)), 1 + 6 + 4 + 2);
}

// 0 -> 2 comes to 1 while that sends its own: from 3 to 7 a packet of it waits behind all of them.
TEST(Contention, WhoIsOnTheWayWaitsForWhoWasThereFirst) {
  const Schedule two = listed(8, kBlocks, {{message(0, 2, 4), message(1, 2, 6)}});
  EXPECT_EQ(seconds(two, seconds_fabric(kRing, 2)), 1 + 6 + 4);
}

// At 3 the first packet of 0 -> 2 comes, with 1 -> 2: it goes first, then all of 1 -> 2, which was
// there before the second one.
TEST(Contention, WhoHasComeFartherGoesFirst) {
  Fabric fabric = seconds_fabric(kRing, 2);
  const Schedule two = listed(
      8, kBlocks, {{message(0, 2, 6), message(7, 1, 0)}, {message(1, 2, 4), message(4, 5, 9)}});
  const auto ends = [&](const Schedule& schedule) {
    return packets(schedule, fabric, {.sync = Sync::dataflow});
  };
  // 1 -> 2 does not wait: it joins at 1. Of 0 -> 2 then one packet after the other, 5 to 11.
  EXPECT_EQ(round_end(ends(two), 0), 1 + 4 + 6);
  // After 7 -> 1 of a byte on a way of its own, 1 + 2 hops of 1: it joins at 4, when the second
  // packet of 0 -> 2 is still to come, at 5; it goes before that, from 5 to 9.
  const Schedule later =
      listed(8, kBlocks, {{message(0, 2, 6), message(3, 1, 1)}, {message(1, 2, 4)}});
  const PacketTimes times = ends(later);
  EXPECT_EQ(round_end(times, 1), 9);
  EXPECT_EQ(round_end(times, 0), 13);
}

TEST(Halves, ArePacketsOfTheirOwn) {
  const Schedule one = listed(4, kBlocks, {{message(0, 2, 10)}});
  EXPECT_EQ(seconds(one, seconds_fabric(kRing, 4, 1)), 1 + 5 + 4 + 2 * 1);
  EXPECT_EQ(packets(one, seconds_fabric(kRing, 4)).packets, 4U);
  // Half bytes have a price: 2.5 bytes each way.
  EXPECT_EQ(seconds(listed(4, kBlocks, {{message(0, 2, 5)}}), seconds_fabric(kRing, 4)),
            1 + 2 * 2.5);
  const Wiring one_way{.kind = WiringKind::ring, .routing = Routing::one_way};
  EXPECT_EQ(seconds(one, seconds_fabric(one_way, 4, 1)), 1 + 10 + 4 + 2 * 1);
}

TEST(OddLinks, HoldUpWhoCrossesThem) {
  Fabric fabric = seconds_fabric(kRing, 2);
  fabric.odd = {{.from = 1, .to = 2, .beta = Rational(3)}};
  // The second and third packets come faster than the odd wire sends; on the next one they come
  // more slowly than that sends.
  EXPECT_EQ(seconds(listed(8, kBlocks, {{message(0, 3, 6)}}), fabric), 1 + 2 + 3 * 6 + 2);
  EXPECT_EQ(seconds(listed(8, kBlocks, {{message(2, 1, 6)}}), fabric), 1 + 6);
  fabric.odd = {{.at = 1, .beta = Rational(3)}};
  const auto refused =
      simulate_packets(listed(8, 1, {{message(0, 1, 1)}}), {.ranks = 8, .blocks = 1}, fabric, 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().text().find("odd place 1"), std::string::npos);
}

TEST(Gamma, IsPaidWhenTheLastPacketIsThere) {
  Fabric fabric = seconds_fabric(kRing, 2);
  fabric.ports = 1;
  fabric.gamma = Rational(2);
  const Schedule chain = listed(8, kBlocks, {{message(3, 1, 4)}, {message(1, 0, 1)}});
  for (const Sync sync : kBoth) {
    EXPECT_EQ(seconds(chain, fabric, sync), (1 + 4 + 2 + 2 * 4) + (1 + 1 + 2));
  }
}

TEST(Places, AreWhereMessagesGo) {
  Fabric fabric = seconds_fabric(torus({3, 4}), 1, Rational(1, 2));
  fabric.size = 12;
  fabric.places = {0, 6};  // one row up, and half of the message each way round four columns
  EXPECT_EQ(seconds(listed(2, kBlocks, {{message(0, 1, 2)}}), fabric), 1 + 2 + 1 + 1 + 3 * 0.5);
}

TEST(Trees, HaveTwoLinksBetweenGroups) {
  Fabric fabric = seconds_fabric({.kind = WiringKind::fat_tree, .group = 2, .spines = 2}, 2, 1);
  fabric.between = {2, 3};
  // 0 -> 2 and 1 -> 4 go up to the first spine one after the other.
  const Schedule meet =
      listed(6, kBlocks, {{message(0, 2, 4), message(1, 4, 2), message(0, 1, 4)}});
  EXPECT_EQ(seconds(meet, fabric), 2 + 3 * (4 + 2 + 2) + 2 * 1);
  EXPECT_EQ(seconds(listed(6, kBlocks, {{message(0, 1, 4)}}), fabric), 1 + 4 + 1);
}

TEST(Ports, AreTakenInTheOrderStated) {
  Fabric fabric = seconds_fabric(kRing, 2);
  fabric.ports = 1;
  // 1 -> 2 waits until 1 -> 3 has ended at 7; so does 0 -> 2, for the receive port that 1 -> 2 has
  // claimed, and then for that.
  const Schedule queued =
      listed(8, kBlocks, {{message(1, 3, 4), message(1, 2, 2), message(0, 2, 2)}});
  EXPECT_EQ(seconds(queued, fabric), (1 + 4 + 2) + (1 + 2) + (1 + 2 + 2));
}

// --- Packet by packet

struct Random {
  Schedule schedule;
  std::vector<PlainMessage> messages;
  Wiring wiring;
};

// Rounds of messages of all sizes from anywhere to anywhere.
Random random_rounds() {
  using enum WiringKind;
  static const std::pair<Wiring, int> kWirings[] = {
      {{.kind = ring}, 7},
      {{.kind = ring}, 8},
      {{.kind = ring, .routing = Routing::one_way}, 6},
      {{.kind = torus, .dims = {3, 5}}, 15},
      {{.kind = torus, .dims = {4, 4}}, 16},
      {{.kind = torus, .dims = {2, 3, 4}}, 24},
      {{.kind = mesh, .dims = {3, 5}}, 15},
      {{.kind = hypercube}, 16},
  };
  const auto& [wiring, n] = kWirings[*rc::gen::inRange<std::size_t>(0, std::size(kWirings))];
  const int rounds = *rc::gen::inRange(1, 4);
  const bool sizes_differ = *rc::gen::arbitrary<bool>();
  Random out{{}, {}, wiring};
  TransferList all(static_cast<std::size_t>(rounds));
  for (int k = 0; k < rounds; ++k) {
    for (int i = *rc::gen::inRange(1, 3 * n); i > 0; --i) {
      const Rank from = *rc::gen::inRange(0, n), to = (from + *rc::gen::inRange(1, n)) % n;
      const int bytes = sizes_differ ? *rc::gen::inRange(1, kBlocks + 1) : 8;
      all[static_cast<std::size_t>(k)].push_back(message(from, to, bytes));
      out.messages.push_back({k, from, to, bytes});
    }
  }
  out.schedule = listed(n, kBlocks, std::move(all));
  return out;
}

TEST(PacketByPacket, IsWhatTrainsComeTo) {
  const bool holds = rc::check([] {
    const Random random = random_rounds();
    const int n = random.schedule.ranks;
    const auto routes = Routes::make(random.wiring, n);
    PlainNetwork plain{.routes = *routes,
                       .ports = *rc::gen::element(0, 1, 2, 3, 8),
                       .by_rounds = *rc::gen::arbitrary<bool>(),
                       .alpha = *rc::gen::inRange(0, 30),
                       .hop = *rc::gen::inRange(0, 30),
                       .per_half_byte = *rc::gen::inRange(1, 4),
                       .mtu = *rc::gen::element(1, 2, 3, 4, 7, 16, 64)};
    Fabric fabric =
        seconds_fabric(random.wiring, static_cast<int>(plain.mtu), plain.hop, plain.alpha);
    fabric.link.beta = 2 * plain.per_half_byte;
    if (plain.ports > 0) fabric.ports = plain.ports;
    SimulateOptions options{.sync = plain.by_rounds ? Sync::rounds : Sync::dataflow};
    options.unlimited_ports = plain.ports == 0;
    const PacketTimes times = packets(random.schedule, fabric, options);
    std::vector<std::int64_t> ends(times.round_end.size(), 0);
    const auto of_messages = PacketByPacket(plain, random.messages).ends();
    for (std::size_t i = 0; i < of_messages.size(); ++i) {
      auto& end = ends[static_cast<std::size_t>(random.messages[i].round)];
      end = std::max(end, of_messages[i]);
    }
    for (std::size_t k = 0; k < ends.size(); ++k) {
      RC_ASSERT(times.round_end[k] == Ticks{ends[k]} * times.ticks_per_second);
    }
  });
  EXPECT_TRUE(holds);
}

// --- Bounds, and the other fidelities

// The busiest link has to send all that crosses it, and nobody is faster than alone.
TEST(Bounds, NoLinkSendsFasterThanBeta) {
  const bool holds = rc::check([] {
    const Random random = random_rounds();
    const Fabric fabric = seconds_fabric(random.wiring, *rc::gen::inRange(1, 20),
                                         *rc::gen::inRange(0, 9), *rc::gen::inRange(0, 9));
    Congestion congestion(*Routes::make(random.wiring, random.schedule.ranks));
    double alone = 0;
    for (const PlainMessage& m : random.messages) {
      congestion.add(m.from, m.to, m.bytes);
      const Schedule one = listed(random.schedule.ranks, kBlocks,
                                  {{message(m.from, m.to, static_cast<int>(m.bytes))}});
      alone = std::max(alone, seconds(one, fabric));
    }
    const double least = nearest_double(congestion.traffic().load, 2) +
                         fabric.link.alpha.to_double() + fabric.alpha_hop.to_double();
    const double found = seconds(random.schedule, fabric, Sync::dataflow);
    RC_ASSERT(found >= least);
    RC_ASSERT(found >= alone);
  });
  EXPECT_TRUE(holds);
}

struct Line {
  const Algorithm* algorithm;
  Params params;
  Schedule schedule;
  Goal goal;
};
Line line_of(Collective collective, const std::string& name, std::vector<int> dims) {
  Params params;
  params.ranks = 1;
  for (const int size : dims) params.ranks *= size;
  params.dims = std::move(dims);
  const Algorithm* line = find_algorithm(collective, name);
  EXPECT_NE(line, nullptr) << name;
  params = line->only_taken(params);
  Schedule schedule = line->make(params);
  const Goal goal = goal_of(*line, params, schedule);
  return {line, params, std::move(schedule), goal};
}
struct Times {
  double packet = 0, eq_1 = 0;
};
Times times_of(const Line& line, const Fabric& fabric, std::uint64_t bytes, Sync sync) {
  const SimulateOptions options{.sync = sync, .ideal_blocks = true};
  const auto packet = simulate_packets(line.schedule, line.goal, fabric, bytes, options);
  const auto eq_1 = simulate(line.schedule, line.goal, fabric, bytes, options);
  EXPECT_TRUE(packet.ok() && eq_1.ok()) << packet.status().text();
  return {packet->seconds, eq_1->seconds};
}

// Where every message has a link for itself.
TEST(EqOne, IsTheSameOfNeighbours) {
  for (const Sync sync : kBoth) {
    for (const int mtu : {1, 4096}) {
      for (const char* name : {"bucket", "ring"}) {
        const Wiring wiring = name == std::string("ring") ? kRing : torus({3, 3, 3});
        const Line line =
            line_of(Collective::all_reduce, name, wiring.has_dims() ? wiring.dims : std::vector{9});
        const Times times =
            times_of(line, seconds_fabric(wiring, mtu, Rational(1, 3)), 12'345, sync);
        EXPECT_EQ(times.packet, times.eq_1) << name << ", " << mtu;
      }
    }
  }
}

// A message that is one packet is stored as often as Eq. (1) counts it: rounds in which all go
// equally far one way take the same.
TEST(EqOne, IsTheSameOfOnePacketEach) {
  for (const char* name : {"trivance_latency", "trivance"}) {
    const Line line = line_of(Collective::all_reduce, name, {27});
    const Times times =
        times_of(line, seconds_fabric(kRing, 1 << 20, Rational(1, 3)), 12'345, Sync::rounds);
    EXPECT_EQ(times.packet, times.eq_1) << name;
  }
}

// Of many packets only storing the first one remains, and hops pass while others are sent: packets
// of next to nothing end between what the busiest link takes and Eq. (1).
TEST(EqOne, IsTheLimitOfSmallPackets) {
  const Line line = line_of(Collective::all_reduce, "trivance", {27});
  const double bytes = 27.0 * 6 * 1024;
  const auto times = [&](int mtu, Rational hop) {
    return times_of(line, seconds_fabric(kRing, mtu, hop), static_cast<std::uint64_t>(bytes),
                    Sync::rounds);
  };
  for (const int mtu : {1, 16, 256}) {
    const Times without = times(mtu, 0);
    // Three rounds there, three back, of up to 9 hops.
    EXPECT_GE(without.packet, without.eq_1) << mtu;
    EXPECT_LE(without.packet, without.eq_1 + 2 * (2 + 8) * mtu) << mtu;
    const Times with = times(mtu, 7);
    EXPECT_LE(with.packet, with.eq_1 + 2 * (2 + 8) * mtu) << mtu;
    EXPECT_GE(with.packet, without.packet + 6 * 7) << mtu;
  }
}

// All of the catalogue: nothing but messages on links of their own.
TEST(FullWiring, TakesAsLongAsTheSimulatorSays) {
  Fabric near{.name = "near", .link = {Rational(7, 3'000'000), Rational(1, 11'000'000'000)}};
  near.alpha_hop = Rational(1, 9'000'000);
  Fabric groups = near, able = near;
  groups.ports = 3;
  groups.group = 2;
  groups.between = {Rational(1, 70'000), Rational(1, 3'000'000'000)};
  groups.odd = {{.at = 1, .beta = Rational(1, 2'000'000'000)}};
  able.multicast = able.alu = true;
  able.alpha_switch = Rational(1, 5'000'000);
  able.gamma = Rational(1, 5'000'000'000);
  int compared = 0;
  for (const Algorithm& line : catalogue()) {
    for (const int n : {2, 5, 8}) {
      const Params params =
          line.only_taken({.ranks = n, .root = n / 3, .peer = n - 1, .segments = 3});
      if (line.refusal(params)) continue;
      const Schedule schedule = line.make(params);
      const Goal goal = goal_of(line, params, schedule);
      for (const Sync sync : kBoth) {
        for (const Fabric& fabric : {near, groups, able}) {
          const auto exact = simulate(schedule, goal, fabric, 1'000'003, {.sync = sync});
          const auto packet = simulate_packets(schedule, goal, fabric, 1'000'003, {.sync = sync});
          ASSERT_EQ(exact.ok(), packet.ok()) << line.name << packet.status().text();
          if (!exact.ok()) {
            EXPECT_EQ(packet.status().text(), exact.status().text()) << line.name;
            continue;
          }
          EXPECT_TRUE(packet->end == exact->end) << line.name << ", N = " << n;
          EXPECT_EQ(packet->messages, exact->messages) << line.name;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 500);
}

// 64 bits or 128: a unit of time a billionth as long, and nothing else.
TEST(Ticks, OfAnyLengthAreTheSame) {
  const Line line = line_of(Collective::all_reduce, "swing", {4, 4});
  Fabric coarse = seconds_fabric(torus({4, 4}), 100, Rational(1, 3)), fine = coarse;
  coarse.ports = fine.ports = 4;
  fine.gamma = Rational(1, Int128{1'000'000'007} * 1'000'000'009);
  coarse.gamma = 0;
  const auto options = SimulateOptions{};
  const auto a = simulate_packets(line.schedule, line.goal, coarse, 100'003, options);
  const auto b = simulate_packets(line.schedule, line.goal, fine, 100'003, options);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_GT(b->ticks_per_second, a->ticks_per_second);
  EXPECT_GT(b->end, Ticks{1} << 63);
  EXPECT_NEAR(b->seconds, a->seconds, 1e-9 * a->seconds);
}

TEST(Large, HalvingDoublingOnATorus) {
  const Line line = line_of(Collective::all_reduce, "torus_doubling", {16, 16});
  const Times times =
      times_of(line, seconds_fabric(torus({16, 16}), 4096, 1), 1 << 30, Sync::rounds);
  EXPECT_LE(times.packet, times.eq_1 + 16 * 8 * 4096);
  EXPECT_GE(times.packet, 0.99 * times.eq_1);
}

TEST(Errors, AreTheSimulators) {
  const Schedule multicast = listed(3, 1, {{transfer(0, ranks_from(1, 2), block(0), copy)}});
  const Schedule plain = listed(8, 1, {{message(0, 1, 1)}});
  Fabric fabric = seconds_fabric({}, 4);
  Fabric wrong = fabric, torn = seconds_fabric(torus({3, 2}), 4);
  wrong.mtu = 0;
  const auto expect_same = [](const Schedule& schedule, const Fabric& given, const char* part) {
    const auto packet = simulate_packets(schedule, any_goal(schedule), given, 1);
    const auto exact = simulate(schedule, any_goal(schedule), given, 1);
    ASSERT_FALSE(packet.ok());
    EXPECT_EQ(packet.status().text(), exact.status().text());
    EXPECT_NE(packet.status().text().find(part), std::string::npos) << packet.status().text();
  };
  expect_same(multicast, fabric, "one -> many");
  expect_same(plain, wrong, "mtu is 0");
  expect_same(plain, torn, "3x2");
}

TEST(Errors, SayThatASwitchMayNotPermute) {
  const Schedule plain = listed(8, 1, {{message(0, 1, 1)}});
  Fabric fabric = seconds_fabric({}, 4);
  fabric.permute = true;
  const auto refused = simulate_packets(plain, any_goal(plain), fabric, 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().text(),
            "the network permutes, which fluid flows and packets have no meaning for; allowed is "
            "the fidelity eq1");
}

}  // namespace
}  // namespace rankine
