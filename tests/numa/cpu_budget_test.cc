#include "numa/cpus.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "numa/cpus.h"
#include "numa/system_calls.h"
#include "tests/numa/temp_tree.h"

namespace rankine {
namespace {

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

TEST(ReadCpuQuota, V2TakesTheTightestAncestor) {
  TempTree tree;
  tree.write("/proc/self/cgroup", "0::/a/b/c\n");
  tree.write("/proc/self/mountinfo", kV2Mount);
  tree.write("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  tree.write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  tree.write("/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
  const std::optional<CpuQuota> quota = read_cpu_quota(tree.root());
  ASSERT_TRUE(quota);
  EXPECT_EQ(quota->cores, 1.5);
  EXPECT_EQ(quota->file, tree.root() + "/sys/fs/cgroup/a/cpu.max");
  const std::vector<CpuGroup> groups = cpu_groups(tree.root());
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].folder, tree.root() + "/sys/fs/cgroup/a/b/c");
  EXPECT_TRUE(groups[0].v2);

  tree.write("/sys/fs/cgroup/a/b/c/cpu.max", "40000 100000\n");
  EXPECT_EQ(read_cpu_quota(tree.root())->cores, 0.4);
  tree.write("/sys/fs/cgroup/cpu.max", "10000 100000\n");
  EXPECT_EQ(read_cpu_quota(tree.root())->cores, 0.1) << "the mount point itself counts";
}

TEST(ReadCpuQuota, V2WithoutLimit) {
  TempTree tree;
  tree.write("/proc/self/cgroup", "0::/a\n");
  tree.write("/proc/self/mountinfo", kV2Mount);
  EXPECT_FALSE(read_cpu_quota(tree.root())) << "no file at all";
  tree.write("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_FALSE(read_cpu_quota(tree.root()));
  tree.write("/sys/fs/cgroup/a/cpu.max", "garbage\n");
  EXPECT_FALSE(read_cpu_quota(tree.root()));
  tree.write("/sys/fs/cgroup/other/cpu.max", "10000 100000\n");
  EXPECT_FALSE(read_cpu_quota(tree.root())) << "a stranger's limit is not ours";
}

TEST(ReadCpuQuota, V1TakesTheTightestAncestor) {
  TempTree tree;
  tree.write("/proc/self/cgroup", "9:name=systemd:/x\n4:cpuset:/wrong\n3:cpu,cpuacct:/a/b\n");
  tree.write("/proc/self/mountinfo", kV1Mount);
  const std::string cpu = "/sys/fs/cgroup/cpu,cpuacct";
  tree.write(cpu + "/cpu.cfs_quota_us", "-1\n");
  tree.write(cpu + "/cpu.cfs_period_us", "100000\n");
  tree.write(cpu + "/a/cpu.cfs_quota_us", "125000\n");
  tree.write(cpu + "/a/cpu.cfs_period_us", "50000\n");
  tree.write(cpu + "/a/b/cpu.cfs_quota_us", "400000\n");
  tree.write(cpu + "/a/b/cpu.cfs_period_us", "100000\n");
  tree.write("/sys/fs/cgroup/cpuset/wrong/cpu.cfs_quota_us", "1000\n");
  const std::optional<CpuQuota> quota = read_cpu_quota(tree.root());
  ASSERT_TRUE(quota);
  EXPECT_EQ(quota->cores, 2.5);
  EXPECT_EQ(quota->file, tree.root() + cpu + "/a/cpu.cfs_quota_us");
  const std::vector<CpuGroup> groups = cpu_groups(tree.root());
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].folder, tree.root() + cpu + "/a/b");
  EXPECT_FALSE(groups[0].v2);
}

