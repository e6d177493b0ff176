#include "bench/rivals/protocol.h"

#include <algorithm>
#include <limits>

#include "bench/rivals/batch.h"
#include "bench/rivals/kernels.h"
#include "engine/cli/harness.h"
#include "engine/run/kernels/string_copy.h"

namespace rankine::rivals {
namespace {

// below this, streaming stores are slower
constexpr std::size_t kStreamBytes = std::size_t{1} << 20;
// For fewer bytes than this, a measurement would show latency, not bandwidth.
constexpr std::size_t kLeastBytes = std::size_t{16} << 10;

// The least time of some series of body(), in us per call; a call touches `bytes` bytes. All
// workers make the same number of calls, so that none runs alone.
template <class Body>
double least_us(BatchBarrier& batch_barrier, int worker, std::size_t bytes, const Body& body) {
  constexpr std::size_t kSeriesBytes = std::size_t{1} << 19;  // about 10 us, less in the caches
  const auto calls = static_cast<int>(
      std::clamp<std::size_t>(kSeriesBytes / std::max<std::size_t>(bytes, 1), 1, 2000));
  const int series = bytes > 8 * kSeriesBytes ? 2 : 5;
  body();
  Ticks least = ~Ticks{0};
  for (int i = 0; i < series; ++i) {
    batch_barrier.barrier(worker);
    least = std::min(least, *tools::time_warm(ticks_now, ticks_now, calls, body));
  }
  return static_cast<double>(least) * nanoseconds_per_tick() / 1000 / calls;
}

}  // namespace

std::vector<Way> ways(const Batch& batch, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t count = batch.bytes / sizeof(float);
  const std::size_t slice = (count + n - 1) / n;
  const std::size_t bytes = count * sizeof(float);
  const std::size_t others = bytes * (n - 1);  // the other ranks' inputs
  const double elsewhere = static_cast<double>(n - 1) / static_cast<double>(ranks);
  const bool small = bytes <= kOneShotLimit;
  std::vector<Way> result;
  switch (batch.collective) {
    case Collective::all_reduce:
      result.push_back({"two-shot", ranks, ranks, slice, others / n, elsewhere});
      if (small && ranks > 1) result.push_back({"one-shot", ranks, 1, count, others, 0});
      break;
    case Collective::broadcast:
      result.push_back({"pull", 1, 1, count, ranks > 1 ? bytes : 0, 0});
      if (ranks > 1) result.push_back({"share", 1, ranks - 1, slice, bytes / n, elsewhere});
      break;
    case Collective::all_gather:
      result.push_back({"pull", 1, 1, slice * n, others / n, 0});
      if (ranks > 1) result.push_back({"push", 1, ranks, slice, 0, elsewhere});
      break;
    case Collective::reduce_scatter:
      result.push_back({"pull", ranks, 1, slice, others / n, 0});
      break;
    case Collective::all_to_all:
      result.push_back({"pull", 1, 1, slice * n, others / n, 0});
      if (ranks > 1) result.push_back({"push", 1, 1, slice * n, 0, elsewhere});
      break;
    case Collective::reduce:
      result.push_back({"share", ranks, 1, slice, others / n, elsewhere});
      if (small && ranks > 1) result.push_back({"pull", ranks, 1, count, others, 0});
      break;
  }
  return result;
}

Limit limit_of(const Batch& batch, int ranks, int share, const Rates& rates) {
  const std::vector<Way> all = ways(batch, ranks);
  std::size_t result = 0;
  for (int rank = 0; rank < ranks; ++rank)
    result = std::max(result, shape(batch, ranks, rank).out * sizeof(float));
  const bool one_way =
      batch.collective == Collective::broadcast || batch.collective == Collective::reduce;
  const auto times = static_cast<double>(share);
  Limit best;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Limit limit;
    limit.way = all[i].name;
    limit.latency_us = rates.latency_us;
    limit.motion_us = times * rates.motion_us[i];
    if (batch.protocol == Protocol::warm) {
      if (one_way && ranks > 1) limit.latency_us = 64 * rates.cross_us_per_byte;
      limit.us = std::max(limit.latency_us, limit.motion_us);
    } else {
      const double remote = all[i].remote;
      const double cache = rates.cross_us_per_byte;
      const double memory = std::max(rates.stream_us_per_byte, rates.memory_us_per_byte);
      if (memory < cache) limit.path = "memory";
      limit.crossing_us = times * static_cast<double>(all[i].crossing) * std::min(cache, memory);
      limit.reading_us = times * static_cast<double>(result) *
                         (remote * std::min(cache, rates.memory_us_per_byte) +
                          (1 - remote) * rates.read_us_per_byte);
      limit.us = limit.latency_us + std::max(limit.crossing_us, limit.motion_us) +
                 limit.reading_us + rates.stamps_us;
    }
    if (i == 0 || limit.us < best.us) best = limit;
  }
  return best;
}

