#include "engine/read/verify.h"
#include "algorithms/catalogue.h"
#include "algorithms/direct.h"
#include "algorithms/exchange.h"
#include "algorithms/ring.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/torus.h"
#include "engine/network/simulate.h"
#include "engine/read/contributions.h"
#include "engine/read/count.h"
#include "tests/budget.h"
#include "tests/engine/read/listed.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using Pool = ContributionPool;

Pool::Set set_of(Pool& pool, const std::vector<Rank>& ranks) {
  Pool::Set out = Pool::kEmpty;
  for (const Rank r : ranks) out = pool.sum(out, pool.of(r));
  return out;
}

TEST(Contributions, Texts) {
  Pool pool(10);
  EXPECT_EQ(pool.to_string(Pool::kEmpty), "{}");
  EXPECT_EQ(pool.to_string(set_of(pool, {0, 1, 2, 3, 6, 8, 9})), "{0..3, 6, 8, 9}");
  EXPECT_EQ(pool.common(set_of(pool, {0, 1, 5}), set_of(pool, {1, 5, 7})), "{1, 5}");
}

// Compares Contributions with std::set. Ranks lie on both sides of word borders. Some sets have
// enough ranks that a few intervals take fewer words than bits.
TEST(Contributions, BehaveLikeSets) {
  std::mt19937 random(20090201);
  for (const int ranks : {1, 2, 3, 7, 63, 64, 65, 128, 130, 1000}) {
    Pool pool(ranks);
    std::map<std::set<Rank>, Pool::Set> known;  // one number for each set
    std::vector<std::pair<std::set<Rank>, Pool::Set>> sets;
    for (Rank r = 0; r < ranks; ++r) sets.push_back({{r}, pool.of(r)});
    for (int i = 0; i < 1000; ++i) {
      const auto& [a, number_a] = sets[random() % sets.size()];
      const auto& [b, number_b] = sets[random() % sets.size()];
      std::set<Rank> both = a;
      both.insert(b.begin(), b.end());
      const bool overlap = both.size() < a.size() + b.size();
      const Pool::Set united = pool.united(number_a, number_b);
      EXPECT_EQ(pool.sum(number_a, number_b), overlap ? Pool::kOverlap : united);
      EXPECT_EQ(pool.members(united), std::vector<Rank>(both.begin(), both.end()));
      const auto [at, is_new] = known.insert({both, united});
      EXPECT_EQ(at->second, united);
      const int by = static_cast<int>(random() % static_cast<unsigned>(ranks));
      std::set<Rank> turned;
      for (const Rank r : both) turned.insert((r + by) % ranks);
      EXPECT_EQ(pool.members(pool.rotated(united, Rotation({ranks}, 1, Moves::nothing), by)),
                std::vector<Rank>(turned.begin(), turned.end()));
      if (both.size() <= static_cast<std::size_t>(ranks) / 2 && sets.size() < 2000) {
        sets.push_back({both, united});
      }
    }
  }
}

// The intersection of two sets, of few intervals and of many, in every representation.
TEST(Contributions, WhatTwoHaveInCommon) {
  Pool pool(1000);
  Pool::Set odd = Pool::kEmpty;
  for (Rank r = 1; r < 1000; r += 2) odd = pool.sum(odd, pool.of(r));
  const Pool::Set few = pool.sum(pool.sum(pool.run(995, 10), pool.run(10, 3)), pool.run(100, 1));
  EXPECT_EQ(pool.common(odd, few), "{1, 3, 11, 995, 997, 999}");
  EXPECT_EQ(pool.common(few, pool.run(999, 12)), "{0..4, 10, 999}");
  EXPECT_EQ(pool.sum(odd, few), Pool::kOverlap);
}

Schedule crossing() {
  return {2, 3, 1, [](int, Send send) {
            for (Rank r : ranks(2)) {
              for (Block b = 0; b < 3; ++b) send(r, r + 1, block(b), reduce);
            }
          }};
}

