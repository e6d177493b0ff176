#include "algorithms/catalogue.h"
#include "algorithms/levels.h"
#include "algorithms/parameters.h"
#include "algorithms/pat.h"
#include "algorithms/ring.h"
#include "algorithms/shapes.h"
#include "algorithms/straggler.h"
#include "tests/algorithms/reference.h"
#include "tests/testing.h"

namespace rankine {
namespace {

// The closed forms of a line: its formulas, except those marked as computed.
std::vector<std::string_view> closed_forms(const Algorithm& entry) {
  std::vector<std::string_view> forms;
  for (const std::string_view form :
       {entry.rounds, entry.sent, entry.received, entry.send_ports, entry.receive_ports}) {
    if (form != kComputed) forms.push_back(form);
  }
  return forms;
}

std::string title(const Algorithm& entry) {
  return std::string(name_of(entry.collective)) + " " + std::string(entry.name);
}

TEST(Catalogue, EveryCollectiveHasAnAlgorithmForAnyNumberOfRanks) {
  for (const Collective c : all_collectives()) {
    int universal = 0;
    for (const Algorithm& entry : catalogue()) {
      universal += entry.collective == c && entry.allowed_when == "1" ? 1 : 0;
    }
    EXPECT_GT(universal, 0) << name_of(c);
  }
}

TEST(Catalogue, NamesAreUniqueAndPlain) {
  std::set<std::string> titles;
  for (const Algorithm& entry : catalogue()) {
    EXPECT_TRUE(titles.insert(title(entry)).second) << title(entry);
    EXPECT_EQ(entry.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"),
              std::string_view::npos)
        << entry.name;
    EXPECT_EQ(find_algorithm(entry.collective, entry.name), &entry);
  }
  EXPECT_EQ(find_algorithm(Collective::barrier, "ring"), nullptr);
  EXPECT_EQ(algorithm_names(Collective::scatter), "binomial, linear, chain, circulant, bine");
}

TEST(Catalogue, EveryLineIsComplete) {
  for (const Algorithm& entry : catalogue()) {
    SCOPED_TRACE(title(entry));
    EXPECT_FALSE(entry.citation.empty());
    EXPECT_FALSE(entry.summary.empty());
    EXPECT_LE(entry.summary.size(), 90u);
    EXPECT_EQ(entry.allowed_when == "1", entry.needs.empty());
    Params params{.ranks = 12};
    EXPECT_NO_THROW(evaluate(entry.allowed_when, params));
    for (const std::string_view formula : closed_forms(entry)) {
      EXPECT_NO_THROW(evaluate(formula, params)) << formula;
    }
  }
}

// Readers of schedules disagree about whether to count a round without transfers, and it would be
// drawn empty.
TEST(Catalogue, NoRoundIsEmpty) {
  for (const Algorithm& entry : catalogue()) {
    for (int n = 1; n <= 17; ++n) {
      const Params params = entry.only_taken({.ranks = n, .peer = n - 1});
      if (entry.refusal(params)) continue;
      const Schedule schedule = entry.make(params);
      for (int k = 0; k < schedule.rounds; ++k) {
        int transfers = 0;
        for_each_transfer(schedule, k, [&transfers](const Transfer&) { ++transfers; });
        EXPECT_GT(transfers, 0) << name_of(entry.collective) << " " << entry.name << ", N = " << n
                                << ", round " << k;
      }
    }
  }
}

// A line's formulas may use a letter only if the line takes the parameter.
TEST(Catalogue, FormulasUseWhatTheLineTakes) {
  for (const Algorithm& entry : catalogue()) {
    std::string all(entry.allowed_when);
    for (const std::string_view formula : closed_forms(entry)) all += " " + std::string(formula);
    EXPECT_EQ(all.find('P') != std::string::npos, entry.takes("segments")) << title(entry);
    EXPECT_EQ(all.find('G') != std::string::npos, entry.takes("group")) << title(entry);
    EXPECT_EQ(all.find('A') != std::string::npos, entry.takes("aggregation")) << title(entry);
    EXPECT_EQ(all.find('K') != std::string::npos, entry.takes("radix")) << title(entry);
    EXPECT_EQ(entry.rounds.find('S') != std::string::npos, entry.takes("skips")) << title(entry);
    EXPECT_EQ(all.find('L') != std::string::npos, entry.takes("levels")) << title(entry);
    EXPECT_EQ(all.find('H') != std::string::npos, entry.collective == Collective::send_recv);
  }
}

TEST(Refusal, NamesTheParameterItsValueAndWhatIsAllowed) {
  using enum Collective;
  const struct {
    Collective collective;
    const char* name;
    Params params;
    const char* text;  // behind the algorithm's name, before what is allowed
  } cases[] = {
      {all_reduce, "ring", {.ranks = 0}, "ranks is 0"},
      {all_reduce, "ring", {.ranks = 2000000}, "ranks is 2000000"},
      {broadcast, "chain", {.ranks = 4, .segments = 0}, "segments is 0"},
      {broadcast, "chain", {.ranks = 4, .root = 4}, "root is 4"},
      {broadcast, "chain", {.ranks = 4, .root = -1}, "root is -1"},
      {send_recv, "direct", {.ranks = 2, .peer = 2}, "peer is 2"},
      {all_reduce, "hierarchical", {.ranks = 4, .group = 5}, "group is 5"},
      {all_reduce, "hierarchical", {.ranks = 4, .group = -1}, "group is -1"},
      {all_reduce, "ring_2d", {.ranks = 7, .group = 3}, "ranks is 7, group is 3"},
      {all_gather, "pat", {.ranks = 8, .aggregation = 3}, "ranks is 8, aggregation is 3"},
      {all_gather, "pat", {.ranks = 8, .aggregation = 8}, "aggregation is 8"},
      {all_reduce, "recursive_doubling", {.ranks = 8, .radix = 9}, "radix is 9"},
      {all_reduce, "recursive_doubling", {.ranks = 8, .radix = 1}, "radix is 1"},
      {all_reduce,
       "hamiltonian_disjoint",
       {.ranks = 12, .dims = {2, 6}},
       "ranks is 12, dims is 2x6"},
      {all_reduce, "trivance", {.ranks = 12, .dims = {3, 5}}, "dims is 3x5"},
      {all_gather, "level_exchange", {.ranks = 10, .levels = {4}}, "ranks is 10"},
      {all_reduce, "ring", {.ranks = 4, .segments = 8}, "segments is 8, which it does not take"},
      {all_reduce,
       "hierarchical",
       {.ranks = 4, .root = 2, .levels = {2}},
       "root is 2, which it does not take"},
      {broadcast, "linear", {.ranks = 4, .dims = {2, 2}}, "dims is 2x2, which it does not take"},
      // Values that are allowed: the one that an algorithm always uses, and the ends of a range.
      {all_reduce, "ring", {.ranks = 4, .segments = 1}, nullptr},
      {all_reduce, "recursive_doubling", {.ranks = 8, .radix = 8}, nullptr},
      {all_reduce, "recursive_doubling", {.ranks = 1, .radix = 2}, nullptr},
      {all_gather, "level_exchange", {.ranks = 12, .levels = {2, 6}}, nullptr},
  };
  for (const auto& c : cases) {
    const std::string head = std::string(name_of(c.collective)) + " '" + c.name + "': ";
    const auto refusal = find_algorithm(c.collective, c.name)->refusal(c.params);
    EXPECT_EQ(refusal.has_value(), c.text != nullptr) << head << refusal.value_or("");
    if (c.text == nullptr || !refusal) continue;
    EXPECT_TRUE(refusal->starts_with(head + c.text)) << *refusal;
  }
}

TEST(Refusal, IsNothingWhereTheDefaultsAreTaken) {
  for (const Algorithm& entry : catalogue()) {
    for (int n = 1; n <= 200; ++n) {
      EXPECT_EQ(entry.refusal({.ranks = n}), std::nullopt) << title(entry) << " " << n;
    }
  }
}

TEST(Resolved, PutsDefaultsInPlaceOfZeros) {
  EXPECT_EQ(resolved({.ranks = 12}).group, 3);
  EXPECT_EQ(resolved({.ranks = 16}).group, 4);
  EXPECT_EQ(resolved({.ranks = 13}).group, 1);
  EXPECT_EQ(resolved({.ranks = 12, .group = 6}).group, 6);
  EXPECT_EQ(resolved({.ranks = 12}).aggregation, 8);
  EXPECT_EQ(resolved({.ranks = 16}).aggregation, 8);
  EXPECT_EQ(resolved({.ranks = 1}).aggregation, 1);
  EXPECT_EQ(resolved({.ranks = 12, .aggregation = 2}).aggregation, 2);
}

TEST(Resolved, IsWhatRuns) {
  for (const Algorithm& entry : catalogue()) {
    for (int n : {1, 2, 6, 12, 13}) {
      EXPECT_EQ(text_of(entry.make({.ranks = n})), text_of(entry.make(resolved({.ranks = n}))))
          << title(entry);
    }
  }
}

TEST(MiddleDivisor, IsTheOneNearestToTheSquareRoot) {
  for (int n = 1; n <= 500; ++n) {
    const int d = middle_divisor(n);
    EXPECT_EQ(n % d, 0);
    EXPECT_LE(d * d, n);
    for (int e = d + 1; e * e <= n; ++e) EXPECT_NE(n % e, 0) << n;
  }
}

TEST(BlocksPerM, CountsTheSendBufferOfAnAllToAll) {
  EXPECT_EQ(blocks_per_m({Collective::all_to_all, 4, 32, 0, 0}), 8);
  EXPECT_EQ(blocks_per_m({Collective::all_gather, 4, 4, 0, 0}), 4);
}

// The all-gathers of Open MPI, compared with Open MPI's own loops as one rank runs them.

using Message = std::tuple<Rank, Rank, Block>;  // from, to, block
using Messages = std::vector<std::multiset<Message>>;

Messages stated(const Schedule& s) {
  Messages out(static_cast<std::size_t>(s.rounds));
  for (int k = 0; k < s.rounds; ++k) {
    for_each_transfer(s, k, [&](const Transfer& t) {
      t.what.list.for_each([&](Block b) {
        out[static_cast<std::size_t>(k)].insert({t.from.front(), t.to.front(), b});
      });
    });
  }
  return out;
}

// Even ranks begin with the right neighbour, odd ranks with the left. The blocks received from a
// side lie two blocks further in each of its steps, and the next step sends them.
TEST(NeighbourExchange, IsOpenMpis) {
  for (int p = 2; p <= 40; p += 2) {
    Messages expected(static_cast<std::size_t>(p / 2));
    for (Rank rank = 0; rank < p; ++rank) {
      const bool even = rank % 2 == 0;
      const Rank neighbour[] = {even ? (rank + 1) % p : rank - 1,
                                even ? (rank - 1 + p) % p : (rank + 1) % p};
      int from[] = {even ? rank : rank - 1, even ? rank : rank - 1};
      const int offset[] = {even ? 2 : -2, even ? -2 : 2};
      expected[0].insert({rank, neighbour[0], rank});
      int send = even ? rank : rank - 1;
      for (int i = 1; i < p / 2; ++i) {
        const int side = i % 2;
        from[side] = ((from[side] + offset[side]) % p + p) % p;
        for (const int b : {send, send + 1}) {
          expected[static_cast<std::size_t>(i)].insert({rank, neighbour[side], b});
        }
        send = from[side];
      }
    }
    EXPECT_EQ(stated(neighbour_exchange_all_gather(p)), expected) << p;
  }
}

// In every step a rank sends all the blocks that it holds, one fewer if the distance is the lowest
// one bit of p or a zero bit above it ("ignored steps").
TEST(Sparbit, IsOpenMpis) {
  for (int p = 2; p <= 130; ++p) {
    const int steps = ceil_log2(p), last_ignored = __builtin_ctz(static_cast<unsigned>(p));
    const unsigned ignored = (~(static_cast<unsigned>(p) >> last_ignored) | 1u) << last_ignored;
    Messages expected(static_cast<std::size_t>(steps));
    int have = 1;
    for (int i = 0; i < steps; ++i) {
      const int distance = 1 << (steps - 1 - i);
      const bool exclusion =
          (static_cast<unsigned>(distance) & ignored) == static_cast<unsigned>(distance);
      for (int n = 0; n < have - (exclusion ? 1 : 0); ++n) {
        for (Rank rank = 0; rank < p; ++rank) {
          expected[static_cast<std::size_t>(i)].insert(
              {rank, (rank + distance) % p, ((rank - 2 * n * distance) % p + p) % p});
        }
      }
      have = 2 * have - (exclusion ? 1 : 0);
    }
    EXPECT_EQ(stated(sparbit_all_gather(p)), expected) << p;
  }
}

constexpr int kMost = 300;

std::set<Rank> interior(const Tree& tree) {
  std::set<Rank> out(tree.parent.begin(), tree.parent.end());
  out.erase(kNoParent);
  return out;
}

std::set<Rank> interior_in_both(const TreePair& trees) {
  const std::set<Rank> a = interior(trees.first), b = interior(trees.second);
  std::set<Rank> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.end()));
  return both;
}

