// Measures the engine's own time per call, without data movement: the price of generality.
//
//   third_party/bazel run -c opt //bench/call -- --benchmark_filter=^all_reduce_8B
//
// forms.cc adds started calls, messages and epilogues to the same program.
//
//   all_reduce_8B/<how>   one rank, alone in its communicator, in place: it waits for no rank and
//     sends nothing. Batch by batch in turns: `call` (Member::all_reduce as callers write it;
//     `chosen`: the engine chooses, `named`: looks an algorithm's name up), `walk` (the interpreter
//     alone, with the same plan) and `empty` (an empty loop). Counters are nanoseconds per call,
//     medians over the batches:
//       price         call - empty: the engine's whole work for a call that moves nothing
//       before_walk   call - walk: plan look-up, argument check, fingerprint, and the records for
//                     peers and for the flight record; so an upper bound of the first three
//     `.._spread` is half the distance between the quartiles over the batches, `.._undisturbed`
//     the tenth percentile.
//
//   first_call/<collective>/<ranks>/<bytes>   the time of planning a call by one rank (plan_of)
//     in its own communicator; the engine chooses the algorithm.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/communicator.h"
#include "engine/api/tuning/choose.h"
#include "engine/base/statistics.h"
#include "engine/cli/harness.h"
#include "engine/compile/compile.h"
#include "engine/run/interpret.h"
#include "numa/placement.h"
#include "numa/topology.h"

namespace rankine {
namespace {

constexpr std::size_t kCount = 2;  // floats: 8 B
constexpr int kCallsPerBatch = 500, kRounds = 1'000;

void pin_to_a_core() {
  const Topology topology = Topology::detect();
  pin_calling_thread(topology, place_ranks(topology, 1).ranks[0]);
}

// Runs the interpreter with the plan of this call, as Member::call() runs it.
class Walk {
 public:
  explicit Walk(std::array<float, kCount>& data) : rank_control_(1, choose_wait_policy(1), 0) {
    CompileRequest request;
    request.algorithm = &default_algorithm(Collective::all_reduce, 1, sizeof(data));
    request.params.ranks = 1;
    request.counts = {kCount};
    request.buffers = Buffers::in_place;
    auto compiled = compile(request);
    compiled.status().throw_if_error();
    plan_ = std::move(compiled->plan);
    rank_.waiter = {.rank_control = &rank_control_};
    rank_.memory.resize(4);
    rank_.operands.resize(static_cast<std::size_t>(plan_.most_operands));
    rank_.memory_of(0, Memory::input) = rank_.memory_of(0, Memory::output) =
        reinterpret_cast<std::byte*>(data.data());
  }
  void operator()() {
    ++rank_.waiter.call;
    if (!interpret(plan_, rank_)) std::abort();
  }

 private:
  RankControl rank_control_;
  Plan plan_;
  RankState rank_;
};

template <class Body>
double batch_ns(const Body& body) {
  const std::int64_t took = *tools::time_warm(now_ns, now_ns, kCallsPerBatch, [&] {
    body();
    benchmark::ClobberMemory();
  });
  return static_cast<double>(took) / kCallsPerBatch;
}

void all_reduce(benchmark::State& state, const CallOptions& options) {
  pin_to_a_core();
  const auto communicator = Communicator::create({.ranks = 1, .tuned = false}).value();
  const auto member = communicator->join(0).value();
  std::array<float, kCount> data{1.0F, 2.0F};
  Walk walk(data);
  const auto call = [&] {
    member->all_reduce(std::span<float>(data), ReduceOp::sum, options).throw_if_error();
  };
  std::array<std::vector<double>, 3> times;  // call, walk, empty
  for (auto& of_one : times) of_one.reserve(kRounds);
  call();  // makes the plan
  for (auto _ : state) {
    for (int round = 0; round < kRounds; ++round) {
      times[0].push_back(batch_ns(call));
      times[1].push_back(batch_ns([&] { walk(); }));
      times[2].push_back(batch_ns([] {}));
    }
    state.SetIterationTime(median(times[0]) * 1e-9);
  }
  if (data[1] != 2.0F) std::abort();
  const auto tell = [&](const std::string& name, const std::vector<double>& ns) {
    state.counters[name] = median(ns);
    state.counters[name + "_undisturbed"] = quantile(ns, 0.1);
  };
  const auto tell_difference = [&](const std::string& name, std::size_t a, std::size_t b) {
    std::vector<double> differences;
    for (std::size_t i = 0; i < times[a].size(); ++i) {
      differences.push_back(times[a][i] - times[b][i]);
    }
    tell(name, differences);
    state.counters[name + "_spread"] = half_quartile_range(differences);
  };
  tell("call", times[0]);
  tell("walk", times[1]);
  tell("empty", times[2]);
  tell_difference("price", 0, 2);
  tell_difference("before_walk", 0, 1);
}

#define RANKINE_CALL_BENCHMARK(how, ...)                       \
  BENCHMARK_CAPTURE(all_reduce, how, CallOptions{__VA_ARGS__}) \
      ->Name("all_reduce_8B/" #how)                            \
      ->UseManualTime()                                        \
      ->Iterations(1)                                          \
      ->Repetitions(3)                                         \
      ->Unit(benchmark::kNanosecond)

void first_call(benchmark::State& state, Collective collective) {
  const auto ranks = static_cast<int>(state.range(0));
  const auto count = static_cast<std::size_t>(state.range(1)) / sizeof(float);
  for (auto _ : state) {
    state.PauseTiming();
    auto communicator = Communicator::create({.ranks = ranks, .tuned = false}).value();
    auto member = communicator->join(0).value();
    state.ResumeTiming();
    member->plan_of({.collective = collective, .count = count}).status().throw_if_error();
    state.PauseTiming();
    member.reset();
    communicator.reset();
    state.ResumeTiming();
  }
}

const bool kFirstCallsAreRegistered = [] {
  for (const Collective collective : all_collectives()) {
    for (const std::int64_t ranks : {2, 8, 64, 1024}) {
      for (const std::int64_t bytes : {8, 65'536}) {
        benchmark::RegisterBenchmark(
            ("first_call/" + std::string(name_of(collective))).c_str(),
            [collective](benchmark::State& state) { first_call(state, collective); })
            ->Args({ranks, bytes})
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
  return true;
}();

RANKINE_CALL_BENCHMARK(chosen);
RANKINE_CALL_BENCHMARK(named, .algorithm = "ring");

}  // namespace
}  // namespace rankine

BENCHMARK_MAIN();
