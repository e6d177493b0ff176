#include "algorithms/catalogue.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "algorithms/levels.h"
#include "algorithms/parameters.h"
#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

// The closed forms of a line: formulas, but where it says that they are computed.
std::vector<std::string_view> closed_forms(const Algorithm& line) {
  std::vector<std::string_view> forms;
  for (const std::string_view form :
       {line.rounds, line.sent, line.received, line.send_ports, line.receive_ports}) {
    if (form != kComputed) forms.push_back(form);
  }
  return forms;
}

std::string title(const Algorithm& line) {
  return std::string(name_of(line.collective)) + " " + std::string(line.name);
}

TEST(Catalogue, EveryCollectiveHasAnAlgorithmForAnyNumberOfRanks) {
  for (const Collective c : all_collectives()) {
    int universal = 0;
    for (const Algorithm& line : catalogue()) {
      universal += line.collective == c && line.allowed_when == "1" ? 1 : 0;
    }
    EXPECT_GT(universal, 0) << name_of(c);
  }
}

TEST(Catalogue, NamesAreUniqueAndPlain) {
  std::set<std::string> titles;
  for (const Algorithm& line : catalogue()) {
    EXPECT_TRUE(titles.insert(title(line)).second) << title(line);
    EXPECT_EQ(line.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"),
              std::string_view::npos)
        << line.name;
    EXPECT_EQ(find_algorithm(line.collective, line.name), &line);
  }
  EXPECT_EQ(find_algorithm(Collective::barrier, "ring"), nullptr);
  EXPECT_EQ(algorithm_names(Collective::scatter), "binomial, linear, chain, circulant");
}

TEST(Catalogue, EveryLineIsComplete) {
  for (const Algorithm& line : catalogue()) {
    SCOPED_TRACE(title(line));
    EXPECT_FALSE(line.citation.empty());
    EXPECT_FALSE(line.summary.empty());
    EXPECT_LE(line.summary.size(), 90u);
    EXPECT_EQ(line.allowed_when == "1", line.needs.empty());
    Params params;
    params.ranks = 12;
    EXPECT_NO_THROW(evaluate(line.allowed_when, params));
    for (const std::string_view formula : closed_forms(line)) {
      EXPECT_NO_THROW(evaluate(formula, params)) << formula;
    }
  }
}

TEST(Catalogue, AmongOneRankNothingIsSent) {
  for (const Algorithm& line : catalogue()) {
    SCOPED_TRACE(title(line));
    Params params;
    EXPECT_EQ(line.make(params).rounds, 0);
    for (const std::string_view formula : closed_forms(line)) {
      EXPECT_EQ(evaluate(formula, params), 0) << formula;
    }
  }
}

// A line's formulas may use a letter only if the line takes the parameter.
// A round in which nothing happens would be drawn, and counted by some readers and not by others.
TEST(Catalogue, NoRoundOfAScanIsEmpty) {
  for (const Algorithm& line : catalogue()) {
    if (line.collective != Collective::scan && line.collective != Collective::exscan) continue;
    for (int n = 1; n <= 17; ++n) {
      const Params params = line.only_taken({.ranks = n});
      if (line.refusal(params)) continue;
      const Schedule schedule = line.make(params);
      for (int k = 0; k < schedule.rounds; ++k) {
        int transfers = 0;
        for_each_transfer(schedule, k, [&transfers](const Transfer&) { ++transfers; });
        EXPECT_GT(transfers, 0) << name_of(line.collective) << " " << line.name << ", N = " << n
                                << ", round " << k;
      }
    }
  }
}

TEST(Catalogue, FormulasUseWhatTheLineTakes) {
  for (const Algorithm& line : catalogue()) {
    std::string all(line.allowed_when);
    for (const std::string_view formula : closed_forms(line)) all += " " + std::string(formula);
    EXPECT_EQ(all.find('P') != std::string::npos, line.takes("segments")) << title(line);
    EXPECT_EQ(all.find('G') != std::string::npos, line.takes("group")) << title(line);
    EXPECT_EQ(all.find('A') != std::string::npos, line.takes("aggregation")) << title(line);
    EXPECT_EQ(all.find('K') != std::string::npos, line.takes("radix")) << title(line);
    EXPECT_EQ(line.rounds.find('S') != std::string::npos, line.takes("skips")) << title(line);
    EXPECT_EQ(all.find('L') != std::string::npos, line.takes("levels")) << title(line);
    EXPECT_EQ(all.find('H') != std::string::npos, line.collective == Collective::send_recv);
  }
}

