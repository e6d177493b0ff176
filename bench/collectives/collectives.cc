// Collectives under each clock, and what planning them costs.
//
//   bazel run -c opt //bench/collectives -- --benchmark_filter='^all_reduce/ring/'
//
// Names: <collective>/<algorithm>/<ranks>/<bytes>/<clock>, and compile/..., predict/...
//
//   none     real time at full speed: the slowest rank, from the moment the first one began
//   virtual  the model's time as the threads worked it out; real_us: what that took them
//   wall     real time under the network's clock, divided by the dilation that this machine needs
//
// Manual time throughout: the threads' team sleeps between iterations. Counters: algbw and busbw
// (GB/s, as nccl-tests has them), predicted (us, by simulate()) and ratio, measured to predicted;
// at full speed that compares this machine with the network. They are medians, Time is a mean. The
// network is `scale_out`.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/statistics.h"
#include "engine/compile/compile.h"
#include "engine/network/simulate.h"
#include "engine/network/throttle.h"
#include "engine/tools/metrics.h"
#include "engine/tools/stage.h"
#include "numa/cpu_budget.h"

namespace rankine {
namespace {

using tools::Stage;

struct Case {
  const Algorithm* algorithm = nullptr;
  int ranks = 2;
  std::size_t bytes = 0;
  int segments = 1;

