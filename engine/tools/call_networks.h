// Modelled networks to put calls on, as perf and bench/catalogue take them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/network.h"
#include "engine/base/status.h"

namespace rankine::tools {

struct NamedNetwork {
  std::string name;  // as it was given: "scale_out,sync=rounds"
  std::shared_ptr<const CallNetwork> network;
};

// "scale_up,scale_out,sync=rounds,torus": networks one after the other, each as find_call_network()
// takes it. A part with "=" is a setting of the network before it, any other one the next network.
// Text that begins with a brace is the content of one network file. Errors name the argument, its
// value and what is allowed.
Result<std::vector<NamedNetwork>> read_call_networks(std::string_view argument,
                                                     std::string_view text);

}  // namespace rankine::tools