std::string text_of(const std::optional<Violation>& violation) {
  return violation ? violation->text : "";
}

// Every all-reduce adds up in one order on all ranks, except lines with other_bits; and for these
// verify() finds different orders.
TEST(Verify, LinesWithOtherBitsAddUpInOtherWays) {
  for (const Algorithm& entry : catalogue()) {
    if (entry.other_bits.empty()) continue;
    EXPECT_EQ(entry.collective, Collective::all_reduce) << entry.name;
    bool differs = false;
    for (int n = 1; n <= 33 && !differs; ++n) {
      Params params{.ranks = n};
      if (entry.refusal(params)) continue;
      const Schedule schedule = entry.make(params);
      CollectiveSpec goal = goal_of(entry, params, schedule);
      EXPECT_FALSE(goal.same_bits) << entry.name;
      goal.same_bits = true;
      const auto violation = verify(schedule, goal);
      differs = violation && violation->kind == ViolationKind::other_order;
    }
    EXPECT_TRUE(differs) << entry.name;
  }
}

struct Broken {
  ViolationKind kind;
  int round;
  Rank rank;
  Block block;
  Schedule schedule;
  CollectiveSpec goal;
  const char* words;  // a part of the text
  VerifyOptions options{};
};

constexpr TransferKind kAdd = TransferKind::reduce;
Transfer add(Rank from, Rank to) { return transfer(from, to, block(0), kAdd); }
Transfer pass(Rank from, Rank to) { return transfer(from, to, block(0), copy); }
Transfer park(Rank from, Rank to) { return {from, to, block(0), block(0, 1), copy}; }
Schedule one(int ranks, Transfer t) { return listed(ranks, 1, {{std::move(t)}}); }
const TransferList kTwice = {{add(0, 1), add(1, 2), add(2, 0)}, {add(0, 1), add(1, 2), add(2, 0)}};
const Transfer kSpread = transfer(0, ranks_from(1, 2), block(0), copy);

