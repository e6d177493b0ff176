// What rivals prints while it measures: a header that says who takes part and what the machine can
// do, and a line per row.
#pragma once

#include <string>
#include <vector>

#include "bench/rivals/document.h"
#include "bench/rivals/protocol.h"
#include "bench/rivals/rival.h"

namespace rankine::rivals {

void print_header(const Plan& plan, const Setup& setup, const Contenders& contenders,
                  const std::vector<LevelRates>& levels);
void print_row(const Row& row, const Contenders& contenders);

// Who takes part: everyone, or those that were asked for, in the order of the table's columns.

// Contenders whose ranks are processes that this one forks, ready; none where setup.processes is
// false. To be called before this process has other threads. `only`: names; empty: all.
Contenders gather_processes(const std::vector<std::string>& only, const Setup& setup);

// Adds all others: rivals on the stage's threads where ranks are threads, and MPI jobs.
void gather_others(const std::vector<std::string>& only, const Setup& setup,
                   InProcess::Stage& stage, Contenders& contenders);

// "expert_one_shot, ..., mpich": all that there are for such ranks.
std::string all_names(const Setup& setup);

}  // namespace rankine::rivals
