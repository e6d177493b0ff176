#include "engine/compile/compile.h"
#include "algorithms/catalogue.h"
#include "algorithms/direct.h"
#include "algorithms/recursive_doubling.h"
#include "algorithms/ring.h"
#include "algorithms/schedule/combine.h"
#include "engine/compile/program.h"
#include "engine/compile/ssa.h"
#include "tests/testing.h"

namespace rankine {
namespace {

CompileRequest request_for(const char* name, int ranks, std::size_t count) {
  CompileRequest request;
  request.algorithm = find_algorithm(Collective::all_reduce, name);
  request.params.ranks = ranks;
  request.counts = {count};
  request.slot_payload = 48;
  return request;
}

// The transport that a call gets, by bytes, slots and boards; with a core for each rank, and where
// ranks share cores or all is staged.
TEST(Compile, ChoosesATransport) {
  using enum Collective;
  constexpr auto kDirect = Transport::direct, kMailbox = Transport::mailbox,
                 kBoard = Transport::board;
  const Costs shared = shared_core_costs({}), all_staged = staged_costs({});
  struct Chosen {
    Transport transport;
    Collective collective;
    const char* algorithm;
    int ranks;
    std::vector<std::size_t> counts;  // the last one for all further blocks
    std::size_t slot, board;
    Costs costs = {};
  };
  // clang-format off
  const Chosen cases[] = {
      // A slot must hold the whole vector of an all-reduce, or one block of other collectives.
      {kMailbox, all_reduce, "ring", 4, {64}, 256, 0},
      {kDirect, all_reduce, "ring", 4, {64}, 255, 0},
      {kMailbox, all_gather, "ring", 4, {16}, 64, 0},
      {kDirect, all_gather, "ring", 4, {16}, 63, 0},
      // Vectors of 512 bytes, 4 KiB in all, and slightly longer ones.
      {kBoard, all_reduce, "direct_one_shot", 8, {128}, 1024, 8192},
      {kDirect, all_reduce, "direct_one_shot", 8, {129}, 1024, 8192},
      {kBoard, all_reduce, "direct_one_shot", 8, {129}, 1024, 8192, shared},
      // Seven messages of one line, and of two; one message may fill the slot.
      {kMailbox, broadcast, "linear", 8, {12}, 1024, 0},
      {kDirect, broadcast, "linear", 8, {13}, 1024, 0},
      {kMailbox, broadcast, "linear", 8, {13}, 1024, 0, shared},
      {kMailbox, broadcast, "linear", 2, {256}, 1024, 0},
      // With a core each, a rank reads at most 512 bytes of another's board.
      {kBoard, all_gather, "direct", 4, {128}, 0, 8192},
      {kDirect, all_gather, "direct", 4, {129}, 0, 8192},
      {kBoard, all_gather, "direct", 4, {512}, 0, 8192, shared},
      {kBoard, all_gather, "direct", 4, {512}, 0, 8192, all_staged},
      {kBoard, all_to_all, "direct", 4, {128}, 0, 8192},
      {kDirect, all_to_all, "direct", 4, {129}, 0, 8192},
      {kBoard, all_to_all, "direct", 4, {512}, 0, 8192, shared},
      {kBoard, reduce_scatter, "direct", 4, {128}, 0, 8192},
      {kDirect, reduce_scatter, "direct", 4, {129}, 0, 8192},
      // A board holds all that a rank tells the others, and that once: a vector of 64 bytes for
      // three others, or a block of 16 bytes for each; the rank's block may lie between these.
      {kBoard, all_reduce, "direct_one_shot", 4, {16}, 48, 64},
      {kDirect, all_reduce, "direct_one_shot", 4, {16}, 48, 63},
      {kBoard, all_to_all, "direct", 4, {4}, 48, 64},
      {kMailbox, all_to_all, "direct", 4, {4}, 48, 47},
      // Boards only where every rank hears from every other.
      {kBoard, all_gather, "direct", 3, {4}, 48, 1024},
      {kMailbox, all_gather, "direct", 3, {4, 4, 0}, 48, 1024},
      {kMailbox, broadcast, "linear", 3, {2}, 48, 1024},
      {kMailbox, all_reduce, "ring", 3, {2}, 48, 1024},
      {kMailbox, all_reduce, "direct_one_shot", 1, {2}, 48, 1024},
      {kDirect, all_reduce, "direct_one_shot", 2, {257}, 2048, 1024},  // slots are larger than boards
  };
  // clang-format on
  for (const Chosen& c : cases) {
    CompileRequest request;
    request.algorithm = find_algorithm(c.collective, c.algorithm);
    request.params.ranks = c.ranks;
    request.counts = c.counts;
    request.counts.resize(static_cast<std::size_t>(natural_blocks(c.collective, c.ranks)),
                          c.counts.back());
    request.slot_payload = c.slot;
    request.board_bytes = c.board;
    request.costs = c.costs;
    const auto compiled = compile(request).value();
    EXPECT_EQ(name_of(compiled.plan.transport), name_of(c.transport))
        << c.algorithm << " among " << c.ranks << ", " << c.counts[0] << " elements, board "
        << c.board;
    request.transport = kDirect;
    EXPECT_EQ(compile(request)->plan.transport, kDirect) << "as asked";
  }
}

int folds(const Plan& plan, Rank r) {
  int count = 0;
  for (const Op& op : plan.rank[static_cast<std::size_t>(r)].ops) {
    count += op.code == OpCode::fold ? 1 : 0;
  }
  return count;
}

TEST(Compile, InPlaceSmallVectorsNeedNoStaging) {
  CompileRequest small = request_for("direct_one_shot", 2, 4);
  small.buffers = Buffers::in_place;
  EXPECT_EQ(folds(compile(small)->plan, 0), 1);
  // Large blocks do: the other rank reads data that the sum overwrites.
  CompileRequest large = request_for("direct_one_shot", 2, 400);
  large.buffers = Buffers::in_place;
  EXPECT_EQ(folds(compile(large)->plan, 0), 2);
}

// From 16 KiB to 1 MiB among more than four ranks with a core each, in place or not.
TEST(Compile, SumsAreFetchedAmongSome) {
  const auto pushes = [](int ranks, std::size_t bytes, Buffers buffers, const Costs& costs) {
    CompileRequest request = request_for("direct_two_shot", ranks, bytes / sizeof(float));
    request.buffers = buffers;
    request.transport = Transport::direct;
    request.costs = costs;
    const auto compiled = compile(request);
    const std::vector<Op>& ops = compiled->plan.rank[0].ops;
    return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.copies > 1; });
  };
  constexpr std::size_t kKiB = 1024;
  for (const Buffers buffers : {Buffers::apart, Buffers::in_place}) {
    EXPECT_TRUE(pushes(4, 64 * kKiB, buffers, {}));
    EXPECT_TRUE(pushes(5, 16 * kKiB - 4, buffers, {}));
    EXPECT_FALSE(pushes(5, 16 * kKiB, buffers, {}));
    EXPECT_FALSE(pushes(8, 1024 * kKiB, buffers, {}));
    EXPECT_TRUE(pushes(8, 1024 * kKiB + 4, buffers, {}));
    EXPECT_TRUE(pushes(8, 64 * kKiB, buffers, shared_core_costs({})));
  }
}

