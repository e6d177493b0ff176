// Networks in words.
#pragma once

#include <string>

#include "engine/network/fabric.h"

namespace rankine::tools {

// "scale_out (1 port, 1.5 us, 50 GB/s)", of a fabric that wired_for() gave.
std::string describe(const Fabric& fabric);

// "torus 4x4, 200 ns per hop", of a fabric that wired_for() gave; nothing where messages share no
// link and cross none.
std::string describe_wiring(const Fabric& fabric);

}  // namespace rankine::tools
