// Questions to the model, lines of JSON, answered on all cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/table.h"
#include "engine/network/simulate.h"

namespace rankine::tools {

// One answer per line of `in` that is not blank, in their order, on all cores; each is flushed as
// soon as it and those before it are known, and none waits for lines that have not come yet.
// Returns how many are errors. Throws what the streams throw.
std::size_t answer_batch(std::istream& in, std::ostream& out);

// How long algorithms take among more and more ranks: questions of one kind, asked of many numbers
// of ranks.

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

// A schedule as GOAL, the input of LogGOPSim: per rank a list of sends, receives and local work,
// and what each waits for. Hoefler, Siebert & Lumsdaine, "Group Operation Assembly Language - A
// flexible way to express collective communication", ICPP 2009; "LogGOPSim - Simulating large-scale
// applications in the LogGOPS model", LSAP 2010.

// `bytes` is M, and of `options` counts and ideal blocks matter. A message is a send and a receive
// of its bytes with a tag of its own, so that no other is taken for it. A send waits for whatever
// brought what it carries; sums are local work of no time (calc 0), which waits for what is added
// up. Ports, latencies and bandwidths are the simulator's. Switches' transfers become messages,
// which are all that GOAL knows. Errors: more than `most_lines` sends, receives and sums; sizes
// that Pricing refuses.
Result<std::string> goal_text(const Schedule& schedule, const Goal& goal, std::uint64_t bytes,
                              const SimulateOptions& options = {},
                              std::int64_t most_lines = std::int64_t{1} << 24);

}  // namespace rankine::tools
