#include "engine/tools/perf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <ostream>

#include "algorithms/catalogue.h"
#include "engine/api/call_parameters.h"
#include "engine/api/check.h"
#include "engine/api/choose.h"
#include "engine/base/replace_file.h"
#include "engine/tools/interrupt.h"
#include "engine/tools/latency_probe.h"
#include "engine/tools/machine.h"
#include "engine/tools/memory.h"
#include "engine/tools/metrics.h"
#include "engine/tools/perf_report.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

// One row to come.
struct Case {
  Call call;
  std::size_t bytes = 0;
};

std::vector<std::string_view> names_of_types() {
  std::vector<std::string_view> names;
  for (int i = 0; i < kDataTypes; ++i) names.push_back(name_of(static_cast<DataType>(i)));
  return names;
}

std::vector<std::string_view> names_of_ops() {
  std::vector<std::string_view> names;
  for (int i = 0; i < kReduceOps; ++i) names.push_back(name_of(static_cast<ReduceOp>(i)));
  return names;
}

// "f32,bf16" or "all", with one of the two enums' parsers.
template <class T, class ParseOne>
Result<std::vector<T>> read_names(std::string_view argument, std::string_view text,
                                  std::vector<std::string_view> names, ParseOne parse_one) {
  std::vector<T> values;
  const auto add = [&values](T value) {
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  };
  for (const std::string_view part : split_list(text)) {
    if (part == "all") {
      for (std::size_t i = 0; i < names.size(); ++i) add(static_cast<T>(i));
    } else if (const auto value = parse_one(part)) {
      add(*value);
    } else {
      names.push_back("all");
      return unknown_name(argument, part, names);
    }
  }
  if (!values.empty()) return values;
  names.push_back("all");
  return unknown_name(argument, text, names);
}

Result<std::optional<Transport>> read_transport(std::string_view argument, std::string_view text) {
  constexpr std::array<std::string_view, 4> kNames = {"auto", "direct", "mailbox", "board"};
  if (text == "auto") return std::optional<Transport>();
  if (text == "direct") return std::optional(Transport::direct);
  if (text == "mailbox") return std::optional(Transport::mailbox);
  if (text == "board") return std::optional(Transport::board);
  return unknown_name(argument, text, kNames);
}

// The lists read here remember whether all were asked for: then what does not exist is left out.
auto read_ops(PerfOptions& options) {
  return [&options](std::string_view argument, std::string_view text) {
    options.skip_unsupported |= text == "all";
    return read_names<ReduceOp>(argument, text, names_of_ops(), parse_reduce_op);
  };
}
auto read_types(PerfOptions& options) {
  return [&options](std::string_view argument, std::string_view text) {
    options.skip_unsupported |= text == "all";
    return read_names<DataType>(argument, text, names_of_types(), parse_data_type);
  };
}

Result<std::size_t> read_step(std::string_view argument, std::string_view text) {
  auto step = parse_size(argument, text);
  if (step.ok() && *step == 0) {
    return invalid_argument(fmt::format("{} is '{}'; allowed are sizes from 1", argument, text));
  }
  return step;
}

Result<double> read_seconds(std::string_view argument, std::string_view text) {
  const auto duration = parse_duration(argument, text);
  if (!duration.ok()) return duration.status();
  return std::chrono::duration<double>(*duration).count();
}

Result<double> read_bandwidth(std::string_view argument, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0) return value;
  return invalid_argument(
      fmt::format("{} is '{}'; allowed are numbers from 0, in GB/s", argument, text));
}

// The root, or all of them; 0 where there is none.
Result<std::vector<Rank>> roots_of(Collective collective, const std::string& text, int ranks) {
  if (!has_root(collective) && text != "0") {
    return invalid_argument(
        fmt::format("--root is '{}'; {} has no root", text, name_of(collective)));
  }
  if (text == "all" || text == "-1") {
    std::vector<Rank> all(static_cast<std::size_t>(ranks));
    for (Rank r = 0; r < ranks; ++r) all[static_cast<std::size_t>(r)] = r;
    return all;
  }
  const auto root = parse_whole("--root", text, 0, ranks - 1);
  if (root.ok()) return std::vector<Rank>{*root};
  return invalid_argument(root.status().text() + ", or all");
}

