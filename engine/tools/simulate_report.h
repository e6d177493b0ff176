// What simulate prints of its answers: a table, and where asked for when each round ends.
#pragma once

#include <vector>

#include "engine/tools/answer.h"
#include "engine/tools/console.h"

namespace rankine::tools {

// Of one question, to at least one algorithm. The fastest first; among equals the catalogue's
// order. As CSV: the table, or with `rounds` each round's end.
void print(std::vector<Answer> answers, bool rounds, bool csv, Console& console);

}  // namespace rankine::tools
