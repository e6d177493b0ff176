// One batch: some calls of one collective at one size by one contender, timed and checked. The same
// code runs in the driver's threads and in the processes of an MPI job, so all contenders are timed
// alike. Header only.
//
//   warm   all buffers stay untouched, calls run back to back; a call's time is the batch's time
//   over its calls, of the
//          slowest rank.
//   fresh  before each call every rank rewrites its own input, not timed; after a barrier the time
//   covers the call and
//          one read of the whole result. A call's time is that of its slowest rank; the batch's is
//          the mean of the middle half of its calls.
//
// Sizes follow nccl-tests: M bytes are a rank's input of an all-reduce, a broadcast, a reduce, an
// all-to-all and a reduce-scatter, and a rank's output of an all-gather. What does not divide by
// the ranks is left out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>
#include <vector>

#include "bench/rivals/clock.h"
#include "bench/rivals/kernels.h"
#include "bench/rivals/meeting.h"
#include "engine/base/statistics.h"
#include "engine/tools/read_result.h"

namespace rankine::rivals {

enum class Collective { all_reduce, broadcast, all_gather, reduce_scatter, all_to_all, reduce };
inline constexpr std::string_view kCollectiveNames[] = {
    "all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "reduce"};

inline constexpr int kCollectives = static_cast<int>(std::size(kCollectiveNames));

enum class Protocol { warm, fresh };
inline constexpr std::string_view kProtocolNames[] = {"warm", "fresh"};

inline std::string_view name_of(Collective collective) {
  return kCollectiveNames[static_cast<int>(collective)];
}
inline std::string_view name_of(Protocol protocol) {
  return kProtocolNames[static_cast<int>(protocol)];
}

struct Batch {
  Collective collective = Collective::all_reduce;
  Protocol protocol = Protocol::warm;
  std::size_t bytes = 0;  // M
  int calls = 1;          // timed; at most kMaxCalls where protocol is fresh
  int warmups = 0;        // the same calls before them
  bool in_place =
      false;  // all-reduce on one buffer; fresh only, since a sum of sums soon overflows
  std::uint32_t seed = 0;  // of the data, so that a result left over from another batch is wrong
};

struct Measured {
  double us = 0;  // per call, as defined above
  double wall_us =
      0;  // per call with everything around it: what the next batch's length is planned by
  std::uint64_t wrong = 0;  // elements of the last call's result, over all ranks
};

// One rank's share of a batch, in floats.
struct Shape {
  std::size_t in;     // of the input
  std::size_t out;    // of the result
  std::size_t block;  // what goes to or comes from one peer
};

inline Shape shape(const Batch& batch, int ranks, int rank) {
  const std::size_t count = batch.bytes / sizeof(float);
  const std::size_t block = count / static_cast<std::size_t>(ranks);
  const std::size_t blocks = block * static_cast<std::size_t>(ranks);
  switch (batch.collective) {
    case Collective::all_reduce:
      return {count, count, count};
    case Collective::broadcast:
      return {rank == 0 ? count : 0, rank == 0 ? 0 : count, count};
    case Collective::all_gather:
      return {block, blocks, block};
    case Collective::reduce_scatter:
      return {blocks, block, block};
    case Collective::all_to_all:
      return {blocks, blocks, block};
    case Collective::reduce:
      return {count, rank == 0 ? count : 0, count};
  }
  return {};
}

inline std::uint64_t count_wrong(const Batch& batch, int ranks, int rank, const float* out,
                                 std::uint32_t shift) {
  const Shape s = shape(batch, ranks, rank);
  const Kernels& k = kernels();
  std::uint64_t wrong = 0;
  switch (batch.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      return k.count_wrong(out, s.out, 0, ranks, 0, shift);
    case Collective::broadcast:
      return k.count_wrong(out, s.out, 0, 1, 0, shift);
    case Collective::reduce_scatter:
      return k.count_wrong(out, s.out, 0, ranks, static_cast<std::size_t>(rank) * s.block, shift);
    case Collective::all_gather:
    case Collective::all_to_all: {
      const bool personal = batch.collective == Collective::all_to_all;
      const std::size_t first = personal ? static_cast<std::size_t>(rank) * s.block : 0;
      for (int from = 0; from < ranks; ++from) {
        const float* part = out + static_cast<std::size_t>(from) * s.block;
        wrong += k.count_wrong(part, s.block, from, 1, first, shift);
      }
      return wrong;
    }
  }
  return wrong;
}

// Every rank calls this with the same batch; call(in, out, shape) makes one call of the collective.
// Each rank's times end up in its seat, for summarise() once all ranks have returned.
template <class Call>
void run_batch(const Batch& batch, Meeting& meeting, int rank, float* in, float* out, Call&& call) {
  const Kernels& k = kernels();
  const Shape s = shape(batch, meeting.ranks, rank);
  Meeting::Seat& seat = meeting.seats[rank];
  if (batch.in_place) out = in;
  std::uint32_t shift = batch.seed;
  k.fill(in, s.in, rank, 0, shift);
  if (!batch.in_place) std::memset(out, 0xff, s.out * sizeof(float));  // NaNs
  Ticks begin;
  Ticks end;
  if (batch.protocol == Protocol::warm) {
    meeting.barrier(rank);
    for (int i = 0; i < batch.warmups; ++i) call(in, out, s);
    meeting.barrier(rank);
    begin = ticks_now();
    for (int i = 0; i < batch.calls; ++i) call(in, out, s);
    end = ticks_now();
  } else {
    volatile std::uint64_t sink = 0;
    begin = ticks_now();
    for (int i = -batch.warmups; i < batch.calls; ++i) {
      k.fill(in, s.in, rank, 0, ++shift);
      meeting.barrier(rank);
      const Ticks start = ticks_now();
      call(in, out, s);
      sink = tools::read_result(out, s.out * sizeof(float));
      const Ticks stop = ticks_now();
      if (i >= 0) seat.calls[i] = stop - start;
    }
    end = ticks_now();
    (void)sink;
  }
  seat.whole_batch = end - begin;
  seat.wrong = count_wrong(batch, meeting.ranks, rank, out, shift);
}

// What the seats hold after a batch, as one measurement.
inline Measured summarise(const Batch& batch, const Meeting& meeting) {
  Measured measured;
  Ticks longest = 0;
  for (int r = 0; r < meeting.ranks; ++r) {
    longest = std::max(longest, meeting.seats[r].whole_batch);
    measured.wrong += meeting.seats[r].wrong;
  }
  const double us_per_tick = nanoseconds_per_tick() / 1000;
  const bool warm = batch.protocol == Protocol::warm;
  const int calls = warm ? batch.calls : batch.calls + batch.warmups;
  measured.wall_us = static_cast<double>(longest) * us_per_tick / calls;
  if (warm) {
    measured.us = measured.wall_us;
    return measured;
  }
  std::vector<double> slowest(static_cast<std::size_t>(batch.calls));
  for (std::size_t i = 0; i < slowest.size(); ++i) {
    Ticks most = 0;
    for (int r = 0; r < meeting.ranks; ++r) most = std::max(most, meeting.seats[r].calls[i]);
    slowest[i] = static_cast<double>(most) * us_per_tick;
  }
  measured.us = middle_mean(slowest);
  return measured;
}

// How many calls make a batch of about target_us; and how many go before them.
inline int planned_calls(Protocol protocol, double wall_us, double target_us) {
  const double most = protocol == Protocol::warm ? 100000 : kMaxCalls;
  return static_cast<int>(std::clamp(std::round(target_us / std::max(wall_us, 1e-3)), 3.0, most));
}
inline int planned_warmups(int calls) { return 2 + calls / 8; }

// Short batches grow until one is long enough to plan by. run(batch) makes one and returns
// Measured.
template <class Run>
int calibrated_calls(Batch batch, double target_us, Run&& run) {
  int calls = 1;
  for (;;) {
    batch.calls = calls;
    batch.warmups = planned_warmups(calls);
    // The least of three, because whoever is interrupted now would be measured too briefly later.
    double wall_us = run(batch).wall_us;
    for (int i = 0; i < 2 && wall_us < target_us; ++i)
      wall_us = std::min(wall_us, run(batch).wall_us);
    const int planned = planned_calls(batch.protocol, wall_us, target_us);
    // A first call may cost a hundred times what the others do, so growth is bounded and an early
    // plan is not final.
    if (calls >= planned || calls >= 64) return planned;
    calls = std::min(8 * calls, planned);
  }
}

}  // namespace rankine::rivals
