// A plot of curves over sizes, as a picture that stands on its own: logarithmic axis of bytes, or a
// linear one of something else, grid, markers, legend; or several plots in one picture.
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
  bool faded = false;               // a thin grey line behind the others, without a name
};

// A place that a plot points out, with a word on it.
struct PlotMark {
  double bytes = 0, y = 0;
  std::string text{};
};

struct Plot {
  std::string title, y_label{};
  // Ends of the axes; curves are cut off at them. bytes_low and bytes_high are positive and differ,
  // and so do the others.
  double bytes_low = 32, bytes_high = 1 << 27;
  double y_low = -50, y_high = 100;
  bool log_y = false;                 // both ends positive then, and so every y
  std::optional<double> baseline{0};  // this grid line is darker
  // With a label of its own "bytes" are whatever the label says: on a linear axis, in lines without
  // markers; or on a logarithmic one as ever, in plain numbers.
  std::optional<std::string> x_label{};
  bool log_x = false;
  bool legend = true;
  std::vector<PlotCurve> curves{};
  std::optional<double> dotted{};  // a vertical line at so many bytes
  std::string dotted_name{};       // of it, in the legend
  std::vector<PlotMark> marks{};   // a ring around each, and a line down to the axis
};

// Gives the axes their ends: those of what is drawn, with room above and, where y is logarithmic,
// below; else y begins at 0. There are points, of two sizes at least.
void fit_axes(Plot& plot);

// Of more curves than there are colours, all but as many fade: those with the least y at the most
// places stay, and the first one. Returns which stay, by their names; empty: all do.
std::vector<std::string> fade_all_but_least(Plot& plot);
// All but those fade; none where `names` is empty.
void fade_all_but(Plot& plot, const std::vector<std::string>& names);

// Colours and markers tell curves apart, both; after eight they come again, with dashed lines, and
// after eight more with dotted ones and so on. A curve without a point has no legend, but its
// colour.
std::string to_svg(const Plot& plot);

// Rows of plots, one below the other.
std::string grid_to_svg(const std::vector<std::vector<Plot>>& rows);

}  // namespace rankine::tools
