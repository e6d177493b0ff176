// Tests the catalogue benchmark from the command line: a filter finds its names, and its times on a
// network are the simulator's.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "algorithms/catalogue.h"
#include "engine/network/predict.h"
#include "engine/network/simulate.h"

namespace rankine {
namespace {

std::string output_of(const std::string& flags, int& exit) {
  std::FILE* const pipe = popen(("bench/catalogue/catalogue " + flags).c_str(), "r");
  std::string text;
  char part[4096];
  for (std::size_t got = 0; (got = std::fread(part, 1, sizeof(part), pipe)) > 0;) {
    text.append(part, got);
  }
  exit = pclose(pipe);
  return text;
}
std::string output_of(const std::string& flags) {
  int exit = 0;
  std::string text = output_of(flags, exit);
  EXPECT_EQ(exit, 0) << flags;
  return text;
}

// Runs by our names, without the suffixes of Google Benchmark.
std::map<std::string, nlohmann::json> run(const std::string& filter, const std::string& flags) {
  const auto report = nlohmann::json::parse(
      output_of("--benchmark_format=json '--benchmark_filter=" + filter + "' " + flags), nullptr,
      false);
  std::map<std::string, nlohmann::json> runs;
  if (!report.is_object()) return runs;
  for (const auto& one : report.at("benchmarks")) {
    const std::string name = one.at("name");
    EXPECT_FALSE(one.contains("error_occurred")) << one;
    runs[name.substr(0, std::min(name.find("/iterations"), name.find("/manual_time")))] = one;
  }
  return runs;
}

double simulated_us(Collective collective, const char* name, const char* network) {
  constexpr std::uint64_t kBytes = 65536;
  const Algorithm& entry = *find_algorithm(collective, name);
  const Fabric& fabric = find_regime(network)->fabric;
  Params params{.ranks = 8};
  const auto segments = best_segments(entry, params, fabric, kBytes);
  EXPECT_TRUE(segments.ok());
  params.segments = *segments;
  const Schedule schedule = entry.make(params);
  const auto result = simulate(schedule, goal_of(entry, params, schedule), fabric, kBytes);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result->seconds * 1e6;
}

TEST(Catalogue, ManualTimeOnANetworkIsTheSimulators) {
  const auto runs =
      run("^(all_reduce/(ring|halving_doubling)|broadcast/chain|all_to_all/pairwise)/.*network:",
          "--networks scale_up,scale_out --counts even");
  EXPECT_EQ(runs.size(), 8U);
  for (const char* network : {"scale_up", "scale_out"}) {
    for (const auto& [collective, algorithm] :
         {std::pair(Collective::all_reduce, "ring"),
          std::pair(Collective::all_reduce, "halving_doubling"),
          std::pair(Collective::broadcast, "chain"),
          std::pair(Collective::all_to_all, "pairwise")}) {
      const std::string name = std::string(name_of(collective)) + "/" + algorithm +
                               "/ranks:8/bytes:65536/network:" + network;
      ASSERT_TRUE(runs.contains(name)) << name;
      const nlohmann::json& one = runs.at(name);
      EXPECT_EQ(one.at("time_unit"), "us");
      EXPECT_DOUBLE_EQ(one.at("real_time").get<double>(),
                       simulated_us(collective, algorithm, network))
          << name;
      EXPECT_GT(one.at("wall_us").get<double>(), 0);
    }
  }
}

// The first rank has all elements: they go around the ring, to seven ranks.
TEST(Catalogue, HasCountsThatDiffer) {
  const auto runs = run("^all_gather/ring/", "--counts one,rising --networks scale_out");
  EXPECT_EQ(runs.size(), 4U);  // and at full speed
  const std::string name = "all_gather/ring/ranks:8/bytes:65536/counts:one/network:scale_out";
  ASSERT_TRUE(runs.contains(name));
  EXPECT_NEAR(runs.at(name).at("real_time").get<double>(), 7 * (1.5 + 65536 / 50e3), 1e-9);
}

TEST(Catalogue, RunsAtFullSpeedAndPlans) {
  const auto fast = run("^(send_recv|barrier)/.*/full_speed", "--ranks 2,3 --bytes 8");
  EXPECT_TRUE(fast.contains("send_recv/direct/ranks:2/bytes:8/full_speed"));
  EXPECT_TRUE(fast.contains("barrier/dissemination/ranks:3/bytes:0/full_speed"));
  for (const auto& [name, one] : fast) EXPECT_GT(one.at("real_time").get<double>(), 0) << name;
  const auto plans = run("/gather/linear/", "--planning --ranks 4 --bytes 64");
  EXPECT_EQ(plans.size(), 2U);
  EXPECT_TRUE(plans.contains("predict/gather/linear/ranks:4/bytes:64"));
}

// Every algorithm of the catalogue that takes 8 ranks, except those that scale_out cannot carry.
TEST(Catalogue, ListsAll) {
  const std::string list =
      output_of("--benchmark_list_tests --benchmark_filter=network: --counts even");
  for (const Algorithm& entry : catalogue()) {
    Params params = entry.only_taken({.ranks = 8, .peer = 1});
    const std::string name =
        std::string(name_of(entry.collective)) + "/" + std::string(entry.name) + "/ranks:8/";
    const bool there =
        !entry.refusal(params) && entry.name != "switch" && entry.name != "binomial_multicast";
    EXPECT_EQ(list.find("\n" + name) != std::string::npos || list.starts_with(name), there) << name;
  }
}

TEST(Catalogue, SaysWhichFlagIsWrong) {
  int exit = 0;
  const std::string text = output_of("--networks ether 2>&1", exit);
  EXPECT_NE(exit, 0);
  EXPECT_NE(text.find("--networks is 'ether'"), std::string::npos) << text;
}

}  // namespace
}  // namespace rankine
