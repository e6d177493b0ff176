#include "engine/tools/perf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <ostream>

#include "engine/base/replace_file.h"
#include "engine/base/units.h"
#include "engine/tools/interrupt.h"
#include "engine/tools/machine.h"
#include "engine/tools/metrics.h"
#include "engine/tools/perf_curves.h"
#include "engine/tools/perf_report.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

// "f32,bf16" or "all", of one of the two enums. Where all were asked for, what does not exist is
// left out.
template <class T, int kCount>
auto names(bool& skip_unsupported, std::optional<T> (*parse_one)(std::string_view)) {
  return [&skip_unsupported, parse_one](std::string_view argument,
                                        std::string_view text) -> Result<std::vector<T>> {
    skip_unsupported |= text == "all";
    std::vector<T> all, values;
    std::vector<std::string_view> allowed;
    for (int i = 0; i < kCount; ++i) allowed.push_back(name_of(all.emplace_back(T(i))));
    allowed.push_back("all");
    for (const std::string_view part : split_list(text)) {
      const auto one = parse_one(part);
      if (part != "all" && !one) return unknown_name(argument, part, allowed);
      for (const T value : part == "all" ? all : std::vector<T>{*one}) {
        if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
      }
    }
    if (values.empty()) return unknown_name(argument, text, allowed);
    return values;
  };
}

Result<std::optional<Transport>> read_transport(std::string_view argument, std::string_view text) {
  constexpr std::array<std::string_view, 4> kNames = {"auto", "direct", "mailbox", "board"};
  if (text == "auto") return std::optional<Transport>();
  if (text == "direct") return std::optional(Transport::direct);
  if (text == "mailbox") return std::optional(Transport::mailbox);
  if (text == "board") return std::optional(Transport::board);
  return unknown_name(argument, text, kNames);
}

Result<std::size_t> read_step(std::string_view argument, std::string_view text) {
  auto step = parse_size(argument, text);
  if (step.ok() && *step == 0) {
    return invalid_argument(fmt::format("{} is '{}'; allowed are sizes from 1", argument, text));
  }
  return step;
}

Result<std::optional<double>> read_time(std::string_view argument, std::string_view text) {
  const auto duration = parse_duration(argument, text);
  if (!duration.ok()) return duration.status();
  return std::optional(std::chrono::duration<double>(*duration).count());
}

Result<double> read_bandwidth(std::string_view argument, std::string_view text) {
  if (const auto value = parse_real(text); value && *value >= 0) return *value;
  return invalid_argument(
      fmt::format("{} is '{}'; allowed are numbers from 0, in GB/s", argument, text));
}

Result<std::optional<double>> read_peak(std::string_view argument, std::string_view text) {
  const auto beta = parse_bandwidth(argument, text);
  if (!beta.ok()) return beta.status();
  return std::optional(1 / beta->to_double());
}

// What can be known to fail before minutes of measuring.
Status check_files(const PerfOptions& options, const PerfCases& cases) {
  if (!options.json_file.empty() && options.json_file != "-") {
    Status status = of_option("--json", check_replaceable(options.json_file));
    if (!status.ok()) return status;
  }
  if (options.plot_file.empty()) return {};
  std::string needed =
      options.networks.empty() ? "--network is needed with it" : why_no_curves(cases);
  if (!needed.empty()) {
    return invalid_argument(fmt::format("--plot is '{}'; {}", options.plot_file, needed));
  }
  return of_option("--plot", check_replaceable(options.plot_file));
}

}  // namespace

