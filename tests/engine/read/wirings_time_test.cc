// The simulator on meshes, hypercubes and fat trees, as closed forms, exactly; and flows that must
// take the same time there.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/network/simulate.h"
#include "engine/read/flow.h"

namespace rankine {
namespace {

constexpr std::int64_t kM = 1'000'003;  // a prime: no part of it is a whole byte
constexpr Sync kBoth[] = {Sync::dataflow, Sync::rounds};

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

// Of ideal blocks.
Rational simulated(const Schedule& schedule, const Goal& goal, const Fabric& fabric, Sync sync) {
  const auto result = simulate(schedule, goal, fabric, kM, {.sync = sync, .ideal_blocks = true});
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? Rational(result->end, result->ticks_per_second) : Rational(0);
}

struct Made {
  Schedule schedule;
  Goal goal;
};
Made all_reduce(const char* name, int ranks) {
  const Algorithm& line = *find_algorithm(Collective::all_reduce, name);
  const Params params{.ranks = ranks};
  Made made{line.make(params), {}};
  made.goal = goal_of(line, params, made.schedule);
  return made;
}

// alpha + hops * hop + beta * M * part
Rational message(const Link& link, const Fabric& fabric, int hops, Rational part) {
  return link.alpha + Rational(hops) * fabric.alpha_hop + link.beta * Rational(kM) * part;
}

// Partners differ in one bit: each round's messages have a wire each.
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

// A ring laid on a line: the last rank's message to the first one crosses the whole line, against
// all others, and shares no link with them.
TEST(Mesh, ARingOnALinePaysItsLengthInHops) {
  for (const int n : {3, 5, 8}) {
    const Fabric fabric = fabric_of({.kind = WiringKind::mesh, .dims = {n}});
    const Made made = all_reduce("ring", n);
    EXPECT_TRUE(simulated(made.schedule, made.goal, fabric, Sync::rounds) ==
                Rational(2 * (n - 1)) * message(fabric.link, fabric, n - 1, Rational(1, n)));
  }
}

// Everybody sends M to the rank that is `by` further on.
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

// Rounds of one size whose messages start together: links shared from moment to moment take as
// long as loads charged per round.
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
