// Rankine and everybody else on the same sizes, taking turns in one run. README.md says how to read
// what it prints.
//
//   bazel run //bench/rivals -- --ranks 2 -b 8 -e 64M --json $PWD/rivals.json
//
// Exit status: 0, 1 a contender computed wrong elements, 2 usage, 124 a contender hangs.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/rivals/expert.h"
#include "bench/rivals/mpi_contender.h"
#include "bench/rivals/others.h"
#include "bench/rivals/protocol.h"
#include "bench/rivals/rankine_rival.h"
#include "bench/rivals/sizes.h"
#include "nlohmann/json.hpp"

namespace rankine::rivals {
namespace {

// Everyone who takes part, in the order of the table's columns. A contender in this process is one
// more file with its Rival and one more line here.
constexpr std::unique_ptr<Rival> (*kInProcess[])(const Setup&) = {
    make_expert_one_shot, make_expert_pull, make_expert_push,   make_expert_stream,
    make_std_barrier,     make_openmp,      make_inference_shm, make_rankine,
};
constexpr const char* kMpi[] = {"openmpi_ucx", "openmpi_sm",
                                "mpich"};  // names that start_mpi knows

struct Options {
  int ranks = 2;
  std::string first = "8";
  std::string last = "64M";
  int factor = 2;
  std::string protocol = "both";
  std::vector<std::string> only;
  std::string json;
  double batch_ms = 2;
  Plan plan;
};

using Contenders = std::vector<std::unique_ptr<Contender>>;

const char* family_name(Family family) {
  switch (family) {
    case Family::kRankine:
      return "rankine";
    case Family::kExpert:
      return "expert";
    case Family::kMpi:
      return "mpi";
    case Family::kOther:
      return "other";
  }
  return "";
}

// Under `bazel run` beside the program, else in the source tree.
std::string find_start_mpi() {
  namespace fs = std::filesystem;
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  for (const std::string& folder : {self + ".runfiles/rankine", std::string(".")}) {
    const std::string path = folder + "/bench/rivals/start_mpi";
    if (fs::exists(path)) return path;
  }
  return "start_mpi";
}

bool wanted(const Options& options, const std::string& name) {
  return options.only.empty() ||
         std::find(options.only.begin(), options.only.end(), name) != options.only.end();
}

// Jobs are started first and compile, if they must, at the same time.
Contenders gather(const Options& options, const Setup& setup, InProcess::Stage& stage) {
  Contenders contenders;
  for (const auto make : kInProcess) {
    auto rival = make(setup);
    if (wanted(options, rival->name))
      contenders.push_back(std::make_unique<InProcess>(std::move(rival), stage));
  }
  std::vector<MpiContender*> jobs;
  const std::string start_mpi = find_start_mpi();
  for (const char* name : kMpi) {
    if (!wanted(options, name)) continue;
    auto job = std::make_unique<MpiContender>(name, start_mpi, setup);
    jobs.push_back(job.get());
    contenders.push_back(std::move(job));
  }
  for (MpiContender* job : jobs) job->await();
  return contenders;
}

// --- the table ---

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
                100 * spread(cell.us));
  return text;
}

struct Comparison {
  const char* title;
  Family ours;
  Family theirs;
};
constexpr Comparison kComparisons[] = {
    {"rankine/mpi", Family::kRankine, Family::kMpi},
    {"rankine/expert", Family::kRankine, Family::kExpert},
    {"expert/mpi", Family::kExpert, Family::kMpi},
};

std::optional<double> ratio(const Comparison& comparison, const Row& row,
                            const Contenders& contenders) {
  const auto ours = row.best(comparison.ours, contenders);
  const auto theirs = row.best(comparison.theirs, contenders);
  if (!ours || !theirs) return std::nullopt;
  return row.ratio(*ours, *theirs);
}

