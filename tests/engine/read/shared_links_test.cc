// Tests of the simulator on shared links, of profiles, and of the search for skips.

#include "algorithms/catalogue.h"
#include "algorithms/circulant.h"
#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/torus.h"
#include "engine/network/predict.h"
#include "engine/network/simulate.h"
#include "engine/read/sweep.h"
#include "tests/budget.h"
#include "tests/engine/read/listed.h"
#include "tests/testing.h"

// The simulator on shared links, compared exactly with closed forms of Eq. (1) of Trivance.

namespace rankine {
namespace {

using Dims = std::vector<int>;

constexpr std::int64_t kM = 1'000'003;  // odd: its half is not a whole byte

// Prices with ticks that fit 64 bits, and prices that need 128.
std::vector<Fabric> priced_like(const Wiring& wiring, int ports, int group = 0) {
  Fabric plain;
  plain.name = std::string(name_of(wiring.kind));
  plain.ports = ports;
  plain.link = {Rational(15, 10'000'000), Rational(1, 100'000'000'000)};
  plain.between = {Rational(5, 1'000'000), Rational(1, 25'000'000'000)};
  plain.group = group;
  plain.wiring = wiring;
  plain.alpha_hop = Rational(2, 10'000'000);
  Fabric wide = plain;
  wide.link = {Rational(7, 3'000'000), Rational(1, 11'000'000'006)};
  wide.between = {Rational(23, 6'000'000), Rational(1, 5'500'000'003)};
  wide.alpha_hop = Rational(13, 9'000'011);
  return {plain, wide};
}

Rational exact(const Simulation& result) { return {result.end, result.ticks_per_second}; }

Simulation simulated(const Schedule& schedule, const CollectiveSpec& goal, const Fabric& fabric,
                     SimulateOptions options = {}) {
  auto result = simulate(schedule, goal, fabric, kM, options);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? std::move(*result) : Simulation{};
}

Simulation simulated(const char* algorithm, const Params& params, const Fabric& fabric, Sync sync) {
  const Algorithm& entry = *find_algorithm(Collective::all_reduce, algorithm);
  const Schedule schedule = entry.make(params);
  return simulated(schedule, goal_of(entry, params, schedule), fabric, {sync, true});
}

Rational latency(const Fabric& fabric, int hops) {
  return fabric.link.alpha + Rational(hops) * fabric.alpha_hop;
}

// alpha + hops * hop + beta * M * congestion
Rational round_of(const Fabric& fabric, int hops, Rational congestion) {
  return latency(fabric, hops) + fabric.link.beta * Rational(kM) * congestion;
}

// Every rank sends M to the rank `shift` away, at once.
Schedule shifts(const Dims& dims, const Dims& shift) {
  const Torus torus(dims);
  return {torus.ranks(), 1, 1, [torus, shift](int, Send send) {
            for (Rank r : ranks(torus.ranks())) {
              Rank to = r;
              for (int d = 0; d < torus.dimensions(); ++d) {
                const int at = torus.coordinate(r, d);
                const int there = (at + shift[static_cast<std::size_t>(d)]) % torus.size(d);
                to += (there - at) * torus.stride(d);
              }
              send.exactly({r, to, block(0), block(0), copy});
            }
          }};
}

CollectiveSpec one_block(int ranks) { return {Collective::all_reduce, ranks, 1}; }

// On a ring a shift costs its distance; of antipodes, half of every message goes each way. On a
// torus dimensions are independent: all ranks cross a dimension equally, so links of dimension d
// carry the load of a ring of its size, and the busiest dimension determines the time.
TEST(SharedLinks, AShiftCostsItsLongestDimension) {
  for (const Dims& dims : std::vector<Dims>{
           {3}, {4}, {8}, {9}, {2, 3}, {3, 5}, {4, 4}, {3, 3, 3}, {2, 2, 5}, {6, 4}}) {
    int n = 1;
    for (const int size : dims) n *= size;
    for (const Fabric& fabric : priced_like({.kind = WiringKind::torus, .dims = dims}, 1)) {
      for (int s = 1; s < n; ++s) {
        Dims shift(dims.size());
        int rest = s, hops = 0;
        Rational congestion = 0;
        for (std::size_t d = dims.size(); d-- > 0; rest /= dims[d]) {
          shift[d] = rest % dims[d];
          const int distance = std::min(shift[d], dims[d] - shift[d]);
          hops += distance;
          const Rational load =
              2 * shift[d] == dims[d] ? Rational(distance, 2) : Rational(distance);
          if (congestion < load) congestion = load;
        }
        for (const Sync sync : kBoth) {
          const auto result = simulated(shifts(dims, shift), one_block(n), fabric, {.sync = sync});
          EXPECT_TRUE(exact(result) == round_of(fabric, hops, congestion))
              << dims_text(dims) << " by " << dims_text(shift);
          EXPECT_EQ(result.traffic.at(0).hops, hops);
          EXPECT_EQ(result.traffic.at(0).congestion(), congestion.to_double());
        }
      }
    }
  }
}

// All-reduces on a ring as sums of rounds, each with its hops and congestion.
TEST(SharedLinks, ARoundCostsItsHopsAndItsCongestion) {
  struct Round {
    int hops;
    Rational congestion;
  };
  using Rounds = std::vector<Round>;
  const Wiring ring{.kind = WiringKind::ring},
      one_way{.kind = WiringKind::ring, .routing = Routing::one_way};
  // Trivance, section 2.4 and figure 1: c_k = 2^k. In the last round partners are antipodes, with
  // two minimal ways: half of 2^k.
  const auto doubling = [](int n) {
    Rounds rounds;
    for (int d = 1; d < n; d *= 2) rounds.push_back({d, Rational(d, 2 * d == n ? 2 : 1)});
    return rounds;
  };
  // The two messages of a pair cross the whole ring together: n / 2 messages on every link.
  const auto doubling_one_way = [](int n) {
    Rounds rounds;
    for (int d = 1; d < n; d *= 2) rounds.push_back({n - d, Rational(n, 2)});
    return rounds;
  };
  // c_k = 3^k in both directions: the paper's point (section 4.1).
  const auto trivance = [](int n) {
    Rounds rounds;
    for (int d = 1; d < n; d *= 3) rounds.push_back({d, Rational(d)});
    return rounds;
  };
  // Neighbours share no links: they pay as in full wiring, one hop included.
  const auto neighbours = [](int n) {
    return Rounds(2 * static_cast<std::size_t>(n - 1), Round{1, Rational(1, n)});
  };
  const struct {
    const char* algorithm;
    Wiring wiring;
    std::vector<int> ranks;
    std::function<Rounds(int)> rounds;
  } cases[] = {{"recursive_doubling", ring, {4, 8, 16, 64}, doubling},
               {"recursive_doubling", one_way, {4, 8, 16}, doubling_one_way},
               {"trivance_latency", ring, {3, 9, 27}, trivance},
               {"ring", ring, {3, 4, 5, 9}, neighbours},
               {"ring", {}, {3, 4, 5, 9}, neighbours}};
  for (const auto& c : cases) {
    for (const int n : c.ranks) {
      for (const Fabric& fabric : priced_like(c.wiring, 2)) {
        Rational expected = 0;
        for (const auto& [hops, congestion] : c.rounds(n))
          expected = expected + round_of(fabric, hops, congestion);
        for (const Sync sync : kBoth) {
          EXPECT_TRUE(exact(simulated(c.algorithm, {.ranks = n}, fabric, sync)) == expected)
              << c.algorithm << " " << n;
        }
      }
    }
  }
}

// Rank 1 sends to 3, which passes the block on in round 1. In round 1 rank 2 also sends to 4 over
// link 3-4, and starts long before. The round's load counts for both, for any start times; messages
// of other rounds on the link do not count.
TEST(SharedLinks, LoadsAreThoseOfTheRoundInTheSchedule) {
  constexpr int kRanks = 9;
  const Schedule schedule{kRanks, 2, 3, [](int k, Send send) {
                            if (k == 0) send(1, 3, block(0), copy);  // 1-2 2-3
                            if (k == 1) {
                              send(3, 4, block(0), copy);  //         3-4, after round 0
                              send(2, 4, block(1), copy);  //     2-3 3-4, at once
                            }
                            if (k == 2) send(3, 4, block(0), copy);  // alone
                          }};
  const CollectiveSpec goal{Collective::all_reduce, kRanks, 2};
  for (const Fabric& fabric : priced_like({.kind = WiringKind::ring}, 2)) {
    const auto at = [&](Sync sync) {
      return simulated(schedule, goal, fabric, {.sync = sync, .ideal_blocks = true});
    };
    const Rational half(1, 2);
    const Rational first = round_of(fabric, 2, half);
    const Rational passed_on = round_of(fabric, 1, Rational(1)), alone = round_of(fabric, 1, half);
    const Rational slower = round_of(fabric, 2, Rational(1));
    EXPECT_TRUE(exact(at(Sync::dataflow)) == first + passed_on);
    EXPECT_TRUE(exact(at(Sync::rounds)) == first + slower + alone);
    EXPECT_EQ(at(Sync::rounds).traffic[1].congestion(), 2);
    EXPECT_EQ(at(Sync::rounds).traffic[2].congestion(), 1);
  }
}

TEST(SharedLinks, WhatARankSendsItselfCountsNowhere) {
  const Schedule schedule{4, 2, 1, [](int, Send send) {
                            send.exactly({0, 0, block(0), block(1), copy});
                            send(0, 1, block(0), copy);
                          }};
  for (const Fabric& fabric : priced_like({.kind = WiringKind::ring}, 1)) {
    const auto result =
        simulated(schedule, {Collective::all_reduce, 4, 2}, fabric, {.ideal_blocks = true});
    EXPECT_TRUE(exact(result) == round_of(fabric, 1, Rational(1, 2)));
    EXPECT_EQ(result.traffic[0].hops, 1);
  }
}

TEST(SharedLinks, RefuseSwitchesAndTori) {
  const Algorithm& entry = *find_algorithm(Collective::broadcast, "switch");
  const Schedule schedule = entry.make({.ranks = 4});
  const CollectiveSpec goal = goal_of(entry, {.ranks = 4}, schedule);
  Fabric fabric = find_regime("torus")->fabric;
  EXPECT_NE(simulate(schedule, goal, fabric, kM).status().text().find("has no multicast"),
            std::string::npos);
  fabric.multicast = true;
  EXPECT_NE(simulate(schedule, goal, fabric, kM).status().text().find("needs full wiring"),
            std::string::npos);
  fabric.multicast = false;
  fabric.wiring.dims = {3, 2};
  EXPECT_TRUE(simulate(schedule, goal, fabric, kM).status().text().starts_with("dims is 3x2"));
}

// A chain of neighbours has the P* of a full network with the hop included in alpha.
TEST(SharedLinks, BestSegmentsPayHopsAndLoads) {
  const Algorithm& entry = *find_algorithm(Collective::broadcast, "chain");
  for (const Fabric& fabric : priced_like({.kind = WiringKind::ring}, 1)) {
    Fabric full = fabric;
    full.wiring = {};
    full.link.alpha = full.link.alpha + fabric.alpha_hop;
    full.alpha_hop = 0;
    const auto there = pipeline_optimum(entry, {.ranks = 8}, fabric, kM);
    const auto here = pipeline_optimum(entry, {.ranks = 8}, full, kM);
    ASSERT_TRUE(there.ok() && here.ok());
    EXPECT_EQ(*there, *here);
    Fabric far = fabric;
    far.alpha_hop = far.alpha_hop * Rational(100);
    EXPECT_LT(*pipeline_optimum(entry, {.ranks = 8}, far, kM), *here);
  }
}

// 4096 ranks, 25 million links crossed: takes seconds at most, and little memory.
TEST(SharedLinks, ManyRanks) {
  const Params params{.ranks = 4096};
  const Algorithm& entry = *find_algorithm(Collective::all_reduce, "halving_doubling");
  const Schedule schedule = entry.make(params);
  Fabric fabric = find_regime("torus")->fabric;
  fabric.wiring.dims = {16, 16, 16};
  const auto result = simulated(schedule, goal_of(entry, params, schedule), fabric);
  ASSERT_EQ(result.traffic.size(), 24U);
  for (std::size_t k = 0; k < 12; ++k) {
    EXPECT_EQ(result.traffic[k].hops, result.traffic[23 - k].hops);
    EXPECT_EQ(result.traffic[k].hops, 1 << (k % 4)) << k;
  }
}

// A profile's time equals the simulator's by rounds and with ideal blocks, for any alpha, hop, beta
// and size. A profile keeps the messages of a round that can be the slowest.

Transfer message(Rank from, Rank to, int count) {
  return transfer(from, to, blocks(0, count), copy);
}

TEST(Profile, TakesTheSimulatorsTime) {
  struct Network {
    Rational alpha, hop, beta;
  };
  const Network networks[] = {{{3, 2'000'000}, {1, 5'000'000}, {1, Int128{100'000'000'000}}},
                              {{1, 1'000'000}, 0, {1, 1'000'000'000}},
                              {0, {1, 1'000'000}, {1, 7'000'000}},
                              {0, 0, {3, 1'000'000'000}}};
  const std::vector<std::vector<int>> tori = {{2},    {7},       {8},         {9},       {16},
                                              {4, 4}, {3, 5},    {8, 8},      {3, 3, 3}, {2, 3, 4},
                                              {9, 9}, {4, 4, 4}, {2, 2, 2, 2}};
  const Sample sample("profiles", 5);
  std::uint64_t compared = 0;
  for (const Algorithm& entry : catalogue()) {
    const bool of_tori = entry.takes("dims") && entry.collective != Collective::all_gather;
    if (!of_tori && entry.name != "ring" && entry.name != "bruck") continue;
    for (const auto& dims : tori) {
      const Params params = entry.only_taken({.ranks = Torus(dims).ranks(), .dims = dims});
      if (entry.refusal(params) ||
          (entry.collective == Collective::all_to_all && dims.size() > 1)) {
        continue;
      }
      const Schedule schedule = entry.make(params);
      const CollectiveSpec goal = goal_of(entry, params, schedule);
      for (const Routing routing : {Routing::minimal, Routing::one_way}) {
        if (!sample.has(compared++)) continue;
        const Wiring wiring{.kind = WiringKind::torus, .dims = dims, .routing = routing};
        const auto found = profile(schedule, goal, wiring).value();
        const auto index = static_cast<std::size_t>(compared) % std::size(networks);
        const Network& network = networks[index];
        const std::uint64_t bytes = index == 1 ? 1'000'003 : 4096;
        Fabric fabric{.name = "test", .ports = found.most_messages + (found.most_messages == 0)};
        fabric.link = {network.alpha, network.beta};
        fabric.alpha_hop = network.hop;
        fabric.wiring = wiring;
        const auto simulated =
            simulate(schedule, goal, fabric, bytes, {.sync = Sync::rounds, .ideal_blocks = true})
                .value();
        const std::string what = std::string(name_of(entry.collective)) + " " +
                                 std::string(entry.name) + " " + dims_text(dims) + " " +
                                 std::string(name_of(routing));
        EXPECT_NEAR(found.time(fabric, static_cast<double>(bytes)), simulated.seconds,
                    1e-12 * simulated.seconds)
            << what;
        EXPECT_EQ(found.round_count(), simulated.rounds) << what;
        EXPECT_EQ(found.most_messages, simulated.ports_needed()) << what;
        for (std::size_t r = 0; r < found.sent.size(); ++r) {
          EXPECT_EQ(static_cast<Int128>(found.sent[r]) * static_cast<Int128>(bytes) *
                        simulated.weight_per_byte,
                    static_cast<Int128>(simulated.sent[r]) * found.per_m)
              << what << ", rank " << r;
        }
      }
    }
  }
}

TEST(Profile, SaysWhatItCannotRead) {
  const Schedule multicast = listed(4, 1, {{transfer(0, ranks_from(1, 3), block(0), copy)}});
  const auto refused = profile(multicast, any_goal(multicast), {.kind = WiringKind::ring});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().text().find("multicast"), std::string::npos);
  const Schedule plain = listed(4, 1, {{message(0, 1, 1)}});
  const auto levels = profile(plain, any_goal(plain), {.kind = WiringKind::two_level, .group = 2});
  ASSERT_FALSE(levels.ok());
  EXPECT_NE(levels.status().text().find("two_level"), std::string::npos);
  EXPECT_FALSE(profile(plain, any_goal(plain), {.kind = WiringKind::torus, .dims = {3}}).ok());
}

using Skips = std::vector<int>;

Ticks time_of(const Skips& skips, int p, const Fabric& fabric, std::uint64_t bytes) {
  const auto rounds = std::make_shared<const CirculantRounds>(p, skips);
  const auto result = simulate(circulant_reduce_scatter(rounds), {Collective::reduce_scatter, p, p},
                               fabric, bytes, {.sync = Sync::rounds, .ideal_blocks = true});
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result->end;
}

struct Tried {
  Ticks least = 0;
  int sequences = 0, windows = 0;
};

// Simulates every order of every set of skips.
Tried try_everything(int p, const Fabric& fabric, std::uint64_t bytes, bool windows_only) {
  Tried out;
  for (unsigned set = 1; set < 1u << (p - 1); ++set) {
    Skips skips;
    for (int s = 1; s < p; ++s) {
      if (set >> (s - 1) & 1u) skips.push_back(s);
    }
    do {
      if (skips_refusal(skips, p)) continue;
      const bool windows = are_windows(skips, p);
      out.windows += windows ? 1 : 0;
      if (windows_only && !windows) continue;
      const Ticks time = time_of(skips, p, fabric, bytes);
      out.least = out.sequences++ == 0 ? time : std::min(out.least, time);
    } while (std::next_permutation(skips.begin(), skips.end()));
  }
  return out;
}

std::vector<Fabric> networks() {
  std::vector<Fabric> out;
  for (const char* name : {"plain", "ring", "torus", "two_level_shared"}) {
    out.push_back(find_regime(name)->fabric);
    if (out.back().group > 0) out.back().group = 2;
  }
  return out;
}

TEST(SkipSearch, FindsTheBestOfAllSequences) {
  for (const Fabric& fabric : networks()) {
    for (int p = 2; p <= 6; ++p) {
      for (const std::uint64_t bytes : {0ull, 64ull, 65'536ull, 16'000'001ull}) {
        SCOPED_TRACE(fabric.name + ", " + std::to_string(p) + " ranks, " + std::to_string(bytes));
        const Tried all = try_everything(p, fabric, bytes, false);
        const auto found = search_skips(p, fabric, bytes).value();
        EXPECT_TRUE(found.all);
        EXPECT_EQ(found.best.front().time, all.least);
        EXPECT_EQ(static_cast<int>(found.windows), all.windows);
        EXPECT_EQ(static_cast<int>(found.windows + static_cast<double>(found.others)),
                  all.sequences);
      }
    }
  }
}

TEST(SkipSearch, BestAreInOrderAndDifferentAndTimedAsTheyAre) {
  const Fabric ring = find_regime("ring")->fabric;
  const auto found = search_skips(22, ring, 65'536, {.best = 20}).value();
  ASSERT_EQ(found.best.size(), 20u);
  for (std::size_t i = 0; i < found.best.size(); ++i) {
    const RatedSkips& one = found.best[i];
    EXPECT_EQ(skips_refusal(one.skips, 22), std::nullopt);
    EXPECT_EQ(one.time, time_of(one.skips, 22, ring, 65'536));
    if (i == 0) continue;
    EXPECT_GE(one.time, found.best[i - 1].time);
    EXPECT_NE(one.skips, found.best[i - 1].skips);
  }
  EXPECT_EQ(found.halving.skips, halving_skips(22));
  EXPECT_LE(found.best.front().time, found.halving.time);
}

// On a full network all valid sequences of the fewest rounds are equally fast, so halving is
// optimal.
TEST(SkipSearch, FindsNothingBetterThanHalvingOnAFullNetwork) {
  for (int p = 1; p <= 40; ++p) {
    const auto found =
        search_skips(p, plain_regime().fabric, 1'000'000, {.most_tried = 1000}).value();
    EXPECT_EQ(found.best.front().time, found.halving.time) << p;
  }
}

TEST(SkipSearch, EndsWhereItsWorkDoes) {
  const Fabric ring = find_regime("ring")->fabric;
  std::uint64_t others[2] = {};
  for (const bool bounded : {false, true}) {
    SkipSearchOptions options{.best = 3, .most_tried = 0};
    if (bounded) options.most_work = 22 * 100;
    const auto found = search_skips(22, ring, 65'536, options).value();
    EXPECT_EQ(found.stopped, bounded);
    others[bounded] = found.others;
  }
  EXPECT_LE(others[1], 100u + 30u);  // and the starts
  EXPECT_GT(others[0], 2 * others[1]);
}

TEST(SkipSearch, RefusesWhatItCannotDo) {
  EXPECT_EQ(search_skips(0, plain_regime().fabric, 1).status().text(),
            "ranks is 0; allowed are 1 to 1024");
  Fabric torus = find_regime("torus")->fabric;
  torus.wiring.dims = {3, 3};
  EXPECT_FALSE(search_skips(8, torus, 1).ok());
}

}  // namespace
}  // namespace rankine
