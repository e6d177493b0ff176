#include "numa/placement.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "numa/placement.h"
#include "numa/system_calls.h"
#include "tests/numa/captured_warnings.h"
#include "tests/numa/scoped_env.h"

namespace rankine {
namespace {

// Everything a rank does at its start, in its own thread.
RankReport start_rank(const Topology& topology, int rank, const RankPlace& place) {
  RankReport report;
  std::thread([&] {
    const Enforcement pin = pin_calling_thread(topology, place);
    Arena arena(arena_options(topology, place));
    EXPECT_NE(arena.allocate(100), nullptr);
    report = make_rank_report(rank, topology, place, pin);
    report.binding.add(arena.binding());
  }).join();
  return report;
}

TEST(RankReport, RefusalsShow) {
  SystemCalls calls = real_system_calls();
  calls.sched_setaffinity = [](pid_t, std::size_t, const cpu_set_t*) {
    errno = EPERM;
    return -1;
  };
  calls.mbind = [](void*, unsigned long, int, const unsigned long*, unsigned long,
                   unsigned) -> long {
    errno = EPERM;
    return -1;
  };
  ScopedEnv no_synthetic("HWLOC_SYNTHETIC", nullptr);
  ScopedSystemCalls scope(calls);
  CapturedWarnings captured;
  const Topology topology = Topology::detect();
  const Placement placement = place_ranks(topology, 6);
  for (int rank = 0; rank < 6; ++rank) {
    const RankPlace& place = placement.ranks[static_cast<std::size_t>(rank)];
    const RankReport report = start_rank(topology, rank, place);
    EXPECT_FALSE(report.all_enforced());
    EXPECT_EQ(report.pin.error, EPERM);
    EXPECT_EQ(report.binding.error, EPERM);
    EXPECT_EQ(report.place, place);
    const std::string line = to_string(report);
    EXPECT_NE(line.find("not pinned"), std::string::npos) << line;
    EXPECT_NE(line.find("not bound"), std::string::npos) << line;
  }
  EXPECT_EQ(captured.lines.size(), 2u) << "one for pinning, one for binding";
}

TEST(RankReport, ForeignTopologyIsNotEnforced) {
  CapturedWarnings captured;
  const TopologyResult foreign = Topology::synthetic("pack:2 [numa] core:2 pu:1");
  ASSERT_TRUE(foreign.ok());
  const Placement placement = place_ranks(*foreign.topology, 4);
  const RankReport report = start_rank(*foreign.topology, 3, placement.ranks[3]);
  EXPECT_EQ(report.place.node, 1);
  EXPECT_TRUE(report.pin.refused());
  EXPECT_TRUE(report.binding.refused());
  EXPECT_EQ(arena_options(*foreign.topology, placement.ranks[3]).node, kAnyNode);
}

TEST(RankReport, FlatTopologyPinsButDoesNotBind) {
  const Topology flat = Topology::flat({0}, true);
  const RankPlace place{0, 0, false};
  EXPECT_EQ(arena_options(flat, place).node, kAnyNode) << "node 0 is only an assumption";
  const RankReport report = make_rank_report(0, flat, place, Enforcement::done());
  EXPECT_TRUE(report.binding.refused());
  EXPECT_EQ(to_string(report),
            "rank 0: cpu 0, node 0; memory not bound: the machine's memory nodes are not known");
}

TEST(RankReport, NobodyAskedNobodyRefused) {
  const RankReport report =
      make_rank_report(2, Topology::flat({0}, false), RankPlace{}, Enforcement{});
  EXPECT_TRUE(report.all_enforced());
  EXPECT_EQ(to_string(report), "rank 2: not placed");
}

TEST(RankReport, SharedCoreShows) {
  RankReport report;
  report.rank = 1;
  report.place = {5, 1, true};
  report.pin = Enforcement::done();
  EXPECT_EQ(to_string(report), "rank 1: cpu 5, node 1, core shared");
}

}  // namespace
}  // namespace rankine
