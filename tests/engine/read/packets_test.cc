// Tests of packets, and of skeletons, in which one rank stands for others.

#include <rapidcheck.h>

#include "algorithms/catalogue.h"
#include "algorithms/torus.h"
#include "engine/network/prices.h"
#include "engine/network/wiring.h"
#include "engine/read/flow.h"
#include "tests/budget.h"
#include "tests/engine/read/listed.h"
#include "tests/testing.h"

namespace rankine {

// Messages are in the order stated.
struct PlainMessage {
  int round = 0;
  Rank from = 0, to = 0;
  std::int64_t bytes = 0;
};

struct PlainNetwork {
  const Routes& routes;
  int ports = 0;           // 0: any number
  bool by_rounds = false;  // else a message waits for its sender's earlier receipts
  std::int64_t alpha = 0, hop = 0, per_half_byte = 1, mtu = 1;
};

// PacketByPacket executes the definition in flow.h packet by packet: an event for each packet on
// each link, times in whole seconds, and every rank separately.
class PacketByPacket {
 public:
  PacketByPacket(const PlainNetwork& network, const std::vector<PlainMessage>& messages)
      : network_(network), queues_(static_cast<std::size_t>(network.routes.links())) {
    for (const PlainMessage& m : messages) messages_.push_back({m});
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      send_[messages_[i].what.from].claims.push_back(i);
      receive_[messages_[i].what.to].claims.push_back(i);
    }
  }

  // The time at which each message ends.
  std::vector<std::int64_t> ends() {
    start(0);
    while (!happens_.empty()) {
      const std::int64_t now = *happens_.begin();
      happens_.erase(happens_.begin());
      bool more = true;
      while (more) more = come(now) || start(now);
      for (Queue& queue : queues_) serve(queue, now);
    }
    std::vector<std::int64_t> out;
    for (const Message& m : messages_) out.push_back(m.end);
    return out;
  }

 private:
  struct Packet {
    std::size_t message = 0;
    bool down = false;
    std::int64_t index = 0, halves = 0;
    std::size_t hops = 0;  // completed hops
  };
  struct Message {
    PlainMessage what;
    std::vector<int> ways[2] = {};
    int grants = 0;
    bool begun = false;
    std::int64_t left = 0, end = -1;
  };
  struct Ports {
    std::vector<std::size_t> claims;
    std::size_t granted = 0, released = 0;
  };
  // Sorted by arrival, then by the rule of precedence.
  using Key = std::tuple<std::int64_t, std::int64_t, std::size_t, bool, std::int64_t>;
  struct Queue {
    std::map<Key, Packet> waiting;
    std::int64_t free = 0;
  };

  void at(std::int64_t time, const Packet& packet) {
    coming_.emplace(time, packet);
    happens_.insert(time);
  }

  // Moves the packets that arrive at `now`. Returns true if at least one did.
  bool come(std::int64_t now) {
    const auto [first, last] = coming_.equal_range(now);
    const std::vector<std::pair<const std::int64_t, Packet>> these(first, last);
    coming_.erase(first, last);
    for (const auto& [time, packet] : these) {
      Message& m = messages_[packet.message];
      const auto& way = m.ways[packet.down ? 1 : 0];
      if (packet.hops == way.size()) {
        if (--m.left > 0) continue;
        m.end = now;
        ++send_[m.what.from].released;
        ++receive_[m.what.to].released;
        continue;
      }
      const Key key{now, -static_cast<std::int64_t>(packet.hops), packet.message, packet.down,
                    packet.index};
      queues_[static_cast<std::size_t>(way[packet.hops])].waiting.emplace(key, packet);
    }
    return !these.empty();
  }

  void serve(Queue& queue, std::int64_t now) {
    if (queue.free > now || queue.waiting.empty()) return;
    Packet packet = queue.waiting.begin()->second;
    queue.waiting.erase(queue.waiting.begin());
    queue.free = now + packet.halves * network_.per_half_byte;
    happens_.insert(queue.free);
    ++packet.hops;
    at(queue.free + network_.hop, packet);
  }