LimitProbe::LimitProbe(Team& team, std::size_t cores)
    : team_(team),
      workers_(std::min(team.ranks(), static_cast<int>(cores))),
      share_((team.ranks() + workers_ - 1) / workers_),
      stamps_us_(stamp_cost_ns() / 1000),
      batch_barrier_(std::make_unique<BatchBarrier>()),
      benches_(static_cast<std::size_t>(workers_)) {
  batch_barrier_->ranks = workers_;
}

template <class Body>
double LimitProbe::slowest(std::size_t bytes, Body&& body) {
  const Status done = team_.run([&](Member& me) {
    const int rank = me.rank();
    if (rank >= workers_) return;
    Bench& bench = benches_[static_cast<std::size_t>(rank)];
    if (bench.memory.capacity() < bytes) {
      bench.memory = Buffer(bytes);
      kernels().fill(bench.memory.data(), bytes / sizeof(float), rank, 0, 0);  // touches the pages
    }
    batch_barrier_->barrier(rank);  // before others read this memory
    bench.us = body(rank, bench.memory.data());
  });
  done.throw_if_error();
  double most = 0;
  for (const Bench& bench : benches_) most = std::max(most, bench.us);
  return most;
}

double LimitProbe::motion(const Way& way, bool in_place) {
  // Vectors begin at different offsets of their pages, so that loads do not alias earlier stores.
  const std::size_t stride = (way.floats + 15) / 16 * 16 + 80;
  const int vectors = way.ins + (in_place ? 0 : way.outs);
  const std::size_t bytes = stride * static_cast<std::size_t>(vectors) * sizeof(float);
  const auto time = [&](auto reduce) {
    return slowest(bytes, [&](int worker, float* memory) {
      std::vector<const float*> ins;
      std::vector<float*> outs;
      for (int k = 0; k < way.ins; ++k)
        ins.push_back(memory + static_cast<std::size_t>(k) * stride);
      for (int k = 0; k < way.outs; ++k)
        outs.push_back(memory + static_cast<std::size_t>(k + (in_place ? 0 : way.ins)) * stride);
      return least_us(*batch_barrier_, worker, bytes, [&] { reduce(outs, ins); });
    });
  };
  double plain = time([&](auto& outs, auto& ins) {
    if (way.ins == 1) {
      for (float* out : outs) kernels().copy(out, ins[0], way.floats);
    } else {
      kernels().reduce(outs.data(), way.outs, ins.data(), way.ins, 0, way.floats);
    }
  });
  if (way.ins == 1 && has_fast_strings()) {
    plain = std::min(plain, time([&](auto& outs, auto& ins) {
                       for (float* out : outs) {
                         string_copy(out, ins[0], way.floats * sizeof(float));
                       }
                     }));
  }
  if (bytes < kStreamBytes) return plain;
  // In place, sums of sums overflow; that does not change their time.
  return std::min(plain, time([&](auto& outs, auto& ins) {
                    kernels().reduce_streaming(outs.data(), way.outs, ins.data(), way.ins, 0,
                                               way.floats);
                  }));
}

