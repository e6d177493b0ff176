#include "numa/placement.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "numa/system_calls.h"
#include "tests/numa/scoped_env.h"

namespace rankine {
namespace {

using Kind = PlacementPolicy::Kind;

Topology synthetic(const std::string& text) {
  TopologyResult result = Topology::synthetic(text);
  EXPECT_EQ(result.error, "");
  return result.ok() ? *result.topology : Topology::flat({}, false);
}

const char* const kMachines[] = {
    "pack:2 [numa] l3:4 core:8 pu:2",    // two sockets, 128 CPUs
    "numa:8 core:8 pu:1",                // eight nodes, no SMT, no L3
    "pack:1 core:3 pu:1",                // odd number of cores
    "pack:2 [numa] [numa] core:2 pu:2",  // memory-only nodes
    "core:3 pu:4",                       // four hardware threads per core
    "pu:1",                              // the smallest
    "pack:2 numa:2 l3:2 core:3 "
    "pu:2(indexes=0,24,1,25,2,26,3,27,4,28,5,29,6,30,7,31,8,32,9,33,10,34,11,35,"
    "12,36,13,37,14,38,15,39,16,40,17,41,18,42,19,43,20,44,21,45,22,46,23,47)",  // siblings far off
};

std::vector<int> cpus_of(const Placement& placement) {
  std::vector<int> cpus;
  for (const RankPlace& place : placement.ranks) cpus.push_back(place.cpu);
  return cpus;
}

// How many ranks sit on each value of `key`, over all its values.
std::vector<int> load(const Topology& topology, const Placement& placement, int Cpu::*key) {
  std::map<int, int> counts;
  for (const Cpu& cpu : topology.cpus()) counts[cpu.*key];
  for (const RankPlace& place : placement.ranks) ++counts[topology.find_cpu(place.cpu)->*key];
  std::vector<int> result;
  for (const auto& [value, count] : counts) result.push_back(count);
  return result;
}

int spread(const std::vector<int>& counts) {
  const auto [low, high] = std::minmax_element(counts.begin(), counts.end());
  return *high - *low;
}

class SpreadingPolicies : public testing::TestWithParam<std::tuple<const char*, Kind>> {};

TEST_P(SpreadingPolicies, Properties) {
  const auto& [text, kind] = GetParam();
  const Topology topology = synthetic(text);
  const int cpus = static_cast<int>(topology.cpus().size());
  for (int ranks = 1; ranks <= 2 * cpus + 3; ++ranks) {
    SCOPED_TRACE(ranks);
    const Placement placement = place_ranks(topology, ranks, {kind, {}});
    ASSERT_EQ(placement.error, "");
    ASSERT_EQ(static_cast<int>(placement.ranks.size()), ranks);
    EXPECT_EQ(placement.oversubscribed, ranks > cpus);

    std::map<int, int> on_core;
    for (const RankPlace& place : placement.ranks) {
      const Cpu* cpu = topology.find_cpu(place.cpu);
      ASSERT_NE(cpu, nullptr);
      EXPECT_EQ(place.node, cpu->numa_node);
      ++on_core[cpu->core];
    }
    EXPECT_LE(spread(load(topology, placement, &Cpu::os_index)), 1) << "balanced over CPUs";
    for (const RankPlace& place : placement.ranks) {
      EXPECT_EQ(place.core_shared, on_core[topology.find_cpu(place.cpu)->core] > 1);
    }
    if (ranks <= topology.cores()) {
      EXPECT_EQ(static_cast<int>(on_core.size()), ranks)
          << "no sibling before every core has a rank";
    }
    // Layer by layer: a core's next hardware thread only after all cores have one rank more. All
    // cores are alike.
    if (ranks <= cpus) {
      EXPECT_LE(spread(load(topology, placement, &Cpu::core)), 1);
    }
    if (ranks > cpus) {
      for (int rank = cpus; rank < ranks; ++rank) {
        const auto at = [&](int r) { return placement.ranks[static_cast<std::size_t>(r)].cpu; };
        EXPECT_EQ(at(rank), at(rank - cpus)) << "round-robin";
      }
    }
    if (kind == Kind::scatter && ranks <= cpus) {
      for (int Cpu::*key : {&Cpu::package, &Cpu::numa_node, &Cpu::l3}) {
        EXPECT_LE(spread(load(topology, placement, key)), 1) << "balanced on every level";
      }
    }
    if (kind == Kind::compact && ranks <= cpus) {
      std::vector<int> order = topology.os_cpus();
      std::size_t next = 0;
      for (int cpu : cpus_of(placement)) {
        while (next < order.size() && order[next] != cpu) ++next;
        EXPECT_LT(next, order.size()) << "ranks follow the machine's order";
      }
    }
    EXPECT_EQ(place_ranks(topology, ranks, {kind, {}}).ranks, placement.ranks) << "deterministic";
  }
}

INSTANTIATE_TEST_SUITE_P(EveryMachine, SpreadingPolicies,
                         testing::Combine(testing::ValuesIn(kMachines),
                                          testing::Values(Kind::compact, Kind::scatter)));

TEST(Compact, FillsOneCacheThenOneNode) {
  const Topology topology = synthetic("pack:2 [numa] l3:4 core:8 pu:2");
  const Placement eight = place_ranks(topology, 8);
  EXPECT_EQ(cpus_of(eight), (std::vector<int>{0, 2, 4, 6, 8, 10, 12, 14}))
      << "compact is the default";
  for (const RankPlace& place : eight.ranks) EXPECT_FALSE(place.core_shared);
  for (const RankPlace& place : place_ranks(topology, 32).ranks) EXPECT_EQ(place.node, 0);
  EXPECT_EQ(place_ranks(topology, 33).ranks[32].node, 1);

  const Placement with_siblings = place_ranks(topology, 66);
  EXPECT_EQ(with_siblings.ranks[0], (RankPlace{0, 0, true}));
  EXPECT_EQ(with_siblings.ranks[1], (RankPlace{1, 0, true})) << "the neighbour takes the sibling";
  EXPECT_EQ(with_siblings.ranks[4], (RankPlace{4, 0, false}));
}

TEST(Scatter, GoesAsFarAsItCan) {
  const Topology topology = synthetic("pack:2 [numa] l3:2 core:2 pu:2");
  EXPECT_EQ(cpus_of(place_ranks(topology, 10, {Kind::scatter, {}})),
            (std::vector<int>{0, 8, 4, 12, 2, 10, 6, 14, 1, 9}));
}

// A machine of which only some CPUs may be used: hwloc's notation can say nothing unequal, a cpuset
// can.
Topology restricted(const char* text, std::initializer_list<int> cpus) {
  static cpu_set_t allowed;
  CPU_ZERO(&allowed);
  for (int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &allowed);
  SystemCalls calls = real_system_calls();
  calls.sched_getaffinity = [](pid_t, std::size_t bytes, cpu_set_t* mask) {
    CPU_ZERO_S(bytes, mask);
    *mask = allowed;
    return 0;
  };
  ScopedSystemCalls scope(calls);
  ScopedEnv machine("HWLOC_SYNTHETIC", text);
  ScopedEnv claim("HWLOC_THISSYSTEM", "1");
  const Topology topology = Topology::detect();
  EXPECT_EQ(topology.os_cpus(), std::vector<int>(cpus));
  return topology;
}

TEST(UnequalNodes, AreUsedUp) {
  const Topology topology = restricted("pack:2 [numa] core:4 pu:1", {1, 4, 5, 6, 7});
  EXPECT_EQ(cpus_of(place_ranks(topology, 6, {Kind::scatter, {}})),
            (std::vector<int>{1, 4, 5, 6, 7, 1}));
  EXPECT_EQ(cpus_of(place_ranks(topology, 3)), (std::vector<int>{1, 4, 5}));
  EXPECT_EQ(cpus_of(place_ranks(topology, 2, {Kind::one_per_node, {}})), (std::vector<int>{1, 4}));
}

TEST(UnequalNodes, ALoneSiblingCountsAsACore) {
  // Core 0 offers both threads, core 1 only its second, core 2 only its first; core 3 nothing.
  const Topology topology = restricted("core:4 pu:2", {0, 1, 3, 4});
  EXPECT_EQ(topology.cores(), 3);
  for (Kind kind : {Kind::compact, Kind::scatter}) {
    EXPECT_EQ(cpus_of(place_ranks(topology, 3, {kind, {}})), (std::vector<int>{0, 3, 4}));
  }
  EXPECT_EQ(cpus_of(place_ranks(topology, 4)), (std::vector<int>{0, 1, 3, 4}));
  EXPECT_EQ(cpus_of(place_ranks(topology, 4, {Kind::scatter, {}})), (std::vector<int>{0, 3, 4, 1}));
}

TEST(UnequalNodes, ANodeWithoutUsableCpusGetsNoRank) {
  const Topology topology = restricted("pack:3 [numa] core:2 pu:1", {0, 1, 4});
  EXPECT_EQ(topology.nodes().size(), 3u);
  EXPECT_EQ(cpus_of(place_ranks(topology, 2, {Kind::one_per_node, {}})), (std::vector<int>{0, 4}));
  EXPECT_FALSE(place_ranks(topology, 3, {Kind::one_per_node, {}}).ok());
}

TEST(OnePerNode, FirstCoreOfEachNodeThatHasCpus) {
  const Topology topology = synthetic("numa:8 core:8 pu:1");
  const PlacementPolicy policy{Kind::one_per_node, {}};
  const Placement placement = place_ranks(topology, 8, policy);
  EXPECT_EQ(cpus_of(placement), (std::vector<int>{0, 8, 16, 24, 32, 40, 48, 56}));
  EXPECT_FALSE(placement.oversubscribed);
  std::set<int> nodes;
  for (const RankPlace& place : placement.ranks) nodes.insert(place.node);
  EXPECT_EQ(nodes.size(), 8u);

  EXPECT_TRUE(place_ranks(synthetic("pack:2 [numa] [numa] core:2 pu:1"), 2, policy).ok());
  const Placement too_many = place_ranks(synthetic("pack:2 [numa] [numa] core:2 pu:1"), 3, policy);
  EXPECT_TRUE(too_many.ranks.empty());
  EXPECT_NE(too_many.error.find("3 ranks asked for, allowed: 1..2"), std::string::npos)
      << too_many.error;
}

TEST(Explicit, TheUsersOrderIsLaw) {
  const Topology topology = synthetic("pack:1 core:4 pu:2");
  const Placement placement = place_ranks(topology, 3, {Kind::listed, {5, 0, 4, 7}});
  EXPECT_EQ(cpus_of(placement), (std::vector<int>{5, 0, 4}));
  EXPECT_TRUE(placement.ranks[0].core_shared) << "CPUs 4 and 5 are siblings";
  EXPECT_FALSE(placement.ranks[1].core_shared);
  EXPECT_FALSE(placement.oversubscribed);

  const Placement wrapped = place_ranks(topology, 5, {Kind::listed, {6, 1}});
  EXPECT_EQ(cpus_of(wrapped), (std::vector<int>{6, 1, 6, 1, 6}));
  EXPECT_TRUE(wrapped.oversubscribed);
}

TEST(Explicit, BadListsSayWhatIsAllowed) {
  const Topology topology = Topology::flat({2, 3, 6}, false);
  const auto error_of = [&](std::vector<int> cpus) {
    const Placement placement = place_ranks(topology, 1, {Kind::listed, std::move(cpus)});
    EXPECT_TRUE(placement.ranks.empty());
    return placement.error;
  };
  EXPECT_EQ(error_of({3, 4}), "explicit placement \"3-4\": CPU 4 may not be used; allowed: 2-3,6");
  EXPECT_NE(error_of({-1}).find("CPU -1 may not be used"), std::string::npos);
  EXPECT_NE(error_of({2, 2}).find("CPU 2 is listed twice"), std::string::npos);
  EXPECT_NE(error_of({}).find("empty"), std::string::npos);
}

TEST(None, NobodyIsPinned) {
  const Placement placement = place_ranks(Topology::flat({0, 1}, false), 3, {Kind::none, {}});
  ASSERT_EQ(placement.ranks.size(), 3u);
  for (const RankPlace& place : placement.ranks) EXPECT_EQ(place, RankPlace{});
  EXPECT_TRUE(placement.oversubscribed);
  EXPECT_FALSE(place_ranks(Topology::flat({0, 1}, false), 2, {Kind::none, {}}).oversubscribed);
}

TEST(AnyPolicy, RanksMustBePositive) {
  for (Kind kind : {Kind::compact, Kind::scatter, Kind::one_per_node, Kind::listed, Kind::none}) {
    for (int ranks : {0, -1}) {
      const Placement placement = place_ranks(Topology::flat({0}, false), ranks, {kind, {0}});
      EXPECT_FALSE(placement.ok());
      EXPECT_NE(placement.error.find("allowed: 1 or more"), std::string::npos);
    }
  }
}

TEST(PolicyText, ReadsAndWrites) {
  EXPECT_EQ(parse_placement_policy("").policy, PlacementPolicy{});
  EXPECT_EQ(parse_placement_policy("0,2,4-7").policy,
            (PlacementPolicy{Kind::listed, {0, 2, 4, 5, 6, 7}}));
  for (const char* text : {"compact", "scatter", "one_per_node", "none", "0,2,4-7", "5,1"}) {
    const PolicyResult result = parse_placement_policy(text);
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(to_string(result.policy), text);
  }
  for (const char* text : {"Compact", "compact ", "close", "0,x", "3-1", "1,1", "-1"}) {
    const PolicyResult result = parse_placement_policy(text);
    EXPECT_FALSE(result.ok()) << text;
    EXPECT_NE(result.error.find("compact, scatter, one_per_node, none"), std::string::npos)
        << result.error;
    EXPECT_NE(result.error.find(text), std::string::npos) << result.error;
  }
}

}  // namespace
}  // namespace rankine
