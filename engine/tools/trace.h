// When each message of an answer was on its way, and on which ports and links: for trace viewers
// and as a picture.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "engine/tools/answer.h"

namespace rankine::tools {

// Both require an answer with a trace (SimulateOptions::trace). Errors: another fidelity than eq1, which has no
// such times; more than kMostTraced messages, and for the picture more than kMostGanttRows ports.
inline constexpr std::size_t kMostTraced = std::size_t{1} << 20;
inline constexpr int kMostGanttRows = 512;

// Trace Event Format, which Perfetto and Chrome's tracing read: a process per rank, and in it a
// track per port and direction; times in microseconds. Arguments of a message: round, transfer,
// from, to, bytes, hops, its links (as Routes numbers those that messages share), and `between` for
// one between groups.
Result<std::string> trace_json(const Answer& answer);

// A Gantt chart: a row per send port, a colour per round, the receiver in the bar where it fits.
Result<std::string> trace_svg(const Answer& answer);

}  // namespace rankine::tools
