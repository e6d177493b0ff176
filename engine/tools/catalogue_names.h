// Collectives and algorithms by the names that people type (engine/api/typed_names.h), for command
// lines and requests alike.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/status.h"

namespace rankine::tools {

// A collective for which the catalogue has an algorithm.
Result<Collective> read_collective(std::string_view argument, std::string_view text);

// "ring,direct" or "all", as lines of the catalogue in its order. Each name must be an algorithm of
// `collective`; without a collective, of any.
Result<std::vector<const Algorithm*>> read_algorithms(std::string_view argument,
                                                      std::string_view text,
                                                      std::optional<Collective> collective);

}  // namespace rankine::tools
