// The functions of hwloc that numa/ calls, from the libhwloc that is installed on the machine.
// Nothing of Rankine links it, so that a package of Rankine needs no other package.
#pragma once

#include <hwloc.h>

// The names without hwloc_. The header's inline functions that call others are not for us.
#define RANKINE_FUNCTIONS_OF_HWLOC(each)                                                         \
  each(bitmap_isset) each(cpukinds_get_by_cpuset) each(distances_get_by_type)                    \
      each(distances_release) each(get_api_version) each(get_nbobjs_by_depth)                    \
          each(get_obj_by_depth) each(get_type_depth) each(topology_destroy) each(topology_init) \
              each(topology_is_thissystem) each(topology_load) each(topology_set_components)     \
                  each(topology_set_flags) each(topology_set_synthetic)

namespace rankine {

struct HwlocFunctions {
#define RANKINE_DECLARE(name) decltype(&::hwloc_##name) name;
  RANKINE_FUNCTIONS_OF_HWLOC(RANKINE_DECLARE)
#undef RANKINE_DECLARE
};

// nullptr: hwloc 2.4 or a later 2.x is not installed. Thread-safe.
const HwlocFunctions* hwloc_functions();

}  // namespace rankine