  Params params() const {
    return algorithm->only_taken({.ranks = ranks, .peer = ranks - 1, .segments = segments});
  }
  Call call() const {
    Call call{.collective = algorithm->collective};
    call.count = tools::count_for(call.collective, ranks, bytes, size_of(call.type));
    call.options.algorithm = algorithm->name;
    call.options.segments = segments;
    return call;
  }
  std::string name(const char* first, const char* last) const {
    return std::string(first) + std::string(name_of(algorithm->collective)) + "/" +
           std::string(algorithm->name) + "/" + std::to_string(ranks) + "/" +
           std::to_string(bytes) + last;
  }
};

const Fabric& network() { return find_regime("scale_out")->fabric; }

void count(benchmark::State& state, const Case& one, double seconds, double predicted) {
  const double algbw = static_cast<double>(one.bytes) / seconds * 1e-9;
  state.counters["algbw"] = algbw;
  state.counters["busbw"] = algbw * tools::bus_factor(one.algorithm->collective, one.ranks);
  state.counters["predicted"] = predicted * 1e6;
  state.counters["ratio"] = seconds / predicted;
}

void run_clocked(benchmark::State& state, const Case& one, ClockMode mode) {
  const Params params = one.params();
  const Schedule schedule = one.algorithm->make(params);
  const Goal goal = goal_of(*one.algorithm, params, schedule);
  const auto predicted = simulate(schedule, goal, network(), one.bytes);
  const auto pricing = Pricing::make(network(), goal, one.bytes, false);
  auto stage = Stage::create({.ranks = one.ranks}, one.call());
  if (!predicted.ok() || !pricing.ok() || !stage.ok()) {
    return state.SkipWithError("cannot be set up");
  }
  ThrottleOptions options;
  options.mode = mode;
  options.wait = (*stage)->team().communicator().wait_policy();
  const auto new_clock = [&]() -> std::unique_ptr<Throttle> {
    if (mode == ClockMode::none) return nullptr;
    auto clock = Throttle::create(schedule, goal, network(), *pricing, options);
    return clock.ok() ? std::move(*clock) : nullptr;
  };
  if (mode == ClockMode::wall) {
    const auto demands =
        (*stage)->demands(predicted->seconds, pricing->seconds(new_clock()->least_cost()));
    if (!demands.ok()) return state.SkipWithError(demands.status().text().c_str());
    options.dilate = tools::fitting_dilation(*demands);
    options.tolerance_ns = static_cast<std::int64_t>(demands->least * options.dilate / 2 * 1e9);
    state.counters["dilate"] = options.dilate;
  } else {
    (void)(*stage)->play();  // compiles
  }

  std::vector<double> times, real;
  for (auto _ : state) {
    const auto clock = new_clock();
    const auto played = (*stage)->play(clock.get());
    if (!played.ok() || played->wrong != 0) return state.SkipWithError("wrong data");
    double seconds = played->seconds;
    if (mode == ClockMode::virtual_time) seconds = pricing->seconds(clock->end());
    if (mode == ClockMode::wall) {
      seconds = static_cast<double>(clock->elapsed_ns()) * 1e-9 / options.dilate;
    }
    state.SetIterationTime(seconds);
    times.push_back(seconds);
    real.push_back(played->seconds);
  }
  count(state, one, median(std::move(times)), predicted->seconds);
  if (mode == ClockMode::virtual_time) {
    state.counters["real_us"] = median(std::move(real)) * 1e6;
  }
}

void run_compile(benchmark::State& state, const Case& one) {
  CompileRequest request;
  request.algorithm = one.algorithm;
  request.params = one.params();
  request.counts.assign(
      static_cast<std::size_t>(natural_blocks(one.algorithm->collective, one.ranks)),
      one.call().count);
  for (auto _ : state) {
    auto compiled = compile(request);
    if (!compiled.ok()) return state.SkipWithError(compiled.status().text().c_str());
    benchmark::DoNotOptimize(compiled->plan.rounds);
  }
}

void run_predict(benchmark::State& state, const Case& one) {
  const Params params = one.params();
  const Schedule schedule = one.algorithm->make(params);
  const Goal goal = goal_of(*one.algorithm, params, schedule);
  std::uint64_t messages = 0;
  for (auto _ : state) {
    const auto result = simulate(schedule, goal, network(), one.bytes);
    if (!result.ok()) return state.SkipWithError(result.status().text().c_str());
    messages += result->messages;
  }
  state.counters["messages"] =
      benchmark::Counter(static_cast<double>(messages), benchmark::Counter::kIsRate);
}

void add_all() {
  const int cores = std::max(2, cpu_budget().cores);
  const struct {
    Collective collective;
    const char* name;
    int segments;
  } kLines[] = {
      {Collective::all_reduce, "ring", 1},         {Collective::all_reduce, "double_tree", 4},
      {Collective::all_reduce, "hierarchical", 4}, {Collective::all_gather, "bruck", 1},
      {Collective::reduce_scatter, "ring", 1},     {Collective::broadcast, "chain", 8},
      {Collective::all_to_all, "pairwise", 1}};
  for (const auto& [collective, name, segments] : kLines) {
    Case one{.algorithm = find_algorithm(collective, name), .segments = segments};
    for (const std::size_t bytes : {std::size_t{64} << 10, std::size_t{4} << 20}) {
      one.bytes = bytes;
      for (const ClockMode mode : {ClockMode::none, ClockMode::virtual_time, ClockMode::wall}) {
        one.ranks = mode == ClockMode::none ? cores : 8;
        const std::string last = "/" + std::string(name_of(mode));
        benchmark::RegisterBenchmark(
            one.name("", last.c_str()).c_str(),
            [one, mode](benchmark::State& state) { run_clocked(state, one, mode); })
            ->UseManualTime()
            ->Iterations(mode == ClockMode::none ? 200 : 10)
            ->Unit(benchmark::kMicrosecond);
      }
      for (const int ranks : {8, 64}) {
        one.ranks = ranks;
        benchmark::RegisterBenchmark(one.name("compile/", "").c_str(),
                                     [one](benchmark::State& state) { run_compile(state, one); })
            ->Unit(benchmark::kMicrosecond);
        benchmark::RegisterBenchmark(one.name("predict/", "").c_str(),
                                     [one](benchmark::State& state) { run_predict(state, one); })
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
  const Case large{.algorithm = find_algorithm(Collective::all_reduce, "ring"),
                   .ranks = 4096,
                   .bytes = std::size_t{64} << 20};
  benchmark::RegisterBenchmark(large.name("predict/", "").c_str(), [large](
                                                                       benchmark::State& state) {
    run_predict(state, large);
  })->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace rankine

int main(int argc, char** argv) {
  rankine::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
