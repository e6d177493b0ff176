// Mutants in the replay, which takes every order that a plan allows.
#include "tests/engine/run/mutants.h"

#include "tests/engine/run/replay.h"

namespace rankine {
namespace {

TEST(Mutants, EachIsNoticedByTheReplay) {
  expect_all_noticed(false, [](const Session& session, Random& random, bool one_half) {
    return Replay({session.ranks, session.first_count, session.slot_payload, one_half}, random)
        .run(session.calls);
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