// Every kind of violation, with its place.
TEST(Verify, NamesWhatIsWrongAndWhere) {
  using enum ViolationKind;
  using enum Collective;
  const RankSet both = ranks_from(0, 2), from_1 = ranks_from(1, 3);
  const CollectiveSpec two{all_reduce, 2, 1}, halves{all_reduce, 2, 2}, three{broadcast, 3, 1},
      sum{all_reduce, 3, 1};
  const CollectiveSpec to_0{Collective::reduce, 3, 1}, of_7{Collective::reduce, 7, 1},
      send{send_recv, 3, 1, 0, 1};
  Schedule phases = ring_all_gather(3);
  phases.phases = {{"first", 1}, {"second", 2}};
  const VerifyOptions few_states{.max_states = 15, .one_for_all = false},
      reads_first{.order = MessageOrder::receives_first};
  const VerifyOptions small{.mailbox_capacity = 2, .order = MessageOrder::sends_first};
  // clang-format off
  const Broken cases[] = {
      {bad_shape, -1, -1, -1, nothing(2, 1), {all_reduce, 3, 1}, "is for 2 ranks and 1 block, the goal for 3 and 1"},
      {bad_shape, -1, -1, -1, nothing(2, 3), {all_to_all, 2, 3}, "moves 4 blocks or a multiple; the schedule has 3"},
      {bad_shape, -1, -1, -1, nothing(2, 1), {broadcast, 2, 1, 2}, "root is 2 and its peer 0; ranks are 0 to 1"},
      {bad_shape, -1, -1, -1, phases, {all_gather, 3, 3}, "phases have 3 rounds together, the schedule 2"},
      {too_large, -1, -1, -1, ring_all_gather(4), {all_gather, 4, 4}, "take 16 states; allowed are 15", few_states},
      {bad_index, 0, 3, 0, one(3, pass(0, 3)), three, "invalid rank to receive; ranks are 0 to 2"},
      {bad_index, 0, -1, 0, one(3, pass(-1, 1)), three, "invalid rank to send; ranks are 0 to 2"},
      {bad_index, 0, 3, 0, one(3, transfer(0, from_1, block(0), copy)), three, "invalid rank to receive"},
      {bad_index, 0, 1, 1, one(3, transfer(0, 1, block(1), copy)), three, "invalid block; `what` may have 0 to 0"},
      {bad_index, 0, 1, 0, one(3, park(0, 1)), three, "`where` is on plane 1; the schedule's planes are 0 to 0"},
      {bad_sizes, 0, -1, -1, one(3, transfer(RankSet(), 1, block(0), copy)), three, "a transfer without sender"},
      {bad_sizes, 0, -1, -1, one(3, transfer(0, 1, blocks(0, 0), copy)), three, "a transfer without block"},
      {bad_sizes, 0, 1, 0, listed(2, 2, {{{0, 1, blocks(0, 2), block(0), kAdd}}}), halves, "2 blocks sent to 1 place"},
      {other_block, 0, 1, 1, listed(2, 2, {{{0, 1, block(0), block(1), kAdd}}}), halves, "sends block 0 to the place of block 1"},
      {many_to_copy, 0, 2, 0, one(3, transfer(both, 2, block(0), copy)), sum, "2 ranks are copied to it at once"},
      // Reads come before writes: the block reaches rank 1 one round too late to be sent on.
      {not_there, 0, 1, 0, listed(3, 1, {{pass(0, 1), pass(1, 2)}}), three, "is to be sent to rank 2 but holds nothing"},
      {not_there, 0, 0, 0, listed(2, 1, {{{0, 1, block(0, 1), block(0), kAdd}}}, 2), two, "(plane 1) is to be sent to rank 1"},
      {double_count, 1, 0, 0, listed(2, 1, {{add(0, 1)}, {add(1, 0)}}), two, "{0, 1} from rank 1 is added to {0}: {0} would be"},
      // A rank in both sets of a many-to-many transfer would add its block to itself.
      {double_count, 0, 0, 0, one(2, transfer(both, both, block(0), kAdd)), two, "{0} from rank 0 is added to {0}"},
      // Sets that are no intervals.
      {double_count, 1, 0, 0, listed(7, 1, {{add(2, 0), add(5, 0), add(3, 1), add(5, 1)}, {add(1, 0)}}), of_7,
       "{1, 3, 5} from rank 1 is added to {0, 2, 5}: {5} would be there twice"},
      {double_count, 1, 1, 0, listed(3, 1, kTwice), sum, "{0, 2} from rank 0 is added to {0, 1}: {0} would be there twice"},
      // A barrier may hear a rank twice, but each message must bring a new contribution.
      {redundant, 1, 1, 0, listed(2, 1, {{add(0, 1), add(1, 0)}, {add(0, 1)}}), {barrier, 2, 1}, "which has it already"},
      {two_copies, 1, 3, 0, listed(4, 1, {{pass(0, 1), pass(0, 2)}, {pass(1, 3), pass(2, 3)}}), {broadcast, 4, 1},
       "{0} from rank 2 is copied there, but another copy goes there in the same round"},
      {mixed_acts, 0, 2, 0, listed(3, 1, {{pass(0, 2), add(1, 2)}}), sum, "where a copy and a reduction meet in one round"},
      {redundant, 1, 2, 0, listed(3, 1, {{kSpread}, {pass(1, 2)}}), three, "{0} from rank 1 is copied there, but it is there already"},
      {redundant, 0, 0, 0, one(2, pass(0, 0)), two, "it is there already"},
      {dead, 0, 2, 0, one(3, kSpread), send, "the arrival {0} is neither sent on nor needed at the end"},
      {dead, 1, 1, 0, listed(3, 1, {{park(0, 1)}, {park(2, 1)}}, 2), to_0, "(plane 1) {2} from rank 2 overwrites {0}, which arrived in"},
      {wrong_result, -1, 0, 0, one(2, add(0, 1)), two, "ends with the contributions of {0}; needed are {0, 1}"},
      {wrong_result, -1, 1, 0, nothing(3, 1), send, "ends with the contributions of {}; needed are {0}"},
      // Swing: after two rounds rank 0 has (0 1) + (6 7), rank 1 has (0 1) + (2 3).
      {other_order, -1, 1, 0, swing_latency_all_reduce({8}), {all_reduce, 8, 1}, "in another way than at rank 0"},
      // Three messages of each pair in one round, both ways: more than a mailbox of two holds.
      {deadlock, 0, 0, -1, crossing(), {all_reduce, 2, 3}, "rank 0 waits to send to 1 (2 messages unread), rank 1 waits", small},
      {deadlock, 0, 0, -1, ring_all_gather(20), {all_gather, 20, 20}, "rank 0 waits to receive from 19, rank 19 waits", reads_first},
  };
  // clang-format on
  std::set<ViolationKind> seen;
  for (const Broken& c : cases) {
    const auto found = verify(c.schedule, c.goal, c.options);
    ASSERT_TRUE(found) << c.words;
    EXPECT_EQ(name_of(found->kind), name_of(c.kind)) << found->text;
    EXPECT_EQ(std::tuple(found->round, found->rank, found->block),
              std::tuple(c.round, c.rank, c.block))
        << found->text;
    EXPECT_NE(found->text.find(c.words), std::string::npos) << found->text;
    seen.insert(found->kind);
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kViolationKinds));
  EXPECT_EQ(text_of(verify(one(2, add(0, 1)), two)),
            "rank 0, block 0: ends with the contributions of {0}; needed are {0, 1}");
  EXPECT_EQ(text_of(verify(one(3, kSpread), send)),
            "round 0, rank 2, block 0: the arrival {0} is neither sent on nor needed at the end");
}

