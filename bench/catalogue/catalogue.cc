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
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/combine.h"
#include "engine/cli/arguments.h"
#include "engine/cli/perf.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/compile/compile.h"
#include "engine/network/simulate.h"
#include "numa/cpus.h"

namespace rankine {
namespace {

// Divides a call's elements among the collective's natural blocks.
enum class CountsKind : unsigned char {
  even,
  rising,  // block b gets a share of b + 1: all differ
  one,     // the first block gets all elements
};

struct CatalogueGrid {
  std::vector<int> ranks{};  // empty: usable cores at full speed, 8 on networks
  std::vector<std::size_t> bytes = {std::size_t{64} << 10};
  std::vector<CountsKind> counts = {CountsKind::even, CountsKind::rising};
  std::vector<tools::NamedNetwork> networks{};  // beside full speed
};

struct CatalogueCase {
  // all_reduce/ring/ranks:8/bytes:65536/network:scale_out
  std::string name;
  tools::PerfCase asked;
  std::shared_ptr<const tools::PerfCases> cases;  // owns the memory that the options refer to
  std::vector<std::size_t> counts{};              // for a call with counts, which refers to them
};

constexpr std::string_view kNames[] = {"even", "rising", "one"};
std::string_view name_of(CountsKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::vector<std::size_t> deal(CountsKind kind, std::size_t elements, std::size_t blocks) {
  std::vector<std::size_t> counts(blocks, 0);
  if (kind == CountsKind::rising) {
    const std::size_t shares = blocks * (blocks + 1) / 2;
    for (std::size_t b = 0; b < blocks; ++b) counts[b] = elements * (b + 1) / shares;
  }
  const std::size_t dealt = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  counts[kind == CountsKind::one ? 0 : blocks - 1] += elements - dealt;
  return counts;
}

std::unique_ptr<const CatalogueCase> make_case(const tools::PerfCase& asked, CountsKind kind,
                                               std::shared_ptr<const tools::PerfCases> cases) {
  auto made = std::make_unique<CatalogueCase>();
  made->asked = asked;
  const Call& call = asked.call;
  made->name = fmt::format("{}/{}/ranks:{}/bytes:{}", name_of(call.collective),
                           call.options.algorithm, cases->ranks, asked.bytes);
  if (kind != CountsKind::even) {
    const auto blocks = static_cast<std::size_t>(natural_blocks(call.collective, cases->ranks));
    made->counts = deal(kind, call.count * blocks, blocks);
    made->asked.call.counts = made->counts;
    made->name += fmt::format("/counts:{}", name_of(kind));
  }
  made->name += cases->network.empty() ? "/full_speed" : "/network:" + cases->network;
  made->cases = std::move(cases);
  return made;
}

Result<std::vector<CountsKind>> read_counts_kinds(std::string_view argument,
                                                  std::string_view text) {
  std::vector<CountsKind> kinds;
  for (const std::string_view part : tools::split_list(text)) {
    const auto* const found = std::find(std::begin(kNames), std::end(kNames), part);
    if (found == std::end(kNames)) return tools::unknown_name(argument, part, kNames);
    kinds.push_back(static_cast<CountsKind>(found - std::begin(kNames)));
  }
  if (kinds.empty()) return tools::unknown_name(argument, text, kNames);
  return kinds;
}

// Every algorithm with all values of the grid that it takes; counts other than even only for
// collectives with more than one block. Calls refer to memory of their case, so cases must not
// move. Ranks, sizes and networks without any case are left out, with the reason in `notes`.
std::vector<std::unique_ptr<const CatalogueCase>> catalogue_cases(const CatalogueGrid& grid,
                                                                  std::vector<std::string>& notes) {
  const int cores = cpu_budget().cores;
  std::vector<const tools::NamedNetwork*> networks = {nullptr};
  for (const tools::NamedNetwork& one : grid.networks) networks.push_back(&one);
  std::vector<std::unique_ptr<const CatalogueCase>> all;
  const auto add = [&](Collective collective, int ranks, std::size_t bytes,
                       const tools::NamedNetwork* network) {
    tools::PerfOptions options;
    options.algorithm.collective = collective;
    options.algorithm.algorithms = "all";
    if (ranks > 0) {
      const std::string text = std::to_string(ranks);
      options.algorithm.given.push_back({find_parameter("ranks"), text, "--ranks", text});
    }
    options.min_bytes = options.max_bytes = bytes;
    auto found = tools::cases_of(options, cores, network);
    if (!found.ok()) {
      notes.push_back(fmt::format("{}: {}", name_of(collective), found.status().text()));
      return;
    }
    const auto cases = std::make_shared<const tools::PerfCases>(std::move(*found));
    for (const tools::PerfCase& one : cases->rows) {
      for (const CountsKind kind : grid.counts) {
        const bool dealt = natural_blocks(collective, cases->ranks) > 1;
        if (kind == CountsKind::even || dealt) all.push_back(make_case(one, kind, cases));
      }
    }
  };
  const std::vector<int> ranks = grid.ranks.empty() ? std::vector<int>{0} : grid.ranks;
  for (const Collective collective : all_collectives()) {
    if (algorithm_names(collective).empty()) continue;
    for (const tools::NamedNetwork* network : networks) {
      for (const int n : ranks) {
        for (const std::size_t bytes : grid.bytes) {
          add(collective, n, bytes, network);
          if (collective == Collective::barrier) break;  // a barrier has no size
        }
      }
    }
  }
  return all;
}

struct Planned {
  const Algorithm* algorithm = nullptr;
  Params params;
  std::size_t bytes = 0;
};

void run_compile(benchmark::State& state, const Planned& one) {
  const Collective collective = one.algorithm->collective;
  const int ranks = one.params.ranks;
  CompileRequest request;
  request.algorithm = one.algorithm;
  request.params = one.params;
  request.counts.assign(static_cast<std::size_t>(natural_blocks(collective, ranks)),
                        tools::count_for(collective, ranks, one.bytes, size_of(request.type)));
  for (auto _ : state) {
    auto compiled = compile(request);
    if (!compiled.ok()) return state.SkipWithError(compiled.status().text().c_str());
    benchmark::DoNotOptimize(compiled->plan.rounds);
  }
}

void run_predict(benchmark::State& state, const Planned& one) {
  const Fabric fabric = find_regime("scale_out")->fabric;
  Schedule schedule = one.algorithm->make(one.params);
  const CollectiveSpec goal = goal_of(*one.algorithm, one.params, schedule);
  schedule = lower(std::move(schedule), fabric.abilities());
  std::uint64_t messages = 0;
  for (auto _ : state) {
    const auto result = simulate(schedule, goal, fabric, one.bytes);
    if (!result.ok()) return state.SkipWithError(result.status().text().c_str());
    messages += result->messages;
  }
  state.counters["messages"] =
      benchmark::Counter(static_cast<double>(messages), benchmark::Counter::kIsRate);
}

void add(const char* what, void (*run)(benchmark::State&, const Planned&), const Planned& one) {
  benchmark::RegisterBenchmark(
      fmt::format("{}/{}/{}/ranks:{}/bytes:{}", what, name_of(one.algorithm->collective),
                  one.algorithm->name, one.params.ranks, one.bytes)
          .c_str(),
      [run, one](benchmark::State& state) { run(state, one); })
      ->Unit(benchmark::kMicrosecond);
}

// Registers benchmarks of the cost of planning a call: compile/all_reduce/ring/ranks:8/bytes:65536
// (making its plan) and predict/... (predicting its time on a network), for the whole catalogue.
// The network is scale_out; operations that it cannot do are turned into messages (lower.h). Real
// time. Empty `ranks`: 8.
void register_planning(const std::vector<int>& ranks, const std::vector<std::size_t>& bytes) {
  constexpr int kRanks = 8;
  for (const Algorithm& algorithm : catalogue()) {
    for (const int n : ranks.empty() ? std::vector<int>{kRanks} : ranks) {
      for (const std::size_t m : bytes) {
        Params params = algorithm.only_taken({.ranks = n, .peer = n - 1});
        if (algorithm.refusal(params)) continue;
        const Planned one{&algorithm, std::move(params), m};
        add("compile", run_compile, one);
        add("predict", run_predict, one);
      }
    }
  }
}

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