void print_header(const Options& options, const Setup& setup, const Contenders& contenders) {
  std::printf("# all_reduce f32 sum %s, %d ranks, cores",
              options.plan.in_place ? "in place" : "out of place", setup.ranks);
  for (const int cpu : setup.cpus) std::printf(" %d", cpu);
  std::printf("%s; loops: %s\n", setup.crowded ? " (crowded)" : "", kernels().name);
  std::printf(
      "# us per call: median of %d batches, +- half the interquartile range; a pair of stamps adds "
      "%.0f ns to fresh\n",
      options.plan.rounds, stamp_cost_ns());
  for (const auto& contender : contenders) {
    if (!contender->missing.empty()) {
      std::printf("# %s: missing: %s\n", contender->name.c_str(), contender->missing.c_str());
    } else if (!contender->version.empty()) {
      std::printf("# %s: %s\n", contender->name.c_str(), contender->version.c_str());
    }
  }
  std::printf("# size(B) protocol ping-pong(ns)");
  for (const auto& contender : contenders) std::printf("%s", padded(contender->name).c_str());
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
  for (const Comparison& comparison : kComparisons) {
    const auto value = ratio(comparison, row, contenders);
    char text[16] = "-";
    if (value) std::snprintf(text, sizeof(text), "%.2f", *value);
    std::printf("%s", padded(text).c_str());
  }
  if (row.repeats > 0)
    std::printf("  # repeated %d x%s", row.repeats, row.steady() ? "" : ", machine unsteady");
  std::printf("\n");
  std::fflush(stdout);
}

// --- JSON ---

nlohmann::json to_json(const Row& row, const Contenders& contenders) {
  nlohmann::json json = {{"size", row.bytes},
                         {"protocol", name_of(row.protocol)},
                         {"ping_pong_ns", row.ping_pong_ns},
                         {"repeats", row.repeats},
                         {"steady", row.steady()}};
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const Cell& cell = row.cells[i];
    if (cell.us.empty()) continue;
    json["contenders"][contenders[i]->name] = {{"median_us", median(cell.us)},
                                               {"min_us", quantile(cell.us, 0)},
                                               {"p99_us", percentile_99(cell.us)},
                                               {"max_us", quantile(cell.us, 1)},
                                               {"spread", spread(cell.us)},
                                               {"iterations", cell.calls},
                                               {"wrong", cell.wrong},
                                               {"batches_us", cell.us}};
  }
  for (const Comparison& comparison : kComparisons) {
    if (const auto value = ratio(comparison, row, contenders))
      json["ratios"][comparison.title] = *value;
  }
  return json;
}

nlohmann::json context(const Options& options, const Setup& setup, const Contenders& contenders) {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  std::string cpu;
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; cpu.empty() && std::getline(cpuinfo, line);) {
    if (line.rfind("model name", 0) == 0) cpu = line.substr(line.find(':') + 2);
  }
  nlohmann::json json = {{"collective", "all_reduce"},
                         {"type", "float"},
                         {"redop", "sum"},
                         {"in_place", options.plan.in_place},
                         {"ranks", setup.ranks},
                         {"cpus", setup.cpus},
                         {"crowded", setup.crowded},
                         {"rounds", options.plan.rounds},
                         {"host", host},
                         {"cpu", cpu},
                         {"kernels", kernels().name},
                         {"stamp_ns", stamp_cost_ns()},
                         {"time", static_cast<long long>(time(nullptr))}};
  for (const auto& contender : contenders) {
    json["contenders"][contender->name] = {{"family", family_name(contender->family)},
                                           {"version", contender->version},
                                           {"missing", contender->missing}};
  }
  return json;
}

// --- the run ---

int fail_usage(const std::string& what) {
  std::cerr << "rivals: " << what << "\n";
  return 2;
}

