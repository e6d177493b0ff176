#include "bench/rivals/line_up.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include "bench/rivals/expert.h"
#include "bench/rivals/gloo_rival.h"
#include "bench/rivals/mpi_contender.h"
#include "bench/rivals/others.h"
#include "bench/rivals/process_contender.h"
#include "bench/rivals/rankine_rival.h"
#include "bench/rivals/servers.h"
#include "bench/rivals/ucc_rival.h"

namespace rankine::rivals {
namespace {

using MakeRival = std::unique_ptr<Rival> (*)(const Setup&);

// Everyone who takes part, in the order of the table's columns. A contender that ranks of this
// program play is one more file with its Rival and one more line here.
constexpr MakeRival kThreads[] = {
    make_expert_one_shot, make_expert_pull, make_expert_push,   make_expert_stream,
    make_std_barrier,     make_openmp,      make_inference_shm, make_futex_chain,
    make_flag_exchange,   make_rankine,
};
constexpr MakeRival kProcesses[] = {
    make_expert_one_shot,   make_inference_shm,  make_vllm_shm, make_gloo, make_ucc,
    make_rankine_processes, make_rankine_shared,
};
constexpr const char* kMpiJobs[] = {"openmpi_ucx", "openmpi_sm",
                                    "mpich"};  // names that start_mpi knows

std::span<const MakeRival> rivals_of(const Setup& setup) {
  return setup.processes ? std::span<const MakeRival>(kProcesses) : kThreads;
}

bool wanted(const std::vector<std::string>& only, const std::string& name) {
  return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
}

}  // namespace

Contenders gather_processes(const std::vector<std::string>& only, const Setup& setup) {
  Contenders contenders;
  if (!setup.processes) return contenders;
  std::vector<ProcessContender*> forked;
  for (const MakeRival make : kProcesses) {
    auto rival = make(setup);
    if (!wanted(only, rival->name)) continue;
    auto contender = std::make_unique<ProcessContender>(std::move(rival), setup);
    forked.push_back(contender.get());
    contenders.push_back(std::move(contender));
  }
  for (ProcessContender* contender : forked) contender->await();
  return contenders;
}

void gather_others(const std::vector<std::string>& only, const Setup& setup,
                   InProcess::Stage& stage, Contenders& contenders) {
  for (const MakeRival make : kThreads) {
    if (setup.processes) break;
    auto rival = make(setup);
    if (wanted(only, rival->name))
      contenders.push_back(std::make_unique<InProcess>(std::move(rival), stage));
  }
  // Started first, they compile, if they must, at the same time.
  std::vector<MpiContender*> jobs;
  const std::string start_mpi = find_start_mpi();
  for (const char* name : kMpiJobs) {
    if (!wanted(only, name)) continue;
    auto job = std::make_unique<MpiContender>(name, start_mpi, setup);
    jobs.push_back(job.get());
    contenders.push_back(std::move(job));
  }
  for (MpiContender* job : jobs) job->await();
}

std::string all_names(const Setup& setup) {
  std::string names;
  for (const MakeRival make : rivals_of(setup)) names += make(setup)->name + ", ";
  for (const char* name : kMpiJobs)
    names += name + std::string(name == *std::rbegin(kMpiJobs) ? "" : ", ");
  return names;
}

}  // namespace rankine::rivals
