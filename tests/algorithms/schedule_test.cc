#include "algorithms/schedule/schedule.h"
#include "algorithms/schedule/blocks.h"
#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "tests/algorithms/reference.h"
#include "tests/testing.h"

namespace rankine {
namespace {

TEST(Send, TakesRanksAndBlocksModuloTheSchedules) {
  const Schedule s{3, 5, 1, [](int, Send send) {
                     send(2, 3, block(-1), copy);
                     send(-1, ranks_from(2, 2), blocks(4, 2), reduce);
                   }};
  EXPECT_EQ(messages(s, 0), (std::vector<std::string>{"2>0:4", "2>2,0:4.0+"}));
}

TEST(Send, PutsBlocksWhereTheyAreUnlessToldOtherwise) {
  const Schedule s{2, 4, 1, [](int, Send send) {
                     send(0, 1, block(5), copy);
                     send(0, 1, block(5), block(6, 1), copy);
                   }};
  std::vector<Transfer> seen;
  for_each_transfer(s, 0, [&](const Transfer& t) { seen.push_back(t); });
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].where, block(1));
  EXPECT_EQ(seen[1].what, block(1));
  EXPECT_EQ(seen[1].where, block(2, 1));
}

TEST(Logarithms, OfTwo) {
  for (int n = 1; n <= 5000; ++n) {
    EXPECT_LE(1 << floor_log2(n), n);
    EXPECT_GT(2 << floor_log2(n), n);
    EXPECT_GE(1 << ceil_log2(n), n);
    EXPECT_EQ(is_power_of_two(n), floor_log2(n) == ceil_log2(n)) << n;
  }
  EXPECT_FALSE(is_power_of_two(0));
  EXPECT_FALSE(is_power_of_two(-4));
}

using Part = rankine::Run;  // testing::Test has a member Run

using Indices = std::vector<int>;

IndexList list_of(const Indices& indices) {
  IndexList out;
  for (int i : indices) out.append(Part{i, 1, 1});
  return out;
}

TEST(IndexList, NeighboursBecomeOneRun) {
  EXPECT_EQ(list_of({4, 5, 6, 7}).runs(), 1);
  EXPECT_EQ(list_of({4, 5, 7}).runs(), 2);
  IndexList strided(Part{0, 2, 3});
  strided.append(Part{6, 2, 3});
  EXPECT_EQ(strided.runs(), 1);
  strided.append(Part{12, 1, 1});
  EXPECT_EQ(strided.runs(), 1);
  strided.append(Part{13, 1, 1});
  EXPECT_EQ(strided.to_vector(), (Indices{0, 3, 6, 9, 12, 13}));
}

TEST(IndexList, ACyclicIntervalNeedsNoMoreThanTwoRuns) {
  for (int first = -8; first <= 8; ++first) {
    for (int count = 1; count <= 8; ++count) {
      EXPECT_LE(IndexList(Part{first, count, 1}).modulo(8).runs(), 2) << first << " " << count;
    }
  }
}

// Compares appending, size, [] and modulo with plain vectors.
TEST(IndexList, BehavesAsAVectorOfIndices) {
  std::mt19937 random(1);
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  for (int repeat = 0; repeat < 3000; ++repeat) {
    IndexList list;
    Indices plain;
    for (int runs = below(repeat % 10 == 0 ? 30 : 6); runs > 0; --runs) {
      const Part run{below(40) - 20, below(5), below(7) - 3};
      list.append(run);
      for (int i = 0; i < run.count; ++i) plain.push_back(run.first + i * run.stride);
    }
    ASSERT_EQ(list.to_vector(), plain);
    ASSERT_EQ(list.size(), static_cast<int>(plain.size()));
    ASSERT_EQ(list.empty(), plain.empty());
    const int n = 1 + below(12);
    Indices wrapped;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      ASSERT_EQ(list[static_cast<int>(i)], plain[i]);
      wrapped.push_back((plain[i] % n + n) % n);
    }
    ASSERT_EQ(list.modulo(n).to_vector(), wrapped) << "modulo " << n;
    ASSERT_EQ(list, list_of(plain));
  }
}