TEST(Compile, WhatNoCacheHoldsIsStoredPastThem) {
  const auto streaming = [](const CompileRequest& request) {
    const auto compiled = compile(request);
    int count = 0;
    for (const Op& op : compiled->plan.rank[0].ops) {
      count += (op.flags & kStreams) != 0 ? 1 : 0;
    }
    return count;
  };
  CompileRequest request = request_for("direct_two_shot", 2, 4 << 20);
  EXPECT_EQ(streaming(request), 1);
  request.counts = {3 << 20};
  EXPECT_EQ(streaming(request), 0);
  request.counts = {4 << 20};
  request.buffers = Buffers::in_place;
  EXPECT_EQ(streaming(request), 0);
  // Two of a ring's six steps stream: the pushed sum, and the last block. All other results are
  // read again.
  CompileRequest ring = request_for("ring", 4, 16 << 20);
  EXPECT_EQ(streaming(ring), 2);
}

TEST(Compile, BordersInsideAVectorAreOnLinesAndElsewhereTheUsers) {
  auto vector = compile(request_for("ring", 3, 100)).value();
  EXPECT_EQ(vector.layout.blocks[1].input % 64, 0U);
  CompileRequest gather;
  gather.algorithm = find_algorithm(Collective::all_gather, "ring");
  gather.params.ranks = 3;
  gather.counts = {5, 5, 5};
  gather.slot_payload = 48;
  auto users = compile(gather).value();
  EXPECT_EQ(users.layout.blocks[1].output, 20U);
}