  bool start(std::int64_t now) {
    for (auto* side : {&send_, &receive_}) {
      for (auto& [rank, ports] : *side) {
        const std::size_t most = network_.ports == 0
                                     ? ports.claims.size()
                                     : ports.released + static_cast<std::size_t>(network_.ports);
        for (; ports.granted < std::min(most, ports.claims.size()); ++ports.granted) {
          ++messages_[ports.claims[ports.granted]].grants;
        }
      }
    }
    bool any = false;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      Message& m = messages_[i];
      if (m.begun || m.grants < 2 || waits(m.what)) continue;
      m.begun = any = true;
      set_out(i, now + network_.alpha);
    }
    return any;
  }

  bool waits(const PlainMessage& message) const {
    return std::any_of(messages_.begin(), messages_.end(), [&](const Message& other) {
      return other.end < 0 && other.what.round < message.round &&
             (network_.by_rounds || other.what.to == message.from);
    });
  }

  void set_out(std::size_t i, std::int64_t time) {
    Message& m = messages_[i];
    bool splits = false;
    network_.routes.for_each_link(m.what.from, m.what.to, [&](int link, int halves) {
      splits |= halves == 1;
      if (halves == 2 || Routes::leads_up(link)) m.ways[0].push_back(link);
      if (halves == 2 || !Routes::leads_up(link)) m.ways[1].push_back(link);
    });
    for (const bool down : {false, true}) {
      if (down && !splits) continue;
      std::int64_t halves = splits ? m.what.bytes : 2 * m.what.bytes, index = 0;
      do {
        const std::int64_t size = std::min(halves, 2 * network_.mtu);
        at(time, {i, down, index++, size, 0});
        ++m.left;
        halves -= size;
      } while (halves > 0);
    }
  }

  const PlainNetwork network_;
  std::vector<Message> messages_;
  std::map<Rank, Ports> send_, receive_;
  std::vector<Queue> queues_;
  std::multimap<std::int64_t, Packet> coming_;
  std::set<std::int64_t> happens_;
};

// Packets: cases by hand, and comparisons with PacketByPacket and with the other fidelities.

