// This header gathers the contenders of a run and prints the run's table: a header with contenders
// and rates of the machine, and a line per row.
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

// Forks the contenders that run as processes, and waits until they are ready; if setup.processes is
// false, those that `only` names and that threads do not have. Call it before this process has
// other threads. `only`: names; empty: all but rankine_staged, rankine_plain and copy.
Contenders gather_processes(const std::vector<std::string>& only, const Setup& setup);

// Adds all other contenders: rivals on the stage's threads if ranks are threads, and MPI jobs.
void add_other_contenders(const std::vector<std::string>& only, const Setup& setup,
                          InProcess::Stage& stage, Contenders& contenders);

// "expert_one_shot, ..., mpich": all contenders for threads or processes.
std::string all_names(const Setup& setup);

}  // namespace rankine::rivals
