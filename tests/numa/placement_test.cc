#include <rapidcheck/gtest.h>

#include "numa/placement.h"
#include "numa/system_calls.h"
#include "tests/numa/fixtures.h"
#include "tests/numa/machines.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using Kind = PlacementPolicy::Kind;

Topology synthetic(const std::string& text) {
  TopologyResult result = Topology::synthetic(text);
  EXPECT_EQ(result.error, "");
  return result.ok() ? *result.topology : Topology::flat({}, false);
}

std::vector<int> cpus_of(const Placement& placement) {
  std::vector<int> cpus;
  for (const RankPlace& place : placement.ranks) cpus.push_back(place.cpu);
  return cpus;
}

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

TEST(Explicit, BadListsSayWhatIsAllowed) {
  const Topology topology = Topology::flat({2, 3, 6}, false);
  const auto error_of = [&](std::vector<int> cpus) {
    const Placement placement = place_ranks(topology, 1, {Kind::listed, std::move(cpus)});
    EXPECT_TRUE(placement.ranks.empty());
    return placement.error;
  };
  EXPECT_TRUE(error_of({3, 4}).starts_with("explicit placement \"3-4\": CPU 4 may not be used; "));
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
    }
  }
  const Placement too_many =
      place_ranks(synthetic("pack:2 [numa] [numa] core:2 pu:1"), 3, {Kind::one_per_node, {}});
  EXPECT_NE(too_many.error.find("3"), std::string::npos) << too_many.error;
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

std::vector<int> levels(const std::string& machine, int ranks, const std::string& policy = "") {
  const TopologyResult topology = Topology::synthetic(machine);
  EXPECT_EQ(topology.error, "");
  const PolicyResult parsed = parse_placement_policy(policy);
  EXPECT_EQ(parsed.error, "");
  return level_groups(*topology.topology, place_ranks(*topology.topology, ranks, parsed.policy));
}

using Sizes = std::vector<int>;
constexpr const char* kServer = "pack:2 numa:4 l3:2 core:4 pu:2";

TEST(LevelGroups, AreThoseInWhichNeighboursSit) {
  const struct {
    const char* machine;
    int ranks;
    const char* policy;
    Sizes groups;
  } cases[] = {
      {kServer, 64, "", {4, 8, 32}},
      {"pack:2 [numa] l3:4 core:8 pu:1", 64, "", {8, 32}},  // node is package
      {"numa:8 core:8 pu:1", 64, "", {8}},                  // no L3: the node's
      // The last group may have fewer.
      {kServer, 35, "", {4, 8, 32}},
      {kServer, 12, "", {4, 8}},
      {kServer, 6, "", {4}},
      {kServer, 4, "", {}},  // all in one group
      {"pu:1", 1, "", {}},
      // Only neighbours make a group.
      {kServer, 64, "scatter", {}},
      {kServer, 8, "one_per_node", {4}},             // four nodes make a package
      {"pack:2 core:4 pu:1", 6, "0,1,4,5,2,3", {}},  // comes back to the first
      {"pack:2 core:4 pu:1", 5, "0,1,2,4,5", {3}},
      {"pack:2 core:4 pu:1", 6, "0,4,5,6,1,2", {}},  // groups of 1, 3 and 2
      {"pack:2 core:4 pu:1", 5, "0,4,5,6,7", {}},    // groups of 1 and 4
      {"pack:2 core:2 pu:1", 8, "", {}},             // oversubscribed: starts again
      {kServer, 64, "none", {}},
      // Three ranks in the first L3 and two in the second: only the packages have equally many.
      {"pack:2 l3:2 core:3 pu:1", 8, "0,1,2,3,4,6,7,8", {5}},
      {"pack:2 l3:2 core:3 pu:1", 12, "", {3, 6}},
  };
  for (const auto& c : cases)
    EXPECT_EQ(levels(c.machine, c.ranks, c.policy), c.groups) << c.machine << c.ranks << c.policy;
}

// Topology and placement on machines with unequal parts: chosen ones and random ones.

// --- Chosen machines.

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

// Two sockets of two nodes, at the corners of a rectangle.
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
  // Node 0 is nearer to node 3 than the node on the same socket is.
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
  // Cores (with CPUs): 0 (0, 1), 1 (2), 2 (5), 3 (6, 7).
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
  // As in laptops: fast cores with siblings before or after slow cores without siblings.
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

// --- Random machines.

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

// The number of cores, and of cores with a rank, for each value of `key`.
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

// Checks the rules that hold for every placement policy.
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
  for (int r = cpus; r < ranks; ++r) {  // round-robin
    const auto at = [&](int rank) { return placement.ranks[static_cast<std::size_t>(rank)].cpu; };
    RC_ASSERT(at(r) == at(r - cpus));
  }
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
  RC_ASSERT(begun <= 1);  // at most one node is neither empty nor full
  // A node's fastest cores are used first.
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
  // The load is even among packages, among nodes of a package, and among caches of a node in a
  // package.
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
      // Skips a node that serves several packages, because each of them places ranks on it.
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
