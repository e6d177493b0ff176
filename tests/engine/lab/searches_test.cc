// Tests of rankine gaps and rankine skips.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>
#include <string>

#include "engine/lab/commands.h"
#include "tests/engine/cli/tool_fixtures.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::ordered_json;

// The costs of two algorithms equal those of rankine cost.
TEST(Gaps, AreWhereAnotherTakesLess) {
  const auto cost = [](const Json& of, const Json& ranks) {
    return json_of("cost all_reduce --ports 2 --json --algo " + of["algorithm"].get<std::string>() +
                   " --ranks " + ranks.dump())["dataflow"];
  };
  std::set<int> ranks;
  for (const Json& gap :
       json_lines_of("gaps all_reduce --algo trivance --ports 2 --ranks-to 9 --json")) {
    ranks.insert(gap["ranks"].get<int>());
    EXPECT_EQ(gap["algorithm"], "trivance");
    const Json behind = cost(gap, gap["ranks"]), better = cost(gap["better"], gap["ranks"]);
    EXPECT_EQ(gap["n_beta"], behind["n_beta"]) << gap;
    EXPECT_NE(better, behind) << gap;
    for (const char* member : {"n_alpha", "n_beta"}) {
      EXPECT_EQ(gap["better"][member], better[member]) << gap;
      EXPECT_LE(better[member]["value"], behind[member]["value"]) << gap;
    }
    EXPECT_GE(better["n_beta"]["value"], gap["least_n_beta"]) << gap;
  }
  // Half of the other three blocks through each port, twice, is 3/4 of M; whole blocks would take
  // M.
  EXPECT_TRUE(ranks.contains(4));
  EXPECT_TRUE(json_lines_of("gaps all_reduce --algo direct_one_shot --ranks-to 2 --json").empty());
  // Among 10 ranks with two ports no algorithm is better in 6 rounds, although moving M takes at
  // least 9/10 of it. Among 9 and 11 ranks the algorithm reaches the least.
  const std::string question =
      "gaps all_reduce --algo trivance --ports 2 --ranks 9 --ranks-to 11 --json";
  for (const Json& gap : json_lines_of(question)) EXPECT_NE(gap["ranks"], 10) << gap;
  for (const Json& gap : json_lines_of(question + " --least")) EXPECT_EQ(gap["ranks"], 10) << gap;
}

TEST(Skips, TimesAreThoseOfSimulate) {
  const Json report = json_of("skips --ranks 8 --network ring --bytes 16M --best 3 --json");
  const Json& rows = report["rows"];
  EXPECT_LE(rows[0]["time"], rows[1]["time"]);
  EXPECT_LT(rows[0]["time"], report["halving"]);
  bool halving = false;
  for (const Json& row : rows) {
    halving |= row.value("scheme", "") == "halving" && row["time"] == report["halving"];
  }
  EXPECT_TRUE(halving);
  const std::string question = " --ranks 22 --network torus --dims 2x11 --bytes 64K --json";
  const Json best = json_of("skips --best 1" + question)["rows"][0];
  std::string skips;
  for (const int s : best["skips"]) skips += (skips.empty() ? "" : ",") + std::to_string(s);
  EXPECT_EQ(
      json_of("simulate reduce_scatter --algo circulant --sync rounds --ideal-blocks --skips " +
              skips + question)["time"],
      best["time"]);
  EXPECT_TRUE(has(output_of("skips --ranks 3 --bytes 4K --best 1 --measure"), "measured"));
}

}  // namespace
}  // namespace rankine::tools
