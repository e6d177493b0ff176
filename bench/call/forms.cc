// Measures started calls, groups, messages and epilogues, beside calls that wait.
//
//   third_party/bazel run -c opt //bench/call -- --benchmark_filter=^prepared/
//
//   prepared/<ranks>/<bytes>   ranks on their own cores, batch by batch in turns: `call` waits,
//     `prepared` is started again and waited for at once, `started` is created and destroyed every
//     time, `message` goes to the neighbour and comes back (half of that). Medians over the
//     batches, in nanoseconds; `prepared_to_call` is their ratio, by batches.
//   by_turns/<bytes>   one thread runs two ranks: one starts, the other calls, the first one waits.
//     No wait is for another core, so this is the engine's own work, of both ranks together;
//     nanoseconds. `undisturbed` is the tenth percentile of the batches.
//   overlap/<bytes>   an all-reduce between two ranks beside a computation of equal length: each
//     alone, one after the other, and together, when the computation stops from time to time to
//     advance the call. `gained` is the part of the shorter one that vanishes; microseconds.
//   bandwidth/<bytes>/<directions>   a window of 64 started messages between two ranks, one way (1)
//     or both ways at once (2), between two barriers, as in OSU's osu_bw and osu_bibw:
//     `bytes_per_second` of all directions, `messages_per_s`; medians over the windows.
//   split/<ranks>/<groups>   a split of a communicator into this number of groups, all ranks on a
//     Team: the first split, and later ones of the same kind; microseconds from the first rank's
//     beginning to the last one's end.
//   token_counts/<ranks>/<in place>   all-reduces of 1 to 1,000 rows of 4096 bf16 in random order,
//     on each rank's own memory, from there to another place (0) or in place (1), after each has
//     been made once: `random` is the median of their times, `repeated` the median for calls
//     after two calls of equal count; microseconds. Ranks write their rows before each call
//     and read the sums after it, as layers do. `ratio` is the median of the ratios by count;
//     `memory_mib` is the memory of the communicator with all its plans.
//   experts/<ranks>/<tokens>/<processes>   tokens of each rank, rows of 4096 bf16, to eight of 64
//     experts at random and back, with other counts in each call, among threads (0) or processes
//     (1). In turns, medians in microseconds on rank 0: `experts` (Experts), and without packing
//     and sums of rows: `counts` (an all-gather of the counts, and two all-to-alls with counts),
//     `repeated` (the same counts again), `messages` (the all-gather, and a message per pair and
//     way).
//   active/<ranks>/<bytes>   an all-reduce of active ranks, all present (`active`), beside one that
//     waits for all (`call`), batch by batch in turns; medians on rank 0, in nanoseconds.
//   first_call/threads/<ranks>   create, join, plan and run an all-reduce of 8 B by waiting
//     threads; microseconds.
//   epilogue/<ranks>/<rows>/<in place>   an all-reduce with residual add and RMS norm, rows of 4096
//     bf16. Batch by batch in turns: `call` (the all-reduce alone), `then_pass` (the call, and
//     apply() on all rows), `fused` (the call with the epilogue). Medians over the batches, in
//     microseconds per call; `saved` is the part of then_pass that fused does not take, the median
//     of the batches' ratios, and `saved_spread` half the distance between their quartiles.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/active.h"
#include "engine/api/epilogues.h"
#include "engine/api/experts.h"
#include "engine/api/request.h"
#include "engine/api/split.h"
#include "engine/api/team.h"
#include "engine/base/child_process.h"
#include "engine/base/statistics.h"
#include "engine/cli/harness.h"
#include "engine/run/machine.h"

