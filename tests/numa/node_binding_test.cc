// Wishes about where pages lie, what comes of them where the kernel refuses, and finding out.
#include "numa/memory.h"

#include <gtest/gtest.h>
#include <numaif.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "numa/memory.h"
#include "numa/placement.h"
#include "numa/system_calls.h"
#include "tests/numa/captured_warnings.h"
#include "tests/numa/scoped_env.h"

namespace rankine {
namespace {

constexpr std::size_t kPage = 4096;

// What the fakes saw, and what they answer. Function pointers cannot capture.
struct Seen {
  int calls = 0;
  int error = 0;  // 0: granted
  int mode = -1;
  std::vector<int> nodes;
  unsigned flags = 0;
} seen;

long answering_mbind(void*, unsigned long, int mode, const unsigned long* mask,
                     unsigned long max_node, unsigned) {
  ++seen.calls;
  seen.mode = mode;
  seen.nodes.clear();
  EXPECT_EQ(max_node, static_cast<unsigned long>(kMaxNodes) + 1);
  for (int node = 0; node < kMaxNodes; ++node) {
    if ((mask[node / 64] >> (node % 64) & 1U) != 0) seen.nodes.push_back(node);
  }
  errno = seen.error;
  return seen.error == 0 ? 0 : -1;
}

int answering_mlock2(const void*, std::size_t, unsigned flags) {
  ++seen.calls;
  seen.flags = flags;
  errno = seen.error;
  return seen.error == 0 ? 0 : -1;
}

NodeSet nodes_of(std::initializer_list<int> numbers) {
  NodeSet nodes;
  for (const int node : numbers) nodes.set(static_cast<std::size_t>(node));
  return nodes;
}

class NodeBinding : public testing::Test {
 protected:
  NodeBinding() : scope_(faked()) { seen = {}; }