TEST(Verify, ProvesWhatIsRight) {
  using enum Collective;
  BlockSet apart = block(0);
  apart.list.append(IndexList(2));
  const Schedule in_runs =
      listed(2, 3, {{{0, 1, apart, blocks(0, 2, 2), copy}, transfer(0, 1, block(1), copy)}});
  const Schedule adds_parked =
      listed(2, 1,
             {{park(0, 1), park(1, 0)},
              {{0, 0, block(0, 1), block(0), kAdd}, {1, 1, block(0, 1), block(0), kAdd}}},
             2);
  const Schedule switched =
      listed(3, 1, {{transfer(ranks_from(1, 2), 0, block(0), kAdd)}, {kSpread}});
  const Schedule copied_twice = listed(3, 1, {{kSpread}, {pass(1, 2)}});
  CollectiveSpec any_order{all_reduce, 8, 1};
  any_order.same_bits = false;
  constexpr MessageOrder kSends = MessageOrder::sends_first;
  const CollectiveSpec three{all_reduce, 2, 3};
  const std::tuple<Schedule, CollectiveSpec, VerifyOptions> cases[] = {
      {in_runs, {broadcast, 2, 3}, {}},
      {listed(3, 1, kTwice), {barrier, 3, 1}, {}},
      {copied_twice, {broadcast, 3, 1}, {.economy = false}},
      {adds_parked, {all_reduce, 2, 1}, {}},
      {switched, {all_reduce, 3, 1}, {}},
      {swing_latency_all_reduce({8}), any_order, {}},
      {crossing(), three, {.progress = false, .mailbox_capacity = 2, .order = kSends}},
      {crossing(), three, {.mailbox_capacity = 3, .order = kSends}},
      {crossing(), three, {.mailbox_capacity = 1}},
      {crossing(), three, {.mailbox_capacity = 1, .order = MessageOrder::statement}},
  };
  for (const auto& [schedule, goal, options] : cases) {
    EXPECT_EQ(text_of(verify(schedule, goal, options)), "");
  }
  for (const Collective collective : all_collectives()) {
    EXPECT_EQ(text_of(verify(nothing(1, 1), {collective, 1, 1})), "") << name_of(collective);
  }
}

