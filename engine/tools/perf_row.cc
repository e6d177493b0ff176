#include "engine/tools/perf_row.h"

#include <algorithm>

#include "algorithms/catalogue.h"
#include "engine/api/check.h"
#include "engine/api/tuning/choose.h"
#include "engine/network/predict.h"
#include "engine/tools/machine.h"
#include "engine/tools/metrics.h"

namespace rankine::tools {
namespace {

constexpr double kGiga = 1e9;

// What a call had that left them to the engine.
Result<int> chosen_segments(const Algorithm& line, const PerfCase& one, const PerfCases& cases) {
  if (cases.on == nullptr) return choose_segments(line, cases.ranks, one.bytes);
  const auto all = predict(line.collective, params_of(one.call.options, cases.ranks), one.bytes,
                           cases.on->fabric, {.sync = cases.on->sync});
  if (!all.ok()) return all.status();
  return std::find_if(all->begin(), all->end(),
                      [&](const Candidate& each) { return each.algorithm == &line; })
      ->params.segments;
}

Result<int> segments_of(const PerfCase& one, const Measured& measured, const PerfCases& cases) {
  const Algorithm* line = find_algorithm(one.call.collective, measured.first().algorithm);
  if (line == nullptr || !line->takes("segments")) return 0;
  if (one.call.options.segments > 0) return one.call.options.segments;
  return chosen_segments(*line, one, cases);
}

}  // namespace

double seconds_of(const Series& series) {
  return series.model_seconds.value_or(series.seconds.median);
}

std::vector<double> slowest_of(const Series& series) {
  if (series.of_rank.empty()) return series.samples;
  std::vector<double> slowest = series.of_rank.front();
  for (const std::vector<double>& rank : series.of_rank) {
    for (std::size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], rank[i]);
  }
  return slowest;
}

Statistics shown_statistics(const Series& series, const PerfOptions& options) {
  std::vector<double> times = slowest_of(series);
  const std::size_t skipped =
      std::min(times.size(), static_cast<std::size_t>(options.skip_batches));
  times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(skipped));
  return summarise(times);
}

double algbw(const PerfRow& row, const Series& series) {
  const double seconds = seconds_of(series);
  return seconds > 0 ? static_cast<double>(row.bytes) / seconds / kGiga : 0;
}

double busbw(const PerfRow& row, const Series& series) {
  return algbw(row, series) * row.bus_factor;
}

std::optional<double> eta(const PerfRow& row, const Series& series) {
  return eta_of(busbw(row, series) * kGiga, row.peak);
}

Result<PerfRow> measure_row(Workbench& workbench, const PerfCase& one, const PerfCases& cases,
                            const PerfOptions& options) {
  const Call& call = one.call;
  std::optional<LatencyBracket> probe;
  auto measured = options.probe ? workbench.measure_steady(call, options.measure, probe.emplace())
                                : workbench.measure(call, options.measure);
  if (!measured.ok()) return measured.status();
  const auto segments = segments_of(one, *measured, cases);
  if (!segments.ok()) return segments.status();
  return PerfRow{.bytes = one.bytes,
                 .count = call.count,
                 .type = call.type,
                 .op = std::string(reduces(call.collective) ? name_of(call.op) : "none"),
                 .root = has_root(call.collective) ? call.root : -1,
                 .segments = *segments,
                 .bus_factor = bus_factor(call.collective, cases.ranks),
                 .measured = std::move(*measured),
                 .probe = probe,
                 .network = cases.network,
                 .peak = cases.peak,
                 .done = local_now()};
}

}  // namespace rankine::tools
