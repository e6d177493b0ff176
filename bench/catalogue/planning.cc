#include "bench/catalogue/planning.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/combine.h"
#include "engine/compile/compile.h"
#include "engine/network/simulate.h"
#include "engine/tools/metrics.h"

namespace rankine {
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
  const Goal goal = goal_of(*one.algorithm, one.params, schedule);
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
