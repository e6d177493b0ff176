#include "numa/hwloc_functions.h"

#include <dlfcn.h>

#include "numa/system_calls.h"

namespace rankine {
namespace {

HwlocFunctions functions_in(void* library) {
  HwlocFunctions found{};
#define RANKINE_FIND(name) \
  found.name = reinterpret_cast<decltype(found.name)>(dlsym(library, "hwloc_" #name));
  RANKINE_FUNCTIONS_OF_HWLOC(RANKINE_FIND)
#undef RANKINE_FIND
  return found;
}

}  // namespace

const HwlocFunctions* hwloc_functions() {
  void* const library = system_calls().dlopen("libhwloc.so.15", RTLD_NOW);  // of every hwloc 2.x
  if (library == nullptr) return nullptr;
  static const HwlocFunctions functions = functions_in(library);
  // The newest of the functions: hwloc 2.4 has it.
  return functions.cpukinds_get_by_cpuset != nullptr ? &functions : nullptr;
}

}  // namespace rankine
