// What a communicator takes: near whom it lies, and how much it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/api/network.h"
#include "engine/api/team.h"
#include "numa/system_calls.h"
#include "tests/engine/api/ranks.h"
#include "tests/numa/captured_warnings.h"
#include "tests/numa/noted_bindings.h"

namespace rankine {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// --- Where, on machines of several nodes.

// Two sockets with four nodes of eight cores of two threads: ranks of neighbouring nodes, spread.
std::vector<ArenaOptions> arenas_of(const PlacementPolicy& policy, int ranks) {
  const auto machine = Topology::synthetic("pack:2 numa:4 core:8 pu:2");
  EXPECT_TRUE(machine.ok()) << machine.error;
  const Placement placement = place_ranks(*machine.topology, ranks, policy);
  std::vector<ArenaOptions> arenas(placement.ranks.size());
  for (std::size_t r = 0; r < arenas.size(); ++r) arenas[r].node = placement.ranks[r].node;
  return arenas;
}

class MemoryOnEightNodes : public testing::TestWithParam<PlacementPolicy> {
 protected:
  MemoryOnEightNodes() { noted_bindings::forget(); }
  SystemCalls calls_ = noted_bindings::calls();
};

TEST_P(MemoryOnEightNodes, EveryRangeLiesWithItsRank) {
  constexpr int kRanks = 16;
  const std::vector<ArenaOptions> arenas = arenas_of(GetParam(), kRanks);
  ScopedSystemCalls scope(calls_);
  Ranks ranks({.ranks = kRanks, .arenas = arenas});
  for (const Status& status : ranks.run([&](Member& me) -> Status {
         std::vector<std::uint32_t> in(16 * kRanks), out(16 * kRanks);
         const std::span<const std::uint32_t> data(in);
         const auto payload = me.allocate<std::byte>(5000).value();
         noted_bindings::expect_on(arenas[static_cast<std::size_t>(me.rank())].node,
                                   {payload.span().data(), payload.span().size()}, "payload");
         // Small: mailboxes of all pairs. Swing takes scratch.
         Status first = me.all_to_all(data, std::span(out), {.transport = Transport::mailbox});
         if (!first.ok()) return first;
         return me.all_reduce(data, std::span(out), ReduceOp::sum,
                              {.algorithm = "swing_latency", .transport = Transport::direct});
       })) {
    EXPECT_TRUE(status.ok()) << status.text();
  }
  std::size_t scratch = 0;
  for (Rank r = 0; r < kRanks; ++r) {
    SCOPED_TRACE(r);
    const int node = arenas[static_cast<std::size_t>(r)].node;
    const RankMemory memory = ranks.communicator().memory_of(r);
    EXPECT_TRUE(memory.binding.enforced());
    EXPECT_EQ(memory.senders, kRanks - 1);
    EXPECT_FALSE(memory.mailboxes.ranges.empty());
    noted_bindings::expect_on(node, memory.lines.ranges, "lines");
    noted_bindings::expect_on(node, memory.mailboxes.ranges, "mailboxes");
    noted_bindings::expect_on(node, memory.scratch.ranges, "scratch");
    scratch += memory.scratch.bytes;
  }
  EXPECT_GT(scratch, 0U) << "else the test saw none";
}

INSTANTIATE_TEST_SUITE_P(Policies, MemoryOnEightNodes,
                         testing::Values(PlacementPolicy{PlacementPolicy::Kind::compact, {}},
                                         PlacementPolicy{PlacementPolicy::Kind::scatter, {}},
                                         PlacementPolicy{PlacementPolicy::Kind::listed,
                                                         {0, 127, 1, 16, 126, 33, 48, 64, 80, 96,
                                                          112, 2, 18, 34, 50, 66}}));

TEST(MemoryOnNodes, LinesShareNoPageAcrossNodesAndFewWithinOne) {
  ScopedSystemCalls scope(noted_bindings::calls());
  const auto pages_of = [](const Communicator& communicator, int ranks) {
    std::map<std::uintptr_t, std::vector<Rank>> pages;
    for (Rank r = 0; r < ranks; ++r) {
      const MemoryRange lines = communicator.memory_of(r).lines.ranges.front();
      const auto first = reinterpret_cast<std::uintptr_t>(lines.base);
      EXPECT_EQ(first / 4096, (first + lines.bytes - 1) / 4096) << "lines across a page's border";
      pages[first / 4096].push_back(r);
    }
    return pages;
  };
  {
    const auto arenas = arenas_of({PlacementPolicy::Kind::scatter, {}}, 64);
    const Ranks ranks({.ranks = 64, .arenas = arenas});
    EXPECT_EQ(pages_of(const_cast<Ranks&>(ranks).communicator(), 64).size(), 64U);
  }
  noted_bindings::forget();
  const std::vector<ArenaOptions> one(8, ArenaOptions{.node = 3});
  Ranks together({.ranks = 8, .arenas = one});
  EXPECT_EQ(pages_of(together.communicator(), 8).size(), 1U);
  noted_bindings::expect_on(3, together.communicator().memory_of(7).lines.ranges, "lines");
}

TEST(MemoryOnNodes, RefusedBindingIsReportedFromTheStart) {
  SystemCalls calls = real_system_calls();
  calls.mbind = [](void*, unsigned long, int, const unsigned long*, unsigned long,
                   unsigned) -> long {
    errno = EPERM;
    return -1;
  };
  calls.mlock2 = [](const void*, std::size_t, unsigned) {
    errno = ENOMEM;
    return -1;
  };
  ScopedSystemCalls scope(calls);
  CapturedWarnings captured;
  auto team = Team::create({.ranks = 2, .lock_memory = true});
  ASSERT_TRUE(team.ok()) << team.status().text();
  for (const RankReport& rank : (*team)->report()) {
    EXPECT_FALSE(rank.all_enforced());
    EXPECT_EQ(rank.binding.error, EPERM);
    EXPECT_EQ(rank.locking.error, ENOMEM);
  }
  std::byte* const staged = static_cast<std::byte*>((*team)->staging().allocate(10'000));
  ASSERT_NE(staged, nullptr);
  staged[9'999] = std::byte{1};
  EXPECT_TRUE((*team)->staging().binding().refused());
  EXPECT_TRUE((*team)->staging().locking().refused());
  const Status status = (*team)->run([](Member& me) {
    std::vector<float> x(1000, 1.0F);
    me.all_reduce(std::span(x)).throw_if_error();
    if (x[999] != 2.0F) throw std::runtime_error("wrong sum");
  });
  EXPECT_TRUE(status.ok()) << status.text();
  std::vector<std::string> keys;
  for (const auto& [key, text] : captured.lines) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys, (std::vector<std::string>{"numa.mbind", "numa.mlock"})) << "one warning each";
}

// A mailbox's slots are with its reader, who waits for them; its credit is with its writer.
TEST(MemoryOnNodes, SlotsAreWithTheReaderAndCreditWithTheWriter) {
  Ranks ranks({.ranks = 3});
  for (const Status& status : ranks.run([](Member& me) {
         std::uint32_t word = 7;
         return me.send_recv(std::span(&word, 1), 0, 1, {.transport = Transport::mailbox});
       })) {
    EXPECT_TRUE(status.ok()) << status.text();
  }
  const auto mailboxes = [&](Rank r) { return ranks.communicator().memory_of(r).mailboxes.bytes; };
  EXPECT_EQ(mailboxes(0), 4096U) << "a line of credit, in whole pages";
  EXPECT_GE(mailboxes(1), 16 * 1088U) << "the slots";
  EXPECT_EQ(mailboxes(2), 0U) << "takes no part";
}

// --- How much.

TEST(Memory, SixtyFourRanksTakeLessThanEightMebibytes) {
  auto team = Team::create({.ranks = 64});
  ASSERT_TRUE(team.ok()) << team.status().text();
  Communicator& communicator = (*team)->communicator();
  EXPECT_LT(communicator.memory_bytes(), 2 * kMiB) << "when made";
  for (const Collective collective : all_collectives()) {
    const Status status = (*team)->run([&](Member& me) {
      std::vector<std::uint32_t> in(2 * 64), out(2 * 64);
      const bool one_buffer =
          collective == Collective::broadcast || collective == Collective::send_recv;
      me.call({.collective = collective,
               .in = in.data(),
               .out = one_buffer ? in.data() : out.data(),
               .count = 2,
               .type = DataType::u32,
               .peer = 1})
          .throw_if_error();
    });
    ASSERT_TRUE(status.ok()) << name_of(collective) << ": " << status.text();
  }
  EXPECT_EQ(communicator.cached_plans(), static_cast<std::size_t>(kCollectives));
  EXPECT_EQ(communicator.memory_of(5).senders, 63) << "else the test saw no crowd";
  EXPECT_LT(communicator.memory_bytes(), 8 * kMiB) << "after 8 B of everything";
}

TEST(Memory, TablesByPeerAreForPeersThatThereAre) {
  const auto network = find_call_network("plain");
  ASSERT_TRUE(network.ok());
  const auto communicator =
      Communicator::create({.ranks = Communicator::kMaxOnNetwork, .network = *network});
  ASSERT_TRUE(communicator.ok()) << communicator.status().text();
  const auto tables = [&] { return (*communicator)->shared_memory().tables; };
  const std::size_t alone = tables();
  EXPECT_LT(alone, 16 * kMiB) << "a byte for each pair";
  auto member = (*communicator)->join(7);
  ASSERT_TRUE(member.ok());
  EXPECT_LT(tables() - alone, std::size_t{16} << 10) << "four bytes for each peer";
}

TEST(Memory, CountsEveryPart) {
  auto team = Team::create({.ranks = 3});
  ASSERT_TRUE(team.ok()) << team.status().text();
  Communicator& communicator = (*team)->communicator();
  const std::size_t idle = communicator.memory_bytes();
  EXPECT_EQ(communicator.shared_memory().plans, 0U);
  EXPECT_EQ(communicator.memory_of(1).mailboxes.bytes, 0U);
  const auto call = [&](std::size_t count, Transport transport) {
    const Status status = (*team)->run([&](Member& me) {
      std::vector<float> data(count);
      me.all_reduce(std::span(data), ReduceOp::sum, {.transport = transport}).throw_if_error();
    });
    ASSERT_TRUE(status.ok()) << status.text();
  };
  call(2, Transport::mailbox);
  const SharedMemory shared = communicator.shared_memory();
  EXPECT_GT(shared.plans, 0U);
  std::size_t sum = shared.plans + shared.flight_record + shared.tables;
  for (Rank r = 0; r < 3; ++r) {
    const RankMemory memory = communicator.memory_of(r);
    EXPECT_EQ(memory.senders, 2);
    EXPECT_GE(memory.mailboxes.bytes, 2 * 16 * std::size_t{64});
    sum += memory.lines.bytes + memory.mailboxes.bytes + memory.scratch.bytes;
  }
  EXPECT_EQ(communicator.memory_bytes(), sum);
  EXPECT_GT(sum, idle);
}

}  // namespace
}  // namespace rankine
