#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/everyone.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "algorithms/catalogue.h"
#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

using Part = rankine::Run;  // testing::Test has a Run of its own

using Texts = std::vector<std::string>;

// Three ranks, two blocks, two rounds: a copy, then a sum.
Schedule small() {
  return {3, 2, 2, [](int k, Send send) {
            if (k == 0) {
              send(0, 1, block(1), copy);
            } else {
              send(1, 2, blocks(0, 2), reduce);
            }
          }};
}

// All small schedules of the catalogue.
template <class Visit>
void for_each_schedule(const Visit& visit) {
  for (const Algorithm& line : catalogue()) {
    for (int n : {1, 2, 3, 4, 5, 7, 8}) {
      const Params params = line.only_taken({.ranks = n, .root = n / 2, .segments = 3});
      if (line.refusal(params)) continue;
      SCOPED_TRACE(std::string(name_of(line.collective)) + " " + std::string(line.name) + " " +
                   std::to_string(n));
      visit(line.make(params));
    }
  }
}

TEST(Then, RunsOneAfterTheOther) {
  const Schedule s = then(small(), small());
  EXPECT_EQ(s.rounds, 4);
  EXPECT_EQ(messages(s, 1), messages(s, 3));
  EXPECT_EQ(messages(s, 2), (Texts{"0>1:1"}));
}

TEST(Then, KeepsPhasesAndDropsEmptyOnes) {
  const Schedule s =
      then(then(named("up", small()), nothing(3, 2)), then(small(), named("down", small())));
  ASSERT_EQ(s.phases.size(), 3u);
  EXPECT_EQ(s.phases[0].name, "up");
  EXPECT_EQ(s.phases[1].name, "");
  EXPECT_EQ(s.phases[2].name, "down");
  for (const Phase& phase : s.phases) EXPECT_EQ(phase.rounds, 2);
}

TEST(Then, WithNothingIsTheSame) {
  for_each_schedule([](const Schedule& s) {
    EXPECT_EQ(text_of(then(s, nothing(s.ranks, s.blocks))), text_of(s));
    EXPECT_EQ(text_of(then(nothing(s.ranks, s.blocks), s)), text_of(s));
  });
}

TEST(Together, OverlaysRoundsInOrder) {
  const Schedule s = together(small(), named("long", then(small(), small())));
  EXPECT_EQ(s.rounds, 4);
  EXPECT_EQ(messages(s, 0), (Texts{"0>1:1", "0>1:1"}));
  EXPECT_EQ(messages(s, 3), (Texts{"1>2:0.1+"}));
  ASSERT_EQ(s.phases.size(), 1u);
  EXPECT_EQ(s.phases[0].name, "long");
}

TEST(Combinators, RefuseWhatDoesNotFit) {
  EXPECT_THROW(then(small(), nothing(3, 3)), std::logic_error);
  EXPECT_THROW(then(small(), nothing(2, 2)), std::logic_error);
  EXPECT_THROW(together(small(), nothing(2, 2)), std::logic_error);
  EXPECT_THROW(together(std::vector<Schedule>{}), std::logic_error);
  EXPECT_THROW(halves(small(), nothing(3, 1)), std::logic_error);
  EXPECT_THROW(turned(1, small()), std::logic_error);  // two blocks cannot belong to three ranks
  EXPECT_THROW(mirrored(small()), std::logic_error);
  try {
    then(small(), nothing(7, 9));
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "then: parts of 3x2 and 7x9 ranks x blocks cannot be combined");
  }
}

TEST(Dual, TurnsTimeArrowsAndActsRound) {
  const Schedule s = dual(named("x", small()));
  EXPECT_EQ(messages(s, 0), (Texts{"2>1:0.1"}));
  EXPECT_EQ(messages(s, 1), (Texts{"1>0:1+"}));
  EXPECT_EQ(s.phases[0].name, "x");
}

