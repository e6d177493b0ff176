// Runs the whole catalogue as Google Benchmarks, at full speed and on modelled networks.
//
//   third_party/bazel run -c opt //bench/catalogue -- --benchmark_filter='^all_reduce/ring/'
//
// Names: <collective>/<algorithm>/ranks:<N>/bytes:<M>[/counts:<how>]/network:<name>, or /full_speed
// in place of the network; Google Benchmark adds its settings (/iterations:1/manual_time). Sizes
// are nccl-tests' (engine/cli/question.h); the calls are those of `rankine perf --algo all`, out of
// place.
//
//   full_speed  real time per call: back to back, the slowest rank's
//   network     the model's time of one call, exactly as `rankine simulate` prints it; wall_us: the
//               real time of the call. One iteration, because others would be equal
//
// Counters: algbw and busbw (GB/s), eta (busbw over the network's peak). Every run checks one
// call's data. --help lists the flags for other ranks, sizes, networks and counts, and for the cost
// of planning.

#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/catalogue/cases.h"
#include "engine/cli/arguments.h"
#include "engine/cli/perf.h"
#include "engine/cli/text.h"

namespace rankine {
namespace {

struct Flags {
  CatalogueGrid grid;
  bool planning = false;
};

// The workbench of the running case; Google Benchmark calls a benchmark several times in a row.
Result<tools::Workbench*> workbench_of(const CatalogueCase& one) {
  static const CatalogueCase* whose = nullptr;
  static std::unique_ptr<tools::Workbench> bench;
  if (whose == &one) return bench.get();
  whose = nullptr;
  bench.reset();
  tools::Workbench::Options options = one.cases->bench;
  options.buffers = tools::buffer_bytes(one.asked.call, one.cases->ranks);
  auto made = tools::Workbench::create(options);
  if (!made.ok()) return made.status();
  bench = std::move(*made);
  whose = &one;
  return bench.get();
}

void run(benchmark::State& state, const CatalogueCase& one) {
  const auto bench = workbench_of(one);
  if (!bench.ok()) return state.SkipWithError(bench.status().text().c_str());
  tools::PerfOptions options;
  options.measure = {.warmups = 1, .batches = 1, .in_place = false};
  while (state.KeepRunningBatch(state.max_iterations)) {
    options.measure.calls = static_cast<int>(state.max_iterations);
    const auto row = tools::measure_row(**bench, one.asked, *one.cases, options);
    if (!row.ok()) return state.SkipWithError(row.status().text().c_str());
    const tools::Series& series = row->measured.out_of_place;
    if (series.wrong != 0) return state.SkipWithError("wrong data");
    const double seconds = tools::seconds_of(series);
    state.SetIterationTime(seconds * static_cast<double>(state.max_iterations));
    state.counters["algbw"] = tools::algbw(*row, series);
    state.counters["busbw"] = tools::busbw(*row, series);
    if (const auto eta = tools::eta(*row, series)) state.counters["eta"] = *eta;
    if (series.model_seconds) state.counters["wall_us"] = series.seconds.median * 1e6;
    state.SetLabel(series.transport);
  }
}

template <class T, class ParseOne>
auto list_of(ParseOne parse_one) {
  return [parse_one](std::string_view argument, std::string_view text) -> Result<std::vector<T>> {
    std::vector<T> values;
    for (const std::string_view part : tools::split_list(text)) {
      const auto value = parse_one(argument, part);
      if (!value.ok()) return value.status();
      values.push_back(*value);
    }
    if (values.empty()) return parse_one(argument, text).status();
    return values;
  };
}

void describe(CLI::App& app, Flags& flags) {
  const tools::Command command(app);
  tools::add_argument(
      command, "--ranks", flags.grid.ranks,
      [](std::string_view argument, std::string_view text) {
        return tools::parse_whole_list(argument, text, 1, 1 << 14);
      },
      "LIST", "2,8 or 2..16 (usable cores at full speed, 8 on networks)");
  tools::add_argument(command, "--bytes", flags.grid.bytes, list_of<std::size_t>(parse_size),
                      "LIST", "sizes: 8,64K,4M (64K)");
  tools::add_argument(command, "--networks", flags.grid.networks, tools::read_call_networks, "LIST",
                      "as perf --network takes them: scale_up,scale_out,sync=rounds (scale_out)");
  tools::add_argument(command, "--counts", flags.grid.counts, read_counts_kinds, "LIST",
                      "for collectives with counts: even, rising (block b has a share of b + 1), "
                      "one (the first block has all) (even,rising)");
  command.add_flag("--planning", flags.planning,
                   "compile/... and predict/... in place of calls: the cost of planning");
  command.footer(
      "And Google Benchmark's own flags: --benchmark_filter=REGEX, --benchmark_list_tests,\n"
      "--benchmark_format=json, --benchmark_min_time=SECONDS (0.01) ...\n"
      "Examples:\n"
      "  catalogue --benchmark_filter='^all_reduce/.*network:' --networks scale_up,torus\n"
      "  catalogue --ranks 2,4,8 --bytes 4K,1M --benchmark_filter=full_speed\n"
      "  catalogue --planning --ranks 4096 --bytes 64M "
      "--benchmark_filter=predict/all_reduce/ring/");
}

// Reads the flags. 2: wrong flags; 0: --help was printed; -1: go on.
int read(int argc, char** argv, Flags& flags) {
  CLI::App app("The whole catalogue, at full speed and on modelled networks.");
  describe(app, flags);
  try {
    flags.grid.networks = *tools::read_call_networks("--networks", "scale_out");
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const tools::UsageError& error) {
    std::fprintf(stderr, "catalogue: %s\n", error.what());
    return 2;
  }
  return -1;
}

int main_of(int argc, char** argv) {
  // Google Benchmark's --help comes first; our flags follow.
  std::string min_time = "--benchmark_min_time=0.01";  // a later one of the user overrides it
  std::vector<char*> arguments = {argv[0], min_time.data()};
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  arguments.push_back(nullptr);
  int count = argc + 1;
  benchmark::Initialize(&count, arguments.data(), [] {
    CLI::App app("The whole catalogue, at full speed and on modelled networks.", "catalogue");
    Flags flags;
    describe(app, flags);
    std::printf("%s", app.help().c_str());
  });
  Flags flags;
  if (const int exit = read(count, arguments.data(), flags); exit >= 0) return exit;
  std::vector<std::string> notes;
  std::vector<std::unique_ptr<const CatalogueCase>> cases;
  if (flags.planning) {
    register_planning(flags.grid.ranks, flags.grid.bytes);
  } else {
    cases = catalogue_cases(flags.grid, notes);
  }
  for (const std::string& note : notes) std::fprintf(stderr, "catalogue: %s\n", note.c_str());
  for (const auto& one : cases) {
    auto* const made = benchmark::RegisterBenchmark(
        one->name.c_str(), [&one = *one](benchmark::State& state) { run(state, one); });
    made->UseManualTime()->Unit(benchmark::kMicrosecond);
    if (one->cases->on != nullptr) made->Iterations(1);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace rankine

int main(int argc, char** argv) { return rankine::main_of(argc, argv); }
