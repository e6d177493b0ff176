// A training step as a plan: every collective with its group, bytes, algorithm and time, what
// hides behind computing, and how long it all takes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/tools/plan/layer_work.h"
#include "engine/tools/plan/machine.h"
#include "engine/tools/plan/mapping.h"
#include "engine/tools/plan/memory.h"
#include "engine/tools/plan/model.h"
#include "engine/tools/plan/pipeline.h"
#include "engine/tools/plan/prices.h"

namespace rankine::tools {

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

}  // namespace rankine::tools
