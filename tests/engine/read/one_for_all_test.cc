// One rank's part in the place of all: what the readers find in it is what they find in all of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/ring.h"
#include "algorithms/schedule/everyone.h"
#include "algorithms/torus.h"
#include "engine/network/simulate.h"
#include "engine/read/count.h"
#include "engine/read/verify.h"

namespace rankine {
namespace {

struct Case {
  const Algorithm* line;
  Params params;
  Schedule schedule;
  Goal goal;
  std::string name() const {
    return std::string(name_of(goal.collective)) + " " + std::string(line->name) +
           " N=" + std::to_string(goal.ranks) + " P=" + std::to_string(params.segments) + " " +
           line->text_of(params);
  }
};

// Lines of the catalogue in which everyone does the same, with few ranks and many.
template <class Visit>
void for_each_case(const std::vector<int>& ranks, const Visit& visit) {
  for (const Algorithm& line : catalogue()) {
    for (const int n : ranks) {
      for (const int segments : {1, 3}) {
        for (const std::vector<int>& dims : {std::vector<int>{}, balanced_dims(n, 2)}) {
          Params params{.ranks = n, .segments = segments};
          params.dims = dims;
          params = line.only_taken(params);
          if (segments > 1 && !line.takes("segments")) continue;
          if (!dims.empty() && !line.takes("dims")) continue;
          if (line.refusal(params)) continue;
          Case one{&line, params, line.make(params), {}};
          one.goal = goal_of(line, params, one.schedule);
          if (everyone_for(one.schedule, one.goal) != nullptr) visit(one);
        }
      }
    }
  }
}

const std::vector<int> kRanks = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 25, 27, 36};

TEST(OneForAll, MuchOfTheCatalogueIsAlike) {
  std::set<std::string> alike;
  for_each_case({5, 6, 8}, [&](const Case& one) {
    alike.insert(std::string(name_of(one.goal.collective)) + " " + std::string(one.line->name));
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
        Goal goal = one.goal;
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
  for_each_case(kRanks, [](const Case& one) {
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

// On the rings that everyone is turned round, every link of a way carries the same.
TEST(OneForAll, TimesOnItsTorus) {
  int tori = 0;
  for_each_case(kRanks, [&tori](const Case& one) {
    const std::vector<int>& dims = everyone_in(one.schedule)->rotation().dims();
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

// Where it is asked for rank by rank, or the network tells ranks apart, all are gone through.
TEST(OneForAll, NotWhereRanksDiffer) {
  const Schedule ring = ring_all_reduce(8);
  const Goal goal{Collective::all_reduce, 8, 8};
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

// What is wrong with one is found, as rank 0 sees it.
TEST(OneForAll, WrongParts) {
  const auto violation = [](const Schedule& schedule, const Goal& goal) {
    const auto of_one = verify(schedule, goal);
    VerifyOptions all;
    all.one_for_all = false;
    const auto of_all = verify(schedule, goal, all);
    EXPECT_TRUE(of_one && of_all);
    if (!of_one || !of_all) return std::string();
    EXPECT_EQ(name_of(of_one->kind), name_of(of_all->kind)) << of_one->text << "\n" << of_all->text;
    return of_one->text;
  };
  const Goal gather{Collective::all_gather, 4, 4}, sum{Collective::all_reduce, 4, 1};
  const auto of_part = [](int rounds, auto part, int n, Moves moves) {
    return everyone({4, n, rounds, part}, moves);
  };
  // A round too few, a block that is not there yet, a block twice, a sum that has it already.
  EXPECT_EQ(
      violation(of_part(
                    2, [](int k, Send send) { send(0, 1, block(-k), copy); }, 4, Moves::with_rank),
                gather),
      "rank 0, block 1: ends with the contributions of {}; needed are {1}");
  EXPECT_EQ(violation(of_part(
                          3, [](int k, Send send) { send(0, 1, block(-k - 1), copy); }, 4,
                          Moves::with_rank),
                      gather),
            "round 0, rank 0, block 3: is to be sent to rank 1 but holds nothing");
  EXPECT_NE(
      violation(of_part(
                    3, [](int, Send send) { send(0, 1, block(0), copy); }, 4, Moves::with_rank),
                gather)
          .find("round 1, rank 0, block 3: {3} from rank 3 is copied there, where the same is "
                "already"),
      std::string::npos);
  EXPECT_NE(
      violation(of_part(
                    3, [](int k, Send send) { send(0, k, block(0), reduce); }, 1, Moves::nothing),
                sum)
          .find("would be there twice"),
      std::string::npos);
  // Whole vectors passed round the ring: rank r has r + (r - 1) + ..., in other brackets each.
  const Schedule in_turn = everyone({4,
                                     1,
                                     4,
                                     [](int k, Send send) {
                                       if (k == 0) return send(0, 0, block(0), block(0, 1), copy);
                                       send(0, 1, block(0, k), block(0, k + 1), copy);
                                     },
                                     {},
                                     5},
                                    Moves::nothing);
  EXPECT_TRUE(verify(in_turn, sum));
}

TEST(OneForAll, AMillionRanks) {
  constexpr int kMany = 1'000'000;
  const Schedule ring = ring_all_reduce(kMany);
  const Goal goal{Collective::all_reduce, kMany, kMany};
  const auto simulated = simulate(ring, goal, plain_regime().fabric, 64 * std::uint64_t{kMany});
  ASSERT_TRUE(simulated.ok()) << simulated.status().text();
  EXPECT_EQ(simulated->messages, std::uint64_t{2} * (kMany - 1) * kMany);
  // 2 (N - 1) (alpha + beta M / N), of 1 us and 100 GB/s.
  EXPECT_EQ(simulated->seconds, 2.0 * (kMany - 1) * (1000 + 0.64) / 1e9);
  EXPECT_FALSE(verify(ring, goal));
  EXPECT_EQ(count(ring).busiest.sent, 2 * (kMany - 1));
}

// Blocks of two sizes, and a ring that would be gone through message by message.
TEST(OneForAll, TooManyMessagesAreRefusedAtOnce) {
  constexpr int kMany = 1'000'000;
  Fabric shared = plain_regime().fabric;  // a round's loads are of all its messages
  shared.wiring.kind = WiringKind::ring;
  const auto refused = simulate(ring_all_gather(kMany), {Collective::all_gather, kMany, kMany},
                                shared, 1 << 20);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().text(),
            "ranks is 1000000, which are more than 17179869184 messages; one rank stands for all "
            "where links are alike or those of its torus and, if messages share links or ranks are "
            "on a torus, the blocks are of one size (bytes a multiple of 1000000, or ideal blocks)");
}

// A block that has a byte more is such on its whole way round, so some rank waits for one each time.
TEST(OneForAll, BlocksOfTwoSizesAmongManyRanks) {
  constexpr int kMany = 100'003;
  const Fabric fabric = plain_regime().fabric;
  const std::uint64_t bytes = std::uint64_t{64} << 20;
  const auto all =
      simulate(ring_all_gather(kMany), {Collective::all_gather, kMany, kMany}, fabric, bytes);
  ASSERT_TRUE(all.ok()) << all.status().text();
  const Rational block(Int128{bytes / kMany + 1}, 1);
  EXPECT_TRUE(Rational(all->end, all->ticks_per_second) ==
              Rational(kMany - 1) * (fabric.link.alpha + fabric.link.beta * block));
  EXPECT_EQ(all->messages, std::uint64_t{kMany} * (kMany - 1));
  EXPECT_EQ(all->rank_end.size(), std::size_t{kMany});
  EXPECT_EQ(std::accumulate(all->sent.begin(), all->sent.end(), std::int64_t{0}),
            static_cast<std::int64_t>(bytes) * (kMany - 1));
}

// What notes of all ranks would take is known before the work, which is refused with it.
TEST(OneForAll, TooManyNotesAreRefusedAtOnce) {
  constexpr int kMany = 6'561;
  const Algorithm* line = find_algorithm(Collective::all_reduce, "trivance");
  ASSERT_NE(line, nullptr);
  Params params;
  params.ranks = kMany;
  const Schedule schedule = line->make(params);
  const Goal goal = goal_of(*line, params, schedule);
  SimulateOptions options{.most_bytes = std::uint64_t{128} << 20};
  const Fabric fabric = plain_regime().fabric;
  EXPECT_TRUE(simulate(schedule, goal, fabric, 1 << 20, options).ok());  // one stands for all
  options.one_for_all = false;
  const auto refused = simulate(schedule, goal, fabric, 1 << 20, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::out_of_memory);
  EXPECT_NE(refused.status().text().find("B or more; 128 MiB are allowed"), std::string::npos)
      << refused.status().text();
}

}  // namespace
}  // namespace rankine
