// Topology and placement on machines whose parts are not alike: chosen ones, and random ones.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "numa/placement.h"
#include "tests/numa/odd_machine.h"

namespace rankine {
namespace {

using Kind = PlacementPolicy::Kind;

std::vector<int> cpus_of(const Placement& placement) {
  std::vector<int> cpus;
  for (const RankPlace& place : placement.ranks) cpus.push_back(place.cpu);
  return cpus;
}

// --- Chosen ones.

TEST(OddMachine, ANodeWithoutMemoryUsesItsNeighbours) {
  const Topology topology = make({.text = "pack:2 numa:2 core:2 pu:1", .without_memory = {1, 2}});
  EXPECT_EQ(topology.nodes().size(), 4U);
  EXPECT_EQ(topology.find_cpu(2)->numa_node, 0) << "the other node of its package";
  EXPECT_EQ(topology.find_cpu(4)->numa_node, 3);
  EXPECT_TRUE(topology.find_node(1)->cpus.empty());
  EXPECT_EQ(topology.find_node(0)->cpus, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(cpus_of(place_ranks(topology, 2, {Kind::one_per_node, {}})), (std::vector<int>{0, 4}));
  EXPECT_EQ(cpus_of(place_ranks(topology, 4, {Kind::scatter, {}})), (std::vector<int>{0, 4, 1, 5}));
}

TEST(OddMachine, APackageWithoutMemoryGoesToAnother) {
  const Topology topology = make({.text = "pack:2 numa:1 core:2 pu:1", .without_memory = {0}});
  for (const Cpu& cpu : topology.cpus()) EXPECT_EQ(cpu.numa_node, 1);
}

// Two sockets of two nodes, in a square whose sides are not equally long.
const std::vector<int> kSquare = {10, 12, 32, 22,  //
                                  12, 10, 22, 32,  //
                                  32, 22, 10, 12,  //
                                  22, 32, 12, 10};

TEST(OddMachine, DistancesAreThoseOfTheNodes) {
  const Topology topology = make({.text = "pack:2 numa:2 core:2 pu:1", .distances = kSquare});
  std::vector<int> all;
  for (const NumaNode& node : topology.nodes()) {
    all.insert(all.end(), node.distances.begin(), node.distances.end());
  }
  EXPECT_EQ(all, kSquare);
  for (const Cpu& cpu : topology.cpus()) EXPECT_EQ(cpu.numa_node, cpu.os_index / 2) << "its own";
  const Topology silent = make({.text = "pack:2 numa:2 core:2 pu:1"});
  for (const NumaNode& node : silent.nodes()) EXPECT_TRUE(node.distances.empty());
}

TEST(OddMachine, DistancesSayWhichNodeIsNearby) {
  const auto homes = [](const std::vector<int>& without_memory, const std::vector<int>& distances) {
    const Topology topology = make({.text = "pack:2 numa:2 core:2 pu:1",
                                    .without_memory = without_memory,
                                    .distances = distances});
    std::vector<int> nodes;
    for (int node = 0; node < 4; ++node) nodes.push_back(topology.find_cpu(2 * node)->numa_node);
    return nodes;
  };
  EXPECT_EQ(homes({1}, kSquare), (std::vector<int>{0, 0, 2, 3}));
  EXPECT_EQ(homes({0, 1}, kSquare), (std::vector<int>{3, 2, 2, 3})) << "along the shorter side";
  EXPECT_EQ(homes({0, 1}, {}), (std::vector<int>{2, 2, 2, 3})) << "not known: the first";
  EXPECT_EQ(homes({0, 1}, std::vector<int>(16, 10)), (std::vector<int>{2, 2, 2, 3})) << "all alike";
  // Nearer than what is on the same socket.
  EXPECT_EQ(homes({3}, {10, 20, 20, 20, 20, 10, 20, 20, 20, 20, 10, 20, 11, 20, 20, 10}),
            (std::vector<int>{0, 1, 2, 0}));
}

TEST(OddMachine, WhereNoSizeIsKnownEveryCpuHasItsOwnNode) {
  const Topology topology = make({.text = "numa:2 core:2 pu:1", .without_memory = {0, 1}});
  EXPECT_EQ(topology.find_cpu(0)->numa_node, 0);
  EXPECT_EQ(topology.find_cpu(3)->numa_node, 1);
}

TEST(OddMachine, ANodeWithoutCpusHasNoRanks) {
  const Topology topology = make({.text = "numa:3 core:2 pu:1", .without_cpus = {2, 3}});
  EXPECT_EQ(topology.nodes().size(), 3U);
  EXPECT_TRUE(topology.find_node(1)->cpus.empty());
  EXPECT_EQ(cpus_of(place_ranks(topology, 2, {Kind::one_per_node, {}})), (std::vector<int>{0, 4}));
  EXPECT_FALSE(place_ranks(topology, 3, {Kind::one_per_node, {}}).ok());
}

TEST(OddMachine, SmtOffOnSomeCores) {
  // Cores 0 (0, 1), 1 (2), 2 (5), 3 (6, 7).
  const Topology topology = make({.text = "core:4 pu:2", .without_cpus = {3, 4}});
  EXPECT_EQ(topology.cores(), 4);
  EXPECT_EQ(topology.find_cpu(5)->smt_index, 0) << "alone on its core";
  EXPECT_EQ(cpus_of(place_ranks(topology, 4)), (std::vector<int>{0, 2, 5, 6}));
  const Placement five = place_ranks(topology, 5);
  EXPECT_EQ(cpus_of(five), (std::vector<int>{0, 1, 2, 5, 6}));
  EXPECT_TRUE(five.ranks[0].core_shared);
  EXPECT_FALSE(five.ranks[2].core_shared);
}

TEST(OddMachine, UnequalCachesAreDealtUntilTheSmallerIsFull) {
  const Topology topology = make({.text = "l3:2 core:4 pu:1", .without_cpus = {1, 2, 3}});
  EXPECT_EQ(topology.l3_groups(), 2);
  EXPECT_EQ(cpus_of(place_ranks(topology, 5, {Kind::scatter, {}})),
            (std::vector<int>{0, 4, 5, 6, 7}));
}

TEST(OddMachine, FastCoresOfAHybridComeFirst) {
  // As in laptops: fast cores with siblings in front or behind, frugal ones without.
  const OddMachine machine{
      .text = "core:6 pu:2", .without_cpus = {5, 7, 9, 11}, .slow_cpus = {4, 6, 8, 10}};
  const Topology topology = make(machine);
  EXPECT_GT(topology.find_cpu(0)->speed, topology.find_cpu(4)->speed);
  for (const Kind kind : {Kind::compact, Kind::scatter}) {
    EXPECT_EQ(cpus_of(place_ranks(topology, 2, {kind, {}})), (std::vector<int>{0, 2}));
    EXPECT_EQ(cpus_of(place_ranks(topology, 4, {kind, {}})), (std::vector<int>{0, 2, 4, 6}))
        << "a frugal core is more than half of a fast one";
  }
  const Topology behind = make({.text = "core:3 pu:1", .slow_cpus = {0, 1}});
  EXPECT_EQ(cpus_of(place_ranks(behind, 1)), std::vector<int>{2});
  EXPECT_EQ(cpus_of(place_ranks(behind, 1, {Kind::one_per_node, {}})), std::vector<int>{2});
  EXPECT_EQ(make({.text = "core:3 pu:1"}).find_cpu(0)->speed, 0) << "all alike";
}

TEST(OddMachine, OneCpuIsLeft) {
  const Topology topology =
      make({.text = "pack:2 numa:2 l3:1 core:2 pu:2",
            .without_cpus = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15}});
  EXPECT_EQ(topology.os_cpus(), std::vector<int>{13});
  for (const Kind kind : {Kind::compact, Kind::scatter}) {
    EXPECT_EQ(cpus_of(place_ranks(topology, 3, {kind, {}})), (std::vector<int>{13, 13, 13}));
  }
}

// --- Random ones.

struct RandomMachine {
  OddMachine description;
  Topology topology = Topology::flat({}, false);
};

RandomMachine any_machine() {
  const auto up_to = [](int most) { return *rc::gen::inRange(1, most + 1); };
  const int packages = up_to(3), nodes = up_to(4), caches = up_to(2), cores = up_to(4),
            threads = up_to(3);
  OddMachine machine;
  machine.text = "pack:" + std::to_string(packages) + " numa:" + std::to_string(nodes) +
                 " l3:" + std::to_string(caches) + " core:" + std::to_string(cores) +
                 " pu:" + std::to_string(threads);
  const int cpus = packages * nodes * caches * cores * threads;
  const auto some_of = [](int count, int one_in) {
    std::vector<int> chosen;
    for (int i = 0; i < count; ++i) {
      if (*rc::gen::inRange(0, one_in) == 0) chosen.push_back(i);
    }
    return chosen;
  };
  machine.without_cpus = some_of(cpus, up_to(6) + 1);
  if (static_cast<int>(machine.without_cpus.size()) == cpus) machine.without_cpus.pop_back();
  machine.without_memory = some_of(packages * nodes, up_to(6) + 1);
  if (*rc::gen::inRange(0, 2) == 0) machine.slow_cpus = some_of(cpus, up_to(3));
  RandomMachine result{machine, make(machine)};
  RC_LOG() << machine.text << "; without CPUs " << rc::toString(machine.without_cpus)
           << "; without memory " << rc::toString(machine.without_memory) << "; slow "
           << rc::toString(machine.slow_cpus) << "\n";
  return result;
}

// Cores that are there, and that have a rank, over the values of `key`.
struct Use {
  int there = 0, used = 0;
  bool full() const { return used == there; }
};
std::map<int, Use> use_of(const Topology& topology, const Placement& placement, int Cpu::*key) {
  std::map<int, Use> use;
  std::set<int> busy;
  for (const RankPlace& place : placement.ranks) busy.insert(topology.find_cpu(place.cpu)->core);
  for (const Cpu& cpu : topology.cpus()) {
    if (cpu.smt_index != 0) continue;
    Use& here = use[cpu.*key];
    ++here.there;
    here.used += busy.count(cpu.core) != 0 ? 1 : 0;
  }
  return use;
}

// What holds for every policy that places ranks.
void check_seats(const Topology& topology, const Placement& placement) {
  std::map<int, int> on_core;
  for (const RankPlace& place : placement.ranks) {
    const Cpu* const cpu = topology.find_cpu(place.cpu);
    RC_ASSERT(cpu != nullptr);
    RC_ASSERT(place.node == cpu->numa_node);
    ++on_core[cpu->core];
  }
  for (const RankPlace& place : placement.ranks) {
    RC_ASSERT(place.core_shared == (on_core[topology.find_cpu(place.cpu)->core] > 1));
  }
}

RC_GTEST_PROP(AnyMachine, EveryCpuHasANodeWithMemoryWhereThereIsOne, ()) {
  const RandomMachine machine = any_machine();
  const Topology& topology = machine.topology;
  const auto& nodes = topology.nodes();
  const bool any = std::any_of(nodes.begin(), nodes.end(),
                               [](const NumaNode& node) { return node.memory_bytes > 0; });
  std::size_t cpus = 0;
  for (const Cpu& cpu : topology.cpus()) {
    const NumaNode* const node = topology.find_node(cpu.numa_node);
    RC_ASSERT(node != nullptr);
    RC_ASSERT(!any || node->memory_bytes > 0);
    RC_ASSERT(std::count(node->cpus.begin(), node->cpus.end(), cpu.os_index) == 1);
    const auto& gone = machine.description.without_cpus;
    RC_ASSERT(std::find(gone.begin(), gone.end(), cpu.os_index) == gone.end());
  }
  for (const NumaNode& node : nodes) cpus += node.cpus.size();
  RC_ASSERT(cpus == topology.cpus().size());
}

RC_GTEST_PROP(AnyMachine, RanksShareCoresOnlyWhenTheyMust, ()) {
  const RandomMachine machine = any_machine();
  const Topology& topology = machine.topology;
  const int cpus = static_cast<int>(topology.cpus().size());
  const int ranks = *rc::gen::inRange(1, 2 * cpus + 2);
  const Kind kind = *rc::gen::element(Kind::compact, Kind::scatter);
  const Placement placement = place_ranks(topology, ranks, {kind, {}});
  RC_ASSERT(placement.ok());
  RC_ASSERT(static_cast<int>(placement.ranks.size()) == ranks);
  RC_ASSERT(placement.oversubscribed == (ranks > cpus));
  check_seats(topology, placement);
  std::set<int> on_cpus, on_cores;
  for (const RankPlace& place : placement.ranks) {
    on_cpus.insert(place.cpu);
    on_cores.insert(topology.find_cpu(place.cpu)->core);
  }
  RC_ASSERT(static_cast<int>(on_cpus.size()) == std::min(ranks, cpus));
  RC_ASSERT(static_cast<int>(on_cores.size()) == std::min(ranks, topology.cores()));
}

RC_GTEST_PROP(AnyMachine, CompactFillsANodeBeforeTheNext, ()) {
  const RandomMachine machine = any_machine();
  const Topology& topology = machine.topology;
  const int ranks = *rc::gen::inRange(1, topology.cores() + 1);
  const Placement placement = place_ranks(topology, ranks);
  const auto use = use_of(topology, placement, &Cpu::numa_node);
  const auto begun = std::count_if(use.begin(), use.end(), [](const auto& entry) {
    return entry.second.used > 0 && !entry.second.full();
  });
  RC_ASSERT(begun <= 1);  // one node at most is neither empty nor full
  // Of a node's cores the fastest are taken.
  std::set<int> busy;
  for (const RankPlace& place : placement.ranks) busy.insert(topology.find_cpu(place.cpu)->core);
  for (const Cpu& used : topology.cpus()) {
    for (const Cpu& idle : topology.cpus()) {
      const bool compares = used.smt_index == 0 && idle.smt_index == 0 &&
                            used.numa_node == idle.numa_node && busy.count(used.core) != 0 &&
                            busy.count(idle.core) == 0;
      RC_ASSERT(!compares || idle.speed <= used.speed);
    }
  }
  // Neighbouring ranks are neighbours in the machine.
  const std::vector<int> order = topology.os_cpus();
  std::size_t last = 0;
  for (std::size_t r = 0; r < placement.ranks.size(); ++r) {
    const auto at = std::find(order.begin(), order.end(), placement.ranks[r].cpu) - order.begin();
    RC_ASSERT(r == 0 || static_cast<std::size_t>(at) > last);
    last = static_cast<std::size_t>(at);
  }
}

RC_GTEST_PROP(AnyMachine, ScatterIsEvenUntilAPartIsFull, ()) {
  const RandomMachine machine = any_machine();
  const Topology& topology = machine.topology;
  const int ranks = *rc::gen::inRange(1, topology.cores() + 1);
  const Placement placement = place_ranks(topology, ranks, {Kind::scatter, {}});
  // Packages among each other, nodes of one package, caches of one node in one package.
  const auto even = [](const std::map<int, Use>& parts) {
    for (const auto& [a, fewer] : parts) {
      for (const auto& [b, more] : parts) {
        if (!fewer.full() && more.used > fewer.used + 1) return false;
      }
    }
    return true;
  };
  RC_ASSERT(even(use_of(topology, placement, &Cpu::package)));
  std::map<int, std::set<int>> packages_of_node;
  for (const Cpu& cpu : topology.cpus()) packages_of_node[cpu.numa_node].insert(cpu.package);
  for (int package = 0; package < topology.packages(); ++package) {
    std::map<int, Use> nodes;
    for (const auto& [node, use] : use_of(topology, placement, &Cpu::numa_node)) {
      // A node that serves several packages is dealt to by each of them.
      if (packages_of_node[node] == std::set<int>{package}) nodes[node] = use;
    }
    RC_ASSERT(even(nodes));
  }
}

RC_GTEST_PROP(AnyMachine, OnePerNodeUsesEachNodeOnce, ()) {
  const RandomMachine machine = any_machine();
  const Topology& topology = machine.topology;
  const auto& all = topology.nodes();
  const int nodes = static_cast<int>(std::count_if(
      all.begin(), all.end(), [](const NumaNode& node) { return !node.cpus.empty(); }));
  const Placement placement = place_ranks(topology, nodes, {Kind::one_per_node, {}});
  RC_ASSERT(placement.ok());
  check_seats(topology, placement);
  std::set<int> used;
  for (const RankPlace& place : placement.ranks) used.insert(place.node);
  RC_ASSERT(static_cast<int>(used.size()) == nodes);
  RC_ASSERT(!place_ranks(topology, nodes + 1, {Kind::one_per_node, {}}).ok());
}

RC_GTEST_PROP(AnyMachine, AnExplicitListIsFollowed, ()) {
  const RandomMachine machine = any_machine();
  const Topology& topology = machine.topology;
  std::vector<int> list = topology.os_cpus();
  for (std::size_t i = list.size(); i > 1; --i) {
    std::swap(list[i - 1], list[*rc::gen::inRange<std::size_t>(0, i)]);
  }
  list.resize(*rc::gen::inRange<std::size_t>(1, list.size() + 1));
  const int ranks = *rc::gen::inRange(1, static_cast<int>(2 * list.size()) + 1);
  const Placement placement = place_ranks(topology, ranks, {Kind::listed, list});
  RC_ASSERT(placement.ok());
  check_seats(topology, placement);
  for (std::size_t r = 0; r < placement.ranks.size(); ++r) {
    RC_ASSERT(placement.ranks[r].cpu == list[r % list.size()]);
  }
}

}  // namespace
}  // namespace rankine
