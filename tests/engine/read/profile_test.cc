// A profile's time is the simulator's, by rounds and with ideal blocks, for whatever alpha, hop,
// beta and size; and what it keeps of a round is the messages that can be its slowest.
#include "engine/read/sweep.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/torus.h"
#include "engine/network/simulate.h"
#include "tests/engine/read/listed.h"

namespace rankine {
namespace {

Goal any_goal(const Schedule& schedule) {
  return {.collective = Collective::all_reduce, .ranks = schedule.ranks, .blocks = schedule.blocks};
}

Transfer message(Rank from, Rank to, int count) {
  return transfer(from, to, blocks(0, count), copy);
}

Profile profiled(const Schedule& schedule, const Wiring& wiring) {
  const auto result = profile(schedule, any_goal(schedule), wiring);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? *result : Profile{};
}

TEST(Profile, TakesTheSimulatorsTime) {
  struct Network {
    Rational alpha, hop, beta;
  };
  const Network networks[] = {{{3, 2'000'000}, {1, 5'000'000}, {1, Int128{100'000'000'000}}},
                              {{1, 1'000'000}, 0, {1, 1'000'000'000}},
                              {0, {1, 1'000'000}, {1, 7'000'000}},
                              {0, 0, {3, 1'000'000'000}}};
  const std::vector<std::vector<int>> tori = {{2},    {7},       {8},         {9},       {16},
                                              {4, 4}, {3, 5},    {8, 8},      {3, 3, 3}, {2, 3, 4},
                                              {9, 9}, {4, 4, 4}, {2, 2, 2, 2}};
  int compared = 0;
  for (const Algorithm& line : catalogue()) {
    const bool of_tori = line.takes("dims") && line.collective != Collective::all_gather;
    if (!of_tori && line.name != "ring" && line.name != "bruck") continue;
    for (const auto& dims : tori) {
      const Params params = line.only_taken({.ranks = Torus(dims).ranks(), .dims = dims});
      if (line.refusal(params) || (line.collective == Collective::all_to_all && dims.size() > 1)) {
        continue;
      }
      const Schedule schedule = line.make(params);
      const Goal goal = goal_of(line, params, schedule);
      for (const Routing routing : {Routing::minimal, Routing::one_way}) {
        const Wiring wiring{.kind = WiringKind::torus, .dims = dims, .routing = routing};
        const auto found = profile(schedule, goal, wiring);
        ASSERT_TRUE(found.ok()) << found.status().text();
        const auto index = static_cast<std::size_t>(compared) % std::size(networks);
        const Network& network = networks[index];
        const std::uint64_t bytes = index == 1 ? 1'000'003 : 4096;
        Fabric fabric{.name = "test", .ports = found->most_messages + (found->most_messages == 0)};
        fabric.link = {network.alpha, network.beta};
        fabric.alpha_hop = network.hop;
        fabric.wiring = wiring;
        const auto simulated =
            simulate(schedule, goal, fabric, bytes, {.sync = Sync::rounds, .ideal_blocks = true});
        ASSERT_TRUE(simulated.ok()) << simulated.status().text();
        const std::string what = std::string(name_of(line.collective)) + " " +
                                 std::string(line.name) + " " + dims_text(dims) + " " +
                                 std::string(name_of(routing));
        EXPECT_NEAR(found->time(fabric, static_cast<double>(bytes)), simulated->seconds,
                    1e-12 * simulated->seconds)
            << what;
        EXPECT_EQ(found->round_count(), simulated->rounds) << what;
        EXPECT_EQ(found->most_messages, simulated->ports_needed()) << what;
        for (std::size_t r = 0; r < found->sent.size(); ++r) {
          EXPECT_EQ(static_cast<Int128>(found->sent[r]) * static_cast<Int128>(bytes) *
                        simulated->weight_per_byte,
                    static_cast<Int128>(simulated->sent[r]) * found->per_m)
              << what << ", rank " << r;
        }
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 200);
}

TEST(Profile, KeepsTheMessagesThatCanBeTheSlowest) {
  // On a ring of 9: 4 hops with one block, 1 hop with three, and one that is below both.
  const Schedule schedule = listed(9, 3, {{message(0, 4, 1), message(5, 6, 3), message(7, 8, 2)}});
  const Profile found = profiled(schedule, {.kind = WiringKind::ring});
  EXPECT_EQ(found.per_m, 6);
  ASSERT_EQ(found.rounds.size(), 1u);
  EXPECT_EQ(found.rounds[0], (std::vector<SlowMessage>{{1, 6}, {4, 2}}));
  EXPECT_EQ(found.total_load(), 6);
  EXPECT_EQ(found.most_sent(), 6);
  EXPECT_DOUBLE_EQ(found.time(1, 10, 0, 3), 41);    // the farther one
  EXPECT_DOUBLE_EQ(found.time(1, 0, 1, 3), 4);      // the larger one
  EXPECT_DOUBLE_EQ(found.time(1, 0.5, 1, 3), 4.5);  // 1 + 0.5 + 3, against 1 + 2 + 1
}

TEST(Profile, MessagesOfARoundShareLinksAndTiesGoBothWays) {
  // Two blocks each from 0 and 1 up to 2: together on the second link. 0 and 3 of 6 are antipodes.
  EXPECT_EQ(
      profiled(listed(6, 2, {{message(0, 2, 2), message(1, 2, 2)}}), {.kind = WiringKind::ring})
          .rounds[0],
      (std::vector<SlowMessage>{{2, 8}}));
  EXPECT_EQ(profiled(listed(6, 2, {{message(0, 3, 2)}}), {.kind = WiringKind::ring}).rounds[0],
            (std::vector<SlowMessage>{{3, 2}}));
}

TEST(Profile, LocalRoundsTakeNoTime) {
  const Schedule schedule = listed(4, 1, {{message(1, 1, 1)}, {message(0, 1, 1)}, {}});
  const Profile found = profiled(schedule, {.kind = WiringKind::ring});
  EXPECT_EQ(found.round_count(), 1);
  EXPECT_DOUBLE_EQ(found.time(1, 0, 0, 8), 1);
}

TEST(Profile, SaysWhatItCannotRead) {
  const Schedule multicast = listed(4, 1, {{transfer(0, ranks_from(1, 3), block(0), copy)}});
  const auto refused = profile(multicast, any_goal(multicast), {.kind = WiringKind::ring});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().text().find("multicast"), std::string::npos);
  const Schedule plain = listed(4, 1, {{message(0, 1, 1)}});
  const auto levels = profile(plain, any_goal(plain), {.kind = WiringKind::two_level, .group = 2});
  ASSERT_FALSE(levels.ok());
  EXPECT_NE(levels.status().text().find("two_level"), std::string::npos);
  EXPECT_FALSE(profile(plain, any_goal(plain), {.kind = WiringKind::torus, .dims = {3}}).ok());
}

}  // namespace
}  // namespace rankine
