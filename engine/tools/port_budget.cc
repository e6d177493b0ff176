#include "engine/tools/port_budget.h"

#include <fmt/format.h>

#include "engine/base/units.h"

namespace rankine::tools {

std::string port_need(int needed) {
  return fmt::format("needs {} per rank", counted(needed, "port"));
}

std::string port_budget(int needed, int ports) {
  return fmt::format(
      "{}, the network has {}: {} of the survey's C.4)", port_need(needed), ports,
      rounds_serialise(needed, ports) ? "rounds serialise (case B" : "rounds run as drawn (case A");
}

}  // namespace rankine::tools
