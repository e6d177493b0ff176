#include "algorithms/schedule/everyone.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/schedule/combine.h"

namespace rankine {
namespace {

using Blocks = std::vector<int>;

Blocks rotated(const Rotation& rotation, const BlockSet& set, Rank by) {
  return rotation.rotated(set.list, by).to_vector();
}

std::string text_of(const Schedule& schedule) {
  std::string out;
  for (int k = 0; k < schedule.rounds; ++k) {
    for_each_transfer(schedule, k, [&out](const Transfer& t) {
      out += std::to_string(t.from.front()) + ">" + std::to_string(t.to.front());
      for (const int b : t.what.list.to_vector()) out += " " + std::to_string(b);
      out += t.act == copy ? "; " : "+; ";
    });
    out += "| ";
  }
  return out;
}

Schedule passing_on(int p) {
  return everyone({p, p, p - 1, [](int k, Send send) { send(0, 1, block(-k), copy); }},
                  Moves::with_rank);
}

TEST(Rotation, RanksRoundARing) {
  const Rotation ring({5}, 1, Moves::nothing);
  EXPECT_EQ(ring.rotated(3, 4), 2);
  EXPECT_EQ(ring.back(0), 0);
  EXPECT_EQ(ring.back(2), 3);
}

TEST(Rotation, RanksRoundTheRingsOfATorus) {
  const Rotation torus({2, 3}, 1, Moves::nothing);  // r = 3 x0 + x1
  EXPECT_EQ(torus.rotated(5, 4), 0);                // (1, 2) + (1, 1) = (0, 0)
  EXPECT_EQ(torus.rotated(1, 2), 0);                // (0, 1) + (0, 2)
  EXPECT_EQ(torus.back(4), 5);
  for (Rank r = 0; r < 6; ++r) {
    for (Rank by = 0; by < 6; ++by) {
      EXPECT_EQ(torus.rotated(torus.rotated(r, by), torus.back(by)), r);
    }
  }
}

TEST(Rotation, BlocksStayOrGoWithTheirRankOrPair) {
  EXPECT_EQ(rotated(Rotation({3}, 4, Moves::nothing), blocks(1, 2), 2), (Blocks{1, 2}));
  const Rotation own({3}, 6, Moves::with_rank);  // two of each rank
  EXPECT_EQ(rotated(own, blocks(0, 2), 1), (Blocks{2, 3}));
  EXPECT_EQ(rotated(own, blocks(1, 4), 1), (Blocks{3, 4, 5, 0}));
  const Rotation pairs({3}, 9, Moves::with_pair);  // 3 source + destination
  EXPECT_EQ(rotated(pairs, block(2), 1), (Blocks{3}));
  EXPECT_EQ(rotated(pairs, block(7), 2), (Blocks{3}));
  const Rotation torus({2, 2}, 4, Moves::with_rank);
  EXPECT_EQ(rotated(torus, blocks(0, 4), 3), (Blocks{3, 2, 1, 0}));
}

TEST(Rotation, BlocksThatItCannotMove) {
  EXPECT_THROW(Rotation({3}, 4, Moves::with_rank), std::logic_error);
  EXPECT_THROW(Rotation({2, 2}, 4, Moves::with_pair), std::logic_error);
  EXPECT_THROW(Rotation({}, 4, Moves::nothing), std::logic_error);
}

TEST(Everyone, IsOnePartTurnedRound) {
  EXPECT_EQ(text_of(passing_on(3)), "0>1 0; 1>2 1; 2>0 2; | 0>1 2; 1>2 0; 2>0 1; | ");
  const Schedule along_columns =
      everyone({4, 4, 1, [](int, Send send) { send(0, 2, block(0), copy); }},
               Rotation({2, 2}, 4, Moves::with_rank));
  EXPECT_EQ(text_of(along_columns), "0>2 0; 1>3 1; 2>0 2; 3>1 3; | ");
}

TEST(Everyone, HasTransfersFromOneToOne) {
  const Schedule multicast = everyone(
      {3, 1, 1, [](int, Send send) { send(0, ranks_from(1, 2), block(0), copy); }}, Moves::nothing);
  EXPECT_THROW(text_of(multicast), std::logic_error);
}

// What combinators make of such schedules is what they make of all their transfers.
TEST(Everyone, IsKeptByCombinators) {
  const Schedule a = passing_on(4);
  const Schedule plain{a.ranks, a.blocks, a.rounds, [a](int k, Send send) { a.round(k, send); }};
  ASSERT_EQ(everyone_in(plain), nullptr);
  ASSERT_NE(everyone_in(a), nullptr);
  const auto expect_kept = [](const Schedule& kept, const Schedule& plainly) {
    EXPECT_NE(everyone_in(kept), nullptr);
    EXPECT_EQ(everyone_in(plainly), nullptr);
    EXPECT_EQ(text_of(kept), text_of(plainly));
    EXPECT_EQ(kept.phases.size(), plainly.phases.size());
  };
  expect_kept(then(a, a), then(plain, plain));
  expect_kept(then(named("x", a), dual(a)), then(named("x", plain), dual(plain)));
  expect_kept(together(a, a), together(plain, plain));
  expect_kept(dual(a), dual(plain));
  expect_kept(reduce_scatter_then(a), reduce_scatter_then(plain));
  expect_kept(halves(a, a), halves(plain, plain));
  expect_kept(refined(3, a), refined(3, plain));
  expect_kept(pipelined(a, 3, 2), pipelined(plain, 3, 2));
  expect_kept(packed(a), packed(plain));
  expect_kept(lower(a, {}), lower(plain, {}));
  EXPECT_NE(everyone_in(mirrored(a)), nullptr);
}

TEST(Everyone, IsNotWhatHasBeenChanged) {
  Schedule changed = passing_on(4);
  changed.round = [](int, Send send) { send(0, 1, block(0), copy); };
  EXPECT_EQ(everyone_in(changed), nullptr);
  Schedule shortened = passing_on(4);
  shortened.rounds = 2;
  EXPECT_EQ(everyone_in(shortened), nullptr);
  EXPECT_EQ(everyone_in(then(passing_on(4), nothing(4, 4))), nullptr);
  EXPECT_EQ(everyone_in(turned(1, passing_on(4))), nullptr);
}

TEST(Everyone, SuitsGoalsThatTellNoRanksApart) {
  const Schedule a = passing_on(4);
  EXPECT_NE(everyone_for(a, {Collective::all_gather, 4, 4}), nullptr);
  EXPECT_NE(everyone_for(a, {Collective::all_reduce, 4, 4}), nullptr);
  EXPECT_EQ(everyone_for(a, {Collective::broadcast, 4, 4}), nullptr);
  EXPECT_EQ(everyone_for(a, {Collective::scan, 4, 4}), nullptr);
  EXPECT_EQ(everyone_for(a, {Collective::all_gather, 4, 8}), nullptr);
  const Schedule sums =
      everyone({4, 4, 1, [](int, Send send) { send(0, 1, block(0), reduce); }}, Moves::nothing);
  EXPECT_EQ(everyone_for(sums, {Collective::all_gather, 4, 4}), nullptr);
}

}  // namespace
}  // namespace rankine
