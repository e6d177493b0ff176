// rankine skips, and --skips where tools take it.
#include "engine/tools/skips.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/engine/tools/captured_tool.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::json;

TEST(SkipsTool, SearchesAndSaysHowFar) {
  const Captured run = run_captured(
      {"skips", "--ranks", "8", "--network", "ring", "--bytes", "16M", "--best", "3", "--json"});
  ASSERT_EQ(run.exit, 0) << run.err;
  const Json report = Json::parse(run.out);
  EXPECT_EQ(report["exhaustive"], true);
  EXPECT_EQ(report["network"], "ring");
  const Json& rows = report["rows"];
  ASSERT_GE(rows.size(), 3u);
  EXPECT_EQ(rows[2]["rank"], 3);
  EXPECT_LE(rows[0]["time"], rows[1]["time"]);
  EXPECT_LT(rows[0]["time"], report["halving"]);
  bool halving = false;
  for (const Json& row : rows) {
    halving |= row.value("scheme", "") == "halving" && row["time"] == report["halving"];
  }
  EXPECT_TRUE(halving);
}

TEST(SkipsTool, TimesAreThoseOfSimulate) {
  const Captured search = run_captured({"skips", "--ranks", "22", "--network", "torus", "--dims",
                                        "2x11", "--bytes", "64K", "--best", "1", "--json"});
  ASSERT_EQ(search.exit, 0) << search.err;
  const Json row = Json::parse(search.out)["rows"][0];
  std::string skips;
  for (const int s : row["skips"]) skips += (skips.empty() ? "" : ",") + std::to_string(s);
  const Captured simulated =
      run_captured({"simulate", "reduce_scatter", "--algo", "circulant", "--ranks", "22",
                    "--network", "torus", "--dims", "2x11", "--bytes", "64K", "--sync", "rounds",
                    "--ideal-blocks", "--skips", skips, "--json"});
  ASSERT_EQ(simulated.exit, 0) << simulated.err;
  EXPECT_EQ(Json::parse(simulated.out)["time"], row["time"]);
}

TEST(SkipsTool, MeasuresOnThreads) {
  const Captured run =
      run_captured({"skips", "--ranks", "3", "--bytes", "4K", "--best", "1", "--measure"});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_NE(run.out.find("measured"), std::string::npos);
}

TEST(SkipsTool, RefusesWhatItCannotSearch) {
  EXPECT_EQ(run_captured({"skips", "--ranks", "1025"}).exit, 2);
  const Captured dims =
      run_captured({"skips", "--ranks", "8", "--network", "torus", "--dims", "3x3"});
  EXPECT_EQ(dims.exit, 2);
  EXPECT_NE(dims.err.find("3x3"), std::string::npos) << dims.err;
}

TEST(SkipsArgument, IsAListOrAScheme) {
  for (const char* const tool : {"simulate", "cost", "show"}) {
    const auto rounds = [tool](const std::string& skips) {
      const Captured run = run_captured({tool, "reduce_scatter", "--algo", "circulant", "--ranks",
                                         "22", "--skips", skips, "--json"});
      EXPECT_EQ(run.exit, 0) << tool << ": " << run.err;
      return run.exit == 0 ? Json::parse(run.out)["rounds"].get<int>() : -1;
    };
    EXPECT_EQ(rounds("11,6,3,2,1"), 5);
    EXPECT_EQ(rounds("square_root"), 6);
    EXPECT_EQ(rounds("linear"), 21);
    const Captured misspelt = run_captured(
        {tool, "reduce_scatter", "--algo", "circulant", "--ranks", "22", "--skips", "halvin"});
    EXPECT_EQ(misspelt.exit, 2);
    EXPECT_NE(misspelt.err.find("--skips is 'halvin'; allowed are halving, powers_of_two, "),
              std::string::npos)
        << misspelt.err;
    const Captured lost = run_captured(
        {tool, "reduce_scatter", "--algo", "circulant", "--ranks", "7", "--skips", "5,3,1"});
    EXPECT_EQ(lost.exit, 2);
    EXPECT_NE(lost.err.find("rank 0's part of block 2 would be lost"), std::string::npos)
        << lost.err;
  }
}

TEST(SkipsArgument, IsVerified) {
  const Captured run =
      run_captured({"verify", "--algo", "circulant", "--ranks", "7", "--skips", "3,1,2", "--json"});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(Json::parse(run.out)["failed"], 0);
  EXPECT_EQ(run_captured({"verify", "--skips", "3;1"}).exit, 2);
  EXPECT_EQ(run_captured({"verify", "--algo", "circulant", "--ranks", "8", "--skips", "3,1"}).exit,
            2);  // of no number of ranks that is asked for
}

}  // namespace
}  // namespace rankine::tools
