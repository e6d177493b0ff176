// Tests of networks on the command line, and of rankine network.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "engine/cli/arguments.h"
#include "engine/cli/perf.h"
#include "engine/cli/question.h"
#include "engine/network/network_file.h"
#include "engine/network/network_members.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/numa/fixtures.h"

// Lists of networks: the ends of their entries.

namespace rankine::tools {
namespace {

TEST(CallNetworks, SettingsBelongToTheNetworkBeforeThem) {
  const auto read = read_call_networks("--network", "scale_up,scale_out,sync=rounds,torus");
  ASSERT_TRUE(read.ok()) << read.status().text();
  ASSERT_EQ(read->size(), 3U);
  const char* const names[] = {"scale_up", "scale_out,sync=rounds", "torus"};
  const Sync syncs[] = {Sync::dataflow, Sync::rounds, Sync::dataflow};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*read)[i].name, names[i]);
    EXPECT_EQ((*read)[i].network->sync, syncs[i]) << names[i];
  }
  EXPECT_EQ((*read)[1].network->fabric.name, "scale_out");
}

TEST(CallNetworks, MayBeTheContentOfAFile) {
  const auto read = read_call_networks("--network", R"({"name": "mine", "ports": 3})");
  ASSERT_TRUE(read.ok()) << read.status().text();
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ(read->front().name, "mine");
  EXPECT_EQ(read->front().network->fabric.ports, 3);
}

TEST(CallNetworks, ErrorsNameTheArgumentAndThePart) {
  const auto error = [](std::string_view text) {
    return read_call_networks("--network", text).status().text();
  };
  EXPECT_NE(error("").find("--network is ''; allowed are"), std::string::npos) << error("");
  EXPECT_NE(error("scale_up,ether").find("--network is 'ether'"), std::string::npos)
      << error("scale_up,ether");
  EXPECT_NE(error("torus,sync=later").find("--network is 'torus,sync=later': sync is 'later'"),
            std::string::npos)
      << error("torus,sync=later");
  EXPECT_NE(error("torus,colour=1").find("allowed are sync="), std::string::npos);
}

}  // namespace

// rankine network: presets and files, as files.

namespace {

using testing::HasSubstr;

TEST(NetworkCommand, PrintsEveryPresetAsAFile) {
  for (const Regime& regime : regimes()) {
    const Captured run = run_captured({"network", std::string(regime.name)});
    ASSERT_EQ(run.exit, 0) << run.err;
    const auto read = parse_network(run.out, "x");
    ASSERT_TRUE(read.ok()) << read.status().text();
    EXPECT_EQ(*read, regime.fabric) << run.out;
  }
}

TEST(NetworkCommand, ListsPresetsWithTheirSources) {
  const Captured run = run_captured({"network"});
  EXPECT_EQ(run.exit, 0);
  for (const Regime& regime : regimes()) {
    EXPECT_THAT(run.out, HasSubstr(regime.name));
    EXPECT_THAT(run.out, HasSubstr(regime.source));
  }
}

TEST(NetworkCommand, ChecksFiles) {
  const std::string path = testing::TempDir() + "/network_command.json";
  std::ofstream(path) << R"({"wiring": "mesh", "dims": "4x2"})";
  const Captured good = run_captured({"network", path, "--ranks", "8"});
  ASSERT_EQ(good.exit, 0) << good.err;
  const auto filled = nlohmann::json::parse(good.out);
  EXPECT_EQ(filled["name"], path);
  EXPECT_EQ(filled["ports"], 3);
  const Captured wrong = run_captured({"network", path, "--ranks", "9"});
  EXPECT_EQ(wrong.exit, 2);
  EXPECT_TRUE(wrong.err.starts_with("rankine network: dims is 4x2"));
  std::ofstream(path) << R"({"ports": 0})";
  const Captured bad = run_captured({"network", path});
  EXPECT_EQ(bad.exit, 2);
  EXPECT_EQ(bad.err, "rankine network: network '" + path +
                         "': ports is 0; allowed are whole numbers from 1 to 16384\n");
  std::remove(path.c_str());
}

TEST(NetworkCommand, FillsInWhatIsOpen) {
  const Captured run = run_captured({"network", "torus", "--ranks", "12", "--dims", "6x2"});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["dims"], "6x2");
  EXPECT_EQ(nlohmann::json::parse(run.out)["ports"], 4);
}

