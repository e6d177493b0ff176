// `rankine simulate` answers questions to the model. This header declares its batch of JSON lines
// and its curves over numbers of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/table.h"
#include "engine/network/simulate.h"

namespace rankine::tools {

// Answers each line of `in` that is not blank, in order, on all cores. Each answer is flushed as
// soon as it and all earlier answers are known, and never waits for later lines. Returns the number
// of errors. Throws the streams' exceptions.
std::size_t answer_batch(std::istream& in, std::ostream& out);

struct ScalingCurve {
  std::string algorithm{};
  std::vector<std::pair<int, double>> seconds{};  // by ranks, rising; answered questions only
};

// The times of algorithms with growing numbers of ranks: one kind of question for many.
struct Scaling {
  std::vector<int> ranks{};  // requested numbers of ranks
  std::vector<ScalingCurve> curves{};
  std::vector<std::string> notes{};  // place and reason for each curve that has a gap or ends early
};

// Ranks double from the arguments' ranks up to `most`, which is the last. Every rank has M bytes,
// or a vector of M bytes, for every number of ranks; blocks are exactly M / B bytes, so that one
// rank can stand for all (rotation_symmetric.h). A curve ends before the first number of ranks for
// which the simulator would take more than `most_steps` (simulate.h): known before, by the growth
// of the steps of fewer ranks, or known after taking that many steps. Steps are counted instead of
// timed, so all machines leave out the same points. Errors: errors of questions_of() for the fewest
// ranks, and an empty result.
inline constexpr std::uint64_t kMostScaledSteps = std::uint64_t{1} << 31;
Result<Scaling> scale(const QuestionArguments& arguments, int most, std::uint64_t most_steps,
                      Console& console);

Table table_of(const Scaling& scaling);
std::string json_of(const Scaling& scaling);  // one line per time
std::string svg_of(const Scaling& scaling, const std::string& title);

}  // namespace rankine::tools