TEST(Verify, WhatAScheduleThrowsPassesThrough) {
  const Schedule broken = {2, 1, 1, [](int, Send) { throw std::logic_error("broken"); }};
  EXPECT_THROW(verify(broken, {Collective::all_reduce, 2, 1}), std::logic_error);
}

// One rank's part stands for all: readers find equal results in the part and in the whole schedule.

struct Case {
  const Algorithm* entry;
  Params params;
  Schedule schedule;
  CollectiveSpec goal;
  std::string name() const {
    return std::string(name_of(goal.collective)) + " " + std::string(entry->name) +
           " N=" + std::to_string(goal.ranks) + " P=" + std::to_string(params.segments) + " " +
           entry->text_of(params);
  }
};

// Entries of the catalogue in which every rank does the same, with few ranks and many.
template <class Visit>
void for_each_case(const std::vector<int>& ranks, const Visit& visit) {
  for (const Algorithm& entry : catalogue()) {
    for (const int n : ranks) {
      for (const int segments : {1, 3}) {
        for (const std::vector<int>& dims : {std::vector<int>{}, balanced_dims(n, 2)}) {
          Params params{.ranks = n, .segments = segments};
          params.dims = dims;
          params = entry.only_taken(params);
          if (segments > 1 && !entry.takes("segments")) continue;
          if (!dims.empty() && !entry.takes("dims")) continue;
          if (entry.refusal(params)) continue;
          Case one{&entry, params, entry.make(params), {}};
          one.goal = goal_of(entry, params, one.schedule);
          if (symmetry_for(one.schedule, one.goal) != nullptr) visit(one);
        }
      }
    }
  }
}

const std::vector<int> kRanks = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 25, 27, 36};

TEST(OneForAll, MuchOfTheCatalogueIsAlike) {
  std::set<std::string> alike;
  for_each_case({5, 6, 8}, [&](const Case& one) {
    alike.insert(std::string(name_of(one.goal.collective)) + " " + std::string(one.entry->name));
  });
  for (const char* name :
       {"all_gather ring", "reduce_scatter ring", "all_reduce ring", "all_gather ring_mirrored",
        "all_gather ring_shortest", "all_gather bruck", "all_to_all bruck", "all_gather direct",
        "reduce_scatter circulant", "all_reduce circulant", "all_to_all circulant",
        "all_gather pat", "barrier dissemination", "all_to_all pairwise", "all_reduce bucket",
        "all_gather trivance", "all_reduce bruck_ternary_latency"}) {
    EXPECT_EQ(alike.count(name), 1u) << name;
  }
  EXPECT_EQ(alike.count("all_reduce swing"), 0u);
}

TEST(OneForAll, Counts) {
  for_each_case(kRanks, [](const Case& one) {
    EXPECT_EQ(count(one.schedule), count(one.schedule, false)) << one.name();
  });
}

TEST(OneForAll, Proofs) {
  for_each_case(kRanks, [](const Case& one) {
    for (const MessageOrder order : {MessageOrder::sub_rounds, MessageOrder::sends_first,
                                     MessageOrder::receives_first, MessageOrder::statement}) {
      for (const bool same_bits : {false, true}) {
        CollectiveSpec goal = one.goal;
        goal.same_bits = same_bits;
        VerifyOptions options;
        options.order = order;
        options.mailbox_capacity = 2;
        const auto of_one = verify(one.schedule, goal, options);
        options.one_for_all = false;
        const auto of_all = verify(one.schedule, goal, options);
        ASSERT_EQ(of_one.has_value(), of_all.has_value())
            << one.name() << ": " << (of_one ? of_one->text : of_all->text);
        if (of_one) {
          EXPECT_EQ(name_of(of_one->kind), name_of(of_all->kind)) << one.name();
        }
      }
    }
  });
}

