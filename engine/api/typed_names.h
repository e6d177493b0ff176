// typed_names.h finds collectives and algorithms by the names that people type: Ring, AllReduce,
// all-reduce; and NCCL's tree and nvls for double_tree and switch. Environment variables, command
// lines and requests accept these spellings; calls and the engine's files need exact names.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"

namespace rankine {

std::optional<Collective> find_typed_collective(std::string_view typed);

// Finds the algorithm of this collective with that name; otherwise the algorithm that an alias
// names; nullptr if both fail.
const Algorithm* find_typed_algorithm(Collective collective, std::string_view typed);

// Finds the algorithm of that name for every collective that has it, in the catalogue's order.
std::vector<const Algorithm*> find_typed_algorithms(std::string_view typed);

}  // namespace rankine
