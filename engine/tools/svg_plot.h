// A plot of curves over sizes, as a picture that stands on its own: logarithmic axis of bytes,
// grid, markers, legend.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rankine::tools {

struct PlotPoint {
  double bytes = 0, y = 0;
  bool hollow = false;
};

struct PlotCurve {
  std::string name;
  std::vector<PlotPoint> points{};  // rising bytes
};

struct Plot {
  std::string title, y_label;
  // Ends of the axes; curves are cut off at them. bytes_low and bytes_high are positive and differ,
  // and so do the others.
  double bytes_low = 32, bytes_high = 1 << 27;
  double y_low = -50, y_high = 100;
  std::vector<PlotCurve> curves{};
  std::optional<double> dotted{};  // a vertical line at so many bytes
  std::string dotted_name{};       // of it, in the legend
};

// Colours and markers tell curves apart, both; after eight they come again.
std::string to_svg(const Plot& plot);

}  // namespace rankine::tools
