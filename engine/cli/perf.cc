// The command `rankine perf`: parses its arguments, starts rank processes, measures the rows and
// writes the reports.

#include "engine/cli/perf.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/status.h"
#include "engine/base/units.h"
#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/machine.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "engine/network/fabric.h"
#include "engine/run/machine.h"

namespace rankine::tools {
namespace {

// The first process reports for all; a copy dies with it (PR_SET_PDEATHSIG), because no process
// would wait for the copy.
void begin_copy(pid_t first) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != first) _exit(1);  // the first process was killed before prctl
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
}

// Ranks that are processes: forked copies of this process. This process plays rank 0 and reports
// the results.
class ProcessCopies {
 public:
  // Forks one copy for each rank but the first and returns in every copy with its rank; output of
  // the copies goes to /dev/null. Requires a single-threaded process. Throws if the system refuses
  // a process.
  explicit ProcessCopies(int ranks) : ProcessCopies() {  // so a throw runs the destructor
    const pid_t first = getpid();
    for (int r = 1; r < ranks; ++r) {
      const pid_t child = fork();
      if (child < 0) {
        const int error = errno;
        for (const pid_t one : others_) kill(one, SIGKILL);
        throw Error(Code::system, fmt::format("a process for rank {}: {}", r, strerror(error)));
      }
      if (child == 0) {
        begin_copy(first);
        rank_ = r;
        others_.clear();
        return;
      }
      others_.push_back(child);
    }
  }
  ProcessCopies(const ProcessCopies&) = delete;
  ProcessCopies& operator=(const ProcessCopies&) = delete;
  // Ends a copy. In the first process it waits for the copies, which have learned of the end
  // through shared memory, and kills copies that do not end.
  ~ProcessCopies() {
    if (rank_ > 0) _exit(0);
    constexpr std::int64_t kPatienceNs = 2'000'000'000;
    const std::int64_t until = now_ns() + kPatienceNs;
    for (const pid_t one : others_) {
      int end = 0;
      while (waitpid(one, &end, WNOHANG) == 0) {
        if (now_ns() >= until) kill(one, SIGKILL);
        sleep_ns(500'000);
      }
    }
  }

  int rank() const { return rank_; }
  // The name under which the copies meet for the `number`-th time; unique to this tool.
  std::string name(int number) const { return fmt::format("tool.{}.{}", number_, number); }

 private:
  ProcessCopies() = default;

  int rank_ = 0;
  unsigned number_ = std::random_device()();  // unique among running tools, across pid namespaces
  std::vector<pid_t> others_;
};

// Flags of nccl-tests that set little or nothing here, because the requested behaviour is fixed or
// does not exist among threads. Command lines for nccl-tests work unchanged: one warning names the
// ineffective flags and their replacements. Names and numbers: nccl-tests 2.19, README.md.
struct SettledFlag {
  const char* flags;
  int most;                       // allowed numbers are 0 to `most`
  std::vector<int> fixed_values;  // numbers that ask for the fixed behaviour
  const char* help;
  const char* refusal;  // reason against all other numbers, and the replacement
};

// clang-format off
const SettledFlag kSettled[] = {
    {"-p,--parallel_init", 1, {0, 1}, "ranks start together either way", ""},
    {"-z,--blocking", 3, {0, 1, 3},
     "calls return when they are done, and ranks meet before each batch, untimed",
     "ranks meet before each batch; -m 1 has them meet before each call"},
    {"-G,--cudagraph", 1 << 30, {0}, "there are no CUDA graphs",
     "there are no CUDA graphs; -m repeats"},
    {"-C,--report_cputime", 1, {0}, "times are real times",
     "a rank computes while it waits, so its CPU time is the time that is shown"},
    {"-R,--local_register", 2, {0}, "threads share their memory",
     "threads share their memory without registration"},
    {"-D,--device_implementation", 1 << 30, {0}, "there is no device",
     "there is no device; --algo and --transport say what runs"},
    {"-V,--device_cta_count", 1 << 30, {}, "there is no device",
     "there is no device, and a rank is one thread"},
    {"-M,--memory", 1, {0}, "no report",
     "'rankine topo' shows where a rank's memory is and how much"},
};
// clang-format on

// -g goes to ranks_per_thread, flags without effect to PerfOptions::without_effect.
void add_nccl_tests_flags(Command app, PerfOptions& options) {
  add_argument(app, "-g,--ngpus", options.ranks_per_thread, Whole{1, Communicator::kMaxRanks}, "N",
               "GPUs per thread in nccl-tests; here -t times N ranks, a thread each; without -t, "
               "N ranks");
  for (const SettledFlag& one : kSettled) {
    const auto read = [&one, &options, name = argument_name(one.flags)](const std::string& text) {
      const auto value = parse_whole(name, text, 0, one.most);
      if (!value.ok()) throw UsageError(value.status().text());
      if (std::find(one.fixed_values.begin(), one.fixed_values.end(), *value) !=
          one.fixed_values.end()) {
        return;
      }
      options.without_effect.push_back(fmt::format("{} {} ({})", name, *value, one.refusal));
    };
    app.add_option(one.flags, read, "N", one.help);
  }
}

// Reads "f32,bf16" or "all", names of one of the two enums. "all" leaves out unsupported pairs.
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

Result<std::optional<Order>> read_order(std::string_view argument, std::string_view text) {
  if (text == "any") return std::optional<Order>();
  if (const auto order = parse_order(text)) return order;
  std::vector<std::string_view> names = {"any"};
  for (int i = 0; i < kOrders; ++i) names.push_back(name_of(static_cast<Order>(i)));
  return unknown_name(argument, text, names);
}

Result<std::optional<QuantisedSum::Options>> read_quantise(std::string_view argument,
                                                           std::string_view text) {
  constexpr std::string_view kNames[] = {"i8", "f8e4m3", "none"};
  if (text == "none") return std::optional<QuantisedSum::Options>();
  const auto as = parse_data_type(text);
  if (as && (*as == DataType::i8 || *as == DataType::f8e4m3)) {
    return std::optional(QuantisedSum::Options{.as = *as});
  }
  return unknown_name(argument, text, kNames);
}

Result<std::size_t> read_step(std::string_view argument, std::string_view text) {
  auto step = parse_size(argument, text);
  if (step.ok() && *step == 0) {
    return invalid_argument(fmt::format("{} is '{}'; allowed are sizes from 1", argument, text));
  }
  return step;
}

Result<double> read_time(std::string_view argument, std::string_view text) {
  const auto span = parse_span(argument, text);
  if (!span.ok()) return span.status();
  return span->to_double();
}

Result<double> read_bandwidth(std::string_view argument, std::string_view text) {
  if (const auto value = parse_real(text); value && *value >= 0) return *value;
  return invalid_argument(
      fmt::format("{} is '{}'; allowed are numbers from 0, in GB/s", argument, text));
}

Result<double> read_peak(std::string_view argument, std::string_view text) {
  const auto beta = parse_bandwidth(argument, text);
  if (!beta.ok()) return beta.status();
  return 1 / beta->to_double();
}

constexpr Whole kSwitch = {0, 1};  // as nccl-tests has switches

Result<RankTime> read_rank_time(std::string_view argument, std::string_view text) {
  const auto value = parse_whole(argument, text, 0, 3);
  if (!value.ok()) return value.status();
  return static_cast<RankTime>(*value);
}

void add_perf_arguments(Command app, PerfOptions& o) {
  MeasureOptions& m = o.measure;
  constexpr int kBillion = 1'000'000'000;
  // Options added since the last heading stand below the next one.
  auto heading = [app, shown = app.options()](const char* name) mutable {
    shown = app.group_from(shown, name);
  };

  add_argument(app, "-b,--minbytes", o.min_bytes, parse_size, "SIZE",
               "smallest size: 8, 4K, 1M, 64MiB; binary (8)");
  add_argument(app, "-e,--maxbytes", o.max_bytes, parse_size, "SIZE",
               "largest size (64M; less if ranks outnumber cores)");
  add_argument(app, "-f,--stepfactor", o.given_factor, Whole{1, 1024}, "N",
               "from size to size; 1: by -i bytes, as nccl-tests has it (2)");
  add_argument(app, "-i,--stepbytes", o.step_bytes, read_step, "SIZE",
               "step instead of a factor (1M with -f 1)");
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
  add_argument(app, "--counts", o.counts, list_of(Whole{0, 1'000'000}), "LIST",
               "unequal blocks of the ranks, in shares such as 1,0,3 (equal)");
  add_argument(app, "--transport", o.transport, read_transport, "NAME",
               "auto, direct, mailbox or board (auto)");
  add_argument(app, "--ports", o.ports, Whole{1, Fabric::kMostPorts}, "K",
               "at most K messages of a rank in flight in each direction, by mailboxes (no limit)");
  add_argument(app, "--order", o.order, read_order, "LEVEL",
               "promised of sums' last bits: coherent, repeatable, by_rank, size_invariant, "
               "group_invariant, tp_invariant or any (any)");
  add_argument(app, "--perturb", o.measure.perturb, read_seed, "SEED",
               "delay ranks, links and wake-ups at random; results stay exact, times do not count");
  add_argument(app, "--quantise", o.measure.quantise, read_quantise, "NAME",
               "of all_reduce: sums travel as i8 or f8e4m3, with a scale per 128 elements; #wrong "
               "counts errors above their bound (none)");
  app.add_flag("--processes", o.processes,
               "ranks are processes, not threads: data for other ranks passes through shared "
               "memory");
  app.add_flag("--shared-payloads", o.shared_payloads,
               "with --processes: buffers are in shared memory, and read and written in place");
  add_argument(app, "--placement", o.placement, read_placement, "NAME",
               "compact, scatter, one_per_node, none or CPUs such as 0,2,4-7 (compact)");
  add_argument(app, "--wait", o.wait, read_wait, "NAME", "auto, spin, yield or park (auto)");
  add_argument(app, "-T,--timeout", o.timeout, parse_duration, "TIME",
               "limit of one call: 30 (seconds), 500ms; then exit code 124 (30)");
  add_argument(app, "--network", o.networks, read_call_networks, "LIST",
               "put calls on modelled networks, one after the other: presets or files, each with "
               "',sync=rounds' if rounds wait; times are the model's, and 'wall' is the real time");
  heading("What runs");

  const Option batches = add_argument(app, "-n,--iters", m.batches, Whole{1, kBillion}, "N",
                                      "batches (as many as fit into --time)");
  const Option calls = add_argument(app, "-m,--agg_iters", m.calls, Whole{1, kBillion}, "N",
                                    "calls per batch (as many as take 20 us)");
  add_argument(app, "-w,--warmup_iters", m.warmups, Whole{0, kBillion}, "N",
               "warm-up calls, of which the first makes the plan; with 0 it is timed (5)");
  add_argument(app, "-c,--check", m.checks, Whole{0, 1000}, "N",
               "checked calls per row, each with other data; 0 for none (1)");
  add_argument(app, "-a,--average", m.of_ranks, read_rank_time, "0..3",
               "time of a batch: 0 of rank 0, 1 the mean, 2 of the fastest, 3 of the slowest "
               "rank (3)");
  add_argument(app, "-u,--unalign", m.unalign, Whole{0, 1 << 20}, "N",
               "begin buffers N elements behind a cache line's border (0)");
  add_argument(app, "-N,--run_cycles", o.cycles, Whole{0, kBillion}, "N",
               "measure all rows N times; 0: until Ctrl-C (1)");
  add_argument(app, "--time", o.seconds, read_time, "TIME",
               "for each measurement (150ms; on a network 10ms)")
      .excludes(batches);
  app.add_flag("--fresh", m.fresh,
               "rewrite the input before each call, untimed; time the call and one read of the "
               "result");
  app.add_flag("--off-cache", m.off_cache, "rotate over more memory than the caches hold");
  add_argument(app, "--skew", m.skew, read_time, "TIME",
               "late arrivals: rank r begins r/(N-1) of TIME late, one call per batch; times "
               "count from the last rank's arrival (0)")
      .excludes(calls);
  app.add_flag("--probe", o.probe,
               "bracket rows with the latency of a cache line; repeat rows if cores moved");
  add_argument(app, "--min-busbw", o.min_busbw, read_bandwidth, "GB/S",
               "exit with 1 if the average stays below this number of GB/s");
  add_argument(app, "--peak", o.peak, read_peak, "RATE",
               "peak for eta, busbw over the peak: 100GB/s (the network's)");
  heading("Measuring");

  const Option stats = app.add_flag(
      "--stats", o.stats,
      "min, median, p90, p99, p99.9 and max over the batches, of the slowest rank; of calls with "
      "-m 1");
  add_argument(app, "-I,--per_iter_timing", o.stats, kSwitch, "0/1", "1: the same as --stats")
      .excludes(stats);
  add_argument(app, "-K,--per_iter_skip", o.skip_batches, Whole{0, kBillion}, "N",
               "leave the first batches out of these statistics; JSON has them all (0)");
  add_argument(app, "-S,--report_timestamps", o.timestamps, kSwitch, "0/1",
               "1: when each row was done, in local time");
  app.add_flag("--csv", o.csv, "one line per measurement in place of the table");
  add_text(app, "-J,--json,--output_file", o.json_file, "FILE",
           "also write JSON with nccl-tests' keys; '-' for standard output, without the table");
  add_text(app, "--iterations", o.iterations_file, "FILE",
           "also write CSV with a line for each batch and rank");
  add_picture_file(
      app, "--plot", o.plot_file,
      "time and busbw over size; on networks time, a panel per network, crossovers marked");
  heading("Output");
  add_nccl_tests_flags(app, o);
  heading("Of nccl-tests, for command lines that have them");
  app.footer(
      "Examples:\n"
      "  rankine perf all_reduce                          8 B to 64 MiB on all cores, 10 seconds\n"
      "  rankine perf all_reduce -b 1K -e 1M -f 2 -d bf16\n"
      "  rankine perf all_reduce --processes --shared-payloads -e 1M\n"
      "  rankine perf all_gather --ranks 64 --algo all -e 64K\n"
      "  rankine perf reduce -r all -o all -d all -b 4K -e 4K --time 10ms\n"
      "  rankine perf all_reduce -b 8 -e 64M -f 2 -g 1 -I 1 -K 2 -J result.json\n"
      "  rankine perf all_reduce --algo all -e 1M --plot curves.svg\n"
      "  rankine perf all_gather --ranks 3 --counts 1,0,3 --skew 20us --stats\n"
      "  rankine perf all_reduce --stats --fresh --probe --json result.json\n"
      "  rankine perf all_reduce --algo all -e 16M --network scale_up,scale_out --plot "
      "regimes.svg\n"
      "Networks: the presets of 'rankine simulate --help'; RANKINE_NETWORK is for programs.\n" +
      std::string(kBusbwConvention) + kPeakConvention +
      "Exit codes: 0 good, 1 wrong data, 2 usage, 3 environment, 124 timeout.\n"
      "130 interrupted: measurements so far are printed, and JSON is marked as incomplete.");
}

// Applies -f and -g.
Status take_nccl_tests_flags(PerfOptions& options) {
  if (options.given_factor > 1 && options.step_bytes) {
    return invalid_argument(
        "--stepfactor and --stepbytes are given; allowed is one of them, or --stepfactor 1");
  }
  options.step_factor = options.given_factor.value_or(options.step_factor);
  if (options.given_factor == 1 && !options.step_bytes) options.step_bytes = std::size_t{1} << 20;
  if (options.ranks_per_thread == 1) return {};
  const std::string threads_text = options.algorithm.take("ranks").value_or("1");
  const auto threads = parse_whole("--ranks", threads_text, 1, Communicator::kMaxRanks).value();
  const std::int64_t all = std::int64_t{threads} * options.ranks_per_thread;
  if (all > Communicator::kMaxRanks) {
    return invalid_argument(fmt::format(
        "--ngpus is {}, with {}; together they are at most {} ranks", options.ranks_per_thread,
        counted(threads, "thread"), static_cast<int>(Communicator::kMaxRanks)));
  }
  const std::string text = std::to_string(all);
  options.algorithm.given.push_back(
      {find_parameter("ranks"), text, "--ranks", fmt::format("'{}'", text)});
  return {};
}

// Finds failures of files before minutes of measuring.
Status check_files(const PerfOptions& options, const PerfCases& cases) {
  if (options.csv && options.json_file == "-") {
    return invalid_argument(
        "--json is '-' and --csv is given; standard output takes only one of "
        "them");
  }
  const std::string needed = options.plot_file.empty() ? "" : plot_refusal(options, cases);
  if (!needed.empty()) {
    return invalid_argument(fmt::format("--plot is '{}'; {}", options.plot_file, needed));
  }
  const std::string json = options.json_file == "-" ? "" : options.json_file;
  return check_output_files(
      {{"--json", json}, {"--plot", options.plot_file}, {"--iterations", options.iterations_file}});
}

// Refuses options that exclude each other.
Status check_options(const PerfOptions& options) {
  const bool given = options.measure.batches > 0;
  const int fewest = given ? options.measure.batches : MeasureOptions::kFewestBatches;
  if (options.skip_batches > 0 && !options.stats) {
    return invalid_argument(fmt::format(
        "--per_iter_skip is {}; it leaves batches out of --stats (-I 1), which is not asked for",
        options.skip_batches));
  }
  if (options.skip_batches > 0 && options.skip_batches >= fewest) {
    return invalid_argument(fmt::format("--per_iter_skip is {}; allowed are 0 to {}{}",
                                        options.skip_batches, fewest - 1,
                                        given ? ", below --iters" : "; more with --iters"));
  }
  if (!options.processes && options.shared_payloads) {
    return invalid_argument("--shared-payloads needs processes; add --processes");
  }
  const bool on_network = !options.networks.empty();
  if (options.processes && on_network && options.shared_payloads) {
    return invalid_argument("--shared-payloads has no effect on a network; leave it out");
  }
  if (options.processes && options.probe) {
    return invalid_argument("--probe is between threads; leave out --processes");
  }
  if (options.ports > 0 && on_network) {
    return invalid_argument(fmt::format(
        "--ports is {}, and networks have their own ports; leave out --network", options.ports));
  }
  const Transport transport = options.transport.value_or(Transport::mailbox);
  if (options.ports > 0 && transport != Transport::mailbox) {
    return invalid_argument(
        fmt::format("--ports is {}, --transport is {}; only the mailbox transport has ports",
                    options.ports, name_of(transport)));
  }
  if (options.measure.skew > 0 && on_network) {  // a real delay
    return invalid_argument(
        fmt::format("--skew is {}, and calls on networks take model time; leave out --network",
                    format_seconds(options.measure.skew)));
  }
  return {};
}

// Refuses options that exclude quantised sums.
Status check_quantise(const PerfOptions& options) {
  if (!options.measure.quantise) return {};
  const auto refuse = [&](const std::string& text) {
    return invalid_argument(
        fmt::format("--quantise is {}, {}", name_of(options.measure.quantise->as), text));
  };
  if (options.collective() != Collective::all_reduce) {
    return refuse(
        fmt::format("the collective is {}; allowed is all_reduce", name_of(options.collective())));
  }
  for (const ReduceOp op : options.ops) {
    if (op != ReduceOp::sum) return refuse(fmt::format("--op is {}; allowed is sum", name_of(op)));
  }
  for (const DataType type : options.types) {
    const Status status = QuantisedSum::check(*options.measure.quantise, type);
    if (!status.ok()) return refuse("--data" + status.text());
  }
  for (const auto& [given, name] : {std::pair(!options.algorithm.algorithms.empty(), "--algo"),
                                    {options.transport.has_value(), "--transport"},
                                    {options.order.has_value(), "--order"},
                                    {options.measure.perturb.has_value(), "--perturb"},
                                    {options.shared_payloads, "--shared-payloads"}}) {
    if (given) return refuse(fmt::format("which chooses for itself; leave out {}", name));
  }
  return {};
}

// "12 of 60: 4 KiB, 20 s left"; without a total and an end if `rows` is 0.
std::string progress_text(std::size_t done, std::size_t rows, std::size_t bytes, double seconds) {
  if (rows == 0) return fmt::format("row {}: {}", done + 1, format_size(bytes));
  return fmt::format("{} of {}: {}{}", done + 1, rows, format_size(bytes),
                     time_left(done, rows, seconds));
}

// Returns Exit::wrong if an element was wrong or the average stayed below min_busbw.
Result<Exit> run_perf(const PerfOptions& asked, Console& console) {
  const MachineReport machine = read_machine();
  PerfOptions options = asked;
  if (!options.networks.empty()) options.measure.seconds = PerfOptions::kSecondsOnNetwork;
  options.measure.seconds = options.seconds.value_or(options.measure.seconds);
  if (options.measure.skew > 0) options.measure.calls = 1;
  take_nccl_tests_flags(options).throw_if_error();
  if (!options.without_effect.empty()) {
    console.err << fmt::format("rankine perf: without effect here: {}\n",
                               fmt::join(options.without_effect, ", "));
  }
  check_quantise(options).throw_if_error();
  const auto all = all_cases_of(options, machine.budget.cores).value();
  check_files(options, all.front()).throw_if_error();
  check_options(options).throw_if_error();
  options.measure.each_rank = options.stats || !options.iterations_file.empty();
  const bool json_to_out = options.json_file == "-";
  const bool json_to_file = !options.json_file.empty() && !json_to_out;
  const InterruptGuard guard;
  std::optional<ProcessCopies> copies;
  if (options.processes) copies.emplace(all.front().ranks);

  std::size_t rows = 0;
  for (const PerfCases& cases : all) rows += cases.rows.size();
  rows *= static_cast<std::size_t>(options.cycles);  // 0: unlimited
  const auto unfinished = [&](std::size_t done) { return rows == 0 || done < rows; };
  PerfRun run{.options = options,
              .machine = machine,
              .ranks = all.front().ranks,
              .started = utc_now(),
              .arguments = console.arguments};

  PerfTable table(console.out, options);
  const bool show_table = !options.csv && !json_to_out;
  Status failure;
  const double begun = seconds_now();
  int meetings = 0;
  for (int cycle = 0; options.cycles == 0 || cycle < options.cycles; ++cycle) {
    for (const PerfCases& cases : all) {
      if (!failure.ok() || interruption() != 0) break;
      Workbench::Options bench = cases.bench;
      if (copies) bench.process = {copies->rank(), copies->name(meetings++)};
      bench.shared_payloads = options.shared_payloads;
      auto workbench = Workbench::create(bench).value();
      if (cycle == 0 && &cases == all.data()) {
        // Without warm-up calls the first call makes its plan, and is timed.
        if (options.measure.warmups > 0) failure = workbench->check(cases.rows.front().call);
        if (!failure.ok()) break;
        run.describe(*workbench);
        if (show_table) table.begin(run);
        if (options.csv) console.out << to_csv(perf_table(run, {})) << std::flush;
      }
      if (show_table && cases.on != nullptr) table.network(cases);
      if (show_table && cycle == 0) {
        for (const std::string& note : cases.notes) table.note(note);
      }
      Progress progress(console);
      for (const PerfCase& one : cases.rows) {
        if (interruption() != 0) break;
        progress.show(progress_text(run.rows.size(), rows, one.bytes, seconds_now() - begun));
        auto row = measure_row(*workbench, one, cases, options);
        progress.clear();
        if (!row.ok()) {
          const bool stopped = row.status().code() == Code::aborted && interruption() != 0;
          if (!stopped) failure = row.status();
          break;
        }
        run.totals.add(*row);
        if (show_table) table.row(*row);
        if (options.csv) {
          console.out << to_csv(perf_table(run, {&*row, 1}), false) << std::flush;
        }
        run.rows.push_back(std::move(*row));
      }
    }
    if (!failure.ok() || interruption() != 0) break;
  }
  if (copies && copies->rank() > 0) return Exit::ok;  // the first process reports
  // An interrupt after the last row has no effect.
  const bool interrupted = failure.ok() && unfinished(run.rows.size());
  if (interrupted) {
    run.error = rows == 0 ? "interrupted after " + counted(run.rows.size(), "row")
                          : fmt::format("interrupted after {} of {}", run.rows.size(),
                                        counted(rows, "row"));
  } else {
    run.error = failure.text();
  }
  const bool crossing = !options.networks.empty() && options.cycles == 1 && run.error.empty() &&
                        curves_refusal(all.front()).empty();
  if (crossing) run.curves = curves_of(all, run.rows);
  if (show_table && interrupted) table.note(run.error);
  if (show_table && failure.ok()) table.end(run);
  // Keep an existing file rather than replace it with a report without rows.
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
  if (!options.iterations_file.empty() && !run.rows.empty()) {
    Status status = of_option("--iterations",
                              replace_file(options.iterations_file, to_csv(iterations_table(run))));
    if (!status.ok()) return status;
  }
  if (!options.plot_file.empty() && run.error.empty()) {
    const std::string what =
        fmt::format("{} among {}", name_of(options.collective()), counted(run.ranks, "rank"));
    const std::string svg = options.networks.empty() ? machine_svg(what, all.front(), run.rows)
                                                     : crossovers_svg(what, run.curves);
    write_picture("--plot", options.plot_file, svg).throw_if_error();
  }
  if (!failure.ok()) return failure;
  if (interrupted) {
    console.err << "rankine perf: " << run.error << "\n";
    return exit_of_interruption();
  }
  if (run.totals.wrong > 0) {
    console.err << fmt::format("rankine perf: {} wrong\n", counted(run.totals.wrong, "element"));
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

}  // namespace

Subcommand add_perf(Command tool) {
  auto options = std::make_shared<PerfOptions>();
  const Command app = tool.add_subcommand(
      "perf", "measure a collective on pinned threads and check its results, as nccl-tests");
  add_perf_arguments(app, *options);
  return {app, [options](Console& console) { return run_perf(*options, console); }};
}

}  // namespace rankine::tools