// What runs: algorithms, or the engine's choice, which has no name and no parameters.
Result<std::vector<AskedAlgorithm>> algorithms_to_run(const AlgorithmArguments& a,
                                                      std::vector<std::string>& notes) {
  if (!a.algorithms.empty()) return asked_algorithms(a, notes);
  const auto params = read_params(a);
  if (!params.ok()) return params.status();
  if (Status status = check_taken(a, {}); !status.ok()) return status;
  return std::vector<AskedAlgorithm>{{nullptr, *params}};
}

// The cases refer to the lists in `asked`.
Result<std::vector<Case>> cases_of(const PerfOptions& options, int ranks,
                                   const std::vector<Rank>& roots,
                                   const std::vector<AskedAlgorithm>& asked) {
  const auto sizes = sizes_of(options);
  if (!sizes.ok()) return sizes.status();
  const Collective collective = options.collective();
  const bool reducing = reduces(collective);
  std::vector<ReduceOp> ops = options.ops;
  if (!reducing) ops.resize(1);

  std::vector<Case> cases;
  for (const DataType type : options.types) {
    for (const ReduceOp op : ops) {
      if (reducing && !supports(type, op) && options.skip_unsupported) continue;
      for (const Rank root : roots) {
        std::optional<std::size_t> last;
        for (const std::size_t size : *sizes) {
          Case one;
          one.call = {.collective = collective, .type = type, .op = op, .root = root};
          one.call.peer =
              options.algorithm.find("peer") ? asked.front().params.peer : (root + 1) % ranks;
          one.call.count = count_for(collective, ranks, size, size_of(type));
          if (last == one.call.count) continue;  // rounding made it the same row
          last = one.call.count;
          if (reducing && !supports(type, op)) {
            return invalid_argument(fmt::format(
                "--op is '{}' with --datatype '{}'; bit operations are allowed on integers only",
                name_of(op), name_of(type)));
          }
          if (Status status = check_call(one.call, ranks); !status.ok()) {
            return invalid_argument(
                fmt::format("size is {}: {}", format_size(size), status.text()));
          }
          one.bytes = one.call.count * counts_per_size(collective, ranks) * size_of(type);
          for (const AskedAlgorithm& each : asked) {
            one.call.options = {.transport = options.transport};
            if (each.algorithm != nullptr) one.call.options.algorithm = each.algorithm->name;
            set_parameters(each.params, one.call.options);
            cases.push_back(one);
          }
        }
      }
    }
  }
  return cases;
}

// Refuses what the memory cannot hold, before anything is allocated.
Status check_memory(const Workbench::Options& bench, const Case& largest, std::size_t max_bytes) {
  const std::size_t needed = Workbench::memory_needed(bench);
  const AvailableMemory available = available_memory();
  constexpr std::uint64_t kSpare = std::uint64_t{64} << 20;  // plans, scratch, threads
  if (available.bytes > kSpare && needed <= available.bytes - kSpare) return {};
  return {
      Code::out_of_memory,
      fmt::format(
          "--maxbytes is {}: for a size of {}, {} ranks need {} of buffers and scratch; available "
          "are {} ({})",
          format_size(max_bytes), format_size(largest.bytes), bench.team.ranks,
          format_bytes(static_cast<double>(needed)),
          format_bytes(static_cast<double>(available.bytes)), available.why)};
}

int segments_of(const Case& one, const Measured& measured, int ranks) {
  const Algorithm* line = find_algorithm(one.call.collective, measured.first().algorithm);
  if (line == nullptr || !line->takes("segments")) return 0;
  if (one.call.options.segments > 0) return one.call.options.segments;
  return choose_segments(*line, ranks, one.bytes);
}

// One row. Where the probe was asked for, it brackets the row, which is measured again while the
// machine moves under it.
Result<Measured> measure_row(Workbench& workbench, const Call& call, const PerfOptions& options,
                             std::optional<PerfProbe>& probe) {
  if (!options.probe) return workbench.measure(call, options.measure);
  struct Bracketed {
    Result<Measured> measured;
    PerfProbe probe;
  };
  const auto once = [&]() -> Bracketed {
    const auto before = workbench.probe_latency();
    if (!before.ok()) return {before.status(), {}};
    auto measured = workbench.measure(call, options.measure);
    if (!measured.ok()) return {measured.status(), {}};
    const auto after = workbench.probe_latency();
    if (!after.ok()) return {after.status(), {}};
    return {std::move(measured), {.before_ns = *before, .after_ns = *after}};
  };
  int repeats = 0;
  Bracketed best = calmest(
      once, [](const Bracketed& b) { return b.measured.ok() ? b.probe.drift() : 1; }, repeats);
  best.probe.repeats = repeats;
  probe = best.probe;
  return std::move(best.measured);
}

}  // namespace