TEST(NetworkCommand, PrintsTheSchemaAndTheTableOfMembers) {
  const Captured schema = run_captured({"network", "--schema"});
  ASSERT_EQ(schema.exit, 0) << schema.err;
  const auto properties = nlohmann::json::parse(schema.out)["properties"];
  const ScopedEnv columns("COLUMNS", "2000");  // no line is broken
  const Captured help = run_captured({"network", "--help"});
  for (const NetworkMember& row : network_members()) {
    EXPECT_TRUE(properties.contains(std::string(row.name))) << row.name;
    EXPECT_THAT(help.out, HasSubstr(row.help));
  }
}

TEST(NetworkCommand, RefusesWhatMakesNoSense) {
  EXPECT_THAT(run_captured({"network", "--schema", "torus"}).err,
              HasSubstr("network and --schema are given"));
  EXPECT_EQ(run_captured({"network", "--ranks", "4"}).err,
            "rankine network: a network is needed with --ranks and --dims\n");
  EXPECT_EQ(run_captured({"network", "torus", "--dims", "2x2"}).err,
            "rankine network: --dims needs --ranks\n");
  EXPECT_THAT(run_captured({"network", "ethernet"}).err,
              HasSubstr("network is 'ethernet', which is no preset and no file"));
}

}  // namespace

// Networks from the command line: shared links, in every subcommand that takes networks.

namespace {

using Json = nlohmann::ordered_json;

Captured simulated(std::vector<std::string> arguments) {
  const std::vector<std::string> first = {"simulate", "all_reduce", "--bytes", "900K", "--json"};
  arguments.insert(arguments.begin(), first.begin(), first.end());
  return run_captured(arguments);
}

Json answer_of(const std::vector<std::string>& arguments) {
  const Captured run = simulated(arguments);
  EXPECT_EQ(run.exit, 0) << run.err;
  return run.exit == 0 ? Json::parse(run.out) : Json();
}

// The standard error of a refused command.
std::string error_of(const std::vector<std::string>& arguments) {
  const Captured run = run_captured(arguments);
  EXPECT_EQ(run.exit, 2) << run.out;
  return run.err;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Gamma and contention from the command line: Traff's (p-1)/p m (beta + gamma), and n_gamma.
TEST(Unlike, GammaAndContentionAreFlags) {
  const std::vector<std::string> ring = {"--algo", "ring",    "--ranks", "4",           "--sync",
                                         "rounds", "--alpha", "1us",     "--bandwidth", "1GB/s"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), ring.begin(), ring.end());
    return answer_of(more);
  };
  constexpr double kM = 900 * 1024;
  EXPECT_DOUBLE_EQ(with({})["time"], 6e-6 + 1.5 * kM * 1e-9);
  const Json adding = with({"--gamma", "1ns"});
  EXPECT_DOUBLE_EQ(adding["time"], 6e-6 + 2.25 * kM * 1e-9);
  EXPECT_EQ(adding["gamma"], 1e-9);
  EXPECT_DOUBLE_EQ(with({"--eta-alpha", "2", "--eta-beta", "0.5"})["time"], 12e-6 + 3 * kM * 1e-9);
  EXPECT_TRUE(has(error_of({"simulate", "all_reduce", "--algo", "ring", "--eta-beta", "2"}),
                  "eta_beta is 2; allowed are numbers above 0 and up to 1"));

  const Captured cost = run_captured(
      {"cost", "all_reduce", "--algo", "ring", "--ranks", "4", "--gamma", "1ns", "--json"});
  ASSERT_EQ(cost.exit, 0) << cost.err;
  EXPECT_EQ(Json::parse(cost.out)["dataflow"]["n_gamma"]["exact"], "3/4");
  EXPECT_EQ(Json::parse(cost.out)["dataflow"]["n_beta"]["exact"], "3/2");
  EXPECT_EQ(Json::parse(cost.out)["dataflow"]["n_alpha"]["exact"], "6");
}

