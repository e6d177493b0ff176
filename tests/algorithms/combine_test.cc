#include "algorithms/schedule/combine.h"
#include "algorithms/catalogue.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/schedule/stating_order.h"
#include "tests/algorithms/reference.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using Part = rankine::Run;  // testing::Test has a member Run

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

TEST(Combinators, OfASmallSchedule) {
  const Schedule s = small(),
                 switched = find_algorithm(Collective::reduce, "switch")->make({.ranks = 3});
  const Schedule multicast{3, 1, 1,
                           [](int, Send send) { send(0, ranks_from(1, 2), block(0), copy); }};
  const Schedule moved{2, 2, 1, [](int, Send send) { send(0, 1, block(0), block(1), copy); }};
  const Schedule mirror{3, 6, 1, [](int, Send send) { send(0, 1, blocks(2, 2), copy); }};
  const Schedule sparse{2, 1, 4, [](int k, Send send) {
                          if (k == 1) send(0, 1, block(0), copy);
                          if (k == 3) send(1, 0, block(0), reduce);
                        }};
  const Group names{9, 8, [](Rank r) { return 8 - r; },
                    [](Block b) {
                      return IndexList(Part{4 * b, 2, 1});
                    }};
  const std::pair<Schedule, const char*> cases[] = {
      {s, "3x2x1 | 0>1:1 | 1>2:0.1+"},
      {then(s, s), "3x2x1 | 0>1:1 | 1>2:0.1+ | 0>1:1 | 1>2:0.1+"},
      {together(s, then(s, s)), "3x2x1 | 0>1:1 0>1:1 | 1>2:0.1+ 1>2:0.1+ | 0>1:1 | 1>2:0.1+"},
      {dual(s), "3x2x1 | 2>1:0.1 | 1>0:1+"},
      {dual(multicast), "3x1x1 | 1,2>0:0+"},
      {dual(moved), "2x2x1 | 1>0:1=0@0+"},
      {on(names, s), "9x8x1 | 8>7:4.5 | 7>6:0.1.4.5+"},
      {on_blocks(9, 6, s), "3x9x1 | 0>1:7 | 1>2:6.7+"},
      {rooted_at(2, s), "3x2x1 | 2>0:1 | 0>1:0.1+"},
      {turned(2, mirror), "3x6x1 | 2>0:0.1"},
      {mirrored(mirror), "3x6x1 | 0>2:4.5"},
      {halves(s, s), "3x4x1 | 0>1:2 0>1:3 | 1>2:0.2+ 1>2:1.3+"},
      {side_by_side({s, s, s}), "3x6x1 | 0>1:3 0>1:4 0>1:5 | 1>2:0.3+ 1>2:1.4+ 1>2:2.5+"},
      {refined(3, s), "3x6x1 | 0>1:3.4.5 | 1>2:0.1.2.3.4.5+"},
      {pipelined(s, 3), "3x6x1 | 0>1:3 | 1>2:0.3+ 0>1:4 | 1>2:1.4+ 0>1:5 | 1>2:2.5+"},
      {pipelined(s, 2, 3), "3x4x1 | 0>1:2 | 1>2:0.2+ | | 0>1:3 | 1>2:1.3+"},
      {packed(sparse), "2x1x1 | 0>1:0 | 1>0:0+"},
      {pushed(s), "3x2x2 | 0>1:1 | | 1>2:0.1=0.1@1 | 2>2:0.1=0.1@0+"},
  };
  for (const auto& [made, text] : cases) EXPECT_EQ(text_of(made), text);
  EXPECT_THROW(pushed(switched), std::logic_error);
}

TEST(Combinators, HaveIdentities) {
  for_each_schedule([](const Schedule& s) {
    const std::string text = text_of(s);
    const Group same{s.ranks, s.blocks, [](Rank r) { return r; },
                     [](Block b) { return IndexList(b); }};
    for (const Schedule& made :
         {then(s, nothing(s.ranks, s.blocks)), then(nothing(s.ranks, s.blocks), s), dual(dual(s)),
          on(same, s), on_blocks(s.blocks, 0, s), pipelined(s, 1), refined(1, s)}) {
      EXPECT_EQ(text_of(made), text);
    }
  });
}

