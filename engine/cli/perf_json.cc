// The JSON report of perf.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <vector>

#include "engine/api/tuning/tuning.h"
#include "engine/base/environment_variable.h"
#include "engine/base/statistics.h"
#include "engine/cli/machine.h"
#include "engine/cli/perf.h"
#include "engine/cli/text.h"

namespace rankine::tools {
namespace {

constexpr double kMicro = 1e6, kGiga = 1e9;

Json series_json(const PerfRow& row, const Series& series) {
  Json json = {
      {"time", seconds_of(series) * kMicro},
      {"alg_bw", algbw(row, series)},
      {"bus_bw", busbw(row, series)},
      {"nwrong", nullptr},
      {"min", series.seconds.min * kMicro},
      {"median", series.seconds.median * kMicro},
      {"p90", nearest_rank(series.samples, 0.9) * kMicro},
      {"p99", series.seconds.p99 * kMicro},
      {"p999", nearest_rank(series.samples, 0.999) * kMicro},
      {"max", series.seconds.max * kMicro},
      {"spread", relative_spread(series.samples)},
      {"batches", series.samples.size()},
      {"calls_per_batch", series.calls},
      {"calls_per_second", seconds_of(series) > 0 ? 1 / seconds_of(series) : 0},
  };
  if (series.wrong >= 0) json["nwrong"] = series.wrong;
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
  const Statistics s = shown_statistics(series, options);
  std::vector<double> shown = slowest_of(series);
  const std::size_t skipped =
      std::min(shown.size(), static_cast<std::size_t>(options.skip_batches));
  shown.erase(shown.begin(), shown.begin() + static_cast<std::ptrdiff_t>(skipped));
  const auto in_us = [](const std::vector<double>& seconds) {
    Json times = Json::array();
    for (const double each : seconds) times.push_back(each * kMicro);
    return times;
  };
  Json json = {
      {"skipped_iterations", skipped},
      {"min_us", s.min * kMicro},
      {"max_us", s.max * kMicro},
      {"avg_us", s.mean * kMicro},
      {"p50_us", s.median * kMicro},
      {"p90_us", nearest_rank(shown, 0.9) * kMicro},
      {"p95_us", nearest_rank(shown, 0.95) * kMicro},
      {"p99_us", s.p99 * kMicro},
      {"p999_us", nearest_rank(shown, 0.999) * kMicro},
      {"stdev_us", s.deviation * kMicro},
      {"cv_pct", s.mean > 0 ? 100 * s.deviation / s.mean : 0},
  };
  json["histogram"] = histogram_json(shown);
  json["times_us"] = in_us(slowest_of(series));
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
  if (options.ports > 0) config["ports"] = options.ports;
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
