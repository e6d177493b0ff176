// Tests of rankine gaps and rankine skips.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <vector>

#include "engine/lab/commands.h"
#include "tests/engine/cli/tool_fixtures.h"

// rankine gaps: its costs of two algorithms equal those of rankine cost.

namespace rankine::tools {
namespace {

using Json = nlohmann::json;

std::vector<Json> gaps(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "gaps");
  arguments.push_back("--json");
  const Captured run = run_captured(arguments);
  EXPECT_EQ(run.exit, 0) << run.err;
  std::vector<Json> lines;
  std::istringstream text(run.out);
  for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  return lines;
}

Json cost(const Json& of, int ranks, const std::string& ports) {
  const Captured run = run_captured({"cost", "all_reduce", "--algo", of["algorithm"], "--ranks",
                                     std::to_string(ranks), "--ports", ports, "--json"});
  EXPECT_EQ(run.exit, 0) << run.err;
  return Json::parse(run.out)["dataflow"];
}

TEST(Gaps, NameTheNetworkWhoseDimensionsFollowTheRanks) {
  const Captured run = run_captured({"gaps", "all_gather", "--algo", "bruck", "--ranks", "4",
                                     "--ranks-to", "4", "--wiring", "torus"});
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_NE(run.out.find("(a port per link, 1 us, 100 GB/s; torus)"), std::string::npos) << run.out;
}

TEST(Gaps, AreWhereAnotherTakesLess) {
  const std::vector<Json> found =
      gaps({"all_reduce", "--algo", "trivance", "--ports", "2", "--ranks-to", "9"});
  bool among_four = false;
  for (const Json& gap : found) {
    const int ranks = gap["ranks"];
    among_four |= ranks == 4;
    EXPECT_EQ(gap["algorithm"], "trivance");
    const Json behind = cost(gap, ranks, "2"), better = cost(gap["better"], ranks, "2");
    EXPECT_EQ(gap["n_beta"], behind["n_beta"]) << gap;
    EXPECT_EQ(gap["better"]["n_beta"], better["n_beta"]) << gap;
    EXPECT_EQ(gap["better"]["n_alpha"], better["n_alpha"]) << gap;
    EXPECT_LE(better["n_alpha"]["value"], behind["n_alpha"]["value"]) << gap;
    EXPECT_LE(better["n_beta"]["value"], behind["n_beta"]["value"]) << gap;
    EXPECT_NE(better, behind) << gap;
    EXPECT_GE(better["n_beta"]["value"], gap["least_n_beta"]) << gap;
  }
  // Half of the other three blocks through each port, twice, is 3/4 of M; whole blocks would take
  // M.
  EXPECT_TRUE(among_four);
}

TEST(Gaps, AreNoneWhereNobodyTakesLess) {
  EXPECT_TRUE(gaps({"all_reduce", "--algo", "direct_one_shot", "--ranks-to", "2"}).empty());
  const Captured run = run_captured({"gaps", "all_gather", "--algo", "bruck", "--ranks-to", "16"});
  EXPECT_EQ(run.exit, 0);
  EXPECT_NE(run.out.find("0 of 15: "), std::string::npos) << run.out;
}

// Among 10 ranks with two ports no algorithm is better in 6 rounds, although moving M takes at
// least 9/10 of it. Among 9 and 11 ranks the algorithm reaches the least.
TEST(Gaps, AreAlsoToTheLeastWhereThatIsAsked) {
  std::vector<std::string> question = {"all_reduce", "--algo", "trivance",   "--ports", "2",
                                       "--ranks",    "9",      "--ranks-to", "11"};
  for (const Json& gap : gaps(question)) EXPECT_NE(gap["ranks"], 10) << gap;
  question.emplace_back("--least");
  bool among_ten = false;
  for (const Json& gap : gaps(question)) {
    EXPECT_NE(gap["ranks"], 9);
    EXPECT_NE(gap["ranks"], 11);
    if (gap["ranks"] != 10) continue;
    among_ten = true;
    EXPECT_TRUE(gap["better"].is_null()) << gap;
    EXPECT_EQ(gap["n_beta"]["exact"], "1");
    EXPECT_DOUBLE_EQ(gap["least_n_beta"], 9. / 10);
  }
  EXPECT_TRUE(among_ten);
}

TEST(Gaps, RefusesFewerThanTheFewest) {
  const Captured run = run_captured({"gaps", "all_gather", "--ranks", "9", "--ranks-to", "8"});
  EXPECT_EQ(run.exit, 2);
  EXPECT_EQ(run.err, "rankine gaps: --ranks-to is 8; allowed are 9 (--ranks) to 256\n");
}

}  // namespace

// rankine skips, and --skips in the tools that take it.

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
            2);  // valid for no number of ranks asked for
}

}  // namespace
}  // namespace rankine::tools
