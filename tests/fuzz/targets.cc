#include "tests/fuzz/targets.h"

#include "tests/fuzz/target.h"

namespace rankine::fuzz {
namespace {

constexpr Target kTargets[] = {
    {"arguments", arguments},
    {"bandwidth", bandwidth},
    {"batch", batch},
    {"cgroup_files", cgroup_files},
    {"command_line", command_line},
    {"cpu_list", cpu_list},
    {"cpu_quota", cpu_quota},
    {"decimal", decimal},
    {"dims", dims},
    {"duration", duration},
    {"environment", environment},
    {"expression", expression},
    {"formula", formula},
    {"names", names},
    {"network", network},
    {"parameter_sets", parameter_sets},
    {"placement", placement},
    {"runs", runs},
    {"seconds", seconds},
    {"size", size},
    {"skips", skips},
    {"synthetic_topology", synthetic_topology},
    {"tuning", tuning},
    {"whole_list", whole_list},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

}  // namespace rankine::fuzz
