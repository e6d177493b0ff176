// Workbench measures, plays and checks real collectives on pinned threads or in pinned processes.
// Its parts are the seat of a process rank and the test data; harness.h has the method.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/api/call.h"
#include "engine/api/communicator.h"
#include "engine/api/quantised.h"
#include "engine/api/team.h"
#include "engine/base/statistics.h"
#include "engine/cli/harness.h"
#include "engine/network/wall.h"
#include "engine/run/kernels/types.h"
#include "engine/run/plan.h"
#include "numa/memory.h"

namespace rankine::tools {

// The rank that this process plays, where ranks are processes. The process is placed and pinned as
// the threads of a team are.
struct ProcessRank {
  Rank rank = 0;
  std::string name;  // all ranks meet under this name
};

// TestData makes inputs for which every rank can check the result exactly, in any order of
// computation.
//
// Contributions repeat along the vector with a prime period, so that a rank compares its output
// with one expected period at the speed of memory, and still detects a block in a wrong place.
// Every partial result is exact in the type: whole numbers with small sums, products of few twos
// and halves, and any value for integers, which wrap. f16 and bf16 need no tolerance either.

// Immutable; used by all ranks at once.
class TestData {
 public:
  static constexpr int kPeriod = 1021;  // elements

  // Requires takes(collective, type, op). Different seeds, different values.
  TestData(Collective collective, int ranks, DataType type, ReduceOp op, std::uint64_t seed);

  // Writes rank r's input. `goal` has the collective's natural blocks, and `layout` belongs to it.
  void fill(const CollectiveSpec& goal, const Layout& layout, Rank r, std::byte* input) const;

  // The number of elements of rank r's output that differ in any bit from the expected value.
  std::int64_t count_wrong(const CollectiveSpec& goal, const Layout& layout, Rank r,
                           const std::byte* output) const;
  // For results with errors: counts the elements that differ by more than `bound`. Raises `error`
  // to the largest difference. Type: f32, f16 or bf16.
  std::int64_t count_far(const CollectiveSpec& goal, const Layout& layout, Rank r,
                         const std::byte* output, double bound, double& error) const;
  // The largest magnitude of each rank's contributions, for the same types.
  std::vector<double> peaks() const;

 private:
  const std::byte* period_of(Rank source) const;
  double value_at(const std::byte* element) const;
  // Calls visit(element, expected element) for each element of rank r's output that has other bits.
  template <class Visit>
  void for_each_other(const CollectiveSpec& goal, const Layout& layout, Rank r,
                      const std::byte* output, const Visit& visit) const;

  DataType type_;
  std::size_t element_bytes_;
  std::size_t period_bytes_;
  std::vector<std::byte> contributions_;  // one period per rank
  // One period of the result if the collective reduces; one period per rank for scans.
  std::vector<std::byte> reduced_;
};

// Workbench measures and checks real collectives on pinned threads or in pinned processes.
//
// Method (harness.h). All ranks loop inside one Team::run. After the warm-up calls come batches:
// the ranks meet, each times the batch, and all read the times of all, from which each derives the
// same next step. The time of a batch is the longest time of any rank (MeasureOptions::of_ranks can
// change that); a sample is that time divided by the calls. A batch holds as many calls as take 20
// us, so that reading the clock (20 to 30 ns) does not count.
//
// Afterwards buffers are filled with TestData, the output is spoilt, and one more call is checked
// element by element on every rank.
//
// fresh: every batch is one call.
// On a modelled network (TeamOptions::network) all ranks begin the first call at the network's time
// 0, and the first call also reports its model time; each measurement gets a separate team with a
// separate clock. Batches are still timed in real time, with calls that keep the network's clock.
//
// off_cache: calls rotate over more memory than all last-level caches hold, in an order that
// prefetchers do not guess.

// How the time of a batch follows from the ranks' times; values are nccl-tests' numbers for
// --average.
enum class RankTime { first = 0, mean = 1, least = 2, most = 3 };

struct MeasureOptions {
  int warmups = 5;        // calls: the first one compiles; 0: it is timed
  int batches = 0;        // 0: at least kFewestBatches, and as many as fit into `seconds`
  int calls = 0;          // per batch; 0: as many as take 20 us
  int checks = 1;         // checked calls, each with other data; 0: unchecked
  double seconds = 0.15;  // for batches = 0
  bool fresh = false;
  bool off_cache = false;
  // Among two ranks, out of place: every other call swaps root and peer, and both ranks keep their
  // data in one buffer, so each call begins with what the call before has brought.
  bool to_and_fro = false;
  std::optional<bool> in_place{};          // one place only; none: both
  std::optional<std::uint64_t> perturb{};  // a seed: ranks are delayed at random
                                           // (engine/network/wall.h)
  // Seconds: rank r of N begins each batch r/(N - 1) of them late; times count from the last rank's
  // arrival, and are 0 for a rank that ends before it.
  double skew = 0;
  RankTime of_ranks = RankTime::most;
  bool each_rank = false;  // keep Series::of_rank
  int unalign = 0;         // elements that buffers begin behind a cache line's border
  // Calls are those of a QuantisedSum with these options; checks allow its largest error.
  std::optional<QuantisedSum::Options> quantise{};

