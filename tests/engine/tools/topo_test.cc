// What `rankine topo` tells: of machines that need not exist, and of ours with a kernel that
// refuses or that put pages elsewhere.
#include "engine/tools/topo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/tools/topo_view.h"
#include "numa/system_calls.h"
#include "tests/engine/tools/well_formed.h"
#include "tests/numa/captured_warnings.h"
#include "tests/numa/mixed_caches.h"
#include "tests/numa/pretended_machine.h"
#include "tests/numa/scoped_env.h"

namespace rankine::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using json = nlohmann::json;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// --- Pictures of machines that need not exist.

std::string picture(const char* machine, int ranks, PlacementPolicy::Kind kind) {
  const auto topology = Topology::synthetic(machine);
  EXPECT_TRUE(topology.ok()) << topology.error;
  const TopoView view{.topology = *topology.topology,
                      .ranks = ranks,
                      .policy = {kind, {}},
                      .placement = place_ranks(*topology.topology, ranks, {kind, {}}),
                      .real = std::nullopt};
  const std::string svg = to_svg(view);
  EXPECT_EQ(why_not_well_formed(svg), "");
  return svg;
}

TEST(TopoPicture, ShowsEveryPartOnceAndEveryRank) {
  const std::string svg = picture("pack:2 numa:4 core:8 pu:2", 36, PlacementPolicy::Kind::scatter);
  for (int package = 0; package < 2; ++package) {
    EXPECT_EQ(count_of(svg, ">package " + std::to_string(package) + "<"), 1U);
  }
  for (int node = 0; node < 8; ++node) {
    EXPECT_EQ(count_of(svg, ">node " + std::to_string(node) + ","), 1U);
  }
  for (int cpu = 0; cpu < 128; ++cpu) {
    EXPECT_EQ(count_of(svg, ">cpu " + std::to_string(cpu) + "<"), 1U);
  }
  for (int rank = 0; rank < 36; ++rank) {
    EXPECT_EQ(count_of(svg, ">rank " + std::to_string(rank) + "<"), 1U) << rank;
  }
  EXPECT_THAT(svg, AllOf(HasSubstr(">memory of ranks 0,8,16,24,32<"),
                         HasSubstr("36 ranks, scatter"), HasSubstr("not our machine")));
}

TEST(TopoPicture, SharedCoresAndMemoryOnlyNodesShow) {
  const std::string own = picture("core:2 pu:2", 2, PlacementPolicy::Kind::compact);
  const std::string shared = picture("core:2 pu:2", 3, PlacementPolicy::Kind::compact);
  EXPECT_EQ(count_of(own, "fill=\"#d55e00\""), 0U);
  EXPECT_EQ(count_of(shared, "fill=\"#d55e00\""), 2U) << "both threads of the core";
  EXPECT_EQ(count_of(shared, "fill=\"#0072b2\""), 1U);
  EXPECT_THAT(picture("pu:1", 30, PlacementPolicy::Kind::compact), HasSubstr(">0-29<"));
  EXPECT_THAT(picture("core:3 pu:1", 30, PlacementPolicy::Kind::compact), HasSubstr(">10 ranks<"));
  EXPECT_THAT(picture("pack:2 [numa] [numa] core:2 pu:1", 2, PlacementPolicy::Kind::compact),
              HasSubstr("memory only"));
}

// Cores that differ in their L3, or have none, are drawn so.
TEST(TopoPicture, EveryL3HasItsOwnSize) {
  const CapturedWarnings captured;
  const std::string file = write_file(testing::TempDir() + "/mixed.xml", mixed_caches_xml());
  const ScopedEnv env("HWLOC_XMLFILE", file.c_str());
  const Topology topology = Topology::detect();
  const TopoView view{.topology = topology,
                      .ranks = 2,
                      .policy = {},
                      .placement = place_ranks(topology, 2),
                      .real = std::nullopt};
  const std::string svg = to_svg(view);
  EXPECT_EQ(count_of(svg, ">L3 0, 16 MiB<"), 1U);
  EXPECT_EQ(count_of(svg, ">L3 1, 8 MiB<"), 1U);
  EXPECT_EQ(count_of(svg, ">no L3<"), 1U);
  std::ostringstream text;
  print(view, text);
  EXPECT_THAT(text.str(), AllOf(HasSubstr("L3 16 MiB and 8 MiB; pages"),
                                HasSubstr("    L3 0  16 MiB\n      core 0"),
                                HasSubstr("    L3 1  8 MiB\n      core 2"),
                                HasSubstr("    no L3\n      core 4"), HasSubstr("2 L3 groups")));
  const json report = to_json(view);
  EXPECT_EQ(report.at("topology").at("l3_groups"), 2);
  EXPECT_EQ(report.at("cpus")[1].at("l3_bytes"), 16 << 20);
  EXPECT_EQ(report.at("cpus")[2].at("l3"), 1);
  EXPECT_EQ(report.at("cpus")[2].at("l3_bytes"), 8 << 20);
  EXPECT_TRUE(report.at("cpus")[5].at("l3").is_null());
}

// --- Ours.

struct Told {
  Exit exit = Exit::wrong;
  std::string out, error;
};

Told tell(const TopoOptions& options) {
  std::ostringstream out, err;
  Console console{out, err};
  const Result<Exit> result = topo(options, console);
  return {result.ok() ? *result : Exit::wrong, out.str(), std::string(result.status().text())};
}