TEST(Dual, ReversesPhases) {
  const Schedule s = dual(then(named("first", small()), named("second", small())));
  EXPECT_EQ(s.phases[0].name, "second");
  EXPECT_EQ(s.phases[1].name, "first");
}

TEST(Dual, TurnsAMulticastIntoASum) {
  const Schedule multicast{3, 1, 1,
                           [](int, Send send) { send(0, ranks_from(1, 2), block(0), copy); }};
  EXPECT_EQ(messages(dual(multicast), 0), (Texts{"1,2>0:0+"}));
}

TEST(Dual, SwapsWhatAndWhere) {
  const Schedule moved{2, 2, 1, [](int, Send send) { send(0, 1, block(0), block(1), copy); }};
  std::vector<Transfer> seen;
  for_each_transfer(dual(moved), 0, [&](const Transfer& t) { seen.push_back(t); });
  EXPECT_EQ(seen[0].what, block(1));
  EXPECT_EQ(seen[0].where, block(0));
}

TEST(Dual, TwiceIsTheSame) {
  for_each_schedule([](const Schedule& s) { EXPECT_EQ(text_of(dual(dual(s))), text_of(s)); });
}

TEST(Dual, OfThenIsThenOfDuals) {
  const Schedule a = small(), b = dual(small());
  EXPECT_EQ(text_of(dual(then(a, b))), text_of(then(dual(b), dual(a))));
}

TEST(On, RenamesRanksAndBlocks) {
  const Schedule s = on({9, 8, [](Rank r) { return 8 - r; },
                         [](Block b) {
                           return IndexList(Part{4 * b, 2, 1});
                         }},
                        small());
  EXPECT_EQ(s.ranks, 9);
  EXPECT_EQ(s.blocks, 8);
  EXPECT_EQ(messages(s, 0), (Texts{"8>7:4.5"}));
  EXPECT_EQ(messages(s, 1), (Texts{"7>6:0.1.4.5+"}));
}

TEST(On, KeepsBlocksUnlessTold) {
  EXPECT_EQ(messages(on_ranks(6, {5, 3, 1}, small()), 1), (Texts{"3>1:0.1+"}));
  EXPECT_EQ(messages(on_blocks(9, 6, small()), 1), (Texts{"1>2:6.7+"}));
}

TEST(On, WithTheSameNamesIsTheSame) {
  for_each_schedule([](const Schedule& s) {
    const Schedule same =
        on({s.ranks, s.blocks, [](Rank r) { return r; }, [](Block b) { return IndexList(b); }}, s);
    EXPECT_EQ(text_of(same), text_of(s));
    EXPECT_EQ(text_of(on_blocks(s.blocks, 0, s)), text_of(s));
  });
}

TEST(RootedAt, TurnsRanksOnly) {
  EXPECT_EQ(messages(rooted_at(2, small()), 0), (Texts{"2>0:1"}));
  EXPECT_EQ(text_of(rooted_at(0, small())), text_of(small()));
}

TEST(Turned, TurnsRanksAndTheirBlocks) {
  const Schedule s{3, 6, 1, [](int, Send send) { send(0, 1, blocks(0, 2), copy); }};
  EXPECT_EQ(messages(turned(2, s), 0), (Texts{"2>0:4.5"}));
}

TEST(Mirrored, MapsRankAndBlockToTheirNegatives) {
  const Schedule s{3, 6, 1, [](int, Send send) { send(0, 1, blocks(2, 2), copy); }};
  EXPECT_EQ(messages(mirrored(s), 0), (Texts{"0>2:4.5"}));
  EXPECT_EQ(text_of(mirrored(mirrored(s))), text_of(s));
}

TEST(Halves, GivesEachOneHalfOfEveryBlock) {
  const Schedule s = halves(small(), small());
  EXPECT_EQ(s.blocks, 4);
  EXPECT_EQ(messages(s, 1), (Texts{"1>2:0.2+", "1>2:1.3+"}));
}

