// Random schedules, all forms back to back in one team, on threads: the real interpreter,
// mailboxes, counters and ways of waiting, with more ranks than cores.
#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "tests/engine/run/session.h"
#include "tests/engine/run/test_team.h"

namespace rankine {
namespace {

constexpr int kSessions = affordable(2500);  // RANKINE_TEST_SESSIONS runs another number

TEST(Fuzz, RandomSchedulesOfAllFormsGiveWhatTheyMean) {
  const auto only = number_from_environment("RANKINE_TEST_SEED");
  const auto sessions =
      only ? 1
           : static_cast<int>(number_from_environment("RANKINE_TEST_SESSIONS").value_or(kSessions));
  std::size_t schedules = 0, calls = 0;
  for (int i = 0; i < sessions; ++i) {
    const std::uint64_t seed = only.value_or(0xf0220000u + static_cast<std::uint64_t>(i));
    Random random(seed);
    const Session session =
        random_session(random, {.calls = {.ranks = 9}, .schedules = 20, .repetitions = 20});
    ASSERT_EQ(session.fault, "") << "replay with RANKINE_TEST_SEED=" << seed;
    TestTeam team({.ranks = session.ranks,
                   .policy = random_policy(random),
                   .first_count = session.first_count,
                   .slot_payload = session.slot_payload,
                   .strict = random.one_in(3)});
    // Several runs: counters go on from one to the next, whoever walks.
    const std::span<const TestCall* const> all(session.calls);
    const std::size_t half = all.size() / 2;
    std::string fault = team.run(all.first(half), seed);
    if (fault.empty()) fault = team.step(all, seed + 2, random.one_in(2) ? 2 : 1);
    if (fault.empty()) fault = team.run(all.subspan(half), seed + 1);
    ASSERT_EQ(fault, "") << session.explain(fault) << "\nreplay with RANKINE_TEST_SEED=" << seed;
    schedules += session.made.size();
    calls += session.calls.size();
  }
  std::printf("%zu schedules, %zu calls\n", schedules, calls);
}

// A rank that nobody waits for, and that waits for nobody, may neither fall behind nor run ahead so
// far that counters, which are compared modulo their range, seem to be on the other side: here each
// call advances them by an eighth of it.
TEST(Fuzz, CountersKeepTogether) {
  constexpr int kRanks = 3;
  Random random(11);
  const auto call_of = [&](Collective collective, std::string_view name) {
    TestCall call = random_call(random, {.ranks = kRanks,
                                         .algorithm = find_algorithm(collective, name),
                                         .transport = Transport::direct});
    call.plan.span = 1U << 29;
    return call;
  };
  const TestCall everybody = call_of(Collective::all_reduce, "ring");
  TestCall two;
  do {
    two = call_of(Collective::send_recv, "direct");
  } while (two.goal.root == 2 || two.goal.peer == 2 || two.goal.root == two.goal.peer);
  for (int idle = 1; idle <= 20; ++idle) {
    TestTeam team({.ranks = kRanks, .policy = random_policy(random)});
    std::vector<const TestCall*> calls(static_cast<std::size_t>(idle), &two);
    calls.insert(calls.begin(), &everybody);
    calls.insert(calls.end(), 3, &everybody);
    ASSERT_EQ(team.run(calls, random.next()), "") << idle << " calls without rank 2";
  }
}

}  // namespace
}  // namespace rankine