// The blocks that each rank has before, or needs after, the collective: one row per rank, one
// column per block.
std::string table(const CollectiveSpec& goal, bool before) {
  std::string out;
  for (Rank r = 0; r < goal.ranks; ++r) {
    for (Block b = 0; b < goal.blocks; ++b) {
      out += (before ? goal.initially_holds(r, b) : goal.must_hold(r, b)) ? '#' : '.';
    }
    out += r + 1 < goal.ranks ? "/" : "";
  }
  return out;
}

TEST(Collective, NamesReadBack) {
  for (const Collective c : all_collectives()) {
    EXPECT_EQ(parse_collective(name_of(c)), c);
  }
  EXPECT_EQ(all_collectives().size(), static_cast<std::size_t>(kCollectives));
  EXPECT_EQ(parse_collective("all_reduce"), Collective::all_reduce);
  EXPECT_EQ(parse_collective("allreduce"), std::nullopt);
  EXPECT_EQ(parse_collective(""), std::nullopt);
}

// The primitives of the lesson's table, among three ranks.
TEST(CollectiveSpec, SaysWhoHasWhatBeforeAndAfter) {
  struct {
    Collective collective;
    int blocks;
    const char *before, *after;
  } const cases[] = {
      {Collective::broadcast, 1, "./#/.", "#/#/#"},
      {Collective::reduce, 1, "#/#/#", "./#/."},
      {Collective::all_reduce, 1, "#/#/#", "#/#/#"},
      {Collective::reduce_scatter, 3, "###/###/###", "#../.#./..#"},
      {Collective::all_gather, 3, "#../.#./..#", "###/###/###"},
      {Collective::all_to_all, 9, "###....../...###.../......###", "#..#..#../.#..#..#./..#..#..#"},
      {Collective::gather, 3, "#../.#./..#", ".../###/..."},
      {Collective::scatter, 3, ".../###/...", "#../.#./..#"},
      {Collective::send_recv, 1, "./#/.", "././#"},
      {Collective::barrier, 1, "#/#/#", "#/#/#"},
      {Collective::scan, 1, "#/#/#", "#/#/#"},
      {Collective::exscan, 1, "#/#/#", "./#/#"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(natural_blocks(c.collective, 3), c.blocks) << name_of(c.collective);
    const CollectiveSpec goal{c.collective, 3, c.blocks, 1, 2};
    EXPECT_EQ(table(goal, true), c.before) << name_of(c.collective);
    EXPECT_EQ(table(goal, false), c.after) << name_of(c.collective);
  }
}

// The contributions to block 0 that each rank wants: one row per rank.
TEST(CollectiveSpec, SaysWhoWantsToHearWhom) {
  const auto heard = [](Collective collective) {
    const CollectiveSpec goal{collective, 3, natural_blocks(collective, 3), 1, 2};
    std::string out;
    for (Rank r = 0; r < 3; ++r) {
      for (Rank c = 0; c < 3; ++c) out += goal.must_include(r, 0, c) ? '#' : '.';
      out += r < 2 ? "/" : "";
    }
    return out;
  };
  EXPECT_EQ(heard(Collective::broadcast), ".#./.#./.#.");
  EXPECT_EQ(heard(Collective::reduce), ".../###/...");
  EXPECT_EQ(heard(Collective::all_reduce), "###/###/###");
  EXPECT_EQ(heard(Collective::reduce_scatter), "###/.../...");
  EXPECT_EQ(heard(Collective::all_gather), "#../#../#..");
  EXPECT_EQ(heard(Collective::scan), "#../##./###");
  EXPECT_EQ(heard(Collective::exscan), ".../#../##.");
}

TEST(Collective, KnowsItsArguments) {
  for (const Collective c : all_collectives()) {
    const CollectiveSpec goal{c, 4, natural_blocks(c, 4), 0, 1},
        other{c, 4, natural_blocks(c, 4), 2, 1};
    const bool differ =
        table(goal, true) != table(other, true) || table(goal, false) != table(other, false);
    EXPECT_EQ(has_root(c), differ) << name_of(c);
    EXPECT_EQ(is_idempotent(c), c == Collective::barrier);
    const bool sums = goal.source_of(0) == -1 && !is_idempotent(c);
    EXPECT_EQ(reduces(c), sums) << name_of(c);
  }
}

using Blocks = std::vector<int>;

Blocks rotated(const Rotation& rotation, const BlockSet& set, Rank by) {
  return rotation.rotated(set.list, by).to_vector();
}

std::string arrows_of(const Schedule& schedule) {
  std::string out;
  for (int k = 0; k < schedule.rounds; ++k) {
    for_each_transfer(schedule, k, [&out](const Transfer& t) {
      out += std::to_string(t.from.front()) + ">" + std::to_string(t.to.front());
      for (const int b : t.what.list.to_vector()) out += " " + std::to_string(b);
      out += t.kind == copy ? "; " : "+; ";
    });
    out += "| ";
  }
  return out;
}

Schedule passing_on(int p) {
  return rotation_symmetric({p, p, p - 1, [](int k, Send send) { send(0, 1, block(-k), copy); }},
                            Moves::with_rank);
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

TEST(RotationSymmetric, IsOnePartTurnedRound) {
  EXPECT_EQ(arrows_of(passing_on(3)), "0>1 0; 1>2 1; 2>0 2; | 0>1 2; 1>2 0; 2>0 1; | ");
  const Schedule along_columns =
      rotation_symmetric({4, 4, 1, [](int, Send send) { send(0, 2, block(0), copy); }},
                         Rotation({2, 2}, 4, Moves::with_rank));
  EXPECT_EQ(arrows_of(along_columns), "0>2 0; 1>3 1; 2>0 2; 3>1 3; | ");
}

// Combinators give one result for such a schedule and for the list of all its transfers.
TEST(RotationSymmetric, IsKeptByCombinators) {
  const Schedule a = passing_on(4);
  const Schedule plain{a.ranks, a.blocks, a.rounds, [a](int k, Send send) { a.round(k, send); }};
  ASSERT_EQ(symmetry_of(plain), nullptr);
  ASSERT_NE(symmetry_of(a), nullptr);
  const auto expect_kept = [](const Schedule& kept, const Schedule& plainly) {
    EXPECT_NE(symmetry_of(kept), nullptr);
    EXPECT_EQ(symmetry_of(plainly), nullptr);
    EXPECT_EQ(arrows_of(kept), arrows_of(plainly));
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
  EXPECT_NE(symmetry_of(mirrored(a)), nullptr);
}

TEST(RotationSymmetric, IsNotWhatHasBeenChanged) {
  Schedule changed = passing_on(4);
  changed.round = [](int, Send send) { send(0, 1, block(0), copy); };
  EXPECT_EQ(symmetry_of(changed), nullptr);
  Schedule shortened = passing_on(4);
  shortened.rounds = 2;
  EXPECT_EQ(symmetry_of(shortened), nullptr);
  EXPECT_EQ(symmetry_of(then(passing_on(4), nothing(4, 4))), nullptr);
  EXPECT_EQ(symmetry_of(turned(1, passing_on(4))), nullptr);
}

TEST(RotationSymmetric, SuitsGoalsThatTellNoRanksApart) {
  const Schedule a = passing_on(4);
  EXPECT_NE(symmetry_for(a, {Collective::all_gather, 4, 4}), nullptr);
  EXPECT_NE(symmetry_for(a, {Collective::all_reduce, 4, 4}), nullptr);
  EXPECT_EQ(symmetry_for(a, {Collective::broadcast, 4, 4}), nullptr);
  EXPECT_EQ(symmetry_for(a, {Collective::scan, 4, 4}), nullptr);
  EXPECT_EQ(symmetry_for(a, {Collective::all_gather, 4, 8}), nullptr);
  const Schedule sums = rotation_symmetric(
      {4, 4, 1, [](int, Send send) { send(0, 1, block(0), reduce); }}, Moves::nothing);
  EXPECT_EQ(symmetry_for(sums, {Collective::all_gather, 4, 4}), nullptr);
}

}  // namespace
}  // namespace rankine