TEST(Compile, SaysWhatItCannotDo) {
  CompileRequest request = request_for("ring", 2, 10);
  request.op = ReduceOp::bxor;
  const auto bits = compile(request);
  ASSERT_FALSE(bits.ok());
  EXPECT_EQ(bits.status().text(),
            "operation is bxor, type is f32; f32 takes sum, prod, min, max and avg");
  EXPECT_FALSE(compile(request_for("ring", 0, 10)).ok());
  const Schedule adds{2, 2, 1, [](int, Send send) { send(0, 0, block(0), reduce); }};
  request = {};
  request.counts = {4, 4};
  request.slot_payload = 48;
  const auto refused = compile(request, adds, {Collective::all_gather, 2, 2});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().text(), "schedule: adds blocks up; allowed for all_gather are copies");
}

// 16 elements of 4 bytes per block.
Result<DataflowProgram> program_of(const Schedule& schedule, Buffers buffers, CollectiveSpec goal) {
  const auto natural = static_cast<std::size_t>(natural_blocks(goal.collective, goal.ranks));
  const auto parts = static_cast<std::size_t>(goal.blocks) / natural;
  const std::vector<std::size_t> counts(natural, 16 * parts);
  return make_program(schedule, goal, make_layout(goal, counts, 4, Borders::plain), buffers);
}

std::string text_of(const Place& place) {
  constexpr const char* kNames[] = {"in", "out", "scratch", "message"};
  return std::string(kNames[static_cast<int>(place.memory)]) + "+" + std::to_string(place.offset);
}

