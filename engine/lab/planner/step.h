// How much of a line of equal collectives is waited for, that start one by one while something is
// computed: gradients in buckets behind a backward pass.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/status.h"
#include "engine/cli/table.h"
#include "engine/lab/planner/layer_work.h"
#include "engine/lab/planner/machine.h"
#include "engine/lab/planner/model.h"
#include "engine/lab/planner/pipeline.h"
#include "engine/network/fabric.h"

namespace rankine::tools {

// Work of `computing` seconds makes `calls` pieces evenly, the last at its end; each piece's
// collective takes `each` and begins when its piece is ready and the one before has ended. The
// seconds from the end of the work to the end of the last collective: what the last one needs, or
// what all need beyond the time that there was since the first piece.
inline double exposed_behind(double computing, double calls, double each) {
  return std::max(each, calls * each - (calls - 1) * computing / calls);
}

// A training step as a plan: every collective with its group, bytes, algorithm and time, what
// hides behind computing, and how long it all takes.

// Of a rank of the stage that ends last.
struct PlannedCollective {
  std::string what;  // "attention, backward", "gradients"
  std::vector<Axis> along;
  Collective collective = Collective::all_reduce;
  Price price;
  double times = 0;   // in a step
  double hidden = 0;  // seconds of the step's that computing covers

  double seconds() const { return times * price.seconds; }
  double exposed() const { return seconds() - hidden; }
  double bytes() const { return times * static_cast<double>(price.bytes); }
  double sent() const { return times * static_cast<double>(price.sent); }  // by the busiest rank
};

inline constexpr std::string_view kOptimizer = "optimizer";

struct PlannedComputation {
  std::string what;               // "feed-forward, forward"
  double times = 0, seconds = 0;  // of a step; each takes `seconds`
  double flops = 0, bytes = 0;    // of each: what it computes, and what goes through memory
};

struct StepPlan {
  Model model;
  Mapping mapping;
  Machine machine;
  std::vector<PlannedComputation> computations;
  std::vector<PlannedCollective> collectives;
  Pipeline pipeline;
  int stage = 0;  // the one that ends last
  Memory memory;
  double seconds = 0;  // of a step

  double computing() const;
  double communicating() const;
  double exposed() const;
  double hidden() const { return communicating() - exposed(); }
  // What is left of the step: the stage waits for others.
  double bubble() const;
  double model_flops() const;  // of the whole step, without what is computed twice
  double utilisation() const;  // of the peak that machine.flops is, by model_flops()
  bool fits() const { return memory.all() <= machine.memory_bytes; }
};

// Seconds of a rank: of one computation, and of what launching a layer's pass takes beside it.
double seconds_of(const Computation& computation, const Machine& machine);
double launching_seconds(Phase phase, const Mapping& mapping, const Machine& machine);

// `prices`: of this machine and as many ranks. Errors: those of check_model(), check_mapping() and
// Prices.
Result<StepPlan> plan_step(const Model& model, const Mapping& mapping, const Machine& machine,
                           Prices& prices);

// What a rank of each pipeline stage keeps in memory: of the first stage alone, memory.h says it by
// formulas.

// Of every stage, the first one first. Micro-batches that wait at once are counted in the pipeline
// as it was played: from the begin of a forward pass to the end of what needs its activations last.
// The first stage has the embedding, the last one the output matrix, which is as large.
std::vector<Memory> stage_memories(const StepPlan& plan);

// What the size of gradient buckets costs: many equal tensors, summed up a bucket at a time.

struct BucketQuestion {
  const Algorithm* algorithm = nullptr;  // of all_reduce
  Fabric fabric{};                       // wired for these ranks
  int ranks = 8;
  std::uint64_t tensors = 1000, tensor_bytes = 1'000'000;  // at least one of each
  std::uint64_t bucket = 25'000'000;  // a size to be among those tried; PyTorch's
  // Seconds of the pass that makes the tensors one after the other; 0: all of them are there.
  double backward = 0;

  std::uint64_t all_bytes() const { return tensors * tensor_bytes; }
};

struct BucketRow {
  std::uint64_t tensors = 0, bytes = 0, calls = 0;  // of a bucket
  double each = 0;                                  // seconds of a bucket, by the simulator
  double last = 0;                                  // of the last one, which may not be full
  std::optional<double> formula{};                  // the same by the catalogue's closed forms
  double exposed = 0;                               // seconds that the pass does not cover
  std::optional<double> played{};                   // of all of them, by ranks on threads

  double all() const { return static_cast<double>(calls - 1) * each + last; }
};

// Buckets of one tensor, two, four ... all of them, and `bucket`, ascending. A pure function.
// Errors: invalid_argument where the algorithm has no schedule for so many ranks.
Result<std::vector<BucketRow>> bucket_rows(const BucketQuestion& question);

// The row that keeps least waiting, the smallest of several. Requires one.
std::size_t best_bucket(const std::vector<BucketRow>& rows);

// Into how many calls to divide all tensors where communication takes longer than the pass; none
// where no closed form says it, or nothing hides.
std::optional<double> best_calls(const BucketQuestion& question);

// The rows for people and programs; what the pass does not cover only where something `hides`.
// Requires a row.
Table bucket_table(const std::vector<BucketRow>& rows, bool hides);

}  // namespace rankine::tools
