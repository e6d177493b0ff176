#include "engine/api/processes/settings.h"

#include <cstring>

namespace rankine {

std::string difference(const ProcessSettings& one, const std::string& who,
                       const ProcessSettings& other, const std::string& whose) {
  const auto say = [&](const char* what, const std::string& a, const std::string& b) {
    return std::string(what) + " is " + a + " of " + who + " and " + b + " of " + whose;
  };
  const auto say_hash = [&](const char* what, const char* where) {
    return std::string(what) + " of " + who + " differ from those of " + whose + ": " + where;
  };
  const auto text = [](const char* value) { return std::string(value); };
  if (std::strcmp(one.host, other.host) != 0) return say("host", one.host, other.host);
  if (std::strcmp(one.boot, other.boot) != 0) return say("boot id", one.boot, other.boot);
  if (one.pid_namespace != other.pid_namespace) {
    return say("pid namespace", std::to_string(one.pid_namespace),
               std::to_string(other.pid_namespace));
  }
  if (std::strcmp(one.version, other.version) != 0) {
    return say("version", text(one.version), text(other.version));
  }
  if (one.ranks != other.ranks) {
    return say("ranks", std::to_string(one.ranks), std::to_string(other.ranks));
  }
  if (std::strcmp(one.isa, other.isa) != 0) {
    return say("instruction set", text(one.isa), text(other.isa));
  }
  if (one.environment != other.environment) {
    return say_hash("variables", "RANKINE_ALGO, RANKINE_NETWORK or RANKINE_TRANSPORT");
  }
  if (one.tuning != other.tuning) return say_hash("choices", "the tuning table or tuned");
  if (one.costs != other.costs) return say_hash("costs", "the tuning table's or those given");
  return say_hash("options", "levels, network, order or plan_bytes");
}

}  // namespace rankine
