// The report of perf: nccl-tests' table, CSV, JSON and totals.

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <vector>

#include "engine/api/tuning/tuning.h"
#include "engine/base/files.h"
#include "engine/base/statistics.h"
#include "engine/cli/arguments.h"
#include "engine/cli/machine.h"
#include "engine/cli/perf.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"

namespace rankine::tools {
namespace {

// Four significant digits in a column of seven, for every magnitude, as in nccl-tests.
std::string time_text(double seconds) {
  const double us = seconds * kMicro;
  const int places = us >= 10000 ? 0 : us >= 1000 ? 1 : us >= 10 ? 2 : 3;
  return fmt::format("{:.{}f}", us, places);
}

std::string wrong_text(std::int64_t wrong) { return wrong < 0 ? "N/A" : std::to_string(wrong); }

// The algorithm, segments and transport used: ring/4@mailbox.
std::string ran_text(const Series& series, int segments) {
  return series.algorithm + (segments > 0 ? fmt::format("/{}", segments) : "") +
         (series.transport == "direct" ? "" : "@" + series.transport);
}

// The out-of-place text, and the in-place text if it differs.
std::string ran_text(const PerfRow& row) {
  const Series& first = row.measured.first();
  const Series& in_place = row.measured.in_place;
  std::string text = ran_text(first, row.segments);
  if (!in_place.algorithm.empty()) {
    const bool same = in_place.algorithm == first.algorithm;
    const std::string other = ran_text(in_place, same ? row.segments : 0);
    if (other != text) text += " | " + other;
  }
  return text;
}

std::string_view ranks_in_words(const PerfRun& run) {
  if (run.options.processes) return run.ranks == 1 ? "process" : "processes";
  return run.ranks == 1 ? "rank" : "ranks";
}

}  // namespace

std::string_view describe(RankTime of_ranks) {
  switch (of_ranks) {
    case RankTime::first:
      return "rank 0";
    case RankTime::mean:
      return "mean over ranks";
    case RankTime::least:
      return "fastest rank";
    case RankTime::most:
      break;
  }
  return "slowest rank";
}

std::string_view mode_of(const MeasureOptions& measure) {
  if (measure.fresh && measure.off_cache) return "fresh+off-cache";
  if (measure.fresh) return "fresh";
  return measure.off_cache ? "off-cache" : "warm";
}

void PerfRun::describe(const Workbench& workbench) {
  places = workbench.places();
  for (const RankReport& place : places) processes.push_back(workbench.process_of(place.rank));
  placement = describe_placement(places);
  waiting = to_string(workbench.communicator().wait_policy());
}

std::vector<PortsInUse> PerfRun::ports_in_use() const {
  std::vector<PortsInUse> most;
  for (const PerfRow& row : rows) {
    most.resize(std::max(most.size(), row.measured.ports.size()));
    for (std::size_t r = 0; r < row.measured.ports.size(); ++r) {
      raise_to(most[r], row.measured.ports[r]);
    }
  }
  return most;
}

void PerfTotals::add(const PerfRow& row) {
  for (const Series* series : {&row.measured.out_of_place, &row.measured.in_place}) {
    if (series->wrong > 0) wrong += series->wrong;
    // The error that comes nearest to its bound.
    if (series->error * allowed_error > error * series->allowed_error || allowed_error == 0) {
      error = series->error;
      allowed_error = series->allowed_error;
    }
    busbw_sum += busbw(row, *series);
    ++measurements;
  }
}

void PerfTable::begin(const PerfRun& run) {
  const PerfOptions& options = run.options;
  const MachineReport& machine = run.machine;
  const MeasureOptions& m = options.measure;
  fmt::print(out_, "# rankine {}: {} among {} {}\n", kVersion, name_of(options.collective()),
             run.ranks, ranks_in_words(run));
  fmt::print(out_, "# machine   : {}, {}, {}\n", machine.host, machine.cpu,
             machine.topology.summary());
  fmt::print(out_, "# cores     : {}\n", machine.budget.why);
  fmt::print(out_, "# placement : {}: {}\n", to_string(options.placement), run.placement);
  for (const std::string& line : refusals(run.places)) note("not enforced: " + line);
  fmt::print(out_, "# waiting   : {}; kernels: {}\n", run.waiting, machine.isa);
  const std::string batches = m.batches > 0
                                  ? counted(m.batches, "batch", "batches")
                                  : fmt::format("batches for {}", format_seconds(m.seconds));
  const std::string calls = m.fresh       ? "one call and one read of the result each"
                            : m.calls > 0 ? counted(m.calls, "call") + " each"
                                          : std::string("at least 20 us of calls each");
  fmt::print(out_, "# method    : {}; {}, then {}, {}; {}, median\n", mode_of(m),
             counted(m.warmups, "warm-up call"), batches, calls, describe(m.of_ranks));
  if (m.unalign > 0) {
    fmt::print(out_, "# unaligned : buffers begin {} behind a cache line's border\n",
               counted(m.unalign, "element"));
  }
  const TuningTable* table = machine_tuning();
  if (table != nullptr && !on_network_ && run.options.algorithm.algorithms.empty()) {
    fmt::print(out_, "# choice    : the tuning table of {}; RANKINE_TUNING=off for the default\n",
               table->made());
  }
  if (on_network_) {
    fmt::print(out_,
               "# time      : model time of one call; wall: real time of a call here{}; eta: "
               "busbw over the peak\n",
               options_.stats ? ", with its statistics" : "");
  }
  if (options.ports > 0) {
    fmt::print(out_, "# ports     : {} of each rank per direction\n", options.ports);
  }
  if (m.skew > 0) {
    fmt::print(out_, "# skew      : the last rank arrives {} after rank 0; time from then on\n",
               format_seconds(m.skew));
  }
  if (!options.counts.empty()) {
    fmt::print(out_, "# counts    : elements of the ranks' blocks, in shares of {}\n",
               fmt::join(options.counts, ", "));
  }
  if (m.quantise) {
    fmt::print(out_,
               "# quantised : sums travel as {}, a scale per {} elements; #wrong: errors above "
               "their bound\n",
               name_of(m.quantise->as), m.quantise->block);
  }
  if (m.perturb) fmt::print(out_, "# perturbed : seed {}; times do not count\n", *m.perturb);
  if (options_.probe) {
    fmt::print(
        out_,
        "# probe     : one way of a cache line between ranks 0 and 1, before and after; a row in "
        "which it moves by {:g} x is repeated, {} times at most; ~ moved still\n",
        kSteady, kRepeats);
  }
  fmt::print(out_, "#\n");
  const auto group = [&](std::string_view a, std::string_view b, std::string_view c,
                         std::string_view d, std::string_view e) {
    std::string text = fmt::format("  {:>7} {:>7} {:>7} {:>6}", a, b, c, d);
    if (eta_) text += fmt::format(" {:>6}", e);
    if (on_network_) text += fmt::format(" {:>7}", a == "time" ? "wall" : a);
    if (options_.stats) {
      for (const std::string_view name : {"min", "median", "p90", "p99", "p99.9", "max"}) {
        text += fmt::format(" {:>7}", a == "time" ? name : a);
      }
    }
    return text;
  };
  const std::string names = group("time", "algbw", "busbw", "#wrong", "eta");
  const std::string units = group("(us)", "(GB/s)", "(GB/s)", "", "");
  const std::size_t width = names.size() - 2;
  fmt::print(out_, "#{:55}  {:^{}}  {:^{}}\n", "", "out-of-place", width, "in-place", width);
  fmt::print(out_, "#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}{}{}{}{}  {}\n", "size", "count", "type",
             "redop", "root", names, names, options_.probe ? "  before   after  again" : "",
             options_.timestamps ? fmt::format("  {:19}", "timestamp") : "", "algo");
  fmt::print(out_, "#{:>11}  {:>12}  {:>8}  {:>6}  {:>6}{}{}{}\n", "(B)", "(elements)", "", "", "",
             units, units, options_.probe ? "    (ns)    (ns)" : "");
  out_ << std::flush;
}

void PerfTable::network(const PerfCases& cases) {
  const CallNetwork& on = *cases.on;
  fmt::print(out_, "# network   : {}, {}{}\n", describe(on.fabric), name_of(on.sync),
             cases.peak ? fmt::format("; peak {:g} GB/s", *cases.peak / 1e9) : "");
}

void PerfTable::note(std::string_view text) { fmt::print(out_, "# {}\n", text); }

void PerfTable::row(const PerfRow& row) {
  fmt::print(out_, "{:>12}  {:>12}  {:>8}  {:>6}  {:>6}", row.bytes, row.count, name_of(row.type),
             row.op, row.root);
  for (const Series* series : {&row.measured.out_of_place, &row.measured.in_place}) {
    fmt::print(out_, "  {:>7} {:>7.2f} {:>7.2f} {:>6}", time_text(seconds_of(*series)),
               algbw(row, *series), busbw(row, *series), wrong_text(series->wrong));
    if (eta_) fmt::print(out_, " {:>6}", eta_text(eta(row, *series)));
    if (on_network_) fmt::print(out_, " {:>7}", time_text(series->seconds.median));
    if (!options_.stats) continue;
    const Statistics s = summarise(shown_batches(*series, options_));
    for (const double seconds : {s.min, s.median, s.p90, s.p99, s.p999, s.max}) {
      fmt::print(out_, " {:>7}", time_text(seconds));
    }
  }
  if (row.probe) {
    fmt::print(out_, " {:>7.1f} {:>7.1f}{} {:>5}", row.probe->before_ns, row.probe->after_ns,
               row.probe->steady() ? ' ' : '~', row.probe->repeats);
  }
  if (options_.timestamps) fmt::print(out_, "  {}", row.done);
  fmt::print(out_, "  {}\n", ran_text(row));
  out_ << std::flush;
}

void PerfTable::end(const PerfRun& run) {
  fmt::print(out_, "# Out of bounds values : {} {}\n", run.totals.wrong,
             run.totals.wrong == 0 ? "OK" : "FAILED");
  if (run.totals.allowed_error > 0) {
    fmt::print(out_, "# Largest error        : {:g}, {:.2f} of its bound\n", run.totals.error,
               run.totals.error / run.totals.allowed_error);
  }
  fmt::print(out_, "# Avg bus bandwidth    : {:g} {}\n#\n", run.totals.average_busbw(),
             run.above_floor() ? "OK" : "FAILED");
  if (run.options.ports > 0) {
    fmt::print(out_, "# Ports in use at once : {}\n#\n", ports_in_words(run.ports_in_use()));
  }
  if (run.contested()) fmt::print(out_, "{}#\n", crossovers_text(run.curves));
  out_ << std::flush;
}

Table perf_table(const PerfRun& run, std::span<const PerfRow> rows) {
  constexpr As kMicros = "{:.4f}", kNanos = "{:.1f}";
  Table table(as::text("collective"), "ranks", as::bytes("size"), "count", as::text("type"),
              as::text("redop"), "root", as::text("place"), as::text("algorithm"),
              as::text("transport"), "segments", as::text("mode"), "batches", "calls_per_batch",
              kMicros("time_us"), kMicros("algbw_gbs"), kMicros("busbw_gbs"), "wrong",
              kMicros("min_us"), kMicros("median_us"), kMicros("p90_us"), kMicros("p99_us"),
              kMicros("p999_us"), kMicros("max_us"), kNanos("ping_pong_before_ns"),
              kNanos("ping_pong_after_ns"), "repeats", as::text("network"), kMicros("eta"),
              kMicros("wall_us"));
  const auto add = [&](std::string_view place, const PerfRow& row, const Series& series) {
    const Statistics& s = series.seconds;
    const auto& probe = row.probe;
    table.add(name_of(run.options.collective()), run.ranks, row.bytes, row.count, name_of(row.type),
              row.op, row.root, place, series.algorithm, series.transport, row.segments,
              mode_of(run.options.measure), series.samples.size(), series.calls,
              seconds_of(series) * kMicro, algbw(row, series), busbw(row, series),
              series.wrong < 0 ? Cell() : Cell(series.wrong), s.min * kMicro, s.median * kMicro,
              s.p90 * kMicro, s.p99 * kMicro, s.p999 * kMicro, s.max * kMicro,
              probe ? Cell(probe->before_ns) : Cell(), probe ? Cell(probe->after_ns) : Cell(),
              probe ? Cell(probe->repeats) : Cell(), row.network, eta(row, series),
              series.model_seconds ? Cell(s.median * kMicro) : Cell());
  };
  for (const PerfRow& row : rows) {
    add("out_of_place", row, row.measured.out_of_place);
    add("in_place", row, row.measured.in_place);
  }
  return table;
}

Table iterations_table(const PerfRun& run) {
  Table table(as::bytes("size"), as::text("type"), as::text("redop"), "root", as::text("place"),
              as::text("algorithm"), as::text("network"), "iteration", "rank",
              As("{:.4f}")("time_us"));
  for (const PerfRow& row : run.rows) {
    const auto add = [&](std::string_view place, const Series& series) {
      for (std::size_t r = 0; r < series.of_rank.size(); ++r) {
        for (std::size_t i = 0; i < series.of_rank[r].size(); ++i) {
          table.add(row.bytes, name_of(row.type), row.op, row.root, place, series.algorithm,
                    row.network, i, r, series.of_rank[r][i] * kMicro);
        }
      }
    };
    add("out_of_place", row.measured.out_of_place);
    add("in_place", row.measured.in_place);
  }
  return table;
}

namespace {

Json series_json(const PerfRow& row, const Series& series) {
  Json json = {
      {"time", seconds_of(series) * kMicro},
      {"alg_bw", algbw(row, series)},
      {"bus_bw", busbw(row, series)},
      {"nwrong", nullptr},
      {"min", series.seconds.min * kMicro},
      {"median", series.seconds.median * kMicro},
      {"p90", series.seconds.p90 * kMicro},
      {"p99", series.seconds.p99 * kMicro},
      {"p999", series.seconds.p999 * kMicro},
      {"max", series.seconds.max * kMicro},
      {"spread", relative_spread(series.samples)},
      {"batches", series.samples.size()},
      {"calls_per_batch", series.calls},
      {"calls_per_second", seconds_of(series) > 0 ? 1 / seconds_of(series) : 0},
  };
  if (series.wrong >= 0) json["nwrong"] = series.wrong;
  if (series.allowed_error > 0) {
    json["error"] = series.error;
    json["allowed_error"] = series.allowed_error;
  }
  if (const auto share = eta(row, series)) json["eta"] = *share;
  if (series.model_seconds) json["wall"] = series.seconds.median * kMicro;
  return json;
}

// A histogram of the batches' times: the ends of its classes lie a quarter of a doubling apart,
// from the shortest time on; empty classes are left out.
Json histogram_json(const std::vector<double>& seconds) {
  Json classes = Json::array();
  if (seconds.empty()) return classes;
  const double least = *std::min_element(seconds.begin(), seconds.end());
  std::map<int, int> counts;
  for (const double each : seconds) {
    ++counts[least > 0 ? static_cast<int>(std::floor(4 * std::log2(each / least))) : 0];
  }
  const auto end = [least](int number) { return least * std::exp2(number / 4.0) * kMicro; };
  for (const auto& [number, count] : counts) {
    classes.push_back({{"from_us", end(number)}, {"to_us", end(number + 1)}, {"batches", count}});
  }
  return classes;
}

// The input of nccl-tests' analyze_perf_json.py: one row per process there, one row per rank here,
// with each batch's time, and the slowest rank.
Json per_iter_json(const Series& series, const PerfOptions& options) {
  const std::vector<double> all = slowest_of(series), shown = shown_batches(series, options);
  const Statistics s = summarise(shown);
  const auto in_us = [](const std::vector<double>& seconds) {
    Json times = Json::array();
    for (const double each : seconds) times.push_back(each * kMicro);
    return times;
  };
  Json json = {
      {"skipped_iterations", all.size() - shown.size()},
      {"min_us", s.min * kMicro},
      {"max_us", s.max * kMicro},
      {"avg_us", s.mean * kMicro},
      {"p50_us", s.median * kMicro},
      {"p90_us", s.p90 * kMicro},
      {"p95_us", nearest_rank(shown, 0.95) * kMicro},
      {"p99_us", s.p99 * kMicro},
      {"p999_us", s.p999 * kMicro},
      {"stdev_us", s.deviation * kMicro},
      {"cv_pct", s.mean > 0 ? 100 * s.deviation / s.mean : 0},
  };
  json["histogram"] = histogram_json(shown);
  json["times_us"] = in_us(all);
  if (series.of_rank.size() > 1) {
    Json& rows = json["per_process_max_times_us"] = Json::array();
    for (const std::vector<double>& rank : series.of_rank) rows.push_back(in_us(rank));
  }
  return json;
}

}  // namespace

Json perf_json(const PerfRun& run) {
  const PerfOptions& options = run.options;
  const MeasureOptions& m = options.measure;
  Json json;
  json["version"] = kVersion;
  json["start_time"] = run.started;
  json["args"] = run.arguments;
  json["env"] = Json::object();
  for (const char* name : {"RANKINE_ISA", "HWLOC_SYNTHETIC", "HWLOC_XMLFILE"}) {
    if (const char* value = environment_variable(name)) json["env"][name] = value;
  }
  json["nccl_version"] = nullptr;
  // nccl-tests' keys come first: ranks are threads, one to each "GPU".
  Json& config = json["config"] = {
      {"nthreads", run.ranks},
      {"ngpus", 1},
      {"minimum_bytes", options.min_bytes.value_or(0)},
      {"maximum_bytes", options.max_bytes.value_or(0)},
  };
  if (options.step_bytes) {
    config["step_bytes"] = *options.step_bytes;
  } else {
    config["step_factor"] = options.step_factor;
  }
  config["warmup_iters"] = m.warmups;
  config["iterations"] = m.batches;
  config["aggregated_iterations"] = m.calls;
  config["validation"] = m.checks;
  config["graph"] = 0;
  config["blocking_collectives"] = true;
  config["per_iter_timing"] = options.stats;
  config["per_iter_skip"] = options.skip_batches;
  config["parallel_init"] = true;
  config["unalign"] = m.unalign;
  config["average"] = static_cast<int>(m.of_ranks);
  config["run_cycles"] = options.cycles;
  config["collective"] = name_of(options.collective());
  config["ranks"] = run.ranks;
  config["processes"] = options.processes;
  config["shared_payloads"] = options.shared_payloads;
  config["placement"] = to_string(options.placement);
  config["wait"] = run.waiting;
  config["isa"] = run.machine.isa;
  const TuningTable* table = machine_tuning();
  config["tuning"] = table != nullptr ? Json(table->made()) : Json();
  config["mode"] = mode_of(m);
  for (const NamedNetwork& one : options.networks) config["networks"].push_back(one.name);
  if (m.perturb) config["perturb"] = *m.perturb;
  if (m.skew > 0) config["skew_us"] = m.skew * kMicro;
  if (!options.counts.empty()) config["counts"] = options.counts;
  if (options.ports > 0) config["ports"] = options.ports;
  if (m.quantise) config["quantise"] = name_of(m.quantise->as);
  config["machine"] = run.machine.topology.summary();
  config["cores"] = run.machine.budget.why;
  Json& not_enforced = config["not_enforced"] = Json::array();
  for (const std::string& line : refusals(run.places)) not_enforced.push_back(line);

  Json& devices = config["devices"] = Json::array();
  for (const RankReport& place : run.places) {
    devices.push_back(
        {{"rank", place.rank},
         {"group", 0},
         {"pid", run.processes[static_cast<std::size_t>(place.rank)]},
         {"hostname", run.machine.host},
         {"device", place.place.cpu},
         {"device_hex",
          place.place.cpu < 0 ? std::string() : fmt::format("0x{:02x}", place.place.cpu)},
         {"device_info", run.machine.cpu},
         {"node", place.place.node}});
  }
  if (const auto most = run.ports_in_use(); !most.empty()) write_ports_in_use(most, json);
  Json& results = json["results"] = Json::array();
  for (const PerfRow& row : run.rows) {
    const Measured& measured = row.measured;
    Json one;
    one["size"] = row.bytes;
    one["count"] = row.count;
    one["type"] = name_of(row.type);
    one["redop"] = row.op;
    one["root"] = row.root;
    one["actual_iterations"] = measured.out_of_place.samples.size() *
                               static_cast<std::size_t>(measured.out_of_place.calls);
    one["experiment_name"] = fmt::format("{} {} {}", name_of(options.collective()),
                                         measured.first().algorithm, run.ranks);
    one["algorithm"] = measured.first().algorithm;
    one["transport"] = measured.first().transport;
    one["in_place_algorithm"] = measured.in_place.algorithm;
    one["in_place_transport"] = measured.in_place.transport;
    one["segments"] = row.segments;
    if (options.timestamps) one["timestamp"] = row.done;
    if (!row.network.empty()) one["network"] = row.network;
    if (row.peak) one["peak_bw"] = *row.peak / kGiga;
    one["out_of_place"] = series_json(row, measured.out_of_place);
    one["in_place"] = series_json(row, measured.in_place);
    one["out_of_place_per_iter"] = per_iter_json(measured.out_of_place, options);
    one["in_place_per_iter"] = per_iter_json(measured.in_place, options);
    if (row.probe) {
      one["ping_pong_ns"] = {{"before", row.probe->before_ns}, {"after", row.probe->after_ns}};
      one["repeats"] = row.probe->repeats;
      one["steady"] = row.probe->steady();
    }
    results.push_back(std::move(one));
  }
  json["out_of_bounds"] = {{"count", run.totals.wrong}, {"okay", run.totals.wrong == 0}};
  json["average_bus_bandwidth"] = {{"bandwidth", run.totals.average_busbw()},
                                   {"okay", run.above_floor()}};
  if (run.contested()) json["crossovers"] = to_json(crossovers_table(run.curves));
  json["complete"] = run.error.empty();
  json["errors"] = Json::array();
  if (!run.error.empty()) json["errors"].push_back(run.error);
  json["end_time"] = utc_now();
  return json;
}

}  // namespace rankine::tools
