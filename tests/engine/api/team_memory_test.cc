// For which nodes a team asks: where its ranks go, and their lines, mailboxes, scratch and
// payloads, on machines of several memory nodes, whole ones and odd ones, that need not be here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/api/team.h"
#include "tests/numa/captured_warnings.h"
#include "tests/numa/pretended_machine.h"

namespace rankine {
namespace {

const PlacementPolicy kCompact{PlacementPolicy::Kind::compact, {}};
const PlacementPolicy kScatter{PlacementPolicy::Kind::scatter, {}};
const PlacementPolicy kOnePerNode{PlacementPolicy::Kind::one_per_node, {}};
const PlacementPolicy kInOrder{PlacementPolicy::Kind::listed,
                               {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};

// Two sockets of four nodes of two cores: CPUs 2n and 2n + 1 are node n's.
constexpr char kTwoByFour[] = "pack:2 numa:4 core:2 pu:1";

// Of a team that is made there: rank r should be on a CPU whose memory is on node nodes[r].
void expect_memory_on(const std::vector<int>& nodes, const OddMachine& machine,
                      const PlacementPolicy& policy) {
  const PretendedMachine pretended(machine);
  CapturedWarnings captured;
  const int n = static_cast<int>(nodes.size());
  // Ranks sleep while they wait: the cores are pretended, too.
  auto team = Team::create(
      {.ranks = n, .placement = policy, .wait = WaitPolicy{.mode = WaitPolicy::Mode::park}});
  ASSERT_TRUE(team.ok()) << team.status().text();
  const Status status = (*team)->run([&](Member& me) {
    const int node = nodes[static_cast<std::size_t>(me.rank())];
    const std::size_t blocks = static_cast<std::size_t>(n) * 16;
    auto in = me.allocate<std::uint32_t>(blocks).value();
    auto out = me.allocate<std::uint32_t>(blocks).value();
    auto large = me.allocate<std::byte>(std::size_t{5} << 20).value();
    noted_bindings::expect_on(node, {in.span().data(), in.span().size_bytes()}, "in");
    noted_bindings::expect_on(node, {out.span().data(), out.span().size_bytes()}, "out");
    noted_bindings::expect_on(node, {large.span().data(), large.span().size()}, "large");
    // Mailboxes of all pairs, and scratch.
    const std::span<const std::uint32_t> data = in.span();
    me.all_to_all(data, out.span(), {.transport = Transport::mailbox}).throw_if_error();
    me.all_reduce(data, out.span(), ReduceOp::sum,
                  {.algorithm = "recursive_doubling", .transport = Transport::direct})
        .throw_if_error();
    const RankMemory memory = (*team)->communicator().memory_of(me.rank());
    EXPECT_EQ(memory.payloads.ranges.size(), 3U);
    noted_bindings::expect_on(node, memory.payloads.ranges, "payloads");
  });
  EXPECT_TRUE(status.ok()) << status.text();
  const std::vector<RankReport> report = (*team)->report();
  std::size_t scratch = 0;
  std::vector<int> used;
  for (Rank r = 0; r < n; ++r) {
    SCOPED_TRACE(r);
    const int node = nodes[static_cast<std::size_t>(r)];
    const RankReport& rank = report[static_cast<std::size_t>(r)];
    EXPECT_EQ(rank.place.node, node);
    EXPECT_TRUE(rank.pin.enforced());
    EXPECT_TRUE(rank.all_enforced()) << to_string(rank);
    const RankMemory memory = (*team)->communicator().memory_of(r);
    EXPECT_FALSE(memory.mailboxes.ranges.empty());
    noted_bindings::expect_on(node, memory.lines.ranges, "lines");
    noted_bindings::expect_on(node, memory.mailboxes.ranges, "mailboxes");
    noted_bindings::expect_on(node, memory.scratch.ranges, "scratch");
    scratch += memory.scratch.bytes;
    used.push_back(node);
  }
  EXPECT_GT(scratch, 0U) << "else the test saw none";
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  EXPECT_EQ(noted_bindings::nodes_of((*team)->staging().allocate(1)), used);
  EXPECT_TRUE(captured.lines.empty());
}

TEST(TeamMemory, TwoSocketsOfFourNodes) {
  const OddMachine machine{.text = kTwoByFour};
  expect_memory_on({0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7}, machine, kCompact);
  expect_memory_on({0, 0, 1}, machine, kCompact);
  expect_memory_on({0, 4, 1, 5, 2, 6, 3, 7, 0, 4}, machine, kScatter);
  expect_memory_on({0, 1, 2, 3, 4, 5, 6, 7}, machine, kOnePerNode);
}

TEST(TeamMemory, NodesWithoutCpusHaveNoRanks) {
  const OddMachine machine{.text = kTwoByFour, .without_cpus = {2, 3, 8, 9, 15}};
  expect_memory_on({0, 0, 2, 2, 3, 3, 5, 5, 6, 6, 7}, machine, kCompact);
  expect_memory_on({0, 5, 2, 6, 3, 7}, machine, kScatter);
  expect_memory_on({0, 2, 3, 5, 6, 7}, machine, kOnePerNode);
}

TEST(TeamMemory, RanksOnNodesWithoutMemoryHaveItNearby) {
  const OddMachine machine{.text = kTwoByFour, .without_memory = {1, 2, 7}};
  expect_memory_on({0, 0, 0, 0, 0, 0, 3, 3, 4, 4, 5, 5, 6, 6, 4, 4}, machine, kInOrder);
}

// The same, where the firmware says who is near whom: node 1 is next to 3, and 7 to node 0 of the
// other socket.
TEST(TeamMemory, NearbyIsWhatTheFirmwareSays) {
  OddMachine machine{.text = kTwoByFour, .without_memory = {1, 2, 7}};
  for (int from = 0; from < 8; ++from) {
    for (int to = 0; to < 8; ++to) {
      const bool same_socket = from / 4 == to / 4;
      const bool linked = (from == 1 && to == 3) || (from == 7 && to == 0);
      machine.distances.push_back(from == to ? 10 : (linked ? 11 : (same_socket ? 12 : 32)));
    }
  }
  expect_memory_on({0, 0, 3, 3, 0, 0, 3, 3, 4, 4, 5, 5, 6, 6, 0, 0}, machine, kInOrder);
}

}  // namespace
}  // namespace rankine
