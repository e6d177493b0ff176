// Measures the cost of each level of order (engine/api/call.h): an all-reduce with coherent bits
// only, and with each level.
//
//   third_party/bazel run -c opt //bench/call:order
//
//   all_reduce/<ranks>/<bytes>/<type>   f32 (0) or bf16 (1), apart. Batch by batch in turns, all
//     levels beside the call without a level: medians over the batches, in microseconds per call
//     (`none`), and for each level the median of its ratios to `none` in the same turn; 0 if the
//     engine refuses it.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/team.h"
#include "engine/base/statistics.h"
#include "engine/run/machine.h"

namespace rankine {
namespace {

constexpr int kBatches = 60;
constexpr std::size_t kBatchBytes = std::size_t{1} << 22;

void all_reduce(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  const auto bytes = static_cast<std::size_t>(state.range(1));
  const DataType type = state.range(2) == 0 ? DataType::f32 : DataType::bf16;
  const auto calls = static_cast<int>(std::clamp<std::size_t>(kBatchBytes / bytes, 1, 2000));
  const auto team = Team::create({.ranks = ranks, .tuned = false}).value();
  std::vector<double> none;
  std::vector<std::vector<double>> ratios(kOrders);
  for (auto _ : state) {
    team->run([&](Member& me) {
          const std::vector<std::byte> in(bytes);
          std::vector<std::byte> out(bytes);
          // Nanoseconds per call; 0: the engine refuses the level.
          const auto batch = [&](std::optional<Order> order) {
            Call call{
                .in = in.data(), .out = out.data(), .count = bytes / size_of(type), .type = type};
            call.options.order = order;
            if (!me.call(call).ok()) return 0.0;
            me.barrier().throw_if_error();
            const std::int64_t begin = now_ns();
            for (int i = 0; i < calls; ++i) me.call(call).throw_if_error();
            return static_cast<double>(now_ns() - begin) / calls;
          };
          for (int i = 0; i < kBatches; ++i) {
            const double plain = batch(std::nullopt);
            if (me.rank() == 0) none.push_back(plain * 1e-3);
            for (int order = 0; order < kOrders; ++order) {
              const double asked = batch(static_cast<Order>(order));
              if (me.rank() == 0) ratios[static_cast<std::size_t>(order)].push_back(asked / plain);
            }
          }
        })
        .throw_if_error();
    state.SetIterationTime(median(none) * 1e-6);
  }
  state.counters["none"] = median(none);
  for (int order = 0; order < kOrders; ++order) {
    state.counters[std::string(name_of(static_cast<Order>(order)))] =
        median(ratios[static_cast<std::size_t>(order)]);
  }
}
BENCHMARK(all_reduce)
    ->ArgsProduct({{2, 4}, {64, 4096, 65536, 1048576, 16777216}, {0, 1}})
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rankine

BENCHMARK_MAIN();
