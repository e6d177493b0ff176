// Trivance, Swing and Bruck on threads, on rings of 2 to 27 ranks with two
// ports per rank, under the clocks. (Without a clock: tests/engine/api/catalogue_sweep_test.)
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/engine/api/network_twin.h"

namespace rankine {
namespace {

constexpr std::size_t kCount = 2'503;
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

// Data right, and time as simulated; of the wall clock that is the plan, which nobody was ahead of.
void expect_kept(const Algorithm& line, int n, ClockMode mode, Sync sync) {
  const std::string what = std::string(line.name) + " among " + std::to_string(n) + ", " +
                           std::string(name_of(mode)) + ", " + std::string(name_of(sync));
  Twin twin(n, std::make_shared<const CallNetwork>(
                   CallNetwork{.fabric = ring(n), .sync = sync, .clock = mode, .dilate = 100}));
  twin.call(line, *twin.params_for(line), kCount, false);
  if (mode == ClockMode::wall) {
    const NetworkReport report = twin.report();
    EXPECT_GE(report.elapsed + 1e-9, report.seconds * report.dilate) << what;
  }
}

void expect_kept_everywhere(ClockMode mode) {
  int runs = 0;
  for (int n = 2; n <= 27; n += kEvery) {
    for (const std::string_view name : kNames) {
      const Algorithm& line = *find_algorithm(Collective::all_reduce, name);
      if (line.refusal({.ranks = n})) continue;
      for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
        expect_kept(line, n, mode, sync);
        if (::testing::Test::HasFailure()) return;
        ++runs;
      }
    }
  }
  // All of them run everywhere.
  if (kEvery == 1) {
    EXPECT_EQ(runs, 2 * 6 * 26);
  }
}

TEST(TorusClock, VirtualTimeIsTheSimulators) { expect_kept_everywhere(ClockMode::virtual_time); }
TEST(TorusClock, WallTimeKeepsThePlan) { expect_kept_everywhere(ClockMode::wall); }

}  // namespace
}  // namespace rankine
