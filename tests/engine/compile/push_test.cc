// What is pushed, and what is not. That pushing is right is the fuzz test's business.
#include "engine/compile/direct_passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "algorithms/direct.h"
#include "algorithms/ring.h"

namespace rankine {
namespace {

Program program_of(const Schedule& schedule, Buffers buffers) {
  const Goal goal{Collective::all_reduce, schedule.ranks, schedule.blocks};
  const std::vector<std::size_t> counts = {static_cast<std::size_t>(schedule.blocks) * 16};
  auto program =
      make_program(schedule, goal, make_layout(goal, counts, 4, Borders::plain), buffers);
  program.status().throw_if_error();
  return std::move(*program);
}

int pushed(const Program& program) {
  return static_cast<int>(std::count_if(program.operations.begin(), program.operations.end(),
                                        [](const Operation& op) { return op.pushed; }));
}

TEST(Push, TheSecondShotOfTwoIsStoredByTheFirst) {
  for (const int n : {2, 3, 5, 8}) {
    for (const Buffers buffers : {Buffers::apart, Buffers::in_place}) {
      Program program = program_of(direct_all_reduce_two_shot(n), buffers);
      push(program, buffers);
      EXPECT_EQ(pushed(program), n * (n - 1));
      for (const Operation& op : program.operations) {
        EXPECT_EQ(op.copies, op.sources > 1 ? n - 1 : 0);
        // In place the storing rank is the only one that reads what it overwrites: no waiting.
        if (op.copies > 0) {
          EXPECT_EQ(op.earlier, 0);
        }
      }
    }
  }
}

TEST(Push, OfARingOnlyTheFirstHopAfterTheLastSum) {
  Program program = program_of(ring_all_reduce(5), Buffers::apart);
  push(program, Buffers::apart);
  EXPECT_EQ(pushed(program), 5);
}

TEST(Push, CopiesOfWhatNobodyAddedUpStay) {
  // Rank 0's vector to rank 1, and from there to rank 2.
  const Schedule chain{3, 1, 2, [](int k, Send send) { send(k, k + 1, block(0), copy); }};
  Program program = program_of(chain, Buffers::apart);
  push(program, Buffers::apart);
  EXPECT_EQ(pushed(program), 0);
}

// Rank 0 adds up in round 1 and rank 1 takes the sum in round 2, to a place whose value rank 2
// reads in round `busy`.
Schedule reads_what_will_be_overwritten(int busy) {
  return {3, 1, 3, [busy](int k, Send send) {
            if (k == 0) send(2, 1, block(0), reduce);  // so that rank 1's place is written before
            if (k == 1) send(2, 0, block(0), reduce);
            if (k == 2) send(0, 1, block(0), copy);
            if (k == busy) send(1, 2, block(0), reduce);
          }};
}

TEST(Push, WhatIsStillReadMustNotBeOverwrittenEarly) {
  Program late = program_of(reads_what_will_be_overwritten(1), Buffers::apart);
  push(late, Buffers::apart);
  EXPECT_EQ(pushed(late), 0);
  // Read in the round before the sum is made: the maker waits for the reader and for the writer.
  Program early = program_of({3, 1, 4,
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

}  // namespace
}  // namespace rankine
