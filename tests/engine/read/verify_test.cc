#include "engine/read/verify.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "algorithms/catalogue.h"
#include "algorithms/direct.h"
#include "algorithms/exchange.h"
#include "algorithms/ring.h"
#include "tests/engine/read/listed.h"

namespace rankine {
namespace {

constexpr Goal kAllReduce2 = {Collective::all_reduce, 2, 1};
constexpr Goal kBroadcast3 = {Collective::broadcast, 3, 1};

// Every violation that the test has seen; the last test asks for all of them.
std::set<ViolationKind>& seen() {
  static std::set<ViolationKind> kinds;
  return kinds;
}

void expect_violation(const Schedule& schedule, const Goal& goal, ViolationKind kind, int round,
                      Rank rank, Block block, const std::string& text,
                      const VerifyOptions& options = {}) {
  const auto violation = verify(schedule, goal, options);
  ASSERT_TRUE(violation) << "no violation; expected: " << text;
  EXPECT_EQ(name_of(violation->kind), name_of(kind)) << violation->text;
  EXPECT_EQ(violation->round, round) << violation->text;
  EXPECT_EQ(violation->rank, rank) << violation->text;
  EXPECT_EQ(violation->block, block) << violation->text;
  EXPECT_EQ(violation->text, text);
  seen().insert(violation->kind);
}

std::string text_of(const std::optional<Violation>& violation) {
  return violation ? violation->text : "";
}

TEST(Verify, ProvesTheCatalogueForAnyNumberOfRanks) {
  for (const Algorithm& line : catalogue()) {
    for (int n = 1; n <= 33; ++n) {
      const Params params =
          line.only_taken({.ranks = n, .root = n / 3, .peer = n - 1, .segments = 2});
      if (line.refusal(params)) continue;
      const Schedule schedule = line.make(params);
      EXPECT_EQ(text_of(verify(schedule, goal_of(line, params, schedule))), "")
          << name_of(line.collective) << " " << line.name << " N=" << n;
    }
  }
}

// Every all-reduce adds up alike on all ranks, but for the lines that say otherwise; and these say
// so because it is true.
TEST(Verify, LinesWithOtherBitsAddUpInOtherWays) {
  for (const Algorithm& line : catalogue()) {
    if (line.other_bits.empty()) continue;
    EXPECT_EQ(line.collective, Collective::all_reduce) << line.name;
    bool differs = false;
    for (int n = 1; n <= 33 && !differs; ++n) {
      Params params;
      params.ranks = n;
      if (line.refusal(params)) continue;
      const Schedule schedule = line.make(params);
      Goal goal = goal_of(line, params, schedule);
      EXPECT_FALSE(goal.same_bits) << line.name;
      goal.same_bits = true;
      const auto violation = verify(schedule, goal);
      differs = violation && violation->kind == ViolationKind::other_order;
    }
    EXPECT_TRUE(differs) << line.name;
  }
}

TEST(Verify, SumsInOtherBrackets) {
  // Swing: after two rounds rank 0 has (0 1) + (6 7), rank 1 has (0 1) + (2 3).
  expect_violation(swing_latency_all_reduce({8}), {Collective::all_reduce, 8, 1},
                   ViolationKind::other_order, -1, 1, 0,
                   "rank 1, block 0: is added up in another way than at rank 0: sums of floats "
                   "would differ");
  Goal any{Collective::all_reduce, 8, 1};
  any.same_bits = false;
  EXPECT_EQ(text_of(verify(swing_latency_all_reduce({8}), any)), "");
}

TEST(Verify, AcceptsOneRankThatDoesNothing) {
  for (const Collective collective : all_collectives()) {
    EXPECT_EQ(text_of(verify(nothing(1, 1), {collective, 1, 1})), "") << name_of(collective);
  }
}

TEST(Verify, GoalOfAnotherShape) {
  expect_violation(nothing(2, 1), {Collective::all_reduce, 3, 1}, ViolationKind::bad_shape, -1, -1,
                   -1, "the schedule is for 2 ranks and 1 block, the goal for 3 and 1");
  expect_violation(nothing(2, 3), {Collective::all_to_all, 2, 3}, ViolationKind::bad_shape, -1, -1,
                   -1, "all_to_all among 2 ranks moves 4 blocks or a multiple; the schedule has 3");
  expect_violation(nothing(2, 1), {Collective::broadcast, 2, 1, 2}, ViolationKind::bad_shape, -1,
                   -1, -1, "the goal's root is 2 and its peer 0; ranks are 0 to 1");
}

TEST(Verify, PhasesThatDoNotAddUp) {
  Schedule schedule = ring_all_gather(3);
  schedule.phases = {{"first", 1}, {"second", 2}};
  expect_violation(schedule, {Collective::all_gather, 3, 3}, ViolationKind::bad_shape, -1, -1, -1,
                   "the phases have 3 rounds together, the schedule 2");
}

TEST(Verify, MoreStatesThanAllowed) {
  VerifyOptions options;
  options.max_states = 15;
  options.one_for_all = false;
  expect_violation(ring_all_gather(4), {Collective::all_gather, 4, 4}, ViolationKind::too_large, -1,
                   -1, -1, "4 ranks x 4 blocks x 1 plane take 16 states; allowed are 15", options);
}

TEST(Verify, RankThatDoesNotExist) {
  expect_violation(listed(3, 1, {{transfer(0, 3, block(0), copy)}}), kBroadcast3,
                   ViolationKind::bad_index, 0, 3, 0,
                   "round 0, rank 3, block 0: there is no such rank to receive; ranks are 0 to 2");
  expect_violation(listed(3, 1, {{transfer(-1, 1, block(0), copy)}}), kBroadcast3,
                   ViolationKind::bad_index, 0, -1, 0,
                   "round 0, block 0: there is no such rank to send; ranks are 0 to 2");
  expect_violation(listed(3, 1, {{transfer(0, ranks_from(1, 3), block(0), copy)}}), kBroadcast3,
                   ViolationKind::bad_index, 0, 3, 0,
                   "round 0, rank 3, block 0: there is no such rank to receive; ranks are 0 to 2");
}

TEST(Verify, BlockOrPlaneThatDoesNotExist) {
  expect_violation(listed(3, 1, {{transfer(0, 1, block(1), copy)}}), kBroadcast3,
                   ViolationKind::bad_index, 0, 1, 1,
                   "round 0, rank 1, block 1: there is no such block; `what` may have 0 to 0");
  expect_violation(
      listed(3, 1, {{{0, 1, block(0), block(0, 1), copy}}}), kBroadcast3, ViolationKind::bad_index,
      0, 1, 0, "round 0, rank 1, block 0: `where` is on plane 1; the schedule's planes are 0 to 0");
}

TEST(Verify, EmptySets) {
  expect_violation(listed(3, 1, {{transfer(RankSet(), 1, block(0), copy)}}), kBroadcast3,
                   ViolationKind::bad_sizes, 0, -1, -1, "round 0: a transfer without sender");
  expect_violation(listed(3, 1, {{transfer(0, 1, blocks(0, 0), copy)}}), kBroadcast3,
                   ViolationKind::bad_sizes, 0, -1, -1, "round 0: a transfer without block");
}

TEST(Verify, SizesAndBlocksOfWhatAndWhere) {
  const Goal goal = {Collective::all_reduce, 2, 2};
  expect_violation(listed(2, 2, {{{0, 1, blocks(0, 2), block(0), reduce}}}), goal,
                   ViolationKind::bad_sizes, 0, 1, 0,
                   "round 0, rank 1, block 0: 2 blocks sent to 1 place");
  expect_violation(listed(2, 2, {{{0, 1, block(0), block(1), reduce}}}), goal,
                   ViolationKind::other_block, 0, 1, 1,
                   "round 0, rank 1, block 1: rank 0 sends block 0 to the place of block 1");
}

TEST(Verify, TheSameBlocksInOtherRunsAreTheSame) {
  BlockSet apart = block(0);
  apart.list.append(IndexList(2));
  const Transfer there = {0, 1, apart, blocks(0, 2, 2), copy};
  const Transfer rest = transfer(0, 1, block(1), copy);
  EXPECT_EQ(text_of(verify(listed(2, 3, {{there, rest}}), {Collective::broadcast, 2, 3})), "");
}

TEST(Verify, CopyWithSeveralSenders) {
  expect_violation(listed(3, 1, {{transfer(ranks_from(0, 2), 2, block(0), copy)}}),
                   {Collective::all_reduce, 3, 1}, ViolationKind::many_to_copy, 0, 2, 0,
                   "round 0, rank 2, block 0: 2 ranks are copied to it at once; only sums have "
                   "several senders");
}

TEST(Verify, ReadsWhatIsNotThere) {
  // Reads come before writes: the block reaches rank 1 one round too late to be sent on.
  expect_violation(listed(3, 1, {{transfer(0, 1, block(0), copy), transfer(1, 2, block(0), copy)}}),
                   kBroadcast3, ViolationKind::not_there, 0, 1, 0,
                   "round 0, rank 1, block 0: is to be sent to rank 2 but holds nothing");
  expect_violation(listed(2, 1, {{{0, 1, block(0, 1), block(0), reduce}}}, 2), kAllReduce2,
                   ViolationKind::not_there, 0, 0, 0,
                   "round 0, rank 0, block 0: (plane 1) is to be sent to rank 1 but holds nothing");
}

TEST(Verify, AddsTwice) {
  expect_violation(
      listed(2, 1, {{transfer(0, 1, block(0), reduce)}, {transfer(1, 0, block(0), reduce)}}),
      kAllReduce2, ViolationKind::double_count, 1, 0, 0,
      "round 1, rank 0, block 0: {0, 1} from rank 1 is added to {0}: {0} would be there twice");
  // A rank in both sets of a many-to-many transfer would add its own block to itself.
  expect_violation(listed(2, 1, {{transfer(ranks_from(0, 2), ranks_from(0, 2), block(0), reduce)}}),
                   kAllReduce2, ViolationKind::double_count, 0, 0, 0,
                   "round 0, rank 0, block 0: {0} from rank 0 is added to {0}: {0} would be there "
                   "twice");
}

TEST(Verify, AddsTwiceWhereSetsAreNoIntervals) {
  // Rank 0 collects 2 and 5, rank 1 collects 3 and 5: 5 would meet itself.
  const auto add = [](Rank from, Rank to) { return transfer(from, to, block(0), reduce); };
  expect_violation(listed(7, 1, {{add(2, 0), add(5, 0), add(3, 1), add(5, 1)}, {add(1, 0)}}),
                   {Collective::reduce, 7, 1}, ViolationKind::double_count, 1, 0, 0,
                   "round 1, rank 0, block 0: {1, 3, 5} from rank 1 is added to {0, 2, 5}: {5} "
                   "would be there twice");
}

TEST(Verify, ABarrierMayHearARankTwice) {
  const auto add = [](Rank from, Rank to) { return transfer(from, to, block(0), reduce); };
  const TransferList rounds = {{add(0, 1), add(1, 2), add(2, 0)},
                               {add(0, 1), add(1, 2), add(2, 0)}};
  EXPECT_EQ(text_of(verify(listed(3, 1, rounds), {Collective::barrier, 3, 1})), "");
  expect_violation(listed(3, 1, rounds), {Collective::all_reduce, 3, 1},
                   ViolationKind::double_count, 1, 1, 0,
                   "round 1, rank 1, block 0: {0, 2} from rank 0 is added to {0, 1}: {0} would be "
                   "there twice");
  // But each time it must hear something new.
  expect_violation(listed(2, 1, {{add(0, 1), add(1, 0)}, {add(0, 1)}}), {Collective::barrier, 2, 1},
                   ViolationKind::redundant, 1, 1, 0,
                   "round 1, rank 1, block 0: {0, 1} from rank 0 is added to {0, 1}, which has it "
                   "already");
}

TEST(Verify, TwoCopiesIntoOnePlace) {
  const Goal goal = {Collective::broadcast, 4, 1};
  const auto pass = [](Rank from, Rank to) { return transfer(from, to, block(0), copy); };
  expect_violation(listed(4, 1, {{pass(0, 1), pass(0, 2)}, {pass(1, 3), pass(2, 3)}}), goal,
                   ViolationKind::two_copies, 1, 3, 0,
                   "round 1, rank 3, block 0: {0} from rank 2 is copied there, where another copy "
                   "goes in the same round");
}

TEST(Verify, CopyAndReductionIntoOnePlace) {
  expect_violation(
      listed(3, 1, {{transfer(0, 2, block(0), copy), transfer(1, 2, block(0), reduce)}}),
      {Collective::all_reduce, 3, 1}, ViolationKind::mixed_acts, 0, 2, 0,
      "round 0, rank 2, block 0: {1} from rank 1 goes where a copy and a reduction meet in one "
      "round");
}

TEST(Verify, CopyOfWhatIsThere) {
  const TransferList rounds = {{transfer(0, ranks_from(1, 2), block(0), copy)},
                               {transfer(1, 2, block(0), copy)}};
  expect_violation(listed(3, 1, rounds), kBroadcast3, ViolationKind::redundant, 1, 2, 0,
                   "round 1, rank 2, block 0: {0} from rank 1 is copied there, where the same is "
                   "already");
  VerifyOptions wasteful;
  wasteful.economy = false;
  EXPECT_EQ(text_of(verify(listed(3, 1, rounds), kBroadcast3, wasteful)), "");
}

TEST(Verify, ArrivesForNothing) {
  // Rank 2 needs nothing of a send from 0 to 1.
  expect_violation(listed(3, 1, {{transfer(0, ranks_from(1, 2), block(0), copy)}}),
                   {Collective::send_recv, 3, 1, 0, 1}, ViolationKind::dead, 0, 2, 0,
                   "round 0, rank 2, block 0: what arrives, {0}, is neither sent on nor needed at "
                   "the end");
  // A scratch place that is overwritten unread.
  const auto park = [](Rank from, Rank to) {
    return Transfer{from, to, block(0), block(0, 1), copy};
  };
  expect_violation(listed(3, 1, {{park(0, 1)}, {park(2, 1)}}, 2), {Collective::reduce, 3, 1},
                   ViolationKind::dead, 1, 1, 0,
                   "round 1, rank 1, block 0: (plane 1) {2} from rank 2 overwrites {0}, which "
                   "arrived in round 0 and was never used");
}

TEST(Verify, EndsIncomplete) {
  expect_violation(listed(2, 1, {{transfer(0, 1, block(0), reduce)}}), kAllReduce2,
                   ViolationKind::wrong_result, -1, 0, 0,
                   "rank 0, block 0: ends with the contributions of {0}; needed are {0, 1}");
  expect_violation(nothing(2, 1), {Collective::send_recv, 2, 1, 0, 1}, ViolationKind::wrong_result,
                   -1, 1, 0, "rank 1, block 0: ends with the contributions of {}; needed are {0}");
}

TEST(Verify, ReduceScatterMustEndWithTheRanksOwnBlock) {
  // The textbook ring that turns right leaves rank r with block r + 1.
  const int p = 4;
  const Schedule right = {p, p, p - 1, [](int k, Send send) {
                            for (Rank r : ranks(p)) send(r, r + 1, block(r - k), reduce);
                          }};
  const auto violation = verify(right, {Collective::reduce_scatter, p, p});
  ASSERT_TRUE(violation);
  EXPECT_EQ(name_of(violation->kind), "wrong_result") << violation->text;
}

TEST(Verify, LocalWorkObeysTheSameRules) {
  // In round 0 everyone parks its neighbour's vector, in round 1 it is added.
  const Schedule good =
      listed(2, 1,
             {{{0, 1, block(0), block(0, 1), copy}, {1, 0, block(0), block(0, 1), copy}},
              {{0, 0, block(0, 1), block(0), reduce}, {1, 1, block(0, 1), block(0), reduce}}},
             2);
  EXPECT_EQ(text_of(verify(good, kAllReduce2)), "");
  expect_violation(listed(2, 1, {{transfer(0, 0, block(0), copy)}}), kAllReduce2,
                   ViolationKind::redundant, 0, 0, 0,
                   "round 0, rank 0, block 0: {0} from rank 0 is copied there, where the same is "
                   "already");
}

TEST(Verify, ASwitchAddsUpAndSpreads) {
  // Ranks 1 and 2 through the switch's ALU to 0, then one multicast back.
  EXPECT_EQ(text_of(verify(listed(3, 1,
                                  {{transfer(ranks_from(1, 2), 0, block(0), reduce)},
                                   {transfer(0, ranks_from(1, 2), block(0), copy)}}),
                           {Collective::all_reduce, 3, 1})),
            "");
}

// Three messages of one pair in one round, both ways: more than a mailbox of two holds.
Schedule crossing() {
  return {2, 3, 1, [](int, Send send) {
            for (Rank r : ranks(2)) {
              for (Block b = 0; b < 3; ++b) send(r, r + 1, block(b), reduce);
            }
          }};
}

TEST(Verify, BoundedMailboxesWithoutSubRoundsDeadlock) {
  const Goal goal = {Collective::all_reduce, 2, 3};
  VerifyOptions options;
  options.mailbox_capacity = 2;
  options.order = MessageOrder::sends_first;
  expect_violation(
      crossing(), goal, ViolationKind::deadlock, 0, 0, -1,
      "round 0, rank 0: rank 0 waits to send to 1 (2 messages unread), rank 1 waits to "
      "send to 0 (2 messages unread)",
      options);
  options.progress = false;
  EXPECT_EQ(text_of(verify(crossing(), goal, options)), "");
  options.progress = true;
  options.mailbox_capacity = 3;
  EXPECT_EQ(text_of(verify(crossing(), goal, options)), "");
  options.mailbox_capacity = 1;
  for (const MessageOrder order : {MessageOrder::sub_rounds, MessageOrder::statement}) {
    options.order = order;
    EXPECT_EQ(text_of(verify(crossing(), goal, options)), "");
  }
}

TEST(Verify, ReceivingFirstDeadlocksAnyRing) {
  VerifyOptions options;
  options.order = MessageOrder::receives_first;
  const auto violation = verify(ring_all_gather(20), {Collective::all_gather, 20, 20}, options);
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->text,
            "round 0, rank 0: rank 0 waits to receive from 19, rank 19 waits to receive from 18, "
            "rank 18 waits to receive from 17, rank 17 waits to receive from 16, rank 16 waits to "
            "receive from 15, rank 15 waits to receive from 14, rank 14 waits to receive from 13, "
            "rank 13 waits to receive from 12, ... a circle of 20 ranks");
}

TEST(Verify, WhatAScheduleThrowsPassesThrough) {
  const Schedule broken = {2, 1, 1, [](int, Send) { throw std::logic_error("broken"); }};
  EXPECT_THROW(verify(broken, kAllReduce2), std::logic_error);
}

TEST(Verify, EveryKindOfViolationHasBeenSeen) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  if (all.test_to_run_count() < all.total_test_count()) GTEST_SKIP() << "not all tests run";
  for (int i = 0; i < kViolationKinds; ++i) {
    EXPECT_TRUE(seen().contains(static_cast<ViolationKind>(i)))
        << name_of(static_cast<ViolationKind>(i));
  }
}

}  // namespace
}  // namespace rankine
