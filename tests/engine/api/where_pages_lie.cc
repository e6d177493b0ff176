// Prints where pages lie on a machine with several memory nodes. The program makes teams over the
// nodes, lets every rank allocate payloads, lets a thread on the first CPU touch them first, calls
// collectives, and asks the kernel for the nodes of the pages of each rank's lines, mailboxes,
// scratch and payloads. Exit code 0 means that all pages lie on the requested nodes and the sums
// are right. third_party/numa_machine runs it on emulated machines.
#include <fmt/core.h>
#include <numa.h>
#include <numaif.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/team.h"
#include "numa/memory.h"
#include "numa/placement.h"
#include "numa/system_calls.h"
#include "numa/topology.h"

namespace rankine {
namespace {

constexpr std::size_t kSmall = 25, kLarge = 20'011;  // elements: by mailbox, by address
constexpr std::size_t kHuge = std::size_t{4} << 20;  // bytes: in huge pages if available

int failures = 0;

void expect(bool right, const std::string& what) {
  if (right) return;
  ++failures;
  fmt::print("WRONG: {}\n", what);
}

// The payloads that a rank keeps from run to run.
struct Held {
  Payload<std::uint32_t> small, large, sum, all;
  Payload<std::byte> huge;
};

void allocate(Member& me, Held& mine) {
  mine.small = me.allocate<std::uint32_t>(kSmall).value();
  mine.large = me.allocate<std::uint32_t>(kLarge).value();
  mine.sum = me.allocate<std::uint32_t>(kLarge).value();
  mine.all = me.allocate<std::uint32_t>(kLarge * static_cast<std::size_t>(me.ranks())).value();
  mine.huge = me.allocate<std::byte>(kHuge).value();
}

void fill(Held& payloads, Rank r) {
  const auto value = static_cast<std::uint32_t>(r + 1);
  for (const auto span : {payloads.small.span(), payloads.large.span()}) {
    std::fill(span.begin(), span.end(), value);
  }
  std::fill(payloads.sum.span().begin(), payloads.sum.span().end(), 0U);
  std::fill(payloads.all.span().begin(), payloads.all.span().end(), 0U);
  std::fill(payloads.huge.span().begin(), payloads.huge.span().end(), std::byte{1});
}

void call(Member& me, Held& mine) {
  const std::span<const std::uint32_t> large = mine.large.span();
  me.all_reduce(mine.small.span()).throw_if_error();
  me.all_reduce(mine.small.span(), ReduceOp::max, {.transport = Transport::mailbox})
      .throw_if_error();
  me.all_reduce(large, mine.sum.span()).throw_if_error();
  me.all_gather(large, mine.all.span()).throw_if_error();
  // This call uses scratch.
  me.all_reduce(large, mine.sum.span(), ReduceOp::sum,
                {.algorithm = "recursive_doubling", .transport = Transport::direct})
      .throw_if_error();
}

bool is_right(const Held& payloads, int ranks) {
  const auto total = static_cast<std::uint32_t>(ranks * (ranks + 1) / 2);
  const auto is_total = [&](std::uint32_t x) { return x == total; };
  const auto small = payloads.small.span(), sum = payloads.sum.span(), all = payloads.all.span();
  bool right = std::all_of(small.begin(), small.end(), is_total) &&
               std::all_of(sum.begin(), sum.end(), is_total);
  for (std::size_t i = 0; i < all.size(); ++i) right &= all[i] == i / kLarge + 1;
  return right;
}

// True if the kernel's policy for the page is this node and no other.
bool prefers(const void* page, int node) {
  struct bitmask* const nodes = numa_allocate_nodemask();
  int mode = -1;
  const bool told = get_mempolicy(&mode, nodes->maskp, nodes->size + 1, const_cast<void*>(page),
                                  MPOL_F_ADDR) == 0;
  const bool right = told && mode == MPOL_PREFERRED && numa_bitmask_weight(nodes) == 1 &&
                     numa_bitmask_isbitset(nodes, static_cast<unsigned>(node)) != 0;
  numa_bitmask_free(nodes);
  return right;
}

// `must`: at least one range must exist, otherwise the check is empty.
void check_part(Rank r, const RankPlace& place, const char* what,
                const std::vector<MemoryRange>& ranges, bool must) {
  const Residency where = residency_of(ranges);
  bool right = where.error == 0 && where.bytes_elsewhere(place.node) == 0 &&
               (!must || where.resident_bytes() > 0);
  for (const MemoryRange& range : ranges) right &= prefers(range.base, place.node);
  fmt::print("{:>4}  {:>3}  {:>4}  {:<10} {}{}\n", r, place.cpu, place.node, what, to_string(where),
             right ? "" : "  WRONG");
  if (!right) ++failures;
}

void check_staging(Team& team, const std::vector<RankReport>& report) {
  std::vector<int> nodes;
  for (const RankReport& rank : report) nodes.push_back(rank.place.node);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  const std::size_t share = 16 * page_bytes();
  const std::size_t bytes = nodes.size() * share;
  auto* const memory = static_cast<std::byte*>(team.staging().allocate(bytes, page_bytes()));
  std::fill(memory, memory + bytes, std::byte{1});
  const Residency where = residency_of(MemoryRange{memory, bytes});
  bool right = where.error == 0 && where.bytes_on_node.size() == nodes.size();
  for (const int node : nodes) {
    right &= where.bytes_on_node.contains(node) && where.bytes_on_node.at(node) == share;
  }
  fmt::print(" all    -     -  staging    {}{}\n", to_string(where), right ? "" : "  WRONG");
  if (!right) ++failures;
}

void check_team(const Topology& topology, int ranks, const PlacementPolicy& policy) {
  fmt::print("\n{} ranks, {}\nrank  cpu  node  what       pages lie on\n", ranks,
             to_string(policy));
  auto team = Team::create({.ranks = ranks,
                            .placement = policy,
                            .timeout = std::chrono::minutes(5),  // emulated cores are slow
                            .wait = WaitPolicy{.mode = WaitPolicy::Mode::park}});
  team.status().throw_if_error();
  std::vector<Held> payloads(static_cast<std::size_t>(ranks));
  const auto of = [&](Rank r) -> Held& { return payloads[static_cast<std::size_t>(r)]; };
  (*team)->run([&](Member& me) { allocate(me, of(me.rank())); }).throw_if_error();
  // The first touch is on a CPU of a different node than most payloads.
  std::thread([&] {
    expect(pin_calling_thread(topology.cpus().front().os_index).enforced(), "not pinned");
    for (Rank r = 0; r < ranks; ++r) fill(of(r), r);
  }).join();
  (*team)->run([&](Member& me) { call(me, of(me.rank())); }).throw_if_error();

  const std::vector<RankReport> report = (*team)->report();
  for (Rank r = 0; r < ranks; ++r) {
    const RankReport& rank = report[static_cast<std::size_t>(r)];
    const RankMemory memory = (*team)->communicator().memory_of(r);
    expect(rank.pin.enforced() && rank.binding.enforced(), to_string(rank));
    expect(is_right(of(r), ranks), fmt::format("the data of rank {}", r));
    check_part(r, rank.place, "lines", memory.lines.ranges, true);
    check_part(r, rank.place, "mailboxes", memory.mailboxes.ranges, ranks > 1);
    check_part(r, rank.place, "scratch", memory.scratch.ranges, false);
    check_part(r, rank.place, "payloads", memory.payloads.ranges, true);
  }
  check_staging(**team, report);
}

// Prints hwloc's view of the machine and checks that libnuma agrees.
void check_nodes(const Topology& topology) {
  fmt::print("{}\n", topology.summary());
  for (const NumaNode& node : topology.nodes()) {
    fmt::print("node {}: {} MiB, {} CPUs, distances", node.os_index, node.memory_bytes >> 20,
               node.cpus.size());
    for (const int distance : node.distances) fmt::print(" {}", distance);
    fmt::print("\n");
    const auto bytes =
        static_cast<std::uint64_t>(std::max(0LL, numa_node_size64(node.os_index, nullptr)));
    expect(bytes == node.memory_bytes, fmt::format("libnuma says {} MiB", bytes >> 20));
    for (std::size_t to = 0; to < node.distances.size(); ++to) {
      const int distance = numa_distance(node.os_index, topology.nodes()[to].os_index);
      expect(distance == node.distances[to], fmt::format("libnuma says {}", distance));
    }
  }
}

int check_all(std::size_t least_nodes) {
  const Topology topology = Topology::detect();
  check_nodes(topology);
  std::size_t usable = 0;
  for (const NumaNode& node : topology.nodes()) usable += node.cpus.empty() ? 0 : 1;
  expect(usable >= least_nodes,
         fmt::format("{} nodes have CPUs and memory; {} were asked for", usable, least_nodes));
  const int cpus = static_cast<int>(topology.cpus().size());
  check_team(topology, cpus, {PlacementPolicy::Kind::compact, {}});
  check_team(topology, (cpus + 1) / 2, {PlacementPolicy::Kind::scatter, {}});
  check_team(topology, static_cast<int>(usable), {PlacementPolicy::Kind::one_per_node, {}});
  fmt::print("\n{}\n", failures == 0 ? "everything lies where it was asked for"
                                     : fmt::format("{} things are wrong", failures));
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rankine

int main(int argc, char** argv) {
  CLI::App app("Where the pages of ranks and of their payloads lie");
  std::size_t least_nodes = 1;
  bool ignore_binding = false;
  app.add_option("--nodes", least_nodes, "nodes with CPUs and memory that there must be")
      ->check(CLI::PositiveNumber);
  app.add_flag("--ignore-binding", ignore_binding,
               "as under a kernel that says yes and does nothing: this must fail");
  CLI11_PARSE(app, argc, argv);
  rankine::SystemCalls calls = rankine::real_system_calls();
  if (ignore_binding) {
    calls.mbind = [](void*, unsigned long, int, const unsigned long*, unsigned long,
                     unsigned) -> long { return 0; };
  }
  const rankine::ScopedSystemCalls scope(calls);
  try {
    return rankine::check_all(least_nodes);
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
    return 1;
  }
}
