// rankine cost: what an algorithm costs in the model's own terms: rounds, critical path, n_alpha
// and n_beta, and every rank's bytes, partners and ports.
#pragma once

#include "engine/tools/arguments.h"

namespace rankine::tools {

Subcommand add_cost(Command tool);

}  // namespace rankine::tools
