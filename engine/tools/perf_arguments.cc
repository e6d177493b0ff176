#include "engine/tools/perf_arguments.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "engine/network/fabric.h"
#include "engine/tools/arguments.h"
#include "engine/tools/metrics.h"
#include "engine/tools/nccl_tests_flags.h"
#include "engine/tools/real_number.h"
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

Result<std::optional<Order>> read_order(std::string_view argument, std::string_view text) {
  if (text == "any") return std::optional<Order>();
  if (const auto order = parse_order(text)) return order;
  std::vector<std::string_view> names = {"any"};
  for (int i = 0; i < kOrders; ++i) names.push_back(name_of(static_cast<Order>(i)));
  return unknown_name(argument, text, names);
}

Result<std::size_t> read_step(std::string_view argument, std::string_view text) {
  auto step = parse_size(argument, text);
  if (step.ok() && *step == 0) {
    return invalid_argument(fmt::format("{} is '{}'; allowed are sizes from 1", argument, text));
  }
  return step;
}

Result<std::optional<int>> read_factor(std::string_view argument, std::string_view text) {
  const auto factor = parse_whole(argument, text, 1, 1024);
  if (!factor.ok()) return factor.status();
  return std::optional(*factor);
}

Result<std::optional<double>> read_time(std::string_view argument, std::string_view text) {
  const auto span = parse_span(argument, text);
  if (!span.ok()) return span.status();
  return std::optional(span->to_double());
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

// As nccl-tests takes its switches.
Result<bool> read_switch(std::string_view argument, std::string_view text) {
  const auto value = parse_whole(argument, text, 0, 1);
  if (!value.ok()) return value.status();
  return *value == 1;
}

Result<RankTime> read_rank_time(std::string_view argument, std::string_view text) {
  const auto value = parse_whole(argument, text, 0, 3);
  if (!value.ok()) return value.status();
  return static_cast<RankTime>(*value);
}

}  // namespace

void add_perf_arguments(Command app, PerfOptions& o) {
  MeasureOptions& m = o.measure;
  constexpr int kMany = 1'000'000'000;
  // Options added since the last heading stand below the next one.
  auto heading = [app, shown = app.options()](const char* name) mutable {
    shown = app.group_from(shown, name);
  };

  add_argument(app, "-b,--minbytes", o.min_bytes, parse_size, "SIZE",
               "smallest size: 8, 4K, 1M, 64MiB; binary (8)");
  add_argument(app, "-e,--maxbytes", o.max_bytes, parse_size, "SIZE",
               "largest size (64M; less where ranks outnumber cores)");
  add_argument(app, "-f,--stepfactor", o.given_factor, read_factor, "N",
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
  add_argument(app, "--transport", o.transport, read_transport, "NAME",
               "auto, direct, mailbox or board (auto)");
  add_argument(app, "--ports", o.ports, Whole{1, Fabric::kMostPorts}, "K",
               "at most K messages of a rank in flight in each direction, by mailboxes (no limit)");
  add_argument(app, "--order", o.order, read_order, "LEVEL",
               "promised of sums' last bits: coherent, repeatable, by_rank, size_invariant, "
               "group_invariant or any (any)");
  add_argument(app, "--perturb", o.measure.perturb, read_seed, "SEED",
               "delay ranks, links and wake-ups at random; results stay exact, times do not count");
  app.add_flag("--processes", o.processes,
               "ranks are processes, not threads: what others read passes through shared memory");
  app.add_flag("--shared-payloads", o.shared_payloads,
               "with --processes: buffers are in shared memory, and read and written in place");
  add_argument(app, "--placement", o.placement, read_placement, "NAME",
               "compact, scatter, one_per_node, none or CPUs such as 0,2,4-7 (compact)");
  add_argument(app, "--wait", o.wait, read_wait, "NAME", "auto, spin, yield or park (auto)");
  add_argument(app, "-T,--timeout", o.timeout, parse_duration, "TIME",
               "of one call: 30 (seconds), 500ms; then exit code 124 (30)");
  add_argument(app, "--network", o.networks, read_call_networks, "LIST",
               "put calls on modelled networks, one after the other: presets or files, each with "
               "',sync=rounds' where rounds wait; times are the model's, and 'wall' what it took");
  heading("What runs");

  const Option batches = add_argument(app, "-n,--iters", m.batches, Whole{1, kMany}, "N",
                                      "batches (as many as fit into --time)");
  add_argument(app, "-m,--agg_iters", m.calls, Whole{1, kMany}, "N",
               "calls per batch (as many as take 20 us)");
  add_argument(app, "-w,--warmup_iters", m.warmups, Whole{0, kMany}, "N",
               "warm-up calls, of which the first makes the plan; with 0 it is timed (5)");
  add_argument(app, "-c,--check", m.checks, Whole{0, 1000}, "N",
               "checked calls per row, each with other data; 0 for none (1)");
  add_argument(app, "-a,--average", m.of_ranks, read_rank_time, "0..3",
               "whose time counts: 0 rank 0, 1 the mean, 2 the fastest, 3 the slowest rank (3)");
  add_argument(app, "-u,--unalign", m.unalign, Whole{0, 1 << 20}, "N",
               "begin buffers so many elements behind a cache line's border (0)");
  add_argument(app, "-N,--run_cycles", o.cycles, Whole{0, kMany}, "N",
               "measure all rows so many times; 0: until Ctrl-C (1)");
  add_argument(app, "--time", o.seconds, read_time, "TIME",
               "for each measurement (150ms; on a network 10ms)")
      .excludes(batches);
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

  const Option stats = app.add_flag(
      "--stats", o.stats, "min, median, p99 and max over the batches, of the slowest rank");
  add_argument(app, "-I,--per_iter_timing", o.stats, read_switch, "0/1", "1: the same as --stats")
      .excludes(stats);
  add_argument(app, "-K,--per_iter_skip", o.skip_batches, Whole{0, kMany}, "N",
               "leave the first batches out of these statistics; JSON has them all (0)");
  add_argument(app, "-S,--report_timestamps", o.timestamps, read_switch, "0/1",
               "1: when each row was done, in local time");
  app.add_flag("--csv", o.csv, "one line per measurement in place of the table");
  add_text(app, "-J,--json,--output_file", o.json_file, "FILE",
           "also write JSON with nccl-tests' keys; '-' for standard output, without the table");
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
      "  rankine perf all_reduce --stats --fresh --probe --json result.json\n"
      "  rankine perf all_reduce --algo all -e 16M --network scale_up,scale_out --plot "
      "regimes.svg\n"
      "Networks: the presets of 'rankine simulate --help'; RANKINE_NETWORK is for programs.\n" +
      std::string(kBusbwConvention) + kPeakConvention +
      "Exit codes: 0 good, 1 wrong data, 2 usage, 3 environment, 124 timeout.\n"
      "130 interrupted: what was measured is told, and JSON says that it is not complete.");
}

}  // namespace rankine::tools
