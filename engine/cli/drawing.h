// The drawings of the tool: plots of curves over sizes, crossovers of algorithms, and schedules as
// trees and as pictures. All pictures are SVG.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/cli/table.h"

namespace rankine::tools {

// Escapes the four special characters of XML.
inline std::string xml_text(std::string_view text) {
  constexpr std::pair<char, std::string_view> kEntities[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
  std::string out;
  for (const char c : text) {
    std::string_view written(&c, 1);
    for (const auto& [plain, entity] : kEntities) {
      if (c == plain) written = entity;
    }
    out += written;
  }
  return out;
}

// The approximate width in pixels of text of 12 pixels.
inline int text_width(std::string_view text) { return 7 * static_cast<int>(text.size()); }

// A self-contained picture: `body` on white paper. Sizes in pixels.
inline std::string svg_picture(int width, int height, int font_size, std::string_view body) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"{2}\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{3}</svg>\n",
      width, height, font_size, body);
}

// Plot is a diagram of curves over sizes, as a self-contained picture: logarithmic axis of bytes,
// or a linear axis of another quantity, with grid, markers and legend; a picture can hold several
// plots.

struct PlotPoint {
  double bytes = 0, y = 0;
  bool hollow = false;
};

struct PlotCurve {
  std::string name;
  std::vector<PlotPoint> points{};  // rising bytes
  bool faded = false;               // a thin grey line behind the others, without a name
};

// A highlighted place of a plot, with a word on it.
struct PlotMark {
  double bytes = 0, y = 0;
  std::string text{};
};

struct Plot {
  std::string title, y_label{};
  // Ends of the axes; curves are cut off at them. bytes_low < bytes_high are positive, and y_low <
  // y_high.
  double bytes_low = 32, bytes_high = 1 << 27;
  double y_low = -50, y_high = 100;
  bool log_y = false;                 // requires positive ends and positive y
  std::optional<double> baseline{0};  // this grid line is darker
  // With x_label, "bytes" is the quantity of the label: on a linear axis, in lines without markers;
  // or with log_x on a logarithmic axis, in plain numbers.
  std::optional<std::string> x_label{};
  bool log_x = false;
  bool legend = true;
  std::vector<PlotCurve> curves{};
  std::optional<double> dotted{};  // a vertical line at this number of bytes
  std::string dotted_name{};       // its name in the legend
  std::vector<PlotMark> marks{};   // a ring around each, and a line down to the axis
};

// Sets the ends of the axes to the ends of the points, with room above and, if y is logarithmic,
// below; otherwise y begins at 0. Requires points of at least two sizes.
void fit_axes(Plot& plot);

// If there are more curves than colours, fades all but that many curves: the ones with the least y
// at the most places stay, and the first curve. Returns the names of the curves that
// stay; empty: all stay.
std::vector<std::string> fade_all_but_least(Plot& plot);
// Fades all curves but the named ones; none if `names` is empty.
void fade_all_but(Plot& plot, const std::vector<std::string>& names);

// Colours and markers distinguish curves; after eight curves they repeat with dashed lines, after
// eight more with dotted lines, and so on. A curve without points is missing in the legend, but
// keeps its colour.
std::string to_svg(const Plot& plot);

// Rows of plots, one below the other.
std::string grid_to_svg(const std::vector<std::vector<Plot>>& rows);

// The curves of one network: a curve per algorithm, times in us over bytes, all for equal sizes; a
// curve without points is an algorithm that does not run there.
struct NetworkCurves {
  std::string network;
  std::vector<PlotCurve> curves;
};

// A size at which the cheapest algorithm changes, for measured or modelled times.
struct Crossover {
  double bytes = 0;        // first size
  std::size_t winner = 0;  // index of the cheapest curve from there on
  double us = 0;           // its time at `bytes`
};

// The first size, and each place where another curve takes over: between two neighbouring sizes, at
// the intersection of straight lines through both curves' times (modelled times are linear in
// bytes, except for blocks of whole bytes and changing numbers of segments). Curves within a
// thousandth of the cheapest count as equal: the first of them wins, and the current winner stays.
// If several curves take over between two sizes, only the last is seen.
std::vector<Crossover> crossovers(const NetworkCurves& network);

// The crossovers as a table; for terminals, each line with "# " before it.
Table crossovers_table(const std::vector<NetworkCurves>& networks);
std::string crossovers_text(const std::vector<NetworkCurves>& networks);

// A panel per network: time over bytes, both logarithmic, with the crossovers marked. Requires at
// least two positive sizes. `what` begins each title: "all_reduce among 8 ranks".
std::string crossovers_svg(std::string_view what, const std::vector<NetworkCurves>& networks);

// Draws the trees formed by a schedule's messages. For each phase and block: the edges from source
// to receiver (copies), or from receiver to source (additions). If they form a tree in which a rank
// has two or more children, it is drawn, the root first, each child below its parent with the round
// of its first message; blocks with equal trees are drawn once. Empty without such a tree, as in
// rings and exchanges.
std::string trees_text(const Schedule& schedule, const CollectiveSpec& goal, bool utf8);

// A picture of a schedule: ranks side by side, time downwards, an arrow per message. Copies are
// blue, additions orange, each with its blocks; several messages between one pair of ranks in a
// round are one arrow. `title` stands above. Draws `count` rounds from `first` on.
std::string schedule_svg(std::string_view title, const Schedule& schedule,
                         const CollectiveSpec& goal, int first, int count);

}  // namespace rankine::tools
