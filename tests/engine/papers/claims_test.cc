// Every claim evaluates, and verdicts are those of the golden list. Wrong ones: mutants_test.
//
// After a change that is meant (a new algorithm, another network model):
//   rankine claims --golden > tests/golden/claims.txt
#include "engine/papers/claim.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "engine/papers/evaluate.h"
#include "engine/papers/report.h"

namespace rankine::claims {
namespace {

constexpr int kLeastChecked = 120;

// The report as the tool makes it.
const std::vector<Finding>& report() {
  static const std::vector<Finding> findings = find_out({}, {});
  return findings;
}

TEST(Claims, IdsAreUniqueAndNamedAfterTheirPaper) {
  std::set<std::string_view> ids;
  for (const Paper& paper : papers()) {
    for (const Claim& claim : paper.claims) {
      EXPECT_TRUE(ids.insert(claim.id).second) << claim.id << " is there twice";
      EXPECT_TRUE(claim.id.starts_with(std::string(paper.key) + "-")) << claim.id;
      EXPECT_FALSE(claim.where.empty() || claim.text.empty()) << claim.id;
    }
  }
}

TEST(Claims, VerdictsAreThoseOfTheGoldenList) {
  const std::vector<Finding>& findings = report();
  EXPECT_GE(totals_of(findings).checked(), kLeastChecked);
  std::ifstream file("tests/golden/claims.txt");
  ASSERT_TRUE(file) << "tests/golden/claims.txt is missing";
  std::vector<std::string> golden;
  for (std::string line; std::getline(file, line);) golden.push_back(line);
  std::vector<std::string> lines;
  for (const Finding& finding : findings) lines.push_back(golden_line(finding));
  EXPECT_EQ(golden.size(), lines.size());
  for (std::size_t i = 0; i < std::min(golden.size(), lines.size()); ++i) {
    EXPECT_EQ(golden[i], lines[i]) << "see the head of this file";
  }
}

TEST(Claims, WhatDoesNotSimplyHoldIsExplained) {
  for (const Finding& finding : report()) {
    if (finding.verdict == Verdict::holds) continue;
    EXPECT_FALSE(finding.claim->why.empty() && finding.reason.empty()) << finding.claim->id;
    if (finding.verdict == Verdict::conditional) {
      EXPECT_NE(finding.condition, "") << finding.claim->id;
    }
    // What the row says of when it holds is right, or the words would be the judge's own.
    if (!finding.claim->condition.empty()) {
      const std::string& found =
          finding.verdict == Verdict::conditional ? finding.condition : finding.exception;
      EXPECT_EQ(found, finding.claim->condition) << finding.claim->id;
    }
  }
}

TEST(Claims, ExecutedTheyTakeTheSameTimeToTheLastTick) {
  for (const Finding& finding : report()) EXPECT_EQ(finding.fault, "") << finding.claim->id;
  EXPECT_GT(totals_of(report()).executed, 700);
}

TEST(Claims, EveryRowOnANetworkIsExecuted) {
  for (const Finding& finding : report()) {
    const bool on_a_network = !finding.claim->runs.empty() || finding.claim->reproduced;
    EXPECT_EQ(finding.executed > 0, on_a_network) << finding.claim->id;
    EXPECT_EQ(finding.unexecuted, Unexecuted::no) << finding.claim->id;
  }
}

TEST(Claims, KindsFollowFromWhatARowLooksAt) {
  for (const Paper& paper : papers()) {
    for (const Claim& claim : paper.claims) {
      if (!claim.needs.empty() || claim.reproduced) continue;
      const bool runs = !claim.runs.empty();
      EXPECT_EQ(claim.kind == Kind::arithmetic && runs, false) << claim.id;
      EXPECT_EQ(claim.kind == Kind::executed && !runs, false) << claim.id;
    }
  }
}

TEST(Claims, WhatOnlyADegenerateCaseMeetsDoesNotHold) {
  Claim claim{.id = "test",
              .where = "here",
              .text = "a ring of two takes log2 N rounds in each half",
              .stated = "clog2(N)",
              .runs = "reduce_scatter ring",
              .found = "rounds",
              .sets = "alpha=1; BW=1; M=1024; N=2,4..9",
              .degenerate = "N = 2"};
  Runs runs;
  Finding finding = evaluate(*find_paper("lu"), claim, runs, {.execute = false});
  EXPECT_EQ(finding.verdict, Verdict::fails);
  EXPECT_EQ(finding.exception, "N = 2");
  claim.degenerate = "x = 2";  // a letter that the sets lack
  finding = evaluate(*find_paper("lu"), claim, runs, {.execute = false});
  EXPECT_EQ(finding.verdict, Verdict::conditional);
}

TEST(Claims, ThePapersOwnParametersAreTold) {
  const Claim claim{.id = "test",
                    .where = "here",
                    .text = "ring",
                    .stated = "N-1",
                    .runs = "reduce_scatter ring",
                    .found = "rounds",
                    .sets = "alpha=1; BW=1; M=1024; N=2..9",
                    .own = "N = 5"};
  Runs runs;
  const Finding finding = evaluate(*find_paper("lu"), claim, runs, {.execute = false});
  ASSERT_NE(finding.own(), nullptr);
  EXPECT_EQ(to_string(finding.own()->found), "4");
}

TEST(Claims, AFormulaThatIsRightInSomeCasesHoldsOnlyThere) {
  const Claim claim{.id = "test",
                    .where = "here",
                    .text = "recursive doubling takes log2 N rounds",
                    .stated = "clog2(N)",
                    .runs = "all_reduce recursive_doubling",
                    .found = "rounds",
                    .sets = "alpha=1; BW=1; M=1024; N=2..20"};
  Runs runs;
  const Finding finding = evaluate(*find_paper("lu"), claim, runs, {.execute = false});
  EXPECT_EQ(finding.verdict, Verdict::conditional);
  EXPECT_EQ(finding.condition, "N is a power of two");
}

TEST(Claims, WhatTheCatalogueDoesNotHaveIsOpen) {
  const Claim claim{.id = "test",
                    .where = "here",
                    .text = "no such thing",
                    .stated = "1",
                    .runs = "all_reduce perpetual_motion",
                    .found = "rounds",
                    .sets = "alpha=1; BW=1; M=1024; N=4"};
  Runs runs;
  const Finding finding = evaluate(*find_paper("lu"), claim, runs, {});
  EXPECT_EQ(finding.verdict, Verdict::beyond_model);
  EXPECT_EQ(finding.reason, "the catalogue has no all_reduce 'perpetual_motion' yet");
}

TEST(Runs, RanksAreWiredAsTheTextSays) {
  Runs runs;
  const auto value = [&runs](std::string_view text, std::string_view quantity) {
    const auto found = runs.quantity(read_runs(text, "bytes=900; alpha=1; beta=0"), {}, quantity);
    return found ? to_string(*found) : "nothing";
  };
  // 2 (1/3 + 1/9) (1 + 1/3): appendix B.2 of Trivance.
  EXPECT_EQ(value("all_reduce trivance; ranks=81; dims=9x9; wiring=torus", "delay"), "32/27");
  EXPECT_EQ(value("all_reduce trivance; ranks=81; dimensions=2; wiring=torus", "delay"), "32/27");
  EXPECT_EQ(value("all_reduce trivance_latency; ranks=9; wiring=ring", "delay"), "4");
  EXPECT_EQ(value("all_reduce trivance_latency; ranks=9", "ring_load"), "4");
  EXPECT_EQ(value("all_reduce bruck_ternary; ranks=9; wiring=ring; routing=one_way", "delay"), "4");
  // Two rounds, to neighbours and over three links.
  EXPECT_EQ(value("all_reduce trivance_latency; ranks=9; wiring=ring; hop=1/2", "time"), "4");
  EXPECT_EQ(value("all_reduce trivance_latency; ranks=9; wiring=ring; hop=1/2", "n_alpha"), "2");
  EXPECT_THROW(value("all_reduce ring; ranks=4; wiring=star", "time"), std::logic_error);
  EXPECT_THROW(value("all_reduce ring; ranks=4; wiring=ring; routing=any", "time"),
               std::logic_error);
  EXPECT_THROW(value("all_reduce trivance; ranks=8; dims=3x3; wiring=torus", "time"), NotDefined);
}

TEST(Claims, StatementsOfTheEvaluationAreThoseOfReproduce) {
  const auto findings = find_out({.paper = "trivance", .id = "trivance-6.1"}, {.execute = false});
  ASSERT_FALSE(findings.empty());
  for (const Finding& finding : findings) {
    EXPECT_TRUE(finding.claim->reproduced) << finding.claim->id;
    EXPECT_FALSE(finding.said.empty() || finding.measured.empty()) << finding.claim->id;
    EXPECT_EQ(finding.verdict == Verdict::holds, finding.measured.ends_with(": agrees"))
        << finding.claim->id;
  }
}

TEST(Printed, RoundsToItsLastDigit) {
  const auto holds = [](std::string_view printed, std::string_view value) {
    const Printed number = read_printed(printed);
    const Value difference = evaluate(value, Letters{}) - number.value;
    const Value distance = less(difference, 0) ? Value() - difference : difference;
    return !less(number.tolerance, distance);
  };
  EXPECT_TRUE(holds("35.3 MB", "35.25e6"));
  EXPECT_FALSE(holds("35.3 MB", "35.36e6"));
  EXPECT_TRUE(holds("~280 ms", "0.2846"));
  EXPECT_TRUE(holds("~12 %", "0.126"));
  EXPECT_FALSE(holds("12 %", "0.126"));
  EXPECT_FALSE(holds("~12 %", "0.131"));
  EXPECT_FALSE(holds("280 ms", "0.2846"));
  EXPECT_TRUE(holds("3.9x", "3.94"));
  EXPECT_TRUE(holds("25 %", "0.25"));
  EXPECT_THROW(read_printed("many"), std::logic_error);
}

}  // namespace
}  // namespace rankine::claims
