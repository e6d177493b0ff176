// A pipeline of stages played through: who works on which micro-batch when.
//
// Orders: gpipe (all forward, then all backward); 1f1b, plain (Narayanan et al., PipeDream-Flush)
// and interleaved (Narayanan et al., 2021, section 2.2); and with weight gradients as work of their
// own, which nobody waits for, zb1p, zb2p and zbv (Qi et al., Zero Bubble Pipeline Parallelism,
// 2023), the second with twice as many micro-batches in flight, the third with two parts of the
// model on each stage (zbv_order.h).
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
  int part = 0;               // of the stage's parts of the model
  double begin = 0, end = 0;  // seconds from the step's begin
};

struct PipelineQuestion {
  PipelineOrder order = PipelineOrder::one_f_one_b;
  int stages = 1, parts = 1, micro_batches = 1;
  // Seconds of a pass; of orders without weights as work of their own these are backward's.
  std::function<double(Pass, int stage, int part)> seconds;
  double hop_seconds = 0;  // from one stage to another
};

struct Pipeline {
  std::vector<std::vector<Task>> stages;  // each in the order of time

  double end(int stage) const;
  double busy(int stage) const;
  // Of a stage, from its first task's begin to its last one's end.
  double idle(int stage) const;
  double most_idle() const;
  double end() const;  // of all
  // The most micro-batches whose activations a stage of so many parts keeps at once: from the begin
  // of a forward pass to the end of what needs them last. A part of a stage's is so much of one.
  double most_kept(int stage, int parts) const;
};

// A stage's tasks, in the order in which it does them, for each stage.
using StageOrders = std::vector<std::vector<Task>>;

// Those of question.order. Requires what check_mapping() does of orders, stages and micro-batches.
StageOrders orders_of(const PipelineQuestion& question);

// Each stage takes what comes next in its order as soon as it can be had; question.order is not
// looked at. What waits for ever is not played, nor is what comes after it in its stage.
Pipeline play(const PipelineQuestion& question, const StageOrders& orders);

// In the order that the question names.
Pipeline play(const PipelineQuestion& question);

// The order of ZB-V (Qi et al., Zero Bubble Pipeline Parallelism, 2023, section 6): every stage has
// two parts of the model, of which the first lie down the pipeline and the second back up again, so
// that the first stage has both ends. No bubble where forward, backward and weights take as long as
// one another, and no more kept than in 1F1B.

// A stage's tasks, without times.
std::vector<Task> zbv_order(int stages, int stage, int micro_batches);

// A step's pipeline over time: every stage's passes, as a picture and as a trace.

// A row per stage; forward, backward and weights in three colours, micro-batches by number.
std::string timeline_svg(std::string_view title, const Pipeline& pipeline);

// Trace events in JSON, as Perfetto and Chrome read them: stages are threads, times microseconds.
std::string timeline_trace(const Pipeline& pipeline);

}  // namespace rankine::tools
