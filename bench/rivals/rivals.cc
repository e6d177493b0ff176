// Measures Rankine and all contenders on the same sizes, in turns, in one run. README.md explains
// the output.
//
//   bazel run //bench/rivals -- --ranks 2 -b 8 -e 64M --json rivals.json
//
// Exit status: 0, 1 a contender computed wrong elements, 2 usage, 3 a file that cannot be written,
// or 124: a contender hangs.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/rivals/batch.h"
#include "bench/rivals/kernels.h"
#include "bench/rivals/protocol.h"
#include "bench/rivals/rival.h"
#include "engine/base/files.h"
#include "engine/base/statistics.h"
#include "engine/base/units.h"
#include "nlohmann/json.hpp"

namespace rankine::rivals {
namespace {

// --- contenders and the printed table ---

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
      std::printf("# %s: %s; %s\n", contender->name.c_str(), contender->version.c_str(),
                  contender->settings.c_str());
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

using MakeRival = std::unique_ptr<Rival> (*)(const Setup&);

// All contenders, in the order of the table's columns. To add a contender, write a file with its
// Rival and a line here.
constexpr MakeRival kThreads[] = {
    make_expert_one_shot, make_expert_ll,     make_expert_pull, make_expert_push,
    make_expert_stream,   make_std_barrier,   make_openmp,      make_inference_shm,
    make_futex_chain,     make_flag_exchange, make_rankine,
};
constexpr MakeRival kProcesses[] = {
    make_expert_one_shot,   make_expert_ll,      make_inference_shm,
    make_vllm_shm,          make_gloo,           make_ucc,
    make_rankine_processes, make_rankine_shared,
};
constexpr MakeRival kOnlyIfNamed[] = {make_rankine_staged, make_rankine_plain, make_copy};

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

// Forks the contenders that run as processes, and waits until they are ready; if setup.processes is
// false, those that `only` names and that threads do not have. Call it before this process has
// other threads. `only`: names; empty: all but rankine_staged, rankine_plain and copy.
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

// Adds all other contenders: rivals on the stage's threads if ranks are threads, and MPI jobs.
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
  for (const std::string& name : mpi_names(start_mpi)) {
    if (!wanted(only, name)) continue;
    auto job = std::make_unique<MpiContender>(name, start_mpi, setup);
    jobs.push_back(job.get());
    contenders.push_back(std::move(job));
  }
  for (MpiContender* job : jobs) job->await();
}

// "expert_one_shot, ..., oneccl": all contenders for threads or processes.
std::string all_names(const Setup& setup) {
  std::string names;
  const auto add = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
  for (const MakeRival make : rivals_of(setup)) add(make(setup)->name);
  for (const std::string& name : mpi_names(find_start_mpi())) add(name);
  return names;
}

struct Options {
  int ranks = 2;
  std::string first = "8";
  std::string last = "64M";
  int factor = 2;
  std::string protocol = "both";
  std::vector<std::string> only;
  std::string json;
  double batch_ms = 2;
  bool processes = false;
  Plan plan;
};

// --- the machine ---

// Measures each level of the caches at one core's share, and a size that only the memory can hold.
std::vector<LevelRates> measure_levels(LimitProbe& limits, const nlohmann::json& machine,
                                       int cores) {
  const auto share = static_cast<std::size_t>(std::max(1, cores));
  const auto size = [&](const char* key) { return machine.at(key).get<std::size_t>(); };
  std::vector<LevelRates> levels;
  if (size("l1d_bytes") > 0) levels.push_back(limits.measure_level("L1", size("l1d_bytes")));
  if (size("l2_bytes") > 0) levels.push_back(limits.measure_level("L2", size("l2_bytes")));
  if (size("l3_bytes") > 0) levels.push_back(limits.measure_level("L3", size("l3_bytes") / share));
  const std::size_t last = std::max(size("l3_bytes"), size("l2_bytes"));
  const std::size_t beyond = last > 0 ? last : std::size_t{64} << 20;
  levels.push_back(limits.measure_level("DRAM", 8 * beyond / share));
  return levels;
}

// --- the run ---

int fail_usage(const std::string& what) {
  std::cerr << "rivals: " << what << "\n";
  return 2;
}

int fail_file(const Status& status) {
  std::cerr << "rivals: " << status.text() << "\n";
  return 3;
}

int measure(const Options& options) {
  const nlohmann::json machine = machine_json();
  const auto first = parse_size("-b", options.first);
  if (!first.ok()) return fail_usage(first.status().text());
  const auto last = parse_size("-e", options.last);
  if (!last.ok()) return fail_usage(last.status().text());
  if (*first < 1) return fail_usage("-b is '" + options.first + "'; allowed are sizes from 1");
  if (*first > *last)
    return fail_usage("-b is '" + options.first + "'; allowed are sizes up to -e, " + options.last);
  if (*last > (std::size_t{4} << 30))
    return fail_usage("-e is '" + options.last + "'; allowed are sizes up to 4G");

  const Setup setup =
      make_setup(options.ranks, std::max<std::size_t>(*last, 64), options.processes);
  if (setup.cpus.empty())
    return fail_file(
        {Code::system, "the kernel does not report the CPUs that this process may use"});
  std::vector<Protocol> protocols;
  if (options.protocol != "fresh" && !options.plan.in_place) protocols.push_back(Protocol::warm);
  if (options.protocol != "warm") protocols.push_back(Protocol::fresh);
  if (options.plan.in_place && options.plan.collective != Collective::all_reduce)
    return fail_usage("--in-place is given; allowed is --collective all_reduce");
  if (protocols.empty())
    return fail_usage(
        "--in-place is given; allowed is --protocol fresh, because sums of sums overflow");

  const std::string json_path = output_path(options.json);
  if (!json_path.empty()) {  // fail before minutes of measuring
    const Status status = check_replaceable(json_path);
    if (!status.ok()) return fail_file(status);
  }

  Contenders contenders = gather_processes(options.only, setup);
  const auto team = make_team(setup.ranks, setup.cpus);
  InProcess::Stage stage(*team, setup);
  add_other_contenders(options.only, setup, stage, contenders);
  for (const std::string& name : options.only) {
    const bool known = std::any_of(contenders.begin(), contenders.end(),
                                   [&](const auto& one) { return one->name == name; });
    if (!known) return fail_usage("--only has '" + name + "'; allowed are " + all_names(setup));
  }
  LimitProbe limits(*team, setup.cpus.size());
  const std::vector<LevelRates> levels =
      measure_levels(limits, machine, setup.ranks / limits.share());
  print_header(options.plan, setup, contenders, levels);

  nlohmann::json document = {
      {"context", context_json(options.plan, setup, contenders, levels, machine)},
      {"rows", nlohmann::json::array()}};
  bool all_right = true;
  for (std::size_t bytes = *first; bytes <= *last;
       bytes *= static_cast<std::size_t>(options.factor)) {
    Batch batch;
    batch.collective = options.plan.collective;
    batch.bytes = bytes;
    if (shape(batch, setup.ranks, 0).block == 0) {
      std::printf("# %zu B: less than one element per rank\n", bytes);
      continue;
    }
    for (const Protocol protocol : protocols) {
      const Row row = measure_row(contenders, options.plan, bytes, protocol, *team, limits);
      print_row(row, contenders);
      document["rows"].push_back(row_json(row, contenders));
      for (const Cell& cell : row.cells) all_right = all_right && cell.wrong == 0;
    }
  }
  for (const auto& contender : contenders) {
    if (!contender->missing.empty())
      std::printf("# %s: missing: %s\n", contender->name.c_str(), contender->missing.c_str());
  }
  std::printf("# wrong elements: %s\n", all_right ? "none" : "see WRONG above");

  // Again, because a contender may have failed during the run.
  document["context"] = context_json(options.plan, setup, contenders, levels, machine);
  if (!json_path.empty()) {
    const Status status = replace_file(json_path, document.dump(1) + "\n");
    if (!status.ok()) return fail_file(status);
  }
  return all_right ? 0 : 1;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Rankine and its rivals on the same sizes, taking turns in one run.");
  std::string collective = "all_reduce";
  app.add_option("--collective", collective, "the collective; the root is rank 0")
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(kCollectiveNames), std::end(kCollectiveNames))))
      ->capture_default_str();
  app.add_option("--ranks", options.ranks, "ranks; more than cores is allowed")
      ->check(CLI::Range(1, kMaxRanks))
      ->capture_default_str();
  app.add_option("-b,--minbytes", options.first, "first size, bytes per rank, such as 64K")
      ->capture_default_str();
  app.add_option("-e,--maxbytes", options.last, "last size")->capture_default_str();
  app.add_option("-f,--stepfactor", options.factor, "factor from size to size")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app.add_option("-n,--iters", options.plan.calls,
                 "calls in a batch; 0: the number that takes --batch-ms, at least 8")
      ->check(CLI::Range(0, kMaxCalls))
      ->capture_default_str();
  app.add_option("-w,--warmup_iters", options.plan.warmups,
                 "calls before each batch; -1: an eighth of the calls plus four")
      ->capture_default_str();
  app.add_option("--rounds", options.plan.rounds, "batches of each contender per row")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--batch-ms", options.batch_ms, "length of a batch")
      ->check(CLI::Range(0.01, 10000.0))
      ->capture_default_str();
  app.add_option("--protocol", options.protocol,
                 "warm: unchanged inputs; fresh: inputs rewritten before each call, untimed")
      ->check(CLI::IsMember({"warm", "fresh", "both"}))
      ->capture_default_str();
  app.add_flag("--processes", options.processes, "ranks are processes, of every contender");
  app.add_flag("--in-place", options.plan.in_place, "one buffer per rank, fresh only");
  app.add_option("--only", options.only, "contenders, separated by commas")->delimiter(',');
  app.add_option("--json", options.json, "file for the same results as JSON");
  app.footer(
      "Examples:\n"
      "  rivals --ranks 2 -b 8 -e 64M --json n2.json\n"
      "  rivals --collective broadcast -b 1K -e 1M -f 4\n"
      "  rivals --ranks 4 -e 8M            more ranks than cores: waits yield\n"
      "  rivals --processes -e 4M          ranks are processes, as MPI's always are\n"
      "  rivals --only rankine,expert_push --protocol fresh --in-place\n"
      "  rivals --only rankine,rankine_staged,rankine_plain,rankine_processes,copy\n"
      "Exit codes: 0 good, 1 wrong elements, 2 usage, 3 a file that cannot be written,\n"
      "124 a contender hangs.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto* const name =
      std::find(std::begin(kCollectiveNames), std::end(kCollectiveNames), collective);
  options.plan.collective = static_cast<Collective>(name - std::begin(kCollectiveNames));
  options.plan.batch_us = options.batch_ms * 1000;
  return measure(options);
}

}  // namespace
}  // namespace rankine::rivals

int main(int argc, char** argv) { return rankine::rivals::run(argc, argv); }