TEST(Catalogue, EverySmallCaseGivesTheRightNumbers) {
  for (const Algorithm& line : catalogue()) {
    for (int n = 1; n <= 13; ++n) {
      for (Rank root = 0; root<(has_root(line.collective) ? n : 1); root += n> 6 ? 3 : 1) {
        for (int segments : {1, 2, 5}) {
          for (int group : {0, 1, 2, 3, 5}) {
            for (int aggregation : {0, 1, 2, 4}) {
              Params params{n, root, 0, segments, group, aggregation};
              if (line.takes("peer")) params.peer = (root * 2 + 1) % n;
              if (line.refusal(params)) continue;
              const Schedule s = line.make(params);
              EXPECT_EQ(failure(s, goal_of(line, params, s)), "")
                  << title(line) << " N=" << n << " root=" << root << " P=" << segments
                  << " G=" << group << " A=" << aggregation;
            }
          }
        }
      }
    }
  }
}

TEST(Catalogue, GroupsNeedNotDivideWhereTheLineSaysSo) {
  const Algorithm& line = *find_algorithm(Collective::all_reduce, "hierarchical");
  for (int n = 1; n <= 20; ++n) {
    for (int g = 1; g <= n; ++g) {
      const Params params{n, 0, 0, 2, g, 0};
      ASSERT_EQ(line.refusal(params), std::nullopt);
      const Schedule s = line.make(params);
      EXPECT_EQ(failure(s, goal_of(line, params, s)), "") << n << " in groups of " << g;
    }
  }
}

TEST(Refusal, SaysWhatIsNeeded) {
  const auto text = [](Collective c, std::string_view name, const Params& params) {
    return find_algorithm(c, name)->refusal(params).value_or("");
  };
  using enum Collective;
  EXPECT_EQ(text(all_reduce, "ring", {.ranks = 0}),
            "all_reduce 'ring': ranks is 0; allowed are 1 to 1048576");
  EXPECT_EQ(text(all_reduce, "ring", {.ranks = 2000000}),
            "all_reduce 'ring': ranks is 2000000; allowed are 1 to 1048576");
  EXPECT_EQ(text(broadcast, "chain", {.ranks = 4, .segments = 0}),
            "broadcast 'chain': segments is 0; allowed are 1 to 16384");
  EXPECT_EQ(text(broadcast, "chain", {.ranks = 4, .root = 4}),
            "broadcast 'chain': root is 4; allowed are 0 to 3");
  EXPECT_EQ(text(broadcast, "chain", {.ranks = 4, .root = -1}),
            "broadcast 'chain': root is -1; allowed are 0 to 3");
  EXPECT_EQ(text(send_recv, "direct", {.ranks = 2, .peer = 2}),
            "send_recv 'direct': peer is 2; allowed are 0 to 1");
  EXPECT_EQ(text(all_reduce, "hierarchical", {.ranks = 4, .group = 5}),
            "all_reduce 'hierarchical': group is 5; allowed are 1 to 4, and 0 for the default");
  EXPECT_EQ(text(all_reduce, "hierarchical", {.ranks = 4, .group = -1}),
            "all_reduce 'hierarchical': group is -1; allowed are 1 to 4, and 0 for the default");
  EXPECT_EQ(text(all_reduce, "ring_2d", {.ranks = 7, .group = 3}),
            "all_reduce 'ring_2d': ranks is 7, group is 3; the number of ranks must be a multiple "
            "of the group");
  EXPECT_EQ(text(all_gather, "pat", {.ranks = 8, .aggregation = 3}),
            "all_gather 'pat': ranks is 8, aggregation is 3; the aggregation must be a power of "
            "two that is less than the number of ranks");
  EXPECT_EQ(text(all_gather, "pat", {.ranks = 8, .aggregation = 8}),
            "all_gather 'pat': aggregation is 8; allowed are 1 to 4, and 0 for the default");
  EXPECT_EQ(text(all_reduce, "hamiltonian_disjoint", {.ranks = 12, .dims = {2, 6}}),
            "all_reduce 'hamiltonian_disjoint': ranks is 12, dims is 2x6; every size of a torus of "
            "two dimensions and more must be at least 3");
  EXPECT_EQ(text(all_reduce, "trivance", {.ranks = 12, .dims = {3, 5}}),
            "all_reduce 'trivance': dims is 3x5; the sizes must multiply to the number of ranks, "
            "12");
  EXPECT_EQ(text(all_gather, "pat", {.ranks = 8, .aggregation = -2}),
            "all_gather 'pat': aggregation is -2; allowed are 1 to 4, and 0 for the default");
}