Result<Exit> perf(const PerfOptions& asked, Console& console) {
  const Machine machine = read_machine();
  PerfOptions options = asked;
  if (!options.networks.empty()) options.measure.seconds = PerfOptions::kSecondsOnNetwork;
  options.measure.seconds = options.seconds.value_or(options.measure.seconds);
  const auto all = all_cases_of(options, machine.budget.cores);
  if (!all.ok()) return all.status();
  Status files = check_files(options, all->front());
  if (!files.ok()) return files;
  const bool json_to_out = options.json_file == "-";
  const bool json_to_file = !options.json_file.empty() && !json_to_out;
  const InterruptGuard guard;

  std::size_t rows = 0;
  for (const PerfCases& cases : *all) rows += cases.rows.size();
  PerfRun run{.options = options,
              .machine = machine,
              .ranks = all->front().ranks,
              .started = utc_now(),
              .arguments = console.arguments};

  PerfTable table(console.out, options);
  PerfCsv csv(console.out);
  const bool show_table = !options.csv && !json_to_out;
  Status failure;
  for (const PerfCases& cases : *all) {
    if (!failure.ok() || interruption() != 0) break;
    auto workbench = Workbench::create(cases.bench);
    if (!workbench.ok()) return workbench.status();
    if (&cases == all->data()) {
      run.describe((*workbench)->team());
      if (show_table) table.begin(run);
      if (options.csv) csv.begin();
    }
    if (show_table && cases.on != nullptr) table.network(cases);
    if (show_table) {
      for (const std::string& note : cases.notes) table.note(note);
    }
    Progress progress(console);
    for (const PerfCase& one : cases.rows) {
      if (interruption() != 0) break;
      progress.show(fmt::format("{} of {}: {}", run.rows.size() + 1, rows, format_size(one.bytes)));
      auto row = measure_row(**workbench, one, cases, options);
      progress.clear();
      if (!row.ok()) {
        const bool stopped = row.status().code() == Code::aborted && interruption() != 0;
        if (!stopped) failure = row.status();
        break;
      }
      run.totals.add(*row);
      if (show_table) table.row(*row);
      if (options.csv) csv.row(run, *row);
      run.rows.push_back(std::move(*row));
    }
  }
  // One that comes after the last row has nothing left to interrupt.
  const bool interrupted = failure.ok() && run.rows.size() < rows;
  if (interrupted) {
    run.error = fmt::format("interrupted after {} of {} rows", run.rows.size(), rows);
  } else {
    run.error = failure.text();
  }
  const bool curves =
      !options.networks.empty() && run.error.empty() && why_no_curves(all->front()).empty();
  if (curves) run.curves = curves_of(*all, run.rows);
  if (show_table && interrupted) table.note(run.error);
  if (show_table && failure.ok()) table.end(run);
  // A file that is there is not given up for one without a row.
  if (json_to_out || (json_to_file && (run.error.empty() || !run.rows.empty()))) {
    const std::string text =
        perf_json(run).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    if (json_to_out) {
      console.out << text;
    } else {
      Status status = of_option("--json", replace_file(options.json_file, text));
      if (!status.ok()) return status;
    }
  }
  if (!options.plot_file.empty() && curves) {
    const std::string what =
        fmt::format("{} among {} ranks", name_of(options.collective()), run.ranks);
    Status status =
        of_option("--plot", replace_file(options.plot_file, crossovers_svg(what, run.curves)));
    if (!status.ok()) return status;
  }
  if (!failure.ok()) return failure;
  if (interrupted) {
    console.err << "rankine perf: " << run.error << "\n";
    return exit_of_interruption();
  }
  if (run.totals.wrong > 0) {
    console.err << fmt::format("rankine perf: {} elements are wrong\n", run.totals.wrong);
    return Exit::wrong;
  }
  if (!run.above_floor()) {
    console.err << fmt::format(
        "rankine perf: the average busbw is {:.3g} GB/s; --min-busbw asks for {:g}\n",
        run.totals.average_busbw(), options.min_busbw);
    return Exit::wrong;
  }
  return Exit::ok;
}

