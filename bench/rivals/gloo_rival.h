// Gloo as a contender: what PyTorch moves and sums between processes with, where no other backend
// is asked for. Its ranks are processes; it is optional, and missing where it is not installed.
#pragma once

#include <memory>

#include "bench/rivals/rival.h"

namespace rankine::rivals {

// A full mesh over TCP on the loopback interface, which is all the transport that Gloo has within a
// machine; its collectives choose their algorithms themselves. No reduce-scatter.
std::unique_ptr<Rival> make_gloo(const Setup& setup);

}  // namespace rankine::rivals
