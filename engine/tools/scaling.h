// How long algorithms take among more and more ranks: questions of one kind, asked of many numbers
// of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/tools/console.h"
#include "engine/tools/question_arguments.h"
#include "engine/tools/table.h"

namespace rankine::tools {

struct ScalingCurve {
  std::string algorithm{};
  std::vector<std::pair<int, double>> seconds{};  // by ranks, rising; those that could be answered
};

struct Scaling {
  std::vector<int> ranks{};  // that were asked for
  std::vector<ScalingCurve> curves{};
  std::vector<std::string> notes{};  // of each curve, why its first missing number is missing
};

// Ranks double from those of the arguments up to `most`, which is the last. Every rank has M bytes,
// or a vector of them, however many ranks there are; blocks are exactly M / B bytes, so that one
// rank can stand for all (everyone.h). What has more than kMostScaledMessages messages to go
// through is left out. Errors: those of questions_of() for the fewest ranks, and nothing to show.
inline constexpr std::uint64_t kMostScaledMessages = std::uint64_t{1} << 25;
Result<Scaling> scale(const QuestionArguments& arguments, int most, Console& console);

Table table_of(const Scaling& scaling);
std::string json_of(const Scaling& scaling);  // a line for each time
std::string svg_of(const Scaling& scaling, const std::string& title);

}  // namespace rankine::tools
