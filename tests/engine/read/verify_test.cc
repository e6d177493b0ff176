#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/direct.h"
#include "algorithms/exchange.h"
#include "algorithms/ring.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/torus.h"
#include "engine/network/simulate.h"
#include "engine/read/contributions.h"
#include "engine/read/count.h"
#include "engine/read/verify.h"
#include "tests/engine/read/listed.h"

namespace rankine {
namespace {

using Pool = ContributionPool;

Pool::Set set_of(Pool& pool, const std::vector<Rank>& ranks) {
  Pool::Set out = Pool::kEmpty;
  for (const Rank r : ranks) out = pool.sum(out, pool.of(r));
  return out;
}

TEST(Contributions, NeighboursMakeIntervalsOverTheEnd) {
  Pool pool(5);
  EXPECT_EQ(pool.to_string(pool.sum(pool.of(4), pool.of(0))), "{0, 4}");
  EXPECT_EQ(pool.sum(pool.of(4), pool.of(0)), pool.sum(pool.of(0), pool.of(4)));
  EXPECT_EQ(set_of(pool, {3, 4, 0, 1, 2}), pool.rotation_symmetric());
  EXPECT_EQ(set_of(pool, {2, 0, 4, 1, 3}), pool.rotation_symmetric());
}

TEST(Contributions, OneRankIsEveryone) {
  Pool pool(1);
  EXPECT_EQ(pool.of(0), pool.rotation_symmetric());
  EXPECT_EQ(pool.sum(pool.of(0), pool.of(0)), Pool::kOverlap);
}

TEST(Contributions, Texts) {
  Pool pool(10);
  EXPECT_EQ(pool.to_string(Pool::kEmpty), "{}");
  EXPECT_EQ(pool.to_string(set_of(pool, {0, 1, 2, 3, 6, 8, 9})), "{0..3, 6, 8, 9}");
  EXPECT_EQ(pool.common(set_of(pool, {0, 1, 5}), set_of(pool, {1, 5, 7})), "{1, 5}");
}

// Compares Contributions with std::set. Ranks lie on both sides of word borders. Some sets have
// enough ranks that a few intervals take fewer words than bits.
TEST(Contributions, BehaveLikeSets) {
  std::mt19937 random(20090201);
  for (const int ranks : {2, 3, 7, 63, 64, 65, 128, 130, 1000}) {
    Pool pool(ranks);
    std::map<std::set<Rank>, Pool::Set> known;  // one number for each set
    std::vector<std::pair<std::set<Rank>, Pool::Set>> sets;
    for (Rank r = 0; r < ranks; ++r) sets.push_back({{r}, pool.of(r)});
    for (int i = 0; i < 3000; ++i) {
      const auto& [a, number_a] = sets[random() % sets.size()];
      const auto& [b, number_b] = sets[random() % sets.size()];
      std::set<Rank> both = a;
      both.insert(b.begin(), b.end());
      const bool overlap = both.size() < a.size() + b.size();
      const Pool::Set united = pool.united(number_a, number_b);
      EXPECT_EQ(pool.sum(number_a, number_b), overlap ? Pool::kOverlap : united);
      EXPECT_EQ(pool.members(united), std::vector<Rank>(both.begin(), both.end()));
      const auto [at, is_new] = known.insert({both, united});
      EXPECT_EQ(at->second, united);
      const int by = static_cast<int>(random() % static_cast<unsigned>(ranks));
      std::set<Rank> turned;
      for (const Rank r : both) turned.insert((r + by) % ranks);
      EXPECT_EQ(pool.members(pool.rotated(united, Rotation({ranks}, 1, Moves::nothing), by)),
                std::vector<Rank>(turned.begin(), turned.end()));
      if (both.size() <= static_cast<std::size_t>(ranks) / 2 && sets.size() < 2000) {
        sets.push_back({both, united});
      }
    }
  }
}

// The intersection of two sets, of few intervals and of many, in every representation.
TEST(Contributions, WhatTwoHaveInCommon) {
  Pool pool(1000);
  Pool::Set odd = Pool::kEmpty;
  for (Rank r = 1; r < 1000; r += 2) odd = pool.sum(odd, pool.of(r));
  const Pool::Set few = pool.sum(pool.sum(pool.run(995, 10), pool.run(10, 3)), pool.run(100, 1));
  EXPECT_EQ(pool.common(odd, few), "{1, 3, 11, 995, 997, 999}");
  EXPECT_EQ(pool.common(few, pool.run(999, 12)), "{0..4, 10, 999}");
  EXPECT_EQ(pool.sum(odd, few), Pool::kOverlap);
}

}  // namespace

namespace {

constexpr CollectiveSpec kAllReduce2 = {Collective::all_reduce, 2, 1};
constexpr CollectiveSpec kBroadcast3 = {Collective::broadcast, 3, 1};

// Every violation that the test has seen; the last test requires all of them.
std::set<ViolationKind>& seen() {
  static std::set<ViolationKind> kinds;
  return kinds;
}

void expect_violation(const Schedule& schedule, const CollectiveSpec& goal, ViolationKind kind,
                      int round, Rank rank, Block block, const std::string& text,
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
  for (const Algorithm& entry : catalogue()) {
    for (int n = 1; n <= 33; ++n) {
      const Params params =
          entry.only_taken({.ranks = n, .root = n / 3, .peer = n - 1, .segments = 2});
      if (entry.refusal(params)) continue;
      const Schedule schedule = entry.make(params);
      EXPECT_EQ(text_of(verify(schedule, goal_of(entry, params, schedule))), "")
          << name_of(entry.collective) << " " << entry.name << " N=" << n;
    }
  }
}

// Every all-reduce adds up in one order on all ranks, except lines with other_bits; and for these
// verify() finds different orders.
TEST(Verify, LinesWithOtherBitsAddUpInOtherWays) {
  for (const Algorithm& entry : catalogue()) {
    if (entry.other_bits.empty()) continue;
    EXPECT_EQ(entry.collective, Collective::all_reduce) << entry.name;
    bool differs = false;
    for (int n = 1; n <= 33 && !differs; ++n) {
      Params params;
      params.ranks = n;
      if (entry.refusal(params)) continue;
      const Schedule schedule = entry.make(params);
      CollectiveSpec goal = goal_of(entry, params, schedule);
      EXPECT_FALSE(goal.same_bits) << entry.name;
      goal.same_bits = true;
      const auto violation = verify(schedule, goal);
      differs = violation && violation->kind == ViolationKind::other_order;
    }
    EXPECT_TRUE(differs) << entry.name;
  }
}

TEST(Verify, SumsInOtherBrackets) {
  // Swing: after two rounds rank 0 has (0 1) + (6 7), rank 1 has (0 1) + (2 3).
  expect_violation(swing_latency_all_reduce({8}), {Collective::all_reduce, 8, 1},
                   ViolationKind::other_order, -1, 1, 0,
                   "rank 1, block 0: is added up in another way than at rank 0: sums of floats "
                   "would differ");
  CollectiveSpec any{Collective::all_reduce, 8, 1};
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
                   "round 0, rank 3, block 0: invalid rank to receive; ranks are 0 to 2");
  expect_violation(listed(3, 1, {{transfer(-1, 1, block(0), copy)}}), kBroadcast3,
                   ViolationKind::bad_index, 0, -1, 0,
                   "round 0, block 0: invalid rank to send; ranks are 0 to 2");
  expect_violation(listed(3, 1, {{transfer(0, ranks_from(1, 3), block(0), copy)}}), kBroadcast3,
                   ViolationKind::bad_index, 0, 3, 0,
                   "round 0, rank 3, block 0: invalid rank to receive; ranks are 0 to 2");
}

TEST(Verify, BlockOrPlaneThatDoesNotExist) {
  expect_violation(listed(3, 1, {{transfer(0, 1, block(1), copy)}}), kBroadcast3,
                   ViolationKind::bad_index, 0, 1, 1,
                   "round 0, rank 1, block 1: invalid block; `what` may have 0 to 0");
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
  const CollectiveSpec goal = {Collective::all_reduce, 2, 2};
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
  // A rank in both sets of a many-to-many transfer would add its block to itself.
  expect_violation(listed(2, 1, {{transfer(ranks_from(0, 2), ranks_from(0, 2), block(0), reduce)}}),
                   kAllReduce2, ViolationKind::double_count, 0, 0, 0,
                   "round 0, rank 0, block 0: {0} from rank 0 is added to {0}: {0} would be there "
                   "twice");
}

TEST(Verify, AddsTwiceWhereSetsAreNoIntervals) {
  // Rank 0 collects 2 and 5, rank 1 collects 3 and 5: 5 would count twice.
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
  // But each message must bring a new contribution.
  expect_violation(listed(2, 1, {{add(0, 1), add(1, 0)}, {add(0, 1)}}), {Collective::barrier, 2, 1},
                   ViolationKind::redundant, 1, 1, 0,
                   "round 1, rank 1, block 0: {0, 1} from rank 0 is added to {0, 1}, which has it "
                   "already");
}

TEST(Verify, TwoCopiesIntoOnePlace) {
  const CollectiveSpec goal = {Collective::broadcast, 4, 1};
  const auto pass = [](Rank from, Rank to) { return transfer(from, to, block(0), copy); };
  expect_violation(listed(4, 1, {{pass(0, 1), pass(0, 2)}, {pass(1, 3), pass(2, 3)}}), goal,
                   ViolationKind::two_copies, 1, 3, 0,
                   "round 1, rank 3, block 0: {0} from rank 2 is copied there, but another copy "
                   "goes there in the same round");
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
                   "round 1, rank 2, block 0: {0} from rank 1 is copied there, but it is there "
                   "already");
  VerifyOptions wasteful;
  wasteful.economy = false;
  EXPECT_EQ(text_of(verify(listed(3, 1, rounds), kBroadcast3, wasteful)), "");
}

