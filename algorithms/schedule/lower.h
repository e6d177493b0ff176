// Rewrites what a network cannot do into plain messages.
#pragma once

#include "algorithms/schedule/abilities.h"
#include "algorithms/schedule/schedule.h"

namespace rankine {

// The same schedule in one -> one messages wherever `abilities` ask for it; rounds stay, ports and
// bytes grow. A one -> many transfer becomes a message to each receiver, in their order. A
// reduction many -> one becomes a transfer of each sender, in theirs. A many -> many transfer is
// split on the sides that need it; where both do, into all pairs.
Schedule lower(Schedule schedule, Abilities abilities);

}  // namespace rankine