// Descendants with lower ranks lie in a rank's left subtree.
TEST(InOrder, IsASearchTree) {
  for (int n = 1; n <= 100; ++n) {
    const Tree tree = in_order(n);
    for (Rank r = 0; r < n; ++r) {
      for (Rank low = r, up = tree.parent_of(r); up != kNoParent;
           low = up, up = tree.parent_of(up)) {
        EXPECT_EQ(r < up, low < up) << n;
      }
    }
  }
}

// The authors' definition for powers of two, in negabinary numbers: a rank receives in the round in
// which its u last digits, all equal, are left, from the rank with these digits inverted. Catches a
// wrong place of the root and a wrong half.
TEST(Bine, IsTheNegabinaryTreeForPowersOfTwo) {
  constexpr unsigned kOdd = 0xAAAAAAAA;  // the digits of odd places, which count negative
  for (int s = 0; s <= 10; ++s) {
    const Tree tree = bine(1 << s);
    for (int r = 1; r < 1 << s; ++r) {
      const unsigned digits = (static_cast<unsigned>(r) + kOdd) ^ kOdd;
      int u = 1;
      while (u < s && (digits >> u & 1) == (digits & 1)) ++u;
      const unsigned parent = ((digits ^ ((1u << u) - 1)) ^ kOdd) - kOdd;
      EXPECT_EQ(tree.parent_of(r), wrapped(static_cast<int>(parent), 1 << s));
      EXPECT_EQ(tree.when_of(r), s - u);
    }
  }
}

