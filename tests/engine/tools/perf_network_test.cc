// perf on modelled networks: real data, checked; times that are the simulator's to the last digit;
// and what is told of crossovers and peaks.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/tools/metrics.h"
#include "tests/engine/tools/captured_tool.h"
#include "tests/engine/tools/well_formed.h"
#include "tests/numa/scoped_env.h"

namespace rankine::tools {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using Arguments = std::vector<std::string>;

Captured perf(const std::string& collective, const Arguments& more) {
  Arguments arguments = {"perf", collective, "-n", "1", "-m", "1", "-w", "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_captured(arguments);
}

json report_of(const std::string& collective, Arguments more) {
  more.insert(more.end(), {"--json", "-"});
  const Captured run = perf(collective, more);
  EXPECT_EQ(run.exit, 0) << run.err;
  return json::parse(run.out, nullptr, false);
}

json simulated(const std::string& collective, const json& row, const std::string& network,
               const std::string& sync) {
  Arguments arguments = {"simulate", collective, "--algo", row.at("algorithm"), "--ranks", "8"};
  if (row.at("segments") > 0) {
    arguments.insert(arguments.end(), {"--segments", std::to_string(int(row.at("segments")))});
  }
  arguments.insert(arguments.end(), {"--bytes", row.at("size").dump(), "--network", network,
                                     "--sync", sync, "--json"});
  const Captured run = run_captured(arguments);
  EXPECT_EQ(run.exit, 0) << run.err;
  return json::parse(run.out, nullptr, false);
}

void expect_simulated(const std::string& collective, const json& row, const std::string& network,
                      const std::string& sync) {
  const json model = simulated(collective, row, network, sync);
  for (const char* place : {"out_of_place", "in_place"}) {
    const json& one = row.at(place);
    EXPECT_EQ(one.at("time").get<double>(), model.at("time").get<double>() * 1e6) << row;
    EXPECT_EQ(one.at("nwrong"), 0);
    EXPECT_GT(one.at("wall").get<double>(), 0);
    EXPECT_DOUBLE_EQ(one.at("eta").get<double>(), model.at("eta").get<double>()) << row;
    EXPECT_DOUBLE_EQ(one.at("bus_bw").get<double>() * 1e9, model.at("busbw").get<double>());
  }
}

TEST(PerfOnNetworks, TimesAreTheSimulators) {
  for (const auto& [collective, algorithms, rows] :
       {std::tuple("all_reduce", "ring,double_tree,bucket", 6U),
        std::tuple("broadcast", "chain", 2U), std::tuple("all_to_all", "pairwise", 2U)}) {
    const json report = report_of(collective, {"--algo", algorithms, "-b", "100K", "-e", "100K",
                                               "--network", "scale_out,torus,sync=rounds"});
    ASSERT_TRUE(report.is_object());
    EXPECT_EQ(report.at("results").size(), rows) << collective;
    for (const json& row : report.at("results")) {
      if (row.at("network") == "scale_out") {
        expect_simulated(collective, row, "scale_out", "dataflow");
      } else {
        EXPECT_EQ(row.at("network"), "torus,sync=rounds");
        expect_simulated(collective, row, "torus", "rounds");
      }
    }
  }
}

// Without a name, what the network makes the cheapest, and with its segments.
TEST(PerfOnNetworks, TheEnginesChoiceIsTheNetworks) {
  const json report =
      report_of("broadcast", {"-b", "8", "-e", "1M", "-f", "1024", "--network", "scale_out"});
  ASSERT_EQ(report.at("results").size(), 2U);
  for (const json& row : report.at("results")) {
    expect_simulated("broadcast", row, "scale_out", "dataflow");
    const Captured choice =
        run_captured({"choose", "broadcast", "--ranks", "8", "--bytes", row.at("size").dump(),
                      "--network", "scale_out", "--json"});
    EXPECT_EQ(json::parse(choice.out).at("choice").at("algorithm"), row.at("algorithm"));
  }
  EXPECT_FALSE(report.contains("crossovers"));
}

// A ring takes no dims, but the network does.
TEST(PerfOnNetworks, DimsAreTheNetworksToo) {
  const Captured run = perf("all_reduce", {"--algo", "ring", "-b", "64K", "-e", "64K", "--dims",
                                           "2x2x2", "--network", "torus"});
  EXPECT_THAT(run.out, HasSubstr("torus 2x2x2, 200 ns per hop"));
  const json model =
      json::parse(run_captured({"simulate", "all_reduce", "--algo", "ring", "--bytes", "64K",
                                "--dims", "2x2x2", "--network", "torus", "--json"})
                      .out);
  const double us = model.at("time").get<double>() * 1e6;
  EXPECT_THAT(run.out, HasSubstr(fmt::format("  {:.2f} ", us)));
  // Nor does what the network makes the cheapest, where nobody names an algorithm.
  const json report =
      report_of("all_reduce", {"-b", "64K", "-e", "64K", "--dims", "2x2x2", "--network", "torus"});
  const json choice = json::parse(run_captured({"choose", "all_reduce", "--bytes", "64K", "--dims",
                                                "2x2x2", "--network", "torus", "--json"})
                                      .out);
  const json& row = report.at("results").at(0);
  EXPECT_EQ(row.at("algorithm"), choice.at("choice").at("algorithm"));
  EXPECT_EQ(row.at("out_of_place").at("time").get<double>(),
            choice.at("choice").at("time").get<double>() * 1e6);
  const Captured full = perf("all_reduce", {"--dims", "2x2x2", "--network", "scale_out"});
  EXPECT_EQ(full.exit, 2);
  EXPECT_THAT(full.err, HasSubstr("--dims is '2x2x2'; no algorithm named by --algo takes it"));
}

TEST(PerfOnNetworks, ChecksEveryCollectiveAndPrintsBothTimes) {
  for (const Collective collective : all_collectives()) {
    const std::string name(name_of(collective));
    if (algorithm_names(collective).empty()) continue;
    const Captured run =
        perf(name, {"-t", "3", "-b", "4K", "-e", "4K", "--algo", "all", "--network", "two_level"});
    EXPECT_EQ(run.exit, 0) << name << ": " << run.err;
    EXPECT_THAT(run.out, AllOf(HasSubstr("    eta    wall"), HasSubstr("# network   : two_level"),
                               HasSubstr("# Out of bounds values : 0 OK")));
  }
}

TEST(PerfOnNetworks, AnOptionCountsMoreThanTheEnvironment) {
  const ScopedEnv variable("RANKINE_NETWORK", "scale_up");
  const json report =
      report_of("all_reduce", {"--algo", "ring", "-b", "8", "-e", "8", "--network", "scale_out"});
  EXPECT_NEAR(report.at("results")[0].at("out_of_place").at("time").get<double>(),
              14 * (1.5 + 1 / 50e3), 1e-9);
}

TEST(PerfOnNetworks, TellsAndDrawsCrossovers) {
  const auto file = std::filesystem::path(testing::TempDir()) / "regimes.svg";
  const Arguments asked = {
      "--algo",    "ring,recursive_doubling", "-b",     "1K",         "-e", "4M", "-f", "64",
      "--network", "scale_out,plain",         "--plot", file.string()};
  const json report = report_of("all_reduce", asked);
  // 14 (alpha + M beta / 8) = 3 (alpha + M beta) at M = 8.8 alpha / beta.
  const double sizes[] = {1024, 8.8 * 75'000, 1024, 8.8 * 100'000};
  ASSERT_EQ(report.at("crossovers").size(), 4U) << report.at("crossovers");
  for (std::size_t i = 0; i < 4; ++i) {
    const json& one = report.at("crossovers")[i];
    EXPECT_EQ(one.at("network"), i < 2 ? "scale_out" : "plain");
    EXPECT_EQ(one.at("algorithm"), i % 2 == 0 ? "recursive_doubling" : "ring");
    EXPECT_NEAR(one.at("size").get<double>(), sizes[i], 1e-3);
  }
  std::ostringstream svg;
  svg << std::ifstream(file).rdbuf();
  EXPECT_EQ(why_not_well_formed(svg.str()), "");
  EXPECT_THAT(svg.str(), AllOf(HasSubstr(">all_reduce among 8 ranks on plain<"),
                               HasSubstr(">645 KiB<"), HasSubstr(">859 KiB<")));
  const Captured table = perf("all_reduce", asked);
  EXPECT_THAT(table.out, AllOf(HasSubstr("# crossovers"), HasSubstr("# plain      859 KiB  ring")));
}

TEST(PerfOnNetworks, WritesOneCsvFieldPerColumn) {
  const Captured run = perf("all_reduce", {"--algo", "ring", "-b", "8", "-e", "8", "--csv",
                                           "--network", "scale_out,sync=rounds"});
  std::istringstream lines(run.out);
  std::string header, line;
  ASSERT_TRUE(std::getline(lines, header) && std::getline(lines, line));
  EXPECT_TRUE(header.ends_with(",network,eta,wall_us")) << header;
  EXPECT_THAT(line, HasSubstr(",\"scale_out,sync=rounds\",0.0000,"));
}

TEST(PerfOnNetworks, SaysWhatIsWrong) {
  const auto error = [](const Arguments& more) {
    const Captured run = perf("all_reduce", more);
    EXPECT_EQ(run.exit, 2) << run.out;
    return run.err;
  };
  EXPECT_THAT(error({"--network", "ether"}), HasSubstr("--network is 'ether'"));
  EXPECT_THAT(error({"--network", "scale_out", "--algo", "switch"}),
              HasSubstr("all_reduce 'switch': the schedule has a many -> one"));
  EXPECT_THAT(error({"--plot", "x.svg", "-e", "64", "-N", "2"}),
              HasSubstr("--plot is 'x.svg'; one cycle is needed"));
  EXPECT_THAT(error({"--plot", "x.svg", "-b", "64", "-e", "64", "--network", "plain"}),
              HasSubstr("two of them, are needed"));
  EXPECT_THAT(error({"--plot", "x.svg", "-e", "64", "-d", "f32,f64", "--network", "plain"}),
              HasSubstr("one --datatype"));
  EXPECT_THAT(error({"--peak", "fast"}), HasSubstr("--peak is 'fast'"));
}

TEST(Peak, IsWhatAllPortsCarryInOneDirection) {
  const auto peak = [](const char* name, int ranks) {
    return peak_of(*wired_for(find_regime(name)->fabric, ranks));
  };
  EXPECT_DOUBLE_EQ(*peak("scale_out", 8), 50e9);
  EXPECT_DOUBLE_EQ(*peak("scale_out_2", 8), 100e9);
  EXPECT_DOUBLE_EQ(*peak("torus", 16), 400e9);
  EXPECT_DOUBLE_EQ(*peak("two_level", 16), 450e9);
  Fabric single = find_regime("two_level")->fabric;
  single.group = 1;
  EXPECT_DOUBLE_EQ(*peak_of(single), 50e9);
  single = {};
  EXPECT_EQ(peak_of(single), std::nullopt);  // no limit
  EXPECT_EQ(eta_text(eta_of(1, std::nullopt)), "-");
  EXPECT_EQ(eta_text(eta_of(25e9, 50e9)), "50.0%");
}

TEST(Peak, IsGivenAtFullSpeed) {
  const json report =
      report_of("all_reduce", {"-t", "2", "-b", "64K", "-e", "64K", "--peak", "50GB/s"});
  const json& one = report.at("results")[0].at("out_of_place");
  EXPECT_DOUBLE_EQ(one.at("eta").get<double>(), one.at("bus_bw").get<double>() / 50);
  EXPECT_FALSE(one.contains("wall"));
}

// Of large vectors: a ring moves what busbw counts, recursive doubling 3 M in place of 14/8 M.
TEST(Eta, IsACoefficientOfCost) {
  const auto eta = [](const Arguments& more) {
    Arguments arguments = {"cost", "all_reduce", "--ranks", "8", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const json cost = json::parse(run_captured(arguments).out);
    EXPECT_FALSE(cost.at("critical_path").contains("eta"));
    return cost.at("dataflow").at("eta").get<double>();
  };
  EXPECT_DOUBLE_EQ(eta({"--algo", "ring"}), 1);
  EXPECT_DOUBLE_EQ(eta({"--algo", "recursive_doubling"}), 14.0 / 8 / 3);
  EXPECT_DOUBLE_EQ(eta({"--algo", "ring", "--ports", "2"}), 0.5);
}

}  // namespace
}  // namespace rankine::tools