void expect_same(const Simulation& a, const Simulation& b, const std::string& name) {
  EXPECT_EQ(a.end, b.end) << name;
  EXPECT_EQ(a.rank_end, b.rank_end) << name;
  EXPECT_EQ(a.round_end, b.round_end) << name;
  EXPECT_EQ(a.ticks_per_second, b.ticks_per_second) << name;
  EXPECT_EQ(a.seconds, b.seconds) << name;
  EXPECT_EQ(a.rounds, b.rounds) << name;
  EXPECT_EQ(a.messages, b.messages) << name;
  EXPECT_EQ(a.sent, b.sent) << name;
  EXPECT_EQ(a.received, b.received) << name;
  EXPECT_EQ(a.reduced, b.reduced) << name;
  EXPECT_EQ(a.partners_max, b.partners_max) << name;
  EXPECT_EQ(a.targets_max, b.targets_max) << name;
  EXPECT_EQ(a.sources_max, b.sources_max) << name;
  EXPECT_EQ(a.send_ports_needed, b.send_ports_needed) << name;
  EXPECT_EQ(a.receive_ports_needed, b.receive_ports_needed) << name;
  ASSERT_EQ(a.traffic.size(), b.traffic.size()) << name;
  for (std::size_t k = 0; k < a.traffic.size(); ++k) {
    EXPECT_EQ(a.traffic[k].load, b.traffic[k].load) << name << " round " << k;
    EXPECT_EQ(a.traffic[k].largest, b.traffic[k].largest) << name << " round " << k;
    EXPECT_EQ(a.traffic[k].hops, b.traffic[k].hops) << name << " round " << k;
  }
}

TEST(OneForAll, Times) {
  const Sample sample("one for all", 5);
  std::uint64_t number = 0;
  for_each_case(kRanks, [&](const Case& one) {
    if (!sample.has(number++)) return;
    for (const int ports : {1, 2, 3, 0}) {  // 0: any number
      for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
        for (const bool ideal : {false, true}) {
          for (const std::uint64_t bytes :
               {std::uint64_t{3}, std::uint64_t{1000}, std::uint64_t{1} << 22}) {
            Fabric fabric = plain_regime().fabric;
            fabric.ports = std::max(1, ports);
            fabric.gamma = Rational(1, 1'000'000'000);
            SimulateOptions options{
                .sync = sync, .ideal_blocks = ideal, .unlimited_ports = ports == 0};
            const auto of_one = simulate(one.schedule, one.goal, fabric, bytes, options);
            options.one_for_all = false;
            const auto of_all = simulate(one.schedule, one.goal, fabric, bytes, options);
            ASSERT_TRUE(of_one.ok() && of_all.ok()) << one.name();
            expect_same(*of_one, *of_all, one.name());
          }
        }
      }
    }
  });
}

// On the rings of a schedule's rotation, all links of a direction carry equal loads.
TEST(OneForAll, TimesOnItsTorus) {
  int tori = 0;
  for_each_case(kRanks, [&tori](const Case& one) {
    const std::vector<int>& dims = symmetry_of(one.schedule)->rotation().dims();
    tori += dims.size() > 1 ? 1 : 0;
    for (const Routing routing : {Routing::minimal, Routing::one_way}) {
      for (const WiringKind kind : {WiringKind::ring, WiringKind::torus}) {
        Fabric fabric = plain_regime().fabric;
        fabric.ports = 0;
        fabric.alpha_hop = Rational(1, 10'000'000);
        fabric.wiring = {.kind = kind, .routing = routing};
        if (kind == WiringKind::torus) fabric.wiring.dims = dims;
        for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
          SimulateOptions options{.sync = sync, .ideal_blocks = true};
          const auto of_one = simulate(one.schedule, one.goal, fabric, 1000, options);
          options.one_for_all = false;
          const auto of_all = simulate(one.schedule, one.goal, fabric, 1000, options);
          ASSERT_EQ(of_one.ok(), of_all.ok()) << one.name();
          if (of_one.ok()) expect_same(*of_one, *of_all, one.name());
        }
      }
    }
  });
  EXPECT_GT(tori, 20);
}

