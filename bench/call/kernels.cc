// Measures reduction and copy kernels alone on one core: the speed of each type, operator, number
// of sources and instruction set, at sizes that live in L1, L2, L3 and memory.
//
//   bazel run -c opt //bench/call:kernels -- --benchmark_filter='^reduce/bf16/sum/2/'
//
// Names: reduce/<type>/<op>/<sources>/<isa>/<bytes of one vector>, stream/... for the non-temporal
// stores, small/... for a few elements, copy/<temporal or not>/<bytes>; plain/f32/<bytes> is
// `dst[i] = a[i] + b[i]` as the compiler vectorises it for this CPU. bytes_per_second counts the
// bytes that the code asks for: every source read and the destination written once (no read for
// ownership). add/<type>/<L1, L2, L3 or memory> is the speed of a sum of two vectors in this level,
// against plain/f32 measured in turn with it (A B A B ...): counters kernel and plain are medians
// in bytes per second, ratio is one over the other. The three vectors take half of that cache, or
// twice the last one. Vectors lie apart in one allocation, each at a different offset within its
// page, so that no source aliases the destination modulo 4 KiB.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/statistics.h"
#include "engine/cli/harness.h"
#include "engine/run/kernels/reduce.h"
#include "numa/topology.h"

namespace rankine {
namespace {

constexpr std::size_t kSizes[] = {4U << 10, 64U << 10, 512U << 10, 4U << 20, 64U << 20};
constexpr int kMostSources = 8;

class Vectors {
 public:
  Vectors(int sources, std::size_t bytes) {
    const std::size_t stride = (bytes + 4095) / 4096 * 4096 + 4096 + 320;
    memory_.reset(static_cast<char*>(std::aligned_alloc(
        4096, (stride * static_cast<std::size_t>(sources + 1) + 4095) / 4096 * 4096)));
    for (int i = 0; i <= sources; ++i) {
      char* at = memory_.get() + static_cast<std::size_t>(i) * stride;
      // Ones as f32; in any other type harmless numbers, neither NaN nor subnormal.
      for (std::size_t k = 0; k < bytes; k += 4) {
        const float one = 1.0F;
        __builtin_memcpy(at + k, &one, bytes - k < 4 ? bytes - k : 4);
      }
      if (i < sources) {
        sources_.push_back(at);
      } else {
        dst_ = at;
      }
    }
  }
  char* dst() const { return dst_; }
  const void* const* sources() const { return sources_.data(); }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  std::unique_ptr<char[], Free> memory_;
  std::vector<const void*> sources_;
  char* dst_ = nullptr;
};

void count_bytes(benchmark::State& state, std::size_t vectors, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(vectors * bytes));
}

using Kernel = std::function<void(void*, const void* const*, int, std::size_t, int)>;

void run_reduce(benchmark::State& state, const Kernel& kernel, DataType type, int sources,
                int divisor, std::size_t bytes) {
  const Vectors vectors(sources, bytes);
  const std::size_t count = bytes / size_of(type);
  for (auto _ : state) {
    kernel(vectors.dst(), vectors.sources(), sources, count, divisor);
    benchmark::ClobberMemory();
  }
  count_bytes(state, static_cast<std::size_t>(sources) + 1, bytes);
}

using CopyFunction = void (*)(void*, const void*, std::size_t) noexcept;

void run_copy(benchmark::State& state, CopyFunction copy, std::size_t bytes) {
  const Vectors vectors(1, bytes);
  for (auto _ : state) {
    copy(vectors.dst(), vectors.sources()[0], bytes);
    benchmark::ClobberMemory();
  }
  count_bytes(state, 2, bytes);
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("O3"), target("avx512f,prefer-vector-width=512")))
#endif
void plain_add(float* __restrict dst, const float* __restrict a, const float* __restrict b,
               std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dst[i] = a[i] + b[i];
}

void run_plain(benchmark::State& state, std::size_t bytes) {
  const Vectors vectors(2, bytes);
  for (auto _ : state) {
    plain_add(reinterpret_cast<float*>(vectors.dst()),
              static_cast<const float*>(vectors.sources()[0]),
              static_cast<const float*>(vectors.sources()[1]), bytes / 4);
    benchmark::ClobberMemory();
  }
  count_bytes(state, 3, bytes);
}

