// Who takes part: everyone, or those that were asked for, in the order of the table's columns.
#pragma once

#include <string>
#include <vector>

#include "bench/rivals/document.h"
#include "bench/rivals/protocol.h"
#include "bench/rivals/rival.h"

namespace rankine::rivals {

// Contenders whose ranks are processes that this one forks, ready; none where setup.processes is
// false. To be called before this process has other threads. `only`: names; empty: all.
Contenders gather_processes(const std::vector<std::string>& only, const Setup& setup);

// Adds all others: rivals on the stage's threads where ranks are threads, and MPI jobs.
void gather_others(const std::vector<std::string>& only, const Setup& setup,
                   InProcess::Stage& stage, Contenders& contenders);

// "expert_one_shot, ..., mpich": all that there are for such ranks.
std::string all_names(const Setup& setup);

}  // namespace rankine::rivals