LimitProbe::Crossed LimitProbe::cross_read(std::size_t bytes, Readers readers, bool past_caches) {
  const std::size_t floats = bytes / sizeof(float);
  const int times =
      static_cast<int>(std::clamp<std::size_t>((std::size_t{1} << 20) / bytes, 2, 16));
  // The source of the non-temporal stores is the core's own data, as a rank's input is.
  const std::size_t source = past_caches ? (floats + 31) / 16 * 16 : 0;
  Crossed crossed;
  crossed.read_us = slowest((source + floats) * sizeof(float), [&](int worker, float* memory) {
    const int from = readers == Readers::all_but_root ? 0 : (worker + 1) % workers_;
    const bool reads =
        workers_ == 1 || readers == Readers::all || (worker == 0) == (readers == Readers::root);
    const float* const other = benches_[static_cast<std::size_t>(from)].memory.data() + source;
    Ticks least = ~Ticks{0}, least_store = ~Ticks{0};
    volatile std::uint64_t sink = 0;
    for (int i = 0; i < times; ++i) {
      kernels().fill(memory, floats, worker, 0, static_cast<std::uint32_t>(i));
      batch_barrier_->barrier(worker);
      if (past_caches) {
        float* const stored = memory + source;
        const float* const filled = memory;
        const Ticks begin = ticks_now();
        kernels().reduce_streaming(&stored, 1, &filled, 1, 0, floats);
        least_store = std::min(least_store, ticks_now() - begin);
        batch_barrier_->barrier(worker);
      }
      const Ticks begin = ticks_now();
      if (reads) sink = tools::read_result(other, floats * sizeof(float));
      least = std::min(least, ticks_now() - begin);
      batch_barrier_->barrier(worker);
    }
    (void)sink;
    const auto us_of = [&](Ticks ticks) {
      const double us = static_cast<double>(ticks) * nanoseconds_per_tick() / 1000;
      return std::max(us - stamps_us_, us / 10);
    };
    benches_[static_cast<std::size_t>(worker)].store_us = past_caches ? us_of(least_store) : 0;
    return us_of(least);
  });
  for (const Bench& bench : benches_) crossed.store_us = std::max(crossed.store_us, bench.store_us);
  return crossed;
}

double LimitProbe::own_read(std::size_t bytes) {
  return slowest(bytes, [&](int worker, float* memory) {
    volatile std::uint64_t sink = 0;
    const double us =
        least_us(*batch_barrier_, worker, bytes, [&] { sink = tools::read_result(memory, bytes); });
    (void)sink;
    return us;
  });
}

Rates LimitProbe::measure(const Batch& batch) {
  Rates rates;
  rates.stamps_us = stamps_us_;
  for (const Way& way : ways(batch, team_.ranks()))
    rates.motion_us.push_back(motion(way, batch.in_place));
  const std::size_t bytes = std::max(batch.bytes, kLeastBytes);
  const Readers readers = batch.collective == Collective::broadcast ? Readers::all_but_root
                          : batch.collective == Collective::reduce  ? Readers::root
                                                                    : Readers::all;
  const auto all_bytes = static_cast<double>(bytes);
  rates.cross_us_per_byte = cross_read(bytes, readers).read_us / all_bytes;
  if (batch.protocol == Protocol::warm) return rates;
  rates.read_us_per_byte = own_read(bytes) / all_bytes;
  const Crossed past = cross_read(bytes, readers, true);
  rates.stream_us_per_byte = past.store_us / all_bytes;
  rates.memory_us_per_byte = past.read_us / all_bytes;
  return rates;
}

LevelRates LimitProbe::measure_level(const std::string& level, std::size_t bytes) {
  LevelRates rates;
  rates.level = level;
  rates.bytes = bytes / 2;
  const std::size_t floats = rates.bytes / sizeof(float);
  // Bytes per microsecond are MB/s.
  const double moved = static_cast<double>(rates.bytes) / 1000;
  rates.copy = moved / motion({"copy", 1, 1, floats / 2, 0, 0}, false);
  rates.add = moved / motion({"add", 2, 1, floats / 3, 0, 0}, false);
  rates.read = moved / own_read(rates.bytes);
  rates.cross_read = moved / cross_read(rates.bytes, Readers::all).read_us;
  return rates;
}

}  // namespace rankine::rivals
