// Every scenario on the production code, explored to the end; and that the explorer sees what a
// machine may do wrong.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/engine/run/random.h"
#include "tests/models/explorer.h"
#include "tests/models/scenarios.h"

namespace rankine::model {
namespace {

std::string lines(const std::vector<std::string>& turns) {
  std::string text;
  for (const std::string& turn : turns) text += "\n  " + turn;
  return text;
}

TEST(Explore, EveryScenarioHoldsInEveryExecution) {
  std::printf("%-58s %10s %10s\n", "scenario", "executions", "cut short");
  std::uint64_t executions = 0;
  for (const Scenario& scenario : scenarios()) {
    if (scenario.is_large && affordable(100) < 100) continue;
    Explorer explorer({.may_time_out = scenario.may_time_out});
    const Explorer::Outcome outcome = explorer.explore(scenario.play);
    EXPECT_EQ(outcome.fault, "") << scenario.name << lines(outcome.turns);
    EXPECT_TRUE(outcome.exhausted) << scenario.name;
    std::printf("%-58s %10lu %10lu\n", scenario.name.c_str(),
                static_cast<unsigned long>(outcome.executions),
                static_cast<unsigned long>(outcome.cut));
    executions += outcome.executions;
  }
  std::printf("%lu executions, all different\n", static_cast<unsigned long>(executions));
}

// What the kernel and the compiler owe the protocol: without it, some scenario fails.
TEST(Explore, EachFlawOfTheMachineIsSeen) {
  const struct {
    Flaw flaw;
    const char* name;
  } flaws[] = {{Flaw::no_barrier, "membarrier does nothing"},
               {Flaw::no_compiler_fence, "the compiler moves a load before a store"},
               {Flaw::sleeps_unseen, "futex_wait does not compare"},
               {Flaw::wakes_nobody, "futex_wake does nothing"}};
  for (const auto& [flaw, name] : flaws) {
    std::string seen;
    for (const Scenario& scenario : scenarios()) {
      if (scenario.is_large) continue;
      Explorer explorer({.may_time_out = scenario.may_time_out, .flaw = flaw});
      const Explorer::Outcome outcome = explorer.explore(scenario.play);
      if (outcome.fault.empty()) continue;
      seen = scenario.name + ", execution " + std::to_string(outcome.executions) + ": " +
             outcome.fault;
      break;
    }
    EXPECT_NE(seen, "") << name;
    std::printf("%s: %s\n", name, seen.c_str());
  }
}

}  // namespace
}  // namespace rankine::model
