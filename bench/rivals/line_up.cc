#include "bench/rivals/line_up.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/rivals/batch.h"
#include "bench/rivals/kernels.h"
#include "bench/rivals/protocol.h"
#include "bench/rivals/rival.h"
#include "engine/base/statistics.h"
#include "engine/base/units.h"

namespace rankine::rivals {
namespace {

constexpr int kColumn = 15;

std::string significant(double value) {
  char text[32];
  const int digits = value < 10 ? 3 : value < 100 ? 1 : 0;
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::string padded(const std::string& text) {
  // The sign takes two bytes and one column.
  const int extra = text.find("\u00b1") == std::string::npos ? 0 : 1;
  char cell[64];
  std::snprintf(cell, sizeof(cell), " %*s", kColumn + extra, text.c_str());
  return cell;
}

std::string cell_text(const Cell& cell, const Contender& contender) {
  if (!contender.missing.empty()) return "missing";
  if (cell.us.empty()) return "-";
  if (cell.wrong > 0) return "WRONG";
  char text[48];
  std::snprintf(text, sizeof(text), "%s\u00b1%.0f%%", significant(median(cell.us)).c_str(),
                100 * relative_spread(cell.us));
  return text;
}

}  // namespace

void print_header(const Plan& plan, const Setup& setup, const Contenders& contenders,
                  const std::vector<LevelRates>& levels) {
  std::printf("# %s f32 sum %s, %d %s, cores", name_of(plan.collective).data(),
              plan.in_place ? "in place" : "out of place", setup.ranks,
              setup.processes ? "processes" : "ranks");
  for (const int cpu : setup.cpus) std::printf(" %d", cpu);
  std::printf("%s; loops: %s\n", setup.crowded ? " (crowded)" : "", kernels().name);
  std::printf(
      "# us per call: median of %d batches, +- half the interquartile range; a pair of stamps adds "
      "%.0f ns to fresh\n",
      plan.rounds, stamp_cost_ns());
  for (const auto& contender : contenders) {
    if (!contender->missing.empty()) {
      std::printf("# %s: missing: %s\n", contender->name.c_str(), contender->missing.c_str());
    } else if (!contender->version.empty()) {
      std::printf("# %s: %s\n", contender->name.c_str(), contender->version.c_str());
    }
  }
  std::printf("# GB/s per core, all at once: copy, add, read, read of another core's data\n");
  for (const LevelRates& level : levels) {
    std::printf("#   %-4s %10s %7.1f %7.1f %7.1f %7.1f\n", level.level.c_str(),
                format_bytes(level.bytes).c_str(), level.copy, level.add, level.read,
                level.cross_read);
  }
  std::printf("# size(B) protocol ping-pong(ns)");
  for (const auto& contender : contenders) std::printf("%s", padded(contender->name).c_str());
  std::printf("%s", padded("limit").c_str());
  for (const Comparison& comparison : kComparisons)
    std::printf("%s", padded(comparison.title).c_str());
  std::printf("\n");
  std::fflush(stdout);
}

void print_row(const Row& row, const Contenders& contenders) {
  std::printf("%9zu %8s %6.0f %6.0f%s", row.bytes,
              kProtocolNames[static_cast<int>(row.protocol)].data(), row.ping_pong_ns.front(),
              row.ping_pong_ns.back(), row.steady() ? " " : "~");
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    std::printf("%s", padded(cell_text(row.cells[i], *contenders[i])).c_str());
  }
  std::printf("%s", padded(significant(row.limit().us)).c_str());
  for (const Comparison& comparison : kComparisons) {
    const auto compared = compare(comparison, row, contenders);
    char text[16] = "-";
    if (compared) std::snprintf(text, sizeof(text), "%.2f", compared->ratio);
    std::printf("%s", padded(text).c_str());
  }
  if (row.repeats > 0)
    std::printf("  # repeated %d x%s", row.repeats, row.steady() ? "" : ", machine unsteady");
  std::printf("\n");
  std::fflush(stdout);
}

namespace {

using MakeRival = std::unique_ptr<Rival> (*)(const Setup&);

// All contenders, in the order of the table's columns. To add a contender, write a file with its
// Rival and a line here.
constexpr MakeRival kThreads[] = {
    make_expert_one_shot, make_expert_pull, make_expert_push,   make_expert_stream,
    make_std_barrier,     make_openmp,      make_inference_shm, make_futex_chain,
    make_flag_exchange,   make_rankine,
};
constexpr MakeRival kProcesses[] = {
    make_expert_one_shot,   make_inference_shm,  make_vllm_shm, make_gloo, make_ucc,
    make_rankine_processes, make_rankine_shared,
};
constexpr MakeRival kOnlyIfNamed[] = {make_rankine_staged, make_rankine_plain, make_copy};
constexpr const char* kMpiJobs[] = {"openmpi_ucx", "openmpi_sm",
                                    "mpich"};  // names that start_mpi knows

// In the order of the table's columns, of all ranks as threads or as processes.
std::vector<MakeRival> rivals_of(const Setup& setup) {
  if (setup.processes) return {std::begin(kProcesses), std::end(kProcesses)};
  std::vector<MakeRival> all(std::begin(kThreads), std::end(kThreads));
  all.insert(all.end(), std::begin(kOnlyIfNamed), std::end(kOnlyIfNamed));
  return all;
}

bool wanted(const std::vector<std::string>& only, const std::string& name) {
  return only.empty() || std::find(only.begin(), only.end(), name) != only.end();
}

}  // namespace

Contenders gather_processes(const std::vector<std::string>& only, const Setup& setup) {
  Contenders contenders;
  std::vector<ProcessContender*> forked;
  Setup apart = setup;
  apart.processes = true;
  for (const MakeRival make : kProcesses) {
    // Beside threads only by name, and not if threads have a contender of that name.
    if (!setup.processes &&
        std::find(std::begin(kThreads), std::end(kThreads), make) != std::end(kThreads))
      continue;
    if (!setup.processes && only.empty()) break;
    auto rival = make(apart);
    if (!wanted(only, rival->name)) continue;
    auto contender = std::make_unique<ProcessContender>(std::move(rival), apart);
    forked.push_back(contender.get());
    contenders.push_back(std::move(contender));
  }
  for (ProcessContender* contender : forked) contender->await();
  return contenders;
}

void add_other_contenders(const std::vector<std::string>& only, const Setup& setup,
                          InProcess::Stage& stage, Contenders& contenders) {
  for (const MakeRival make : rivals_of(setup)) {
    const bool named =
        std::find(std::begin(kOnlyIfNamed), std::end(kOnlyIfNamed), make) != std::end(kOnlyIfNamed);
    if (setup.processes || (named && only.empty())) continue;
    auto rival = make(setup);
    if (wanted(only, rival->name))
      contenders.push_back(std::make_unique<InProcess>(std::move(rival), stage));
  }
  // Starts all jobs before it waits, so that they compile at the same time in the first run.
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
