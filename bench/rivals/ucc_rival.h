// UCC as a contender: the collectives over UCX that Open MPI and PyTorch can be told to call. Its
// ranks are processes; it is optional, and missing where it is not installed.
#pragma once

#include <memory>

#include "bench/rivals/rival.h"

namespace rankine::rivals {

// UCX's transports for one machine; UCC chooses its algorithms itself.
std::unique_ptr<Rival> make_ucc(const Setup& setup);

}  // namespace rankine::rivals
