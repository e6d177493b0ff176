// Mutants on simulated threads, which run the real interpreter: those that stay in their memory.
// Whoever touches what another one may touch at the time is seen whatever the timing, and what is
// stuck comes to its deadline at once.
#include "tests/engine/run/mutants.h"

#include "tests/engine/run/test_team.h"
#include "tests/models/simulator.h"

namespace rankine::model {
namespace {

TEST(Mutants, EachIsNoticedByTheSimulator) {
  expect_all_noticed(true, [](const Session& session, Random& random, bool one_half) {
    Simulator simulator({.seed = random.next()});
    TestTeam team({.ranks = session.ranks,
                   .policy = random_policy(random),
                   .timeout_ns = 200'000'000,
                   .first_count = session.first_count,
                   .slot_payload = session.slot_payload,
                   .one_half = one_half,
                   .launch = [&](std::vector<std::function<void()>> bodies) {
                     simulator.run(std::move(bodies));
                   }});
    const std::string fault = team.run(session.calls, random.next());
    return fault.empty() ? simulator.race() : fault;
  });
}

// What it notices is not there without the mutants.
TEST(Mutants, OfPlansAsTheyAreNothingIsNoticed) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const Session session = random_session(random, {.calls = {.ranks = 9}});
    Simulator simulator({.seed = seed});
    TestTeam team({.ranks = session.ranks,
                   .policy = random_policy(random),
                   .first_count = session.first_count,
                   .slot_payload = session.slot_payload,
                   .launch = [&](std::vector<std::function<void()>> bodies) {
                     simulator.run(std::move(bodies));
                   }});
    EXPECT_EQ(team.run(session.calls, seed), "") << "seed " << seed;
    EXPECT_EQ(simulator.race(), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace rankine::model
