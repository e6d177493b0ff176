#include <numaif.h>
#include <sys/mman.h>

#include "numa/cpus.h"
#include "numa/memory.h"
#include "numa/placement.h"
#include "numa/system_calls.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

namespace rankine {
namespace {

TEST(ScopedSystemCalls, NestLikeAStack) {
  EXPECT_EQ(&system_calls(), &real_system_calls());
  SystemCalls first = real_system_calls();
  first.madvise = [](void*, std::size_t, int) { return 1; };
  SystemCalls second = first;
  second.madvise = [](void*, std::size_t, int) { return 2; };
  {
    ScopedSystemCalls outer(first);
    EXPECT_EQ(system_calls().madvise(nullptr, 0, 0), 1);
    {
      ScopedSystemCalls inner(second);
      EXPECT_EQ(system_calls().madvise(nullptr, 0, 0), 2);
    }
    EXPECT_EQ(system_calls().madvise(nullptr, 0, 0), 1);
  }
  EXPECT_EQ(&system_calls(), &real_system_calls());
}

constexpr char kSize[] = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
constexpr char kEnabled[] = "/sys/kernel/mm/transparent_hugepage/enabled";

TEST(Pages, HugePageSize) {
  TempTree tree;
  EXPECT_EQ(huge_page_bytes(tree.root()), 2u << 20) << "no file";
  tree.write(kSize, "33554432\n");
  EXPECT_EQ(huge_page_bytes(tree.root()), 32u << 20);
  for (const char* nonsense : {"0\n", "x\n", "3000000\n", "1024\n"}) {
    tree.write(kSize, nonsense);
    EXPECT_EQ(huge_page_bytes(tree.root()), 2u << 20) << nonsense;
  }
}

TEST(Pages, SwitchedOff) {
  TempTree tree;
  EXPECT_FALSE(huge_pages_switched_off(tree.root())) << "no word of the kernel";
  tree.write(kEnabled, "always [madvise] never\n");
  EXPECT_FALSE(huge_pages_switched_off(tree.root()));
  tree.write(kEnabled, "[always] madvise never\n");
  EXPECT_FALSE(huge_pages_switched_off(tree.root()));
  tree.write(kEnabled, "always madvise [never]\n");
  EXPECT_TRUE(huge_pages_switched_off(tree.root()));
}

// Requests for the place of pages, their results if the kernel refuses, and the actual place of
// pages.

constexpr std::size_t kPage = 4096;

// The record and the answers of the fakes. It is global because function pointers cannot capture.
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

// A machine with two sockets of four nodes, which stands for this machine.
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

// Page numbers: 0 and 1 are on node 0, 2 is on node 3, 3 is untouched, 4 is the page of zeroes.
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

// No fakes: this machine with its permissions.
TEST(ResidencyOf, ThisMachinesPages) {
  constexpr std::size_t kPages = 700;  // more than one request holds
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

TEST(CpuList, ReadsNumbersAndRanges) {
  EXPECT_EQ(parse_cpu_list("0,2,4-7").cpus, (std::vector<int>{0, 2, 4, 5, 6, 7}));
  EXPECT_EQ(parse_cpu_list("5").cpus, std::vector<int>{5});
  EXPECT_EQ(parse_cpu_list("3-3").cpus, std::vector<int>{3});
  EXPECT_EQ(parse_cpu_list("7,1").cpus, (std::vector<int>{7, 1})) << "the order written is kept";
  EXPECT_EQ(parse_cpu_list("0-8191").cpus.size(), 8192u);
}

TEST(CpuList, BadTextNamesThePart) {
  for (const char* text : {"", ",", "1,", ",1", "1,,2", "a", "1-", "-1", "--1", "4-2", "1-2-3",
                           " 1", "1 ", "0x1", "8192", "0-99999999999", "1.5", "+1"}) {
    const CpuList list = parse_cpu_list(text);
    EXPECT_FALSE(list.ok()) << '"' << text << '"';
    EXPECT_TRUE(list.cpus.empty()) << '"' << text << '"';
  }
  EXPECT_NE(parse_cpu_list("1,x,3").error.find("\"x\""), std::string::npos);
  EXPECT_NE(parse_cpu_list("0-3,2").error.find("CPU 2 is listed twice"), std::string::npos);
}

TEST(CpuList, FormatIsTheInverse) {
  for (const char* text : {"0", "0,2,4-7", "0-127", "7,1", "9,8,7", "0-1,5-6,3"}) {
    EXPECT_EQ(format_cpu_list(parse_cpu_list(text).cpus), text);
  }
  EXPECT_EQ(format_cpu_list({}), "");
}

constexpr char kV2Mount[] = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
constexpr char kV1Mount[] =
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "33 31 0:30 / /sys/fs/cgroup/cpuset rw,relatime shared:10 - cgroup cgroup rw,cpuset\n";

TEST(ParseCpuMax, Forms) {
  EXPECT_EQ(parse_cpu_max("200000 100000\n"), 2.0);
  EXPECT_EQ(parse_cpu_max("20000 100000"), 0.2);
  EXPECT_EQ(parse_cpu_max("150000"), 1.5) << "the period may be left out";
  for (const char* text :
       {"max 100000\n", "max", "", "\n", "x y", "100000 0", "0 100000", "-1 100000", "1 2 3",
        "100000 x", "1e5 100000", "99999999999999999999999 100000"}) {
    EXPECT_EQ(parse_cpu_max(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(ParseCfsQuota, Forms) {
  EXPECT_EQ(parse_cfs_quota("20000\n", "100000\n"), 0.2);
  EXPECT_EQ(parse_cfs_quota("300000", ""), 3.0);
  for (const char* quota : {"-1\n", "0", "", "max", "1 2"}) {
    EXPECT_EQ(parse_cfs_quota(quota, "100000"), std::nullopt) << '"' << quota << '"';
  }
  EXPECT_EQ(parse_cfs_quota("20000", "0"), std::nullopt);
  EXPECT_EQ(parse_cfs_quota("20000", "x"), std::nullopt);
}

TEST(ReadCpuQuota, TakesTheTightestAncestorThatIsSeen) {
  using Files = std::vector<std::pair<std::string, std::string>>;
  const std::string group = "/proc/self/cgroup", mounts = "/proc/self/mountinfo",
                    v2 = "/sys/fs/cgroup";
  const std::string v1 = "/sys/fs/cgroup/cpu,cpuacct", quota = "/cpu.cfs_quota_us",
                    period = "/cpu.cfs_period_us";
  const std::string subtree = "30 24 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
  const std::string unified =
      std::string(kV1Mount) + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  const Files inside = {{v2 + "/cpu.max", "300000 100000\n"},
                        {v2 + "/inner/cpu.max", "200000 100000\n"}};
  const auto with = [](Files files, const Files& more) {
    files.insert(files.end(), more.begin(), more.end());
    return files;
  };
  // clang-format off
  const Files three = {{group, "0::/a/b/c\n"}, {mounts, kV2Mount}, {v2 + "/a/cpu.max", "150000 100000\n"},
                       {v2 + "/a/b/cpu.max", "max 100000\n"}, {v2 + "/a/b/c/cpu.max", "800000 100000\n"}};
  const Files both = {{group, "1:cpu,cpuacct:/one\n0::/two\n"}, {mounts, unified},
                      {v1 + "/one" + quota, "300000\n"}, {v2 + "/unified/two/cpu.max", "200000 100000\n"}};
  struct Case {
    const char* what;
    Files files;
    std::optional<double> cores;
    std::string file = {};
  };
  const Case cases[] = {
      {"v2: an ancestor", three, 1.5, v2 + "/a/cpu.max"},
      {"v2: the group", with(three, {{v2 + "/a/b/c/cpu.max", "40000 100000\n"}}), 0.4},
      {"v2: the mount point itself counts", with(three, {{v2 + "/cpu.max", "10000 100000\n"}}), 0.1},
      {"no file at all", {{group, "0::/a\n"}, {mounts, kV2Mount}}, {}},
      {"no limit", {{group, "0::/a\n"}, {mounts, kV2Mount}, {v2 + "/a/cpu.max", "max 100000\n"}}, {}},
      {"garbage", {{group, "0::/a\n"}, {mounts, kV2Mount}, {v2 + "/a/cpu.max", "garbage\n"}}, {}},
      {"another group's limit", {{group, "0::/a\n"}, {mounts, kV2Mount}, {v2 + "/other/cpu.max", "10000 100000\n"}}, {}},
      {"v1: an ancestor",
       {{group, "9:name=systemd:/x\n4:cpuset:/wrong\n3:cpu,cpuacct:/a/b\n"}, {mounts, kV1Mount},
        {v1 + quota, "-1\n"}, {v1 + period, "100000\n"}, {v1 + "/a" + quota, "125000\n"}, {v1 + "/a" + period, "50000\n"},
        {v1 + "/a/b" + quota, "400000\n"}, {v1 + "/a/b" + period, "100000\n"}, {v2 + "/cpuset/wrong" + quota, "1000\n"}},
       2.5, v1 + "/a" + quota},
      {"both versions: v2", both, 2.0},
      {"both versions: v1", with(both, {{v1 + "/one" + quota, "100000\n"}}), 1.0},
      // A container without a cgroup namespace: the path is the host's, but the mount shows only
      // the container's part.
      {"a subtree", with(inside, {{group, "0::/docker/abc/inner\n"}, {mounts, subtree}}), 2.0},
      {"a common prefix of a name", with(inside, {{group, "0::/docker/abcdef/inner\n"}, {mounts, subtree}}), 3.0},
      {"outside of a subtree", with(inside, {{group, "0::/../outside\n"}, {mounts, subtree}}), 3.0},
      // The process has left the cgroup namespace that it sees.
      {"outside of the namespace",
       with(inside, {{group, "0::/../outside\n"}, {mounts, kV2Mount}, {"/sys/fs/outside/cpu.max", "100000 100000\n"}}), 3.0},
      {"an escaped mount point and the root group",
       {{group, "0::/\n"}, {mounts, "30 24 0:26 / /odd\\040place rw - cgroup2 cgroup2 rw\n"}, {"/odd place/cpu.max", "700000 100000\n"}},
       7.0},
      {"nothing", {}, {}},
      {"nonsense",
       {{group, "nonsense\n:\n::\n0:\n"}, {mounts, "x\n - \n1 2 3 4 5 - cgroup2\n" + std::string(kV2Mount)}}, {}},
  };
  // clang-format on
  for (const Case& c : cases) {
    const TempTree tree;
    for (const auto& [path, text] : c.files) tree.write(path, text);
    const std::optional<CpuQuota> found = read_cpu_quota(tree.root());
    ASSERT_EQ(found.has_value(), c.cores.has_value()) << c.what;
    if (!found) continue;
    EXPECT_EQ(found->cores, *c.cores) << c.what;
    EXPECT_TRUE(c.file.empty() || found->file == tree.root() + c.file)
        << c.what << ": " << found->file;
    EXPECT_EQ(cpu_budget(tree.root()).quota->cores, *c.cores) << c.what;
    EXPECT_FALSE(cpu_groups(tree.root()).empty()) << c.what;
  }
}

TEST(CombineCpuBudget, SmallerOneBindsAndSaysSo) {
  struct Case {
    CpuGrant granted;
    std::optional<double> quota;
    int cores, cpus;
    const char* why;
  };
  const Case cases[] = {
      {{8, 8}, {}, 8, 8, "8 cores: affinity mask (no CPU quota)"},
      {{8, 8}, 2.9, 2, 2, "2 cores: CPU quota 2.90 in F (affinity mask: 8)"},
      {{8, 8}, 0.2, 1, 1, "1 core: CPU quota 0.20 in F (affinity mask: 8)"},  // never 0
      {{2, 2}, 64.0, 2, 2, "2 cores: affinity mask (CPU quota: 64.00 in F)"},
      {{4, 4}, 4.0, 4, 4, nullptr},
      {{4, 4}, 1e18, 4, 4, nullptr},
      // Hardware threads are no cores.
      {{4, 8}, {}, 4, 8, "4 cores: affinity mask (8 hardware threads, no CPU quota)"},
      {{4, 8}, 6.5, 4, 6, "4 cores: affinity mask (8 hardware threads, CPU quota: 6.50 in F)"},
      {{4, 8}, 2.0, 2, 2, "2 cores: CPU quota 2.00 in F (affinity mask: 4, 8 hardware threads)"},
  };
  for (const Case& c : cases) {
    const CpuBudget budget = combine_cpu_budget(
        c.granted, c.quota ? std::optional(CpuQuota{*c.quota, "F"}) : std::nullopt);
    EXPECT_EQ(budget.cores, c.cores);
    EXPECT_EQ(budget.cpus, c.cpus);
    if (c.why != nullptr) {
      EXPECT_EQ(budget.why, c.why);
    }
  }
}

TEST(CountCores, SiblingsAreOneCore) {
  TempTree tree;
  const auto cpu = [&](int number, const char* file, const char* text) {
    tree.write("/sys/devices/system/cpu/cpu" + std::to_string(number) + "/topology/" + file, text);
  };
  cpu(0, "core_cpus_list", "0,4\n");
  cpu(4, "core_cpus_list", "0,4\n");
  cpu(1, "thread_siblings_list", "1,5\n");  // name in older kernels
  cpu(5, "thread_siblings_list", "1,5\n");
  cpu(2, "core_cpus_list", "2\n");  // its sibling is switched off
  const auto count = [&](const std::vector<int>& cpus) {
    const CpuGrant grant = count_cores(cpus, tree.root());
    return std::pair(grant.cores, grant.cpus);
  };
  EXPECT_EQ(count({0, 1, 2, 4, 5}), std::pair(3, 5));
  EXPECT_EQ(count({0, 4}), std::pair(1, 2));
  EXPECT_EQ(count({4, 5}), std::pair(2, 2)) << "one thread of each of two cores";
  EXPECT_EQ(count({2, 7, 8}), std::pair(3, 3)) << "nothing is told of 7 and 8";
  EXPECT_EQ(count({}), std::pair(1, 1));
}

TEST(CpuBudgetOfThisProcess, IsPlausible) {
  const CpuBudget budget = cpu_budget();
  EXPECT_GE(budget.cores, 1);
  EXPECT_LE(budget.cores, budget.affinity.cores);
  EXPECT_LE(budget.cores, budget.cpus);
  EXPECT_LE(budget.affinity.cores, budget.affinity.cpus);
  EXPECT_EQ(budget.affinity.cpus, static_cast<int>(allowed_cpus().size()));
}

TEST(CpuBudgetOfThisProcess, RefusedAffinityStillGivesACount) {
  SystemCalls calls = real_system_calls();
  calls.sched_getaffinity = [](pid_t, std::size_t, cpu_set_t*) {
    errno = EPERM;
    return -1;
  };
  ScopedSystemCalls scope(calls);
  EXPECT_TRUE(allowed_cpus().empty());
  EXPECT_GE(cpu_budget().cores, 1);
}

// Processes 7 and 8 are bound to CPUs 1 and 2, process 9 does not exist, and this process may use
// CPUs 0 and 1.
TEST(CpusAmong, CountsThoseOfAllProcessesOnce) {
  SystemCalls calls = real_system_calls();
  calls.sched_getaffinity = [](pid_t thread, std::size_t bytes, cpu_set_t* mask) {
    CPU_ZERO_S(bytes, mask);
    if (thread == 9) {
      errno = ESRCH;
      return -1;
    }
    if (thread == 0) CPU_SET_S(0, bytes, mask);
    CPU_SET_S(thread == 8 ? 2 : 1, bytes, mask);
    return 0;
  };
  ScopedSystemCalls scope(calls);
  TempTree tree;
  EXPECT_EQ(cpus_among({}, tree.root()), 2);
  EXPECT_EQ(cpus_among({7}, tree.root()), 2);
  EXPECT_EQ(cpus_among({7, 8}, tree.root()), 3);
  EXPECT_EQ(cpus_among({9, 8}, tree.root()), 3);
  tree.write("/proc/self/cgroup", "0::/\n");
  tree.write("/proc/self/mountinfo", kV2Mount);
  tree.write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(cpus_among({7, 8}, tree.root()), 2);
}

}  // namespace
}  // namespace rankine
