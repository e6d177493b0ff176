// Measures the gain of bucket fusion: many small tensors are reduced one by one, or packed into
// buckets.
//
//   third_party/bazel run -c opt //bench/call -- --benchmark_filter=^buckets/
//
// Manual time: all tensors once, on the slowest rank. Arguments: ranks, tensors, elements per
// tensor.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/api/buckets.h"
#include "engine/api/team.h"
#include "engine/run/wait.h"

namespace rankine {
namespace {

void all_reduce_tensors(benchmark::State& state, bool fused) {
  const int ranks = static_cast<int>(state.range(0));
  const auto tensors = static_cast<std::size_t>(state.range(1));
  const auto elements = static_cast<std::size_t>(state.range(2));
  auto team = Team::create({.ranks = ranks, .tuned = false});
  if (!team.ok()) {
    state.SkipWithError(team.status().text().c_str());
    return;
  }
  std::vector<std::int64_t> took(static_cast<std::size_t>(ranks));
  for (auto _ : state) {
    const Status status = (*team)->run([&](Member& me) {
      std::vector<std::vector<float>> data(tensors, std::vector<float>(elements, 1.0F));
      std::vector<std::span<float>> spans(data.begin(), data.end());
      Buckets buckets(me);
      const auto reduce_all = [&] {
        if (fused) {
          buckets.all_reduce(std::span<const std::span<float>>(spans)).throw_if_error();
        } else {
          for (const std::span<float> tensor : spans) me.all_reduce(tensor).throw_if_error();
        }
      };
      constexpr int kRepeats = 20;
      reduce_all();  // makes plans, scratch and pages
      me.barrier().throw_if_error();
      const std::int64_t begin = now_ns();
      for (int i = 0; i < kRepeats; ++i) reduce_all();
      took[static_cast<std::size_t>(me.rank())] = (now_ns() - begin) / kRepeats;
    });
    if (!status.ok()) {
      state.SkipWithError(status.text().c_str());
      return;
    }
    state.SetIterationTime(static_cast<double>(*std::max_element(took.begin(), took.end())) * 1e-9);
  }
  state.counters["bytes"] = static_cast<double>(tensors * elements * sizeof(float));
}

void one_by_one(benchmark::State& state) { all_reduce_tensors(state, false); }
void fused(benchmark::State& state) { all_reduce_tensors(state, true); }

void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->UseManualTime()->Iterations(5)->Repetitions(5)->ReportAggregatesOnly();
  for (const int ranks : {2, 4, 8}) {
    for (const int elements : {16, 256, 4096}) benchmark->Args({ranks, 256, elements});
  }
}

BENCHMARK(one_by_one)->Name("buckets/one_by_one")->Apply(shapes);
BENCHMARK(fused)->Name("buckets/fused")->Apply(shapes);

}  // namespace
}  // namespace rankine
