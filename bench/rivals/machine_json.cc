#include "bench/rivals/machine_json.h"

#include <sys/utsname.h>

#include <string>

#include "engine/tools/machine.h"

namespace rankine::rivals {

nlohmann::json machine_json() {
  const tools::MachineReport machine = tools::read_machine();
  struct utsname system {};
  uname(&system);
  const CacheSizes& caches = machine.topology.caches();
  return {{"cpu", machine.cpu},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"summary", machine.topology.summary()},
          {"cores", machine.budget.why},
          {"l1d_bytes", caches.l1d},
          {"l2_bytes", caches.l2},
          {"l3_bytes", caches.l3},
          {"time", tools::utc_now()}};
}

}  // namespace rankine::rivals