void set_ends(PerfOptions& options, int ranks, int cores) {
  if (!options.max_bytes) {
    // Where ranks share cores, a call takes that much longer.
    const int share = std::max(1, (ranks + cores - 1) / std::max(1, cores));
    std::size_t most = PerfOptions::kMaxBytes;
    for (int i = 1; i < share; i *= 2) most /= 2;
    options.max_bytes = std::max(most, options.min_bytes.value_or(0));
  }
  if (!options.min_bytes) options.min_bytes = std::min(PerfOptions::kMinBytes, *options.max_bytes);
}

Result<std::vector<std::size_t>> sizes_of(const PerfOptions& options) {
  constexpr std::size_t kMostSizes = 100'000;
  const std::size_t first = *options.min_bytes, last = *options.max_bytes;
  if (first > last) {
    return invalid_argument(
        fmt::format("--minbytes is {}; allowed are sizes up to --maxbytes, "
                    "which is {}",
                    format_size(first), format_size(last)));
  }
  if (options.algorithm.collective == Collective::barrier) return std::vector<std::size_t>{0};
  std::vector<std::size_t> sizes;
  for (std::size_t size = first; size <= last;) {
    if (sizes.size() >= kMostSizes) {
      return invalid_argument(fmt::format("--stepbytes is {}: more than {} sizes from {} to {}",
                                          format_size(options.step_bytes.value_or(0)), kMostSizes,
                                          format_size(first), format_size(last)));
    }
    sizes.push_back(size);
    const std::size_t before = size;  // sizes stay below 2^63, so only the product can overflow
    if (options.step_bytes) {
      size += *options.step_bytes;
    } else if (size == 0) {
      size = PerfOptions::kMinBytes;
    } else {
      const auto factor = static_cast<std::size_t>(options.step_factor);
      if (size > last / factor) break;
      size *= factor;
    }
    if (size <= before) break;
  }
  return sizes;
}

