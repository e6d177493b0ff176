// Ranks that are threads of this process, pinned to cores.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/server/decoder.h"
#include "bench/server/service.h"

namespace rankine::server {

enum class Library { rankine, barrier };

// Throws what the making of a Team says. The model must be divisible (check_ranks()).
std::unique_ptr<Crew> hire_threads(const Model& model, std::uint64_t seed, int ranks,
                                   Library library, Line line);

}  // namespace rankine::server
