// Tests of the analyses of rank order and brackets, and of the passes push, copy_local_first and
// split_copies.

#include "engine/compile/passes.h"
#include "algorithms/catalogue.h"
#include "algorithms/direct.h"
#include "algorithms/recursive_doubling.h"
#include "algorithms/ring.h"
#include "engine/compile/ssa.h"
#include "engine/run/plan.h"
#include "tests/testing.h"

// Schedules that combine contributions in rank order. tests/engine/api/user_op_test checks the
// results: it multiplies matrices by every entry of the catalogue.

namespace rankine {
namespace {

bool ordered(const Schedule& schedule, const CollectiveSpec& goal) {
  const std::vector<std::size_t> counts(
      static_cast<std::size_t>(natural_blocks(goal.collective, goal.ranks)),
      static_cast<std::size_t>(schedule.blocks));
  const Layout layout = make_layout(goal, counts, 4, Borders::plain);
  return in_rank_order(**SsaForm::of(schedule, goal, layout));
}

bool ordered(Collective collective, std::string_view name, int ranks, Rank root = 0) {
  const Algorithm& entry = *find_algorithm(collective, name);
  Params params{.ranks = ranks, .root = root};
  const Schedule schedule = entry.make(params);
  return ordered(schedule, goal_of(entry, params, schedule));
}

TEST(RankOrder, OfTheLinesThatDefaultsAreMadeOf) {
  for (int n = 1; n <= 33; ++n) {
    EXPECT_TRUE(ordered(Collective::all_reduce, "direct_one_shot", n)) << n;
    EXPECT_TRUE(ordered(Collective::all_reduce, "direct_two_shot", n)) << n;
    EXPECT_TRUE(ordered(Collective::reduce_scatter, "direct", n)) << n;
    for (const Rank root : {0, n / 2, n - 1}) {
      EXPECT_TRUE(ordered(Collective::reduce, "direct_two_shot", n, root)) << n;
    }
  }
}

TEST(RankOrder, IsThatOfEveryScan) {
  for (const Algorithm& entry : catalogue()) {
    if (!is_prefix(entry.collective)) continue;
    for (int n = 1; n <= 33; ++n) EXPECT_TRUE(ordered(entry.collective, entry.name, n)) << n;
  }
}

// The operations that push() pushes, and those that it leaves. The fuzz test checks the results.

DataflowProgram program_of(const Schedule& schedule, Buffers buffers) {
  const CollectiveSpec goal{Collective::all_reduce, schedule.ranks, schedule.blocks};
  const std::vector<std::size_t> counts = {static_cast<std::size_t>(schedule.blocks) * 16};
  auto program =
      make_program(schedule, goal, make_layout(goal, counts, 4, Borders::plain), buffers);
  program.status().throw_if_error();
  return std::move(*program);
}

int pushed(const DataflowProgram& program) {
  return static_cast<int>(std::count_if(program.operations.begin(), program.operations.end(),
                                        [](const Operation& op) { return op.pushed; }));
}

TEST(Push, TheSecondShotOfTwoIsStoredByTheFirst) {
  for (const int n : {2, 3, 5, 8}) {
    for (const Buffers buffers : {Buffers::apart, Buffers::in_place}) {
      DataflowProgram program = program_of(direct_all_reduce_two_shot(n), buffers);
      push(program, buffers);
      EXPECT_EQ(pushed(program), n * (n - 1));
      for (const Operation& op : program.operations) {
        EXPECT_EQ(op.copies, op.sources > 1 ? n - 1 : 0);
        // In place, only the storing rank reads the data that it overwrites, so it need not wait.
        if (op.copies > 0) {
          EXPECT_EQ(op.earlier, 0);
        }
      }
    }
  }
}

TEST(Push, OfARingOnlyTheFirstHopAfterTheLastSum) {
  DataflowProgram program = program_of(ring_all_reduce(5), Buffers::apart);
  push(program, Buffers::apart);
  EXPECT_EQ(pushed(program), 5);
}

TEST(Push, CopiesOfWhatNobodyAddedUpStay) {
  // Rank 0's vector goes to rank 1, and from there to rank 2.
  const Schedule chain{3, 1, 2, [](int k, Send send) { send(k, k + 1, block(0), copy); }};
  DataflowProgram program = program_of(chain, Buffers::apart);
  push(program, Buffers::apart);
  EXPECT_EQ(pushed(program), 0);
}

// Rank 0 adds up in round 1, and rank 1 takes the sum in round 2. Rank 2 reads the old value of the
// sum's place in round `busy`.
Schedule late_read_schedule(int busy) {
  return {3, 1, 3, [busy](int k, Send send) {
            if (k == 0) send(2, 1, block(0), reduce);  // so that rank 1's place is written before
            if (k == 1) send(2, 0, block(0), reduce);
            if (k == 2) send(0, 1, block(0), copy);
            if (k == busy) send(1, 2, block(0), reduce);
          }};
}

TEST(Push, WhatIsStillReadMustNotBeOverwrittenEarly) {
  DataflowProgram late = program_of(late_read_schedule(1), Buffers::apart);
  push(late, Buffers::apart);
  EXPECT_EQ(pushed(late), 0);
  // The old value is read in the round before the sum is made, so the maker waits for the reader
  // and for the writer.
  DataflowProgram early = program_of({3, 1, 4,
                                      [](int k, Send send) {
                                        if (k == 0) send(2, 1, block(0), reduce);
                                        if (k == 1) send(1, 2, block(0), reduce);
                                        if (k == 2) send(2, 0, block(0), reduce);
                                        if (k == 3) send(0, 1, block(0), copy);
                                      }},
                                     Buffers::apart);
  push(early, Buffers::apart);
  EXPECT_EQ(pushed(early), 1);
  const auto maker = std::find_if(early.operations.begin(), early.operations.end(),
                                  [](const Operation& op) { return op.copies > 0; });
  ASSERT_NE(maker, early.operations.end());
  EXPECT_EQ(maker->rank, 0);
  EXPECT_EQ(maker->earlier, 2);
}

// The operations that copy_local_first() splits, and their parts. The fuzz test checks the results.

DataflowProgram program_of(const Schedule& schedule, Buffers buffers, std::size_t bytes) {
  const CollectiveSpec goal{Collective::all_reduce, schedule.ranks, schedule.blocks};
  const std::vector<std::size_t> counts = {bytes / 4};
  auto program =
      make_program(schedule, goal, make_layout(goal, counts, 4, Borders::plain), buffers);
  program.status().throw_if_error();
  return copy_local_first(*program, buffers);
}

struct Step {
  std::size_t begin, bytes;
  int sources;
  bool operator==(const Step&) const = default;
};
void PrintTo(const Step& s, std::ostream* out) {
  *out << s.bytes << " bytes from " << s.begin << " of " << s.sources;
}

std::vector<Step> steps_of(const DataflowProgram& program, Rank r) {
  std::vector<Step> steps;
  for (const Operation& op : program.operations) {
    if (op.rank == r) steps.push_back({op.destination.offset, op.bytes, op.sources});
  }
  return steps;
}

TEST(OwnFirst, OneShotCopiesItsOwnButForOnePart) {
  const DataflowProgram two = program_of(direct_all_reduce_one_shot(2), Buffers::apart, 8192);
  EXPECT_EQ(steps_of(two, 0), (std::vector<Step>{{4096, 4096, 1}, {0, 4096, 2}, {4096, 4096, 2}}));
  EXPECT_EQ(steps_of(two, 1), (std::vector<Step>{{0, 4096, 1}, {4096, 4096, 2}, {0, 4096, 2}}));
  // Parts begin on cache lines, and each byte is copied once.
  const DataflowProgram three = program_of(direct_all_reduce_one_shot(3), Buffers::apart, 10'004);
  EXPECT_EQ(steps_of(three, 1),
            (std::vector<Step>{
                {6656, 3348, 1}, {0, 3328, 1}, {3328, 3328, 3}, {6656, 3348, 3}, {0, 3328, 3}}));
}

TEST(OwnFirst, WithoutContentionNothingIsSplit) {
  const auto most_per_rank = [](const Schedule& schedule, Buffers buffers, std::size_t bytes) {
    return steps_of(program_of(schedule, buffers, bytes), 0).size();
  };
  // No other rank reads this rank's part.
  EXPECT_EQ(most_per_rank(direct_all_reduce_two_shot(2), Buffers::apart, 1 << 20), 2U);
  EXPECT_EQ(most_per_rank(ring_all_reduce(4), Buffers::apart, 1 << 20), 6U);
  // Too small for a gain.
  EXPECT_EQ(most_per_rank(direct_all_reduce_one_shot(2), Buffers::apart, 1024), 1U);
  // Partners read each other's vectors at the same time, round by round.
  EXPECT_EQ(most_per_rank(recursive_doubling_all_reduce(4), Buffers::apart, 1 << 20), 6U);
}

// The copies that each rank makes. The fuzz test checks the results.

constexpr std::size_t kBlock = std::size_t{1} << 20;  // bytes

DataflowProgram shared(Collective collective, const char* name, int ranks,
                       const ShareOptions& options = {}, std::size_t bytes = kBlock) {
  const Algorithm& algorithm = *find_algorithm(collective, name);
  Params params{.ranks = ranks};
  const Schedule schedule = algorithm.make(params);
  const CollectiveSpec goal = goal_of(algorithm, params, schedule);
  const std::vector<std::size_t> counts(static_cast<std::size_t>(natural_blocks(collective, ranks)),
                                        bytes);
  auto program =
      make_program(schedule, goal, make_layout(goal, counts, 1, Borders::plain), Buffers::apart);
  program.status().throw_if_error();
  return split_copies(*program, options);
}

// Bytes that a rank fetches from other ranks, and bytes that it stores at other ranks.
struct Moved {
  std::size_t fetched = 0, stored = 0;
  bool operator==(const Moved&) const = default;
};

std::vector<Moved> moved(const DataflowProgram& program) {
  std::vector<Moved> by_rank(static_cast<std::size_t>(program.ranks));
  for (const Operation& op : program.operations) {
    Moved& mine = by_rank[static_cast<std::size_t>(op.rank)];
    mine.stored += static_cast<std::size_t>(op.copies) * op.bytes;
    const Source& source = program.sources[static_cast<std::size_t>(op.first_source)];
    if (source.rank != op.rank && !op.pushed) mine.fetched += op.bytes;
  }
  return by_rank;
}

// The owner of a block stores a part of it at each reader, as long as the readers are few and the
// messages long; streams are stored by their owners; relayed blocks and busy ranks stay as they
// are.
TEST(ShareCopies, DividesBetweenOwnersAndReaders) {
  using enum Collective;
  constexpr std::size_t kMost = 3 * kBlock / 4;
  const Moved fetches_all{kBlock, 0}, fetches{kMost, 0}, stores{0, kMost}, none{0, 0};
  const std::vector<Moved> busy(4, {3 * kBlock, 0}), streams(4, {0, 3 * kBlock});
  EXPECT_EQ(moved(shared(broadcast, "linear", 2)),
            (std::vector<Moved>{{0, kBlock / 2}, {kBlock / 2, 0}}));
  EXPECT_EQ(moved(shared(broadcast, "linear", 4, {.readers = 3})),
            (std::vector<Moved>{stores, fetches, fetches, fetches}));
  EXPECT_EQ(moved(shared(broadcast, "linear", 4, {.readers = 2})),
            (std::vector<Moved>{none, fetches_all, fetches_all, fetches_all}));
  EXPECT_EQ(moved(shared(gather, "linear", 4)),
            (std::vector<Moved>{fetches, stores, stores, stores}));
  EXPECT_EQ(moved(shared(all_gather, "direct", 4)), busy);
  EXPECT_EQ(moved(shared(all_gather, "direct", 4, {.streams = true})), streams);
  EXPECT_EQ(moved(shared(broadcast, "linear", 2, {}, 16 << 10))[0].stored, 0U);
  for (const char* name : {"chain", "binomial_far", "scatter_all_gather"}) {
    for (const Moved& rank : moved(shared(broadcast, name, 4))) EXPECT_EQ(rank.stored, 0U) << name;
  }
  const DataflowProgram program = shared(all_to_all, "direct", 5, {.streams = true});
  for (const Operation& op : program.operations) {
    EXPECT_TRUE(op.copies == 0 || op.earlier == 0) << "stores wait for nothing";
  }
}

// The brackets of schedules' sums. tests/engine/api/order_test checks the bits: it compares the
// results of calls with loops in the test.

Brackets brackets(const Schedule& schedule, const CollectiveSpec& goal) {
  const std::vector<std::size_t> counts(
      static_cast<std::size_t>(natural_blocks(goal.collective, goal.ranks)),
      static_cast<std::size_t>(schedule.blocks));
  const Layout layout = make_layout(goal, counts, 4, Borders::plain);
  return brackets_of(**SsaForm::of(schedule, goal, layout));
}

Brackets brackets(Collective collective, std::string_view name, int ranks) {
  const Algorithm& entry = *find_algorithm(collective, name);
  Params params{.ranks = ranks};
  const Schedule schedule = entry.make(params);
  return brackets(schedule, goal_of(entry, params, schedule));
}

TEST(Brackets, OfTheLinesThatTheLevelsAreMadeOf) {
  for (int n = 1; n <= 33; ++n) {
    EXPECT_TRUE(brackets(Collective::all_reduce, "direct_one_shot", n).flat) << n;
    EXPECT_TRUE(brackets(Collective::all_reduce, "direct_two_shot", n).flat) << n;
    EXPECT_TRUE(brackets(Collective::reduce, "direct_two_shot", n).flat) << n;
    EXPECT_TRUE(brackets(Collective::reduce_scatter, "direct", n).flat) << n;
    EXPECT_TRUE(brackets(Collective::scan, "direct", n).flat) << n;
    EXPECT_TRUE(brackets(Collective::exscan, "direct", n).flat) << n;
    EXPECT_TRUE(brackets(Collective::all_reduce, "binomial_far", n).canonical) << n;
    EXPECT_TRUE(brackets(Collective::reduce, "binomial_far", n).canonical) << n;
    if (is_power_of_two(n)) {
      EXPECT_TRUE(brackets(Collective::all_reduce, "recursive_doubling", n).canonical) << n;
      EXPECT_TRUE(brackets(Collective::all_reduce, "halving_doubling", n).canonical) << n;
    }
  }
}

// A sum of more than two ranks is flat or canonical, or neither, but not both.
TEST(Brackets, OfEveryLineOfTheCatalogue) {
  for (const Algorithm& entry : catalogue()) {
    if (!reduces(entry.collective)) continue;
    for (int n = 2; n <= 17; ++n) {
      Params params{.ranks = n};
      if (entry.refusal(entry.only_taken(params))) continue;
      const Brackets found = brackets(entry.collective, entry.name, n);
      const int added = entry.collective == Collective::exscan ? n - 1 : n;  // at most
      EXPECT_EQ(found.flat && found.canonical, added <= 2) << entry.name << " N=" << n;
    }
  }
}

}  // namespace
}  // namespace rankine