  static SystemCalls faked() {
    SystemCalls calls = real_system_calls();
    calls.mbind = answering_mbind;
    calls.mlock2 = answering_mlock2;
    return calls;
  }
  CapturedWarnings captured_;
  ScopedSystemCalls scope_;
};

TEST_F(NodeBinding, AsksForWhatIsWanted) {
  alignas(kPage) static char memory[2 * kPage];
  EXPECT_TRUE(prefer_node(memory, kPage, 1023).enforced());
  EXPECT_EQ(seen.mode, MPOL_PREFERRED);
  EXPECT_EQ(seen.nodes, std::vector<int>{1023});
  EXPECT_TRUE(interleave_over(memory, kPage, nodes_of({0, 3, 64, 700})).enforced());
  EXPECT_EQ(seen.mode, MPOL_INTERLEAVE);
  EXPECT_EQ(seen.nodes, (std::vector<int>{0, 3, 64, 700}));
  EXPECT_TRUE(lock_in_memory(memory, kPage).enforced());
  EXPECT_EQ(seen.flags, static_cast<unsigned>(MLOCK_ONFAULT)) << "or locking would place the pages";
  EXPECT_TRUE(captured_.lines.empty());
}

TEST_F(NodeBinding, NothingToInterleaveOverIsRefusedWithoutAsking) {
  alignas(kPage) static char memory[kPage];
  EXPECT_EQ(interleave_over(memory, kPage, {}).error, EINVAL);
  EXPECT_EQ(prefer_node(memory, kPage, kMaxNodes).error, EINVAL);
  EXPECT_EQ(prefer_node(memory, kPage, -1).error, EINVAL);
  EXPECT_EQ(seen.calls, 0);
}

TEST_F(NodeBinding, EveryRefusalLeavesUsableMemoryAndOneWarning) {
  for (const int error : {EPERM, EINVAL, ENOMEM, ENOSYS}) {
    SCOPED_TRACE(error);
    seen.error = error;
    forget_warnings();
    captured_.lines.clear();
    for (int i = 0; i < 3; ++i) {
      ArenaOptions options;
      options.chunk_bytes = options.max_chunk_bytes = kPage;
      options.interleave = nodes_of({0, 1});
      options.lock = true;
      Arena arena(options);
      for (int chunk = 0; chunk < 3; ++chunk) {
        void* const p = arena.allocate(kPage);
        ASSERT_NE(p, nullptr);
        std::memset(p, 1, kPage);
      }
      EXPECT_TRUE(arena.binding().refused());
      EXPECT_EQ(arena.binding().error, error);
      EXPECT_NE(arena.binding().why().find("memory not interleaved: mbind: "),
                std::string_view::npos);
      EXPECT_TRUE(arena.locking().refused());
      EXPECT_EQ(arena.locking().error, error);
      EXPECT_NE(arena.locking().why().find(std::strerror(error)), std::string_view::npos);
    }
    std::set<std::string> keys;
    for (const auto& [key, text] : captured_.lines) keys.insert(key);
    EXPECT_EQ(keys, (std::set<std::string>{"numa.mbind", "numa.mlock"}));
    EXPECT_EQ(captured_.lines.size(), 2U) << "one each";
  }
}

TEST_F(NodeBinding, AnArenaInterleavesEveryChunkAndForgetsItsNode) {
  ArenaOptions options;
  options.chunk_bytes = options.max_chunk_bytes = kPage;
  options.node = 5;
  options.interleave = nodes_of({1, 2});
  Arena arena(options);
  for (int chunk = 1; chunk <= 3; ++chunk) {
    ASSERT_NE(arena.allocate(kPage), nullptr);
    EXPECT_EQ(seen.calls, chunk);
    EXPECT_EQ(seen.mode, MPOL_INTERLEAVE);
    EXPECT_EQ(seen.nodes, (std::vector<int>{1, 2}));
  }
  EXPECT_TRUE(arena.binding().enforced());
  EXPECT_EQ(arena.locking().state, Enforcement::State::not_asked);
  EXPECT_EQ(arena.chunks().size(), 3U);
}

// A machine with two sockets of four nodes, as if it were ours.
Topology two_by_four() {
  SystemCalls calls = real_system_calls();
  calls.sched_getaffinity = [](pid_t, std::size_t bytes, cpu_set_t* mask) {
    CPU_ZERO_S(bytes, mask);
    for (std::size_t cpu = 0; cpu < 128; ++cpu) CPU_SET(cpu, mask);
    return 0;
  };
  ScopedSystemCalls scope(calls);
  ScopedEnv machine("HWLOC_SYNTHETIC", "pack:2 numa:4 core:8 pu:2");
  ScopedEnv claim("HWLOC_THISSYSTEM", "1");
  Topology topology = Topology::detect();
  EXPECT_EQ(topology.nodes().size(), 8U);
  EXPECT_TRUE(topology.is_this_system());
  return topology;
}

TEST(InterleavedOptions, NameTheNodesInUse) {
  const Topology topology = two_by_four();
  const auto nodes_for = [&](int ranks, PlacementPolicy::Kind kind) {
    const ArenaOptions options =
        interleaved_options(topology, place_ranks(topology, ranks, {kind, {}}).ranks);
    EXPECT_FALSE(options.huge_pages);
    EXPECT_EQ(options.node, kAnyNode);
    return options.interleave;
  };
  EXPECT_EQ(nodes_for(8, PlacementPolicy::Kind::compact), nodes_of({0}));
  EXPECT_EQ(nodes_for(17, PlacementPolicy::Kind::compact), nodes_of({0, 1, 2}));
  EXPECT_EQ(nodes_for(2, PlacementPolicy::Kind::scatter), nodes_of({0, 4}));
  EXPECT_EQ(nodes_for(8, PlacementPolicy::Kind::one_per_node), nodes_of({0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_TRUE(nodes_for(3, PlacementPolicy::Kind::none).none());
}

TEST(InterleavedOptions, NothingIsBoundByAForeignDescription) {
  const auto foreign = Topology::synthetic("numa:2 core:2 pu:1");
  ASSERT_TRUE(foreign.ok());
  EXPECT_TRUE(interleaved_options(*foreign.topology, place_ranks(*foreign.topology, 4).ranks)
                  .interleave.none());
  const Topology flat = Topology::flat({0, 1}, true);
  EXPECT_TRUE(interleaved_options(flat, place_ranks(flat, 2).ranks).interleave.none());
}

// --- Where pages lie.

// Pages by their number: 0 and 1 on node 0, 2 on node 3, 3 untouched, 4 the page of zeroes.
long telling_move_pages(int process, unsigned long count, void** pages, const int* nodes,
                        int* status, int) {
  EXPECT_EQ(process, 0);
  EXPECT_EQ(nodes, nullptr) << "to ask, not to move";
  for (unsigned long i = 0; i < count; ++i) {
    const auto page = reinterpret_cast<std::uintptr_t>(pages[i]) / kPage % 8;
    status[i] = page < 2 ? 0 : (page == 2 ? 3 : (page == 3 ? -ENOENT : -EFAULT));
  }
  return 0;
}

TEST(ResidencyOf, CountsPagesByNode) {
  SystemCalls calls = real_system_calls();
  calls.move_pages = telling_move_pages;
  ScopedSystemCalls scope(calls);
  alignas(8 * kPage) static char memory[8 * kPage];
  const Residency all = residency_of(MemoryRange{memory, 5 * kPage});
  EXPECT_EQ(all.bytes_on_node, (std::map<int, std::size_t>{{0, 2 * kPage}, {3, kPage}}));
  EXPECT_EQ(all.untouched_bytes, 2 * kPage);
  EXPECT_EQ(all.resident_bytes(), 3 * kPage);
  EXPECT_EQ(to_string(all), "node 0: 8 KiB, node 3: 4 KiB, 8 KiB untouched");
  const Residency part = residency_of(MemoryRange{memory + kPage + 100, kPage});
  EXPECT_EQ(part.bytes_on_node, (std::map<int, std::size_t>{{0, kPage}, {3, kPage}}))
      << "both pages that it touches";
  Residency sum = part;
  sum.add(all);
  EXPECT_EQ(sum.resident_bytes(), 5 * kPage);
  EXPECT_EQ(sum.bytes_elsewhere(0), 2 * kPage);
  EXPECT_EQ(sum.bytes_elsewhere(3), 3 * kPage);
  EXPECT_EQ(sum.bytes_elsewhere(7), 5 * kPage);
  const std::vector<MemoryRange> both = {{memory + kPage + 100, kPage}, {memory, 5 * kPage}};
  EXPECT_EQ(to_string(residency_of(both)), to_string(sum));
  EXPECT_EQ(to_string(residency_of(MemoryRange{memory, 0})), "nothing");
}

TEST(ResidencyOf, AKernelThatDoesNotTell) {
  SystemCalls calls = real_system_calls();
  calls.move_pages = [](int, unsigned long, void**, const int*, int*, int) -> long {
    errno = EPERM;
    return -1;
  };
  ScopedSystemCalls scope(calls);
  char byte = 0;
  const Residency where = residency_of(MemoryRange{&byte, 1});
  EXPECT_EQ(where.error, EPERM);
  EXPECT_EQ(to_string(where), "unknown: move_pages: Operation not permitted");
}

// No fakes: whatever this machine allows.
TEST(ResidencyOf, ThisMachinesPages) {
  constexpr std::size_t kPages = 700;  // more than are asked for at once
  ArenaOptions options;
  options.huge_pages = false;
  options.chunk_bytes = kPages * page_bytes();
  Arena arena(options);
  char* const memory = static_cast<char*>(arena.allocate(options.chunk_bytes));
  ASSERT_NE(memory, nullptr);
  const Residency before = residency_of(arena.chunks().front());
  if (before.error != 0) GTEST_SKIP() << to_string(before);
  EXPECT_EQ(before.resident_bytes(), 0U);
  EXPECT_EQ(before.untouched_bytes, kPages * page_bytes());
  for (std::size_t page = 0; page < kPages; page += 2) memory[page * page_bytes()] = 1;
  const Residency after = residency_of(MemoryRange{memory, options.chunk_bytes});
  EXPECT_GE(after.resident_bytes(), kPages / 2 * page_bytes());
  EXPECT_EQ(after.resident_bytes() + after.untouched_bytes, kPages * page_bytes());
}

}  // namespace
}  // namespace rankine
