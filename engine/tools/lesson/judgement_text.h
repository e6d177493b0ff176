// A judgement in words, for a terminal.
#pragma once

#include <string>

#include "engine/network/fabric.h"
#include "engine/network/simulate.h"
#include "engine/tools/lesson/judge.h"
#include "engine/tools/table.h"

namespace rankine::tools {

// "not_there at round 1, rank 0, block 1"
std::string violation_name(const Violation& violation);

// The rule, what happened, and the transfers that have to do with it: lines, two blanks in.
std::string violation_text(const WrittenSchedule& written, const Violation& violation);

// How many times the least; "-" where that is zero.
Cell times_of(double value, double least);

// What a proved schedule costs beside the least and the catalogue's best, in several lines.
std::string costs_text(const Judgement& judged, const Fabric& fabric, std::uint64_t bytes,
                       Sync sync);

}  // namespace rankine::tools
