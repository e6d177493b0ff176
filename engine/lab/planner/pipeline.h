// Plays a pipeline of stages: computes the time at which each stage works on each micro-batch, and
// draws the result.
//
// Orders: gpipe (all forward, then all backward); 1f1b, plain (Narayanan et al., PipeDream-Flush)
// and interleaved (Narayanan et al., 2021, section 2.2). Three orders have separate tasks for
// weight gradients, for which no other task waits (Qi et al., Zero Bubble Pipeline Parallelism,
// 2023): zb1p; zb2p, with twice as many micro-batches in flight; zbv, with two parts of the model
// on each stage (zbv_order()).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/lab/planner/model.h"

namespace rankine::tools {

enum class Pass : unsigned char { forward, backward, weights };

struct Task {
  Pass pass = Pass::forward;
  int micro_batch = 0;
  int part = 0;               // number of the part within the stage's parts of the model
  double begin = 0, end = 0;  // seconds from the step's begin
};

struct PipelineQuestion {
  PipelineOrder order = PipelineOrder::one_f_one_b;
  int stages = 1, parts = 1, micro_batches = 1;
  // Seconds of a pass. If the order has no separate weight tasks, backward includes the weights.
  std::function<double(Pass, int stage, int part)> seconds;
  double hop_seconds = 0;  // from one stage to another
};

struct Pipeline {
  std::vector<std::vector<Task>> stages;  // each in the order of time

  double end(int stage) const;
  double busy(int stage) const;
  // Seconds without work from the begin of the stage's first task to the end of its last task.
  double idle(int stage) const;
  double most_idle() const;
  double end() const;  // the last end of all stages
  // The largest number of micro-batches with activations in the memory of a stage with `parts`
  // parts: from the begin of a forward pass to the end of the last task that needs them. One of the
  // stage's parts counts as 1 / parts of a micro-batch.
  double most_kept(int stage, int parts) const;
};

// For each stage, its tasks in the order of execution.
using StageOrders = std::vector<std::vector<Task>>;

// The tasks in the order question.order. Requires check_mapping()'s conditions on orders, stages
// and micro-batches.
StageOrders orders_of(const PipelineQuestion& question);

// Each stage starts the next task of its order as soon as the task's inputs are there;
// question.order is ignored. A task that waits for ever is not played, nor are the later tasks of
// its stage.
Pipeline play(const PipelineQuestion& question, const StageOrders& orders);

// play() in the order question.order.
Pipeline play(const PipelineQuestion& question);

// The order of ZB-V (Qi et al., Zero Bubble Pipeline Parallelism, 2023, section 6): every stage has
// two parts of the model. The first parts lie down the pipeline and the second parts back up again,
// so the first stage has both ends. There is no bubble if forward, backward and weights take equal
// times, and a stage keeps no more than in 1F1B. Returns one stage's tasks, without times.
std::vector<Task> zbv_order(int stages, int stage, int micro_batches);

// A picture of the passes: a row per stage; forward, backward and weights in three colours,
// micro-batches by number.
std::string timeline_svg(std::string_view title, const Pipeline& pipeline);

// Trace events in JSON for Perfetto and Chrome: stages are threads, times are microseconds.
std::string timeline_trace(const Pipeline& pipeline);

}  // namespace rankine::tools