TEST(Refusal, SaysWhatIsNotTaken) {
  const auto text = [](Collective c, std::string_view name, const Params& params) {
    return find_algorithm(c, name)->refusal(params).value_or("");
  };
  using enum Collective;
  EXPECT_EQ(text(all_reduce, "ring", {.ranks = 4, .segments = 8}),
            "all_reduce 'ring': segments is 8, which it does not take; it takes no parameter");
  EXPECT_EQ(text(all_reduce, "hierarchical", {.ranks = 4, .root = 2, .levels = {2}}),
            "all_reduce 'hierarchical': root is 2, which it does not take; it takes segments, "
            "group");
  EXPECT_EQ(text(broadcast, "linear", {.ranks = 4, .dims = {2, 2}}),
            "broadcast 'linear': dims is 2x2, which it does not take; it takes root");
  // What it has anyway is no question.
  EXPECT_EQ(text(all_reduce, "ring", {.ranks = 4, .segments = 1}), "");
}

TEST(Refusal, IsNothingWhereTheDefaultsAreTaken) {
  for (const Algorithm& line : catalogue()) {
    for (int n = 1; n <= 200; ++n) {
      EXPECT_EQ(line.refusal({.ranks = n}), std::nullopt) << title(line) << " " << n;
    }
  }
}

TEST(Resolved, PutsDefaultsInPlaceOfZeros) {
  EXPECT_EQ(resolved({.ranks = 12}).group, 3);
  EXPECT_EQ(resolved({.ranks = 16}).group, 4);
  EXPECT_EQ(resolved({.ranks = 13}).group, 1);
  EXPECT_EQ(resolved({.ranks = 12, .group = 6}).group, 6);
  EXPECT_EQ(resolved({.ranks = 12}).aggregation, 8);
  EXPECT_EQ(resolved({.ranks = 16}).aggregation, 8);
  EXPECT_EQ(resolved({.ranks = 1}).aggregation, 1);
  EXPECT_EQ(resolved({.ranks = 12, .aggregation = 2}).aggregation, 2);
}

TEST(Resolved, IsWhatRuns) {
  for (const Algorithm& line : catalogue()) {
    for (int n : {1, 2, 6, 12, 13}) {
      EXPECT_EQ(text_of(line.make({.ranks = n})), text_of(line.make(resolved({.ranks = n}))))
          << title(line);
    }
  }
}

TEST(MiddleDivisor, IsTheOneNearestToTheSquareRoot) {
  for (int n = 1; n <= 500; ++n) {
    const int d = middle_divisor(n);
    EXPECT_EQ(n % d, 0);
    EXPECT_LE(d * d, n);
    for (int e = d + 1; e * e <= n; ++e) EXPECT_NE(n % e, 0) << n;
  }
}

TEST(BlocksPerM, CountsTheSendBufferOfAnAllToAll) {
  EXPECT_EQ(blocks_per_m({Collective::all_to_all, 4, 32, 0, 0}), 8);
  EXPECT_EQ(blocks_per_m({Collective::all_gather, 4, 4, 0, 0}), 4);
}

}  // namespace
}  // namespace rankine
