// A schedule as a picture: ranks side by side, time downwards, an arrow per message.
#pragma once

#include <string>
#include <string_view>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"

namespace rankine::tools {

// Copies are blue, additions orange, each with its blocks; several messages from the same rank to
// the same in a round are one arrow. `title` stands above. Rounds from `first` on, `count` of them.
std::string schedule_svg(std::string_view title, const Schedule& schedule, const Goal& goal,
                         int first, int count);

}  // namespace rankine::tools