namespace {

Fabric packet_fabric(const Wiring& wiring, int mtu, Rational hop = 0, Rational alpha = 1) {
  Fabric fabric = seconds_fabric(wiring, alpha, hop);
  fabric.mtu = mtu;
  return fabric;
}

// The first `bytes` blocks, a byte each, from one rank to another.
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
constexpr int kBlocks = 40;

// --- By hand

TEST(Alone, AnEmptyMessageIsOnePacket) {
  const Schedule one = listed(8, kBlocks, {{message(0, 3, 10)}});
  const Fabric fabric = packet_fabric(kRing, 2, 3);
  EXPECT_EQ(seconds(one, fabric), 1 + 10 + 3 * 3 + 2 * 2);
  const auto nothing =
      simulate_packets(one, any_goal(one), fabric, 0, {.sync = Sync::rounds}).value();
  EXPECT_EQ(nothing.seconds, 1 + 3 * 3);
  EXPECT_EQ(nothing.packets, 1U);
}

TEST(PacketOddLinks, HoldUpWhoCrossesThem) {
  Fabric fabric = packet_fabric(kRing, 2);
  fabric.odd = {{.from = 1, .to = 2, .beta = Rational(3)}};
  // The second and third packets arrive faster than the odd wire sends; at the next wire they
  // arrive more slowly than it sends.
  EXPECT_EQ(seconds(listed(8, kBlocks, {{message(0, 3, 6)}}), fabric), 1 + 2 + 3 * 6 + 2);
  EXPECT_EQ(seconds(listed(8, kBlocks, {{message(2, 1, 6)}}), fabric), 1 + 6);
  fabric.odd = {{.at = 1, .beta = Rational(3)}};
  const auto refused =
      simulate_packets(listed(8, 1, {{message(0, 1, 1)}}), {.ranks = 8, .blocks = 1}, fabric, 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().text().find("odd place 1"), std::string::npos);
}

TEST(Gamma, IsPaidWhenTheLastPacketIsThere) {
  Fabric fabric = packet_fabric(kRing, 2);
  fabric.ports = 1;
  fabric.gamma = Rational(2);
  const Schedule chain = listed(8, kBlocks, {{message(3, 1, 4)}, {message(1, 0, 1)}});
  for (const Sync sync : kBoth) {
    EXPECT_EQ(seconds(chain, fabric, sync), (1 + 4 + 2 + 2 * 4) + (1 + 1 + 2));
  }
}

TEST(PacketPlaces, AreWhereMessagesGo) {
  Fabric fabric = packet_fabric(torus({3, 4}), 1, Rational(1, 2));
  fabric.size = 12;
  fabric.places = {0, 6};  // one row up; half the message each way round four columns
  EXPECT_EQ(seconds(listed(2, kBlocks, {{message(0, 1, 2)}}), fabric), 1 + 2 + 1 + 1 + 3 * 0.5);
}

TEST(Trees, HaveTwoLinksBetweenGroups) {
  Fabric fabric = packet_fabric({.kind = WiringKind::fat_tree, .group = 2, .spines = 2}, 2, 1);
  fabric.between = {2, 3};
  // 0 -> 2 and 1 -> 4 go up to the first spine one after the other.
  const Schedule meet =
      listed(6, kBlocks, {{message(0, 2, 4), message(1, 4, 2), message(0, 1, 4)}});
  EXPECT_EQ(seconds(meet, fabric), 2 + 3 * (4 + 2 + 2) + 2 * 1);
  EXPECT_EQ(seconds(listed(6, kBlocks, {{message(0, 1, 4)}}), fabric), 1 + 4 + 1);
}

// --- PacketByPacket

struct Random {
  Schedule schedule;
  std::vector<PlainMessage> messages;
  Wiring wiring;
};

// Rounds of messages of all sizes between random ranks.
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
        packet_fabric(random.wiring, static_cast<int>(plain.mtu), plain.hop, plain.alpha);
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

// --- The other fidelities

// The whole catalogue, on private links.
TEST(PacketFullWiring, TakesAsLongAsTheSimulatorSays) {
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
  const Sample sample("packets", 4);
  std::uint64_t number = 0;
  for (const Algorithm& entry : catalogue()) {
    for (const int n : {2, 5, 8}) {
      const Params params =
          entry.only_taken({.ranks = n, .root = n / 3, .peer = n - 1, .segments = 3});
      if (entry.refusal(params) || !sample.has(number++)) continue;
      const Schedule schedule = entry.make(params);
      const CollectiveSpec goal = goal_of(entry, params, schedule);
      for (const Sync sync : kBoth) {
        for (const Fabric& fabric : {near, groups, able}) {
          const auto exact = simulate(schedule, goal, fabric, 1'000'003, {.sync = sync});
          const auto packet = simulate_packets(schedule, goal, fabric, 1'000'003, {.sync = sync});
          ASSERT_EQ(exact.ok(), packet.ok()) << entry.name << packet.status().text();
          if (!exact.ok()) {
            EXPECT_EQ(packet.status().text(), exact.status().text()) << entry.name;
            continue;
          }
          EXPECT_TRUE(packet->end == exact->end) << entry.name << ", N = " << n;
          EXPECT_EQ(packet->messages, exact->messages) << entry.name;
        }
      }
    }
  }
}

// Skeletons: classes of equal ranks. One rank of a class stands for the others to the last tick.

using Lines = std::vector<Alike::Line>;

struct Made {
  Schedule schedule;
  CollectiveSpec goal;
};
Made made(const std::string& name, const std::vector<int>& dims) {
  Params params{.ranks = 1};
  for (const int size : dims) params.ranks *= size;
  params.dims = dims;
  const Algorithm* entry = find_algorithm(Collective::all_reduce, name);
  EXPECT_NE(entry, nullptr) << name;
  Schedule schedule = entry->make(entry->only_taken(params));
  const CollectiveSpec goal = goal_of(*entry, params, schedule);
  return {std::move(schedule), goal};
}

// With 64 bits or 128: a tick a billionth as long gives an equal time.
TEST(Ticks, OfAnyLengthAreTheSame) {
  const Made line = made("swing", {4, 4});
  Fabric coarse = packet_fabric(torus({4, 4}), 100, Rational(1, 3)), fine = coarse;
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

SentByRound all_messages(const Schedule& schedule) {
  SentByRound all;
  for (const auto& round : list_of(schedule)) {
    auto& messages = all.emplace_back();
    for (const Transfer& t : round) {
      if (t.from.front() == t.to.front()) continue;
      messages.push_back({t.from.front(), t.to.front(), t.what.list.size()});
    }
  }
  return all;
}

// A skeleton in which every rank is a separate class.
Skeleton unabridged(const Made& of, const std::vector<int>& dims) {
  Lines lines;
  for (const int size : dims) lines.push_back({size, false});
  return {dims, Alike(dims, lines), of.goal, all_messages(of.schedule)};
}

Lines lines_of(const std::string& name, const std::vector<int>& dims) {
  const Made of = made(name, dims);
  return skeleton_of(all_messages(of.schedule), of.goal, dims).alike.lines();
}

TEST(Alike, IsWhoDoesTheSameTurned) {
  const Alike::Line same{}, mirrored{2, true};
  EXPECT_EQ(lines_of("trivance_powers", {9}), Lines{same});
  EXPECT_EQ(lines_of("bucket", {3, 4}), (Lines{same, same}));
  EXPECT_EQ(lines_of("bruck_ternary_latency", {8, 8}), (Lines{same, same}));
  // In swing an even rank does in one collective the work that an odd rank does in its mirror
  // image.
  EXPECT_EQ(lines_of("swing", {8}), Lines{same});
  EXPECT_EQ(lines_of("swing_latency", {8, 16}), (Lines{mirrored, mirrored}));
  EXPECT_EQ(lines_of("torus_doubling_latency", {16}), (Lines{{8, true}}));
  EXPECT_EQ(lines_of("torus_doubling", {16, 8}), (Lines{{8, false}, {4, false}}));
  // All ranks differ.
  const Schedule odd = listed(6, 1, {{transfer(0, 1, block(0), reduce)}});
  EXPECT_EQ(skeleton_of(all_messages(odd), {.ranks = 6, .blocks = 1}, {6}).alike.lines(),
            (Lines{{6, false}}));
}

TEST(Alike, NumbersClassesAndTheirLinks) {
  const Alike swing({4, 6}, {{2, true}, {2, true}});
  EXPECT_EQ(swing.classes(), 1);
  EXPECT_EQ(swing.links(), 4);
  // 1 = (0, 1) is turned along the second dimension only, in which its links are exchanged.
  for (const auto& [link, expected] : {std::pair{4, 0}, {5, 1}, {6, 3}, {7, 2}}) {
    EXPECT_EQ(swing.class_of_link(link), expected);
  }
  const Alike halves({8}, {{4, false}});
  EXPECT_EQ(halves.classes(), 4);
  EXPECT_EQ(halves.class_of(6), 2);
  EXPECT_TRUE(halves.represents_others(3));
  EXPECT_FALSE(halves.represents_others(4));
  EXPECT_EQ(halves.class_of_link(2 * 6 + 1), 2 * 2 + 1);
}

TEST(Skeleton, OfOnesPartIsThatOfAll) {
  for (const std::vector<int>& dims : {std::vector<int>{9}, {4, 3}, {3, 3, 3}, {5, 5}, {7, 7, 7}}) {
    for (const char* name :
         {"trivance_powers", "bucket", "bruck_ternary", "trivance_latency", "trivance_cross"}) {
      // The crosses have messages along several dimensions.
      if ((name == std::string("trivance_cross")) != (dims.front() > 4 && dims.size() > 1))
        continue;
      const Made of = made(name, dims);
      const auto of_part = skeleton_of(of.schedule, of.goal, dims).value();
      const Skeleton of_all = skeleton_of(all_messages(of.schedule), of.goal, dims);
      EXPECT_EQ(of_part.alike.lines(), of_all.alike.lines()) << name;
      EXPECT_EQ(of_part.messages, of_all.messages) << name;
    }
  }
}

TEST(Skeleton, OfOneIsAllToTheLastTick) {
  const Fabric& network = find_regime("torus")->fabric;
  const Sample sample("skeletons", 5);
  std::uint64_t number = 0;
  for (const std::vector<int>& dims :
       {std::vector<int>{8}, {16}, {9}, {4, 8}, {8, 8}, {3, 5}, {4, 4, 4}, {3, 3, 3}}) {
    for (const char* name :
         {"bucket", "torus_doubling", "torus_doubling_latency", "swing", "swing_latency",
          "bruck_ternary", "bruck_ternary_latency", "trivance_powers", "trivance_latency"}) {
      if (!sample.has(number++)) continue;
      const Made of = made(name, dims);
      const auto abridged = skeleton_of(of.schedule, of.goal, dims).value();
      const Skeleton all = unabridged(of, dims);
      for (const std::uint64_t bytes : {32, 100'000, 10'000'000}) {
        const std::string what =
            std::string(name) + " on " + dims_text(dims) + ", " + std::to_string(bytes) + " B";
        const auto one = simulate_packets(abridged, network, bytes);
        const auto every = simulate_packets(all, network, bytes);
        ASSERT_TRUE(one.ok() && every.ok()) << what;
        EXPECT_TRUE(one->end == every->end)
            << what << ": " << one->seconds << ", " << every->seconds;
        EXPECT_TRUE(one->round_end == every->round_end) << what;
        const auto flow = simulate_flow(abridged, network, bytes);
        const auto flows = simulate_flow(all, network, bytes);
        ASSERT_TRUE(flow.ok() && flows.ok()) << what;
        EXPECT_NEAR(flow->seconds, flows->seconds, 1e-9 * flows->seconds) << what;
      }
    }
  }
}

// If an algorithm has one message per round and direction, a message waits for its rank's last
// receipt, so skeletons and blocks give equal times.
TEST(Skeleton, WaitsAsBlocksDo) {
  const Fabric& network = find_regime("torus")->fabric;
  for (const char* name : {"swing_latency", "torus_doubling_latency", "trivance_latency"}) {
    for (const std::vector<int>& dims : {std::vector<int>{16}, {8, 8}}) {
      const Made of = made(name, dims);
      Fabric fabric = network;
      fabric.wiring.dims = dims;
      for (const std::uint64_t bytes : {32, 1'000'000}) {
        const auto skeleton =
            simulate_packets(*skeleton_of(of.schedule, of.goal, dims), fabric, bytes);
        const auto whole =
            simulate_packets(of.schedule, of.goal, fabric, bytes, {.ideal_blocks = true});
        ASSERT_TRUE(skeleton.ok() && whole.ok());
        EXPECT_EQ(skeleton->seconds, whole->seconds) << name << ", " << bytes;
      }
    }
  }
}

TEST(Errors, NameWhatIsWrong) {
  const Schedule multicast = listed(3, 1, {{transfer(0, ranks_from(1, 2), block(0), copy)}});
  const CollectiveSpec goal{.ranks = 3, .blocks = 1};
  const auto wide = skeleton_of(multicast, goal, {3});
  ASSERT_FALSE(wide.ok());
  EXPECT_NE(wide.status().text().find("multicast"), std::string::npos);
  const auto torn = skeleton_of(multicast, goal, {2, 2});
  ASSERT_FALSE(torn.ok());
  EXPECT_NE(torn.status().text().find("2x2"), std::string::npos) << torn.status().text();
}

}  // namespace
}  // namespace rankine
