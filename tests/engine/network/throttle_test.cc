// The clocks on threads. The virtual one must equal the simulator to the last tick, in every round
// and on any machine; of the wall clock only what does not depend on the machine is asserted.
#include "engine/network/throttle.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/lower.h"
#include "engine/network/clocked_run.h"
#include "engine/network/simulate.h"

namespace rankine {
namespace {

// Groups of three, unlike links, a switch that can do all: nothing in it is a multiple of anything.
Fabric uneven_fabric(int ports) {
  Fabric fabric;
  fabric.ports = ports;
  fabric.link = {Rational(7, 10'000'000), Rational(1, 70'000'000'000)};
  fabric.group = 3;
  fabric.between = {Rational(23, 10'000'000), Rational(1, 11'000'000'000)};
  fabric.multicast = fabric.alu = true;
  fabric.alpha_switch = Rational(13, 100'000'000);
  return fabric;
}

constexpr std::array<int, 5> kPorts = {1, 2, 3, 4, 8};
constexpr std::uint64_t kBytes = 10'007;

void expect_equal(const Algorithm& line, const Params& params, const Fabric& fabric, Sync sync) {
  const Schedule schedule = lower(line.make(params), fabric.abilities());
  const Goal goal = goal_of(line, params, schedule);
  const std::string what = std::string(name_of(line.collective)) + " " + std::string(line.name) +
                           ", N = " + std::to_string(params.ranks) +
                           ", P = " + std::to_string(params.segments) +
                           ", k = " + std::to_string(fabric.ports) + ", " +
                           std::string(name_of(sync)) + ", " + fabric.name;
  const auto predicted = simulate(schedule, goal, fabric, kBytes, {.sync = sync});
  ASSERT_TRUE(predicted.ok()) << what << ": " << predicted.status().text();
  const auto pricing = Pricing::make(fabric, goal, kBytes, false);
  ASSERT_TRUE(pricing.ok());
  ThrottleOptions options;
  options.sync = sync;
  const ClockedRun run = run_clocked(schedule, goal, fabric, *pricing, options);
  ASSERT_EQ(run.status.text(), "") << what;
  EXPECT_TRUE(run.clock->end() == predicted->end)
      << what << ": " << to_text(run.clock->end()) << " on threads, " << to_text(predicted->end)
      << " simulated";
  EXPECT_TRUE(run.clock->round_end() == predicted->round_end) << what;
}

// One parameter set per line and N: what it takes, not at its simplest.
std::optional<Params> params_for(const Algorithm& line, int n, const std::vector<int>& dims = {}) {
  const Params params =
      line.only_taken({.ranks = n, .root = n / 2, .peer = n - 1, .segments = 3, .dims = dims});
  if (line.refusal(params)) return std::nullopt;
  return params;
}

// The thread sanitizer is some 20 times slower: there, small N and one budget of ports must do.
#if defined(__SANITIZE_THREAD__)
constexpr int kMostRanks = 8;
constexpr std::size_t kBudgets = 1;
#else
constexpr int kMostRanks = 33;
constexpr std::size_t kBudgets = std::size(kPorts);
#endif

// Every line of the catalogue at these N, under all ten settings.
void expect_equal_everywhere(const std::vector<int>& ns) {
  for (const int n : ns) {
    if (n > kMostRanks) continue;
    std::size_t lines = 0;
    for (const Algorithm& line : catalogue()) {
      const auto params = params_for(line, n);
      if (!params) continue;
      ++lines;
      for (const int ports : std::span(kPorts).first(kBudgets)) {
        for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
          expect_equal(line, *params, uneven_fabric(ports), sync);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
    EXPECT_GT(lines, catalogue().size() / 2) << n << " ranks";
  }
}

TEST(VirtualClock, EqualsTheSimulatorAtSmallN) { expect_equal_everywhere({1, 2, 3, 4, 5, 6}); }
TEST(VirtualClock, EqualsTheSimulatorAtMiddlingN) { expect_equal_everywhere({7, 8, 9, 12, 16}); }
TEST(VirtualClock, EqualsTheSimulatorAtLargerN) { expect_equal_everywhere({25, 33}); }

// Links that messages share, with the same uneven numbers. Ports: one, and one per link.
void expect_equal_on(const Wiring& wiring, int ranks, int group = 0) {
  if (ranks > kMostRanks) return;
  Fabric fabric = uneven_fabric(1);
  fabric.multicast = fabric.alu = false;
  fabric.group = group;
  fabric.wiring = wiring;
  fabric.alpha_hop = Rational(17, 100'000'000);
  fabric.name = name_of(wiring.kind);
  std::uint64_t shared = 0;
  for (const Algorithm& line : catalogue()) {
    auto params = params_for(line, ranks, wiring.dims);
    if (!params) continue;
    for (const int ports : {1, 0}) {
      if (ports == 0 && !wiring.has_rings()) continue;
      fabric.ports = ports;
      for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
        expect_equal(line, *params, fabric, sync);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
    const Schedule schedule = lower(line.make(*params), {});
    const auto result = simulate(schedule, goal_of(line, *params, schedule), fabric, kBytes);
    ASSERT_TRUE(result.ok());
    for (const RoundTraffic& round : result->traffic) shared += round.congestion() > 1 ? 1 : 0;
  }
  EXPECT_GT(shared, 10U) << "rounds with congestion";
}

TEST(VirtualClock, EqualsTheSimulatorOnRings) {
  expect_equal_on({.kind = WiringKind::ring}, 5);
  expect_equal_on({.kind = WiringKind::ring}, 8);
  expect_equal_on({.kind = WiringKind::ring, .routing = Routing::one_way}, 6);
}
TEST(VirtualClock, EqualsTheSimulatorOnTori) {
  expect_equal_on({.kind = WiringKind::torus, .dims = {2, 4}}, 8);
  expect_equal_on({.kind = WiringKind::torus, .dims = {3, 3}}, 9);
}
TEST(VirtualClock, EqualsTheSimulatorOnTwoLevels) {
  expect_equal_on({.kind = WiringKind::two_level}, 8, 3);
}

TEST(VirtualClock, EqualsTheSimulatorOnALoweredSchedule) {
  int found = 0;
  for (const Algorithm& line : catalogue()) {
    if (line.name != "switch") continue;
    ++found;
    Params params;
    params.ranks = 5;
    const Schedule schedule = lower(line.make(params), {});
    const Goal goal = goal_of(line, params, schedule);
    Fabric fabric = uneven_fabric(2);
    fabric.multicast = fabric.alu = false;
    const auto predicted = simulate(schedule, goal, fabric, kBytes);
    ASSERT_TRUE(predicted.ok()) << predicted.status().text();
    const auto pricing = Pricing::make(fabric, goal, kBytes, false);
    ASSERT_TRUE(pricing.ok());
    const ClockedRun run = run_clocked(schedule, goal, fabric, *pricing, {});
    EXPECT_EQ(run.status.text(), "");
    EXPECT_TRUE(run.clock->end() == predicted->end) << name_of(line.collective);
  }
  EXPECT_GT(found, 0) << "no algorithm is called switch";
}

TEST(Throttle, RefusesWhatTheNetworkCannotDo) {
  const Algorithm& line = *find_algorithm(Collective::broadcast, "switch");
  Params params;
  params.ranks = 4;
  const Schedule schedule = line.make(params);
  const Goal goal = goal_of(line, params, schedule);
  Fabric fabric = uneven_fabric(1);
  fabric.multicast = false;
  const auto pricing = Pricing::make(fabric, goal, kBytes, false);
  ASSERT_TRUE(pricing.ok());
  const auto clock = Throttle::create(schedule, goal, fabric, *pricing, {});
  ASSERT_FALSE(clock.ok());
  EXPECT_EQ(clock.status().code(), Code::invalid_argument);
  EXPECT_NE(clock.status().text().find("multicast"), std::string::npos) << clock.status().text();
}

// A wall clock's plan is the simulator's result too; nobody gets anything before its time, and the
// report agrees with itself.
TEST(WallClock, KeepsItsPlanAndReportsHowWell) {
  for (const char* name : {"ring", "double_tree", "hierarchical"}) {
    for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
      const Algorithm& line = *find_algorithm(Collective::all_reduce, name);
      Params params;
      params.ranks = 4;
      params.segments = line.takes("segments") ? 2 : 1;
      const Schedule schedule = line.make(params);
      const Goal goal = goal_of(line, params, schedule);
      const Fabric fabric = uneven_fabric(1);
      const auto predicted = simulate(schedule, goal, fabric, kBytes, {.sync = sync});
      ASSERT_TRUE(predicted.ok());
      const auto pricing = Pricing::make(fabric, goal, kBytes, false);
      ASSERT_TRUE(pricing.ok());
      ThrottleOptions options;
      options.mode = ClockMode::wall;
      options.sync = sync;
      options.dilate = 1000;
      const ClockedRun run = run_clocked(schedule, goal, fabric, *pricing, options);
      ASSERT_EQ(run.status.text(), "") << name;
      EXPECT_TRUE(run.clock->end() == predicted->end) << name;
      EXPECT_TRUE(run.clock->round_end() == predicted->round_end) << name;

      // Deadlines are not missed to the early side.
      const double planned_ns = predicted->seconds * 1e9 * options.dilate;
      EXPECT_NEAR(run.clock->ns_of(run.clock->end()), planned_ns, 1);
      EXPECT_GE(static_cast<double>(run.clock->elapsed_ns()) + 1, planned_ns) << name;
      const auto rounds = run.clock->round_elapsed_ns();
      ASSERT_EQ(rounds.size(), predicted->round_end.size());
      std::int64_t deadlines = 0;
      for (std::size_t k = 0; k < rounds.size(); ++k) {
        if (rounds[k] == 0) continue;
        ++deadlines;
        EXPECT_GE(static_cast<double>(rounds[k]) + 1, run.clock->ns_of(predicted->round_end[k]))
            << name << ", round " << k;
        EXPECT_LE(rounds[k], run.clock->elapsed_ns());
      }
      const Lateness lateness = run.clock->lateness();
      EXPECT_GE(lateness.deadlines, deadlines);
      EXPECT_LE(lateness.missed, lateness.deadlines);
      EXPECT_LE(0, lateness.median_ns);
      EXPECT_LE(lateness.median_ns, lateness.worst_ns);
      EXPECT_EQ(lateness.missed > 0, lateness.passed_on_ns > 0);
      EXPECT_EQ(lateness.missed > 0, lateness.worst_ns > options.tolerance_ns);
    }
  }
}

TEST(WallClock, PlansWithTheLoadsOfSharedLinks) {
  const Params params{.ranks = 6};
  const Algorithm& line = *find_algorithm(Collective::all_reduce, "recursive_doubling");
  const Schedule schedule = line.make(params);
  const Goal goal = goal_of(line, params, schedule);
  Fabric fabric = find_regime("ring")->fabric;
  const auto pricing = Pricing::make(fabric, goal, kBytes, false);
  ASSERT_TRUE(pricing.ok());
  const auto predicted = simulate(schedule, goal, fabric, kBytes);
  ASSERT_TRUE(predicted.ok());
  ThrottleOptions options;
  options.mode = ClockMode::wall;
  const ClockedRun run = run_clocked(schedule, goal, fabric, *pricing, options);
  ASSERT_EQ(run.status.text(), "");
  EXPECT_TRUE(run.clock->end() == predicted->end);
  EXPECT_TRUE(run.clock->round_end() == predicted->round_end);
}

// A rank that cannot keep a deadline keeps its distance from then on, and takes those along who
// hear from it: nothing catches up.
TEST(WallClock, PassesLatenessOn) {
  const Algorithm& line = *find_algorithm(Collective::broadcast, "chain");
  Params params;
  params.ranks = 3;
  const Schedule schedule = line.make(params);
  const Goal goal = goal_of(line, params, schedule);
  const Fabric fabric = uneven_fabric(1);
  const auto pricing = Pricing::make(fabric, goal, kBytes, false);
  ASSERT_TRUE(pricing.ok());
  ThrottleOptions options;
  options.mode = ClockMode::wall;
  options.tolerance_ns = -1;  // nobody is ever on time
  const ClockedRun run = run_clocked(schedule, goal, fabric, *pricing, options);
  ASSERT_EQ(run.status.text(), "");
  const Lateness lateness = run.clock->lateness();
  EXPECT_EQ(lateness.missed, lateness.deadlines);
  EXPECT_EQ(lateness.deadlines, 2);
  const auto rounds = run.clock->round_elapsed_ns();
  const double second_message =
      run.clock->ns_of(run.clock->round_end()[1]) - run.clock->ns_of(run.clock->round_end()[0]);
  EXPECT_GE(static_cast<double>(rounds[1] - rounds[0]) + 1, second_message);
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