int measure(const Options& options) {
  const auto first = parse_size(options.first);
  const auto last = parse_size(options.last);
  if (!first || !last) return fail_usage("-b and -e want sizes such as 8, 64K, 32M");
  if (*first > *last) return fail_usage("-b is greater than -e");
  if (*last > (std::size_t{4} << 30)) return fail_usage("-e is at most 4G");

  Setup setup;
  setup.ranks = options.ranks;
  setup.max_bytes = std::max<std::size_t>(*last, 64);
  setup.cpus = allowed_cpus();
  setup.crowded = static_cast<std::size_t>(setup.ranks) > setup.cpus.size();
  std::vector<Protocol> protocols;
  if (options.protocol != "fresh" && !options.plan.in_place) protocols.push_back(Protocol::kWarm);
  if (options.protocol != "warm") protocols.push_back(Protocol::kFresh);
  if (protocols.empty())
    return fail_usage("--in-place needs --protocol fresh: sums of sums overflow");

  std::string json_path = options.json;
  if (const char* folder = std::getenv("BUILD_WORKING_DIRECTORY");
      folder != nullptr && !json_path.empty()) {
    json_path =
        (std::filesystem::path(folder) / json_path).string();  // `bazel run` changes the folder
  }

  Crew crew(setup.ranks, setup.cpus);
  InProcess::Stage stage(crew, setup.crowded, setup.max_bytes);
  Contenders contenders = gather(options, setup, stage);
  if (contenders.empty()) return fail_usage("--only names no contender");
  print_header(options, setup, contenders);

  nlohmann::json rows = nlohmann::json::array();
  bool all_right = true;
  for (const std::size_t bytes :
       size_range(*first, *last, static_cast<std::size_t>(options.factor))) {
    for (const Protocol protocol : protocols) {
      const Row row = measure_row(contenders, options.plan, bytes, protocol, crew);
      print_row(row, contenders);
      rows.push_back(to_json(row, contenders));
      for (const Cell& cell : row.cells) all_right = all_right && cell.wrong == 0;
    }
  }
  for (const auto& contender : contenders) {
    if (!contender->missing.empty())
      std::printf("# %s: missing: %s\n", contender->name.c_str(), contender->missing.c_str());
  }
  std::printf("# wrong elements: %s\n", all_right ? "none" : "see WRONG above");

  if (!json_path.empty()) {
    std::ofstream file(json_path);
    file << nlohmann::json{{"context", context(options, setup, contenders)}, {"rows", rows}}.dump(1)
         << "\n";
    if (!file) return fail_usage("cannot write " + json_path);
  }
  return all_right ? 0 : 1;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Rankine and its rivals on the same sizes, taking turns in one run.");
  app.add_option("--ranks", options.ranks, "ranks; more than cores is allowed")
      ->check(CLI::Range(1, kMaxRanks));
  app.add_option("-b,--minbytes", options.first, "first size, bytes per rank, such as 64K")
      ->capture_default_str();
  app.add_option("-e,--maxbytes", options.last, "last size")->capture_default_str();
  app.add_option("-f,--stepfactor", options.factor, "from size to size")
      ->check(CLI::Range(2, 1 << 20));
  app.add_option("-n,--iters", options.plan.calls,
                 "calls in a batch; 0: as many as take --batch-ms")
      ->check(CLI::Range(0, kMaxCalls));
  app.add_option("-w,--warmup_iters", options.plan.warmups,
                 "calls before each batch; -1: an eighth of the calls, and two");
  app.add_option("--rounds", options.plan.rounds, "batches of each contender per row")
      ->check(CLI::Range(1, 1000));
  app.add_option("--batch-ms", options.batch_ms, "length of a batch")
      ->check(CLI::Range(0.01, 10000.0));
  app.add_option("--protocol", options.protocol, "warm, fresh or both")
      ->check(CLI::IsMember({"warm", "fresh", "both"}));
  app.add_flag("--in-place", options.plan.in_place, "one buffer per rank, fresh only");
  app.add_option("--only", options.only, "these contenders, separated by commas")->delimiter(',');
  app.add_option("--json", options.json, "write everything there, too");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  options.plan.batch_us = options.batch_ms * 1000;
  return measure(options);
}

}  // namespace
}  // namespace rankine::rivals

int main(int argc, char** argv) { return rankine::rivals::run(argc, argv); }