namespace rankine {
namespace {

constexpr int kBatches = 300;

// The suite sets its time itself, from all of its batches.
template <benchmark::TimeUnit unit>
void in_one_run(benchmark::internal::Benchmark* suite) {
  suite->Iterations(1)->UseManualTime()->Unit(unit);
}

// The time of a call of a batch, from a barrier of the ranks on; ns.
template <class Body>
double batch_ns(Member& me, int calls, const Body& body) {
  me.barrier().throw_if_error();
  return static_cast<double>(*tools::time_warm(now_ns, now_ns, calls, body)) / calls;
}

double microseconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-3; }

Call sum_of(std::vector<float>& data) {
  return {.in = data.data(), .out = data.data(), .count = data.size(), .op = ReduceOp::max};
}

void prepared(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  const auto count = static_cast<std::size_t>(state.range(1)) / sizeof(float);
  const int calls = count > 10'000 ? 5 : 200;
  const auto team = Team::create({.ranks = ranks, .tuned = false}).value();
  std::vector<double> waits, again, anew, message;
  for (auto _ : state) {
    team->run([&](Member& me) {
          std::vector<float> data(count, 1), other(count);
          Request request = me.prepare(sum_of(data)).value();
          const Rank right = (me.rank() + 1) % ranks, left = (me.rank() + ranks - 1) % ranks;
          // The first body() leaves the buffers as every later one finds them.
          const auto batch = [&](const auto& body) {
            body();
            return batch_ns(me, calls, body);
          };
          for (int i = 0; i < kBatches; ++i) {
            const double a = batch([&] { me.call(sum_of(data)).throw_if_error(); });
            const double b = batch([&] {
              request.start().throw_if_error();
              request.wait().throw_if_error();
            });
            const double c = batch([&] {
              Request one = me.start(sum_of(data)).value();
              one.wait().throw_if_error();
            });
            const double d = ranks < 2 ? 0 : batch([&] {
              me.exchange(std::span<const float>(data), right, std::span(other), left)
                  .throw_if_error();
            });
            if (me.rank() != 0 || i < kBatches / 10) continue;
            waits.push_back(a), again.push_back(b), anew.push_back(c), message.push_back(d);
          }
        })
        .throw_if_error();
    state.SetIterationTime(median(again) * 1e-9);
  }
  state.counters["call"] = median(waits);
  state.counters["prepared"] = median(again);
  state.counters["started"] = median(anew);
  state.counters["exchange"] = median(message);
  state.counters["prepared_to_call"] = median_ratio(again, waits);
}
BENCHMARK(prepared)
    ->Args({1, 8})
    ->Args({2, 8})
    ->Args({2, 8'192})
    ->Args({2, 1 << 20})
    ->Args({4, 8})
    ->Apply(in_one_run<benchmark::kNanosecond>);

void by_turns(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  constexpr int kCalls = 1'000;
  const auto communicator = Communicator::create({.ranks = 2, .tuned = false}).value();
  // Members of one thread share its started calls, so a call of one would queue behind the call of
  // the other. So another thread joins this member.
  std::unique_ptr<Member> first;
  std::thread([&] { first = communicator->join(0).value(); }).join();
  const auto second = communicator->join(1).value();
  std::vector<float> one(count, 1), other(count, 1);
  const Call call = sum_of(other);
  Request request = first->prepare(sum_of(one)).value();
  std::vector<double> times;
  for (auto _ : state) {
    for (int i = 0; i < kBatches; ++i) {
      const std::int64_t took = *tools::time_warm(now_ns, now_ns, kCalls, [&] {
        request.start().throw_if_error();
        second->call(call).throw_if_error();
        request.wait().throw_if_error();
      });
      if (i >= kBatches / 10) times.push_back(static_cast<double>(took) / kCalls);
    }
    state.SetIterationTime(median(times) * 1e-9);
  }
  state.counters["undisturbed"] = quantile(times, 0.1);
}
BENCHMARK(by_turns)->Arg(8)->Arg(512)->Arg(8'192)->Apply(in_one_run<benchmark::kNanosecond>);

// This number of steps of work that the compiler cannot remove.
float work(std::int64_t steps, const std::function<void()>& now_and_then) {
  float x = 0.5F;
  for (std::int64_t i = 0; i < steps; ++i) {
    x = x * 0.999F + 0.0005F;
    benchmark::DoNotOptimize(x);
    if (i % 4096 == 0) now_and_then();
  }
  return x;
}

void overlap(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  const auto team = Team::create({.ranks = 2, .tuned = false}).value();
  std::vector<double> call, alone, one_by_one, together;
  for (auto _ : state) {
    team->run([&](Member& me) {
          std::vector<float> data(count, 1);
          const auto nothing = [] {};
          const auto time = [&](const auto& body) {
            return 1e-3 * batch_ns(me, 1, [&] {
                     body();
                     me.barrier().throw_if_error();
                   });
          };
          const auto reduce = [&] { me.call(sum_of(data)).throw_if_error(); };
          for (int i = 0; i < 5; ++i) reduce();
          std::vector<double> calls, works;
          constexpr std::int64_t kSome = 100'000;
          for (int i = 0; i < 9; ++i) {
            calls.push_back(time(reduce));
            works.push_back(time([&] { benchmark::DoNotOptimize(work(kSome, nothing)); }));
          }
          double steps = kSome * median(calls) / median(works);
          me.broadcast(std::span(&steps, 1), 0).throw_if_error();
          const auto as_long = static_cast<std::int64_t>(steps);
          for (int i = 0; i < 60; ++i) {
            const double a = time(reduce);
            const double b = time([&] { benchmark::DoNotOptimize(work(as_long, nothing)); });
            const double c = time([&] {
              reduce();
              benchmark::DoNotOptimize(work(as_long, nothing));
            });
            const double d = time([&] {
              Request request = me.start(sum_of(data)).value();
              benchmark::DoNotOptimize(work(as_long, [&] { me.progress().throw_if_error(); }));
              request.wait().throw_if_error();
            });
            if (me.rank() != 0) continue;
            call.push_back(a), alone.push_back(b), one_by_one.push_back(c), together.push_back(d);
          }
        })
        .throw_if_error();
    state.SetIterationTime(median(together) * 1e-6);
  }
  state.counters["call"] = median(call);
  state.counters["work"] = median(alone);
  state.counters["sum"] = median(one_by_one);
  state.counters["together"] = median(together);
  state.counters["gained"] =
      (median(one_by_one) - median(together)) / std::min(median(call), median(alone));
}
BENCHMARK(overlap)->Arg(64 << 10)->Arg(1 << 20)->Arg(4 << 20)->Apply(
    in_one_run<benchmark::kMicrosecond>);

void bandwidth(benchmark::State& state) {
  constexpr int kWindow = 64, kWindows = 100;
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const bool both = state.range(1) == 2;
  const auto team = Team::create({.ranks = 2, .tuned = false}).value();
  std::vector<double> windows;
  for (auto _ : state) {
    team->run([&](Member& me) {
          const std::vector<std::uint8_t> sent(bytes);
          std::vector<std::vector<std::uint8_t>> received(kWindow,
                                                          std::vector<std::uint8_t>(bytes));
          const Rank other = 1 - me.rank();
          const bool sends = both || me.rank() == 0, receives = both || me.rank() == 1;
          std::vector<Request> requests;
          for (int i = 0; i < kWindows; ++i) {
            me.barrier().throw_if_error();
            const std::int64_t begin = now_ns();
            for (auto& buffer : received) {
              if (receives) requests.push_back(me.async().recv(std::span(buffer), other).value());
              if (sends) requests.push_back(me.async().send(std::span(sent), other).value());
            }
            for (Request& one : requests) one.wait().throw_if_error();
            requests.clear();
            me.barrier().throw_if_error();
            if (me.rank() == 0 && i >= kWindows / 10)
              windows.push_back(microseconds(now_ns() - begin));
          }
        })
        .throw_if_error();
    state.SetIterationTime(median(windows) * 1e-6);
  }
  const double messages = kWindow * static_cast<double>(state.range(1));
  state.counters["messages_per_s"] = messages / (median(windows) * 1e-6);
  state.SetBytesProcessed(static_cast<std::int64_t>(messages) * state.range(0));
}
BENCHMARK(bandwidth)
    ->ArgsProduct({{8, 4 << 10, 64 << 10, 1 << 20}, {1, 2}})
    ->Apply(in_one_run<benchmark::kMicrosecond>);

void split(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0)), groups = static_cast<int>(state.range(1));
  const auto team = Team::create({.ranks = ranks, .tuned = false}).value();
  std::vector<double> first, later;
  for (auto _ : state) {
    for (int turn = 0; turn < 21; ++turn) {
      std::atomic<std::int64_t> begin{INT64_MAX}, end{0};
      team->run([&](Member& me) {
            me.barrier().throw_if_error();
            std::int64_t mine = now_ns(), before = begin.load();
            while (mine < before && !begin.compare_exchange_weak(before, mine)) {
            }
            const auto group = me.split(me.rank() % groups, me.rank()).value();
            mine = now_ns(), before = end.load();
            while (mine > before && !end.compare_exchange_weak(before, mine)) {
            }
            me.barrier().throw_if_error();  // destroys the groups after all ranks have theirs
          })
          .throw_if_error();
      (turn == 0 ? first : later).push_back(microseconds(end - begin));
    }
    state.SetIterationTime(median(later) * 1e-6);
  }
  state.counters["first"] = first.front();
  state.counters["later"] = median(later);
}
BENCHMARK(split)->Args({2, 1})->Args({8, 2})->Args({64, 8})->Apply(
    in_one_run<benchmark::kMicrosecond>);

// Reads one byte of each cache line, as a layer that uses the data does.
void read_lines(const void* from, std::size_t bytes) {
  const auto* data = static_cast<const volatile char*>(from);
  for (std::size_t at = 0; at < bytes; at += 64) static_cast<void>(data[at]);
}

void token_counts(benchmark::State& state) {
  constexpr std::size_t kMost = 1'000, kRow = 4'096;
  const auto ranks = static_cast<int>(state.range(0));
  const bool in_place = state.range(1) != 0;
  const auto team = Team::create({.ranks = ranks, .tuned = false}).value();
  std::vector<std::size_t> rows(kMost);
  std::iota(rows.begin(), rows.end(), std::size_t{1});
  std::shuffle(rows.begin(), rows.end(), std::mt19937(1));
  std::vector<double> random, repeated, ratios;
  for (auto _ : state) {
    team->run([&](Member& me) {
          std::vector<BFloat16> in(kMost * kRow, BFloat16(1.0F)), elsewhere(in);
          std::vector<BFloat16>& out = in_place ? in : elsewhere;
          const auto microseconds_of = [&](std::size_t n, int calls) {
            std::int64_t took = 0;
            for (int i = 0; i < calls; ++i) {
              std::fill_n(in.begin(), n * kRow, BFloat16(1.0F));
              me.barrier().throw_if_error();
              const std::int64_t begin = now_ns();
              me.call(
                    {.in = in.data(), .out = out.data(), .count = n * kRow, .type = DataType::bf16})
                  .throw_if_error();
              took = now_ns() - begin;
              read_lines(out.data(), n * kRow * sizeof(BFloat16));
            }
            return microseconds(took);
          };
          for (const std::size_t n : rows) microseconds_of(n, 1);
          // In turns, since cores may be near now and far in a second.
          for (const std::size_t n : rows) {
            const double first = microseconds_of(n, 1), same = microseconds_of(n, 2);
            if (me.rank() != 0) continue;
            random.push_back(first), repeated.push_back(same);
            ratios.push_back(first / same);
          }
        })
        .throw_if_error();
    state.SetIterationTime(median(random) * 1e-6);
  }
  state.counters["random"] = median(random);
  state.counters["repeated"] = median(repeated);
  state.counters["ratio"] = median(ratios);
  state.counters["ratio_spread"] = half_quartile_range(ratios);
  state.counters["plans"] = static_cast<double>(team->communicator().cached_plans());
  state.counters["memory_mib"] =
      static_cast<double>(team->communicator().memory_bytes()) / (1 << 20);
}
BENCHMARK(token_counts)->Args({2, 0})->Args({2, 1})->Apply(in_one_run<benchmark::kMicrosecond>);

// Calls f for each rank: threads of a Team, or processes, of which this one plays rank 0.
void run_ranks(int ranks, bool processes, const std::function<void(Member&)>& f) {
  if (!processes) {
    Team::create({.ranks = ranks, .tuned = false}).value()->run(f).throw_if_error();
    return;
  }
  const std::string name = "bench." + std::to_string(getpid());
  const auto play = [&](Rank r) {
    const auto communicator =
        Communicator::create({.ranks = ranks, .tuned = false, .rank = r, .name = name}).value();
    f(*communicator->join(r).value());
    return 0;
  };
  std::vector<ChildProcess> others;
  for (Rank r = 1; r < ranks; ++r) others.emplace_back([&, r] { return play(r); });
  play(0);
  for (ChildProcess& other : others) other.wait();
}

void experts(benchmark::State& state) {
  constexpr std::size_t kRow = 4'096, kChoices = 8;
  constexpr int kExperts = 64;
  const auto ranks = static_cast<int>(state.range(0));
  const auto n = static_cast<std::size_t>(ranks), tokens = static_cast<std::size_t>(state.range(1));
  std::vector<double> times[4];
  for (auto _ : state) {
    run_ranks(ranks, state.range(2) != 0, [&](Member& me) {
      auto layer =
          Experts::create(me, {.experts = kExperts, .choices = kChoices, .row_elements = kRow})
              .value();
      const auto self = static_cast<std::size_t>(me.rank());
      std::mt19937 random(static_cast<unsigned>(me.rank()));
      std::vector<std::int32_t> indices(tokens * kChoices);
      std::vector<BFloat16> in(tokens * kRow, BFloat16(1.0F)), out(in);
      std::vector<BFloat16> sent(tokens * kChoices * kRow, BFloat16(1.0F));
      // Nearly equal parts for all ranks, unless tokens are few.
      const std::size_t most = std::min(n * tokens, 2 * tokens + 100) * kChoices * kRow;
      std::vector<BFloat16> there(most, BFloat16(1.0F));
      std::vector<std::size_t> mine(n), pairs(n * n), back(n * n);
      const auto exchange_counts = [&] {
        me.all_gather(mine, pairs).throw_if_error();
        for (std::size_t pair = 0; pair < n * n; ++pair) {
          back[pair % n * n + pair / n] = pairs[pair];
        }
      };
      const auto by_counts = [&] {
        exchange_counts();
        const std::span<BFloat16> rows(sent), arrived(there);
        me.with_counts(Collective::all_to_all, std::span<const BFloat16>(rows), arrived, pairs)
            .throw_if_error();
        me.with_counts(Collective::all_to_all, std::span<const BFloat16>(arrived), rows, back)
            .throw_if_error();
      };
      const auto by_messages = [&] {
        exchange_counts();
        for (const bool returns : {false, true}) {
          const auto& counts = returns ? back : pairs;
          const std::span<BFloat16> out_of(returns ? there : sent), into(returns ? sent : there);
          me.group([&] {
              std::size_t from = 0, to = 0;
              for (std::size_t q = 0; q < n; ++q) {
                const std::size_t goes = counts[self * n + q], comes = counts[q * n + self];
                if (q != self && goes > 0) {
                  me.send(out_of.subspan(from, goes), static_cast<Rank>(q)).throw_if_error();
                }
                if (q != self && comes > 0) {
                  me.recv(into.subspan(to, comes), static_cast<Rank>(q)).throw_if_error();
                }
                from += goes;
                to += comes;
              }
            }).throw_if_error();
        }
      };
      const auto measure = [&](std::vector<double>& into, const auto& call) {
        const double took = batch_ns(me, 1, call);
        if (me.rank() == 0) into.push_back(1e-3 * took);
      };
      for (int turn = 0; turn < kBatches / 3; ++turn) {
        std::fill(mine.begin(), mine.end(), 0);
        for (std::int32_t& e : indices) {
          e = static_cast<std::int32_t>(random() % kExperts);
          mine[static_cast<std::size_t>(e) / (kExperts / n)] += kRow;
        }
        measure(times[0], [&] {
          layer.dispatch(in, indices, there).throw_if_error();
          const std::size_t rows =
              std::accumulate(layer.counts().begin(), layer.counts().end(), std::size_t{0});
          layer.combine(std::span(there).first(rows * kRow), {}, out).throw_if_error();
        });
        measure(times[1], by_counts);
        measure(times[2], by_counts);
        measure(times[3], by_messages);
      }
    });
    state.SetIterationTime(median(times[0]) * 1e-6);
  }
  const char* const names[] = {"experts", "counts", "repeated", "messages"};
  for (int i = 0; i < 4; ++i) state.counters[names[i]] = median(times[i]);
}
BENCHMARK(experts)
    ->ArgsProduct({{2, 4}, {1, 8, 64, 512}, {0, 1}})
    ->Apply(in_one_run<benchmark::kMicrosecond>);

void active(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  const auto count = static_cast<std::size_t>(state.range(1)) / sizeof(float);
  const auto team = Team::create({.ranks = ranks, .tuned = false}).value();
  std::vector<double> waits, times;
  for (auto _ : state) {
    team->run([&](Member& me) {
          auto all = ActiveRanks::create(me, {.wait = std::chrono::seconds(10)}).value();
          std::vector<float> x(count, 1), sum(count);
          for (int i = 0; i < kBatches; ++i) {
            const double a = batch_ns(me, 100, [&] { me.all_reduce(x, sum).throw_if_error(); });
            const double b = batch_ns(me, 100, [&] { all.all_reduce(x, sum).value(); });
            if (me.rank() != 0 || i < kBatches / 10) continue;
            waits.push_back(a), times.push_back(b);
          }
        })
        .throw_if_error();
    state.SetIterationTime(median(times) * 1e-9);
  }
  state.counters["call"] = median(waits);
  state.counters["active"] = median(times);
}
BENCHMARK(active)
    ->Args({2, 8})
    ->Args({2, 1 << 16})
    ->Args({4, 8})
    ->Args({4, 1 << 16})
    ->Apply(in_one_run<benchmark::kNanosecond>);

void first_call(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  std::vector<double> times;
  for (auto _ : state) {
    for (int turn = 0; turn < 30; ++turn) {
      std::shared_ptr<Communicator> communicator;
      std::atomic<bool> there{false};
      std::atomic<int> ready{0}, over{0};
      std::vector<std::thread> threads;
      for (Rank r = 0; r < ranks; ++r) {
        threads.emplace_back([&, r] {
          ++ready;
          while (!there.load(std::memory_order_acquire)) std::this_thread::yield();
          float data[2] = {1, 2};
          const auto me = communicator->join(r).value();
          me->all_reduce(std::span<float>(data)).throw_if_error();
          ++over;
        });
      }
      while (ready.load() != ranks) std::this_thread::yield();
      const std::int64_t begin = now_ns();
      communicator = Communicator::create({.ranks = ranks, .tuned = false}).value();
      there.store(true, std::memory_order_release);
      while (over.load() != ranks) std::this_thread::yield();
      times.push_back(microseconds(now_ns() - begin));
      for (std::thread& thread : threads) thread.join();
    }
    state.SetIterationTime(median(times) * 1e-6);
  }
  state.counters["median"] = median(times);
}
BENCHMARK(first_call)
    ->Name("first_call/threads")
    ->Arg(2)
    ->Arg(8)
    ->Apply(in_one_run<benchmark::kMicrosecond>);

void epilogue(benchmark::State& state) {
  constexpr std::size_t kRow = 4096;
  constexpr int kTurns = 200;
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
          const auto batch = [&](const auto& body) { return 1e-3 * batch_ns(me, calls, body); };
          for (int i = 0; i < kTurns; ++i) {
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
            if (me.rank() != 0 || i < kTurns / 10) continue;
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