// ncclGetDtree, NCCL 2.4 to 2.27, for these numbers of ranks.
TEST(NcclTrees, AreNcclsTrees) {
  EXPECT_EQ(nccl_trees(4).first.parent, (std::vector<Rank>{-1, 2, 0, 2}));
  EXPECT_EQ(nccl_trees(4).second.parent, (std::vector<Rank>{1, 3, 1, -1}));
  EXPECT_EQ(nccl_trees(5).first.parent, (std::vector<Rank>{-1, 2, 4, 2, 0}));
  EXPECT_EQ(nccl_trees(5).second.parent, (std::vector<Rank>{1, -1, 3, 0, 3}));
  EXPECT_EQ(nccl_trees(8).first.parent, (std::vector<Rank>{-1, 2, 4, 2, 0, 6, 4, 6}));
}

TEST(NcclTrees, InteriorsAreDisjointForEvenNumbersOnly) {
  for (int n = 2; n <= kMost; ++n) {
    EXPECT_EQ(interior_in_both(nccl_trees(n)),
              n % 2 == 0 || n == 1 ? std::set<Rank>{} : std::set<Rank>{0})
        << n;
  }
}

TEST(ComplementaryTrees, InteriorsAreDisjointForEveryNumber) {
  for (int n = 1; n <= kMost; ++n) {
    EXPECT_EQ(interior_in_both(complementary_trees(n)), std::set<Rank>{}) << n;
    EXPECT_EQ(static_cast<int>(interior(complementary_trees(n).second).size()), n / 2);
  }
}