  static constexpr int kFewestBatches = 5;
  static constexpr int kMostBatches = 2000;
};

struct Series {
  std::vector<double> samples;  // seconds per call, one per batch, in the order measured
  std::vector<std::vector<double>> of_rank{};  // samples of each rank, with each_rank
  Statistics seconds;                          // of the samples
  std::optional<double> model_seconds{};       // per call, on a modelled network
  int calls = 0;                               // per batch
  std::int64_t wrong = -1;                     // elements, over all ranks and checks; -1: unchecked
  std::string algorithm, transport;            // algorithm and transport used; empty: nothing ran
  // With MeasureOptions::quantise: the largest error in a check, and the error that is allowed.
  double error = 0, allowed_error = 0;
};

struct Measured {
  Series out_of_place, in_place;
  // By rank, with TeamOptions::ports or on a network: over all calls of the workbench so far.
  std::vector<PortsInUse> ports{};

  // The result to name first.
  const Series& first() const { return out_of_place.algorithm.empty() ? in_place : out_of_place; }
};

// The machine's latency before and after a measurement, and the number of repetitions because the
// latency moved (harness.h).
struct LatencyBracket {
  double before_ns = 0, after_ns = 0;  // 0: ranks 0 and 1 do not have two CPUs
  int repeats = 0;
  double drift() const { return tools::drift({before_ns, after_ns}); }
  bool steady() const { return drift() <= kSteady; }
};

// One-way latency of a cache line between ranks 0 and 1, in ns; 0 unless the two are pinned to two
// CPUs. Errors: Team::run's.
Result<double> probe_latency(Team& team);

// The delays of all ranks, by rank; empty without a seed.
std::vector<Perturbation> perturbations(const std::optional<std::uint64_t>& seed, int ranks);

// Bytes of the buffers of one rank, the largest over all ranks; unaligned buffers need additional
// bytes equal to their shift.
struct BufferBytes {
  std::size_t input = 0, output = 0;
};
// Requires check_call(call, ranks).ok(). Addresses in `call` are not used.
BufferBytes buffer_bytes(const Call& call, int ranks);

class Workbench {
 public:
  struct Options {
    TeamOptions team;
    BufferBytes buffers;     // the largest call to come
    bool off_cache = false;  // an off-cache measurement will come
    // If ranks are processes: the rank of this process. All processes make a workbench and make the
    // same measurements. Processes have no probe.
    std::optional<ProcessRank> process{};
    bool shared_payloads = false;  // CallOptions::shared_payloads of all calls
  };

  // Checks that the machine has memory for the buffers, over all ranks, and once more the outputs
  // for the scratch of algorithms, besides `spare` bytes. out_of_memory names `who` and the memory
  // needed.
  static Status check_memory(const Options& options, std::string_view who, std::size_t spare = 0);

  // Errors: Team's or Communicator's errors, and insufficient memory.
  static Result<std::unique_ptr<Workbench>> create(const Options& options);
  ~Workbench();

  std::vector<RankReport> places() const;  // of all ranks
  int process_of(Rank r) const;
  Communicator& communicator() const;  // of the calls; on a network until the next measurement

  // Makes the call's plan on a rank of this process. Errors: the call's refusals.
  Status check(const Call& call);

  // The call gives collective, count, type, op, root, peer and options; the workbench provides the
  // buffers. Errors: the call's errors, and `aborted` if a signal interrupts between two batches
  // (console.h). After any other error except invalid_argument the workbench is unusable.
  Result<Measured> measure(const Call& call, const MeasureOptions& options);

  // measure() between two probes of the latency, repeated while the latency moves.
  Result<Measured> measure_steady(const Call& call, const MeasureOptions& options,
                                  LatencyBracket& bracket);

  // One call of all ranks, at the beginning of the model's time, each with other data. Every
  // element of every output is checked. `delays`: by rank, or empty. Among threads only. Errors: as
  // measure().
  struct Played {
    double seconds = 0;  // from the first rank's begin to the last rank's end
    std::int64_t wrong = 0;
  };
  Result<Played> play(const Call& call, std::span<Perturbation> delays = {});

 private:
  struct State;
  explicit Workbench(std::unique_ptr<State> state);
  Status allocate(const Topology& topology);
  // Runs f on every rank of this process, at once.
  Status run(const std::function<void(Member&)>& f);
  std::unique_ptr<State> state_;
};

}  // namespace rankine::tools
