// Which waits are left, and what they cost.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/direct.h"
#include "algorithms/recursive_doubling.h"
#include "algorithms/ring.h"
#include "engine/compile/program.h"
#include "engine/run/plan.h"
#include "tests/engine/run/random_call.h"
#include "tests/engine/run/replay.h"

namespace rankine {
namespace {

Plan plan_of(const Schedule& schedule, Buffers buffers, const Passes& passes = {}) {
  const Goal goal{Collective::all_reduce, schedule.ranks, schedule.blocks};
  const std::vector<std::size_t> counts = {static_cast<std::size_t>(schedule.blocks) * 16};
  auto plan = make_plan(schedule, goal, make_layout(goal, counts, 4, Borders::plain), buffers,
                        Transport::direct, {}, {}, passes);
  plan.status().throw_if_error();
  return std::move(*plan);
}

struct Tally {
  int entries = 0, waits = 0, exits = 0, folds = 0, published = 0;
  bool operator==(const Tally&) const = default;
};

void PrintTo(const Tally& t, std::ostream* out) {
  *out << t.entries << " entries, " << t.waits << " waits, " << t.exits << " exits, " << t.folds
       << " folds, " << t.published << " published";
}

Tally tally(const Plan& plan, Rank r) {
  Tally out;
  for (const Op& op : plan.rank[static_cast<std::size_t>(r)].ops) {
    if (op.code == OpCode::wait_entry) ++out.entries;
    if (op.code == OpCode::wait_progress) ++(op.round > plan.rounds ? out.exits : out.waits);
    if (op.code == OpCode::fold) {
      ++out.folds;
      if (op.value != 0) ++out.published;
    }
  }
  return out;
}

TEST(LowerDirect, TwoRanksNeedOneEntryAndOneExit) {
  EXPECT_EQ(tally(plan_of(direct_all_reduce_one_shot(2), Buffers::apart), 0),
            (Tally{.entries = 1, .waits = 0, .exits = 1, .folds = 1, .published = 1}));
  // The result's own arrival says that the other has read: no exit of its own.
  EXPECT_EQ(tally(plan_of(direct_all_reduce_two_shot(2), Buffers::apart), 0),
            (Tally{.entries = 1, .waits = 1, .exits = 1, .folds = 2, .published = 2}));
}

// Two neighbours' entries, one wait per round but the first, and one exit: what a ring needs.
TEST(LowerDirect, ARingWaitsOncePerRound) {
  for (const int p : {3, 4, 9, 64}) {
    for (const Buffers buffers : {Buffers::apart, Buffers::in_place}) {
      const Plan plan = plan_of(ring_all_reduce(p), buffers);
      EXPECT_EQ(fault_of(plan), "");
      const int rounds = 2 * (p - 1);
      for (Rank r = 0; r < p; ++r) {
        EXPECT_EQ(tally(plan, r), (Tally{.entries = 2,
                                         .waits = rounds - 1,
                                         .exits = 1,
                                         .folds = rounds,
                                         .published = rounds}));
      }
    }
  }
}

// Each round waits for the partner's version of the round before, and from the third round on also
// for the partner of two rounds ago, whose source is overwritten: places alternate between two.
TEST(LowerDirect, RecursiveDoublingWaitsForItsPartnersAndItsReaders) {
  for (const Buffers buffers : {Buffers::apart, Buffers::in_place}) {
    const Plan plan = plan_of(recursive_doubling_all_reduce(16), buffers);
    for (Rank r = 0; r < 16; ++r) {
      const Tally t = tally(plan, r);
      EXPECT_EQ(t.entries, 4);
      EXPECT_EQ(t.waits, buffers == Buffers::apart ? 5 : 6);
      EXPECT_LE(t.exits, 4);
    }
  }
}

TEST(LowerDirect, NothingIsPublishedThatNobodyWaitsFor) {
  const Plan plan = plan_of(direct_all_reduce_one_shot(5), Buffers::apart);
  std::vector<std::vector<std::uint32_t>> waited(5);
  for (const RankPlan& rank : plan.rank) {
    for (const Op& op : rank.ops) {
      if (op.code == OpCode::wait_progress) waited[op.peer].push_back(op.value);
    }
  }
  for (std::size_t r = 0; r < 5; ++r) {
    for (const Op& op : plan.rank[r].ops) {
      if (op.code != OpCode::fold || op.value == 0) continue;
      EXPECT_NE(std::find(waited[r].begin(), waited[r].end(), op.value), waited[r].end());
    }
  }
}

// Else a rank that made other calls meanwhile, and counts on, would look as if it had stored.
TEST(LowerDirect, WhoIsStoredToLooksAtTheEntryOfWhoStores) {
  // Rank 1 only sends its vector up, and is given the sum.
  const Plan plan = plan_of(central_all_reduce(2), Buffers::in_place, {.pushes = true});
  EXPECT_EQ(tally(plan, 1),
            (Tally{.entries = 1, .waits = 1, .exits = 0, .folds = 1, .published = 1}));
  // Which stands until rank 1 has looked.
  EXPECT_EQ(tally(plan, 0).exits, 1);
}

TEST(LowerDirect, AmongOneRankThereIsNobodyToWaitFor) {
  const Plan plan = plan_of(ring_all_reduce(1), Buffers::apart);
  EXPECT_EQ(tally(plan, 0), (Tally{.folds = 1}));
}

TEST(LowerDirect, CountersAdvanceAlikeOnAllRanks) {
  // Ranks with few operations advance as far as the one with most.
  const Schedule lopsided{3, 1, 4, [](int k, Send send) { send(k % 2, 2, block(0), reduce); }};
  const Plan plan = plan_of(lopsided, Buffers::apart);
  EXPECT_GE(plan.span, 5U);
  EXPECT_EQ(fault_of(plan), "");
}

// The whole catalogue keeps the rules that a plan shows at first sight.
TEST(LowerDirect, EveryAlgorithmWaitsForEarlierRoundsOnly) {
  for (const Algorithm& algorithm : catalogue()) {
    for (const int n : {1, 2, 3, 5, 8, 13}) {
      Params params;
      params.ranks = n;
      params.segments = algorithm.takes("segments") ? 3 : 1;
      if (algorithm.refusal(params)) continue;
      const Schedule schedule = algorithm.make(params);
      const Goal goal = goal_of(algorithm, params, schedule);
      const std::vector<std::size_t> counts(
          static_cast<std::size_t>(natural_blocks(goal.collective, n)), 100);
      const Layout layout = make_layout(goal, counts, 4, Borders::plain);
      for (const Buffers buffers : {Buffers::apart, Buffers::in_place}) {
        for (const Transport transport :
             {Transport::direct, Transport::mailbox, Transport::board}) {
          auto plan = make_plan(schedule, goal, layout, buffers, transport,
                                {.board_bytes = std::size_t{1} << 20},
                                {.eager = transport == Transport::board});
          ASSERT_TRUE(plan.ok()) << algorithm.name << ": " << plan.status().text();
          EXPECT_EQ(fault_of(*plan), "") << algorithm.name << " among " << n;
        }
      }
    }
  }
}

}  // namespace
}  // namespace rankine
