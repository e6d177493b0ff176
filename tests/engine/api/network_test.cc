// Calls on a modelled network: the data are right, and the times equal the simulator's to the last
// tick, from call to call. Multi-port algorithms on rings, and the clocks themselves, are tested
// too.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/network.h"
#include "engine/api/team.h"
#include "engine/base/numbers.h"
#include "engine/network/network_clock.h"
#include "engine/network/predict.h"
#include "engine/network/simulate.h"
#include "engine/network/wall.h"
#include "engine/run/interpret.h"
#include "tests/engine/api/network_twin.h"
#include "tests/numa/fixtures.h"

namespace rankine {
namespace {

// The whole catalogue, one call after the other. Each call begins at the ranks' different end times
// of the call before.
TEST(CallsOnANetwork, TakeTheTimeOfTheSimulatorBackToBack) {
  for (const char* name : {"scale_out", "scale_up,sync=rounds", "switch", "two_level", "torus"}) {
    const auto on = network(name);
    for (const int ranks : {1, 2, 3, 5, 8}) {
      if (!wired_for(on->fabric, ranks).ok()) continue;
      Twin twin(ranks, on);
      std::uint64_t number = 0;
      for (const Algorithm& entry : catalogue()) {
        const std::uint64_t random = splitmix(++number * kSplitMixStep);
        const std::size_t count = entry.collective == Collective::barrier ? 1 : 1 + random % 400;
        const Rank root = static_cast<Rank>(random / 400 % static_cast<std::uint64_t>(ranks));
        const bool in_place = entry.collective == Collective::all_reduce && random >> 63 != 0;
        const auto params = twin.params_for(entry, root);
        if (!params) continue;
        twin.call(entry, *params, count, in_place);
        if (testing::Test::HasFailure()) return;
      }
      EXPECT_EQ(twin.end() > 0, ranks > 1);
    }
  }
}

TEST(CallsOnANetwork, WaitForWorkOfARanksOwn) {
  Twin twin(4, network("scale_out"));
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring");
  const Params params = *twin.params_for(ring);
  twin.call(ring, params, 1000, false);
  twin.compute(2, 0.25);
  twin.expect_same_times("work");
  twin.call(ring, params, 1000, true);
  EXPECT_GT(twin.end(), 0);
}

// A PCIe switch that copies but does not add: calls that only copy use the switch, and sums use
// messages.
TEST(CallsOnANetwork, OfASwitchThatCopiesAndDoesNotAdd) {
  constexpr int kRanks = 5;
  const auto pcie = network(R"({"preset": "pcie", "multicast": true, "alpha_switch": "150ns"})");
  const auto line = [](Collective collective, std::string_view name) -> const Algorithm& {
    return *find_algorithm(collective, name);
  };
  Twin twin(kRanks, pcie);
  for (const Algorithm* served :
       {&line(Collective::broadcast, "switch"), &line(Collective::all_gather, "switch"),
        &line(Collective::all_reduce, "binomial_multicast")}) {
    const auto params = twin.params_for(*served);
    ASSERT_TRUE(params.has_value());
    twin.call(*served, *params, 100, false);
    ASSERT_FALSE(HasFailure());
  }
  CallNetwork lowering = *pcie;
  lowering.lower = true;
  Ranks refusing({.ranks = kRanks, .network = pcie});
  Ranks lowered({.ranks = kRanks, .network = std::make_shared<const CallNetwork>(lowering)});
  for (const Collective sums : {Collective::reduce, Collective::reduce_scatter}) {
    const auto call = [&](Member& me) {
      std::vector<float> in(kRanks * 10, 1.0F), out(kRanks * 10);
      const Status status = me.call({.collective = sums,
                                     .in = in.data(),
                                     .out = out.data(),
                                     .count = 10,
                                     .type = DataType::f32,
                                     .options = {.algorithm = "switch"}});
      if (status.ok() && (me.rank() == 0 || sums == Collective::reduce_scatter)) {
        EXPECT_EQ(out[9], static_cast<float>(kRanks));
      }
      return status;
    };
    for (const Status& status : refusing.run(call)) {
      EXPECT_EQ(status.code(), Code::invalid_argument);
      EXPECT_NE(status.text().find("has no ALU"), std::string::npos) << status.text();
    }
    for (const Status& status : lowered.run(call)) EXPECT_TRUE(status.ok()) << status.text();
  }
}

// A call without an algorithm gets the cheapest algorithm of the network.
TEST(CallsOnANetwork, ChooseTheAlgorithmByTheNetwork) {
  constexpr int kRanks = 8;
  for (const char* name : {"scale_out", "switch", "torus"}) {
    for (const std::size_t count : {std::size_t{2}, std::size_t{1} << 18}) {
      const auto on = network(name);
      Params params;
      params.ranks = kRanks;
      params.segments = 0;
      const auto predicted = predict(Collective::all_reduce, params, count * 4, on->fabric);
      ASSERT_TRUE(predicted.ok());
      const auto best =
          std::find_if(predicted->begin(), predicted->end(), [](const Candidate& candidate) {
            return candidate.ok() && candidate.algorithm->other_bits.empty();
          });
      Ranks all({.ranks = kRanks, .network = on});
      const auto results = all.run([&](Member& me) {
        std::vector<float> data(count, 1.0F);
        const auto plan = me.plan_of({.in = data.data(), .out = data.data(), .count = count});
        if (!plan.ok()) return plan.status();
        EXPECT_TRUE(plan->starts_with(std::string(best->algorithm->name) + ",")) << *plan;
        return me.all_reduce(std::span(data));
      });
      double seconds = 0;
      for (std::size_t r = 0; r < results.size(); ++r) {
        EXPECT_TRUE(results[r].ok()) << results[r].text();
        seconds = std::max(seconds, all.members()[r]->model_time());
      }
      EXPECT_EQ(seconds, best->seconds) << name << ", " << best->algorithm->name;
    }
  }
}

// One program runs at full speed and on networks of the environment; its times equal the
// simulator's.
TEST(CallsOnANetwork, TakeAProgramAsItIs) {
  const auto program = [](int ranks) {
    auto team = Team::create({.ranks = ranks});
    team.status().throw_if_error();
    std::vector<double> ended(static_cast<std::size_t>(ranks));
    (*team)
        ->run([&](Member& me) {
          std::vector<float> gradient(1 << 16, 1.0F);
          me.all_reduce(std::span(gradient), ReduceOp::sum, {.algorithm = "ring"}).throw_if_error();
          EXPECT_EQ(gradient.back(), static_cast<float>(ranks));
          ended[static_cast<std::size_t>(me.rank())] = me.model_time();
        })
        .throw_if_error();
    return *std::max_element(ended.begin(), ended.end());
  };
  constexpr int kRanks = 16;
  EXPECT_EQ(program(kRanks), 0);
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring");
  Params params;
  params.ranks = kRanks;
  const Schedule schedule = ring.make(params);
  for (const char* name : {"scale_up", "scale_out", "torus"}) {
    const ScopedEnv variable("RANKINE_NETWORK", name);
    const auto simulated =
        simulate(schedule, goal_of(ring, params, schedule), network(name)->fabric, 4 << 16, {});
    ASSERT_TRUE(simulated.ok());
    EXPECT_EQ(program(kRanks), simulated->seconds) << name;
  }
}

// A block costs the time of its count.
TEST(CallsOnANetwork, ChargeCountsAsTheyAre) {
  constexpr int kRanks = 3;
  const std::vector<std::size_t> counts = {7, 0, 300};
  const auto on = network(R"({"alpha": "1us", "bandwidth": "1GB/s"})");
  Ranks all({.ranks = kRanks, .network = on});
  const auto results = all.run([&](Member& me) {
    const std::vector<float> in(counts[static_cast<std::size_t>(me.rank())], 1.0F);
    std::vector<float> out(307);
    return me.call({.collective = Collective::all_gather,
                    .in = in.data(),
                    .out = out.data(),
                    .counts = counts,
                    .options = {.algorithm = "ring"}});
  });
  for (const Status& status : results) ASSERT_TRUE(status.ok()) << status.text();
  // In a ring each rank forwards blocks from its left neighbour, one per round. Rank 2's block of
  // 1,200 bytes goes to rank 0 and then to rank 1; a longer block ends later.
  EXPECT_DOUBLE_EQ(all.members()[1]->model_time(), 2 * (1e-6 + 1200e-9));
}

TEST(CallsOnANetwork, AreWatchedByObserversToo) {
  struct Counts : RoundObserver {
    bool before_round(int) noexcept override { return ++rounds > 0; }
    int rounds = 0;
  };
  Ranks all({.ranks = 3, .network = network("scale_up")});
  std::vector<Counts> watching(3);
  const auto results = all.run([&](Member& me) {
    std::vector<float> data(30, 1.0F);
    return me.call({.collective = Collective::all_reduce,
                    .in = data.data(),
                    .out = data.data(),
                    .count = data.size(),
                    .options = {.algorithm = "ring"}},
                   watching[static_cast<std::size_t>(me.rank())]);
  });
  for (const Status& status : results) ASSERT_TRUE(status.ok()) << status.text();
  for (const Counts& one : watching) EXPECT_EQ(one.rounds, 4);
  EXPECT_GT(all.members()[0]->model_time(), 0);
}

// A wait for a clock ends at the deadline, like a wait for data.
TEST(CallsOnANetwork, EndWithTheirDeadline) {
  using std::chrono_literals::operator""ms;
  Ranks all({.ranks = 3, .timeout = 100ms, .network = network("scale_out")});
  const auto results = all.run([](Member& me) {
    std::vector<float> data(10, 1.0F);
    return me.rank() == 2 ? Status() : me.all_reduce(std::span(data));
  });
  EXPECT_EQ(results[0].code(), Code::timeout) << results[0].text();
  EXPECT_EQ(results[1].text(), results[0].text());
}

TEST(CallsOnANetwork, RefuseWhatTheNetworkCannotDoAndGoOn) {
  Ranks all({.ranks = 4, .network = network("scale_out")});
  const auto reduce = [&](std::string_view algorithm) {
    return all.run([&](Member& me) {
      std::vector<float> data(10, 1.0F);
      return me.all_reduce(std::span(data), ReduceOp::sum, {.algorithm = algorithm});
    });
  };
  for (const Status& status : reduce("switch")) {
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_NE(status.text().find("ALU"), std::string::npos) << status.text();
  }
  EXPECT_EQ(all.members()[0]->model_time(), 0);
  Ranks lowered({.ranks = 4, .network = network("scale_out,lower=yes")});
  for (const Status& status : lowered.run([&](Member& me) {
         std::vector<float> data(10, 1.0F);
         return me.all_reduce(std::span(data), ReduceOp::sum, {.algorithm = "switch"});
       })) {
    EXPECT_TRUE(status.ok()) << status.text();
  }
  EXPECT_GT(lowered.members()[0]->model_time(), 0);
  for (const Status& status : reduce("ring")) EXPECT_TRUE(status.ok()) << status.text();
}

TEST(CallsAtFullSpeed, HaveNoModelTime) {
  Ranks all({.ranks = 2});
  all.run([](Member& me) { return me.barrier(); });
  EXPECT_EQ(all.members()[0]->model_time(), 0);
  EXPECT_EQ(all.members()[0]->compute(1).text(),
            "compute() is for modelled networks; this communicator has none");
}

TEST(CallNetwork, IsRefusedWhenACommunicatorIsMade) {
  const auto text = [](CallNetwork network, int ranks) {
    const auto made = Communicator::create(
        {.ranks = ranks, .network = std::make_shared<const CallNetwork>(std::move(network))});
    EXPECT_EQ(made.status().code(), Code::invalid_argument);
    return made.status().text();
  };
  CallNetwork no_ports;
  no_ports.fabric.ports = 0;
  EXPECT_NE(text(no_ports, 4).find("network: ports is 0"), std::string::npos);
  CallNetwork negative;
  negative.fabric.link.alpha = Rational(-1);
  EXPECT_NE(text(negative, 4).find("alpha is"), std::string::npos) << text(negative, 4);
  CallNetwork torus = *network("torus");
  torus.fabric.wiring.dims = {4, 4};
  EXPECT_NE(text(torus, 9).find("4x4"), std::string::npos) << text(torus, 9);
  CallNetwork few_seats = *network("scale_out");
  few_seats.seats = std::make_shared<RankClocks>(3);
  EXPECT_EQ(text(few_seats, 4), "network: seats has 3 places; the network has 4");
}

TEST(CallNetwork, IsReadFromATextOrTheEnvironment) {
  EXPECT_EQ(network("scale_out,clock=virtual,sync=rounds")->sync, Sync::rounds);
  EXPECT_EQ(network(R"({"name": "mine", "ports": 3, "alpha": "2us"})")->fabric.ports, 3);
  const auto error = [](std::string_view text) { return find_call_network(text).status().text(); };
  EXPECT_NE(error("scale_outt").find("scale_outt"), std::string::npos) << error("scale_outt");
  EXPECT_EQ(network("scale_out,clock=wall,dilate=2.5")->clock, ClockMode::wall);
  EXPECT_EQ(network("scale_out,clock=wall,dilate=2.5")->dilate, 2.5);
  EXPECT_EQ(network("scale_out,dilate=auto")->dilate, 0);
  EXPECT_TRUE(network("scale_out,lower=yes")->lower);
  EXPECT_EQ(error("scale_out,lower=1"), "lower is '1'; allowed are yes, no");
  EXPECT_EQ(error("scale_out,clock=none"), "clock is 'none'; allowed are virtual, wall");
  EXPECT_EQ(error("scale_out,dilate=-1"),
            "dilate is '-1'; allowed are positive numbers up to 1e12, and auto");
  EXPECT_EQ(error("scale_out,sync=lockstep"), "sync is 'lockstep'; allowed are dataflow, rounds");
  EXPECT_EQ(error("scale_out,prots=2"),
            "'prots=2' is unknown; allowed are sync=, lower=, clock=, dilate=");
  {
    const ScopedEnv variable("RANKINE_NETWORK", "scale_out");
    auto team = Team::create({.ranks = 2});
    ASSERT_TRUE(team.ok()) << team.status().text();
    double seconds = 0;
    const Status status = (*team)->run([&](Member& me) {
      me.barrier().throw_if_error();
      if (me.rank() == 0) seconds = me.model_time();
    });
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_GT(seconds, 0);
  }
  const ScopedEnv variable("RANKINE_NETWORK", "nowhere");
  EXPECT_NE(Team::create({.ranks = 2}).status().text().find("RANKINE_NETWORK"), std::string::npos);
}

}  // namespace

// Trivance, Swing and Bruck on threads under the clocks, on rings of 2 to 27 ranks with two ports
// per rank. (catalogue_sweep_test covers them without a clock.)

namespace {

constexpr std::size_t kCount = 2'503;
constexpr std::string_view kNames[] = {"trivance",      "trivance_latency",
                                       "swing",         "swing_latency",
                                       "bruck_ternary", "bruck_ternary_latency"};

#if defined(__SANITIZE_THREAD__)
constexpr int kEvery = 7;  // the sanitizer is some 20 times slower
#else
constexpr int kEvery = 1;
#endif

// Ranks share no link beyond the ring. A hop takes 200 ns, and the numbers do not divide each
// other.
Fabric ring(int ranks) {
  Fabric fabric;
  fabric.ports = 2;
  fabric.link = {Rational(15, 10'000'000), Rational(1, 99'000'000'000)};
  fabric.wiring.kind = WiringKind::ring;
  fabric.alpha_hop = Rational(2, 10'000'000);
  return *wired_for(fabric, ranks);
}

// The data must be right and the time must equal the simulated time. With the wall clock, the
// simulated time is the plan, and the call must not end before it.
void expect_kept(const Algorithm& entry, int n, ClockMode mode, Sync sync) {
  const std::string what = std::string(entry.name) + " among " + std::to_string(n) + ", " +
                           std::string(name_of(mode)) + ", " + std::string(name_of(sync));
  Twin twin(n, std::make_shared<const CallNetwork>(
                   CallNetwork{.fabric = ring(n), .sync = sync, .clock = mode, .dilate = 100}));
  twin.call(entry, *twin.params_for(entry), kCount, false);
  if (mode == ClockMode::wall) {
    const NetworkReport report = twin.report();
    EXPECT_GE(report.elapsed + 1e-9, report.seconds * report.dilate) << what;
  }
}

void expect_kept_everywhere(ClockMode mode) {
  int runs = 0;
  for (int n = 2; n <= 27; n += kEvery) {
    for (const std::string_view name : kNames) {
      const Algorithm& entry = *find_algorithm(Collective::all_reduce, name);
      if (entry.refusal({.ranks = n})) continue;
      for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
        expect_kept(entry, n, mode, sync);
        if (::testing::Test::HasFailure()) return;
        ++runs;
      }
    }
  }
  // All algorithms run with every number of ranks.
  if (kEvery == 1) {
    EXPECT_EQ(runs, 2 * 6 * 26);
  }
}

TEST(TorusClock, VirtualTimeIsTheSimulators) { expect_kept_everywhere(ClockMode::virtual_time); }
TEST(TorusClock, WallTimeKeepsThePlan) { expect_kept_everywhere(ClockMode::wall); }

}  // namespace

// The clocks on threads. Virtual time must equal the simulator's to the last tick, in every round
// and on any machine. For the wall clock the tests assert only machine-independent facts.

namespace {

std::shared_ptr<const CallNetwork> on(Fabric fabric, Sync sync) {
  return std::make_shared<const CallNetwork>(
      CallNetwork{.fabric = std::move(fabric), .sync = sync});
}

// The thread sanitizer is some 20 times slower, so it runs only small N and one port budget.
#if defined(__SANITIZE_THREAD__)
constexpr int kMostRanks = 6;
constexpr std::array<int, 1> kPorts = {2};
#else
constexpr int kMostRanks = 33;
constexpr std::array<int, 5> kPorts = {1, 2, 3, 4, 8};
#endif

// Calls every algorithm of the catalogue in turn; returns the number of calls.
std::size_t call_all(Twin& twin) {
  std::size_t lines = 0;
  for (const Algorithm& entry : catalogue()) {
    const auto params = twin.params_for(entry, twin.ranks() / 2);
    if (!params) continue;
    const std::size_t count = entry.collective == Collective::barrier ? 1 : 250 + lines;
    twin.call(entry, *params, count, entry.collective == Collective::all_reduce && lines % 2 == 0);
    if (::testing::Test::HasFailure()) return 0;
    ++lines;
  }
  return lines;
}

void expect_equal_everywhere(const std::vector<int>& ns) {
  for (const int n : ns) {
    if (n > kMostRanks) continue;
    for (const int ports : kPorts) {
      for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
        Twin twin(n, on(uneven_fabric(ports), sync));
        ASSERT_GT(call_all(twin), catalogue().size() / 2) << n << " ranks";
        const NetworkReport report = twin.report();
        for (Rank r = 0; r < n; ++r) {
          EXPECT_LE(report.most_sent[static_cast<std::size_t>(r)], ports);
          EXPECT_LE(report.most_received[static_cast<std::size_t>(r)], ports);
        }
      }
    }
  }
}

TEST(NetworkClock, EqualsTheSimulatorAtSmallN) { expect_equal_everywhere({1, 2, 3, 4, 5, 6}); }
TEST(NetworkClock, EqualsTheSimulatorAtMiddlingN) { expect_equal_everywhere({7, 8, 9, 12, 16}); }
TEST(NetworkClock, EqualsTheSimulatorAtLargerN) { expect_equal_everywhere({25, 33}); }

// A switch with permute: each rank alone keeps the latencies that its port has paid in a round.
TEST(NetworkClock, EqualsTheSimulatorWhereTheSwitchPermutes) {
  for (const int n : {2, 3, 5, 6, 9, 16}) {
    if (n > kMostRanks) continue;
    for (const int ports : kPorts) {
      for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
        Fabric fabric = uneven_fabric(ports);
        fabric.permute = true;
        fabric.gamma = Rational(1, 13'000'000'000);
        Twin twin(n, on(fabric, sync));
        ASSERT_GT(call_all(twin), catalogue().size() / 2) << n << " ranks";
        const NetworkReport report = twin.report();
        for (Rank r = 0; r < n; ++r) {
          EXPECT_LE(report.most_sent[static_cast<std::size_t>(r)], ports);
          EXPECT_LE(report.most_received[static_cast<std::size_t>(r)], ports);
        }
      }
    }
  }
}

// Messages share links, with the uneven numbers of uneven_fabric(). Ports: one, and one per link.
void expect_equal_on(const Wiring& wiring, int ranks, int group = 0) {
  if (ranks > kMostRanks) return;
  Fabric fabric = uneven_fabric(1);
  fabric.multicast = fabric.alu = false;
  fabric.group = group;
  fabric.wiring = wiring;
  fabric.alpha_hop = Rational(17, 100'000'000);
  fabric.name = name_of(wiring.kind);
  for (const int ports : {1, 0}) {
    if (ports == 0 && !wiring.has_rings()) continue;
    fabric.ports = ports;
    for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
      Twin twin(ranks, on(fabric, sync));
      ASSERT_GT(call_all(twin), catalogue().size() / 2) << fabric.name;
    }
  }
}

TEST(NetworkClock, EqualsTheSimulatorOnRings) {
  expect_equal_on({.kind = WiringKind::ring}, 5);
  expect_equal_on({.kind = WiringKind::ring}, 8);
  expect_equal_on({.kind = WiringKind::ring, .routing = Routing::one_way}, 6);
}
TEST(NetworkClock, EqualsTheSimulatorOnTori) {
  expect_equal_on({.kind = WiringKind::torus, .dims = {2, 4}}, 8);
  expect_equal_on({.kind = WiringKind::torus, .dims = {3, 3}}, 9);
}
TEST(NetworkClock, EqualsTheSimulatorOnTwoLevels) {
  expect_equal_on({.kind = WiringKind::two_level}, 8, 3);
}

// Every rank sends to every rank in one round: all ports are used, and no rank has more open
// messages than ports, with every clock.
TEST(Ports, AreAllUsedAndNeverExceeded) {
  constexpr int kRanks = 10;
  for (const ClockMode mode : {ClockMode::virtual_time, ClockMode::wall}) {
    for (int ports = 1; ports <= 8; ++ports) {
      CallNetwork network{.fabric = uneven_fabric(ports), .clock = mode, .dilate = 20};
      network.fabric.group = 0;
      network.fabric.permute = ports % 2 == 0;
      Twin twin(kRanks, std::make_shared<const CallNetwork>(network));
      const Algorithm& direct = *find_algorithm(Collective::all_to_all, "direct");
      for (int i = 0; i < 3; ++i) {
        twin.call(direct, *twin.params_for(direct), 100, false);
        ASSERT_FALSE(HasFailure());
      }
      const std::vector<int> all(kRanks, ports);
      EXPECT_EQ(twin.report().most_sent, all) << name_of(mode);
      EXPECT_EQ(twin.report().most_received, all) << name_of(mode);
    }
  }
}

// The clock also includes gamma, eta, places and odd links.
TEST(NetworkClock, EqualsTheSimulatorOnUnlikeLinks) {
  for (const WiringKind kind : {WiringKind::full, WiringKind::ring}) {
    for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
      Fabric fabric = uneven_fabric(2);
      fabric.multicast = fabric.alu = false;
      fabric.gamma = Rational(1, 13'000'000'000);
      fabric.link.eta_alpha = fabric.between.eta_alpha = Rational(9, 7);
      fabric.link.eta_beta = Rational(4, 5);
      fabric.size = 9;
      fabric.places = {3, 4, 8, 0, 1, 7};
      fabric.odd = {{.at = 8, .beta = Rational(1, 3'000'000'000)},
                    {.from = 3, .to = 4, .beta = Rational(1, 2'000'000'000)}};
      fabric.wiring.kind = kind;
      if (kind == WiringKind::ring) fabric.group = 0;
      Twin twin(6, on(fabric, sync));
      ASSERT_GT(call_all(twin), catalogue().size() / 2) << name_of(kind);
    }
  }
}

// Two communicators share two places: a rank's call on one communicator begins after its call on
// the other has ended.
TEST(Seats, GiveCommunicatorsOneTimeAndOneSetOfPorts) {
  CallNetwork network{.fabric = uneven_fabric(2)};
  network.fabric.size = 6;
  network.seats = std::make_shared<RankClocks>(6);
  std::vector<Ticks> ends(6, 0);
  const auto at = [&](const std::vector<int>& places) {
    network.fabric.places = places;
    return std::make_unique<Twin>(4, std::make_shared<const CallNetwork>(network));
  };
  const std::vector<int> low = {0, 1, 2, 3}, high = {5, 3, 4, 2};
  const auto below = at(low), above = at(high);
  int calls = 0;
  for (const Algorithm& entry : catalogue()) {
    if (entry.collective != Collective::all_reduce && entry.collective != Collective::all_to_all) {
      continue;
    }
    const bool first = ++calls % 3 != 0;
    Twin& twin = first ? *below : *above;
    const std::vector<int>& places = first ? low : high;
    const auto params = twin.params_for(entry);
    if (!params) continue;
    for (std::size_t r = 0; r < places.size(); ++r) {
      twin.ends()[r] = ends[static_cast<std::size_t>(places[r])];
    }
    twin.call(entry, *params, 100, false);
    ASSERT_FALSE(HasFailure()) << entry.name;
    for (std::size_t r = 0; r < places.size(); ++r) {
      ends[static_cast<std::size_t>(places[r])] = twin.ends()[r];
    }
  }
  EXPECT_GT(calls, 20);
}

// The plan of the wall clock equals the simulator's result; no data arrive before their time, and
// the report is consistent.
TEST(WallClock, KeepsItsPlanAndReportsHowWell) {
  for (const char* name : {"ring", "double_tree", "hierarchical"}) {
    for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
      CallNetwork network{.fabric = uneven_fabric(1),
                          .sync = sync,
                          .clock = ClockMode::wall,
                          .dilate = 1000,
                          .tolerance_ns = 200'000};
      Twin twin(4, std::make_shared<const CallNetwork>(network));
      const Algorithm& entry = *find_algorithm(Collective::all_reduce, name);
      for (int i = 0; i < 2; ++i) {
        twin.call(entry, *twin.params_for(entry), 2500, i == 1);
        ASSERT_FALSE(HasFailure());
        const NetworkReport report = twin.report();
        EXPECT_EQ(report.dilate, network.dilate);
        // No deadline ends early, except for rounding in the last digits of a double.
        constexpr double kNs = 1e-9;
        EXPECT_GE(report.elapsed + kNs, report.seconds * report.dilate) << name;
        ASSERT_EQ(report.rounds_elapsed.size(), report.rounds.size());
        for (std::size_t k = 0; k < report.rounds.size(); ++k) {
          if (report.rounds_elapsed[k] == 0) continue;
          EXPECT_GE(report.rounds_elapsed[k] + kNs, report.rounds[k] * report.dilate)
              << name << ", round " << k;
          EXPECT_LE(report.rounds_elapsed[k], report.elapsed);
        }
        const Lateness& lateness = report.lateness;
        EXPECT_GT(lateness.deadlines, 0);
        EXPECT_LE(lateness.missed, lateness.deadlines);
        EXPECT_LE(0, lateness.median_ns);
        EXPECT_LE(lateness.median_ns, lateness.worst_ns);
        EXPECT_EQ(lateness.missed > 0, lateness.worst_ns > network.tolerance_ns);
        if (lateness.missed > 0) {
          EXPECT_GT(lateness.passed_on_ns, 0);
        }
      }
    }
  }
}

// A rank that misses a deadline stays late, and so do the ranks that receive from it: no rank
// catches up.
TEST(WallClock, PassesLatenessOn) {
  CallNetwork network{.fabric = uneven_fabric(1),
                      .clock = ClockMode::wall,
                      .dilate = 1,
                      .tolerance_ns = -1};  // every rank is always late
  Twin twin(3, std::make_shared<const CallNetwork>(network));
  const Algorithm& chain = *find_algorithm(Collective::broadcast, "chain");
  Params params = *twin.params_for(chain);
  params.segments = 1;
  twin.call(chain, params, 2500, false);
  const NetworkReport report = twin.report();
  EXPECT_EQ(report.lateness.missed, report.lateness.deadlines);
  EXPECT_EQ(report.lateness.deadlines, 2);
  EXPECT_GE(report.rounds_elapsed[1] - report.rounds_elapsed[0] + 1e-9,
            report.rounds[1] - report.rounds[0]);
}

// A rank that works between its calls is late in the next call, and so are the ranks that receive
// from it.
TEST(WallClock, CountsWorkBetweenCallsAsLate) {
  using std::chrono_literals::operator""ms;
  CallNetwork network{.fabric = uneven_fabric(1),
                      .clock = ClockMode::wall,
                      .dilate = 1000,
                      .tolerance_ns = 1'000'000};
  Ranks all({.ranks = 3, .network = std::make_shared<const CallNetwork>(network)});
  constexpr auto kWork = 100ms;
  for (const Status& status : all.run([&](Member& me) {
         std::vector<float> data(30, 1.0F);
         const CallOptions ring{.algorithm = "ring"};
         Status first = me.all_reduce(std::span(data), ReduceOp::sum, ring);
         if (me.rank() == 1) std::this_thread::sleep_for(kWork);
         return first.ok() ? me.all_reduce(std::span(data), ReduceOp::sum, ring) : first;
       })) {
    EXPECT_TRUE(status.ok()) << status.text();
  }
  const NetworkReport report = all.communicator().network_report();
  const std::chrono::duration<double> work = kWork;
  // The plan keeps the end of the first call, so the lateness is the rest of the work.
  EXPECT_GT(static_cast<double>(report.lateness.passed_on_ns) * 1e-9, work.count() / 2);
  EXPECT_GE(report.elapsed, work.count());
}

// A restart of model time on one communicator applies to all communicators with the same seats.
TEST(WallClock, BeginsAgainForAllWhoShareSeats) {
  const auto seats = std::make_shared<RankClocks>(2);
  const auto network = std::make_shared<const CallNetwork>(CallNetwork{
      .fabric = uneven_fabric(1), .clock = ClockMode::wall, .dilate = 10, .seats = seats});
  Ranks some({.ranks = 2, .network = network}), others({.ranks = 2, .network = network});
  const auto call = [](Ranks& all) {
    for (const Status& status : all.run([](Member& me) { return me.barrier(); })) {
      EXPECT_TRUE(status.ok()) << status.text();
    }
  };
  call(some);
  call(others);
  some.communicator().restart_model_time();
  EXPECT_EQ(seats->origin_ns(), 0);
  call(others);
  EXPECT_NE(seats->origin_ns(), 0) << "time has begun";
  call(some);
}

// A call that needs longer than its timeout fails at once, without a wait.
TEST(WallClock, RefusesACallThatTakesLongerThanItMay) {
  using std::chrono_literals::operator""s;
  CallNetwork network{.fabric = uneven_fabric(1), .clock = ClockMode::wall, .dilate = 1e9};
  Ranks all({.ranks = 2,
             .timeout = 60s,
             .network = std::make_shared<const CallNetwork>(std::move(network))});
  for (const Status& status : all.run([](Member& me) {
         std::vector<float> data(10, 1.0F);
         return me.all_reduce(std::span(data));
       })) {
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_NE(status.text().find("dilated"), std::string::npos) << status.text();
  }
}

TEST(WallClock, FindsADilation) {
  Ranks all({.ranks = 4, .network = network("scale_out,clock=wall")});
  for (const Status& status : all.run([](Member& me) {
         std::vector<float> data(1000, 1.0F);
         return me.all_reduce(std::span(data));
       })) {
    EXPECT_TRUE(status.ok()) << status.text();
  }
  EXPECT_GE(all.communicator().network_report().dilate, 1);
}

TEST(ModelTime, BeginsAgain) {
  Ranks all({.ranks = 4, .network = network("scale_out")});
  double first = 0;
  for (int i = 0; i < 2; ++i) {
    all.run([](Member& me) {
      std::vector<float> data(1000, 1.0F);
      return me.all_reduce(std::span(data), ReduceOp::sum, {.algorithm = "ring"});
    });
    const double seconds = all.communicator().network_report().seconds;
    EXPECT_GT(seconds, 0);
    if (i > 0) {
      EXPECT_EQ(seconds, first);
    }
    first = seconds;
    all.communicator().restart_model_time();
    EXPECT_EQ(all.members()[0]->model_time(), 0);
  }
}

TEST(WakeUps, AreNeverEarly) {
  for (const std::int64_t late : measure_wake_ups(5, 100'000, {})) EXPECT_GE(late, 0);
}

TEST(ClockMode, NamesReadBack) {
  for (const ClockMode mode : {ClockMode::none, ClockMode::wall, ClockMode::virtual_time}) {
    EXPECT_EQ(parse_clock_mode(name_of(mode)), mode);
  }
  EXPECT_FALSE(parse_clock_mode("sundial"));
}

}  // namespace
}  // namespace rankine
