// The simulator, compared exactly with closed forms, and with cases small enough to work out by
// hand.
#include "engine/network/simulate.h"

#include "algorithms/catalogue.h"
#include "algorithms/formula.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "engine/read/count.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using enum Collective;

constexpr Collective kReduce = Collective::reduce;
const Rational kAlpha(7, 3'000'000), kBeta(1, 11'000'000'000);
constexpr std::int64_t kM = 1'000'003;  // a prime: no block size divides it

Fabric fabric_with_ports(int ports) {
  Fabric fabric;
  fabric.ports = ports;
  fabric.link = {kAlpha, kBeta};
  return fabric;
}

Fabric all_able_fabric(int ports) {
  Fabric fabric = fabric_with_ports(ports);
  fabric.multicast = fabric.alu = true;
  fabric.alpha_switch = Rational(1, 7'000'000);
  return fabric;
}

Fabric permuting_fabric(int ports) {
  Fabric fabric = fabric_with_ports(ports);
  fabric.permute = true;
  return fabric;
}

struct Question {
  Collective collective = all_reduce;
  const char* algorithm = "ring";
  Params params{};
  Fabric fabric = fabric_with_ports(1);
  SimulateOptions options{.ideal_blocks = true};
  std::uint64_t bytes = kM;
};

Simulation simulated(const Question& setup) {
  const Algorithm* entry = find_algorithm(setup.collective, setup.algorithm);
  EXPECT_NE(entry, nullptr) << setup.algorithm;
  const Schedule schedule = entry->make(setup.params);
  auto result = simulate(schedule, goal_of(*entry, setup.params, schedule), setup.fabric,
                         setup.bytes, setup.options);
  EXPECT_TRUE(result.ok()) << setup.algorithm << ": " << result.status().text();
  return result.ok() ? std::move(*result) : Simulation{};
}

Rational exact(const Simulation& result) { return {result.end, result.ticks_per_second}; }

// a alpha + b M beta
Rational cost(Rational a, Rational b) { return a * kAlpha + b * Rational(kM) * kBeta; }

// Checks the time to the last tick, and its double: the nearest one to the exact time.
void expect_time(const Simulation& result, const Rational& time, const std::string& what) {
  EXPECT_TRUE(exact(result) == time)
      << what << ": " << exact(result).to_string() << ", expected " << time.to_string();
  EXPECT_EQ(result.seconds, time.to_double()) << what;
}

constexpr Sync kBoth[] = {Sync::dataflow, Sync::rounds};

// --- Closed forms

// An algorithm with one port in which every rank does the same takes its stated rounds and bytes.
TEST(ClosedForm, OfTheCatalogueIsTheTime) {
  int compared = 0;
  for (const Algorithm& entry : catalogue()) {
    for (const int n : {2, 3, 4, 5, 8, 12, 16, 33}) {
      const Params params = entry.only_taken({.ranks = n});
      if (entry.refusal(params) || entry.sent == kComputed || entry.rounds == kComputed) continue;
      if (entry.send_ports == kComputed) continue;
      if (evaluate(entry.send_ports, params) != 1) continue;
      const Schedule schedule = entry.make(params);
      const CollectiveSpec goal = goal_of(entry, params, schedule);
      if (entry.collective == barrier || symmetry_for(schedule, goal) == nullptr) continue;
      for (const Sync sync : kBoth) {
        const auto result = simulate(schedule, goal, fabric_with_ports(1), kM, {sync, true});
        ASSERT_TRUE(result.ok()) << entry.name;
        expect_time(*result, cost(evaluate(entry.rounds, params), evaluate(entry.sent, params)),
                    std::string(name_of(entry.collective)) + " " + std::string(entry.name) +
                        ", N = " + std::to_string(n));
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 100);
}

// Times in alphas and in M beta, of algorithms in which ranks differ.
TEST(ClosedForm, OfAlgorithmsWhoseRanksDiffer) {
  struct Form {
    Question setup;
    Rational alphas, m_betas;
  };
  std::vector<Form> forms;
  const auto add = [&](Question setup, std::initializer_list<Sync> syncs, Rational alphas,
                       Rational m_betas) {
    for (const Sync sync : syncs) {
      setup.options.sync = sync;
      forms.push_back({setup, alphas, m_betas});
    }
  };
  constexpr Sync kData = Sync::dataflow, kRounds = Sync::rounds;
  // The master formula of pipelining.
  for (const int n : {2, 3, 5, 8, 17}) {
    for (const int p : {1, 2, 3, 10, 64}) {
      for (const Collective c : {broadcast, kReduce}) {
        add({c, "chain", {.ranks = n, .root = n / 3, .segments = p}}, {kData, kRounds}, n + p - 2,
            Rational(n + p - 2, p));
      }
    }
  }
  for (const int n : {2, 3, 4, 6, 8, 9, 31, 33}) {
    const int l = ceil_log2(n);
    for (const char* name : {"binomial_near", "binomial_far"})
      add({broadcast, name, {.ranks = n}}, {kRounds}, l, l);
  }
  for (const int n : {2, 4, 8, 16, 32}) {
    const int l = floor_log2(n);
    const Params params{.ranks = n};
    add({all_reduce, "recursive_doubling", params}, {kData, kRounds}, l, l);
    add({all_reduce, "halving_doubling", params}, {kData, kRounds}, 2 * l,
        Rational(2 * (n - 1), n));
    add({all_gather, "recursive_doubling", params}, {kData, kRounds}, l, Rational(n - 1, n));
    add({reduce_scatter, "recursive_halving", params}, {kData, kRounds}, l, Rational(n - 1, n));
  }
  // N^3 cells: the table of arrival times is a hash table here.
  add({all_to_all, "pairwise", {.ranks = 160}}, {kData, kRounds}, 159, Rational(159, 160));
  // k ports share the work of a rank that talks to all others: waves of k messages.
  for (const int n : {2, 3, 5, 8, 13}) {
    for (const int k : {1, 2, 3, 4, 8}) {
      const int waves = (n - 1 + k - 1) / k;
      const Params params{.ranks = n};
      add({all_reduce, "central", params, fabric_with_ports(k)}, {kData, kRounds}, 2 * waves,
          2 * waves);
      // One message per round: more ports help only if no rank waits for the end of the round.
      add({broadcast, "linear", params, fabric_with_ports(k)}, {kData}, waves, waves);
      add({broadcast, "linear", params, fabric_with_ports(k)}, {kRounds}, n - 1, n - 1);
      // A switch that permutes: one alpha per port for all its messages of a round.
      add({all_to_all, "direct", params, permuting_fabric(k)}, {kData, kRounds}, 1,
          Rational(waves, n));
      add({all_to_all, "direct", params, fabric_with_ports(k)}, {kData, kRounds}, waves,
          Rational(waves, n));
    }
  }
  add({all_gather, "direct", {.ranks = 9}, fabric_with_ports(8)}, {kData, kRounds}, 1,
      Rational(1, 9));
  // Without a limit on ports the critical path is left: segments are independent.
  const SimulateOptions unlimited{.ideal_blocks = true, .unlimited_ports = true};
  add({all_reduce, "central", {.ranks = 9}, fabric_with_ports(1), unlimited}, {kData}, 2, 2);
  add({broadcast, "chain", {.ranks = 5, .segments = 4}, fabric_with_ports(1), unlimited}, {kData},
      4, 1);
  for (const auto& [setup, alphas, m_betas] : forms) {
    expect_time(simulated(setup), cost(alphas, m_betas),
                std::string(setup.algorithm) + ", N = " + std::to_string(setup.params.ranks));
  }
}

// Compares with a model that keeps the time of each port and takes the first port with the least
// time.
TEST(Ports, AreTakenAsIfEachHadANote) {
  for (const std::size_t k : {1, 2, 3, 7, 64}) {
    constexpr std::size_t kRanks = 3;
    FreePorts<std::int64_t> ports(kRanks, k);
    std::vector<std::vector<std::int64_t>> notes(kRanks, std::vector<std::int64_t>(k, 0));
    std::vector<std::vector<std::int64_t>> paid = notes;
    std::uint64_t state = k;
    const auto next = [&state](std::uint64_t below) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      return static_cast<std::int64_t>((state >> 33) % below);
    };
    for (int step = 0; step < 2000; ++step) {
      if (next(50) == 0) {
        ports.begin_round();
        for (auto& of_rank : paid) of_rank.assign(k, 0);
      }
      if (next(100) == 0) {
        std::int64_t latest = 0;
        for (const auto& of_rank : notes) {
          latest = std::max(latest, *std::max_element(of_rank.begin(), of_rank.end()));
        }
        ports.reset(latest);
        for (auto& of_rank : notes) of_rank.assign(k, latest);
      }
      const auto r = static_cast<std::size_t>(next(kRanks));
      const auto least = std::min_element(notes[r].begin(), notes[r].end());
      const auto at = static_cast<std::size_t>(least - notes[r].begin());
      ASSERT_EQ(ports.next(r), static_cast<int>(at));
      ASSERT_EQ(ports.free(r), *least);
      const std::int64_t once = next(5);
      ASSERT_EQ(ports.unpaid(r, once), std::max<std::int64_t>(0, once - paid[r][at]));
      if (next(2) == 0) {
        ports.pay(r, once);
        paid[r][at] = std::max(paid[r][at], once);
      }
      *least += next(4);  // some take no time
      ports.occupy(r, *least);
    }
  }
}

// --- By hand

// alpha = 1, beta = 1, a byte per block: a message of b blocks takes 1 + b.
Fabric unit_fabric(int ports) {
  Fabric fabric;
  fabric.ports = ports;
  fabric.link = {1, 1};
  return fabric;
}

struct Stated {
  int round;
  Rank from, to;
  BlockSet what;
  TransferKind kind = copy;
};

Schedule schedule_of(int ranks, int blocks, int rounds, std::vector<Stated> transfers) {
  return {ranks, blocks, rounds, [transfers](int k, Send send) {
            for (const Stated& t : transfers) {
              if (t.round == k) send(t.from, t.to, t.what, t.kind);
            }
          }};
}

std::vector<int> round_ends(const Schedule& schedule, int ports, Sync sync) {
  const CollectiveSpec goal{broadcast, schedule.ranks, schedule.blocks};
  const auto result = simulate(schedule, goal, unit_fabric(ports),
                               static_cast<std::uint64_t>(schedule.blocks), {.sync = sync});
  EXPECT_TRUE(result.ok()) << result.status().text();
  std::vector<int> ends;
  if (!result.ok()) return ends;
  for (const Ticks end : result->round_end) ends.push_back(static_cast<int>(end));
  return ends;
}

using Ends = std::vector<int>;

TEST(ByHand, RoundsEnd) {
  constexpr TransferKind kAdd = TransferKind::reduce;
  const std::vector<Stated> passes_on = {
      {0, 0, 1, blocks(0, 9)}, {0, 0, 2, block(9)}, {1, 2, 3, block(9)}};
  const std::vector<Stated> waits = {
      {0, 0, 1, blocks(0, 3)}, {1, 1, 2, blocks(0, 3)}, {1, 1, 3, block(3)}};
  const std::vector<Stated> exchange = {
      {0, 0, 1, block(0), kAdd}, {0, 1, 0, block(0), kAdd}, {1, 0, 1, block(0)}};
  const auto twice = [](TransferKind kind) {
    return std::vector<Stated>{{0, 0, 2, blocks(0, 7), TransferKind::reduce},
                               {1, 1, 2, block(0), kind},
                               {2, 2, 3, block(0)}};
  };
  const std::vector<Stated> inward = {
      {0, 1, 0, blocks(0, 3)}, {0, 2, 0, block(3)}, {0, 3, 0, blocks(4, 2)}};
  const std::vector<Stated> local = {{0, 0, 1, block(0)}, {1, 1, 1, block(0)}, {2, 1, 0, block(0)}};
  constexpr Sync kData = Sync::dataflow, kRounds = Sync::rounds;
  const struct {
    const char* what;
    int ranks, blocks, rounds;
    std::vector<Stated> transfers;
    int ports;
    Sync sync;
    Ends ends;
  } cases[] = {
      {"a small message is passed on early", 4, 10, 2, passes_on, 2, kData, {10, 4}},
      {"by rounds it waits for the large one", 4, 10, 2, passes_on, 2, kRounds, {10, 12}},
      {"a port waits with its message", 4, 4, 2, waits, 1, kData, {4, 10}},
      {"the other port does not", 4, 4, 2, waits, 2, kData, {4, 8}},
      {"an exchange reads the old value", 2, 1, 2, exchange, 1, kData, {2, 4}},
      // Two receive ports: the second message to rank 2 arrives at 2, long before the first at 8.
      {"the reader of a copy waits for it alone", 4, 8, 3, twice(copy), 2, kData, {8, 2, 4}},
      {"a sum waits for all additions", 4, 8, 3, twice(kAdd), 2, kData, {8, 2, 10}},
      {"receive ports queue as stated", 4, 6, 1, inward, 1, kRounds, {4 + 2 + 3}},
      {"4 on one port, 2 + 3 on the other", 4, 6, 1, inward, 2, kRounds, {5}},
      {"a port each", 4, 6, 1, inward, 3, kRounds, {4}},
      {"local work takes no time and no port", 2, 1, 3, local, 1, kData, {2, 2, 4}},
      {"nor by rounds", 2, 1, 3, local, 1, kRounds, {2, 2, 4}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(round_ends(schedule_of(c.ranks, c.blocks, c.rounds, c.transfers), c.ports, c.sync),
              c.ends)
        << c.what;
  }
}

// A ring of three: every block goes two steps, and a rank that has sent a large block sends the
// next one late.
TEST(ByHand, BlocksOfUnlikeSizes) {
  const Algorithm& ring = *find_algorithm(Collective::all_gather, "ring");
  const Params params{.ranks = 3};
  const Schedule schedule = ring.make(params);
  const CollectiveSpec goal = goal_of(ring, params, schedule);
  Fabric fabric;  // a second per byte, and none per message
  fabric.link = {.alpha = 0, .beta = 1};
  const auto time = [&](const SimulateOptions& options, std::uint64_t bytes = 0) {
    return simulate(schedule, goal, fabric, bytes, options);
  };
  const auto unlike = time({.counts = {5, 1, 2}}).value();
  // Rank 0 sends 5 bytes until 5, then the block received at 2. Rank 1 sends 1 byte until 1, and
  // the 5 bytes from 5 on.
  EXPECT_EQ(unlike.seconds, 10);
  EXPECT_EQ(unlike.sent, (std::vector<std::int64_t>{7, 6, 3}));
  const auto alike = time({.counts = {4, 4, 4}}), plain = time({}, 12);
  EXPECT_EQ(alike->seconds, plain->seconds);
  EXPECT_EQ(alike->sent, plain->sent);
  EXPECT_TRUE(time({.counts = {5, 1}}).status().text().starts_with("counts has 2 entries; "));
  EXPECT_EQ(time({.ideal_blocks = true, .counts = {1, 1, 1}}).status().text(),
            "counts and ideal blocks are both set; allowed is one of them");
}

TEST(ByHand, WholeBytesGoToTheFirstBlocks) {
  const Schedule s = schedule_of(2, 3, 1, {{0, 0, 1, block(0)}, {0, 0, 1, block(2)}});
  const auto result = simulate(s, {broadcast, 2, 3}, unit_fabric(2), 10).value();
  EXPECT_EQ(static_cast<int>(result.end), 1 + 4);  // 4 3 3
  EXPECT_EQ(result.sent, (std::vector<std::int64_t>{7, 0}));
}

// --- Switches, groups, lowering

Rational switch_cost(int hops, Rational m) {
  return Rational(hops) * all_able_fabric(1).alpha_switch + m * Rational(kM) * kBeta;
}

TEST(Switch, CostsTwoHopsAndOnePassage) {
  for (const int n : {2, 3, 4, 7, 8, 33}) {
    for (const Sync sync : kBoth) {
      const std::string what = "N = " + std::to_string(n);
      for (const Collective c : {broadcast, kReduce, all_reduce}) {
        if (n == 2 && c != all_reduce) continue;  // between two ranks it is a plain message
        expect_time(simulated({c, "switch", {.ranks = n}, all_able_fabric(1), {sync, true}}),
                    switch_cost(2, 1), what);
      }
      if (n == 2) continue;
      // A switch that only copies brings down a sum that messages brought up.
      Fabric copies = all_able_fabric(1);
      copies.alu = false;
      const int l = ceil_log2(n);
      expect_time(simulated({all_reduce, "binomial_multicast", {.ranks = n}, copies, {sync, true}}),
                  cost(l, l) + switch_cost(2, 1), what);
    }
    // N multicasts to all others: with fewer receive ports than N - 1 they queue, k at a time.
    if (n < 3) continue;
    const SimulateOptions data{Sync::dataflow, true};
    expect_time(simulated({all_gather, "switch", {.ranks = n}, all_able_fabric(n - 1), data}),
                switch_cost(2, Rational(1, n)), "all at once");
    expect_time(simulated({all_gather, "switch", {.ranks = n}, all_able_fabric(1), data}),
                switch_cost(2 * n, 1), "one by one");
  }
}

TEST(Switch, IsNeededOrLowered) {
  const Algorithm& entry = *find_algorithm(all_reduce, "switch");
  const Params params{.ranks = 4};
  const Schedule schedule = entry.make(params);
  const CollectiveSpec goal = goal_of(entry, params, schedule);
  const Fabric plain = fabric_with_ports(1);
  const auto refused = simulate(schedule, goal, plain, kM);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::invalid_argument);
  EXPECT_NE(refused.status().text().find("has no ALU"), std::string::npos)
      << refused.status().text();

  // Lowered: every rank sends to every other, N - 1 messages in and out of each port.
  const auto lowered =
      simulate(lower(schedule, plain.abilities()), goal, plain, kM, {Sync::rounds, true}).value();
  EXPECT_EQ(lowered.messages, 12U);
  EXPECT_EQ(lowered.ports_needed(), 3);

  // If the switch has one of the two abilities, only the other side is split.
  Fabric multicasts = all_able_fabric(4);
  multicasts.alu = false;
  const auto half =
      simulate(lower(schedule, multicasts.abilities()), goal, multicasts, kM, {Sync::rounds, true})
          .value();
  EXPECT_EQ(half.messages, 4U);
  expect_time(half, switch_cost(2, 1), "a multicast each");
}

// --- Switches that permute

// Each round is a separate operation: a rank with one message per round gains nothing.
TEST(Permute, ChangesNothingWhereAPortHasOneMessageARound) {
  int lines = 0;
  for (const Algorithm& entry : catalogue()) {
    for (const int n : {4, 6}) {
      for (const int ports : {1, 3}) {
        for (const Sync sync : kBoth) {
          Params params = entry.only_taken({.ranks = n, .peer = 1, .segments = 3});
          if (entry.refusal(params)) continue;
          Fabric without = all_able_fabric(ports);
          without.gamma = Rational(1, 13'000'000'000);
          Fabric with = without;
          with.permute = true;
          const Schedule schedule = entry.make(params);
          const CollectiveSpec goal = goal_of(entry, params, schedule);
          const auto plain = simulate(schedule, goal, without, kM, {sync});
          const auto permuted = simulate(schedule, goal, with, kM, {sync});
          ASSERT_TRUE(plain.ok() && permuted.ok());
          if (plain->ports_needed() > ports || (sync == Sync::dataflow && ports > 1)) continue;
          EXPECT_EQ(plain->rank_end, permuted->rank_end) << entry.name << ", N = " << n;
          ++lines;
        }
      }
    }
  }
  EXPECT_GT(lines, 200);
}

// 4 bytes at 1 each, alpha 1.
TEST(Permute, ByHand) {
  const Schedule s = schedule_of(4, 2, 2,
                                 {{0, 0, 1, block(0)},    // 1 + 4
                                  {0, 2, 1, block(1)},    // rank 1's port is set already: 9
                                  {0, 2, 3, block(1)},    // and rank 2's, while rank 3 waits: 13
                                  {1, 1, 0, block(0)}});  // another round: data at 5, so 10
  Fabric fabric = unit_fabric(1);
  fabric.permute = true;
  const CollectiveSpec goal{broadcast, 4, 2};
  const auto result = simulate(s, goal, fabric, 8, {.trace = true}).value();
  std::vector<int> starts, ends;
  for (const TracedMessage& m : result.trace) {
    starts.push_back(static_cast<int>(m.start));
    ends.push_back(static_cast<int>(m.end));
  }
  EXPECT_EQ(ends, (std::vector<int>{5, 9, 13, 10}));
  EXPECT_EQ(starts, (std::vector<int>{0, 5, 9, 5}));
  fabric.permute = false;
  const auto without = simulate(s, goal, fabric, 8).value();
  EXPECT_EQ(static_cast<int>(without.end), 15);
}

// One rank that stands for all pays as much as a simulation of all ranks.
TEST(Permute, IsTheSameOneForAll) {
  for (const char* name : {"direct", "pairwise", "bruck", "ring"}) {
    for (const Sync sync : kBoth) {
      const auto of = [&](bool one) {
        return exact(simulated({Collective::all_to_all,
                                name,
                                {.ranks = 8},
                                permuting_fabric(2),
                                {.sync = sync, .ideal_blocks = true, .one_for_all = one}}));
      };
      EXPECT_TRUE(of(true) == of(false)) << name;
    }
  }
}

// Every round of a flat ring crosses between groups, at the price of the slow link.
TEST(Groups, MakeTheSlowLinkSetThePace) {
  Fabric fabric = fabric_with_ports(1);
  fabric.group = 4;
  fabric.between = {kAlpha * Rational(3), kBeta * Rational(18)};
  const auto far = [&](int rounds, int parts) {
    return Rational(rounds) * (fabric.between.alpha + fabric.between.beta * Rational(kM, parts));
  };
  for (const Sync sync : kBoth) {
    expect_time(simulated({all_reduce, "ring", {.ranks = 16}, fabric, {sync, true}}), far(30, 16),
                "flat");
  }
  // Reduce in groups, ring among their first ranks, broadcast in groups.
  expect_time(
      simulated(
          {all_reduce, "hierarchical", {.ranks = 16, .group = 4}, fabric, {Sync::rounds, true}}),
      cost(6, 6) + far(6, 4), "hierarchical");
}

// --- Accounts

// One byte per block: the simulator's accounts equal the counter's, field by field.
TEST(Accounts, AreThoseOfCount) {
  for (const int n : {1, 2, 3, 5, 8, 9}) {
    for (const Algorithm& entry : catalogue()) {
      const Params params =
          entry.only_taken({.ranks = n, .root = n / 2, .peer = n - 1, .segments = 2});
      if (entry.refusal(params)) continue;
      const Schedule schedule = entry.make(params);
      const CollectiveSpec goal = goal_of(entry, params, schedule);
      const auto result = simulate(schedule, goal, all_able_fabric(2),
                                   static_cast<std::uint64_t>(blocks_per_m(goal)));
      const std::string what = std::string(name_of(entry.collective)) + " " +
                               std::string(entry.name) + ", N = " + std::to_string(n);
      ASSERT_TRUE(result.ok()) << what << ": " << result.status().text();
      const Counts counts = count(schedule);
      for (std::size_t r = 0; r < counts.ranks.size(); ++r) {
        EXPECT_EQ(result->sent[r], counts.ranks[r].sent) << what << ", rank " << r;
        EXPECT_EQ(result->received[r], counts.ranks[r].received) << what << ", rank " << r;
        EXPECT_EQ(result->reduced[r], counts.ranks[r].reduced) << what << ", rank " << r;
      }
      EXPECT_EQ(result->rounds, counts.rounds) << what;
      EXPECT_EQ(result->partners_max, counts.busiest.partners) << what;
      EXPECT_EQ(result->send_ports_needed, counts.busiest.send_ports) << what;
      EXPECT_EQ(result->receive_ports_needed, counts.busiest.receive_ports) << what;
    }
  }
}

TEST(Accounts, TellTargetsFromSources) {
  const auto ring = simulated({all_gather, "ring", {.ranks = 6}});
  EXPECT_EQ(ring.targets_max, 1);
  EXPECT_EQ(ring.sources_max, 1);
  EXPECT_EQ(ring.partners_max, 2);
  const auto doubling = simulated({all_reduce, "recursive_doubling", {.ranks = 8}});
  EXPECT_EQ(doubling.targets_max, 3);
  EXPECT_EQ(doubling.partners_max, 3);
  const auto inward = simulated({gather, "linear", {.ranks = 6}});
  EXPECT_EQ(inward.targets_max, 1);
  EXPECT_EQ(inward.sources_max, 5);
  EXPECT_EQ(inward.messages, 5U);
}

// --- Limits

// Decimals of 17 digits need a unit of 1e-28 s: the time does not fit into 64 bits, and is exact.
TEST(Exactness, GoesBeyond64Bits) {
  Fabric fabric = fabric_with_ports(1);
  fabric.link = {Rational(12345678901234567, Int128{1'000'000'000'000} * 10'000'000'000),
                 Rational(11111111111111112, Int128{100'000'000'000'000} * 100'000'000'000'000)};
  const int n = 64;
  for (const Sync sync : kBoth) {
    const auto result = simulated({all_reduce, "ring", {.ranks = n}, fabric, {sync, true}});
    const Rational time =
        Rational(2 * (n - 1)) * (fabric.link.alpha + fabric.link.beta * Rational(kM, n));
    expect_time(result, time, std::string(name_of(sync)));
  }
}

// The first messages fit into 64 bits and the last do not.
TEST(Exactness, SwitchesToWiderTicksOnTheWay) {
  Fabric fabric = fabric_with_ports(1);
  const Int128 unit = Int128{1} << 58;
  fabric.link = {Rational(1, unit - 1), 1};
  const int n = 40;
  const auto result = simulated({broadcast, "chain", {.ranks = n}, fabric, {}, 10});
  expect_time(result, Rational(n - 1) * (fabric.link.alpha + Rational(10)), "39 times 10 s");
  EXPECT_TRUE(result.end > Ticks{1} << 63);
}

TEST(Limits, AreErrors) {
  for (const Sync sync : kBoth) EXPECT_EQ(parse_sync(name_of(sync)), sync);
  EXPECT_FALSE(parse_sync("barrier"));
  const Schedule schedule = nothing(2, 1);
  const CollectiveSpec goal{broadcast, 2, 1};
  Fabric fabric = fabric_with_ports(0);
  EXPECT_EQ(simulate(schedule, goal, fabric, 1).status().code(), Code::invalid_argument);
  fabric = fabric_with_ports(1);
  EXPECT_FALSE(simulate(schedule, goal, fabric, std::uint64_t{1} << 53).ok());
  const auto idle = simulate(schedule, goal, fabric, 1).value();
  EXPECT_EQ(idle.seconds, 0);
  EXPECT_EQ(idle.messages, 0U);
  EXPECT_EQ(idle.rounds, 0);
}

// The estimate of memory grows from round to round, so the first round beyond the limit is the last
// one that is looked at.
TEST(Limits, OfMemoryAreMetBeforeTheLaterRounds) {
  constexpr int kRanks = 4200;  // so many cells that they are estimated
  int rounds = 0;
  const Schedule schedule{kRanks, kRanks, 9, [&rounds](int k, Send send) {
                            rounds = k + 1;
                            send(0, 1, block(k), copy);
                          }};
  const auto refused = simulate(schedule, {all_gather, kRanks, kRanks}, fabric_with_ports(1),
                                kRanks, {.most_bytes = 1024});
  EXPECT_EQ(refused.status().code(), Code::out_of_memory);
  EXPECT_EQ(rounds, 1);
}

// The numbers of steps that a simulation asked for, in order.
std::vector<std::uint64_t> steps_asked(Question setup) {
  std::vector<std::uint64_t> asked;
  setup.options.may_take = [&](std::uint64_t steps) {
    asked.push_back(steps);
    return Status();
  };
  simulated(setup);
  return asked;
}

// The steps of a message of one block: it is read, and changes its target.
constexpr std::uint64_t kOfMessage = steps::kOfTransfer + 2 * steps::kOfValue;
// The steps of memory for each block at each rank, and for each run that arrives in a round.
constexpr std::uint64_t kOfCell = 8 * steps::kOfByte, kOfArrival = 40 * steps::kOfByte;

TEST(Steps, OfRanksTransfersAndLinks) {
  const Question plain{all_reduce, "recursive_doubling", {.ranks = 8}};
  constexpr std::uint64_t kKnown = 8 * steps::kOfNote + 3 * 8 * steps::kOfRank;
  constexpr std::uint64_t kAll = kKnown + 3 * 8 * kOfMessage + 8 * (kOfCell + kOfArrival);
  EXPECT_EQ(steps_asked(plain), (std::vector<std::uint64_t>{kKnown, kAll}));
  // The partners are one, two and four links away.
  Question ring = plain;
  ring.fabric.wiring.kind = WiringKind::ring;
  EXPECT_EQ(steps_asked(ring),
            (std::vector<std::uint64_t>{kKnown, kAll + 8 * (1 + 2 + 4) * steps::kOfLink}));
}

// If one rank stands for all, only its steps count. Otherwise the steps of all count, and are known
// in advance.
TEST(Steps, WhereEveryoneDoesTheSame) {
  const Question one{all_reduce, "ring", {.ranks = 8}};
  constexpr std::uint64_t kKnown = 8 * steps::kOfNote + 14 * steps::kOfRank;
  EXPECT_EQ(steps_asked(one), (std::vector<std::uint64_t>{
                                  kKnown, kKnown + 14 * kOfMessage + 8 * kOfCell + kOfArrival}));
  Question all = one;
  all.options.one_for_all = false;
  constexpr std::uint64_t kKnownOfAll = 8 * steps::kOfNote + 14 * 8 * steps::kOfRank;
  EXPECT_EQ(steps_asked(all), (std::vector<std::uint64_t>{14 * 8 * steps::kOfTransfer, kKnownOfAll,
                                                          kKnownOfAll + 14 * 8 * kOfMessage +
                                                              8 * 8 * kOfCell + 8 * kOfArrival}));
}

TEST(Steps, ThatMayNotBeTakenAreNot) {
  const auto refused_beyond = [](const Question& setup, std::uint64_t most) {
    const Algorithm* entry = find_algorithm(setup.collective, setup.algorithm);
    const Schedule schedule = entry->make(setup.params);
    SimulateOptions options = setup.options;
    std::uint64_t last = 0;
    options.may_take = [&](std::uint64_t steps) {
      EXPECT_LE(last, most) << "asked again after no";
      last = steps;
      return steps <= most ? Status() : invalid_argument("no");
    };
    const auto result = simulate(schedule, goal_of(*entry, setup.params, schedule), setup.fabric,
                                 setup.bytes, options);
    return result.status().text();
  };
  const Question few{all_reduce, "recursive_doubling", {.ranks = 8}};
  const std::uint64_t of_few = steps_asked(few).back();
  EXPECT_EQ(refused_beyond(few, of_few), "");
  EXPECT_EQ(refused_beyond(few, of_few - 1), "no");
  // Refused in the middle of a round; there are fourteen rounds, with 2,000 million steps for links
  // alone.
  Question wide{all_reduce, "recursive_doubling", {.ranks = 1 << 14}};
  wide.fabric.wiring.kind = WiringKind::ring;
  EXPECT_EQ(refused_beyond(wide, 1 << 25), "no");
  Question known{all_reduce, "ring", {.ranks = 8}};
  known.options.one_for_all = false;
  EXPECT_EQ(refused_beyond(known, 14 * 8 * steps::kOfTransfer - 1).substr(0, 29),
            "no; one rank stands for all w");
}

}  // namespace
}  // namespace rankine
