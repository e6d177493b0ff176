// No row of the report is worded so that it cannot fail: for each that holds somewhere there is an
// algorithm, a number of ranks or a network with which it does not.
#include "tests/engine/papers/mutants.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "engine/papers/figures.h"
#include "engine/papers/profiles.h"
#include "engine/papers/statements.h"

namespace rankine::claims {
namespace {

constexpr std::size_t kCases = 12;

bool holds_somewhere(const Finding& finding) {
  return finding.verdict == Verdict::holds || finding.verdict == Verdict::conditional;
}

TEST(Mutants, OfTheRunsFail) {
  Runs runs;
  int killed = 0;
  for (const Paper& paper : papers()) {
    for (const Claim& claim : paper.claims) {
      if (claim.runs.empty() || claim.kind == Kind::definition) continue;
      const EvaluateOptions options{.execute = false, .most_cases = kCases};
      if (!holds_somewhere(evaluate(paper, claim, runs, options))) continue;
      const std::string killer = killer_of(paper, run_mutants(paper, claim), runs);
      EXPECT_NE(killer, "") << claim.id << " holds whatever is run";
      ++killed;
    }
  }
  EXPECT_GT(killed, 250);
}

TEST(Mutants, OfTheConstantsFail) {
  Runs runs;
  for (const Paper& paper : papers()) {
    for (const Claim& claim : paper.claims) {
      if (!claim.needs.empty() || claim.reproduced) continue;
      const EvaluateOptions options{.execute = false, .most_cases = kCases};
      if (!holds_somewhere(evaluate(paper, claim, runs, options))) continue;
      EXPECT_NE(killer_of(paper, constant_mutants(claim), runs), "")
          << claim.id << " holds whatever it states";
    }
  }
}

// Of the figures: another algorithm in Trivance's place, or links of another speed.
std::vector<std::vector<reproduce::Panel>> mutated(const std::vector<reproduce::Panel>& panels) {
  std::vector<std::vector<reproduce::Panel>> out;
  for (const reproduce::Contender& contender : reproduce::contenders()) {
    std::vector<reproduce::Panel> changed = panels;
    for (reproduce::Panel& panel : changed) {
      const reproduce::Curve* curve = panel.find(contender.name);
      if (curve == nullptr || curve->bandwidth == nullptr) continue;
      panel.curves.back().bandwidth = curve->bandwidth;
      if (curve->latency != nullptr) panel.curves.back().latency = curve->latency;
    }
    out.push_back(std::move(changed));
  }
  for (const int times : {100, 10'000}) {
    std::vector<reproduce::Panel> changed = panels;
    for (reproduce::Panel& panel : changed) panel.spec.gigabits *= times;
    out.push_back(std::move(changed));
  }
  // Each panel with the curves of the next: rings for tori.
  std::vector<reproduce::Panel> changed = panels;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    changed[i].curves = panels[(i + 5) % panels.size()].curves;
  }
  out.push_back(std::move(changed));
  return out;
}

TEST(Mutants, OfTheFiguresFail) {
  reproduce::Profiles profiles;
  const std::vector<reproduce::Panel> panels = reproduce::panels(profiles);
  const auto mutants = mutated(panels);
  for (const reproduce::Statement& statement : reproduce::statements()) {
    if (!outcome_of(statement, panels).agrees) continue;
    bool killed = false;
    for (const auto& mutant : mutants) {
      try {
        killed = killed || !outcome_of(statement, mutant).agrees;
      } catch (const std::logic_error&) {  // it has no such curve
      }
    }
    EXPECT_TRUE(killed) << statement.id << " holds whatever the figures show";
  }
}

// Of those that only another fidelity finds: by that one.
TEST(Mutants, OfTheFiguresByFlowAndPacketFail) {
  reproduce::Profiles profiles;
  std::vector<reproduce::Panel> panels = reproduce::panels(profiles);
  const std::vector<reproduce::Panel> by_eq_1 = panels;
  for (const Fidelity fidelity : {Fidelity::flow, Fidelity::packet}) {
    reproduce::Carriage carriage(fidelity, profiles);
    for (reproduce::Panel& panel : panels) panel.carriage = &carriage;
    const auto mutants = mutated(panels);
    for (const reproduce::Statement& statement : reproduce::statements()) {
      if (!statement.judged_again || outcome_of(statement, by_eq_1).agrees ||
          !outcome_of(statement, panels).agrees)
        continue;
      bool killed = false;
      for (const auto& mutant : mutants) {
        killed = killed || !outcome_of(statement, mutant).agrees;
      }
      EXPECT_TRUE(killed) << statement.id << " holds whatever is carried";
    }
  }
}

}  // namespace
}  // namespace rankine::claims