TEST(ToppedTrees, OnlyTheTopIsInteriorInBoth) {
  for (int n = 2; n <= kMost; ++n) {
    EXPECT_EQ(interior_in_both(topped_trees(n)), std::set<Rank>{0}) << n;
    EXPECT_EQ(interior_in_both(coloured_trees(n)), std::set<Rank>{0}) << n;
    EXPECT_EQ(coloured_trees(n).first.parent, topped_trees(n).first.parent);
    EXPECT_EQ(coloured_trees(n).second.parent, topped_trees(n).second.parent);
  }
}

// No rank sends twice or receives twice in rounds of one colour, so segments may follow one another
// every two rounds.
TEST(ColouredTrees, NeedOnePort) {
  for (int n = 2; n <= kMost; ++n) {
    const auto [first, second] = coloured_trees(n);
    std::set<std::pair<Rank, int>> sends, receives;
    for (const Tree& tree : {first, second}) {
      for (Rank r = 1; r < n; ++r) {
        const int colour = tree.when_of(r) % 2;
        EXPECT_TRUE(receives.insert({r, colour}).second) << n << ": " << r;
        EXPECT_TRUE(sends.insert({tree.parent_of(r), colour}).second) << n << ": " << r;
      }
    }
  }
}

// The paper's rounds for powers of two, and a few more for other numbers of ranks. Catches a rank
// that idles in a round, and work for the late rank before it arrives.
TEST(Straggler, NeedsThePapersRoundsAndNoLateRankBefore) {
  for (int p = 2; p <= 66; ++p) {
    const Schedule s = stragglar_all_reduce(p);
    const int after = s.rounds - (p - 2), least = p - 2 + ceil_log2(p);
    EXPECT_GE(after, least) << p;
    EXPECT_LE(after, is_power_of_two(p) ? least : least + p / 8 + 1) << p;
    if (p <= 33) {
      EXPECT_EQ(failure(s, {Collective::all_reduce, p, s.blocks}), "") << p;
    }
    for (int k = 0; k < p - 2; ++k) {
      for_each_transfer(s, k, [&](const Transfer& t) {
        EXPECT_NE(t.from.front(), p - 1);
        EXPECT_NE(t.to.front(), p - 1);
      });
    }
  }
  for (int p = 256; p <= 1024; p *= 2) {
    EXPECT_EQ(stragglar_all_reduce(p).rounds, 2 * p - 4 + ceil_log2(p));
  }
}