// In turn with the plain loop, because on shared machines a speed may change from one moment to the
// next.
void run_against_plain(benchmark::State& state, ReduceKernel kernel, DataType type,
                       std::size_t bytes) {
  const Vectors vectors(2, bytes);
  // Long enough for the clock, short enough to alternate often.
  const int repeats = std::max(1, static_cast<int>((std::size_t{256} << 10) / bytes));
  const auto time = [&](auto run) {
    const double took = *tools::time_warm(tools::seconds_now, tools::seconds_now, repeats, [&] {
      run();
      benchmark::ClobberMemory();
    });
    return took / repeats;
  };
  std::vector<double> ours, plain;
  for (auto _ : state) {
    plain.push_back(time([&] {
      plain_add(reinterpret_cast<float*>(vectors.dst()),
                static_cast<const float*>(vectors.sources()[0]),
                static_cast<const float*>(vectors.sources()[1]), bytes / sizeof(float));
    }));
    ours.push_back(
        time([&] { kernel(vectors.dst(), vectors.sources(), 2, bytes / size_of(type), 0); }));
    state.SetIterationTime(ours.back());
  }
  const auto moved = static_cast<double>(3 * bytes);
  state.counters["kernel"] = moved / median(ours);
  state.counters["plain"] = moved / median(plain);
  state.counters["ratio"] = median(plain) / median(ours);
}

void add_levels() {
  const Topology topology = Topology::detect();
  const CacheSizes& caches = topology.caches();
  struct Level {
    const char* name;
    std::size_t bytes;  // of one vector; 0: unknown on this machine
  };
  const auto within = [](std::size_t cache) { return cache / 6 / 4096 * 4096; };
  const Level levels[] = {{"L1", within(caches.l1d)},
                          {"L2", within(caches.l2)},
                          {"L3", within(caches.l3)},
                          {"memory", std::max(caches.l3, std::size_t{16} << 20) / 3 * 2}};
  for (const Level& level : levels) {
    if (level.bytes == 0) continue;
    for (const DataType type : {DataType::f32, DataType::bf16, DataType::f16}) {
      const std::string name = "add/" + std::string(name_of(type)) + "/" + level.name;
      const std::size_t bytes = level.bytes / 4096 * 4096;
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
        run_against_plain(state, find_reduce(type, ReduceOp::sum), type, bytes);
      })->UseManualTime();
    }
  }
}

void add_reduce(const std::string& family, const Kernel& kernel, DataType type, ReduceOp op,
                int sources, Isa isa, std::size_t bytes) {
  const std::string name = family + "/" + std::string(name_of(type)) + "/" +
                           std::string(name_of(op)) + "/" + std::to_string(sources) + "/" +
                           std::string(name_of(isa)) + "/" + std::to_string(bytes);
  const int divisor = op == ReduceOp::avg ? sources : 0;
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    run_reduce(state, kernel, type, sources, divisor, bytes);
  });
}

void add_all() {
  for (int i = 0; i <= static_cast<int>(hardware_isa()); ++i) {
    const auto isa = static_cast<Isa>(i);
    for (int t = 0; t < kDataTypes; ++t) {
      const auto type = static_cast<DataType>(t);
      for (int o = 0; o < kReduceOps; ++o) {
        const auto op = static_cast<ReduceOp>(o);
        if (!supports(type, op)) continue;
        for (const int sources : {2, 3, 4, kMostSources}) {
          for (const std::size_t bytes : kSizes) {
            add_reduce("reduce", find_reduce(type, op, isa), type, op, sources, isa, bytes);
            if (bytes >= (4U << 20)) {
              const SpreadKernel spread = find_spread(type, op, isa);
              const auto stream = [=](void* dst, const void* const* srcs, int n_srcs, std::size_t n,
                                      int divisor) {
                spread(&dst, 1, srcs, n_srcs, n, divisor, true);
              };
              add_reduce("stream", stream, type, op, sources, isa, bytes);
            }
          }
        }
        for (const std::size_t count : {1, 2, 4, 8, 15, 16, 17, 32, 64}) {
          add_reduce("small", find_reduce(type, op, isa), type, op, 2, isa, count * size_of(type));
        }
      }
    }
  }
  for (const std::size_t bytes : kSizes) {
    const std::string suffix = "/" + std::to_string(bytes);
    benchmark::RegisterBenchmark(("plain/f32" + suffix).c_str(),
                                 [=](benchmark::State& state) { run_plain(state, bytes); });
    benchmark::RegisterBenchmark(("copy/temporal" + suffix).c_str(), [=](benchmark::State& state) {
      const auto copy = [](void* dst, const void* src, std::size_t n) noexcept {
        copy_bytes(dst, src, n);
      };
      run_copy(state, copy, bytes);
    });
    benchmark::RegisterBenchmark(("copy/streaming" + suffix).c_str(), [=](benchmark::State& state) {
      const auto copy = [](void* dst, const void* src, std::size_t n) noexcept {
        copy_bytes_spread(&dst, 1, src, n, true);
      };
      run_copy(state, copy, bytes);
    });
  }
}

}  // namespace
}  // namespace rankine

int main(int argc, char** argv) {
  rankine::add_levels();
  rankine::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
