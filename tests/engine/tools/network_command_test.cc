// rankine network: presets and files, as files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/network/network_file.h"
#include "engine/network/network_members.h"
#include "tests/engine/tools/captured_tool.h"
#include "tests/numa/scoped_env.h"

namespace rankine::tools {
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
  EXPECT_EQ(wrong.err,
            "rankine network: dims is 4x2; the sizes must multiply to the number of ranks, 9\n");
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
              HasSubstr("network and --schema exclude each other"));
  EXPECT_EQ(run_captured({"network", "--ranks", "4"}).err,
            "rankine network: a network is needed with --ranks and --dims\n");
  EXPECT_EQ(run_captured({"network", "torus", "--dims", "2x2"}).err,
            "rankine network: --dims needs --ranks\n");
  EXPECT_THAT(run_captured({"network", "ethernet"}).err,
              HasSubstr("network is 'ethernet', which is no preset and no file"));
}

}  // namespace
}  // namespace rankine::tools