TEST(Wiring, PresetsAreFilledIn) {
  const Json square = answer_of({"--algo", "bucket", "--ranks", "12", "--network", "torus"});
  EXPECT_EQ(square["wiring"], "torus");
  EXPECT_EQ(square["dims"], "4x3");
  EXPECT_EQ(square["params"]["dims"], "4x3") << "the algorithm takes the network's";
  EXPECT_EQ(square["ports"], 4);
  EXPECT_EQ(square["hop"], 2e-7);
  EXPECT_EQ(square["routing"], "minimal");
  const Json cube =
      answer_of({"--algo", "bucket", "--ranks", "27", "--network", "torus", "--dims", "3x3x3"});
  EXPECT_EQ(cube["dims"], "3x3x3");
  EXPECT_EQ(cube["params"]["dims"], "3x3x3");
  EXPECT_EQ(cube["ports"], 6);
  EXPECT_EQ(cube["hops_max"], 1);
  EXPECT_EQ(answer_of({"--algo", "ring", "--network", "ring"})["ports"], 2);
  const Json full = answer_of({"--algo", "ring"});
  EXPECT_EQ(full["wiring"], "full");
  EXPECT_FALSE(full.contains("link_max") || full.contains("hop") || full.contains("dims"));
}

TEST(Wiring, OptionsOverride) {
  const std::vector<std::string> base = {"--algo", "recursive_doubling", "--ranks",
                                         "8",      "--wiring",           "ring"};
  const auto with = [&base](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return answer_of(more);
  };
  const Json minimal = with({"--hop", "100ns", "--rounds"});
  EXPECT_EQ(minimal["network"], "plain (changed)");
  EXPECT_EQ(minimal["ports"], 2) << "one per link";
  EXPECT_EQ(minimal["round_congestion"], Json({1.0, 2.0, 2.0}));
  EXPECT_EQ(minimal["round_hops"], Json({1, 2, 4}));
  EXPECT_EQ(minimal["round_link"], Json({921600, 1843200, 1843200}));
  EXPECT_EQ(minimal["link_max"], 1843200);
  EXPECT_EQ(minimal["congestion_max"], 2.0);
  // 3 us of alpha, 7 hops, and five times 900 KiB over 100 GB/s.
  EXPECT_DOUBLE_EQ(minimal["time"].get<double>(), 3e-6 + 7e-7 + 5 * 921600e-11);
  const Json one_way = with({"--routing", "one_way", "--ports", "1"});
  EXPECT_EQ(one_way["ports"], 1);
  EXPECT_EQ(one_way["congestion_max"], 4.0);
  EXPECT_EQ(one_way["hops_max"], 7);
  const Json groups = answer_of({"--algo", "recursive_doubling", "--ranks", "8", "--network",
                                 "two_level_shared", "--node-ranks", "4"});
  EXPECT_EQ(groups["congestion_max"], 4.0);
  EXPECT_EQ(groups["hops_max"], 2);
}

TEST(Wiring, MeshesHypercubesAndFatTrees) {
  const Json mesh = answer_of({"--algo", "bucket", "--ranks", "12", "--network", "mesh"});
  EXPECT_EQ(mesh["dims"], "4x3");
  EXPECT_EQ(mesh["params"]["dims"], "4x3") << "the algorithm takes the network's";
  EXPECT_EQ(mesh["ports"], 4);
  EXPECT_EQ(mesh["hops_max"], 3) << "where the torus closes its rings";
  EXPECT_FALSE(mesh.contains("routing"));
  const Json cube =
      answer_of({"--algo", "recursive_doubling", "--ranks", "16", "--wiring", "hypercube"});
  EXPECT_EQ(cube["ports"], 4);
  EXPECT_EQ(cube["hops_max"], 1);
  EXPECT_EQ(cube["congestion_max"], 1.0);
  const std::vector<std::string> tree = {"--algo",    "recursive_doubling", "--ranks",  "16",
                                         "--network", "two_level",          "--wiring", "fat_tree"};
  for (const int spines : {1, 2, 4, 8}) {
    auto with = tree;
    with.insert(with.end(), {"--spines", std::to_string(spines)});
    const Json answer = answer_of(with);
    EXPECT_EQ(answer["spines"], spines);
    EXPECT_EQ(answer["congestion_max"], 8.0 / spines) << "a leaf's 8 messages to the other leaf";
  }
  const Json preset = answer_of({"--algo", "ring", "--ranks", "16", "--network", "fat_tree"});
  EXPECT_EQ(preset["spines"], 8);
  EXPECT_EQ(preset["ports"], 1);
}