TEST(Verify, ArrivesForNothing) {
  // Rank 2 needs nothing of a send from 0 to 1.
  expect_violation(listed(3, 1, {{transfer(0, ranks_from(1, 2), block(0), copy)}}),
                   {Collective::send_recv, 3, 1, 0, 1}, ViolationKind::dead, 0, 2, 0,
                   "round 0, rank 2, block 0: the arrival {0} is neither sent on nor needed at "
                   "the end");
  // A scratch place is overwritten unread.
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
  // In round 0 every rank parks its neighbour's vector; in round 1 it adds the vector.
  const Schedule good =
      listed(2, 1,
             {{{0, 1, block(0), block(0, 1), copy}, {1, 0, block(0), block(0, 1), copy}},
              {{0, 0, block(0, 1), block(0), reduce}, {1, 1, block(0, 1), block(0), reduce}}},
             2);
  EXPECT_EQ(text_of(verify(good, kAllReduce2)), "");
  expect_violation(listed(2, 1, {{transfer(0, 0, block(0), copy)}}), kAllReduce2,
                   ViolationKind::redundant, 0, 0, 0,
                   "round 0, rank 0, block 0: {0} from rank 0 is copied there, but it is there "
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

// Three messages of each pair in one round, both ways: more than a mailbox of two holds.
Schedule crossing() {
  return {2, 3, 1, [](int, Send send) {
            for (Rank r : ranks(2)) {
              for (Block b = 0; b < 3; ++b) send(r, r + 1, block(b), reduce);
            }
          }};
}

TEST(Verify, BoundedMailboxesWithoutSubRoundsDeadlock) {
  const CollectiveSpec goal = {Collective::all_reduce, 2, 3};
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

// One rank's part stands for all: readers find equal results in the part and in the whole schedule.

namespace {

struct Case {
  const Algorithm* entry;
  Params params;
  Schedule schedule;
  CollectiveSpec goal;
  std::string name() const {
    return std::string(name_of(goal.collective)) + " " + std::string(entry->name) +
           " N=" + std::to_string(goal.ranks) + " P=" + std::to_string(params.segments) + " " +
           entry->text_of(params);
  }
};

// Entries of the catalogue in which every rank does the same, with few ranks and many.
template <class Visit>
void for_each_case(const std::vector<int>& ranks, const Visit& visit) {
  for (const Algorithm& entry : catalogue()) {
    for (const int n : ranks) {
      for (const int segments : {1, 3}) {
        for (const std::vector<int>& dims : {std::vector<int>{}, balanced_dims(n, 2)}) {
          Params params{.ranks = n, .segments = segments};
          params.dims = dims;
          params = entry.only_taken(params);
          if (segments > 1 && !entry.takes("segments")) continue;
          if (!dims.empty() && !entry.takes("dims")) continue;
          if (entry.refusal(params)) continue;
          Case one{&entry, params, entry.make(params), {}};
          one.goal = goal_of(entry, params, one.schedule);
          if (symmetry_for(one.schedule, one.goal) != nullptr) visit(one);
        }
      }
    }
  }
}

const std::vector<int> kRanks = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 25, 27, 36};

TEST(OneForAll, MuchOfTheCatalogueIsAlike) {
  std::set<std::string> alike;
  for_each_case({5, 6, 8}, [&](const Case& one) {
    alike.insert(std::string(name_of(one.goal.collective)) + " " + std::string(one.entry->name));
  });
  for (const char* name :
       {"all_gather ring", "reduce_scatter ring", "all_reduce ring", "all_gather ring_mirrored",
        "all_gather ring_shortest", "all_gather bruck", "all_to_all bruck", "all_gather direct",
        "reduce_scatter circulant", "all_reduce circulant", "all_to_all circulant",
        "all_gather pat", "barrier dissemination", "all_to_all pairwise", "all_reduce bucket",
        "all_gather trivance", "all_reduce bruck_ternary_latency"}) {
    EXPECT_EQ(alike.count(name), 1u) << name;
  }
  EXPECT_EQ(alike.count("all_reduce swing"), 0u);
}

TEST(OneForAll, Counts) {
  for_each_case(kRanks, [](const Case& one) {
    EXPECT_EQ(count(one.schedule), count(one.schedule, false)) << one.name();
  });
}

TEST(OneForAll, Proofs) {
  for_each_case(kRanks, [](const Case& one) {
    for (const MessageOrder order : {MessageOrder::sub_rounds, MessageOrder::sends_first,
                                     MessageOrder::receives_first, MessageOrder::statement}) {
      for (const bool same_bits : {false, true}) {
        CollectiveSpec goal = one.goal;
        goal.same_bits = same_bits;
        VerifyOptions options;
        options.order = order;
        options.mailbox_capacity = 2;
        const auto of_one = verify(one.schedule, goal, options);
        options.one_for_all = false;
        const auto of_all = verify(one.schedule, goal, options);
        ASSERT_EQ(of_one.has_value(), of_all.has_value())
            << one.name() << ": " << (of_one ? of_one->text : of_all->text);
        if (of_one) {
          EXPECT_EQ(name_of(of_one->kind), name_of(of_all->kind)) << one.name();
        }
      }
    }
  });
}

void expect_same(const Simulation& a, const Simulation& b, const std::string& name) {
  EXPECT_EQ(a.end, b.end) << name;
  EXPECT_EQ(a.rank_end, b.rank_end) << name;
  EXPECT_EQ(a.round_end, b.round_end) << name;
  EXPECT_EQ(a.ticks_per_second, b.ticks_per_second) << name;
  EXPECT_EQ(a.seconds, b.seconds) << name;
  EXPECT_EQ(a.rounds, b.rounds) << name;
  EXPECT_EQ(a.messages, b.messages) << name;
  EXPECT_EQ(a.sent, b.sent) << name;
  EXPECT_EQ(a.received, b.received) << name;
  EXPECT_EQ(a.reduced, b.reduced) << name;
  EXPECT_EQ(a.partners_max, b.partners_max) << name;
  EXPECT_EQ(a.targets_max, b.targets_max) << name;
  EXPECT_EQ(a.sources_max, b.sources_max) << name;
  EXPECT_EQ(a.send_ports_needed, b.send_ports_needed) << name;
  EXPECT_EQ(a.receive_ports_needed, b.receive_ports_needed) << name;
  ASSERT_EQ(a.traffic.size(), b.traffic.size()) << name;
  for (std::size_t k = 0; k < a.traffic.size(); ++k) {
    EXPECT_EQ(a.traffic[k].load, b.traffic[k].load) << name << " round " << k;
    EXPECT_EQ(a.traffic[k].largest, b.traffic[k].largest) << name << " round " << k;
    EXPECT_EQ(a.traffic[k].hops, b.traffic[k].hops) << name << " round " << k;
  }
}

TEST(OneForAll, Times) {
  for_each_case(kRanks, [](const Case& one) {
    for (const int ports : {1, 2, 3, 0}) {  // 0: any number
      for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
        for (const bool ideal : {false, true}) {
          for (const std::uint64_t bytes :
               {std::uint64_t{3}, std::uint64_t{1000}, std::uint64_t{1} << 22}) {
            Fabric fabric = plain_regime().fabric;
            fabric.ports = std::max(1, ports);
            fabric.gamma = Rational(1, 1'000'000'000);
            SimulateOptions options{
                .sync = sync, .ideal_blocks = ideal, .unlimited_ports = ports == 0};
            const auto of_one = simulate(one.schedule, one.goal, fabric, bytes, options);
            options.one_for_all = false;
            const auto of_all = simulate(one.schedule, one.goal, fabric, bytes, options);
            ASSERT_TRUE(of_one.ok() && of_all.ok()) << one.name();
            expect_same(*of_one, *of_all, one.name());
          }
        }
      }
    }
  });
}

// On the rings of a schedule's rotation, all links of a direction carry equal loads.
TEST(OneForAll, TimesOnItsTorus) {
  int tori = 0;
  for_each_case(kRanks, [&tori](const Case& one) {
    const std::vector<int>& dims = symmetry_of(one.schedule)->rotation().dims();
    tori += dims.size() > 1 ? 1 : 0;
    for (const Routing routing : {Routing::minimal, Routing::one_way}) {
      for (const WiringKind kind : {WiringKind::ring, WiringKind::torus}) {
        Fabric fabric = plain_regime().fabric;
        fabric.ports = 0;
        fabric.alpha_hop = Rational(1, 10'000'000);
        fabric.wiring = {.kind = kind, .routing = routing};
        if (kind == WiringKind::torus) fabric.wiring.dims = dims;
        for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
          SimulateOptions options{.sync = sync, .ideal_blocks = true};
          const auto of_one = simulate(one.schedule, one.goal, fabric, 1000, options);
          options.one_for_all = false;
          const auto of_all = simulate(one.schedule, one.goal, fabric, 1000, options);
          ASSERT_EQ(of_one.ok(), of_all.ok()) << one.name();
          if (of_one.ok()) expect_same(*of_one, *of_all, one.name());
        }
      }
    }
  });
  EXPECT_GT(tori, 20);
}

// All ranks are simulated if the caller asks for each rank, or the network treats ranks
// differently.
TEST(OneForAll, NotWhereRanksDiffer) {
  const Schedule ring = ring_all_reduce(8);
  const CollectiveSpec goal{Collective::all_reduce, 8, 8};
  Fabric two_level = plain_regime().fabric;
  two_level.group = 4;
  two_level.between = two_level.link;
  two_level.between.alpha = two_level.link.alpha * 10;
  Fabric wired = plain_regime().fabric;  // a ring round a torus
  wired.wiring = {.kind = WiringKind::torus, .dims = {2, 4}};
  for (const Fabric& fabric : {two_level, wired}) {
    SimulateOptions options;
    const auto of_one = simulate(ring, goal, fabric, 8000, options);
    options.one_for_all = false;
    const auto of_all = simulate(ring, goal, fabric, 8000, options);
    ASSERT_TRUE(of_one.ok() && of_all.ok());
    expect_same(*of_one, *of_all, "ring");
  }
  SimulateOptions late;
  late.starts.assign(8, 0);
  late.starts[3] = 1000000;
  const auto delayed = simulate(ring, goal, plain_regime().fabric, 8000, late);
  const auto at_once = simulate(ring, goal, plain_regime().fabric, 8000);
  ASSERT_TRUE(delayed.ok() && at_once.ok());
  EXPECT_GT(delayed->end, at_once->end);
}

// Errors in a part are found, as rank 0 sees them.
TEST(OneForAll, WrongParts) {
  const auto violation = [](const Schedule& schedule, const CollectiveSpec& goal) {
    const auto of_one = verify(schedule, goal);
    VerifyOptions all;
    all.one_for_all = false;
    const auto of_all = verify(schedule, goal, all);
    EXPECT_TRUE(of_one && of_all);
    if (!of_one || !of_all) return std::string();
    EXPECT_EQ(name_of(of_one->kind), name_of(of_all->kind)) << of_one->text << "\n" << of_all->text;
    return of_one->text;
  };
  const CollectiveSpec gather{Collective::all_gather, 4, 4}, sum{Collective::all_reduce, 4, 1};
  const auto of_part = [](int rounds, auto part, int n, Moves moves) {
    return rotation_symmetric({4, n, rounds, part}, moves);
  };
  // A round too few, a block that has not arrived yet, a block twice, a contribution twice.
  EXPECT_EQ(
      violation(of_part(
                    2, [](int k, Send send) { send(0, 1, block(-k), copy); }, 4, Moves::with_rank),
                gather),
      "rank 0, block 1: ends with the contributions of {}; needed are {1}");
  EXPECT_EQ(violation(of_part(
                          3, [](int k, Send send) { send(0, 1, block(-k - 1), copy); }, 4,
                          Moves::with_rank),
                      gather),
            "round 0, rank 0, block 3: is to be sent to rank 1 but holds nothing");
  EXPECT_NE(
      violation(of_part(
                    3, [](int, Send send) { send(0, 1, block(0), copy); }, 4, Moves::with_rank),
                gather)
          .find("round 1, rank 0, block 3: {3} from rank 3 is copied there, but it is there "
                "already"),
      std::string::npos);
  EXPECT_NE(
      violation(of_part(
                    3, [](int k, Send send) { send(0, k, block(0), reduce); }, 1, Moves::nothing),
                sum)
          .find("would be there twice"),
      std::string::npos);
  // Whole vectors passed round the ring: rank r has r + (r - 1) + ..., in different brackets at
  // each rank.
  const Schedule in_turn = rotation_symmetric({4,
                                               1,
                                               4,
                                               [](int k, Send send) {
                                                 if (k == 0)
                                                   return send(0, 0, block(0), block(0, 1), copy);
                                                 send(0, 1, block(0, k), block(0, k + 1), copy);
                                               },
                                               {},
                                               5},
                                              Moves::nothing);
  EXPECT_TRUE(verify(in_turn, sum));
}

TEST(OneForAll, AMillionRanks) {
  constexpr int kMany = 1'000'000;
  const Schedule ring = ring_all_reduce(kMany);
  const CollectiveSpec goal{Collective::all_reduce, kMany, kMany};
  const auto simulated = simulate(ring, goal, plain_regime().fabric, 64 * std::uint64_t{kMany});
  ASSERT_TRUE(simulated.ok()) << simulated.status().text();
  EXPECT_EQ(simulated->messages, std::uint64_t{2} * (kMany - 1) * kMany);
  // 2 (N - 1) (alpha + beta M / N), of 1 us and 100 GB/s.
  EXPECT_EQ(simulated->seconds, 2.0 * (kMany - 1) * (1000 + 0.64) / 1e9);
  EXPECT_FALSE(verify(ring, goal));
  EXPECT_EQ(count(ring).busiest.sent, 2 * (kMany - 1));
}

// Blocks of two sizes on a ring, which would need a simulation of each message.
TEST(OneForAll, TooManyMessagesAreRefusedAtOnce) {
  constexpr int kMany = 1'000'000;
  Fabric shared = plain_regime().fabric;  // a round's loads count all its messages
  shared.wiring.kind = WiringKind::ring;
  const auto refused =
      simulate(ring_all_gather(kMany), {Collective::all_gather, kMany, kMany}, shared, 1 << 20);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(
      refused.status().text(),
      "ranks is 1000000: more than the limit of 17179869184 messages; one rank stands for all "
      "where links are alike or those of its torus and, if messages share links or ranks are "
      "on a torus, the blocks are of one size (bytes a multiple of 1000000, or ideal blocks)");
}

// A block with one byte more keeps it all the way round, so in each round some rank waits for one.
TEST(OneForAll, BlocksOfTwoSizesAmongManyRanks) {
  constexpr int kMany = 100'003;
  const Fabric fabric = plain_regime().fabric;
  const std::uint64_t bytes = std::uint64_t{64} << 20;
  const auto all =
      simulate(ring_all_gather(kMany), {Collective::all_gather, kMany, kMany}, fabric, bytes);
  ASSERT_TRUE(all.ok()) << all.status().text();
  const Rational block(Int128{bytes / kMany + 1}, 1);
  EXPECT_TRUE(Rational(all->end, all->ticks_per_second) ==
              Rational(kMany - 1) * (fabric.link.alpha + fabric.link.beta * block));
  EXPECT_EQ(all->messages, std::uint64_t{kMany} * (kMany - 1));
  EXPECT_EQ(all->rank_end.size(), std::size_t{kMany});
  EXPECT_EQ(std::accumulate(all->sent.begin(), all->sent.end(), std::int64_t{0}),
            static_cast<std::int64_t>(bytes) * (kMany - 1));
}

// The memory for the state of all ranks is known before the work, and too much is refused.
TEST(OneForAll, TooManyNotesAreRefusedAtOnce) {
  constexpr int kMany = 6'561;
  const Algorithm* entry = find_algorithm(Collective::all_reduce, "trivance");
  ASSERT_NE(entry, nullptr);
  Params params;
  params.ranks = kMany;
  const Schedule schedule = entry->make(params);
  const CollectiveSpec goal = goal_of(*entry, params, schedule);
  SimulateOptions options{.most_bytes = std::uint64_t{128} << 20};
  const Fabric fabric = plain_regime().fabric;
  EXPECT_TRUE(simulate(schedule, goal, fabric, 1 << 20, options).ok());  // one rank stands for all
  options.one_for_all = false;
  const auto refused = simulate(schedule, goal, fabric, 1 << 20, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::out_of_memory);
  EXPECT_NE(refused.status().text().find("B or more; 128 MiB are allowed"), std::string::npos)
      << refused.status().text();
}

}  // namespace
}  // namespace rankine
