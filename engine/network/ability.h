// Whether a network can do what a transfer asks for.
#pragma once

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine {

// One -> many needs multicast, many -> one an ALU; the error says which is missing.
Status check_ability(const Transfer& transfer, const Fabric& fabric);

}  // namespace rankine
