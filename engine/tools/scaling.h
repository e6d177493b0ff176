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
  std::vector<std::string> notes{};  // of each curve that has a gap or ends early, where and why
};

// Ranks double from those of the arguments up to `most`, which is the last. Every rank has M bytes,
// or a vector of them, however many ranks there are; blocks are exactly M / B bytes, so that one
// rank can stand for all (everyone.h). A curve ends before the first number of ranks for which the
// simulator would take more than `most_steps` (simulate.h), as far as is known before, by how the
// steps of fewer ranks have grown, or once it has taken as many. They are counted, so what is left
// out is the same on every machine. Errors: those of questions_of() for the fewest ranks, and
// nothing to show.
inline constexpr std::uint64_t kMostScaledSteps = std::uint64_t{1} << 31;
Result<Scaling> scale(const QuestionArguments& arguments, int most, std::uint64_t most_steps,
                      Console& console);

Table table_of(const Scaling& scaling);
std::string json_of(const Scaling& scaling);  // a line for each time
std::string svg_of(const Scaling& scaling, const std::string& title);

}  // namespace rankine::tools