// "0@1: out+0 64 B = in+0 + 1:in+0": an operation of round 0 at rank 1.
std::vector<std::string> text_of(const DataflowProgram& program) {
  std::vector<std::string> lines;
  for (const Operation& op : program.operations) {
    std::string line = std::to_string(op.round) + "@" + std::to_string(op.rank) + ": " +
                       text_of(op.destination) + " " + std::to_string(op.bytes) + " B =";
    for (int i = 0; i < op.sources; ++i) {
      const Source& s = program.sources[static_cast<std::size_t>(op.first_source + i)];
      line += i == 0 ? " " : " + ";
      if (s.rank != op.rank) line += std::to_string(s.rank) + ":";
      line += text_of(s.place);
    }
    if (op.earlier > 0) line += ", after " + std::to_string(op.earlier);
    if (op.completes) line += ", complete";
    if (op.only_if_moved) line += ", if moved";
    lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

Schedule make_schedule(int ranks, int blocks, int rounds, std::function<void(int, Send)> round,
                       int planes = 1) {
  return {ranks, blocks, rounds, std::move(round), {}, planes};
}

TEST(DataflowProgram, IsAsByHand) {
  using enum Collective;
  constexpr TransferKind kAdd = TransferKind::reduce;
  constexpr Buffers kApart = Buffers::apart, kInPlace = Buffers::in_place;
  // Every rank adds to its value and hands the sum on, so no rank reads a value that is being
  // replaced.
  const Schedule chain = make_schedule(3, 1, 4, [](int k, Send send) {
    if (k < 2) return send(k, k + 1, block(0), kAdd);
    send(4 - k, 3 - k, block(0), copy);
  });
  // In any stated order the contributions are added in rank order, and the operations merge.
  const Schedule mixed = make_schedule(3, 2, 1, [](int, Send send) {
    send(0, 1, block(0), kAdd);
    send(2, 1, blocks(0, 2), kAdd);
    send(0, 1, block(1), kAdd);
  });
  const Schedule pairs = make_schedule(2, 6, 1, [](int, Send send) {
    send(0, 1, blocks(0, 4), kAdd);
    send(0, 1, block(5), kAdd);
  });
  const Schedule all_to_zero = make_schedule(4, 1, 1, [](int, Send send) {
    send(2, 0, block(0), kAdd);
    send(ranks_from(3, 2), 0, block(0), kAdd);  // 3, then 0 itself again
    send(1, 0, block(0), kAdd);
  });
  const Schedule to_zero =
      make_schedule(3, 1, 2, [](int k, Send send) { send(2 - k, 1 - k, block(0), kAdd); });
  const Lines to_zero_lines = {"0@1: scratch+0 64 B = in+0 + 2:in+0",
                               "1@0: out+0 64 B = in+0 + 1:scratch+0, complete"};
  struct Stated {
    const char* what;
    Schedule schedule;
    CollectiveSpec goal;
    Buffers buffers;
    Lines first, last;  // all lines, or the first ones and the last ones
    std::vector<std::size_t> scratch;
  };
  // clang-format off
  const Stated cases[] = {
      {"an exchange stages inputs that the other rank still reads", recursive_doubling_all_reduce(2), {all_reduce, 2, 1}, kInPlace,
       {"-1@0: scratch+0 64 B = in+0", "-1@1: scratch+0 64 B = in+0", "0@1: out+0 64 B = 0:scratch+0 + scratch+0, complete",
        "0@0: out+0 64 B = scratch+0 + 1:scratch+0, complete"}, {}, {64, 64}},
      {"a chain needs no scratch", chain, {all_reduce, 3, 1}, kInPlace,
       {"0@1: out+0 64 B = 0:in+0 + in+0", "1@2: out+0 64 B = 1:out+0 + in+0, complete", "2@1: out+0 64 B = 2:out+0, after 1",
        "3@0: out+0 64 B = 1:out+0, after 1"}, {}, {0, 0, 0}},
      {"a ring needs none", ring_all_reduce(3), {all_reduce, 3, 3}, kApart, {}, {}, {0, 0, 0}},
      {"nor in place", ring_all_reduce(3), {all_reduce, 3, 3}, kInPlace, {}, {}, {0, 0, 0}},
      {"sums of one round fuse in the order of their lowest rank", all_to_zero, {all_reduce, 4, 1}, kApart,
       {}, {"0@0: out+0 64 B = in+0 + in+0 + 1:in+0 + 2:in+0 + 3:in+0"}, {0, 0, 0, 0}},
      {"own blocks are copied once and only if moved", nothing(2, 3), {all_reduce, 2, 3}, kApart,
       {"0@0: out+0 192 B = in+0, if moved", "0@1: out+0 192 B = in+0, if moved"}, {}, {0, 0}},
      {"own blocks of a gather", ring_all_gather(3), {all_gather, 3, 3}, kApart,
       {"0@0: out+0 64 B = in+0, if moved", "0@1: out+64 64 B = in+0, if moved", "0@2: out+128 64 B = in+0, if moved"}, {}, {0, 0, 0}},
      {"neighbours that travel together are one operation", pairs, {all_reduce, 2, 6}, kApart,
       {"0@0: out+0 384 B = in+0, if moved", "0@1: out+256 64 B = in+256, if moved", "0@1: out+0 256 B = 0:in+0 + in+0, complete",
        "0@1: out+320 64 B = 0:in+320 + in+320, complete"}, {}, {0, 0}},
      {"in any stated order", mixed, {all_reduce, 3, 2}, kApart, {}, {"0@1: out+0 128 B = 0:in+0 + in+0 + 2:in+0, complete"}, {0, 0, 0}},
      {"what a rank does not need stays in scratch", to_zero, {Collective::reduce, 3, 1}, kApart, to_zero_lines, {}, {0, 64, 0}},
      {"also in place", to_zero, {Collective::reduce, 3, 1}, kInPlace, to_zero_lines, {}, {0, 64, 0}},
  };
  // clang-format on
  for (const Stated& c : cases) {
    SCOPED_TRACE(c.what);
    const auto program = program_of(c.schedule, c.buffers, c.goal).value();
    const Lines lines = text_of(program);
    ASSERT_GE(lines.size(), std::max(c.first.size(), c.last.size()));
    EXPECT_TRUE(std::equal(c.first.begin(), c.first.end(), lines.begin()))
        << testing::PrintToString(lines);
    EXPECT_TRUE(std::equal(c.last.rbegin(), c.last.rend(), lines.rbegin()))
        << testing::PrintToString(lines);
    EXPECT_EQ(program.scratch_bytes, c.scratch);
  }
}

TEST(DataflowProgram, RefusesWhatCannotBeExecuted) {
  const std::tuple<std::function<void(Send)>, std::vector<std::size_t>, const char*> cases[] = {
      {[](Send s) { s(0, 1, block(1), copy); },
       {4, 4},
       "round 0, place 1 of rank 0: is read, but it is empty"},
      {[](Send s) { s(0, 1, block(0), block(1), copy); },
       {4, 5},
       "place 1 of rank 1: is sent a block of another size"},
      {[](Send s) { s(0, 0, block(0), block(1), copy), s(1, 0, block(1), copy); },
       {4, 4},
       "place 1 of rank 0: is copied to"},
      {[](Send s) { s(0, 1, block(0), reduce), s(1, 1, block(1), block(0), copy); },
       {4, 4},
       "place 0 of rank 1: is copied to"},
      {[](Send s) { s(0, 1, blocks(0, 1), blocks(0, 2), copy); },
       {4, 4},
       "sends 1 blocks to 2 places"},
      {[](Send s) { s(0, 1, block(0), copy); }, {4, 4}, ""},
  };
  for (const auto& [round, counts, text] : cases) {
    const Schedule schedule = make_schedule(2, 2, 1, [f = round](int, Send send) { f(send); });
    const CollectiveSpec goal{Collective::all_gather, 2, 2};
    const Status status =
        make_program(schedule, goal, make_layout(goal, counts, 4, Borders::plain), Buffers::apart)
            .status();
    EXPECT_EQ(status.ok(), *text == 0) << status.text();
    EXPECT_NE(status.text().find(text), std::string::npos) << status.text();
  }
}

// Planning checks its limits throughout, and a refusal names the memory that the plan would need.

CompileRequest request_for(Collective collective, const char* algorithm, int ranks, int segments,
                           std::size_t count) {
  CompileRequest request;
  request.algorithm = find_algorithm(collective, algorithm);
  request.params.ranks = ranks;
  request.params.segments = segments;
  request.counts.assign(static_cast<std::size_t>(natural_blocks(collective, ranks)), count);
  request.slot_payload = 48;
  request.board_bytes = 1024;
  return request;
}

// The number of times that planning asks whether to go on. If `last` is positive, planning is told
// to end at that request, and must end.
int times_asked(CompileRequest request, int last = 0) {
  int asked = 0;
  request.limits.interrupted = [&] {
    ++asked;
    return asked == last ? Status(Code::timeout, "over") : Status();
  };
  const auto compiled = compile(request);
  EXPECT_EQ(compiled.ok(), last == 0) << compiled.status().text();
  if (!compiled.ok()) {
    EXPECT_EQ(compiled.status().code(), Code::timeout);
    EXPECT_EQ(compiled.status().text(), "over");
  }
  return asked;
}

struct Way {
  const char* name;
  CompileRequest request;
};

// All passes and all transports.
std::vector<Way> ways() {
  std::vector<Way> all = {
      {"tree, pipelined", request_for(Collective::all_reduce, "double_tree", 8, 512, 1 << 20)},
      {"pushed", request_for(Collective::all_reduce, "direct_two_shot", 48, 1, 1 << 20)},
      {"copied first", request_for(Collective::all_reduce, "direct_two_shot", 48, 1, 1 << 14)},
      {"shared", request_for(Collective::broadcast, "direct_two_shot", 48, 1, 1 << 20)},
      {"many blocks", request_for(Collective::all_to_all, "bruck", 32, 1, 100)},
      {"mailbox", request_for(Collective::all_to_all, "pairwise", 48, 1, 1)},
      {"board", request_for(Collective::all_gather, "direct", 48, 1, 1)},
  };
  all[5].request.transport = Transport::mailbox;
  all[6].request.transport = Transport::board;
  return all;
}

TEST(PlanLimits, AreLookedAtAllAlong) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name);
    const int asked = times_asked(way.request);
    EXPECT_GE(asked, 5);
    // Planning ends at any of these requests.
    for (int last = 1; last <= asked; ++last) EXPECT_EQ(times_asked(way.request, last), last);
  }
}

