#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/schedule/stating_order.h"
#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

using Part = rankine::Run;  // testing::Test has a member Run

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
  for (const Algorithm& entry : catalogue()) {
    for (int n : {1, 2, 3, 4, 5, 7, 8}) {
      const Params params = entry.only_taken({.ranks = n, .root = n / 2, .segments = 3});
      if (entry.refusal(params)) continue;
      SCOPED_TRACE(std::string(name_of(entry.collective)) + " " + std::string(entry.name) + " " +
                   std::to_string(n));
      visit(entry.make(params));
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

// Combinators keep the meaning of a schedule.
TEST(Combinators, KeepAllReduceAnAllReduce) {
  for (const Algorithm& entry : catalogue()) {
    if (entry.collective != Collective::all_reduce) continue;
    for (int n : {2, 3, 6}) {
      Params params;
      params.ranks = n;
      if (entry.refusal(params)) continue;
      const Schedule s = entry.make(params);
      const auto check = [&](const Schedule& made) {
        EXPECT_EQ(failure(made, {Collective::all_reduce, n, made.blocks, 0, 0}), "")
            << entry.name << " " << n;
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
  for (const Algorithm& entry : catalogue()) {
    if (entry.collective != Collective::all_gather) continue;
    for (int n = 1; n <= 9; ++n) {
      Params params;
      params.ranks = n;
      if (entry.refusal(params)) continue;
      const Schedule s = dual(entry.make(params));
      EXPECT_EQ(failure(s, {Collective::reduce_scatter, n, s.blocks, 0, 0}), "")
          << entry.name << " " << n;
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

// Every arriving block is stored in a separate plane, so no store overwrites a block that is yet to
// be added.
TEST(Pushed, KeepsTheMeaningOfEveryAlgorithm) {
  for (const Algorithm& entry : catalogue()) {
    if (entry.name == "switch") continue;
    for (int n : {1, 2, 3, 5, 8}) {
      Params params;
      params.ranks = n;
      params.segments = entry.takes("segments") ? 2 : 1;
      if (entry.refusal(params)) continue;
      const Schedule s = pushed(entry.make(params));
      EXPECT_EQ(failure(s, goal_of(entry, params, s)), "")
          << name_of(entry.collective) << " " << entry.name << " " << n;
      for (int k = 0; k < s.rounds; ++k) {
        for_each_transfer(s, k, [&](const Transfer& t) {
          EXPECT_TRUE(t.kind == copy || t.from == t.to) << "adds what lies elsewhere";
        });
      }
    }
  }
}

// If every rank does the same in a schedule, so does every rank in its push form. Its rounds equal
// those computed from all transfers.
TEST(Pushed, OfOneRanksPart) {
  int seen = 0;
  for (const Algorithm& entry : catalogue()) {
    for (const int n : {2, 3, 6, 9}) {
      Params params;
      params.ranks = n;
      if (entry.refusal(params)) continue;
      const Schedule all = entry.make(params);
      if (symmetry_of(all) == nullptr) continue;
      ++seen;
      Schedule in_full = all;
      in_full.round = [all](int k, Send send) { all.round(k, send); };
      const Schedule s = pushed(all), expected = pushed(in_full);
      EXPECT_NE(symmetry_of(s), nullptr) << entry.name << " " << n;
      EXPECT_EQ(s.planes, expected.planes) << entry.name << " " << n;
      ASSERT_EQ(s.rounds, expected.rounds);
      ASSERT_EQ(s.phases.size(), expected.phases.size());
      for (std::size_t i = 0; i < s.phases.size(); ++i) {
        EXPECT_EQ(s.phases[i].name, expected.phases[i].name);
        EXPECT_EQ(s.phases[i].rounds, expected.phases[i].rounds);
      }
      for (int k = 0; k < s.rounds; ++k) {
        EXPECT_EQ(messages(s, k), messages(expected, k)) << entry.name << " " << n << " " << k;
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

namespace {

// The blocks of each message that rank 0 sends in the only round, in the order stated.
std::vector<int> lengths(const Schedule& schedule) {
  std::vector<int> out;
  for_each_transfer(schedule, 0, [&out](const Transfer& t) {
    if (t.from.front() == 0) out.push_back(t.what.list.size());
  });
  return out;
}

// Rank 0 sends of_each[i] blocks to rank i + 1.
Schedule stated(std::vector<int> of_each) {
  const int p = static_cast<int>(of_each.size()) + 1;
  return {p, 16, 1, [of_each = std::move(of_each)](int, Send send) {
            Rank to = 0;
            for (const int n : of_each) send(0, ++to, blocks(0, n), copy);
          }};
}

// Messages of 3, 3 and 2 blocks take 5 on two ports, although their total would allow 4.
TEST(InTime, WhatAPortNeedsIsTheLeastTimeOfAnyAssignment) {
  EXPECT_EQ(least_time({3, 3, 2}, 2), 5);
  EXPECT_EQ(least_time({3, 3, 2, 2, 2}, 2), 6);
  EXPECT_EQ(least_time({1, 1, 1, 1, 1}, 2), 3);
  EXPECT_EQ(least_time({5, 1, 1}, 3), 5);
  EXPECT_EQ(least_time({}, 2), 0);
}

TEST(InTime, WhatIsInTimeStaysAsStated) {
  EXPECT_EQ(lengths(in_time(stated({3, 2, 1}))), (std::vector<int>{3, 2, 1}));
  EXPECT_EQ(lengths(in_time(stated({2, 2, 2}))), (std::vector<int>{2, 2, 2}));
}

// Messages of 2, 2 and 3 blocks take 5 on two ports; the first order that takes 4 keeps the first
// message in place.
TEST(InTime, WhatIsLateBecomesTheNearestOrderThatIsNot) {
  EXPECT_EQ(lengths(in_time(stated({2, 2, 3}))), (std::vector<int>{2, 3, 2}));
  EXPECT_EQ(lengths(in_time(stated({1, 2, 3}))), (std::vector<int>{1, 3, 2}));
  EXPECT_EQ(lengths(in_time(stated({1, 1, 2, 2}))), (std::vector<int>{1, 2, 2, 1}));
}

struct Message {
  Rank from, to;
  int blocks;
  bool operator==(const Message&) const = default;
};
using Messages = std::vector<Message>;

Messages in_time(const Messages& stated) {
  const Schedule schedule{6, 16, 1, [&stated](int, Send send) {
                            for (const auto& [from, to, n] : stated) {
                              send(from, to, blocks(0, n), copy);
                            }
                          }};
  Messages out;
  for_each_transfer(in_time(schedule), 0, [&out](const Transfer& t) {
    out.push_back({t.from.front(), t.to.front(), t.what.list.size()});
  });
  return out;
}

// If all messages cost the same, the stated order takes three messages in sequence, although no
// rank has more than two. Times in blocks do not show it, because the message 4 > 5 is longer than
// the three together.
TEST(InTime, MessagesThatCostTheSameAreInTimeToo) {
  EXPECT_EQ(in_time(Messages{{0, 1, 1}, {4, 5, 8}, {2, 1, 4}, {2, 3, 1}}),
            (Messages{{0, 1, 1}, {4, 5, 8}, {2, 3, 1}, {2, 1, 4}}));
}

// The matchings are {4, 1}, {3, 4} and {3}: at some price every order of whole matchings is late.
// An order in time must separate the 4 and 1, or the 3 and 4.
TEST(InTime, WhereNoOrderOfMatchingsDoesOneOfTheirLengthsMay) {
  EXPECT_EQ(in_time(Messages{{0, 4, 4}, {4, 3, 1}, {0, 1, 3}, {2, 3, 4}, {4, 1, 3}}),
            (Messages{{0, 4, 4}, {2, 3, 4}, {4, 1, 3}, {4, 3, 1}, {0, 1, 3}}));
}

// The messages of length 1 from ranks 2 and 0 are of one matching but must be apart, because rank 2
// sends 3 in all.
TEST(InTime, WhereNoOrderOfLengthsDoesOneByWhatSendersSendMay) {
  EXPECT_EQ(in_time(Messages{{2, 3, 2}, {3, 2, 2}, {2, 1, 1}, {1, 3, 3}, {0, 2, 1}, {3, 1, 1}}),
            (Messages{{1, 3, 3}, {2, 1, 1}, {2, 3, 2}, {3, 2, 2}, {0, 2, 1}, {3, 1, 1}}));
}

// On one port, at a price of blocks + 1 per message, every order takes 8 and the bound is 7. On two
// ports the stated order takes 5, and a better order takes the bound of 4.
TEST(InTime, WhatMustBeLateOnceIsNotLateTwice) {
  EXPECT_EQ(in_time(Messages{{1, 0, 1}, {3, 4, 2}, {5, 1, 3}, {3, 0, 1}, {5, 0, 2}, {1, 4, 3}}),
            (Messages{{1, 4, 3}, {5, 0, 2}, {5, 1, 3}, {3, 0, 1}, {3, 4, 2}, {1, 0, 1}}));
}

// On one port, at a price of blocks + 1 per message, the bound is 6 and every order takes 7. In all
// other cases the stated order is in time.
TEST(InTime, WhatCannotBeHelpedStaysAsStated) {
  const Messages stated = {{1, 5, 1}, {4, 3, 1}, {0, 3, 2}, {2, 5, 1},
                           {2, 1, 2}, {1, 0, 3}, {0, 5, 1}};
  EXPECT_EQ(in_time(stated), stated);
}

// If every rank does the same, every rank still does, and readers may look at one rank only.
TEST(InTime, EveryoneDoesTheSameAsBefore) {
  const Schedule part{5, 5, 1, [](int, Send send) {
                        send(0, 1, blocks(0, 2), copy);
                        send(0, 2, blocks(0, 2), copy);
                        send(0, 3, blocks(0, 3), copy);
                      }};
  const Schedule all = in_time(rotation_symmetric(part, Moves::with_rank));
  ASSERT_NE(symmetry_of(all), nullptr);
  EXPECT_EQ(lengths(all), (std::vector<int>{2, 3, 2}));
  EXPECT_EQ(lengths(symmetry_of(all)->part()), (std::vector<int>{2, 3, 2}));
}

// A switch's transfer takes ports of many ranks, so its round stays as it is. Local work takes no
// port.
TEST(InTime, SwitchesAreLeftAlone) {
  const Schedule with_switch{4, 4, 1, [](int, Send send) {
                               send(0, 1, blocks(0, 2), copy);
                               send(0, 2, blocks(0, 2), copy);
                               send(0, 3, blocks(0, 3), copy);
                               send(1, ranks_from(2, 2), block(0), copy);
                             }};
  EXPECT_EQ(lengths(in_time(with_switch)), (std::vector<int>{2, 2, 3}));
  const Schedule with_work{4, 4, 1, [](int, Send send) {
                             send(0, 0, blocks(0, 1), copy);
                             send(0, 1, blocks(0, 2), copy);
                             send(0, 2, blocks(0, 2), copy);
                             send(0, 3, blocks(0, 3), copy);
                           }};
  EXPECT_EQ(lengths(in_time(with_work)), (std::vector<int>{1, 2, 3, 2}));
}

}  // namespace

namespace {

int busiest(int p, const std::vector<Edge>& edges) {
  std::vector<int> sends(static_cast<std::size_t>(p), 0), receives = sends;
  for (const Edge& edge : edges) {
    ++sends[static_cast<std::size_t>(edge.from)];
    ++receives[static_cast<std::size_t>(edge.to)];
  }
  return std::max(*std::max_element(sends.begin(), sends.end()),
                  *std::max_element(receives.begin(), receives.end()));
}

void expect_colours(int p, const std::vector<Edge>& edges) {
  const std::vector<int> colours = edge_colours(p, edges);
  ASSERT_EQ(colours.size(), edges.size());
  std::set<std::pair<Rank, int>> senders, receivers;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    EXPECT_GE(colours[i], 0);
    EXPECT_LT(colours[i], busiest(p, edges));
    EXPECT_TRUE(senders.insert({edges[i].from, colours[i]}).second);
    EXPECT_TRUE(receivers.insert({edges[i].to, colours[i]}).second);
  }
}

TEST(EdgeColours, AreAsManyAsTheBusiestRankHasMessages) {
  expect_colours(3, {{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}});
  expect_colours(2, {{0, 1}, {0, 1}, {0, 1}});  // several between one pair
  // A greedy colouring would need three: 0-0 and 1-1 take one colour, 0-1 another, and 1-0 finds
  // neither free at both ends.
  expect_colours(3, {{0, 0}, {1, 1}, {0, 1}, {1, 2}, {2, 0}, {2, 2}});
  std::mt19937 random(7);
  for (int trial = 0; trial < 500; ++trial) {
    const auto p = 2 + random() % 9;
    std::vector<Edge> edges(1 + random() % 40);
    for (Edge& edge : edges) {
      edge = {static_cast<Rank>(random() % p), static_cast<Rank>(random() % p)};
    }
    expect_colours(static_cast<int>(p), edges);
  }
}

// The cost of an edge depends on the edges of its ranks only: 512 leaders have 511 leaves each,
// 262,144 ranks in all.
TEST(EdgeColours, ManyLeavesOfFewLeaders) {
  constexpr int kLeaders = 512, kGroup = 512;
  std::vector<Edge> edges;
  for (Rank leader = 0; leader < kLeaders * kGroup; leader += kGroup) {
    for (int i = 1; i < kGroup; ++i) edges.push_back({leader, leader + i});
  }
  const std::vector<int> colours = edge_colours(kLeaders * kGroup, edges);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    ASSERT_EQ(colours[i], edges[i].to - edges[i].from - 1);  // the lowest free colour
  }
}

// If no augmenting path changes earlier colours, the new edge gets the lowest colour that is free
// at both ends.
TEST(EdgeColours, LeastThatIsFreeAtBothEnds) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 300; ++trial) {
    const auto p = 2 + random() % 5;
    std::vector<Edge> edges(1 + random() % 12);
    for (Edge& edge : edges) {
      edge = {static_cast<Rank>(random() % p), static_cast<Rank>(random() % p)};
    }
    const std::vector<int> before =
        edge_colours(static_cast<int>(p), std::vector<Edge>(edges.begin(), edges.end() - 1));
    const std::vector<int> colours = edge_colours(static_cast<int>(p), edges);
    if (!std::equal(before.begin(), before.end(), colours.begin())) continue;  // changed
    std::set<int> taken;
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
      if (edges[i].from == edges.back().from || edges[i].to == edges.back().to) {
        taken.insert(colours[i]);
      }
    }
    int least = 0;
    while (taken.count(least) > 0) ++least;
    EXPECT_EQ(colours.back(), least);
  }
}

// Only the order of a round's transfers changes, and the longest come first.
TEST(EdgeColours, ScheduleKeepsItsTransfers) {
  const Schedule stated{3, 4, 1, [](int, Send send) {
                          send(0, 1, block(0), copy);
                          send(0, 2, blocks(0, 2), copy);
                          send(1, 2, block(1), copy);
                          send(1, 0, block(1), copy);
                        }};
  std::vector<std::pair<Rank, Rank>> order;
  for_each_transfer(coloured(stated), 0,
                    [&](const Transfer& t) { order.emplace_back(t.from.front(), t.to.front()); });
  EXPECT_EQ(order, (std::vector<std::pair<Rank, Rank>>{{0, 2}, {0, 1}, {1, 2}, {1, 0}}));
}

// A switch's transfer has more than two ends, so its round stays as it is.
TEST(EdgeColours, SwitchesAreLeftAlone) {
  const Schedule stated{3, 3, 1, [](int, Send send) {
                          send(0, 1, block(0), copy);
                          send(1, ranks_from(2, 2), blocks(0, 3), copy);
                        }};
  int seen = 0;
  for_each_transfer(coloured(stated), 0,
                    [&](const Transfer& t) { EXPECT_EQ(t.from.front(), seen++); });
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace rankine
