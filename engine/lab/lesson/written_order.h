// Reads a pipeline's order that a learner wrote (each stage's micro-batches in turn), and judges
// it.
//
//   pipeline 2 micro_batches 3   stages, and micro-batches of a step; further words:
//                                  forward F   backward B   seconds of a pass (1, 2)
//                                  weights W   seconds of a separate pass for gradients of weights,
//                                              which backward then omits (0: no separate pass)
//                                  hop H       seconds from a stage to the next (0)
//                                  keep K      micro-batches that a stage has room for
//                                  within T    seconds allowed for the step
//   0: F0 F1 B0 F2 B1 B2         stage 0 does these passes in turn, each as soon as it can
//   1: F0 B0 F1..2 B1..2         several of a kind; a further line of a stage goes on with it
//
// # starts a remark. Passes are F, B and, with separate weight passes, W.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/cli/text.h"
#include "engine/lab/planner/pipeline.h"

namespace rankine::tools {

inline constexpr int kMostOrderStages = 64;
inline constexpr int kMostOrderMicroBatches = 512;

struct WrittenOrder {
  int stages = 1, micro_batches = 1;
  int forward = 1, backward = 2, weights = 0, hop = 0;  // seconds
  std::optional<int> keep{}, within{};
  StageOrders tasks;
  std::vector<std::vector<int>> lines;  // of each task

  // The order's times and sizes as a question; its order is not set.
  PipelineQuestion question() const;
};

// Values in the result are in range, but the order may be wrong. Errors: invalid_argument with the
// line, the word found there and the allowed words.
Result<WrittenOrder> read_order(std::string_view text);

// "F3"
std::string task_text(const Task& task);

// A teacher's judgement of a written order: its first fault, its time and the micro-batches
// that its stages keep, beside the named orders. engine/lab/planner/pipeline.h plays all of them.

struct PlayedOrder {
  std::string_view name;  // "gpipe"
  double seconds = 0, idle = 0;
  std::vector<int> kept;  // micro-batches at once, by stage
};

struct OrderFault {
  std::string_view kind, rule;  // "waits_for_ever", and the rule that it breaks
  std::string text;             // what happens here
  int stage = 0;
  std::vector<int> lines{};
};

struct OrderJudgement {
  std::optional<OrderFault> fault{};
  std::size_t tasks = 0;
  Pipeline pipeline{};                  // as far as it can be played; empty if passes are missing
  std::optional<PlayedOrder> played{};  // set if the whole order can be played
  std::vector<PlayedOrder> named;
};

// Both are pure functions.
OrderJudgement judge_order(const WrittenOrder& written);
Json order_json(const WrittenOrder& written, const OrderJudgement& judged);
// Several lines for a terminal.
std::string order_text(const WrittenOrder& written, const OrderJudgement& judged);

}  // namespace rankine::tools
