// Names of collectives and algorithms as people type them: Ring, AllReduce, all-reduce; and tree
// and nvls, as NCCL has it, for double_tree and switch. Environment variables, command lines and
// requests read them alike; in calls and in files of ours names are exact.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"

namespace rankine {

std::optional<Collective> find_typed_collective(std::string_view typed);

// What the name means for this collective: the line of that name, else the one that an alias
// stands for; nullptr: neither.
const Algorithm* find_typed_algorithm(Collective collective, std::string_view typed);

// The same for every collective that has it, in the catalogue's order.
std::vector<const Algorithm*> find_typed_algorithms(std::string_view typed);

}  // namespace rankine