TEST(Wiring, AHopInFullWiringIsOne) {
  const Json hop = answer_of({"--algo", "ring", "--ranks", "8", "--hop", "500ns"});
  const Json alpha = answer_of({"--algo", "ring", "--ranks", "8", "--alpha", "1500ns"});
  EXPECT_EQ(hop["time"], alpha["time"]);
}

TEST(Wiring, ErrorsNameTheOption) {
  const auto error = [](std::vector<std::string> more) {
    const std::vector<std::string> first = {"simulate", "all_reduce", "--algo", "ring"};
    more.insert(more.begin(), first.begin(), first.end());
    return error_of(more);
  };
  EXPECT_TRUE(has(error({"--wiring", "bus"}), "--wiring is 'bus'; allowed are full, ring, torus"));
  EXPECT_TRUE(has(error({"--routing", "any"}), "--routing is 'any'; allowed are minimal, one_way"));
  EXPECT_TRUE(has(error({"--dims", "4y2"}), "--dims is '4y2'; allowed are"));
  EXPECT_TRUE(has(error({"--wiring", "torus", "--dims", "3x5"}), "dims is 3x5; allowed are "));
  EXPECT_TRUE(has(error({"--wiring", "two_level"}), "--node-ranks is needed"));
  EXPECT_TRUE(has(error({"--between-alpha", "1us"}),
                  "--between-alpha sets the links among groups, and network 'plain' has one"));
  EXPECT_TRUE(has(error({"--node-ranks", "4", "--between-alpha", "1us"}),
                  "--node-ranks is 4; --between-alpha and --between-bandwidth are needed"));
  EXPECT_TRUE(
      has(error({"--network", "two_level", "--node-ranks", "0", "--between-bandwidth", "1GB/s"}),
          "--between-bandwidth sets the links among groups"));
  EXPECT_TRUE(has(error({"--network", "torus", "--wiring", "full"}), "--ports is needed"));
  EXPECT_TRUE(has(error({"--routing", "one_way"}), "routing is one_way and wiring is full"));
  EXPECT_TRUE(has(error({"--wiring", "ring", "--multicast"}), "needs full wiring"));
  EXPECT_TRUE(has(error({"--wiring", "ring", "--permute"}), "has permute and wiring is ring"));
  EXPECT_TRUE(has(error({"--hop", "-1ns"}), "--hop"));
  EXPECT_TRUE(has(error({"--wiring", "hypercube", "--ranks", "12"}),
                  "ranks is 12; allowed with hypercube "));
  EXPECT_TRUE(has(error({"--wiring", "fat_tree", "--spines", "2"}), "--node-ranks is needed"));
  EXPECT_TRUE(has(error({"--network", "two_level", "--wiring", "fat_tree"}),
                  "--spines is needed with it, 1 to 512"));
  EXPECT_TRUE(has(error({"--network", "fat_tree", "--spines", "0"}), "--spines is '0'; allowed"));
  EXPECT_TRUE(has(error({"--spines", "2"}), "spines is 2 and wiring is full"));
  EXPECT_TRUE(has(error({"--wiring", "mesh", "--routing", "one_way"}),
                  "routing is one_way and wiring is mesh"));
}

TEST(Wiring, IsSaid) {
  const Captured torus = run_captured({"simulate", "all_reduce", "--algo", "ring", "--ranks", "6",
                                       "--network", "torus", "--dims", "2x3", "--rounds"});
  EXPECT_TRUE(has(torus.out, "torus 2x3, 200 ns per hop")) << torus.out;
  EXPECT_TRUE(has(torus.out, "congestion  hops")) << torus.out;
  const Captured tree = run_captured(
      {"simulate", "all_reduce", "--algo", "ring", "--ranks", "16", "--network", "fat_tree"});
  EXPECT_TRUE(has(tree.out, "8 spines, a link up and down per group to each")) << tree.out;
  const Captured mesh = run_captured({"simulate", "all_reduce", "--algo", "ring", "--ranks", "8",
                                      "--network", "mesh", "--dims", "2x4"});
  EXPECT_TRUE(has(mesh.out, "3 ports") && has(mesh.out, "mesh 2x4, 200 ns per hop")) << mesh.out;
  const Captured full = run_captured({"simulate", "all_reduce", "--algo", "ring", "--rounds"});
  EXPECT_FALSE(has(full.out, "congestion")) << full.out;
  const Captured chosen =
      run_captured({"choose", "all_reduce", "--ranks", "9", "--network", "torus"});
  EXPECT_TRUE(has(chosen.out, "torus 3x3")) << chosen.out;
}

