// Networks as the files that network_file.h reads.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine {

// The file, a line per member and a line feed at its end. What is as if the file did not say it is
// left out, and so are open ports; reading it gives the same network, to the last bit. Errors: a
// number that has no finite decimals, which no file can say.
Result<std::string> write_network(const Fabric& fabric);

}  // namespace rankine
