// Random schedules, all forms back to back, in any order that the plans' waits allow.
#include "tests/engine/exec/replay.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/engine/exec/session.h"

namespace rankine {
namespace {

constexpr int kSessions = affordable(20000);  // RANKINE_SESSIONS runs another number

TEST(Replay, RandomSchedulesOfAllFormsGiveWhatTheyMean) {
  const auto only = number_from_environment("RANKINE_SEED");
  const auto sessions =
      only ? 1 : static_cast<int>(number_from_environment("RANKINE_SESSIONS").value_or(kSessions));
  std::size_t schedules = 0;
  std::uint64_t steps = 0;
  for (int i = 0; i < sessions; ++i) {
    const std::uint64_t seed = only.value_or(0x5eed0000u + static_cast<std::uint64_t>(i));
    Random random(seed);
    const Session session = random_session(random, {.calls = {.ranks = 9}});
    ASSERT_EQ(session.fault, "") << "replay with RANKINE_SEED=" << seed;
    Replay replay({session.ranks, session.first_count, session.slot_payload}, random);
    const std::string fault = replay.run(session.calls);
    ASSERT_EQ(fault, "") << session.explain(fault) << "\nreplay with RANKINE_SEED=" << seed;
    schedules += session.made.size();
    steps += replay.steps();
  }
  std::printf("%zu schedules, %llu steps\n", schedules, static_cast<unsigned long long>(steps));
}

}  // namespace
}  // namespace rankine