TEST(ReadCpuQuota, BothVersionsAtOnce) {
  TempTree tree;
  tree.write("/proc/self/cgroup", "1:cpu,cpuacct:/one\n0::/two\n");
  tree.write(
      "/proc/self/mountinfo",
      std::string(kV1Mount) + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  tree.write("/sys/fs/cgroup/cpu,cpuacct/one/cpu.cfs_quota_us", "300000\n");
  tree.write("/sys/fs/cgroup/unified/two/cpu.max", "200000 100000\n");
  EXPECT_EQ(read_cpu_quota(tree.root())->cores, 2.0);
  tree.write("/sys/fs/cgroup/cpu,cpuacct/one/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(read_cpu_quota(tree.root())->cores, 1.0);
}

// A container without a cgroup namespace: the path is the host's, the mount shows only the
// container's part.
TEST(ReadCpuQuota, MountThatShowsOnlyASubtree) {
  TempTree tree;
  tree.write("/proc/self/cgroup", "0::/docker/abc/inner\n");
  tree.write("/proc/self/mountinfo",
             "30 24 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  tree.write("/sys/fs/cgroup/cpu.max", "300000 100000\n");
  tree.write("/sys/fs/cgroup/inner/cpu.max", "200000 100000\n");
  EXPECT_EQ(read_cpu_quota(tree.root())->cores, 2.0);
  tree.write("/proc/self/cgroup",
             "0::/docker/abcdef/inner\n");  // a stranger whose name begins alike
  EXPECT_EQ(read_cpu_quota(tree.root())->cores, 3.0);
  tree.write("/proc/self/cgroup", "0::/../outside\n");
  EXPECT_EQ(read_cpu_quota(tree.root())->cores, 3.0);
}

// The process has left the cgroup namespace that it sees.
TEST(ReadCpuQuota, CgroupOutsideTheNamespace) {
  TempTree tree;
  tree.write("/proc/self/cgroup", "0::/../outside\n");
  tree.write("/proc/self/mountinfo", kV2Mount);
  tree.write("/sys/fs/cgroup/cpu.max", "300000 100000\n");
  tree.write("/sys/fs/outside/cpu.max", "100000 100000\n");
  EXPECT_EQ(read_cpu_quota(tree.root())->cores, 3.0);
}

TEST(ReadCpuQuota, EscapedMountPointAndRootCgroup) {
  TempTree tree;
  tree.write("/proc/self/cgroup", "0::/\n");
  tree.write("/proc/self/mountinfo", "30 24 0:26 / /odd\\040place rw - cgroup2 cgroup2 rw\n");
  tree.write("/odd place/cpu.max", "700000 100000\n");
  EXPECT_EQ(read_cpu_quota(tree.root())->cores, 7.0);
}

TEST(ReadCpuQuota, NothingOrNonsenseToRead) {
  TempTree tree;
  EXPECT_FALSE(read_cpu_quota(tree.root()));
  tree.write("/proc/self/cgroup", "nonsense\n:\n::\n0:\n");
  tree.write("/proc/self/mountinfo", "x\n - \n1 2 3 4 5 - cgroup2\n" + std::string(kV2Mount));
  EXPECT_FALSE(read_cpu_quota(tree.root()));
}

TEST(CombineCpuBudget, SmallerOneBindsAndSaysSo) {
  const auto with = [](int affinity, double quota) {
    return combine_cpu_budget({affinity, affinity}, CpuQuota{quota, "F"});
  };
  EXPECT_EQ(combine_cpu_budget({8, 8}, std::nullopt).cores, 8);
  EXPECT_EQ(combine_cpu_budget({8, 8}, std::nullopt).why, "8 cores: affinity mask (no CPU quota)");
  EXPECT_EQ(with(8, 2.9).cores, 2) << "floor";
  EXPECT_EQ(with(8, 2.9).why, "2 cores: CPU quota 2.90 in F (affinity mask: 8)");
  EXPECT_EQ(with(8, 0.2).cores, 1) << "never 0";
  EXPECT_EQ(with(8, 0.2).why, "1 core: CPU quota 0.20 in F (affinity mask: 8)");
  EXPECT_EQ(with(2, 64.0).cores, 2);
  EXPECT_EQ(with(2, 64.0).why, "2 cores: affinity mask (CPU quota: 64.00 in F)");
  EXPECT_EQ(with(4, 4.0).cores, 4);
  EXPECT_EQ(with(4, 1e18).cores, 4);
}

TEST(CombineCpuBudget, HardwareThreadsAreNoCores) {
  const CpuBudget free = combine_cpu_budget({4, 8}, std::nullopt);
  EXPECT_EQ(free.cores, 4);
  EXPECT_EQ(free.cpus, 8);
  EXPECT_EQ(free.why, "4 cores: affinity mask (8 hardware threads, no CPU quota)");
  const CpuBudget between = combine_cpu_budget({4, 8}, CpuQuota{6.5, "F"});
  EXPECT_EQ(between.cores, 4);
  EXPECT_EQ(between.cpus, 6);
  EXPECT_EQ(between.why, "4 cores: affinity mask (8 hardware threads, CPU quota: 6.50 in F)");
  const CpuBudget tight = combine_cpu_budget({4, 8}, CpuQuota{2.0, "F"});
  EXPECT_EQ(tight.cores, 2);
  EXPECT_EQ(tight.cpus, 2);
  EXPECT_EQ(tight.why, "2 cores: CPU quota 2.00 in F (affinity mask: 4, 8 hardware threads)");
}

TEST(CountCores, SiblingsAreOneCore) {
  TempTree tree;
  const auto cpu = [&](int number, const char* file, const char* text) {
    tree.write("/sys/devices/system/cpu/cpu" + std::to_string(number) + "/topology/" + file, text);
  };
  cpu(0, "core_cpus_list", "0,4\n");
  cpu(4, "core_cpus_list", "0,4\n");
  cpu(1, "thread_siblings_list", "1,5\n");  // an older kernel's name
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

TEST(CpuBudgetOfThisProcess, QuotaFromTree) {
  TempTree tree;
  tree.write("/proc/self/cgroup", "0::/\n");
  tree.write("/proc/self/mountinfo", kV2Mount);
  tree.write("/sys/fs/cgroup/cpu.max", "20000 100000\n");
  EXPECT_EQ(cpu_budget(tree.root()).cores, 1);
  EXPECT_EQ(cpu_budget(tree.root()).quota->cores, 0.2);
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

// Processes 7 and 8 are bound to CPUs 1 and 2, nobody knows process 9; this one may use 0 and 1.
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