Subcommand add_perf(Command tool) {
  auto options = std::make_shared<PerfOptions>();
  PerfOptions& o = *options;
  MeasureOptions& m = o.measure;
  const Command app = tool.add_subcommand(
      "perf", "measure a collective on pinned threads and check its results, as nccl-tests");
  constexpr int kMany = 1'000'000'000;
  // Options added since the last heading stand below the next one.
  auto heading = [app, shown = app.options()](const char* name) mutable {
    shown = app.group_from(shown, name);
  };

  add_argument(app, "-b,--minbytes", o.min_bytes, parse_size, "SIZE",
               "smallest size: 8, 4K, 1M, 64MiB; binary (8)");
  add_argument(app, "-e,--maxbytes", o.max_bytes, parse_size, "SIZE",
               "largest size (64M; less where ranks outnumber cores)");
  add_argument(app, "-f,--stepfactor", o.step_factor, Whole{2, 1024}, "N", "from size to size (2)");
  add_argument(app, "-i,--stepbytes", o.step_bytes, read_step, "SIZE", "step instead of a factor");
  heading("Sizes");

  add_algorithm_arguments(app, o.algorithm,
                          {.algorithms = "names of the catalogue, or all (the engine's choice)",
                           .ranks = "ranks, a thread each (usable cores, at least 2; on a "
                                    "network 8)",
                           .root = "root of rooted collectives, or all (0)"})
      .required();
  add_argument(app, "-o,--op", o.ops,
               names<ReduceOp, kReduceOps>(o.skip_unsupported, parse_reduce_op), "LIST",
               "sum prod min max avg band bor bxor, or all");
  add_argument(app, "-d,--datatype", o.types,
               names<DataType, kDataTypes>(o.skip_unsupported, parse_data_type), "LIST",
               "f32 f64 f16 bf16 i8 u8 i32 u32 i64 u64 f8e4m3 f8e5m2 b8 c64 c128, or all");
  add_argument(app, "--transport", o.transport, read_transport, "NAME",
               "auto, direct, mailbox or board (auto)");
  add_argument(app, "--perturb", o.measure.perturb, read_seed, "SEED",
               "delay ranks, links and wake-ups at random; results stay exact, times do not count");
  add_argument(app, "--placement", o.placement, read_placement, "NAME",
               "compact, scatter, one_per_node, none or CPUs such as 0,2,4-7 (compact)");
  add_argument(app, "--wait", o.wait, read_wait, "NAME", "auto, spin, yield or park (auto)");
  add_argument(app, "-T,--timeout", o.timeout, parse_duration, "TIME",
               "of one call: 30 (seconds), 500ms; then exit code 124 (30)");
  add_argument(app, "--network", o.networks, read_call_networks, "LIST",
               "put calls on modelled networks, one after the other: presets or files, each with "
               "',sync=rounds' where rounds wait; times are the model's, and 'wall' what it took");
  heading("What runs");

  add_argument(app, "-n,--iters", m.batches, Whole{1, kMany}, "N",
               "batches (as many as fit into --time)");
  add_argument(app, "-m,--agg_iters", m.calls, Whole{1, kMany}, "N",
               "calls per batch (as many as take 20 us)");
  add_argument(app, "-w,--warmup_iters", m.warmups, Whole{1, kMany}, "N", "warm-up calls (5)");
  add_argument(app, "-c,--check", m.checks, Whole{0, 1000}, "N",
               "checked calls per row, each with other data; 0 for none (1)");
  add_argument(app, "--time", o.seconds, read_time, "TIME",
               "for each measurement (150ms; on a network 10ms)");
  app.add_flag("--fresh", m.fresh,
               "rewrite the input before each call, untimed; time the call and one read of the "
               "result");
  app.add_flag("--off-cache", m.off_cache, "rotate over more memory than the caches hold");
  app.add_flag("--probe", o.probe,
               "bracket rows with the latency of a cache line; repeat those whose cores moved");
  add_argument(app, "--min-busbw", o.min_busbw, read_bandwidth, "GB/S",
               "exit with 1 where the average stays below so many GB/s");
  add_argument(app, "--peak", o.peak, read_peak, "RATE",
               "what busbw is held against: 100GB/s (on a network its own)");
  heading("Measuring");

  app.add_flag("-I,--stats,--per_iter_timing", o.stats,
               "min, median, p99 and max over the batches");
  app.add_flag("--csv", o.csv, "one line per measurement in place of the table");
  add_text(app, "-J,--json,--output_file", o.json_file, "FILE",
           "also write JSON with nccl-tests' keys; '-' for standard output, without the table");
  add_text(app, "--plot", o.plot_file, "FILE",
           "on networks: time over size as SVG, a panel per network, crossovers marked");
  heading("Output");
  app.footer(
      "Examples:\n"
      "  rankine perf all_reduce                          8 B to 64 MiB on all cores, 10 seconds\n"
      "  rankine perf all_reduce -b 1K -e 1M -f 2 -d bf16\n"
      "  rankine perf all_gather --ranks 64 --algo all -e 64K\n"
      "  rankine perf reduce -r all -o all -d all -b 4K -e 4K --time 10ms\n"
      "  rankine perf all_reduce --stats --fresh --probe --json result.json\n"
      "  rankine perf all_reduce --algo all -e 16M --network scale_up,scale_out --plot "
      "regimes.svg\n"
      "Networks: the presets of 'rankine simulate --help'; RANKINE_NETWORK is for programs.\n" +
      std::string(kBusbwConvention) + kPeakConvention +
      "Exit codes: 0 good, 1 wrong data, 2 usage, 3 environment, 124 timeout.\n"
      "130 interrupted: what was measured is told, and JSON says that it is not complete.");
  return {app, [options](Console& console) { return perf(*options, console); }};
}

}  // namespace rankine::tools
