// Plans a training step: its collectives and computations with their times, its hidden and exposed
// time, the memory of each stage, and the best size of gradient buckets.
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

// Seconds that a line of equal collectives adds to a computation behind which it hides, e.g.
// gradients in buckets behind a backward pass. The work of `computing` seconds makes `calls` pieces
// evenly, the last at its end. Each piece's collective takes `each` seconds and begins when its
// piece is ready and the collective before has ended. Returns the seconds from the end of the work
// to the end of the last collective: the time of the last collective, or all collectives' time
// minus the work's time since the first piece, whichever is longer.
inline double exposed_behind(double computing, double calls, double each) {
  return std::max(each, calls * each - (calls - 1) * computing / calls);
}

// A training step's plan has every collective with its group, bytes, algorithm and time, the time
// that hides behind computing, and the step's time.

// A collective of a rank of the stage that ends last.
struct PlannedCollective {
  std::string what;  // "attention, backward", "gradients"
  std::vector<Axis> along;
  Collective collective = Collective::all_reduce;
  Price price;
  double times = 0;   // in a step
  double hidden = 0;  // seconds per step that computing covers

  double seconds() const { return times * price.seconds; }
  double exposed() const { return seconds() - hidden; }
  double bytes() const { return times * static_cast<double>(price.bytes); }
  double sent() const { return times * static_cast<double>(price.sent); }  // by the busiest rank
};

inline constexpr std::string_view kOptimizer = "optimizer";

struct PlannedComputation {
  std::string what;               // "feed-forward, forward"
  double times = 0, seconds = 0;  // in a step; seconds of one computation
  double flops = 0, bytes = 0;    // of one computation; bytes through memory
};

struct StepPlan {
  Model model;
  Mapping mapping;
  Machine machine;
  std::vector<PlannedComputation> computations;
  std::vector<PlannedCollective> collectives;
  Pipeline pipeline;
  int stage = 0;  // the stage that ends last
  Memory memory;
  double seconds = 0;  // of the step

  double computing() const;
  double communicating() const;
  double exposed() const;
  double hidden() const { return communicating() - exposed(); }
  // The rest of the step, in which the stage waits for other stages.
  double bubble() const;
  double model_flops() const;  // the whole step's, without recomputing
  double utilisation() const;  // model_flops() over the flops that all ranks' peak allows
  bool fits() const { return memory.all() <= machine.memory_bytes; }
};

// Seconds of a computation on one rank, and the launch time of a layer's pass beside it.
double seconds_of(const Computation& computation, const Machine& machine);
double launching_seconds(Phase phase, const Mapping& mapping, const Machine& machine);

// Plans one step. `prices` must be of this machine and this number of ranks. Errors: errors of
// check_model(), check_mapping() and Prices.
Result<StepPlan> plan_step(const Model& model, const Mapping& mapping, const Machine& machine,
                           Prices& prices);

// The memory of a rank of each pipeline stage, first stage first. Unlike memory_of(), which gives
// the first stage by formulas, it counts waiting micro-batches in the played pipeline: from the
// begin of a forward pass to the end of the last task that needs its activations. The first stage
// has the embedding, the last stage the output matrix, which is equally large.
std::vector<Memory> stage_memories(const StepPlan& plan);

// A question about bucket sizes: many equal tensors are summed up a bucket at a time.

struct BucketQuestion {
  const Algorithm* algorithm = nullptr;  // of all_reduce
  Fabric fabric{};                       // wired for these ranks
  int ranks = 8;
  std::uint64_t tensors = 1000, tensor_bytes = 1'000'000;  // at least one of each
  std::uint64_t bucket = 25'000'000;  // a further size to try; the default is PyTorch's
  // Seconds of the pass that makes the tensors one after the other; 0: all tensors are ready.
  double backward = 0;

  std::uint64_t all_bytes() const { return tensors * tensor_bytes; }
};

struct BucketRow {
  std::uint64_t tensors = 0, bytes = 0, calls = 0;  // per bucket; number of buckets
  double each = 0;                                  // seconds of a full bucket, by the simulator
  double last = 0;                                  // seconds of the last bucket; may be partial
  std::optional<double> formula{};                  // `each` by closed forms
  double exposed = 0;                               // seconds that the pass does not cover
  std::optional<double> played{};                   // seconds of all buckets, played on threads

  double all() const { return static_cast<double>(calls - 1) * each + last; }
};

// Rows for buckets of one tensor, two, four ... all tensors, and for `bucket`, ascending. A pure
// function. Errors: invalid_argument if the algorithm has no schedule for this number of ranks.
Result<std::vector<BucketRow>> bucket_rows(const BucketQuestion& question);

// The row with the least waiting; among equals the smallest bucket. Requires a row.
std::size_t best_bucket(const std::vector<BucketRow>& rows);

// The best number of calls into which to divide all tensors if communication takes longer than the
// pass. Empty if no closed form gives it, or the pass takes no time.
std::optional<double> best_calls(const BucketQuestion& question);

// The rows as a table for people and programs; the column of exposed time only if `hides`. Requires
// a row.
Table bucket_table(const std::vector<BucketRow>& rows, bool hides);

}  // namespace rankine::tools
