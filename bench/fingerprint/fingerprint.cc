// Measures the cost of comparing the ranks' calls, which the engine always does.
//
//   third_party/bazel run -c opt //bench/fingerprint
//
//   all_reduce_8B/<transport>   two pinned ranks, one 8 B all-reduce after the other, through four
//     contenders in turn, batch by batch: `with` fingerprints (the product's interpreter),
//     `without` (a copy compiled without them, BUILD.bazel), `again` (a copy with them: the
//     difference between `with` and `again` is noise) and `api` (the whole call,
//     Member::all_reduce). Counters are nanoseconds per call: medians over the batches; `price` and
//     `noise` are medians of the differences to `with` within a round, `.._spread` half the
//     distance between their quartiles; `.._percent` are parts of the whole call.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/communicator.h"
#include "engine/api/tuning/choose.h"
#include "engine/base/statistics.h"
#include "engine/compile/compile.h"
#include "engine/run/fingerprint.h"
#include "engine/run/interpret.h"
#include "numa/placement.h"
#include "numa/topology.h"

namespace rankine {

// The copies in BUILD.bazel.
bool interpret_without(const Plan& plan, RankState& state) noexcept;
bool interpret_again(const Plan& plan, RankState& state) noexcept;

namespace {

constexpr int kRanks = 2;
constexpr std::size_t kCount = 2;  // floats: 8 B
constexpr int kCallsPerBatch = 500, kRounds = 1'000;
// part of the batches that are undisturbed, even if others use the cores
constexpr double kUndisturbed = 0.1;

// Pins a rank's thread to its core.
void pin_to(int rank) {
  static const Topology topology = Topology::detect();
  static const Placement placement = place_ranks(topology, kRanks);
  pin_calling_thread(topology, placement.ranks[static_cast<std::size_t>(rank)]);
}

// The states and connections of two ranks, as in a communicator.
class Pair {
 public:
  explicit Pair(Transport transport)
      : rank_control_(kRanks, choose_wait_policy(kRanks), 30'000'000'000) {
    CompileRequest request;
    request.algorithm = &default_algorithm(Collective::all_reduce, kRanks, kCount * sizeof(float));
    request.params.ranks = kRanks;
    request.counts = {kCount};
    request.transport = transport;
    request.slot_payload = payload_of(kStride);
    auto compiled = compile(request);
    compiled.status().throw_if_error();
    plan_ = std::move(compiled->plan);
    print_ = make_fingerprint(Collective::all_reduce, DataType::f32, ReduceOp::sum, false,
                              transport, 0, 0, kCount);
    for (std::size_t from = 0; from < kRanks; ++from) {
      slots_[from] = std::make_unique<std::array<Slot, kSlots>>();
      for (Slot& slot : *slots_[from]) new (slot.bytes) PostHeader;
    }
    for (std::size_t r = 0; r < kRanks; ++r) {
      const std::size_t peer = 1 - r;
      RankState& state = states_[r].state;
      state.waiter = {.rank_control = &rank_control_, .rank = static_cast<Rank>(r)};
      state.outbox.resize(kRanks);
      state.inbox.resize(kRanks);
      state.memory.resize(kRanks * 4);
      state.operands.resize(static_cast<std::size_t>(plan_.most_operands));
      state.outbox[peer].mailbox = {(*slots_[r])[0].bytes, kStride, &credits_[r]};
      state.inbox[peer].mailbox = {(*slots_[peer])[0].bytes, kStride, &credits_[peer]};
    }
  }

  // Runs one rank's batch, as Member::call() does.
  template <bool fingerprints, class Interpret>
  void play(std::size_t r, std::array<float, kCount>& in, std::array<float, kCount>& out,
            Interpret interpreter) {
    RankState& state = states_[r].state;
    state.memory_of(r, Memory::input) = reinterpret_cast<std::byte*>(in.data());
    state.memory_of(r, Memory::output) = reinterpret_cast<std::byte*>(out.data());
    for (int i = 0; i < kCallsPerBatch; ++i) {
      ++state.waiter.call;
      state.waiter.deadline_ns = 0;
      if (fingerprints) {
        state.waiter.fingerprint =
            with_call(print_, static_cast<std::uint32_t>(state.waiter.call)).bits;
      }
      if (!interpreter(plan_, state)) std::abort();
    }
  }

 private:
  static constexpr std::uint32_t kStride = 128;
  struct alignas(kCacheLine) Slot {
    std::byte bytes[kStride];
  };
  struct alignas(kCacheLine) Own {
    RankState state;
  };

