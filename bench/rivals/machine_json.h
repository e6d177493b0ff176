// The machine that a measurement was taken on, for its document: cpu, kernel, caches, cores, time.
#ifndef RANKINE_BENCH_RIVALS_MACHINE_JSON_H_
#define RANKINE_BENCH_RIVALS_MACHINE_JSON_H_

#include "nlohmann/json.hpp"

namespace rankine::rivals {

// To be called before anything is pinned: the calling thread's affinity counts.
nlohmann::json machine_json();

}  // namespace rankine::rivals

#endif  // RANKINE_BENCH_RIVALS_MACHINE_JSON_H_