TEST(PlanLimits, APlanTooLargeSaysWhatItNeedsAndWhatNeedsLeast) {
  CompileRequest request = request_for(Collective::all_reduce, "double_tree", 60, 16384, 1 << 22);
  request.limits.bytes = std::size_t{1} << 30;
  const auto refused = compile(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::invalid_argument);
  const std::string& text = refused.status().text();
  EXPECT_NE(text.find("all_reduce among 60 ranks by double_tree with 16384 segments: to plan "
                      "3866624 moves of a block may take "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("allowed are 1024 MiB; least is "), std::string::npos) << text;
  // Planning goes on under the limit that the plan needs. The algorithm named as the least is
  // planned under a small limit.
  request.limits.bytes = planning_bytes(60, 2 * 16384, 3'866'624);
  request.limits.interrupted = [] { return Status(Code::aborted, "so far, so good"); };
  EXPECT_EQ(compile(request).status().code(), Code::aborted);
  const std::string name = text.substr(text.find("least is ") + 9);
  CompileRequest least = request_for(
      Collective::all_reduce, name.substr(0, name.find_first_of(" ,")).c_str(), 60, 1, 1 << 22);
  ASSERT_NE(least.algorithm, nullptr) << text;
  least.limits.bytes = std::size_t{1} << 20;
  EXPECT_TRUE(compile(least).ok()) << compile(least).status().text();
}

TEST(PlanLimits, WhatPassesAddCountsToo) {
  // Splitting sums makes more operations than the schedule has.
  CompileRequest request = request_for(Collective::all_reduce, "direct_one_shot", 32, 1, 1 << 16);
  request.transport = Transport::direct;
  request.limits.bytes = planning_bytes(32, 1, 32 * 31);
  const auto refused = compile(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().text().find("allowed are 1 MiB"), std::string::npos)
      << refused.status().text();
  request.limits.bytes = 4 * planning_bytes(32, 1, 32 * 31);
  EXPECT_TRUE(compile(request).ok());
}

TEST(PlanLimits, AScheduleOfOnesOwnHasNoAlgorithmToCompareWith) {
  const Schedule exchange{2, 1, 4000, [](int, Send send) {
                            send(0, 1, block(0), copy);
                            send(1, 0, block(0), copy);
                          }};
  CompileRequest request;
  request.counts = {4};
  request.slot_payload = 48;
  request.limits.bytes = std::size_t{1} << 20;
  const auto refused = compile(request, exchange, {Collective::all_reduce, 2, 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().text(),
            "all_reduce among 2 ranks: to plan 8000 moves of a block may take 7 MiB; allowed are 1 "
            "MiB");
}

}  // namespace
}  // namespace rankine
