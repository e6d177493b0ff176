#include "numa/topology.h"

#include <hwloc.h>
#include <numa.h>

#include "numa/cpus.h"
#include "numa/system_calls.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

namespace rankine {
namespace {

Topology synthetic(const char* text) {
  TopologyResult result = Topology::synthetic(text);
  EXPECT_EQ(result.error, "");
  return result.ok() ? *result.topology : Topology::flat({}, false);
}

// Checks the guarantees that the header gives for every topology.
void expect_consistent(const Topology& topology) {
  ASSERT_FALSE(topology.cpus().empty());
  ASSERT_FALSE(topology.nodes().empty());
  std::set<int> numbers, cores, packages, l3_groups;
  std::set<std::pair<int, int>> seats;
  for (const Cpu& cpu : topology.cpus()) {
    EXPECT_TRUE(numbers.insert(cpu.os_index).second);
    EXPECT_TRUE(seats.emplace(cpu.core, cpu.smt_index).second);
    if (cpu.smt_index > 0) {
      EXPECT_TRUE(seats.count({cpu.core, cpu.smt_index - 1}) != 0);
    }
    cores.insert(cpu.core);
    packages.insert(cpu.package);
    l3_groups.insert(cpu.l3);
    ASSERT_NE(topology.find_cpu(cpu.os_index), nullptr);
    EXPECT_EQ(*topology.find_cpu(cpu.os_index), cpu);
    const NumaNode* node = topology.find_node(cpu.numa_node);
    ASSERT_NE(node, nullptr);
    EXPECT_EQ(std::count(node->cpus.begin(), node->cpus.end(), cpu.os_index), 1);
  }
  std::size_t cpus_of_nodes = 0;
  for (const NumaNode& node : topology.nodes()) cpus_of_nodes += node.cpus.size();
  EXPECT_EQ(cpus_of_nodes, topology.cpus().size());
  const auto expect_dense = [](const std::set<int>& indices, int count) {
    EXPECT_EQ(static_cast<int>(indices.size()), count);
    EXPECT_EQ(*indices.begin(), 0);
    EXPECT_EQ(*indices.rbegin(), count - 1);
  };
  expect_dense(cores, topology.cores());
  expect_dense(packages, topology.packages());
  expect_dense(l3_groups, topology.l3_groups());
  EXPECT_EQ(topology.os_cpus().size(), topology.cpus().size());
  EXPECT_EQ(topology.find_cpu(-1), nullptr);
  EXPECT_EQ(topology.find_node(-1), nullptr);
  EXPECT_GT(topology.page_bytes(), 0u);
  EXPECT_GT(topology.huge_page_bytes(), topology.page_bytes());
}

TEST(SyntheticTopology, TwoSockets) {
  const Topology topology = synthetic("pack:2 [numa] l3:4 core:8 pu:2");
  expect_consistent(topology);
  EXPECT_EQ(topology.cpus().size(), 128u);
  EXPECT_EQ(topology.cores(), 64);
  EXPECT_EQ(topology.packages(), 2);
  EXPECT_EQ(topology.nodes().size(), 2u);
  EXPECT_EQ(topology.l3_groups(), 8);
  EXPECT_FALSE(topology.is_this_system());
  EXPECT_TRUE(topology.knows_nodes());
  const CacheSizes caches = topology.caches();
  EXPECT_EQ(*topology.find_cpu(0), (Cpu{0, 0, 0, 0, 0, 0, 0, true, caches}));
  EXPECT_EQ(*topology.find_cpu(1), (Cpu{1, 0, 0, 0, 0, 1, 0, true, caches}));
  EXPECT_EQ(*topology.find_cpu(127), (Cpu{127, 63, 1, 1, 7, 1, 0, true, caches}));
  EXPECT_EQ(topology.l3_caches(), 8);
  EXPECT_EQ(topology.l3_bytes(), 8 * caches.l3);
  EXPECT_EQ(topology.nodes()[1].cpus.front(), 64);
  EXPECT_EQ(topology.summary(),
            "2 packages, 2 NUMA nodes, 8 L3 groups, 64 cores, 128 CPUs "
            "(synthetic: pack:2 [numa] l3:4 core:8 pu:2)");
}

TEST(SyntheticTopology, OfAnyShape) {
  const struct {
    const char* text;
    int cores, packages, l3_groups, l3_caches;
    std::size_t nodes, without_cpus;
  } cases[] = {
      {"numa:8 core:8 pu:1", 64, 1, 8, 0, 8, 0},  // without an L3 the node's CPUs are the group
      {"numa:1 core:3 pu:1", 3, 1, 1, 0, 1, 0},
      {"pu:1", 1, 1, 1, 0, 1, 0},  // a CPU without a core object is a core
      {"core:2 pu:4", 2, 1, 1, 0, 1, 0},
      {"pack:2 [numa] [numa] core:2 pu:1", 4, 2, 2, 0, 4, 2},
      {"pack:2 [numa] l3:4 core:8 pu:2", 64, 2, 8, 8, 2, 0},
  };
  ScopedEnv claim("HWLOC_THISSYSTEM", "1");  // a description never claims to be this machine
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const Topology topology = synthetic(c.text);
    expect_consistent(topology);
    EXPECT_FALSE(topology.is_this_system());
    EXPECT_EQ(topology.cores(), c.cores);
    EXPECT_EQ(topology.packages(), c.packages);
    EXPECT_EQ(topology.l3_groups(), c.l3_groups);
    EXPECT_EQ(topology.l3_caches(), c.l3_caches);
    EXPECT_EQ(topology.nodes().size(), c.nodes);
    const auto& nodes = topology.nodes();
    EXPECT_EQ(
        static_cast<std::size_t>(std::count_if(
            nodes.begin(), nodes.end(), [](const NumaNode& node) { return node.cpus.empty(); })),
        c.without_cpus);
  }
  const Topology flat = Topology::flat({3, 5, 9}, false);
  expect_consistent(flat);
  EXPECT_EQ(flat.cores(), 3);
  EXPECT_FALSE(flat.knows_nodes());
  expect_consistent(Topology::flat({}, true));
}

TEST(SyntheticTopology, SizesAndNumbering) {
  const Topology topology = synthetic(
      "pack:2 [numa(memory=1GB)] l3:1(size=1MB) l2:1(size=512kB) l1:1(size=32kB) core:2 "
      "pu:2(indexes=0,4,1,5,2,6,3,7)");
  expect_consistent(topology);
  EXPECT_EQ(topology.nodes()[0].memory_bytes, 1000000000u);
  EXPECT_EQ(topology.caches(), (CacheSizes{32000, 512000, 1000000}));
  EXPECT_EQ(topology.os_cpus(), (std::vector<int>{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(topology.find_cpu(4)->core, topology.find_cpu(0)->core);
}

TEST(SyntheticTopology, BadTextIsAnError) {
  for (const char* text : {"", "bogus", "pu:0", "core:3", "pack:2 [numa", "pu:-1", "pu:2 core:2"}) {
    const TopologyResult result = Topology::synthetic(text);
    EXPECT_FALSE(result.ok()) << '"' << text << '"';
    EXPECT_FALSE(result.topology) << '"' << text << '"';
    EXPECT_NE(result.error.find('"' + std::string(text) + '"'), std::string::npos) << result.error;
    EXPECT_NE(result.error.find("pack:2 [numa] l3:4 core:8 pu:2"), std::string::npos)
        << result.error;
  }
}

class DetectTest : public testing::Test {
 protected:
  ScopedEnv synthetic_{"HWLOC_SYNTHETIC", nullptr};
  ScopedEnv xml_{"HWLOC_XMLFILE", nullptr};
  ScopedEnv claim_{"HWLOC_THISSYSTEM", nullptr};
  ScopedEnv root_{"HWLOC_FSROOT", nullptr};
  ScopedEnv components_{"HWLOC_COMPONENTS", nullptr};
  CapturedWarnings captured_;

  // The text of the only warning.
  std::string warning() const {
    EXPECT_EQ(captured_.lines.size(), 1u);
    return captured_.lines.empty() ? "" : captured_.lines[0].second;
  }
  void expect_warning_of(const char* variable, const std::string& value, const std::string& why) {
    ScopedEnv env(variable, value.c_str());
    EXPECT_TRUE(Topology::detect().is_this_system());
    Topology::detect();
    EXPECT_NE(warning().find(std::string(variable) + "=\"" + value + "\": " + why),
              std::string::npos)
        << warning();
    captured_.lines.clear();
    forget_warnings();
  }
};

std::vector<int> sorted(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

TEST_F(DetectTest, ThisMachine) {
  const Topology topology = Topology::detect();
  expect_consistent(topology);
  EXPECT_TRUE(topology.is_this_system());
  EXPECT_EQ(sorted(topology.os_cpus()), allowed_cpus());
  EXPECT_TRUE(captured_.lines.empty());
}

// Compares two independent readers of the same files: hwloc and libnuma.
TEST_F(DetectTest, AgreesWithLibnuma) {
  if (numa_available() < 0) GTEST_SKIP() << "libnuma knows no nodes here";
  const Topology topology = Topology::detect();
  for (const NumaNode& node : topology.nodes()) {
    const long long bytes = numa_node_size64(node.os_index, nullptr);
    EXPECT_TRUE(bytes <= 0 || node.memory_bytes == static_cast<std::uint64_t>(bytes)) << bytes;
    for (std::size_t to = 0; to < node.distances.size(); ++to) {
      EXPECT_EQ(node.distances[to], numa_distance(node.os_index, topology.nodes()[to].os_index));
    }
  }
  for (const Cpu& cpu : topology.cpus()) {
    const int own = numa_node_of_cpu(cpu.os_index);
    const bool has_memory = own >= 0 && numa_node_size64(own, nullptr) > 0;
    EXPECT_TRUE(!has_memory || cpu.numa_node == own) << cpu.os_index;
  }
}

// The topology of a machine where hwloc is not installed.
Topology detect_without_hwloc() {
  SystemCalls calls = real_system_calls();
  calls.dlopen = [](const char*, int) -> void* { return nullptr; };
  ScopedSystemCalls scope(calls);
  return Topology::detect();
}

// Compares two independent readers: hwloc and read_sys(). hwloc would also ask the CPUs themselves.
void expect_readers_agree() {
  const Topology with = [] {
    ScopedEnv components("HWLOC_COMPONENTS", "linux,stop");
    return Topology::detect();
  }();
  const Topology without = detect_without_hwloc();
  expect_consistent(without);
  EXPECT_EQ(without.is_this_system(), with.is_this_system());
  EXPECT_EQ(without.knows_nodes(), with.knows_nodes());
  EXPECT_EQ(without.nodes(), with.nodes());
  ASSERT_EQ(without.os_cpus(), with.os_cpus());
  for (std::size_t i = 0; i < with.cpus().size(); ++i) {
    const Cpu &a = without.cpus()[i], &b = with.cpus()[i];
    SCOPED_TRACE(a.os_index);
    EXPECT_EQ(a.core, b.core);
    EXPECT_EQ(a.package, b.package);
    EXPECT_EQ(a.numa_node, b.numa_node);
    EXPECT_EQ(a.l3, b.l3);
    EXPECT_EQ(a.smt_index, b.smt_index);
    EXPECT_EQ(a.speed, b.speed);
    EXPECT_EQ(a.has_l3, b.has_l3);
    EXPECT_EQ(a.caches, b.caches);
  }
}

TEST_F(DetectTest, ThisMachineWithoutHwloc) {
  expect_readers_agree();
  EXPECT_EQ(detect_without_hwloc().source(), "/sys, without hwloc");
  EXPECT_TRUE(captured_.lines.empty());
}

// Writes the files that Linux has under /sys for a machine.
class KernelFiles {
 public:
  using Parts = std::vector<std::vector<int>>;  // CPUs of each part

  // `is_old`: with the names of files before Linux 5.10.
  KernelFiles(int cpus, bool is_old) : cpus_(cpus), is_old_(is_old) {
    tree_.write("/sys/devices/system/cpu/online", "0-" + std::to_string(cpus - 1) + "\n");
  }
  const std::string& root() const { return tree_.root(); }

  void write(int cpu, const std::string& file, const std::string& text) const {
    tree_.write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/" + file, text + "\n");
  }
  // `mask` and `list` are the files that name the CPUs of the part.
  void write_parts(const Parts& parts, const std::string& mask, const std::string& list) const {
    for (const std::vector<int>& part : parts) {
      for (const int cpu : part) {
        write(cpu, mask, mask_of(part));
        write(cpu, list, format_cpu_list(part));
      }
    }
  }
  void write_cores(const Parts& cores) const {
    const std::string name = is_old_ ? "topology/thread_siblings" : "topology/core_cpus";
    write_parts(cores, name, name + "_list");
    for (const std::vector<int>& core : cores) {
      for (const int cpu : core) write(cpu, "topology/core_id", std::to_string(core.front()));
    }
  }
  void write_packages(const Parts& packages) const {
    const std::string name = is_old_ ? "topology/core_siblings" : "topology/package_cpus";
    write_parts(packages, name, name + "_list");
    for (std::size_t i = 0; i < packages.size(); ++i) {
      for (const int cpu : packages[i]) {
        write(cpu, "topology/physical_package_id", std::to_string(i));
      }
    }
  }
  void write_cache(int index, const char* level, const char* type, const char* size,
                   const Parts& parts) const {
    const std::string folder = "cache/index" + std::to_string(index) + "/";
    write_parts(parts, folder + "shared_cpu_map", folder + "shared_cpu_list");
    for (const std::vector<int>& part : parts) {
      for (const int cpu : part) {
        write(cpu, folder + "level", level);
        write(cpu, folder + "type", type);
        write(cpu, folder + "size", size);
      }
    }
  }
  void write_node(int number, const std::vector<int>& cpus, int memory_kib,
                  const std::string& distances) {
    const std::string folder = "/sys/devices/system/node/node" + std::to_string(number) + "/";
    tree_.write(folder + "cpumap", mask_of(cpus) + "\n");
    tree_.write(folder + "cpulist", format_cpu_list(cpus) + "\n");
    tree_.write(folder + "distance", distances + "\n");
    const std::string name = "Node " + std::to_string(number);
    tree_.write(folder + "meminfo", name + " MemTotal:       " + std::to_string(memory_kib) +
                                        " kB\n" + name + " MemFree:        1 kB\n");
    last_node_ = std::max(last_node_, number);
    tree_.write("/sys/devices/system/node/online", "0-" + std::to_string(last_node_) + "\n");
  }
  Parts each_cpu() const {
    Parts parts;
    for (int cpu = 0; cpu < cpus_; ++cpu) parts.push_back({cpu});
    return parts;
  }

 private:
  static std::string mask_of(const std::vector<int>& cpus) {
    unsigned mask = 0;
    for (const int cpu : cpus) mask |= 1U << cpu;
    char text[16];
    std::snprintf(text, sizeof(text), "%08x", mask);
    return text;
  }

  TempTree tree_;
  const int cpus_;
  const bool is_old_;
  int last_node_ = 0;
};

// Two packages of two nodes, each with two L3 caches of a core with two hardware threads. Numbers
// are dealt over packages, then nodes, then caches: they are not in the order of the parts.
TEST_F(DetectTest, TwoPackagesWithoutHwloc) {
  KernelFiles files(16, true);
  files.write_packages({{0, 2, 4, 6, 8, 10, 12, 14}, {1, 3, 5, 7, 9, 11, 13, 15}});
  KernelFiles::Parts cores;
  for (int core = 0; core < 8; ++core) cores.push_back({core, core + 8});
  files.write_cores(cores);
  files.write_cache(0, "1", "Data", "48K", cores);
  files.write_cache(1, "1", "Instruction", "32K", cores);
  files.write_cache(2, "2", "Unified", "1024K", cores);
  files.write_cache(3, "3", "Unified", "32768K", cores);
  files.write_node(0, {0, 4, 8, 12}, 1000, "10 12 21 21");
  files.write_node(1, {2, 6, 10, 14}, 2000, "12 10 21 21");
  files.write_node(2, {1, 5, 9, 13}, 3000, "21 21 10 12");
  files.write_node(3, {3, 7, 11, 15}, 4000, "21 21 12 10");
  ScopedEnv env("HWLOC_FSROOT", files.root().c_str());
  expect_readers_agree();
  const Topology topology = detect_without_hwloc();
  EXPECT_EQ(topology.os_cpus(),
            (std::vector<int>{0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15}));
  EXPECT_EQ(topology.summary(),
            "2 packages, 4 NUMA nodes, 8 L3 groups, 8 cores, 16 CPUs (/sys, without hwloc, another "
            "machine's description)");
  EXPECT_EQ(topology.caches(), (CacheSizes{48 << 10, 1 << 20, 32 << 20}));
  EXPECT_TRUE(captured_.lines.empty());
}

// Nodes inside L3 caches, one of them without memory, and a node of memory alone; two kinds of
// cores. Nodes of both caches alternate in the order of the numbers.
TEST_F(DetectTest, UnequalNodesWithoutHwloc) {
  KernelFiles files(8, false);
  files.write_packages({{0, 1, 2, 3, 4, 5, 6, 7}});
  files.write_cores(files.each_cpu());
  files.write_cache(0, "3", "Unified", "8192K", {{0, 2, 4, 6}, {1, 3, 5, 7}});
  files.write_node(0, {0, 4}, 1000, "10 12 20 20 15");
  files.write_node(1, {2, 6}, 0, "12 10 20 20 15");
  files.write_node(2, {1, 5}, 3000, "20 20 10 12 15");
  files.write_node(3, {3, 7}, 3000, "20 20 12 10 15");
  files.write_node(4, {}, 4000, "15 15 15 15 10");
  for (int cpu = 0; cpu < 8; ++cpu) files.write(cpu, "cpu_capacity", cpu < 4 ? "1024" : "400");
  ScopedEnv env("HWLOC_FSROOT", files.root().c_str());
  expect_readers_agree();
  const Topology topology = detect_without_hwloc();
  EXPECT_EQ(topology.os_cpus(), (std::vector<int>{0, 4, 2, 6, 1, 5, 3, 7}));
  EXPECT_EQ(topology.find_cpu(2)->numa_node, 0) << "the nearest node with memory";
  EXPECT_EQ(topology.find_cpu(0)->speed, 1);
  EXPECT_EQ(topology.find_cpu(7)->speed, 0);
}

// Kernels before Linux 6.12 state no capacity for Intel's CPUs.
TEST_F(DetectTest, SmallCoresWithoutHwloc) {
  KernelFiles files(4, false);
  files.write(0, "../../../cpu_atom/cpus", "2-3");
  ScopedEnv env("HWLOC_FSROOT", files.root().c_str());
  const Topology topology = detect_without_hwloc();
  for (int cpu = 0; cpu < 4; ++cpu) EXPECT_EQ(topology.find_cpu(cpu)->speed, cpu < 2 ? 1 : 0);
}

TEST_F(DetectTest, WhatNeedsHwlocNamesIt) {
  {
    ScopedEnv env("HWLOC_SYNTHETIC", "core:2 pu:1");
    EXPECT_TRUE(detect_without_hwloc().is_this_system());
    EXPECT_NE(warning().find("hwloc 2.4 or later is not installed"), std::string::npos);
  }
  captured_.lines.clear();
  {
    ScopedEnv env("HWLOC_FSROOT", testing::TempDir().c_str());
    EXPECT_EQ(detect_without_hwloc().source().substr(0, 5), "flat:");
    EXPECT_NE(warning().find("/sys/devices"), std::string::npos);
  }
  SystemCalls calls = real_system_calls();
  calls.dlopen = [](const char*, int) -> void* { return nullptr; };
  ScopedSystemCalls scope(calls);
  const TopologyResult result = Topology::synthetic("core:2 pu:1");
  EXPECT_NE(result.error.find("libhwloc15"), std::string::npos) << result.error;
}

TEST_F(DetectTest, OnlyTheCpusThatTheThreadMayUse) {
  const int last = allowed_cpus().back();
  std::thread([&] {
    ASSERT_EQ(set_allowed_cpus(&last, 1), 0);
    const Topology topology = Topology::detect();
    expect_consistent(topology);
    EXPECT_EQ(topology.os_cpus(), std::vector<int>{last});
    EXPECT_EQ(topology.cores(), 1);
  }).join();
  EXPECT_TRUE(captured_.lines.empty());
}

TEST_F(DetectTest, SyntheticFromTheEnvironment) {
  ScopedEnv env("HWLOC_SYNTHETIC", "pack:2 [numa] l3:4 core:8 pu:2");
  const Topology topology = Topology::detect();
  expect_consistent(topology);
  EXPECT_EQ(topology.cpus().size(), 128u) << "not restricted to this machine's CPUs";
  EXPECT_FALSE(topology.is_this_system());
  EXPECT_TRUE(captured_.lines.empty());
}

TEST_F(DetectTest, AVariableThatHwlocCannotUseIsNamedInOneWarning) {
  const std::string folder = testing::TempDir();
  expect_warning_of("HWLOC_SYNTHETIC", "bogus", "it is not understood");
  expect_warning_of("HWLOC_XMLFILE", folder + "/nowhere", "No such file");
  expect_warning_of("HWLOC_XMLFILE", folder, "it is a directory");
  expect_warning_of("HWLOC_XMLFILE", write_file(folder + "/text.xml", "nothing"),
                    "it is no XML of hwloc");
  const std::string cut = mixed_caches_xml().substr(0, 1000);
  // The reason depends on hwloc's XML parser: libxml2 or hwloc's small parser.
  expect_warning_of("HWLOC_XMLFILE", write_file(folder + "/cut.xml", cut), "");
  expect_warning_of("HWLOC_COMPONENTS", "bogus", "it has no component 'bogus'");
  expect_warning_of("HWLOC_COMPONENTS", "linux,-bogus", "it has no component 'bogus'");
  ScopedEnv components("HWLOC_COMPONENTS", "linux,-xml");
  expect_warning_of("HWLOC_SYNTHETIC", "core:2 pu:1", "HWLOC_COMPONENTS must name synthetic");
}

TEST_F(DetectTest, ARootWithoutAMachineIsNamed) {
  for (const std::string& root : {testing::TempDir(), testing::TempDir() + "/nowhere"}) {
    ScopedEnv env("HWLOC_FSROOT", root.c_str());
    expect_consistent(Topology::detect());
    EXPECT_NE(warning().find("HWLOC_FSROOT=\"" + root + "\""), std::string::npos);
    captured_.lines.clear();
    forget_warnings();
  }
}

TEST_F(DetectTest, XmlOfANewerHwlocIsNamedAsSuch) {
  const std::string newer = std::to_string((hwloc_get_api_version() >> 16) + 1);
  const std::string file =
      write_file(testing::TempDir() + "/newer.xml", mixed_caches_xml(newer + ".0"));
  ScopedEnv env("HWLOC_XMLFILE", file.c_str());
  expect_consistent(Topology::detect());
  EXPECT_NE(warning().find(file + "\": it is of hwloc " + newer), std::string::npos) << warning();
}

TEST_F(DetectTest, VariablesThatHwlocCanUseAreNoWarnings) {
  ScopedEnv root("HWLOC_FSROOT", "/");
  ScopedEnv components("HWLOC_COMPONENTS", "linux,-xml,stop");
  EXPECT_TRUE(Topology::detect().is_this_system());
  EXPECT_TRUE(captured_.lines.empty());
}

TEST_F(DetectTest, EveryCpuHasItsOwnCaches) {
  const std::string file = write_file(testing::TempDir() + "/mixed.xml", mixed_caches_xml());
  ScopedEnv env("HWLOC_XMLFILE", file.c_str());
  const Topology topology = Topology::detect();
  expect_consistent(topology);
  EXPECT_TRUE(captured_.lines.empty());
  ASSERT_EQ(topology.cpus().size(), 6u);
  const std::size_t large = std::size_t{16} << 20, small = std::size_t{8} << 20;
  const std::size_t bytes[] = {large, large, small, small, 0, 0};
  const int groups[] = {0, 0, 1, 1, 2, 2};
  for (int i = 0; i < 6; ++i) {
    const Cpu& cpu = *topology.find_cpu(i);
    EXPECT_EQ(cpu.caches.l3, bytes[i]) << i;
    EXPECT_EQ(cpu.has_l3, bytes[i] != 0) << i;
    EXPECT_EQ(cpu.l3, groups[i]) << i;
  }
  EXPECT_EQ(topology.l3_caches(), 2);
  EXPECT_EQ(topology.l3_bytes(), large + small);
  EXPECT_EQ(topology.summary(),
            "1 package, 1 NUMA node, 2 L3 groups, 6 cores, 6 CPUs (hwloc, another machine's "
            "description)");
}

TEST_F(DetectTest, FailingHwlocGivesAFlatTopologyAndOneWarning) {
  SystemCalls calls = real_system_calls();
  calls.hwloc_topology_load = [](hwloc_topology*) {
    errno = ENOSYS;
    return -1;
  };
  ScopedSystemCalls scope(calls);
  const Topology topology = Topology::detect();
  Topology::detect();
  expect_consistent(topology);
  EXPECT_EQ(topology.os_cpus(), allowed_cpus());
  EXPECT_EQ(topology.cores(), static_cast<int>(allowed_cpus().size()));
  EXPECT_TRUE(topology.is_this_system());
  EXPECT_FALSE(topology.knows_nodes());
  ASSERT_EQ(captured_.lines.size(), 1u);
  EXPECT_EQ(captured_.lines[0].first, "numa.hwloc");
  EXPECT_FALSE(Topology::synthetic("core:2 pu:1").ok());
}

TEST_F(DetectTest, LyingHwlocGivesAFlatTopologyAndOneWarning) {
  // CPU 8000 does not exist on this machine, so the description lacks every CPU that the kernel
  // grants.
  ScopedEnv env("HWLOC_SYNTHETIC", "core:1 pu:1(indexes=8000)");
  ScopedEnv claim("HWLOC_THISSYSTEM", "1");
  const Topology topology = Topology::detect();
  Topology::detect();
  expect_consistent(topology);
  EXPECT_EQ(topology.os_cpus(), allowed_cpus());
  EXPECT_EQ(topology.source().substr(0, 5), "flat:");
  EXPECT_EQ(captured_.lines.size(), 1u);
}

TEST_F(DetectTest, HwlocThatForgetsOneCpu) {
  SystemCalls calls = real_system_calls();
  calls.sched_getaffinity = [](pid_t thread, std::size_t bytes, cpu_set_t* mask) {
    const int result = real_system_calls().sched_getaffinity(thread, bytes, mask);
    CPU_SET(1000, mask);  // granted by the kernel, unknown to hwloc
    return result;
  };
  ScopedSystemCalls scope(calls);
  const Topology topology = Topology::detect();
  EXPECT_NE(topology.find_cpu(1000), nullptr);
  ASSERT_EQ(captured_.lines.size(), 1u);
  EXPECT_NE(captured_.lines[0].second.find("CPUs 1000"), std::string::npos);
}

TEST_F(DetectTest, RefusedAffinityLeavesHwlocInCharge) {
  SystemCalls calls = real_system_calls();
  calls.sched_getaffinity = [](pid_t, std::size_t, cpu_set_t*) {
    errno = EPERM;
    return -1;
  };
  ScopedSystemCalls scope(calls);
  const Topology topology = Topology::detect();
  expect_consistent(topology);
  EXPECT_EQ(topology.source(), "hwloc");
}

TEST_F(DetectTest, NothingWorks) {
  SystemCalls calls = real_system_calls();
  calls.sched_getaffinity = [](pid_t, std::size_t, cpu_set_t*) { return -1; };
  calls.hwloc_topology_load = [](hwloc_topology*) { return -1; };
  ScopedSystemCalls scope(calls);
  expect_consistent(Topology::detect());
  EXPECT_EQ(captured_.lines.size(), 1u);
}

}  // namespace
}  // namespace rankine
