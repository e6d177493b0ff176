#include <fmt/format.h>

#include "engine/tools/reproduce_report.h"
#include "engine/tools/svg_plot.h"

namespace rankine::reproduce {
namespace {

using tools::Plot;
using tools::PlotCurve;

constexpr std::string_view kGainLabel = "time over that of Trivance, less 1, in percent";

Plot plot_of(const Panel& panel) {
  Plot plot{.title = std::string(panel.spec.title),
            .y_label = std::string(kGainLabel),
            .y_low = -60,
            .y_high = 100};
  for (const Curve& curve : panel.curves) {
    if (&curve == &panel.trivance()) continue;
    PlotCurve drawn{.name = std::string(curve.contender->name)};
    bool before = curve.latency == nullptr;
    for (const std::uint64_t size : figure_sizes()) {
      const auto bytes = static_cast<double>(size);
      const bool large = panel.form(curve, bytes) == Form::bandwidth;
      // Hollow: the first size that takes the B form.
      drawn.points.push_back({bytes, 100 * panel.gain(curve, bytes), large && !before});
      before = large;
    }
    plot.curves.push_back(std::move(drawn));
  }
  plot.dotted = panel.change_of_form(panel.trivance());
  plot.dotted_name = "Trivance: L to B";
  return plot;
}

// Figure 8: of every bandwidth the fastest of the others.
Plot plot_of_bandwidths(const std::vector<const Panel*>& panels) {
  Plot plot{.title = "Figure 8: 32 x 32 torus, the fastest other algorithm",
            .y_label = std::string(kGainLabel),
            .y_low = -20,
            .y_high = 40};
  for (const Panel* panel : panels) {
    PlotCurve drawn{.name = fmt::format("{} Gb/s", panel->spec.gigabits)};
    for (const std::uint64_t size : figure_sizes()) {
      const auto bytes = static_cast<double>(size);
      drawn.points.push_back({bytes, 100 * panel->gain(panel->rival(bytes), bytes)});
    }
    plot.curves.push_back(std::move(drawn));
  }
  return plot;
}

}  // namespace

std::vector<Picture> pictures_of(const std::vector<Panel>& panels) {
  std::vector<Picture> out;
  std::vector<const Panel*> bandwidths;
  for (const Panel& panel : panels) {
    if (panel.spec.id.starts_with("8-")) {
      bandwidths.push_back(&panel);
    } else {
      out.push_back({fmt::format("trivance-figure-{}.svg", panel.spec.id), to_svg(plot_of(panel))});
    }
  }
  out.push_back({"trivance-figure-8.svg", to_svg(plot_of_bandwidths(bandwidths))});
  return out;
}

}  // namespace rankine::reproduce
