// Tests of the lowering of programs to plans of messages, posts and direct calls.

#include "algorithms/catalogue.h"
#include "algorithms/direct.h"
#include "algorithms/recursive_doubling.h"
#include "algorithms/ring.h"
#include "engine/compile/compile.h"
#include "engine/compile/lower.h"
#include "engine/compile/program.h"
#include "engine/run/mailbox.h"
#include "engine/run/plan.h"
#include "tests/engine/run/random_call.h"
#include "tests/engine/run/replay.h"
#include "tests/testing.h"

// Messages: their order, their numbers, sub-rounds and credit.

namespace rankine {
namespace {

Result<Plan> plan_of(const Schedule& schedule, std::size_t count, LowerOptions options = {}) {
  const CollectiveSpec goal{Collective::all_reduce, schedule.ranks, schedule.blocks};
  const std::vector<std::size_t> counts = {count};
  return make_plan(schedule, goal, make_layout(goal, counts, 4, Borders::plain), Buffers::apart,
                   Transport::mailbox, options);
}

// Between nodes a rank sends all messages of a round before it waits for one of them, however many
// there are, and releases each message at once: the wire relies on both (mpi/process.h).
TEST(LowerMailbox, SendsMessagesBetweenNodesFirstInTheirRound) {
  Random random(20261128);
  int far_messages = 0;
  for (const Algorithm& algorithm : catalogue()) {
    for (const int ranks : {3, 5, 8}) {
      Params params{.ranks = ranks};
      if (algorithm.collective == Collective::barrier || algorithm.refusal(params)) continue;
      CallRules rules{.ranks = ranks,
                      .slot_payload = random.one_in(2) ? std::size_t{0} : std::size_t{48},
                      .mailbox_capacity = 8,
                      .ports = 0,
                      .algorithm = &algorithm,
                      .transport = Transport::mailbox};
      for (Rank r = 0; r < ranks; ++r) rules.nodes.push_back(random.below(3));
      const TestCall call = random_call(random, rules);
      ASSERT_FALSE(call.before.empty()) << call.text;
      for (Rank r = 0; r < ranks; ++r) {
        int waited = -1;  // the latest round with a wait for a message
        for (const Op& op : call.plan.rank[static_cast<std::size_t>(r)].ops) {
          const bool is_far = rules.nodes[static_cast<std::size_t>(r)] != rules.nodes[op.peer];
          if (op.code == OpCode::wait_message) waited = op.round;
          if (op.code == OpCode::send && is_far) {
            ++far_messages;
            ASSERT_GT(int{op.round}, waited) << call.text << ", rank " << r;
          }
          if (op.code == OpCode::release && is_far) {
            ASSERT_NE(op.flags & kByAddress, 0) << call.text << ", rank " << r;
          }
        }
      }
    }
  }
  EXPECT_GT(far_messages, 1000);
}

TEST(LowerMailbox, SmallMessagesTravelInSlotsAndOweNothing) {
  const auto plan = plan_of(ring_all_reduce(2), 8).value();
  EXPECT_EQ(
      ops_text(plan, 0),
      "send 1:0 wait_message 1:0 fold release 1:1 send 1:1 wait_message 1:1 fold release 1:2 end");
  ASSERT_EQ(plan.rank[0].traffic.size(), 1U);
  EXPECT_EQ(plan.rank[0].traffic[0].sent, 2U);
  EXPECT_EQ(plan.rank[0].traffic[0].received, 2U);
}

TEST(LowerMailbox, LargeMessagesTravelByAddressAndAreAwaitedAtTheEnd) {
  const auto plan = plan_of(ring_all_reduce(2), 800).value();
  EXPECT_EQ(
      ops_text(plan, 0),
      "send* 1:0 wait_message 1:0 fold release* 1:1 send* 1:1 wait_message 1:1 fold release* 1:2 "
      "wait_credit 1:2 end");
}

TEST(LowerMailbox, WhatWasSentByAddressIsNotOverwrittenBeforeItIsUsed) {
  // Rank 0 sends its block away, then receives another block into its place.
  const Schedule there_and_back{
      2, 1, 3, [](int k, Send send) { send(k == 1 ? 0 : 1, k == 1 ? 1 : 0, block(0), copy); }};
  const auto plan = plan_of(there_and_back, 100).value();
  EXPECT_EQ(ops_text(plan, 0),
            "wait_message 1:0 fold release* 1:1 send* 1:0 wait_credit 1:1 wait_message 1:1 fold "
            "release* 1:2 "
            "wait_credit 1:1 end");
  // Messages in slots need no wait, because the data was copied at once.
  const auto small = plan_of(there_and_back, 2).value();
  EXPECT_EQ(ops_text(small, 0).find("credit"), std::string::npos);
}

// A pair has more messages in a round than may be in flight, so the round is cut into sub-rounds;
// sends come first in each.
TEST(LowerMailbox, RoundsThatAreTooFullAreCut) {
  const int blocks = 40;
  const Schedule scattered{2, blocks, 1, [](int, Send send) {
                             for (int b = 0; b < blocks; b += 2) {
                               send(0, 1, block(b), reduce);
                               send(1, 0, block(b), reduce);
                             }
                           }};
  for (const int capacity : {1, 3, 8}) {
    LowerOptions options;
    options.mailbox_capacity = capacity;
    const auto plan = plan_of(scattered, 40, options).value();
    for (Rank r : {0, 1}) {
      int under_way = 0, sent = 0;
      for (const Op& op : plan.rank[static_cast<std::size_t>(r)].ops) {
        if (op.code == OpCode::send) {
          EXPECT_EQ(op.value, static_cast<std::uint32_t>(sent++));
          ++under_way;
        }
        if (op.code == OpCode::wait_message) under_way = 0;
        EXPECT_LE(under_way, capacity);
      }
      EXPECT_EQ(sent, blocks / 2);
    }
  }
}

TEST(LowerMailbox, AnOperationThatNeedsTooManyMessagesAtOnceIsRefused) {
  const auto greedy = [](int messages) {
    return Schedule{2, 1, 1, [messages](int, Send send) {
                      for (int i = 0; i < messages; ++i) send(0, 1, block(0), reduce);
                    }};
  };
  EXPECT_TRUE(plan_of(greedy(8), 4).ok());
  const auto refused = plan_of(greedy(9), 4);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().text(),
            "mailbox: rank 1 needs 9 messages of rank 0 at once; allowed are 8");
}

// With one port, a rank sends a message after the release of the one that had the port before, and
// after the receiver has used its earlier messages (the first: after the receiver has begun the
// call).
TEST(LowerMailbox, WithAPortEachMessageWaitsForTheOneBefore) {
  LowerOptions options;
  options.ports = 1;
  const auto plan = plan_of(ring_all_reduce(2), 8, options).value();
  EXPECT_EQ(ops_text(plan, 0),
            "publish 1 wait_progress 1:1 send 1:0 count_ports 0 wait_message 1:0 count_ports 1 "
            "fold 2 release* 1:1 "
            "wait_credit 1:1 wait_progress 1:2 send 1:1 count_ports 0 wait_message 1:1 count_ports "
            "1 fold 3 release* 1:2 "
            "wait_credit 1:2 end");
  EXPECT_EQ(plan.rank[0].scratch_bytes, 0U);
  EXPECT_EQ(plan.span, 4U);
}

// A rank that needs more messages at once than it has ports copies the early ones.
TEST(LowerMailbox, ARankWithFewPortsTakesItsMessagesOneAfterTheOther) {
  const Schedule to_one{4, 1, 1, [](int, Send send) {
                          for (Rank r = 1; r < 4; ++r) send(r, 0, block(0), reduce);
                        }};
  for (const int ports : {1, 2, 3}) {
    LowerOptions options;
    options.ports = ports;
    const auto plan = plan_of(to_one, 4, options).value();
    int held = 0, copied = 0;
    for (const Op& op : plan.rank[0].ops) {
      if (op.code == OpCode::wait_message) ++held;
      EXPECT_LE(held, ports);
      if (op.code == OpCode::release) --held;
      if (op.code == OpCode::fold && op.operands == 1) ++copied;
      if (op.code == OpCode::fold && op.operands > 1) {
        EXPECT_EQ(op.operands, 4);  // all at once, in the schedule's order
      }
    }
    EXPECT_EQ(copied, 3 - (ports == 2 ? 1 : ports)) << ports;
    EXPECT_EQ(plan.rank[0].scratch_bytes, static_cast<std::size_t>(copied) * 64);
  }
}

// Lowering to posts: their data and places, the waits, and refusals of data that no board holds.

CompileRequest request_for(Collective collective, const char* name, int ranks,
                           std::vector<std::size_t> counts) {
  CompileRequest request;
  request.algorithm = find_algorithm(collective, name);
  request.params.ranks = ranks;
  request.counts = std::move(counts);
  request.slot_payload = 48;
  request.board_bytes = 1024;
  return request;
}

// The ops of a rank, or the error.
std::string board_text(const CompileRequest& request, Rank r) {
  const auto compiled = compile(request);
  return compiled.ok() ? ops_text(compiled->plan, r) : compiled.status().text();
}

TEST(LowerBoard, PostsWhatOthersWantAndWaitsForAll) {
  using enum Collective;
  CompileRequest in_place = request_for(all_reduce, "direct_one_shot", 3, {100});
  in_place.buffers = Buffers::in_place;
  CompileRequest told = request_for(broadcast, "linear", 3, {2}),
                 large = request_for(all_reduce, "direct_one_shot", 2, {257});
  told.transport = large.transport = Transport::board;
  CompileRequest fits = large;
  fits.board_bytes = 2048;
  const CompileRequest scattered = request_for(reduce_scatter, "direct", 3, {20, 20, 20});
  const std::tuple<CompileRequest, Rank, const char*> cases[] = {
      {request_for(all_reduce, "direct_one_shot", 2, {2}), 0, "post 16+8 wait_post 1 fold end"},
      // Among more ranks one op waits for all; data that exceed the header's line begin on the
      // next.
      {request_for(all_reduce, "direct_one_shot", 4, {12}), 3, "post 16+48 wait_posts fold end"},
      {request_for(all_reduce, "direct_one_shot", 4, {13}), 3, "post 64+52 wait_posts fold end"},
      {in_place, 1, "post 64+400 wait_posts fold end"},
      // No rank reads rank 0's first block; rank 1's block lies between the two others.
      {scattered, 0, "post 64+160 wait_posts fold end"},
      {scattered, 1, "post 64+240 wait_posts fold end"},
      {request_for(all_reduce, "direct_two_shot", 3, {48}), 0,
       "post 64+128 wait_posts fold post 64+64 wait_post 2 fold wait_post 1 fold end"},
      // Two halves suffice because every rank waits for every other, even for one without data for
      // it.
      {told, 0, "post 16+8 fold wait_post 1 wait_post 2 post 16+8 wait_post 1 wait_post 2 end"},
      {told, 1, "post wait_post 0 fold wait_post 2 post wait_post 0 wait_post 2 end"},
      {large, 0, "board: others want 1028 bytes of rank 0 in a round; allowed are 1024"},
      {fits, 0, "post 64+1028 wait_post 1 fold end"},
  };
  for (const auto& [request, rank, text] : cases) EXPECT_EQ(board_text(request, rank), text);
}

// Lowering to direct calls: the remaining waits, and their cost.

Plan plan_of(const Schedule& schedule, Buffers buffers, const Passes& passes = {}) {
  const CollectiveSpec goal{Collective::all_reduce, schedule.ranks, schedule.blocks};
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
  // The arrival of the result shows that the peer has read, so no separate exit is needed.
  EXPECT_EQ(tally(plan_of(direct_all_reduce_two_shot(2), Buffers::apart), 0),
            (Tally{.entries = 1, .waits = 1, .exits = 1, .folds = 2, .published = 2}));
}

// A ring needs two neighbours' entries, one wait per round except the first, and one exit.
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

// A rank that receives by stores waits for the entry of the storing rank. Otherwise the counter of
// a rank that made other calls meanwhile would look as if that rank had stored.
TEST(LowerDirect, WhoIsStoredToLooksAtTheEntryOfWhoStores) {
  // Rank 1 only sends its vector up, and receives the sum.
  const Plan plan = plan_of(central_all_reduce(2), Buffers::in_place, {.pushes = true});
  EXPECT_EQ(tally(plan, 1),
            (Tally{.entries = 1, .waits = 1, .exits = 0, .folds = 1, .published = 1}));
  // Rank 0's entry stays valid until rank 1 has read it.
  EXPECT_EQ(tally(plan, 0).exits, 1);
}

// The whole catalogue keeps the rules that fault_of() checks.
TEST(LowerDirect, EveryAlgorithmWaitsForEarlierRoundsOnly) {
  for (const Algorithm& algorithm : catalogue()) {
    for (const int n : {1, 2, 3, 5, 8, 13}) {
      Params params{.ranks = n, .segments = algorithm.takes("segments") ? 3 : 1};
      if (algorithm.refusal(params)) continue;
      const Schedule schedule = algorithm.make(params);
      const CollectiveSpec goal = goal_of(algorithm, params, schedule);
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