  RankControl rank_control_;
  Plan plan_;
  Fingerprint print_;
  std::array<std::unique_ptr<std::array<Slot, kSlots>>, kRanks> slots_;
  std::array<Counter, kRanks> credits_;
  std::array<Own, kRanks> states_;
};

enum Contender { kWith, kWithout, kAgain, kApi, kContenders };

// Both ranks' sides of all four contenders.
class Match {
 public:
  explicit Match(Transport transport) : transport_(transport), pair_(transport) {
    communicator_ = Communicator::create({.ranks = kRanks}).value();
    for (Rank r = 0; r < kRanks; ++r) members_.push_back(communicator_->join(r).value());
  }

  // Returns the rank's nanoseconds per call. Both ranks run the same batch at a time.
  double play(std::size_t r, int contender) {
    std::array<float, kCount> in{1.0F, 2.0F}, out{};
    members_[r]->barrier().throw_if_error();
    const std::int64_t begin = now_ns();
    switch (contender) {
      case kWith:
        pair_.play<true>(r, in, out, [](const Plan& p, RankState& s) { return interpret(p, s); });
        break;
      case kWithout:
        pair_.play<false>(r, in, out, interpret_without);
        break;
      case kAgain:
        pair_.play<true>(r, in, out, interpret_again);
        break;
      default:
        for (int i = 0; i < kCallsPerBatch; ++i) {
          members_[r]
              ->all_reduce(std::span<const float>(in), std::span<float>(out), ReduceOp::sum,
                           {.transport = transport_})
              .throw_if_error();
        }
    }
    const std::int64_t end = now_ns();
    if (out[1] != 2.0F * kRanks) std::abort();
    return static_cast<double>(end - begin) / kCallsPerBatch;
  }

 private:
  Transport transport_;
  // All three interpreters use the same Pair, because the place of lines in the machine matters.
  Pair pair_;
  std::unique_ptr<Communicator> communicator_;
  std::vector<std::unique_ptr<Member>> members_;
};

void compare(benchmark::State& state, Transport transport) {
  Match match(transport);
  std::array<std::vector<double>, kContenders> times;
  // The order rotates; no contender always follows the same one.
  const auto all_rounds = [&](std::size_t r, const auto& note) {
    for (int round = 0; round < kRounds; ++round) {
      for (int turn = 0; turn < kContenders; ++turn) {
        const int contender = (round + turn) % kContenders;
        note(contender, match.play(r, contender));
      }
    }
  };
  for (auto _ : state) {
    std::thread peer([&] {
      pin_to(1);
      all_rounds(1, [](int, double) {});
    });
    pin_to(0);
    all_rounds(0, [&](int contender, double ns) {
      times[static_cast<std::size_t>(contender)].push_back(ns);
    });
    peer.join();
    state.SetIterationTime(median(times[kWith]) * 1e-9);
  }
  const auto& with = times[kWith];
  const auto compare_to = [&](Contender other, const std::string& name) {
    const auto& others = times[static_cast<std::size_t>(other)];
    std::vector<double> differences;
    for (std::size_t i = 0; i < others.size(); ++i) differences.push_back(with[i] - others[i]);
    state.counters[name] = median(differences);
    state.counters[name + "_spread"] = half_quartile_range(differences);
    state.counters[name + "_undisturbed"] =
        quantile(with, kUndisturbed) - quantile(others, kUndisturbed);
  };
  compare_to(kWithout, "price");
  compare_to(kAgain, "noise");
  state.counters["with"] = median(with);
  state.counters["with_undisturbed"] = quantile(with, kUndisturbed);
  state.counters["call"] = median(times[kApi]);
  state.counters["price_percent"] =
      100 * state.counters["price"].value / state.counters["call"].value;
  state.counters["noise_percent"] =
      100 * state.counters["noise"].value / state.counters["call"].value;
  state.counters["call_undisturbed"] = quantile(times[kApi], kUndisturbed);
}

#define RANKINE_FINGERPRINT_BENCHMARK(transport)              \
  BENCHMARK_CAPTURE(compare, transport, Transport::transport) \
      ->Name("all_reduce_8B/" #transport)                     \
      ->UseManualTime()                                       \
      ->Iterations(1)                                         \
      ->Repetitions(3)                                        \
      ->Unit(benchmark::kNanosecond)

RANKINE_FINGERPRINT_BENCHMARK(mailbox);
RANKINE_FINGERPRINT_BENCHMARK(direct);

}  // namespace
}  // namespace rankine

BENCHMARK_MAIN();
