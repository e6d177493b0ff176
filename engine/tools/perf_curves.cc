#include "engine/tools/perf_curves.h"

#include <algorithm>

#include <fmt/format.h>

#include "algorithms/catalogue.h"

namespace rankine::tools {
namespace {

constexpr double kMicro = 1e6;

// In the catalogue's order; nullptr, of the engine's choice, comes first.
std::vector<const Algorithm*> algorithms_of(const std::vector<PerfCases>& all) {
  std::vector<const Algorithm*> found;
  for (const PerfCases& cases : all) {
    for (const AskedAlgorithm& one : cases.algorithms) found.push_back(one.algorithm);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::string algorithm_of(const PerfCase& asked) {
  return asked.call.options.algorithm.empty() ? "the engine's choice"
                                              : std::string(asked.call.options.algorithm);
}

bool two_sizes(const PerfCases& cases) {
  std::vector<std::size_t> sizes;
  for (const PerfCase& row : cases.rows) {
    if (row.bytes > 0) sizes.push_back(row.bytes);
  }
  return !sizes.empty() &&
         std::any_of(sizes.begin(), sizes.end(), [&](auto each) { return each != sizes.front(); });
}

constexpr char kTwoSizes[] = "sizes from 1 byte, two of them, are needed";

}  // namespace

std::string why_no_plot(const PerfOptions& options, const PerfCases& cases) {
  if (options.cycles != 1) return "one cycle is needed, which is the default of --run_cycles";
  if (!options.networks.empty()) return why_no_curves(cases);
  return two_sizes(cases) ? "" : kTwoSizes;
}

std::string why_no_curves(const PerfCases& cases) {
  if (cases.ranks < 2) return "2 ranks and more are needed";
  const Call& first = cases.rows.front().call;
  for (const PerfCase& row : cases.rows) {
    const bool same =
        row.call.type == first.type && row.call.op == first.op && row.call.root == first.root;
    if (!same) return "one --datatype, one --op and one --root are needed";
  }
  return two_sizes(cases) ? "" : kTwoSizes;
}

std::vector<NetworkCurves> curves_of(const std::vector<PerfCases>& all,
                                     std::span<const PerfRow> rows) {
  const std::vector<const Algorithm*> algorithms = algorithms_of(all);
  std::vector<NetworkCurves> networks;
  std::size_t next = 0;
  for (const PerfCases& cases : all) {
    NetworkCurves network{cases.network, {}};
    for (const Algorithm* one : algorithms) {
      network.curves.push_back(
          {one == nullptr ? "the engine's choice" : std::string(one->name), {}});
    }
    for (const PerfCase& asked : cases.rows) {
      const PerfRow& row = rows[next++];
      const Algorithm* line =
          asked.call.options.algorithm.empty()
              ? nullptr
              : find_algorithm(asked.call.collective, asked.call.options.algorithm);
      const auto at = std::find(algorithms.begin(), algorithms.end(), line) - algorithms.begin();
      if (row.bytes == 0) continue;
      network.curves[static_cast<std::size_t>(at)].points.push_back(
          {static_cast<double>(row.bytes), seconds_of(row.measured.first()) * kMicro});
    }
    networks.push_back(std::move(network));
  }
  return networks;
}

std::string machine_svg(std::string_view what, const PerfCases& cases,
                        std::span<const PerfRow> rows) {
  const Call& first = cases.rows.front().call;
  bool types = false, ops = false, roots = false;
  for (const PerfCase& one : cases.rows) {
    types |= one.call.type != first.type;
    ops |= one.call.op != first.op;
    roots |= one.call.root != first.root;
  }
  Plot time{.title = fmt::format("{}: time", what),
            .y_label = "us, out of place",
            .log_y = true,
            .baseline = {}};
  Plot busbw{.title = fmt::format("{}: busbw", what), .y_label = "GB/s, out of place"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PerfRow& row = rows[i];
    if (row.bytes == 0) continue;
    std::string name = algorithm_of(cases.rows[i]);
    if (types) name += fmt::format(" {}", name_of(row.type));
    if (ops) name += fmt::format(" {}", row.op);
    if (roots) name += fmt::format(" root {}", row.root);
    const Series& series = row.measured.first();
    const auto add = [&](Plot& plot, double y) {
      auto curve = std::find_if(plot.curves.begin(), plot.curves.end(),
                                [&](const PlotCurve& each) { return each.name == name; });
      if (curve == plot.curves.end()) {
        curve = plot.curves.insert(curve, {.name = name});
      }
      curve->points.push_back({static_cast<double>(row.bytes), y});
    };
    add(time, seconds_of(series) * kMicro);
    add(busbw, tools::busbw(row, series));
  }
  fade_all_but(busbw, fade_all_but_least(time));
  std::vector<std::vector<Plot>> panels;
  for (Plot* plot : {&time, &busbw}) {
    fit_axes(*plot);
    // Among one rank nothing is on a bus.
    if (plot->y_high > plot->y_low) panels.push_back({std::move(*plot)});
  }
  return grid_to_svg(panels);
}

}  // namespace rankine::tools
