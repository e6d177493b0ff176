// The clocks on threads. The virtual one must equal the simulator to the last tick, in every round
// and on any machine; of the wall clock only what does not depend on the machine is asserted.
#include "engine/network/network_clock.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/network/network_clock.h"
#include "engine/network/wall.h"
#include "tests/engine/api/network_twin.h"

namespace rankine {
namespace {

std::shared_ptr<const CallNetwork> on(Fabric fabric, Sync sync) {
  return std::make_shared<const CallNetwork>(
      CallNetwork{.fabric = std::move(fabric), .sync = sync});
}

// The thread sanitizer is some 20 times slower: there, small N and one budget of ports must do.
#if defined(__SANITIZE_THREAD__)
constexpr int kMostRanks = 6;
constexpr std::array<int, 1> kPorts = {2};
#else
constexpr int kMostRanks = 33;
constexpr std::array<int, 5> kPorts = {1, 2, 3, 4, 8};
#endif

// Every line of the catalogue, one after the other; how many there are.
std::size_t call_all(Twin& twin) {
  std::size_t lines = 0;
  for (const Algorithm& line : catalogue()) {
    const auto params = twin.params_for(line, twin.ranks() / 2);
    if (!params) continue;
    const std::size_t count = line.collective == Collective::barrier ? 1 : 250 + lines;
    twin.call(line, *params, count, line.collective == Collective::all_reduce && lines % 2 == 0);
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

// A switch that permutes: what a port has paid of latencies in a round is each rank's own to know.
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

// Links that messages share, with the same uneven numbers. Ports: one, and one per link.
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

// Everybody sends to everybody in one round: all ports are wanted, and no rank has more messages
// open than it has ports, whatever the clock.
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

// What a network has beside alpha and beta is in its clock as well.
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

// Two communicators, two of whose ranks sit at the same places: who makes a call on one begins
// where its call on the other has ended.
TEST(Seats, GiveCommunicatorsOneTimeAndOneSetOfPorts) {
  CallNetwork network{.fabric = uneven_fabric(2)};
  network.fabric.size = 6;
  network.seats = std::make_shared<NetworkSeats>(6);
  std::vector<Ticks> ends(6, 0);
  const auto at = [&](const std::vector<int>& places) {
    network.fabric.places = places;
    return std::make_unique<Twin>(4, std::make_shared<const CallNetwork>(network));
  };
  const std::vector<int> low = {0, 1, 2, 3}, high = {5, 3, 4, 2};
  const auto below = at(low), above = at(high);
  int calls = 0;
  for (const Algorithm& line : catalogue()) {
    if (line.collective != Collective::all_reduce && line.collective != Collective::all_to_all) {
      continue;
    }
    const bool first = ++calls % 3 != 0;
    Twin& twin = first ? *below : *above;
    const std::vector<int>& places = first ? low : high;
    const auto params = twin.params_for(line);
    if (!params) continue;
    for (std::size_t r = 0; r < places.size(); ++r) {
      twin.ends()[r] = ends[static_cast<std::size_t>(places[r])];
    }
    twin.call(line, *params, 100, false);
    ASSERT_FALSE(HasFailure()) << line.name;
    for (std::size_t r = 0; r < places.size(); ++r) {
      ends[static_cast<std::size_t>(places[r])] = twin.ends()[r];
    }
  }
  EXPECT_GT(calls, 20);
}

// A wall clock's plan is the simulator's result too; nobody gets anything before its time, and the
// report agrees with itself.
TEST(WallClock, KeepsItsPlanAndReportsHowWell) {
  for (const char* name : {"ring", "double_tree", "hierarchical"}) {
    for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
      CallNetwork network{.fabric = uneven_fabric(1),
                          .sync = sync,
                          .clock = ClockMode::wall,
                          .dilate = 1000,
                          .tolerance_ns = 200'000};
      Twin twin(4, std::make_shared<const CallNetwork>(network));
      const Algorithm& line = *find_algorithm(Collective::all_reduce, name);
      for (int i = 0; i < 2; ++i) {
        twin.call(line, *twin.params_for(line), 2500, i == 1);
        ASSERT_FALSE(HasFailure());
        const NetworkReport report = twin.report();
        EXPECT_EQ(report.dilate, network.dilate);
        // Deadlines are not missed to the early side: but for the last digits of doubles.
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

// A rank that cannot keep a deadline keeps its distance from then on, and takes those along who
// hear from it: nothing catches up.
TEST(WallClock, PassesLatenessOn) {
  CallNetwork network{.fabric = uneven_fabric(1),
                      .clock = ClockMode::wall,
                      .dilate = 1,
                      .tolerance_ns = -1};  // nobody is ever on time
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

// Whoever works between its calls comes late to the next one, and so do those that hear from it.
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
  // The first call's end stays in the plan: what is late is the rest of the work.
  EXPECT_GT(static_cast<double>(report.lateness.passed_on_ns) * 1e-9, work.count() / 2);
  EXPECT_GE(report.elapsed, work.count());
}

// Whoever lets the seats' time begin again does so for all who share them.
TEST(WallClock, BeginsAgainForAllWhoShareSeats) {
  const auto seats = std::make_shared<NetworkSeats>(2);
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

// What cannot be done within the call's time is said at once, and not waited for.
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
