// rankine gaps: what it finds is what cost says of the same two.
#include "engine/tools/gaps.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/engine/tools/captured_tool.h"

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
  // Half of the other three blocks through each port, twice, is 3/4 of M; with whole ones it
  // takes 1.
  EXPECT_TRUE(among_four);
}

TEST(Gaps, AreNoneWhereNobodyTakesLess) {
  EXPECT_TRUE(gaps({"all_reduce", "--algo", "direct_one_shot", "--ranks-to", "2"}).empty());
  const Captured run = run_captured({"gaps", "all_gather", "--algo", "bruck", "--ranks-to", "16"});
  EXPECT_EQ(run.exit, 0);
  EXPECT_NE(run.out.find("0 of 15: "), std::string::npos) << run.out;
}

// Among 10 ranks with two ports nobody is better in 6 rounds, though 9/10 of M would do where M is
// moved; among 9 and 11 it is what has to be.
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
}  // namespace rankine::tools