TEST(SideBySide, GivesEachItsPartOfEveryBlock) {
  const Schedule s = side_by_side({small(), small(), small()});
  EXPECT_EQ(s.blocks, 6);
  EXPECT_EQ(messages(s, 1), (Texts{"1>2:0.3+", "1>2:1.4+", "1>2:2.5+"}));
}

TEST(ReduceScatterThen, IsAnAllReduce) {
  const Schedule gather{2, 2, 1, [](int, Send send) {
                          send(0, 1, block(0), copy);
                          send(1, 0, block(1), copy);
                        }};
  const Schedule s = reduce_scatter_then(gather);
  EXPECT_EQ(failure(s, {Collective::all_reduce, 2, 2, 0, 0}), "");
  EXPECT_EQ(s.phases[0].name, "reduce-scatter");
  EXPECT_EQ(s.phases[1].name, "all-gather");
}

TEST(Refined, SplitsBlocksThatTravelTogether) {
  const Schedule s = refined(3, small());
  EXPECT_EQ(s.blocks, 6);
  EXPECT_EQ(s.rounds, 2);
  EXPECT_EQ(messages(s, 0), (Texts{"0>1:3.4.5"}));
  EXPECT_EQ(text_of(refined(1, small())), text_of(small()));
  EXPECT_EQ(text_of(refined(2, refined(3, small()))), text_of(refined(6, small())));
}

TEST(Pipelined, SegmentsFollowOneAnother) {
  const Schedule s = pipelined(small(), 3);
  EXPECT_EQ(s.blocks, 6);
  EXPECT_EQ(s.rounds, 4);
  EXPECT_EQ(messages(s, 0), (Texts{"0>1:3"}));
  EXPECT_EQ(messages(s, 1), (Texts{"1>2:0.3+", "0>1:4"}));
  EXPECT_EQ(messages(s, 2), (Texts{"1>2:1.4+", "0>1:5"}));
  EXPECT_EQ(messages(s, 3), (Texts{"1>2:2.5+"}));
}

TEST(Pipelined, AtAnyDistance) {
  const Schedule s = pipelined(small(), 2, 3);
  EXPECT_EQ(s.rounds, 5);
  EXPECT_EQ(messages(s, 2), Texts{});
  EXPECT_EQ(messages(s, 3), (Texts{"0>1:3"}));
}

TEST(Pipelined, OneSegmentIsTheSame) {
  for_each_schedule([](const Schedule& s) { EXPECT_EQ(text_of(pipelined(s, 1)), text_of(s)); });
}

TEST(Pipelined, OfNothingIsNothing) { EXPECT_EQ(pipelined(nothing(4, 2), 5).rounds, 0); }

// What combinators promise: they keep the meaning.
TEST(Combinators, KeepAllReduceAnAllReduce) {
  for (const Algorithm& line : catalogue()) {
    if (line.collective != Collective::all_reduce) continue;
    for (int n : {2, 3, 6}) {
      Params params;
      params.ranks = n;
      if (line.refusal(params)) continue;
      const Schedule s = line.make(params);
      const auto check = [&](const Schedule& made) {
        EXPECT_EQ(failure(made, {Collective::all_reduce, n, made.blocks, 0, 0}), "")
            << line.name << " " << n;
      };
      check(refined(3, s));
      check(pipelined(s, 4));
      check(pipelined(s, 2, 5));
      check(rooted_at(n - 1, s));
      check(halves(s, s));
      check(on_ranks(n,
                     n == 2   ? std::vector<Rank>{1, 0}
                     : n == 3 ? std::vector<Rank>{2, 0, 1}
                              : std::vector<Rank>{5, 2, 4, 0, 1, 3},
                     s));
    }
  }
}

TEST(Packed, LeavesOutWhatIsEmpty) {
  const Schedule sparse{2, 1, 4, [](int k, Send send) {
                          if (k == 1) send(0, 1, block(0), copy);
                          if (k == 3) send(1, 0, block(0), reduce);
                        }};
  EXPECT_EQ(text_of(packed(sparse)), "2x1x1 | 0>1:0 | 1>0:0+");
  EXPECT_EQ(packed(nothing(3, 2)).rounds, 0);
}

