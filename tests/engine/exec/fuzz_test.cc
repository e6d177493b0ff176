// Random schedules, all forms back to back in one team, on threads: the real interpreter,
// mailboxes, counters and ways of waiting, with more ranks than cores.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/engine/exec/session.h"
#include "tests/engine/exec/test_team.h"

namespace rankine {
namespace {

constexpr int kSessions = affordable(2500);  // RANKINE_SESSIONS runs another number

TEST(Fuzz, RandomSchedulesOfAllFormsGiveWhatTheyMean) {
  const auto only = number_from_environment("RANKINE_SEED");
  const auto sessions =
      only ? 1 : static_cast<int>(number_from_environment("RANKINE_SESSIONS").value_or(kSessions));
  std::size_t schedules = 0, calls = 0;
  for (int i = 0; i < sessions; ++i) {
    const std::uint64_t seed = only.value_or(0xf0220000u + static_cast<std::uint64_t>(i));
    Random random(seed);
    const Session session =
        random_session(random, {.calls = {.ranks = 9}, .schedules = 20, .repetitions = 20});
    ASSERT_EQ(session.fault, "") << "replay with RANKINE_SEED=" << seed;
    TestTeam team({.ranks = session.ranks,
                   .policy = random_policy(random),
                   .first_count = session.first_count,
                   .slot_payload = session.slot_payload,
                   .strict = random.one_in(3)});
    // Two runs: counters go on from one to the next.
    const std::span<const TestCall* const> all(session.calls);
    const std::size_t half = all.size() / 2;
    std::string fault = team.run(all.first(half), seed);
    if (fault.empty()) fault = team.run(all.subspan(half), seed + 1);
    ASSERT_EQ(fault, "") << session.explain(fault) << "\nreplay with RANKINE_SEED=" << seed;
    schedules += session.made.size();
    calls += session.calls.size();
  }
  std::printf("%zu schedules, %zu calls\n", schedules, calls);
}

}  // namespace
}  // namespace rankine