// With any slow rank; no rank sends or receives twice in a round, and in the steady state each rank
// of the ring does both in each. Catches a block that goes to another rank than its owner.
TEST(Straggler, LeavesNoPortOfTheRingIdle) {
  for (int p = 2; p <= 33; ++p) {
    const int segments = 3, period = 2 * p - 3;
    for (const Rank slow : {0, 1, p - 1}) {
      const Schedule s = optcc_all_reduce(p, slow, segments);
      EXPECT_EQ(failure(s, {Collective::all_reduce, p, s.blocks}), "") << p << ", " << slow;
      for (int k = 0; k < s.rounds; ++k) {
        std::set<Rank> sending, receiving;
        for_each_transfer(s, k, [&](const Transfer& t) {
          EXPECT_TRUE(sending.insert(t.from.front()).second);
          EXPECT_TRUE(receiving.insert(t.to.front()).second);
          EXPECT_EQ(t.what.list.size(), 1);
        });
        if (k < period || k >= segments * period) continue;
        for (std::set<Rank>* all : {&sending, &receiving}) {
          all->erase(slow);
          EXPECT_EQ(static_cast<int>(all->size()), p - 1) << p << ", round " << k;
        }
      }
    }
  }
}

TEST(DepthFirst, MeetsAParentBeforeItsChildrenAndASubtreeInOneGo) {
  EXPECT_EQ(depth_first(8), (std::vector<int>{4, 6, 7, 5, 2, 3, 1}));
  EXPECT_EQ(depth_first(1), std::vector<int>{});
  for (int d = 1; d <= 256; d *= 2) {
    const std::vector<int> order = depth_first(d);
    std::set<int> seen{0};
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int r = order[i], bit = r & -r;
      EXPECT_TRUE(seen.count(r - bit)) << r;
      EXPECT_TRUE(seen.insert(r).second);
      for (int j = 1; j < bit; ++j) {
        EXPECT_EQ(order[i + static_cast<std::size_t>(j)] & -bit, r) << "not below " << r;
      }
    }
    EXPECT_EQ(static_cast<int>(seen.size()), d);
  }
}

TEST(LevelTree, OfTwoPackagesWithTwoCachesOfTwoCores) {
  const Tree tree = level_tree(8, 5, {2, 4});
  EXPECT_EQ(tree.parent, (std::vector<Rank>{5, 0, 0, 2, 5, kNoParent, 5, 6}));
  EXPECT_EQ(tree.when, (std::vector<int>{0, 2, 1, 2, 2, -1, 1, 2}));
}

TEST(Levels, AreRefusedWithWhatIsAllowed) {
  EXPECT_EQ(levels_refusal({}, 1), std::nullopt);
  EXPECT_EQ(levels_refusal({2, 4, 8}, 8), std::nullopt);
  for (const std::vector<int>& wrong :
       {std::vector<int>{0}, {-1}, {9}, {4, 2}, {4, 4}, {2, 3}, {2, 16}}) {
    EXPECT_EQ(levels_refusal(wrong, 8), "levels is " + list_text(wrong, ',') +
                                            "; allowed are sizes of groups from 1 to 8, each a "
                                            "multiple of the one before, as in 4,16");
  }
}

}  // namespace
}  // namespace rankine
