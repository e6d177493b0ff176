// Runs the mailbox as Google Benchmarks, beside a bare cache line and two well-known SPSC queues.
//
//   third_party/bazel run -c opt //bench/mailbox:benchmark -- --benchmark_filter=latency/
//
// Names: latency/<channel> is one way of a ping-pong of 8-byte messages between two pinned threads,
// throughput/<channel> a message of a stream (items_per_second: messages). Cores of a virtual
// machine move: --benchmark_repetitions=9 --benchmark_enable_random_interleaving=true lets all take
// turns. Exit status 3: no second CPU.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/mailbox/channels.h"
#include "bench/rivals/crew.h"
#include "engine/cli/probe.h"

namespace rankine {
namespace {

// Calls play(rank, n) on both threads at once; the time of rank 0's n iterations counts, in ns.
template <class Play>
void run(benchmark::State& state, rivals::Crew& crew, const Play& play) {
  while (state.KeepRunningBatch(state.max_iterations)) {
    double ns = 0;
    crew.run([&](int rank) {
      const double mine = play(rank, static_cast<std::uint64_t>(state.max_iterations));
      if (rank == 0) ns = mine;
    });
    state.SetIterationTime(ns * 1e-9);
  }
}

void add(rivals::Crew& crew) {
  std::vector<benchmark::internal::Benchmark*> all;
  all.push_back(benchmark::RegisterBenchmark("latency/bare_line", [&](benchmark::State& state) {
    tools::LatencyProbe probe;
    run(state, crew, [&](int rank, std::uint64_t n) {
      return probe.play(rank, 1, static_cast<int>(n)) * static_cast<double>(n);
    });
  }));
  for (const ChannelKind& kind : kChannelKinds) {
    const std::string name = kind.name;
    all.push_back(
        benchmark::RegisterBenchmark(("latency/" + name).c_str(), [&](benchmark::State& state) {
          const auto there = kind.make(), back = kind.make();
          run(state, crew, [&](int rank, std::uint64_t n) {
            return static_cast<double>(play_ping_pong(rank, *there, *back, n)) / 2;
          });
        }));
    all.push_back(
        benchmark::RegisterBenchmark(("throughput/" + name).c_str(), [&](benchmark::State& state) {
          const auto channel = kind.make(), done = kind.make();
          run(state, crew, [&](int rank, std::uint64_t n) {
            return static_cast<double>(play_stream(rank, *channel, *done, n));
          });
          state.SetItemsProcessed(state.iterations());
        }));
  }
  for (benchmark::internal::Benchmark* one : all) one->UseManualTime();
}

}  // namespace
}  // namespace rankine

int main(int argc, char** argv) {
  const std::vector<int> cpus = rankine::rivals::allowed_cpus();
  if (cpus.size() < 2) {
    std::fprintf(stderr, "mailbox: this process may use one CPU; two are needed\n");
    return 3;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  rankine::rivals::Crew crew(2, cpus);
  rankine::add(crew);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