// All ranks are simulated if the caller asks for each rank, or the network treats ranks
// differently.
TEST(OneForAll, NotWhereRanksDiffer) {
  const Schedule ring = ring_all_reduce(8);
  const CollectiveSpec goal{Collective::all_reduce, 8, 8};
  Fabric two_level = plain_regime().fabric;
  two_level.group = 4;
  two_level.between = two_level.link;
  two_level.between.alpha = two_level.link.alpha * 10;
  Fabric wired = plain_regime().fabric;  // a ring round a torus
  wired.wiring = {.kind = WiringKind::torus, .dims = {2, 4}};
  for (const Fabric& fabric : {two_level, wired}) {
    SimulateOptions options;
    const auto of_one = simulate(ring, goal, fabric, 8000, options);
    options.one_for_all = false;
    const auto of_all = simulate(ring, goal, fabric, 8000, options);
    ASSERT_TRUE(of_one.ok() && of_all.ok());
    expect_same(*of_one, *of_all, "ring");
  }
  SimulateOptions late;
  late.starts.assign(8, 0);
  late.starts[3] = 1000000;
  const auto delayed = simulate(ring, goal, plain_regime().fabric, 8000, late);
  const auto at_once = simulate(ring, goal, plain_regime().fabric, 8000);
  ASSERT_TRUE(delayed.ok() && at_once.ok());
  EXPECT_GT(delayed->end, at_once->end);
}

// A part that is wrong is found, as rank 0 sees it: a round too few, a block that has not arrived,
// a block twice, a contribution twice, other brackets on each rank.
TEST(OneForAll, WrongParts) {
  using enum ViolationKind;
  const CollectiveSpec gather{Collective::all_gather, 4, 4}, sum{Collective::all_reduce, 4, 1};
  const auto of_part = [](int blocks, int rounds, auto part, Moves moves) {
    return rotation_symmetric({4, blocks, rounds, part}, moves);
  };
  const auto in_turn = [](int k, Send send) {
    if (k == 0) return send(0, 0, block(0), block(0, 1), copy);
    send(0, 1, block(0, k), block(0, k + 1), copy);
  };
  const std::tuple<ViolationKind, Schedule, CollectiveSpec> cases[] = {
      {wrong_result,
       of_part(
           4, 2, [](int k, Send send) { send(0, 1, block(-k), copy); }, Moves::with_rank),
       gather},
      {not_there,
       of_part(
           4, 3, [](int k, Send send) { send(0, 1, block(-k - 1), copy); }, Moves::with_rank),
       gather},
      {redundant,
       of_part(
           4, 3, [](int, Send send) { send(0, 1, block(0), copy); }, Moves::with_rank),
       gather},
      {double_count,
       of_part(
           1, 3, [](int k, Send send) { send(0, k, block(0), reduce); }, Moves::nothing),
       sum},
      {wrong_result, rotation_symmetric({4, 1, 4, in_turn, {}, 5}, Moves::nothing), sum},
  };
  VerifyOptions all;
  all.one_for_all = false;
  for (const auto& [kind, schedule, goal] : cases) {
    const auto of_one = verify(schedule, goal), of_all = verify(schedule, goal, all);
    ASSERT_TRUE(of_one && of_all) << name_of(kind);
    EXPECT_EQ(name_of(of_one->kind), name_of(of_all->kind)) << of_one->text << "\n" << of_all->text;
    EXPECT_EQ(name_of(of_one->kind), name_of(kind)) << of_one->text;
  }
}

