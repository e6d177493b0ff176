// The machine that a measurement was taken on, for its document: cpu, kernel, caches, cores, time.
#pragma once

#include "nlohmann/json.hpp"

namespace rankine::rivals {

// To be called before anything is pinned: the calling thread's affinity counts.
nlohmann::json machine_json();

}  // namespace rankine::rivals
