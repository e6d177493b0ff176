// A pipeline's order as somebody wrote it down: which stage works on which micro-batch in turn.
//
//   pipeline 2 micro_batches 3   stages, and micro-batches of a step; further words:
//                                  forward F   backward B   seconds of a pass (1, 2)
//                                  weights W   backward computes no gradients of weights: that is
//                                              work of its own (0: it does)
//                                  hop H       seconds from a stage to the next (0)
//                                  keep K      micro-batches that a stage has room for
//                                  within T    seconds that it may take
//   0: F0 F1 B0 F2 B1 B2         stage 0 does this, one after the other, as soon as it can
//   1: F0 B0 F1..2 B1..2         several of a kind; a further line of a stage goes on with it
//
// What follows # is a remark. Passes are F, B and, where weights are work of their own, W.
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

  // Without an order of its own.
  PipelineQuestion question() const;
};

// What can be read is in range, and need not be right. Errors: invalid_argument, with the line,
// what stands there and what is allowed.
Result<WrittenOrder> read_order(std::string_view text);

// "F3"
std::string task_text(const Task& task);

// What a teacher says of a pipeline's order that somebody wrote: whether it is right, how long it
// takes and what its stages keep, beside the orders that have names. All of it is played by
// engine/lab/planner/pipeline.h.

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
  Pipeline pipeline{};  // as far as it can be played; empty where passes are missing
  std::optional<PlayedOrder> played{};  // where all of it can
  std::vector<PlayedOrder> named;
};

// Both are pure functions.
OrderJudgement judge_order(const WrittenOrder& written);
Json order_json(const WrittenOrder& written, const OrderJudgement& judged);
// Several lines, as a terminal has them.
std::string order_text(const WrittenOrder& written, const OrderJudgement& judged);

}  // namespace rankine::tools