TEST(OneForAll, AMillionRanks) {
  constexpr int kMany = 1'000'000;
  const Schedule ring = ring_all_reduce(kMany);
  const CollectiveSpec goal{Collective::all_reduce, kMany, kMany};
  const auto simulated =
      simulate(ring, goal, plain_regime().fabric, 64 * std::uint64_t{kMany}).value();
  EXPECT_EQ(simulated.messages, std::uint64_t{2} * (kMany - 1) * kMany);
  // 2 (N - 1) (alpha + beta M / N), of 1 us and 100 GB/s.
  EXPECT_EQ(simulated.seconds, 2.0 * (kMany - 1) * (1000 + 0.64) / 1e9);
  EXPECT_FALSE(verify(ring, goal));
  EXPECT_EQ(count(ring).busiest.sent, 2 * (kMany - 1));
}

// Blocks of two sizes on a ring, which would need a simulation of each message.
TEST(OneForAll, TooManyMessagesAreRefusedAtOnce) {
  constexpr int kMany = 1'000'000;
  Fabric shared = plain_regime().fabric;  // a round's loads count all its messages
  shared.wiring.kind = WiringKind::ring;
  const auto refused =
      simulate(ring_all_gather(kMany), {Collective::all_gather, kMany, kMany}, shared, 1 << 20);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(
      refused.status().text(),
      "ranks is 1000000: more than the limit of 17179869184 messages; one rank stands for all "
      "where links are alike or those of its torus and, if messages share links or ranks are "
      "on a torus, the blocks are of one size (bytes a multiple of 1000000, or ideal blocks)");
}

// A block with one byte more keeps it all the way round, so in each round some rank waits for one.
TEST(OneForAll, BlocksOfTwoSizesAmongManyRanks) {
  constexpr int kMany = 100'003;
  const Fabric fabric = plain_regime().fabric;
  const std::uint64_t bytes = std::uint64_t{64} << 20;
  const auto all =
      simulate(ring_all_gather(kMany), {Collective::all_gather, kMany, kMany}, fabric, bytes)
          .value();
  const Rational block(Int128{bytes / kMany + 1}, 1);
  EXPECT_TRUE(Rational(all.end, all.ticks_per_second) ==
              Rational(kMany - 1) * (fabric.link.alpha + fabric.link.beta * block));
  EXPECT_EQ(all.messages, std::uint64_t{kMany} * (kMany - 1));
  EXPECT_EQ(all.rank_end.size(), std::size_t{kMany});
  EXPECT_EQ(std::accumulate(all.sent.begin(), all.sent.end(), std::int64_t{0}),
            static_cast<std::int64_t>(bytes) * (kMany - 1));
}

// The memory for the state of all ranks is known before the work, and too much is refused.
TEST(OneForAll, TooManyNotesAreRefusedAtOnce) {
  constexpr int kMany = 6'561;
  const Algorithm* entry = find_algorithm(Collective::all_reduce, "trivance");
  ASSERT_NE(entry, nullptr);
  Params params{.ranks = kMany};
  const Schedule schedule = entry->make(params);
  const CollectiveSpec goal = goal_of(*entry, params, schedule);
  SimulateOptions options{.most_bytes = std::uint64_t{128} << 20};
  const Fabric fabric = plain_regime().fabric;
  EXPECT_TRUE(simulate(schedule, goal, fabric, 1 << 20, options).ok());  // one rank stands for all
  options.one_for_all = false;
  const auto refused = simulate(schedule, goal, fabric, 1 << 20, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::out_of_memory);
  EXPECT_NE(refused.status().text().find("B or more; 128 MiB are allowed"), std::string::npos)
      << refused.status().text();
}

}  // namespace
}  // namespace rankine