class TopoHere : public testing::Test {
 protected:
  ScopedEnv no_synthetic_{"HWLOC_SYNTHETIC", nullptr};
  CapturedWarnings captured_;
  SystemCalls calls_ = real_system_calls();
};

long pages_on_node_7(int, unsigned long count, void**, const int*, int* status, int) {
  for (unsigned long i = 0; i < count; ++i) status[i] = 7;
  return 0;
}

TEST_F(TopoHere, PagesThatLieElsewhereShow) {
  calls_.move_pages = pages_on_node_7;
  ScopedSystemCalls scope(calls_);
  const Told text = tell({.ranks = 3});
  ASSERT_EQ(text.exit, Exit::ok) << text.error;
  EXPECT_THAT(text.out, HasSubstr("pages lie on"));
  EXPECT_EQ(count_of(text.out, "not on its node"), 3U);
  const json report = json::parse(tell({.ranks = 3, .json = true}).out);
  for (const json& rank : report.at("ranks")) {
    const json& memory = rank.at("memory");
    EXPECT_GT(memory.at("misplaced_bytes"), 0);
    EXPECT_EQ(memory.at("mailboxes").at("on_nodes")[0].at("node"), 7);
  }
}

TEST_F(TopoHere, DistancesOfNodesAreReported) {
  const PretendedMachine machine({.text = "numa:2 core:2 pu:1", .distances = {10, 21, 22, 10}});
  const json report = json::parse(tell({.ranks = 2, .json = true}).out);
  EXPECT_EQ(report.at("nodes")[0].at("distances"), json({10, 21}));
  EXPECT_EQ(report.at("nodes")[1].at("distances"), json({22, 10}));
}

TEST_F(TopoHere, AKernelThatDoesNotTellIsNotBelievedEither) {
  calls_.move_pages = [](int, unsigned long, void**, const int*, int*, int) -> long {
    errno = EPERM;
    return -1;
  };
  ScopedSystemCalls scope(calls_);
  const Told text = tell({.ranks = 2});
  EXPECT_THAT(text.out, AllOf(HasSubstr("unknown: move_pages: Operation not permitted"),
                              Not(HasSubstr("not on its node"))));
  const json report = json::parse(tell({.ranks = 2, .json = true}).out);
  const json& mailboxes = report.at("ranks")[0].at("memory").at("mailboxes");
  EXPECT_TRUE(mailboxes.at("on_nodes").is_null());
  EXPECT_EQ(mailboxes.at("errno"), EPERM);
}

TEST_F(TopoHere, WhatIsRefusedIsNamed) {
  calls_.mbind = [](void*, unsigned long, int, const unsigned long*, unsigned long,
                    unsigned) -> long {
    errno = EPERM;
    return -1;
  };
  calls_.mlock2 = [](const void*, std::size_t, unsigned) {
    errno = ENOMEM;
    return -1;
  };
  calls_.sched_setaffinity = [](pid_t, std::size_t, const cpu_set_t*) {
    errno = EINVAL;
    return -1;
  };
  ScopedSystemCalls scope(calls_);
  const Told text = tell({.ranks = 2, .lock_memory = true});
  ASSERT_EQ(text.exit, Exit::ok) << text.error;
  EXPECT_THAT(text.out, AllOf(HasSubstr("not everything"), HasSubstr("not pinned: "),
                              HasSubstr("memory not bound: "), HasSubstr("memory not locked: "),
                              HasSubstr("memory not interleaved: mbind: Operation not permitted")));
  EXPECT_EQ(captured_.lines.size(), 3U) << "one warning each";
  const json report = json::parse(tell({.ranks = 2, .lock_memory = true, .json = true}).out);
  const json& rank = report.at("ranks")[1];
  EXPECT_EQ(rank.at("pin").at("errno"), EINVAL);
  EXPECT_EQ(rank.at("binding").at("errno"), EPERM);
  EXPECT_EQ(rank.at("locking").at("errno"), ENOMEM);
  EXPECT_EQ(report.at("staging").at("interleaving").at("state"), "refused");
}

TEST_F(TopoHere, ThePartsAddUp) {
  const json report = json::parse(tell({.ranks = 4, .json = true}).out);
  const json& all = report.at("communicator");
  std::size_t sum = all.at("plan_bytes").get<std::size_t>() +
                    all.at("flight_record_bytes").get<std::size_t>() +
                    all.at("table_bytes").get<std::size_t>();
  for (const json& rank : report.at("ranks")) {
    for (const char* part : {"lines", "mailboxes", "scratch"}) {
      sum += rank.at("memory").at(part).at("bytes").get<std::size_t>();
    }
    EXPECT_EQ(rank.at("memory").at("mailboxes_from"), 3);
  }
  EXPECT_EQ(sum, all.at("bytes_after_use"));
  EXPECT_GT(all.at("bytes_after_use"), all.at("bytes_when_made"));
}

TEST_F(TopoHere, DrawsIntoAFile) {
  std::string folder = (std::filesystem::temp_directory_path() / "rankine.XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/topo.svg";
  EXPECT_EQ(tell({.ranks = 2, .svg = file}).exit, Exit::ok);
  std::ifstream stream(file);
  const std::string svg(std::istreambuf_iterator<char>(stream), {});
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_THAT(svg, AllOf(HasSubstr("<svg"), HasSubstr("mailboxes: ")));
  std::filesystem::remove_all(folder);
  EXPECT_THAT(tell({.ranks = 2, .svg = file}).error, AllOf(HasSubstr("--svg"), HasSubstr(file)));
}

}  // namespace
}  // namespace rankine::tools
