#include "engine/tools/crossovers.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/base/units.h"

namespace rankine::tools {
namespace {

constexpr double kAsCheap = 1.001;
constexpr double kMicro = 1e6;

// The first curve as cheap as any at a size; the size of none where no curve has points.
std::size_t cheapest(const std::vector<PlotCurve>& curves, std::size_t size) {
  double least = std::numeric_limits<double>::infinity();
  for (const PlotCurve& curve : curves) {
    if (size < curve.points.size()) least = std::min(least, curve.points[size].y);
  }
  const auto first = std::find_if(curves.begin(), curves.end(), [&](const PlotCurve& curve) {
    return size < curve.points.size() && curve.points[size].y <= least * kAsCheap;
  });
  return static_cast<std::size_t>(first - curves.begin());
}

}  // namespace

std::vector<Crossover> crossovers(const NetworkCurves& network) {
  const std::vector<PlotCurve>& curves = network.curves;
  std::vector<Crossover> found;
  for (std::size_t i = 0;; ++i) {
    const std::size_t now = cheapest(curves, i);
    if (now == curves.size()) return found;
    const std::vector<PlotPoint>& next = curves[now].points;
    if (i == 0) {
      found.push_back({next[0].bytes, now, next[0].y});
      continue;
    }
    const std::vector<PlotPoint>& before = curves[found.back().winner].points;
    if (before[i].y <= next[i].y * kAsCheap) continue;
    const double behind = std::max(0.0, next[i - 1].y - before[i - 1].y);
    const double ahead = before[i].y - next[i].y;
    const double part = behind / (behind + ahead);
    const auto between = [part](double low, double high) { return low + part * (high - low); };
    found.push_back(
        {between(next[i - 1].bytes, next[i].bytes), now, between(next[i - 1].y, next[i].y)});
  }
}

Table crossovers_table(const std::vector<NetworkCurves>& networks) {
  Table table(as::text("network"), as::bytes("from", "size"), as::text("cheapest", "algorithm"),
              as::model_time("time there", "-"), as::data("time"));
  for (const NetworkCurves& network : networks) {
    for (const auto& [bytes, winner, us] : crossovers(network)) {
      table.add(network.network, bytes, network.curves[winner].name, us / kMicro, us);
    }
  }
  return table;
}

std::string crossovers_text(const std::vector<NetworkCurves>& networks) {
  return "# crossovers: the cheapest algorithm, from which size on\n" +
         to_text(crossovers_table(networks), "# ");
}

std::string crossovers_svg(std::string_view what, const std::vector<NetworkCurves>& networks) {
  std::vector<Plot> panels;
  std::vector<std::string> strong;  // a curve has its colour in all panels
  for (const NetworkCurves& network : networks) {
    Plot plot{.title = fmt::format("{} on {}", what, network.network),
              .y_label = "time of the model, us",
              .log_y = true,
              .baseline = {},
              .curves = network.curves};
    fit_axes(plot);
    const std::vector<Crossover> found = crossovers(network);
    for (std::size_t i = 1; i < found.size(); ++i) {
      plot.marks.push_back({found[i].bytes, found[i].us, format_bytes(found[i].bytes)});
    }
    for (std::string& name : fade_all_but_least(plot)) strong.push_back(std::move(name));
    panels.push_back(std::move(plot));
  }
  for (Plot& plot : panels) fade_all_but(plot, strong);
  return grid_to_svg({panels});
}

}  // namespace rankine::tools
