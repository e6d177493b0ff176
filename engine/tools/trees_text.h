// The trees that a schedule's messages make, drawn as trees.
#pragma once

#include <string>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"

namespace rankine::tools {

// For each phase and block: who gets it from whom (copies), or adds it for whom (additions). Where
// that makes a tree in which somebody has two children or more, it is drawn, the root first, each
// child below its parent with the round of its first message; blocks that move alike are drawn
// once. Empty where there is no such tree, as in rings and exchanges.
std::string trees_text(const Schedule& schedule, const Goal& goal, bool utf8);

}  // namespace rankine::tools
