// What planning a call costs: making its plan, and predicting its time on a network.
#pragma once

#include <cstddef>
#include <vector>

namespace rankine {

// compile/all_reduce/ring/ranks:8/bytes:65536 and predict/..., for the whole catalogue; the network
// is scale_out, and what it cannot do is turned into messages (lower.h). Real time. Without
// ranks: 8.
void register_planning(const std::vector<int>& ranks, const std::vector<std::size_t>& bytes);

}  // namespace rankine
