// A step's pipeline over time: every stage's passes, as a picture and as a trace.
#pragma once

#include <string>
#include <string_view>

#include "engine/tools/plan/pipeline.h"

namespace rankine::tools {

// A row per stage; forward, backward and weights in three colours, micro-batches by number.
std::string timeline_svg(std::string_view title, const Pipeline& pipeline);

// Trace events in JSON, as Perfetto and Chrome read them: stages are threads, times microseconds.
std::string timeline_trace(const Pipeline& pipeline);

}  // namespace rankine::tools
