// Tests of rankine gaps, rankine skips and rankine synthesise.

#include <nlohmann/json.hpp>

#include "engine/base/units.h"
#include "engine/lab/commands.h"
#include "engine/lab/forest.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/testing.h"

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

// The vectors per unit that cross from the nodes in `side`, and the units of its links.
std::pair<std::int64_t, std::int64_t> cut_of(const LinkGraph& graph, unsigned side,
                                             const std::vector<int>& vectors) {
  std::int64_t sent = 0, bandwidth = 0;
  for (Rank r = 0; r < graph.ranks; ++r) sent += (side >> r & 1U) != 0 ? at(vectors, r) : 0;
  for (const auto& [ends, each] : graph.links) {
    if ((side >> ends.first & 1U) != 0 && (side >> ends.second & 1U) == 0) bandwidth += each;
  }
  return {sent, bandwidth};
}

// Every set of nodes is a bound (the definition), and the trees keep to it. Catches a search that
// misses the tightest cut, switches removed across a cut, and trees that do not fit.
void expect_best_trees(const LinkGraph& graph, const std::vector<int>& vectors, int trees = 0) {
  const auto forest = forest_of(graph, vectors, trees);
  ASSERT_TRUE(forest.ok()) << forest.status().text();
  const unsigned all_ranks = (1U << graph.ranks) - 1;
  Rational tightest;
  for (unsigned side = 0; side < 1U << graph.nodes; ++side) {
    if ((side & all_ranks) == all_ranks) continue;
    const auto [sent, bandwidth] = cut_of(graph, side, vectors);
    if (sent > 0) tightest = std::max(tightest, Rational(sent, bandwidth));
    std::int64_t crossing = 0;
    for (const SpanningTree& tree : forest->all) {
      for (const auto& edge : tree.edges) {
        const bool out = (side >> edge.from & 1U) != 0 && (side >> edge.to & 1U) == 0;
        crossing += out ? tree.count : 0;
      }
    }
    const Rational room = forest->time * Rational(forest->trees) * Rational(bandwidth);
    EXPECT_FALSE(room < Rational(crossing)) << "cut " << side;
  }
  EXPECT_EQ(forest->cut.time, tightest);
  if (trees == 0) {
    EXPECT_EQ(forest->time, tightest);
  }
  std::vector<std::int64_t> begun(static_cast<std::size_t>(graph.ranks), 0);
  for (const SpanningTree& tree : forest->all) {
    at(begun, tree.root) += tree.count;
    std::set<Rank> reached = {tree.root};
    for (const auto& edge : tree.edges) {
      EXPECT_TRUE(reached.contains(edge.from));
      EXPECT_TRUE(reached.insert(edge.to).second);
    }
    EXPECT_EQ(static_cast<int>(reached.size()), graph.ranks);
  }
  for (Rank r = 0; r < graph.ranks; ++r) EXPECT_EQ(at(begun, r), forest->trees * at(vectors, r));
}

// As many links lead to a node as from it, with unequal bandwidths.
LinkGraph random_network(std::mt19937& dice, int ranks, int switches) {
  LinkGraph graph{.ranks = ranks, .nodes = ranks + switches, .seconds_per_byte = 1};
  for (int node = 1; node < graph.nodes; ++node) {
    for (int links = 0; links < 3; ++links) {
      const int other = static_cast<int>(dice() % static_cast<unsigned>(node));
      const std::int64_t both = 1 + static_cast<std::int64_t>(dice() % 4);
      graph.links[{node, other}] = graph.links[{other, node}] = both;
    }
  }
  return graph;
}

TEST(Forest, ReachesTheTightestCutOfAnyNetwork) {
  std::mt19937 dice(20260601);
  for (int i = 0; i < 60; ++i) {
    const int ranks = 2 + i % 5;
    const LinkGraph graph = random_network(dice, ranks, i % 4);
    std::vector<int> vectors(static_cast<std::size_t>(ranks), 1);
    SCOPED_TRACE(i);
    expect_best_trees(graph, vectors);
    expect_best_trees(graph, vectors, 1 + i % 3);
    vectors.assign(vectors.size(), 0);
    at(vectors, i % ranks) = 1;
    expect_best_trees(graph, vectors);
  }
}

// Cuts worked out by hand: vectors over links of one unit.
TEST(Forest, KnowsTheCutsOfSmallNetworks) {
  const struct {
    const char* preset;
    int ranks;
    Rational time;
  } cases[] = {
      {"plain", 4, 3},                       // K4 with one port: three vectors into each rank
      {"ring", 4, Rational(3, 2)},           // two links into each rank
      {"torus", 9, 2},                       // four links into each rank
      {"hypercube", 8, Rational(7, 3)},      // three links into each rank
      {"mesh", 4, Rational(3, 2)},           // two links into each corner
      {"two_level_shared", 16, Rational(8)}  // eight vectors over the link between two switches
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.preset);
    const auto fabric = wired_for(find_regime(c.preset)->fabric, c.ranks);
    const auto graph = link_graph(*fabric, c.ranks);
    ASSERT_TRUE(graph.ok()) << graph.status().text();
    const std::vector<int> vectors(static_cast<std::size_t>(c.ranks), 1);
    const auto forest = forest_of(*graph, vectors);
    ASSERT_TRUE(forest.ok()) << forest.status().text();
    EXPECT_EQ(forest->cut.time, c.time);
    EXPECT_EQ(forest->time, c.time);
  }
}

// The text is read, proved and executed; no fair share of the links lets messages end before the
// bound, and with many segments they end soon after it.
TEST(Synthesise, SchedulesAreProvedAndReachTheBound) {
  const struct {
    const char* question;
    const char* network;
    const char* collective;
    double times;  // the bound, at most
  } cases[] = {
      {"--ranks 9", "torus", "all_gather", 1.1},
      {"--ranks 9", "torus", "reduce_scatter", 1.1},
      {"--ranks 8", "mesh", "all_reduce", 1.15},
      {"--ranks 8 --root 3", "ring", "broadcast", 1.15},
      {"--ranks 8 --root 3", "hypercube", "reduce", 1.15},
      {"--ranks 12 --node-ranks 4", "two_level_shared", "all_gather", 1.3},
      {"--ranks 5", "plain", "all_gather", 1.05},
      {"--ranks 1", "plain", "all_reduce", 1},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(std::string(c.collective) + " on " + c.network);
    const std::string text = output_of(std::string("synthesise ") + c.collective + " " +
                                       c.question + " --bytes 4G --network " + c.network);
    const std::string file = file_with("trees.txt", text);
    const std::string options = std::string(" --bytes 4G --network ") + c.network +
                                (has(c.question, "node-ranks") ? " --node-ranks 4" : "");
    const Json judged = json_of("check " + file + " --json" + options);
    EXPECT_EQ(judged["proved"], true) << judged;
    const std::string least = lines_of(text).at(2);  // "# no messages take less than 39.32 us: ..."
    const auto words = words_of(least.substr(0, least.find(':')));
    const double bound = parse_seconds("bound", words.at(6) + words.at(7))->to_double();
    EXPECT_LE(judged["time"], c.times * bound);
    const Json flow = json_of("simulate " + file + " --json --fidelity flow" + options);
    EXPECT_GE(flow["time"].get<double>(), bound * (1 - 1e-4)) << "rounded to four digits";
    EXPECT_TRUE(has(output_of("run " + file + " --clock none --bytes 64K"), "every element right"));
  }
}

}  // namespace
}  // namespace rankine::tools
