// Tests of the tests: plans with one rule left out must be noticed.
#include <gtest/gtest.h>

#include <cstdio>

#include "algorithms/catalogue.h"
#include "engine/compile/lower.h"
#include "tests/engine/run/replay.h"
#include "tests/engine/run/session.h"
#include "tests/engine/run/test_team.h"

namespace rankine {
namespace {

constexpr int kSessions = 3000;

struct Mutant {
  const char* name;
  CallRules rules;
  void (*spoil)(Plan&) = nullptr;  // after lowering
  bool on_threads = true;          // without reading memory that is nobody's
  bool one_half = false;           // boards have one half
};

CallRules lowered(LowerOptions::Mutant mutant, Transport transport) {
  return {.ranks = 9, .mutant = mutant, .transport = transport};
}
CallRules pushed(PushMutant mutant) {
  return {.ranks = 9,
          .transport = Transport::direct,
          .passes = Passes{.pushes = true, .push_mutant = mutant}};
}
CallRules shared() {
  return {.ranks = 9,
          .mutant = LowerOptions::Mutant::no_exit_waits,
          .algorithm = find_algorithm(Collective::all_gather, "direct"),
          .transport = Transport::direct,
          .passes = Passes{.shares = ShareOptions{.from = 1, .streams = true, .stream_from = 1}}};
}
CallRules placed(ProgramOptions::Mutant mutant) {
  return {.ranks = 9, .program = {.mutant = mutant}};
}

std::vector<Mutant> mutants() {
  using enum LowerOptions::Mutant;
  CallRules crowded{.ranks = 9, .mailbox_capacity = 1 << 20, .transport = Transport::mailbox};
  return {
      {"direct: writes do not wait for reads", lowered(no_write_after_read, Transport::direct)},
      {"direct: nobody waits before it returns", lowered(no_exit_waits, Transport::direct)},
      {"direct: every third wait is dropped", lowered(dropped_wait, Transport::direct)},
      {"direct: nobody waits for entries", lowered(no_entry_waits, Transport::direct), nullptr,
       false},
      {"direct: calls' counts overlap", lowered(none, Transport::direct),
       [](Plan& plan) { plan.span = (plan.span + 1) / 2; }},
      {"direct: pushes wait for nobody", pushed(PushMutant::no_waits)},
      {"direct: pushes do not care", pushed(PushMutant::no_care)},
      {"direct: nobody waits for what others store", shared()},
      {"mailbox: writes do not wait for reads", lowered(no_write_after_read, Transport::mailbox)},
      {"mailbox: nobody waits before it returns", lowered(no_exit_waits, Transport::mailbox)},
      {"mailbox: nobody waits for credit", lowered(no_credit_waits, Transport::mailbox)},
      {"mailbox: receives first", lowered(receives_first, Transport::mailbox)},
      {"mailbox: messages are given back too early", lowered(early_release, Transport::mailbox),
       nullptr, false},
      {"mailbox: the calls' numbers overlap", lowered(none, Transport::mailbox),
       [](Plan& plan) {
         for (RankPlan& rank : plan.rank) {
           for (Traffic& traffic : rank.traffic) {
             traffic.sent -= traffic.sent > 1 ? 1 : 0;
             traffic.received -= traffic.received > 1 ? 1 : 0;
           }
         }
       },
       false},
      {"mailbox: more under way than slots", crowded},
      {"board: nobody waits for posts", lowered(no_entry_waits, Transport::board)},
      {"board: who reads nothing does not wait", lowered(no_exit_waits, Transport::board)},
      {"board: one half", lowered(none, Transport::board), nullptr, true, true},
      {"no renaming", placed(ProgramOptions::Mutant::no_renaming)},
      {"no staging", placed(ProgramOptions::Mutant::no_staging)},
  };
}

Session spoilt_session(const Mutant& mutant, Random& random) {
  Session session = random_session(random, {.calls = mutant.rules, .checks_plans = false});
  if (mutant.spoil != nullptr) {
    for (TestCall& call : session.made) mutant.spoil(call.plan);
  }
  return session;
}

// The first session in which the mutant shows, or -1; how it shows.
struct Notice {
  int session = -1;
  std::string how;
};

template <class Run>
void expect_all_noticed(bool on_threads, Run run) {
  for (const Mutant& mutant : mutants()) {
    if (on_threads && !mutant.on_threads) continue;
    Notice notice;
    for (int i = 0; i < kSessions && notice.session < 0; ++i) {
      const std::uint64_t seed = 0xbad00000u + static_cast<std::uint64_t>(i);
      Random random(seed);
      const Session session = spoilt_session(mutant, random);
      notice.how = run(session, random, mutant.one_half);
      if (!notice.how.empty()) notice.session = i;
    }
    EXPECT_GE(notice.session, 0) << mutant.name << " went unnoticed";
    std::printf("%-45s session %4d: %s\n", mutant.name, notice.session,
                notice.how.substr(0, notice.how.find('\n')).c_str());
  }
}

TEST(Mutants, EachIsNoticedByTheReplay) {
  expect_all_noticed(false, [](const Session& session, Random& random, bool one_half) {
    return Replay({session.ranks, session.first_count, session.slot_payload, one_half}, random)
        .run(session.calls);
  });
}

// Also by the threads, where timing allows. What is stuck is given up soon.
TEST(Mutants, ThoseThatStayInTheirMemoryAreNoticedOnThreads) {
  expect_all_noticed(true, [](const Session& session, Random& random, bool one_half) {
    TestTeam team({.ranks = session.ranks,
                   .policy = random_policy(random),
                   .timeout_ns = 200'000'000,
                   .first_count = session.first_count,
                   .slot_payload = session.slot_payload,
                   .one_half = one_half});
    return team.run(session.calls, random.next());
  });
}

// Waits are few because implied ones are dropped: each one that is left is needed.
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
    // Its own entry's wait, satisfied by then, in its place.
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
