// Random schedules, all forms back to back, in any order that the plans' waits allow.
#include "tests/engine/exec/replay.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace rankine {
namespace {

constexpr int kSessions = affordable(9000);
constexpr int kSchedules = 5;  // of a session

struct Outcome {
  std::string fault;
  int schedules = 0;
  std::uint64_t steps = 0;
};

// One machine, a few schedules of all forms, and calls of them in random order.
Outcome run_session(std::uint64_t seed, CallRules rules) {
  Random random(seed);
  rules.ranks = random.between(1, 9);
  rules.slot_payload = random.pick(std::vector<std::size_t>{8, 48, 112, 304});
  if (random.one_in(2)) rules.most_elements = 24;
  Outcome outcome;
  std::vector<TestCall> made;
  for (int i = 0; i < kSchedules; ++i) {
    made.push_back(random_call(random, rules));
    if (made.back().before.empty()) return {made.back().text, i, 0};
    outcome.fault = fault_of(made.back().plan);
    if (!outcome.fault.empty()) return outcome;
    ++outcome.schedules;
  }
  std::vector<const TestCall*> calls;
  for (const TestCall& call : made) calls.push_back(&call);
  for (int i = random.below(12); i > 0; --i) calls.push_back(&random.pick(made));
  const std::uint32_t first_count =
      random.one_in(3) ? 0U - static_cast<std::uint32_t>(random.below(40))
                       : (random.one_in(2) ? 0x7fffffe0U : 0U);
  Replay replay({rules.ranks, first_count, rules.slot_payload}, random);
  outcome.fault = replay.run(calls);
  outcome.steps = replay.steps();
  if (!outcome.fault.empty()) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      outcome.fault += "\ncall " + std::to_string(i) + ": " + calls[i]->text;
    }
    for (const TestCall* call : calls) {
      if (!outcome.fault.starts_with("call " + std::to_string(call - calls[0]))) continue;
      outcome.fault += "\n" + to_string(call->schedule);
    }
  }
  return outcome;
}

TEST(Replay, random_schedules_of_all_forms_give_what_they_mean) {
  int schedules = 0;
  std::uint64_t steps = 0;
  const auto only = number_from_environment("RANKINE_SEED");
  for (int i = 0; i < kSessions; ++i) {
    const std::uint64_t seed = only.value_or(0x5eed0000u + static_cast<std::uint64_t>(i));
    const Outcome outcome = run_session(seed, {});
    ASSERT_EQ(outcome.fault, "") << "replay with RANKINE_SEED=" << seed;
    schedules += outcome.schedules;
    steps += outcome.steps;
    if (only) break;
  }
  std::printf("%d schedules, %llu steps\n", schedules, static_cast<unsigned long long>(steps));
}

}  // namespace
}  // namespace rankine