Result<Exit> perf(const PerfOptions& asked, Console& console) {
  const Machine machine = read_machine();
  PerfOptions options = asked;
  options.algorithm.begin.ranks = std::max(2, machine.budget.cores);
  const std::string root = options.algorithm.take("root").value_or("0");
  std::vector<std::string> notes;
  const auto algorithms = algorithms_to_run(options.algorithm, notes);
  if (!algorithms.ok()) return algorithms.status();
  const int ranks = algorithms->front().params.ranks;
  const auto roots = roots_of(options.collective(), root, ranks);
  if (!roots.ok()) return roots.status();
  set_ends(options, ranks, machine.budget.cores);
  const auto cases = cases_of(options, ranks, *roots, *algorithms);
  if (!cases.ok()) return cases.status();
  if (cases->empty()) {
    return invalid_argument(
        "--op and --datatype leave nothing: bit operations are allowed on "
        "integers only");
  }

  Workbench::Options bench;
  bench.team = {.ranks = ranks,
                .placement = options.placement,
                .timeout = options.timeout,
                .wait = options.wait};
  bench.off_cache = options.measure.off_cache;
  const Case* largest = &cases->front();
  for (const Case& one : *cases) {
    const BufferBytes bytes = buffer_bytes(one.call, ranks);
    bench.buffers.input = std::max(bench.buffers.input, bytes.input);
    bench.buffers.output = std::max(bench.buffers.output, bytes.output);
    if (one.bytes > largest->bytes) largest = &one;
  }
  if (Status status = check_memory(bench, *largest, *options.max_bytes); !status.ok())
    return status;

  // A file that cannot be written is known before minutes of measuring.
  const bool json_to_out = options.json_file == "-";
  const bool json_to_file = !options.json_file.empty() && !json_to_out;
  if (json_to_file) {
    Status status = of_option("--json", check_replaceable(options.json_file));
    if (!status.ok()) return status;
  }
  const InterruptGuard guard;

  auto created = Workbench::create(bench);
  if (!created.ok()) return created.status();
  Workbench& workbench = **created;
  PerfRun run{.options = options,
              .machine = machine,
              .ranks = ranks,
              .places = workbench.team().report(),
              .placement = describe_placement(workbench.team().report()),
              .waiting = to_string(workbench.team().communicator().wait_policy()),
              .started = utc_now(),
              .arguments = console.arguments};

  PerfTable table(console.out, options);
  PerfCsv csv(console.out);
  const bool show_table = !options.csv && !json_to_out;
  if (show_table) {
    table.begin(run);
    for (const std::string& note : notes) table.note(note);
  }
  if (options.csv) csv.begin(run);

  std::vector<PerfRow> rows;
  PerfTotals totals;
  Status failure;
  {
    Progress progress(console);
    for (const Case& one : *cases) {
      if (interruption() != 0) break;
      progress.show(
          fmt::format("{} of {}: {}", rows.size() + 1, cases->size(), format_size(one.bytes)));
      std::optional<PerfProbe> probe;
      auto measured = measure_row(workbench, one.call, options, probe);
      progress.clear();
      if (!measured.ok()) {
        const bool stopped = measured.status().code() == Code::aborted && interruption() != 0;
        if (!stopped) failure = measured.status();
        break;
      }
      PerfRow row;
      row.bytes = one.bytes;
      row.count = one.call.count;
      row.type = one.call.type;
      row.op = reduces(options.collective()) ? name_of(one.call.op) : "none";
      row.root = has_root(options.collective()) ? one.call.root : -1;
      row.segments = segments_of(one, *measured, ranks);
      row.bus_factor = bus_factor(options.collective(), ranks);
      row.measured = std::move(*measured);
      row.probe = probe;
      totals.add(row);
      if (show_table) table.row(row);
      if (options.csv) csv.row(run, row);
      rows.push_back(std::move(row));
    }
  }
  // One that comes after the last row has nothing left to interrupt.
  const bool interrupted = failure.ok() && rows.size() < cases->size();
  const std::string error =
      interrupted ? fmt::format("interrupted after {} of {} rows", rows.size(), cases->size())
                  : failure.text();
  const bool above_floor = totals.average_busbw() >= options.min_busbw;
  if (show_table && interrupted) table.note(error);
  if (show_table && failure.ok()) table.end(totals, above_floor);
  // A file that is there is not given up for one without a row.
  if (json_to_out || (json_to_file && (error.empty() || !rows.empty()))) {
    const std::string text =
        perf_json(run, rows, totals, above_floor, error)
            .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
        "\n";
    if (json_to_out) {
      console.out << text;
    } else {
      Status status = of_option("--json", replace_file(options.json_file, text));
      if (!status.ok()) return status;
    }
  }
  if (!failure.ok()) return failure;
  if (interrupted) {
    console.err << "rankine perf: " << error << "\n";
    return exit_of_interruption();
  }
  if (totals.wrong > 0) {
    console.err << fmt::format("rankine perf: {} elements are wrong\n", totals.wrong);
    return Exit::wrong;
  }
  if (!above_floor) {
    console.err << fmt::format(
        "rankine perf: the average busbw is {:.3g} GB/s; --min-busbw asks for {:g}\n",
        totals.average_busbw(), options.min_busbw);
    return Exit::wrong;
  }
  return Exit::ok;
}

