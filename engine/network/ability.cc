#include "engine/network/ability.h"

#include <string>

namespace rankine {

Status check_ability(const Transfer& transfer, const Fabric& fabric) {
  const bool needs_alu = transfer.from.size() > 1 && !fabric.alu;
  const bool needs_multicast = transfer.to.size() > 1 && !fabric.multicast;
  if (!needs_alu && !needs_multicast) return {};
  return invalid_argument(std::string("the schedule has a ") +
                          (needs_alu ? "many -> one" : "one -> many") + " transfer; network '" +
                          fabric.name + "' has no " + (needs_alu ? "ALU" : "multicast") +
                          " (lower the schedule, or choose a network that has it)");
}

}  // namespace rankine
