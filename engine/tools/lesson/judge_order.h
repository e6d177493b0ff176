// What a teacher says of a pipeline's order that somebody wrote: whether it is right, how long it
// takes and what its stages keep, beside the orders that have names. All of it is played by
// engine/tools/plan/pipeline.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tools/lesson/written_order.h"
#include "engine/tools/parameters_json.h"

namespace rankine::tools {

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
