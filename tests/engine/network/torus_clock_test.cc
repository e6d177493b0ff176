// Trivance, Swing and Bruck on threads, on rings of 2 to 27 ranks (as many as each allows) with two
// ports per rank, under the clocks. (Without a clock: tests/engine/api/catalogue_sweep_test.)
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "algorithms/catalogue.h"
#include "engine/network/clocked_run.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"

namespace rankine {
namespace {

constexpr std::uint64_t kBytes = 10'007;
constexpr std::string_view kNames[] = {"trivance",      "trivance_latency",
                                       "swing",         "swing_latency",
                                       "bruck_ternary", "bruck_ternary_latency"};

#if defined(__SANITIZE_THREAD__)
constexpr int kEvery = 7;  // some 20 times slower
#else
constexpr int kEvery = 1;
#endif

// Links that share nothing but their ring: 200 ns a hop, numbers that divide nothing.
Fabric ring(int ranks) {
  Fabric fabric;
  fabric.ports = 2;
  fabric.link = {Rational(15, 10'000'000), Rational(1, 99'000'000'000)};
  fabric.wiring.kind = WiringKind::ring;
  fabric.alpha_hop = Rational(2, 10'000'000);
  return *wired_for(fabric, ranks);
}

struct Setting {
  ClockMode mode;
  Sync sync;
};

// Data right, and time as simulated: of the virtual clock what the ranks agreed on, of the wall
// clock the plan, which nobody was ahead of.
void expect_kept(const Algorithm& line, int n, Setting setting) {
  const std::string what = std::string(line.name) + " among " + std::to_string(n) + ", " +
                           std::string(name_of(setting.mode)) + ", " +
                           std::string(name_of(setting.sync));
  const Params params{.ranks = n};
  const Schedule schedule = line.make(params);
  const Goal goal = goal_of(line, params, schedule);
  const Fabric fabric = ring(n);
  const auto predicted = simulate(schedule, goal, fabric, kBytes, {.sync = setting.sync});
  ASSERT_TRUE(predicted.ok()) << what << ": " << predicted.status().text();
  const auto pricing = Pricing::make(fabric, goal, kBytes, false);
  ASSERT_TRUE(pricing.ok()) << what;
  ThrottleOptions options;
  options.mode = setting.mode;
  options.sync = setting.sync;
  options.dilate = 100;
  const ClockedRun run = run_clocked(schedule, goal, fabric, *pricing, options);
  ASSERT_EQ(run.status.text(), "") << what;
  EXPECT_TRUE(run.clock->end() == predicted->end) << what;
  EXPECT_TRUE(run.clock->round_end() == predicted->round_end) << what;
  if (setting.mode == ClockMode::wall) {
    EXPECT_GE(static_cast<double>(run.clock->elapsed_ns()) + 1, run.clock->ns_of(predicted->end))
        << what;
  }
}

void expect_kept_everywhere(ClockMode mode) {
  int runs = 0;
  for (int n = 2; n <= 27; n += kEvery) {
    for (const std::string_view name : kNames) {
      const Algorithm& line = *find_algorithm(Collective::all_reduce, name);
      if (line.refusal({.ranks = n})) continue;
      for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
        expect_kept(line, n, {mode, sync});
        if (::testing::Test::HasFatalFailure()) return;
        ++runs;
      }
    }
  }
  // Swing needs a power of two; the others run everywhere.
  if (kEvery == 1) {
    EXPECT_EQ(runs, 2 * (4 * 26 + 2 * 4));
  }
}

TEST(TorusClock, VirtualTimeIsTheSimulators) { expect_kept_everywhere(ClockMode::virtual_time); }
TEST(TorusClock, WallTimeKeepsThePlan) { expect_kept_everywhere(ClockMode::wall); }

}  // namespace
}  // namespace rankine