// Every other subcommand uses the given torus.
TEST(Wiring, ReachesEverySubcommand) {
  const Captured cost = run_captured({"cost", "all_reduce", "--algo", "recursive_doubling",
                                      "--ranks", "8", "--network", "ring", "--json"});
  ASSERT_EQ(cost.exit, 0) << cost.err;
  EXPECT_EQ(Json::parse(cost.out)["dataflow"]["n_hop"]["exact"], "7");
  EXPECT_EQ(Json::parse(cost.out)["dataflow"]["n_beta"]["exact"], "5");
  EXPECT_EQ(Json::parse(cost.out)["dataflow"]["n_alpha"]["exact"], "3");

  const Captured chosen = run_captured(
      {"choose", "all_reduce", "--ranks", "8", "--network", "torus", "--dims", "2x4", "--json"});
  ASSERT_EQ(chosen.exit, 0) << chosen.err;
  const std::string best = Json::parse(chosen.out)["choice"]["algorithm"];
  const Json same = answer_of(
      {"--algo", best, "--ranks", "8", "--network", "torus", "--bytes", "1M", "--dims", "2x4"});
  EXPECT_EQ(same["time"], Json::parse(chosen.out)["choice"]["time"]);

  const Captured map = run_captured({"map", "all_reduce", "--ranks", "7,12", "--network", "torus",
                                     "--minbytes", "1M", "--maxbytes", "1M"});
  EXPECT_EQ(map.exit, 0) << map.err;

  const Captured shown =
      run_captured({"show", "all_reduce", "--algo", "bucket", "--ranks", "4", "--dims", "2x2"});
  EXPECT_EQ(shown.exit, 0) << shown.err;
  const Captured proved = run_captured({"verify", "--algo", "bucket", "--dims", "2x3", "--json"});
  ASSERT_EQ(proved.exit, 0) << proved.err;
  EXPECT_EQ(Json::parse(proved.out)["ranks"], "6");

  const BatchAnswer batch = answer_request(
      R"({"collective":"all_reduce","algorithm":"bucket","ranks":6,"bytes":600,"wiring":"torus",)"
      R"("hop":"100ns","dims":"2x3"})",
      1);
  ASSERT_TRUE(batch.ok) << batch.line;
  EXPECT_EQ(Json::parse(batch.line)["hops_max"], 1) << "the algorithm takes the network's torus";
  const BatchAnswer other = answer_request(
      R"({"collective":"all_reduce","algorithm":"bucket","ranks":6,"bytes":600,"network":"torus",)"
      R"("dims":"3x3"})",
      1);
  EXPECT_TRUE(has(other.line, "the number of ranks, 6")) << other.line;
  const BatchAnswer tree =
      answer_request(R"({"collective":"all_reduce","algorithm":"ring","ranks":16,"bytes":600,)"
                     R"("network":"fat_tree","spines":2})",
                     1);
  ASSERT_TRUE(tree.ok) << tree.line;
  EXPECT_EQ(Json::parse(tree.line)["spines"], 2);
}

// Real threads and real data take equal ticks.
TEST(Wiring, RunsUnderItsClock) {
  for (const char* network : {"torus", "mesh", "hypercube", "fat_tree"}) {
    const Captured run = run_captured({"run", "all_reduce", "--algo", "bucket", "--ranks", "4",
                                       "--bytes", "4K", "--network", network, "--json"});
    ASSERT_EQ(run.exit, 0) << run.err << run.out;
    EXPECT_EQ(Json::parse(run.out)["equal"], true) << network;
  }
}

}  // namespace
}  // namespace rankine::tools
