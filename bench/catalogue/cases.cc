#include "bench/catalogue/cases.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <utility>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/combine.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/compile/compile.h"
#include "engine/network/simulate.h"
#include "numa/cpus.h"

namespace rankine {
namespace {

constexpr std::string_view kNames[] = {"even", "rising", "one"};

std::vector<std::size_t> deal(CountsKind kind, std::size_t elements, std::size_t blocks) {
  std::vector<std::size_t> counts(blocks, 0);
  if (kind == CountsKind::rising) {
    const std::size_t shares = blocks * (blocks + 1) / 2;
    for (std::size_t b = 0; b < blocks; ++b) counts[b] = elements * (b + 1) / shares;
  }
  const std::size_t dealt = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  counts[kind == CountsKind::one ? 0 : blocks - 1] += elements - dealt;
  return counts;
}

std::unique_ptr<const CatalogueCase> make_case(const tools::PerfCase& asked, CountsKind kind,
                                               std::shared_ptr<const tools::PerfCases> cases) {
  auto made = std::make_unique<CatalogueCase>();
  made->asked = asked;
  const Call& call = asked.call;
  made->name = fmt::format("{}/{}/ranks:{}/bytes:{}", name_of(call.collective),
                           call.options.algorithm, cases->ranks, asked.bytes);
  if (kind != CountsKind::even) {
    const auto blocks = static_cast<std::size_t>(natural_blocks(call.collective, cases->ranks));
    made->counts = deal(kind, call.count * blocks, blocks);
    made->asked.call.counts = made->counts;
    made->name += fmt::format("/counts:{}", name_of(kind));
  }
  made->name += cases->network.empty() ? "/full_speed" : "/network:" + cases->network;
  made->cases = std::move(cases);
  return made;
}

}  // namespace

std::string_view name_of(CountsKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

Result<std::vector<CountsKind>> read_counts_kinds(std::string_view argument,
                                                  std::string_view text) {
  std::vector<CountsKind> kinds;
  for (const std::string_view part : tools::split_list(text)) {
    const auto* const found = std::find(std::begin(kNames), std::end(kNames), part);
    if (found == std::end(kNames)) return tools::unknown_name(argument, part, kNames);
    kinds.push_back(static_cast<CountsKind>(found - std::begin(kNames)));
  }
  if (kinds.empty()) return tools::unknown_name(argument, text, kNames);
  return kinds;
}

std::vector<std::unique_ptr<const CatalogueCase>> catalogue_cases(const CatalogueGrid& grid,
                                                                  std::vector<std::string>& notes) {
  const int cores = cpu_budget().cores;
  std::vector<const tools::NamedNetwork*> networks = {nullptr};
  for (const tools::NamedNetwork& one : grid.networks) networks.push_back(&one);
  std::vector<std::unique_ptr<const CatalogueCase>> all;
  const auto add = [&](Collective collective, int ranks, std::size_t bytes,
                       const tools::NamedNetwork* network) {
    tools::PerfOptions options;
    options.algorithm.collective = collective;
    options.algorithm.algorithms = "all";
    if (ranks > 0) {
      const std::string text = std::to_string(ranks);
      options.algorithm.given.push_back({find_parameter("ranks"), text, "--ranks", text});
    }
    options.min_bytes = options.max_bytes = bytes;
    auto found = tools::cases_of(options, cores, network);
    if (!found.ok()) {
      notes.push_back(fmt::format("{}: {}", name_of(collective), found.status().text()));
      return;
    }
    const auto cases = std::make_shared<const tools::PerfCases>(std::move(*found));
    for (const tools::PerfCase& one : cases->rows) {
      for (const CountsKind kind : grid.counts) {
        const bool dealt = natural_blocks(collective, cases->ranks) > 1;
        if (kind == CountsKind::even || dealt) all.push_back(make_case(one, kind, cases));
      }
    }
  };
  const std::vector<int> ranks = grid.ranks.empty() ? std::vector<int>{0} : grid.ranks;
  for (const Collective collective : all_collectives()) {
    if (algorithm_names(collective).empty()) continue;
    for (const tools::NamedNetwork* network : networks) {
      for (const int n : ranks) {
        for (const std::size_t bytes : grid.bytes) {
          add(collective, n, bytes, network);
          if (collective == Collective::barrier) break;  // a barrier has no size
        }
      }
    }
  }
  return all;
}

namespace {

struct Planned {
  const Algorithm* algorithm = nullptr;
  Params params;
  std::size_t bytes = 0;
};

void run_compile(benchmark::State& state, const Planned& one) {
  const Collective collective = one.algorithm->collective;
  const int ranks = one.params.ranks;
  CompileRequest request;
  request.algorithm = one.algorithm;
  request.params = one.params;
  request.counts.assign(static_cast<std::size_t>(natural_blocks(collective, ranks)),
                        tools::count_for(collective, ranks, one.bytes, size_of(request.type)));
  for (auto _ : state) {
    auto compiled = compile(request);
    if (!compiled.ok()) return state.SkipWithError(compiled.status().text().c_str());
    benchmark::DoNotOptimize(compiled->plan.rounds);
  }
}

void run_predict(benchmark::State& state, const Planned& one) {
  const Fabric fabric = find_regime("scale_out")->fabric;
  Schedule schedule = one.algorithm->make(one.params);
  const CollectiveSpec goal = goal_of(*one.algorithm, one.params, schedule);
  schedule = lower(std::move(schedule), fabric.abilities());
  std::uint64_t messages = 0;
  for (auto _ : state) {
    const auto result = simulate(schedule, goal, fabric, one.bytes);
    if (!result.ok()) return state.SkipWithError(result.status().text().c_str());
    messages += result->messages;
  }
  state.counters["messages"] =
      benchmark::Counter(static_cast<double>(messages), benchmark::Counter::kIsRate);
}

void add(const char* what, void (*run)(benchmark::State&, const Planned&), const Planned& one) {
  benchmark::RegisterBenchmark(
      fmt::format("{}/{}/{}/ranks:{}/bytes:{}", what, name_of(one.algorithm->collective),
                  one.algorithm->name, one.params.ranks, one.bytes)
          .c_str(),
      [run, one](benchmark::State& state) { run(state, one); })
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace

void register_planning(const std::vector<int>& ranks, const std::vector<std::size_t>& bytes) {
  constexpr int kRanks = 8;
  for (const Algorithm& algorithm : catalogue()) {
    for (const int n : ranks.empty() ? std::vector<int>{kRanks} : ranks) {
      for (const std::size_t m : bytes) {
        Params params = algorithm.only_taken({.ranks = n, .peer = n - 1});
        if (algorithm.refusal(params)) continue;
        const Planned one{&algorithm, std::move(params), m};
        add("compile", run_compile, one);
        add("predict", run_predict, one);
      }
    }
  }
}

}  // namespace rankine
