// Random schedules, all forms back to back, in any order that the plans' waits allow.

#include "tests/engine/run/replay.h"
#include "algorithms/catalogue.h"
#include "tests/budget.h"
#include "tests/testing.h"

namespace rankine {
namespace {

// True if a plan reaches only scratch of other ranks. Mailboxes and boards are allowed too, because
// the addresses in them point to scratch.
bool reaches_scratch_only(const Plan& plan) {
  bool only = true;
  for (std::size_t r = 0; r < plan.rank.size(); ++r) {
    const Operand* operand = plan.rank[r].operands.data();
    for (const Op& op : plan.rank[r].ops) {
      for (int i = 0; i < op.operands + op.copies; ++i, ++operand) {
        const bool is_mine = operand->rank == r;
        const bool is_shown = op.code == OpCode::send && (op.flags & kByAddress) != 0;
        only &= (is_mine && !is_shown) || operand->memory >= Memory::scratch;
      }
    }
  }
  return only;
}

// RANKINE_TEST_SESSIONS runs another number.
void play_random_schedules(const CallRules& calls) {
  const auto only = number_from_environment("RANKINE_TEST_SEED");
  const int usual = affordable(static_cast<int>(budgeted(4'000, 20'000)));
  const auto sessions = only ? 1
                             : static_cast<int>(number_from_environment("RANKINE_TEST_SESSIONS")
                                                    .value_or(static_cast<std::uint64_t>(usual)));
  std::size_t schedules = 0;
  std::uint64_t steps = 0;
  for (int i = 0; i < sessions; ++i) {
    const std::uint64_t seed = only.value_or(0x5eed0000u + static_cast<std::uint64_t>(i));
    Random random(seed);
    const Session session = random_session(random, {.calls = calls});
    ASSERT_EQ(session.fault, "") << "replay with RANKINE_TEST_SEED=" << seed;
    for (const TestCall& call : session.made) {
      ASSERT_TRUE(!calls.program.staged || reaches_scratch_only(call.plan)) << call.text;
    }
    Replay replay({session.ranks, session.first_count, session.slot_payload}, random);
    const std::string fault = replay.run(session.calls);
    ASSERT_EQ(fault, "") << session.explain(fault) << "\nreplay with RANKINE_TEST_SEED=" << seed;
    schedules += session.made.size();
    steps += replay.steps();
  }
  std::printf("%zu schedules, %llu steps\n", schedules, static_cast<unsigned long long>(steps));
}

TEST(Replay, RandomSchedulesOfAllFormsGiveWhatTheyMean) { play_random_schedules({.ranks = 9}); }

TEST(Replay, AndSoTheyDoWhereOthersReachScratchOnly) {
  play_random_schedules({.ranks = 9, .program = {.staged = true}});
}

// The real algorithms, back to back with one another in one team.
TEST(Replay, EveryAlgorithmOfTheCatalogueInAnyOrder) {
  int calls = 0;
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (int attempt = 0; attempt < affordable(static_cast<int>(budgeted(2, 8))); ++attempt) {
      const bool staged = attempt % 2 == 1;
      Random random(static_cast<std::uint64_t>(1000 * ranks + attempt));
      std::vector<TestCall> made;
      for (const Algorithm& algorithm : catalogue()) {
        Params params{.ranks = ranks};
        if (algorithm.refusal(params)) continue;
        made.push_back(random_call(random, {.ranks = ranks,
                                            .most_elements = 60,
                                            .program = {.staged = staged},
                                            .algorithm = &algorithm}));
        ASSERT_FALSE(made.back().before.empty()) << algorithm.name << ": " << made.back().text;
        ASSERT_EQ(fault_of(made.back().plan, made.back().in_turns), "") << algorithm.name;
        ASSERT_TRUE(!staged || reaches_scratch_only(made.back().plan)) << made.back().text;
      }
      std::vector<const TestCall*> order;
      for (const TestCall& call : made) order.push_back(&call);
      for (std::size_t i = order.size(); i > 1; --i) {
        std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(static_cast<int>(i)))]);
      }
      Replay replay({.ranks = ranks}, random);
      const std::string fault = replay.run(order);
      Session session;
      session.ranks = ranks;
      session.calls = order;
      ASSERT_EQ(fault, "") << session.explain(fault);
      calls += static_cast<int>(order.size());
    }
  }
  std::printf("%d calls\n", calls);
}

// Mutants in the replay, which takes every order that a plan allows.

TEST(Mutants, EachIsNoticedByTheReplay) {
  expect_all_noticed(false, [](const Session& session, Random& random, bool one_half) {
    return Replay({session.ranks, session.first_count, session.slot_payload, one_half}, random)
        .run(session.calls);
  });
}

// Implied waits are dropped already, so each remaining one is needed.
TEST(Mutants, MostSingleWaitsOfTheDirectTransportAreNeeded) {
  int dropped = 0, noticed = 0;
  for (int i = 0; i < 400; ++i) {
    Random random(0x0a17u + static_cast<std::uint64_t>(i));
    Session session = random_session(
        random, {.calls = {.ranks = 9, .transport = Transport::direct}, .schedules = 1});
    std::vector<Op*> waits;
    for (RankPlan& rank : session.made[0].plan.rank) {
      for (Op& op : rank.ops) {
        if (op.code == OpCode::wait_progress) waits.push_back(&op);
      }
    }
    if (waits.empty()) continue;
    Op& op = *random.pick(waits);
    // Replaces the wait by one that is satisfied from the beginning of the call.
    op.code = OpCode::wait_progress;
    op.value = 0;
    ++dropped;
    bool shows = false;
    for (int attempt = 0; attempt < 50 && !shows; ++attempt) {
      Replay replay({session.ranks, session.first_count, session.slot_payload}, random);
      shows = !replay.run(session.calls).empty();
    }
    noticed += shows ? 1 : 0;
  }
  std::printf("%d of %d single waits are needed\n", noticed, dropped);
  EXPECT_GT(noticed, dropped / 2);
}

}  // namespace
}  // namespace rankine
