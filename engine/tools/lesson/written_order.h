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
#include "engine/tools/plan/pipeline.h"

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

// Whether a text is one of these: "pipeline" is its first word.
bool is_order(std::string_view text);

// What can be read is in range, and need not be right. Errors: invalid_argument, with the line,
// what stands there and what is allowed.
Result<WrittenOrder> read_order(std::string_view text);

// "F3"
std::string task_text(const Task& task);

}  // namespace rankine::tools
