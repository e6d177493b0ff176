// Tests of menus, statements, counts, drawings, golden drawings and the mailbox replay.

#include "engine/read/draw.h"
#include "algorithms/catalogue.h"
#include "algorithms/direct.h"
#include "algorithms/ring.h"
#include "engine/read/contributions.h"
#include "engine/read/count.h"
#include "tests/engine/read/listed.h"
#include "tests/testing.h"

// Menus: each line is in the catalogue, occurs once, and belongs to a collective that the menu
// serves.

namespace rankine {
namespace {

TEST(Menu, EveryLineIsOneOfTheCatalogue) {
  for (const Menu& menu : menus()) {
    std::set<std::pair<Collective, std::string>> seen;
    for (const Menu::Line& line : menu.lines) {
      std::istringstream names{std::string(line.algorithms)};
      for (std::string name; names >> name;) {
        const Algorithm* algorithm = find_algorithm(line.collective, name);
        ASSERT_NE(algorithm, nullptr) << menu.name << ": " << name;
        EXPECT_TRUE(menu.has(*algorithm));
        EXPECT_TRUE(seen.insert({line.collective, name}).second)
            << menu.name << ": " << name << " twice";
      }
    }
  }
}

TEST(Menu, AllHasAllAndTheOthersDoNot) {
  const auto has_all = [](const Menu& menu) {
    return std::all_of(catalogue().begin(), catalogue().end(),
                       [&](const Algorithm& entry) { return menu.has(entry); });
  };
  ASSERT_NE(find_menu("all"), nullptr);
  for (const Menu& menu : menus()) EXPECT_EQ(has_all(menu), menu.name == "all") << menu.name;
  EXPECT_EQ(find_menu("cray"), nullptr);
  EXPECT_EQ(find_menu("nccl")->name, "nccl");
}

// A library has algorithms for every collective, with these exceptions: NCCL has no barrier and no
// scans, UCC no scans and no send_recv, and the catalogue lacks MPICH's scans (recursive doubling
// by exchanges).
TEST(Menu, EveryCollectiveIsServed) {
  for (const Menu& menu : menus()) {
    for (const Collective collective : all_collectives()) {
      const bool served =
          std::any_of(catalogue().begin(), catalogue().end(), [&](const Algorithm& entry) {
            return entry.collective == collective && menu.has(entry);
          });
      const bool has_scans = menu.name == "all" || menu.name == "openmpi";
      const bool none = (menu.name == "nccl" && collective == Collective::barrier) ||
                        (menu.name == "ucc" && collective == Collective::send_recv) ||
                        (!has_scans && is_prefix(collective));
      EXPECT_EQ(served, !none) << menu.name << ", " << name_of(collective);
    }
  }
}

// Compares the ring all-reduce's line with one field replaced, at N = 4.
std::string compared(std::string_view Algorithm::*field, std::string_view formula) {
  Algorithm line = *find_algorithm(Collective::all_reduce, "ring");
  if (field != nullptr) line.*field = formula;
  Params params{.ranks = 4};
  const Schedule schedule = line.make(params);
  return compare_statement(line, params, goal_of(line, params, schedule), count(schedule))
      .value_or("");
}

TEST(Statement, NamesTheFieldThatDiffers) {
  const struct {
    std::string_view Algorithm::*field;
    const char *formula, *text;
  } cases[] = {
      {nullptr, "", ""},
      {&Algorithm::rounds, "N-1", "all_reduce 'ring' states rounds = N-1 = 3; the schedule has 6"},
      {&Algorithm::sent, "(N-1)/N",
       "all_reduce 'ring' states sent = (N-1)/N = 3/4 M; the schedule has 3/2 M"},
      {&Algorithm::received, "2",
       "all_reduce 'ring' states received = 2 = 2 M; the schedule has 3/2 M"},
      {&Algorithm::send_ports, "2",
       "all_reduce 'ring' states send_ports = 2 = 2; the schedule has 1"},
      {&Algorithm::receive_ports, "0",
       "all_reduce 'ring' states receive_ports = 0 = 0; the schedule has 1"},
  };
  for (const auto& c : cases) EXPECT_EQ(compared(c.field, c.formula), c.text);
  EXPECT_THROW(compared(&Algorithm::sent, "N*"), std::logic_error);
}

// A multicast counts once for its sender and once for each receiver, an ALU's sum once for each
// sender and once for its receiver.
TEST(Count, TransfersOfSeveralRanks) {
  const auto counted = [](const Transfer& t) { return count(listed(4, 2, {{t}})); };
  const Counts multicast = counted(transfer(1, ranks_from(2, 2), blocks(0, 2), copy));
  EXPECT_EQ(multicast.ranks[1],
            (RankCounts{.sent = 2, .messages_sent = 1, .partners = 2, .send_ports = 1}));
  EXPECT_EQ(multicast.ranks[2],
            (RankCounts{.received = 2, .messages_received = 1, .partners = 1, .receive_ports = 1}));
  EXPECT_EQ(multicast.ranks[0], RankCounts{});
  EXPECT_EQ(multicast.total.received, 4);
  const Counts alu = counted(transfer(ranks_from(1, 3), 0, block(0), reduce));
  EXPECT_EQ(alu.ranks[3],
            (RankCounts{.sent = 1, .messages_sent = 1, .partners = 1, .send_ports = 1}));
  EXPECT_EQ(
      alu.ranks[0],
      (RankCounts{
          .received = 1, .reduced = 1, .messages_received = 1, .partners = 3, .receive_ports = 1}));
  const Counts all = counted(transfer(ranks_from(0, 4), ranks_from(0, 4), block(0), reduce));
  for (const RankCounts& rank : all.ranks)
    EXPECT_EQ(std::tuple(rank.sent, rank.received, rank.partners), std::tuple(1, 1, 3));
}

TEST(Count, WhatStaysWithARankIsNoMessage) {
  const Counts counts = count(listed(
      2, 1, {{{0, 1, block(0), block(0, 1), copy}}, {{1, 1, block(0, 1), block(0), reduce}}}, 2));
  EXPECT_EQ(counts.rounds, 1) << "the last round has no message";
  EXPECT_EQ(counts.ranks[1].received, 1);
  EXPECT_EQ(counts.ranks[1].reduced, 1) << "it adds up all the same";
  EXPECT_EQ(counts.ranks[1].sent, 0);
  EXPECT_EQ(counts.ranks[1].local, 1);
  EXPECT_EQ(counts.ranks[1].partners, 1);
}

TEST(Count, PortsAreTheMostOfOneRound) {
  const auto pass = [](Rank from, Rank to) { return transfer(from, to, block(0), copy); };
  const Counts counts = count(listed(
      4, 1,
      {{pass(0, 1), pass(0, 2)}, {pass(0, 3)}, {}, {pass(1, 0), pass(2, 0), pass(3, 0)}, {}}));
  EXPECT_EQ(counts.rounds, 3) << "a round without a message takes no time";
  EXPECT_EQ(counts.ranks[0].send_ports, 2);
  EXPECT_EQ(counts.ranks[0].receive_ports, 3);
  EXPECT_EQ(counts.ranks[0].messages_sent, 3);
  EXPECT_EQ(counts.ranks[0].partners, 3);
}

// Single rules of drawings; golden files hold whole drawings.

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(Draw, SumsAreSetsOfRanks) {
  const auto add = [](std::vector<Rank> from, Rank to) {
    RankSet set;
    for (const Rank r : from) set.append(IndexList(r));
    return transfer(set, to, block(0), reduce);
  };
  const CollectiveSpec goal = {Collective::all_reduce, 8, 1};
  const std::string text = draw(
      listed(8, 1, {{add({3}, 0), add({2, 3}, 1), add({6, 7}, 0), add({4, 6}, 2), add({0}, 7)}}),
      goal);
  EXPECT_TRUE(has_line(text, "  rank 0  0        | *0+3+6+7")) << text;
  EXPECT_TRUE(has_line(text, "  rank 1  1        | *1..3")) << text;
  EXPECT_TRUE(has_line(text, "  rank 2  2        | *2..6/2")) << text;
  EXPECT_TRUE(has_line(text, "  rank 7  7        | *7+0")) << text;
  EXPECT_TRUE(has_line(text, "  rank 3  3        |  3")) << text;
}

TEST(Draw, ArrowsOfAKindAreOne) {
  const CollectiveSpec goal = {Collective::all_reduce, 4, 1};
  const auto first_round = [&](std::vector<Transfer> transfers) {
    const std::string text = draw(listed(4, 1, {std::move(transfers)}), goal);
    const std::size_t at = text.find("round 0   ") + 10;
    return text.substr(at, text.find('\n', at) - at);
  };
  const auto one = [](Rank from, Rank to, TransferKind kind) {
    return transfer(from, to, block(0), kind);
  };
  EXPECT_EQ(first_round({one(0, 1, copy), one(0, 2, copy), one(0, 3, copy)}), "0 -0-> 1..3");
  EXPECT_EQ(first_round({one(1, 0, reduce), one(3, 0, reduce)}), "1,3 -+0-> 0");
  EXPECT_EQ(first_round({one(3, 1, reduce), one(0, 2, reduce), one(2, 0, reduce)}),
            "0 <-+0-> 2   3 -+0-> 1");
  EXPECT_EQ(first_round({transfer(0, ranks_from(1, 3), block(0), copy)}), "0 =0=> 1..3");
  EXPECT_EQ(first_round({transfer(ranks_from(1, 3), 0, block(0), reduce)}), "1..3 =+0=> 0");
  EXPECT_EQ(first_round({}), "nothing");
}

TEST(Draw, PlanesAndLocalWork) {
  const Schedule schedule = {3,
                             1,
                             2,
                             [](int k, Send send) {
                               for (Rank r : ranks(3)) {
                                 if (k == 0) send(r, r + 1, block(0), block(0, 1), copy);
                                 if (k == 1) send(r, r, block(0, 1), block(0), reduce);
                               }
                             },
                             {},
                             2};
  const std::string text = draw(schedule, {Collective::all_reduce, 3, 1});
  EXPECT_TRUE(has_line(text, "  round 0   0 -0:0'-> 1   1 -0:0'-> 2   2 -0:0'-> 0")) << text;
  EXPECT_TRUE(has_line(text, "  round 1   at 0..2: 0 += 0'")) << text;
  EXPECT_TRUE(has_line(text, "  rank 0  0    .    |  0   *2    | *2+0  2")) << text;
}

TEST(Draw, KeepsToTheWidthAndLeavesNoSpacesBehind) {
  for (const Algorithm& entry : catalogue()) {
    for (const int n : {1, 2, 4, 5, 8}) {
      Params params{.ranks = n, .segments = entry.takes("segments") ? 2 : 1};
      if (entry.refusal(params)) continue;
      const Schedule schedule = entry.make(params);
      const CollectiveSpec goal = goal_of(entry, params, schedule);
      DrawOptions options;
      options.width = 120;
      std::istringstream text(draw(schedule, goal, options));
      for (std::string row; std::getline(text, row);) {
        EXPECT_FALSE(row.ends_with(' ')) << entry.name << " N=" << n << ": '" << row << "'";
        EXPECT_LE(row.size(), 120u) << name_of(entry.collective) << " " << entry.name << " N=" << n;
      }
    }
  }
}

TEST(Draw, ColourChangesNothingElse) {
  const CollectiveSpec goal = {Collective::all_reduce, 5, 5};
  const Schedule schedule = ring_all_reduce(5);
  const std::string plain = draw(schedule, goal);
  DrawOptions options;
  options.colour = true;
  std::string coloured = draw(schedule, goal, options), uncoloured;
  EXPECT_NE(coloured, plain);
  for (std::size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b') {
      i = coloured.find('m', i);
    } else {
      uncoloured += coloured[i];
    }
  }
  EXPECT_EQ(uncoloured, plain);
  EXPECT_NE(draw(schedule, goal, {.utf8 = true}).find("0 ─+1→ 4"), std::string::npos);
}

TEST(ViewRounds, ForMachines) {
  const std::vector<RoundView> views =
      view_rounds(direct_all_reduce_two_shot(3), {Collective::all_reduce, 3, 3});
  ASSERT_EQ(views.size(), 3u);
  EXPECT_EQ(views[0].round, -1);
  EXPECT_TRUE(views[0].transfers.empty());
  EXPECT_EQ(views[1].phase, "reduce-scatter");
  EXPECT_EQ(views[2].phase, "all-gather");
  ASSERT_EQ(views[1].transfers.size(), 6u);
  EXPECT_EQ(views[1].transfers[0].from, std::vector<Rank>{1});
  EXPECT_EQ(views[1].transfers[0].to, std::vector<Rank>{0});
  EXPECT_EQ(views[1].transfers[0].kind, TransferKind::reduce);
  ASSERT_EQ(views[1].ranks.size(), 3u);
  ASSERT_EQ(views[1].ranks[0].size(), 3u);
  const HoldingView& mine = views[1].ranks[0][0];
  EXPECT_EQ(mine.contributions, (std::vector<Rank>{0, 1, 2}));
  EXPECT_TRUE(mine.complete && mine.needed && mine.written);
  const HoldingView& other = views[1].ranks[0][1];
  EXPECT_EQ(other.contributions, std::vector<Rank>{0});
  EXPECT_FALSE(other.complete || other.written);
}

// Compares drawings of the papers' main algorithms with a checked-in text, so that a change of
// meaning is a readable difference. The verifier proves every algorithm; the drawings show the
// schedules behind the proofs.
//
// To write the file anew, or with a new drawing after
// `echo "# COLLECTIVE ALGORITHM RANKS" >>tests/golden/drawings.txt`:
//   export RANKINE_TEST_GOLDEN_OUT=$PWD/tests/golden/drawings.txt
//   third_party/bazel run //tests/engine/read:read_test -- --gtest_filter=Golden.*

// Draws a root other than 0 and two segments, so that rotation and pipelining show.
std::string drawing(const Algorithm& algorithm, int ranks) {
  Params params{.ranks = ranks,
                .root = has_root(algorithm.collective) ? 1 : 0,
                .segments = algorithm.takes("segments") ? 2 : 1};
  const Schedule schedule = algorithm.make(params);
  return draw(schedule, goal_of(algorithm, params, schedule)) + "\n";
}

// A line "# COLLECTIVE ALGORITHM RANKS" begins each drawing.
TEST(Golden, DrawingsAreAsChecked) {
  const char* out = std::getenv("RANKINE_TEST_GOLDEN_OUT");
  const std::string golden = out == nullptr ? "tests/golden/drawings.txt" : out;
  std::ifstream file(golden);
  std::string checked, text;
  int drawn = 0;
  for (std::string line; std::getline(file, line); checked += line + "\n") {
    if (!line.starts_with("# ")) continue;
    std::istringstream words(line.substr(2));
    std::string collective, name;
    int ranks = 0;
    words >> collective >> name >> ranks;
    const Algorithm* algorithm = find_algorithm(*parse_collective(collective), name);
    ASSERT_NE(algorithm, nullptr) << golden << ": " << line;
    text += line + "\n" + drawing(*algorithm, ranks);
    ++drawn;
  }
  if (out != nullptr) {
    std::ofstream(golden) << text;
  } else {
    EXPECT_EQ(checked, text) << golden;
  }
  EXPECT_GE(drawn, 25);
}

using Messages = std::vector<std::pair<Rank, Rank>>;

bool runs_through(int ranks, int capacity, MessageOrder order, const Messages& messages) {
  MailboxReplay replay(ranks, capacity, order);
  for (const auto& [from, to] : messages) replay.add(from, to);
  return !replay.end_round();
}

TEST(MailboxReplay, NamesTheCircleAndNotWhoeverWaitsForIt) {
  MailboxReplay replay(4, 1, MessageOrder::sends_first);
  for (const auto& [from, to] : Messages{{0, 1}, {0, 1}, {1, 2}, {1, 2}, {2, 1}, {2, 1}}) {
    replay.add(from, to);
  }
  const auto circle = replay.end_round();
  ASSERT_TRUE(circle);
  EXPECT_EQ(circle->rank, 1);
  EXPECT_EQ(circle->text,
            "rank 1 waits to send to 2 (1 messages unread), rank 2 waits to send to 1 (1 messages "
            "unread)");
}

// No round can stop two of the orders; the third never stops if the capacity holds all messages of
// a pair.
TEST(MailboxReplay, RandomRounds) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 2000; ++trial) {
    const int ranks = 2 + static_cast<int>(random() % 6);
    const int capacity = 1 + static_cast<int>(random() % 3);
    Messages messages;
    std::map<std::pair<Rank, Rank>, int> of_pair;
    int most = 0;
    for (int i = 0; i < 30; ++i) {
      const Rank from = static_cast<Rank>(random() % static_cast<unsigned>(ranks));
      const Rank to = static_cast<Rank>(random() % static_cast<unsigned>(ranks));
      if (from == to) continue;
      messages.push_back({from, to});
      most = std::max(most, ++of_pair[{from, to}]);
    }
    EXPECT_TRUE(runs_through(ranks, capacity, MessageOrder::sub_rounds, messages));
    EXPECT_TRUE(runs_through(ranks, capacity, MessageOrder::statement, messages));
    EXPECT_TRUE(runs_through(ranks, std::max(1, most), MessageOrder::sends_first, messages));
  }
}

}  // namespace
}  // namespace rankine
