// Every line of the catalogue, executed: numbers of ranks, awkward counts, types and operations,
// every transport, in place and apart, every root where ranks are few.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/circulant.h"
#include "algorithms/torus.h"
#include "engine/api/check.h"
#include "engine/api/team.h"
#include "engine/faults/collective_case.h"

namespace rankine {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// One case in so many is run. Numbers of ranks between the landmarks are there for what only some N
// does wrong; steps are prime to the numbers of counts, transports and buffers, so all of these
// occur.
std::size_t step(int ranks) {
  const bool landmark = ranks <= 17 || ranks == 33 || ranks == 48 || ranks == 64;
  if (landmark) return kSanitized ? 16 : 1;
  return ranks < 33 ? 5 : 17;
}

struct Kind {
  DataType type;
  ReduceOp op;
};
constexpr Kind kKinds[] = {
    {DataType::f32, ReduceOp::sum}, {DataType::u32, ReduceOp::sum}, {DataType::bf16, ReduceOp::avg},
    {DataType::u8, ReduceOp::bxor}, {DataType::f64, ReduceOp::avg}, {DataType::i64, ReduceOp::prod},
    {DataType::f16, ReduceOp::max}, {DataType::i32, ReduceOp::min}, {DataType::i8, ReduceOp::sum},
};

std::vector<Rank> roots(Collective collective, int ranks) {
  if (!has_root(collective)) return {0};
  std::vector<Rank> all;
  for (Rank r = 0; r < ranks; ++r) {
    if (ranks <= 4 || r == 0 || r == 1 || r == ranks - 1) all.push_back(r);
  }
  return all;
}

std::vector<std::size_t> counts(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<std::size_t> all = {0, 1, 3, n - 1, n, n + 1, 13 * n + 5, 1009};
  if (ranks > 17) all = {0, 1, n + 1, 1009};
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// All cases of one algorithm among so many ranks; kinds of data alternate.
void append_cases(const Algorithm& algorithm, int ranks, std::vector<CollectiveCase>& cases) {
  std::vector<CallOptions> variants = {{.algorithm = algorithm.name}};
  if (algorithm.takes("segments")) {
    variants.push_back({.algorithm = algorithm.name, .segments = 3});
  }
  if (algorithm.takes("group")) {
    for (const int group : {1, 2, 3, ranks}) {
      variants.push_back({.algorithm = algorithm.name, .group = group});
    }
  }
  // Options only refer to their lists.
  static std::list<std::vector<int>> lists;
  if (algorithm.takes("dims")) {
    for (const int dimensions : {2, 3}) {
      lists.push_back(balanced_dims(ranks, dimensions));
      if (lists.back().empty()) continue;
      variants.push_back({.algorithm = algorithm.name, .dims = lists.back()});
    }
  }
  if (algorithm.takes("skips")) {
    for (const char* scheme : {"powers_of_two", "linear", "square_root"}) {
      lists.push_back(read_skips(scheme, ranks).value());
      variants.push_back({.algorithm = algorithm.name, .skips = lists.back()});
    }
  }
  if (algorithm.takes("levels")) {
    for (const std::vector<int>& levels : {std::vector<int>{2}, {3}, {2, 4}}) {
      lists.push_back(levels);
      variants.push_back({.algorithm = algorithm.name, .levels = lists.back()});
    }
  }
  if (algorithm.takes("aggregation")) {
    for (const int blocks : {1, 2}) {
      variants.push_back({.algorithm = algorithm.name, .aggregation = blocks});
    }
  }
  if (algorithm.takes("radix")) {
    for (const int radix : {3, 4, ranks}) {
      if (ranks > 33 && radix != 4) continue;
      variants.push_back({.algorithm = algorithm.name, .radix = radix});
    }
  }
  for (CallOptions options : variants) {
    Params params = params_of(options, ranks);
    params.segments = std::max(1, params.segments);
    if (algorithm.refusal(params)) continue;
    for (const Rank root : roots(algorithm.collective, ranks)) {
      for (const std::size_t count : counts(ranks)) {
        // An all-to-all moves count * N * N elements.
        if (algorithm.collective == Collective::all_to_all && ranks > 17 && count > 100) continue;
        std::vector<std::optional<Transport>> transports = {Transport::direct, Transport::mailbox};
        if (count < 100) transports.push_back(std::nullopt);  // boards, where they suit
        for (const auto& transport : transports) {
          for (const bool in_place : {false, true}) {
            options.transport = transport;
            const std::size_t number = cases.size();
            Kind kind = kKinds[number * 7 % std::size(kKinds)];
            if (!takes(algorithm.collective, kind.type, kind.op)) kind.op = ReduceOp::sum;
            cases.push_back({algorithm.collective, ranks, count, kind.type, kind.op, root,
                             static_cast<Rank>(number % static_cast<std::size_t>(ranks)), in_place,
                             number % 3 == 0 ? 0 : number % 61, number, options});
          }
        }
      }
    }
  }
}

class CatalogueSweep : public testing::TestWithParam<int> {};

// One case in so many of these collectives, by a team with these costs and ports.
void run_cases(const std::function<bool(Collective)>& are_asked, int ranks, std::size_t step,
               const Costs& costs, int ports = 0) {
  std::vector<CollectiveCase> all;
  for (const Algorithm& algorithm : catalogue()) {
    if (are_asked(algorithm.collective)) append_cases(algorithm, ranks, all);
  }
  if (ports > 0) {
    std::erase_if(all, [](const CollectiveCase& one) {
      return one.options.transport.value_or(Transport::direct) == Transport::direct;
    });
  }
  std::vector<CollectiveCase> cases;
  for (std::size_t i = 0; i < all.size(); i += step) cases.push_back(all[i]);
  auto team = Team::create(
      {.ranks = ranks, .timeout = std::chrono::minutes(4), .costs = costs, .ports = ports});
  ASSERT_TRUE(team.ok()) << team.status().text();
  std::mutex mutex;
  std::string fault;
  // Some at a time, with their results: each rank would take as long to work one out as all do now.
  constexpr std::size_t kAtOnce = 64;
  for (std::size_t first = 0; first < cases.size() && fault.empty(); first += kAtOnce) {
    const std::span<const CollectiveCase> some =
        std::span(cases).subspan(first, std::min(kAtOnce, cases.size() - first));
    std::vector<std::vector<std::byte>> common;
    for (const CollectiveCase& test : some) common.push_back(common_result(test));
    const Status status = (*team)->run([&](Member& me) {
      CaseBuffers buffers;
      for (std::size_t i = 0; i < some.size(); ++i) {
        const std::string found = run_case(me, some[i], buffers, {}, common[i]);
        if (found.empty()) continue;
        const std::lock_guard lock(mutex);
        if (fault.empty()) fault = found;
        return;
      }
    });
    ASSERT_TRUE(!fault.empty() || status.ok()) << status.text();
  }
  EXPECT_EQ(fault, "");
  std::printf("%d ranks: %zu cases\n", ranks, cases.size());
  for (Rank r = 0; r < ranks; ++r) {
    const PortsInUse used = (*team)->communicator().ports_in_use(r);
    EXPECT_LE(used.most_sent, ports) << "rank " << r;
    EXPECT_LE(used.most_received, ports) << "rank " << r;
    EXPECT_EQ(used.most_sent > 0, ports > 0 && ranks > 1) << "rank " << r;
    EXPECT_EQ(used.most_received > 0, ports > 0 && ranks > 1) << "rank " << r;
  }
}

TEST_P(CatalogueSweep, EveryAlgorithmMeansWhatItSays) {
  run_cases([](Collective collective) { return collective != Collective::barrier; }, GetParam(),
            step(GetParam()), {});
}

// In pieces of one line to sixteen, past the caches and not. (All collectives are staged among
// processes, and swept there.)
TEST_P(CatalogueSweep, AndSoItDoesWhereOthersReachScratchOnly) {
  const int ranks = GetParam();
  if (ranks > 17) GTEST_SKIP() << "what is staged does not depend on how many read it";
  const auto may_be_staged = [](Collective collective) {
    return collective == Collective::all_reduce || collective == Collective::broadcast;
  };
  Costs costs;
  costs.stage_apart = costs.stage_in_place = 1;
  costs.stage_stream = ranks % 2 == 0 ? 1 : 512;
  costs.stage_piece = std::size_t{64} << ranks % 5;
  costs.stage_turn = 256;
  run_cases(may_be_staged, ranks, 3 * step(ranks), costs);
}

// With one port a rank has one message in flight; with two, messages of a round that has more of them
// still wait for each other.
TEST_P(CatalogueSweep, AndSoItDoesWithABudgetOfPorts) {
  const int ranks = GetParam();
  const auto moves_data = [](Collective collective) { return collective != Collective::barrier; };
  for (const int ports : {1, 2}) {
    if (ports == 1 || ranks <= 9) run_cases(moves_data, ranks, 3 * step(ranks), {}, ports);
  }
}

// Nobody may leave before everybody has come.
TEST_P(CatalogueSweep, EveryBarrierHoldsEverybody) {
  const int ranks = GetParam();
  for (const int ports : {0, 1}) {
    auto team =
        Team::create({.ranks = ranks, .timeout = std::chrono::minutes(4), .ports = ports});
    ASSERT_TRUE(team.ok()) << team.status().text();
    for (const Algorithm& algorithm : catalogue()) {
      Params params;
      params.ranks = ranks;
      if (algorithm.collective != Collective::barrier || algorithm.refusal(params)) continue;
      for (const Transport transport : {Transport::direct, Transport::mailbox}) {
        if (ports > 0 && transport == Transport::direct) continue;
        std::atomic<int> arrivals{0};
        std::atomic<int> early{0};
        const Status status = (*team)->run([&](Member& me) {
          for (int round = 1; round <= 20; ++round) {
            arrivals.fetch_add(1, std::memory_order_relaxed);
            me.barrier({.algorithm = algorithm.name, .transport = transport}).throw_if_error();
            if (arrivals.load(std::memory_order_relaxed) < round * ranks) early.fetch_add(1);
          }
        });
        EXPECT_TRUE(status.ok()) << algorithm.name << ": " << status.text();
        EXPECT_EQ(early.load(), 0) << algorithm.name << ", " << name_of(transport);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CatalogueSweep, testing::Range(1, kSanitized ? 18 : 64));
INSTANTIATE_TEST_SUITE_P(ManyRanks, CatalogueSweep, testing::Values(kSanitized ? 33 : 64));

}  // namespace
}  // namespace rankine
