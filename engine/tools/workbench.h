// Measuring and checking real collectives on pinned threads, or in pinned processes.
//
// Method. All ranks loop inside one Team::run. After the warm-up calls come batches: the ranks meet
// at a barrier, each reads the clock, makes the batch's calls and reads the clock again. The time
// of a batch is the longest of any rank (or what MeasureOptions::of_ranks says); a sample is that
// time divided by the calls. A batch holds as many calls as take 20 us, so that reading the clock
// (20 to 30 ns) does not count.
//
// Afterwards buffers are filled with TestData, the output is spoilt, and one call more is checked
// element by element on every rank.
//
// fresh: every batch is one call; before it each rank rewrites its input, untimed, and the time
// covers the call and one read of the result, as a program that computes and uses the data has it.
// On a modelled network (TeamOptions::network) the first call, which all ranks begin at the
// network's time 0, also says how long it took there; each measurement gets a team, and so a clock,
// of its own. Times of batches are real ones as ever, of calls that keep the network's clock.
//
// off_cache: calls rotate over more memory than all last-level caches hold, in an order that
// prefetchers do not guess.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/call.h"
#include "engine/api/team.h"
#include "engine/base/statistics.h"
#include "engine/tools/latency_probe.h"
#include "engine/tools/process_seat.h"

namespace rankine::tools {

// Of the monotonic clock.
inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Whose time of a batch is its time: nccl-tests' numbers for --average.
enum class RankTime { first = 0, mean = 1, least = 2, most = 3 };

struct MeasureOptions {
  int warmups = 5;        // calls: the first one compiles; 0: it is timed
  int batches = 0;        // 0: at least kFewestBatches, and as many as fit into `seconds`
  int calls = 0;          // per batch; 0: as many as take 20 us
  int checks = 1;         // checked calls, each with other data; 0: unchecked
  double seconds = 0.15;  // for batches = 0
  bool fresh = false;
  bool off_cache = false;
  std::optional<bool> in_place{};          // one place only; none: both
  std::optional<std::uint64_t> perturb{};  // a seed: ranks are delayed at random (perturb.h)
  RankTime of_ranks = RankTime::most;
  bool each_rank = false;  // keep Series::of_rank
  int unalign = 0;         // elements that buffers begin behind a cache line's border

  static constexpr int kFewestBatches = 5;
  static constexpr int kMostBatches = 2000;
};

struct Series {
  std::vector<double> samples;  // seconds per call, one per batch, in the order measured
  std::vector<std::vector<double>> of_rank{};  // the same of each rank, where that was asked for
  Statistics seconds;                          // of the samples
  std::optional<double> model_seconds{};       // of a call, on a modelled network
  int calls = 0;                               // per batch
  std::int64_t wrong = -1;                     // elements, over all ranks and checks; -1: unchecked
  std::string algorithm, transport;            // what ran; empty: nothing did
};

struct Measured {
  Series out_of_place, in_place;
  // By rank, with TeamOptions::ports or on a network: of all calls of the workbench so far.
  std::vector<PortsInUse> ports{};

  // The one to name first.
  const Series& first() const { return out_of_place.algorithm.empty() ? in_place : out_of_place; }
};

// Where the machine stood around a measurement, and how often it was measured again because that
// moved (latency_probe.h).
struct LatencyBracket {
  double before_ns = 0, after_ns = 0;  // 0: ranks 0 and 1 do not have two CPUs
  int repeats = 0;
  double drift() const { return tools::drift({before_ns, after_ns}); }
  bool steady() const { return drift() <= kSteady; }
};

// Bytes of the buffers of one rank, the largest over all ranks; unaligned ones need as much more as
// they are shifted by.
struct BufferBytes {
  std::size_t input = 0, output = 0;
};
// Requires check_call(call, ranks).ok(). Addresses in `call` are not used.
BufferBytes buffer_bytes(const Call& call, int ranks);

class Workbench {
 public:
  struct Options {
    TeamOptions team;
    BufferBytes buffers;     // of the largest call to come
    bool off_cache = false;  // whether such a measurement will come
    // Where ranks are processes: the one that this plays. All make a workbench, and measure the
    // same. There is no network then, and no probe.
    std::optional<ProcessRank> process{};
    bool shared_payloads = false;  // of theirs, as CallOptions has it: so are those of all calls
  };

  // Memory that create() will take for buffers, over all ranks, and once more the outputs for the
  // scratch of algorithms. Saturates instead of overflowing.
  static std::size_t memory_needed(const Options& options);

  // Errors: those of Team or of Communicator, and memory that cannot be had.
  static Result<std::unique_ptr<Workbench>> create(const Options& options);
  ~Workbench();

  std::vector<RankReport> places() const;  // of all ranks
  int process_of(Rank r) const;
  const WaitPolicy& wait_policy() const;

  // The call says collective, count, type, op, root, peer and options; the buffers are ours.
  // Errors: the call's own, and `aborted` where a signal interrupted it between two batches
  // (interrupt.h); after any but these and invalid_argument the workbench is finished.
  Result<Measured> measure(const Call& call, const MeasureOptions& options);

  // The same between two probes of the latency, again while the machine moves under it.
  Result<Measured> measure_steady(const Call& call, const MeasureOptions& options,
                                  LatencyBracket& bracket);

  // One-way latency of a cache line between ranks 0 and 1, in ns (latency_probe.h); 0 where these
  // two are not pinned to two CPUs. Errors: those of Team::run.
  Result<double> probe_latency();

 private:
  struct State;
  explicit Workbench(std::unique_ptr<State> state);
  Status allocate(const Topology& topology);
  // f on every rank that is played here, at once.
  Status play(const std::function<void(Member&)>& f);
  std::unique_ptr<State> state_;
};

}  // namespace rankine::tools