Subcommand add_perf(CLI::App& tool) {
  auto options = std::make_shared<PerfOptions>();
  PerfOptions& o = *options;
  MeasureOptions& m = o.measure;
  CLI::App* app = tool.add_subcommand(
      "perf", "measure a collective on pinned threads and check its results, as nccl-tests");
  constexpr int kMany = 1'000'000'000;
  add_algorithm_arguments(*app, o.algorithm,
                          {.algorithms = "names of the catalogue, or all (the engine's choice)",
                           .ranks = "ranks, a thread each (usable cores, at least 2)",
                           .root = "root of rooted collectives, or all (0)"},
                          "What runs")
      ->required();

  add_argument(*app, "-b,--minbytes", o.min_bytes, parse_size, "SIZE",
               "smallest size: 8, 4K, 1M, 64MiB; binary (8)")
      ->group("Sizes");
  add_argument(*app, "-e,--maxbytes", o.max_bytes, parse_size, "SIZE",
               "largest size (64M; less where ranks outnumber cores)")
      ->group("Sizes");
  add_argument(*app, "-f,--stepfactor", o.step_factor, Whole{2, 1024}, "N", "from size to size (2)")
      ->group("Sizes");
  add_argument(*app, "-i,--stepbytes", o.step_bytes, read_step, "SIZE", "step instead of a factor")
      ->group("Sizes");

  add_argument(*app, "-o,--op", o.ops, read_ops(o), "LIST",
               "sum prod min max avg band bor bxor, or all")
      ->group("What runs");
  add_argument(*app, "-d,--datatype", o.types, read_types(o), "LIST",
               "f32 f64 f16 bf16 i8 u8 i32 u32 i64 u64, or all")
      ->group("What runs");
  add_argument(*app, "--transport", o.transport, read_transport, "NAME",
               "auto, direct, mailbox or board (auto)")
      ->group("What runs");
  add_argument(*app, "--perturb", o.measure.perturb, read_seed, "SEED",
               "delay ranks, links and wake-ups at random; results stay exact, times do not count")
      ->group("What runs");
  add_argument(*app, "--placement", o.placement, read_placement, "NAME",
               "compact, scatter, one_per_node, none or CPUs such as 0,2,4-7 (compact)")
      ->group("What runs");
  add_argument(*app, "--wait", o.wait, read_wait, "NAME", "auto, spin, yield or park (auto)")
      ->group("What runs");
  add_argument(*app, "-T,--timeout", o.timeout, parse_duration, "TIME",
               "of one call: 30 (seconds), 500ms; then exit code 124 (30)")
      ->group("What runs");

  add_argument(*app, "-n,--iters", m.batches, Whole{1, kMany}, "N",
               "batches (as many as fit into --time)")
      ->group("Measuring");
  add_argument(*app, "-m,--agg_iters", m.calls, Whole{1, kMany}, "N",
               "calls per batch (as many as take 20 us)")
      ->group("Measuring");
  add_argument(*app, "-w,--warmup_iters", m.warmups, Whole{1, kMany}, "N", "warm-up calls (5)")
      ->group("Measuring");
  add_argument(*app, "-c,--check", m.checks, Whole{0, 1000}, "N",
               "checked calls per row, each with other data; 0 for none (1)")
      ->group("Measuring");
  add_argument(*app, "--time", m.seconds, read_seconds, "TIME", "for each measurement (150ms)")
      ->group("Measuring");
  app->add_flag("--fresh", m.fresh,
                "rewrite the input before each call, untimed; time the call and one read of the "
                "result")
      ->group("Measuring");
  app->add_flag("--off-cache", m.off_cache, "rotate over more memory than the caches hold")
      ->group("Measuring");
  app->add_flag("--probe", o.probe,
                "bracket rows with the latency of a cache line; repeat those whose cores moved")
      ->group("Measuring");
  add_argument(*app, "--min-busbw", o.min_busbw, read_bandwidth, "GB/S",
               "exit with 1 where the average stays below so many GB/s")
      ->group("Measuring");

  app->add_flag("-I,--stats,--per_iter_timing", o.stats,
                "min, median, p99 and max over the batches")
      ->group("Output");
  app->add_flag("--csv", o.csv, "one line per measurement in place of the table")->group("Output");
  add_text(*app, "-J,--json,--output_file", o.json_file, "FILE",
           "also write JSON with nccl-tests' keys; '-' for standard output, without the table")
      ->group("Output");
  app->footer(
      "Examples:\n"
      "  rankine perf all_reduce                          8 B to 64 MiB on all cores, 10 seconds\n"
      "  rankine perf all_reduce -b 1K -e 1M -f 2 -d bf16\n"
      "  rankine perf all_gather --ranks 64 --algo all -e 64K\n"
      "  rankine perf reduce -r all -o all -d all -b 4K -e 4K --time 10ms\n"
      "  rankine perf all_reduce --stats --fresh --probe --json result.json\n"
      "Exit codes: 0 good, 1 wrong data, 2 usage, 3 environment, 124 timeout.\n"
      "130 interrupted: what was measured is told, and JSON says that it is not complete.");
  return {app, [options](Console& console) { return perf(*options, console); }};
}

}  // namespace rankine::tools