TEST(Combinators, DualsOfAllGathersAreReduceScatters) {
  for (const Algorithm& line : catalogue()) {
    if (line.collective != Collective::all_gather) continue;
    for (int n = 1; n <= 9; ++n) {
      Params params;
      params.ranks = n;
      if (line.refusal(params)) continue;
      const Schedule s = dual(line.make(params));
      EXPECT_EQ(failure(s, {Collective::reduce_scatter, n, s.blocks, 0, 0}), "")
          << line.name << " " << n;
    }
  }
}

TEST(Pushed, StoresBesideAndAddsThere) {
  const Schedule s = pushed(small());
  EXPECT_EQ(s.rounds, 4);
  EXPECT_EQ(s.planes, 2);
  EXPECT_EQ(messages(s, 0), (Texts{"0>1:1"}));
  EXPECT_EQ(messages(s, 1), Texts{});
  EXPECT_EQ(messages(s, 2), (Texts{"1>2:0.1=0.1@1"}));
  EXPECT_EQ(messages(s, 3), (Texts{"2>2:0.1=0.1@0+"}));
}

// Everything that arrives has a plane of its own, so nothing is stored over what is still to be
// added.
TEST(Pushed, KeepsTheMeaningOfEveryAlgorithm) {
  for (const Algorithm& line : catalogue()) {
    if (line.name == "switch") continue;
    for (int n : {1, 2, 3, 5, 8}) {
      Params params;
      params.ranks = n;
      params.segments = line.takes("segments") ? 2 : 1;
      if (line.refusal(params)) continue;
      const Schedule s = pushed(line.make(params));
      EXPECT_EQ(failure(s, goal_of(line, params, s)), "")
          << name_of(line.collective) << " " << line.name << " " << n;
      for (int k = 0; k < s.rounds; ++k) {
        for_each_transfer(s, k, [&](const Transfer& t) {
          EXPECT_TRUE(t.act == copy || t.from == t.to) << "adds what lies elsewhere";
        });
      }
    }
  }
}

// Where everyone does the same in what is pushed, everyone does in the push form: whose rounds are
// those that it has when all transfers are gone through.
TEST(Pushed, OfOneRanksPart) {
  int seen = 0;
  for (const Algorithm& line : catalogue()) {
    for (const int n : {2, 3, 6, 9}) {
      Params params;
      params.ranks = n;
      if (line.refusal(params)) continue;
      const Schedule all = line.make(params);
      if (everyone_in(all) == nullptr) continue;
      ++seen;
      Schedule in_full = all;
      in_full.round = [all](int k, Send send) { all.round(k, send); };
      const Schedule s = pushed(all), expected = pushed(in_full);
      EXPECT_NE(everyone_in(s), nullptr) << line.name << " " << n;
      EXPECT_EQ(s.planes, expected.planes) << line.name << " " << n;
      ASSERT_EQ(s.rounds, expected.rounds);
      ASSERT_EQ(s.phases.size(), expected.phases.size());
      for (std::size_t i = 0; i < s.phases.size(); ++i) {
        EXPECT_EQ(s.phases[i].name, expected.phases[i].name);
        EXPECT_EQ(s.phases[i].rounds, expected.phases[i].rounds);
      }
      for (int k = 0; k < s.rounds; ++k) {
        EXPECT_EQ(messages(s, k), messages(expected, k)) << line.name << " " << n << " " << k;
      }
    }
  }
  EXPECT_GT(seen, 50);
}

TEST(Pushed, RefusesWhatASwitchAddsUp) {
  const Schedule s = find_algorithm(Collective::reduce, "switch")->make({.ranks = 3});
  EXPECT_THROW(pushed(s), std::logic_error);
}

}  // namespace
}  // namespace rankine