TEST(Then, KeepsPhasesAndDropsEmptyOnes) {
  const Schedule s =
      then(then(named("up", small()), nothing(3, 2)), then(small(), named("down", small())));
  ASSERT_EQ(s.phases.size(), 3u);
  EXPECT_EQ(s.phases[0].name, "up");
  EXPECT_EQ(s.phases[1].name, "");
  EXPECT_EQ(s.phases[2].name, "down");
  for (const Phase& phase : s.phases) EXPECT_EQ(phase.rounds, 2);
  EXPECT_EQ(dual(s).phases[0].name, "down");
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

// Combinators keep the meaning of a schedule.
TEST(Combinators, KeepAllReduceAnAllReduce) {
  for (const Algorithm& entry : catalogue()) {
    if (entry.collective != Collective::all_reduce) continue;
    for (int n : {2, 3, 6}) {
      Params params{.ranks = n};
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
      check(on({n, s.blocks, [n](Rank r) { return (5 * r + 1) % n; }}, s));
    }
  }
}

TEST(Combinators, DualsOfAllGathersAreReduceScatters) {
  for (const Algorithm& entry : catalogue()) {
    if (entry.collective != Collective::all_gather) continue;
    for (int n = 1; n <= 9; ++n) {
      Params params{.ranks = n};
      if (entry.refusal(params)) continue;
      const Schedule s = dual(entry.make(params));
      EXPECT_EQ(failure(s, {Collective::reduce_scatter, n, s.blocks, 0, 0}), "")
          << entry.name << " " << n;
    }
  }
}

// Every arriving block is stored in a separate plane, so no store overwrites a block that is yet to
// be added.
TEST(Pushed, KeepsTheMeaningOfEveryAlgorithm) {
  for (const Algorithm& entry : catalogue()) {
    if (entry.name == "switch") continue;
    for (int n : {1, 2, 3, 5, 8}) {
      Params params{.ranks = n, .segments = entry.takes("segments") ? 2 : 1};
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
      Params params{.ranks = n};
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

TEST(InTime, MovesWhatIsLateAndNothingElse) {
  const struct {
    const char* why;
    Messages stated, expected;
  } cases[] = {
      {"all messages cost the same: the stated order takes three in sequence, and no rank has more "
       "than two; times in blocks do not show it, because 4 > 5 is longer than the three together",
       {{0, 1, 1}, {4, 5, 8}, {2, 1, 4}, {2, 3, 1}},
       {{0, 1, 1}, {4, 5, 8}, {2, 3, 1}, {2, 1, 4}}},
      {"the matchings are {4, 1}, {3, 4} and {3}: at some price every order of whole matchings is "
       "late, and an order in time separates the 4 and 1, or the 3 and 4",
       {{0, 4, 4}, {4, 3, 1}, {0, 1, 3}, {2, 3, 4}, {4, 1, 3}},
       {{0, 4, 4}, {2, 3, 4}, {4, 1, 3}, {4, 3, 1}, {0, 1, 3}}},
      {"the messages of length 1 from ranks 2 and 0 are of one matching but must be apart, because "
       "rank 2 sends 3 in all",
       {{2, 3, 2}, {3, 2, 2}, {2, 1, 1}, {1, 3, 3}, {0, 2, 1}, {3, 1, 1}},
       {{1, 3, 3}, {2, 1, 1}, {2, 3, 2}, {3, 2, 2}, {0, 2, 1}, {3, 1, 1}}},
      {"on one port, at a price of blocks + 1, every order takes 8 and the bound is 7; on two "
       "ports "
       "a better order takes the bound of 4",
       {{1, 0, 1}, {3, 4, 2}, {5, 1, 3}, {3, 0, 1}, {5, 0, 2}, {1, 4, 3}},
       {{1, 4, 3}, {5, 0, 2}, {5, 1, 3}, {3, 0, 1}, {3, 4, 2}, {1, 0, 1}}},
      {"on one port, at a price of blocks + 1, the bound is 6 and every order takes 7; in all "
       "other "
       "cases the stated order is in time",
       {{1, 5, 1}, {4, 3, 1}, {0, 3, 2}, {2, 5, 1}, {2, 1, 2}, {1, 0, 3}, {0, 5, 1}},
       {{1, 5, 1}, {4, 3, 1}, {0, 3, 2}, {2, 5, 1}, {2, 1, 2}, {1, 0, 3}, {0, 5, 1}}},
  };
  for (const auto& c : cases) EXPECT_EQ(in_time(c.stated), c.expected) << c.why;
  // The lengths of rank 0's messages on two ports: an order that is in time stays; else the first
  // order that is in time, with the first messages in place as far as possible.
  const std::pair<std::vector<int>, std::vector<int>> of_rank_0[] = {
      {{3, 2, 1}, {3, 2, 1}}, {{2, 2, 2}, {2, 2, 2}},       {{2, 2, 3}, {2, 3, 2}},
      {{1, 2, 3}, {1, 3, 2}}, {{1, 1, 2, 2}, {1, 2, 2, 1}},
  };
  for (const auto& [given, expected] : of_rank_0) {
    EXPECT_EQ(lengths(in_time(stated(given))), expected);
  }
}

// A switch's transfer takes ports of many ranks, so its round stays as it is. Local work takes no
// port. A rotation-symmetric schedule stays one.
TEST(InTime, LeavesSwitchesAloneAndKeepsSymmetry) {
  const auto three = [](Send send) {
    send(0, 1, blocks(0, 2), copy);
    send(0, 2, blocks(0, 2), copy);
    send(0, 3, blocks(0, 3), copy);
  };
  const Schedule with_switch{4, 4, 1, [three](int, Send send) {
                               three(send);
                               send(1, ranks_from(2, 2), block(0), copy);
                             }};
  EXPECT_EQ(lengths(in_time(with_switch)), (std::vector<int>{2, 2, 3}));
  const Schedule with_work{4, 4, 1, [three](int, Send send) {
                             send(0, 0, blocks(0, 1), copy);
                             three(send);
                           }};
  EXPECT_EQ(lengths(in_time(with_work)), (std::vector<int>{1, 2, 3, 2}));
  const Schedule part{5, 5, 1, [three](int, Send send) { three(send); }};
  const Schedule all = in_time(rotation_symmetric(part, Moves::with_rank));
  ASSERT_NE(symmetry_of(all), nullptr);
  EXPECT_EQ(lengths(all), (std::vector<int>{2, 3, 2}));
  EXPECT_EQ(lengths(symmetry_of(all)->part()), (std::vector<int>{2, 3, 2}));
}

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

// Only the order of a round's transfers changes: the longest come first. A switch's transfer has
// more than two ends, so its round stays as it is.
TEST(EdgeColours, OrderARound) {
  using Order = std::vector<std::pair<Rank, Rank>>;
  const auto order = [](const Schedule& stated) {
    Order out;
    for_each_transfer(coloured(stated), 0,
                      [&](const Transfer& t) { out.emplace_back(t.from.front(), t.to.front()); });
    return out;
  };
  EXPECT_EQ(order({3, 4, 1,
                   [](int, Send send) {
                     send(0, 1, block(0), copy);
                     send(0, 2, blocks(0, 2), copy);
                     send(1, 2, block(1), copy);
                     send(1, 0, block(1), copy);
                   }}),
            (Order{{0, 2}, {0, 1}, {1, 2}, {1, 0}}));
  EXPECT_EQ(order({3, 3, 1,
                   [](int, Send send) {
                     send(0, 1, block(0), copy);
                     send(1, ranks_from(2, 2), blocks(0, 3), copy);
                   }}),
            (Order{{0, 1}, {1, 2}}));
}

}  // namespace
}  // namespace rankine
