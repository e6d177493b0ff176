// Measures the time that an epilogue saves: an all-reduce followed by residual add and RMSNorm, as
// one call or as a call and a pass.
//
//   third_party/bazel run -c opt //bench/call -- --benchmark_filter=^epilogue/
//
//   epilogue/<ranks>/<rows>/<in place>   rows of 4096 bf16. Batch by batch in turns: `call` (the
//     all-reduce alone), `then_pass` (the call, and apply() on all rows), `fused` (the call with
//     the epilogue). Medians over the batches, in microseconds per call; `saved` is the part of
//     then_pass that fused does not take, the median of the batches' ratios, and `saved_spread`
//     half the distance between their quartiles.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/api/epilogues.h"
#include "engine/api/team.h"
#include "engine/base/statistics.h"
#include "engine/run/machine.h"

namespace rankine {
namespace {

constexpr std::size_t kRow = 4096;
constexpr int kBatches = 200;

void epilogue(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  const auto rows = static_cast<std::size_t>(state.range(1));
  const bool in_place = state.range(2) != 0;
  const auto calls = static_cast<int>(std::max<std::size_t>(1, 64 / rows));
  const auto team = Team::create({.ranks = ranks, .tuned = false}).value();
  std::vector<double> alone, then_pass, fused, saved;
  for (auto _ : state) {
    team->run([&](Member& me) {
          std::vector<BFloat16> in(rows * kRow, BFloat16(0.0F)), out(in), residual(in), normed(in);
          std::vector<BFloat16> gain(kRow, BFloat16(1.0F));
          BFloat16* result = in_place ? in.data() : out.data();
          const RowEpilogue norm = RowEpilogue::make({.row_elements = kRow,
                                                      .residual = residual.data(),
                                                      .norm = Norm::rms,
                                                      .weight = gain.data(),
                                                      .out = normed.data()})
                                       .value();
          Call plain{.in = in.data(), .out = result, .count = in.size(), .type = DataType::bf16};
          Call finishing = plain;
          finishing.options.epilogue = &norm;
          const auto batch = [&](const auto& body) {
            me.barrier().throw_if_error();
            const std::int64_t begin = now_ns();
            for (int i = 0; i < calls; ++i) body();
            return static_cast<double>(now_ns() - begin) * 1e-3 / calls;
          };
          for (int i = 0; i < kBatches; ++i) {
            const auto call_alone = [&] { return batch([&] { me.call(plain).throw_if_error(); }); };
            const auto call_then_pass = [&] {
              return batch([&] {
                me.call(plain).throw_if_error();
                apply(norm, result, rows);
              });
            };
            // In every other round each of the two finds the caches as the other leaves them.
            const double a = i % 2 == 0 ? call_alone() : 0;
            double b = i % 2 == 0 ? call_then_pass() : 0;
            const double c = batch([&] { me.call(finishing).throw_if_error(); });
            if (i % 2 != 0) b = call_then_pass();
            if (me.rank() != 0 || i < kBatches / 10) continue;
            if (i % 2 == 0) alone.push_back(a);
            then_pass.push_back(b), fused.push_back(c);
            saved.push_back(1 - c / b);
          }
        })
        .throw_if_error();
    state.SetIterationTime(median(fused) * 1e-6);
  }
  state.counters["call"] = median(alone);
  state.counters["then_pass"] = median(then_pass);
  state.counters["fused"] = median(fused);
  state.counters["saved"] = median(saved);
  state.counters["saved_spread"] = half_quartile_range(saved);
}
BENCHMARK(epilogue)
    ->ArgsProduct({{2}, {1, 4, 16, 64, 128, 256, 512}, {0, 1}})
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rankine
