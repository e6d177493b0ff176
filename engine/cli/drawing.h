// What all SVG pictures have in common.
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

// With the four characters that mean something in XML written as entities.
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

// About as wide is text of 12 pixels, in pixels.
inline int text_width(std::string_view text) { return 7 * static_cast<int>(text.size()); }

// A picture that stands on its own: `body` on white paper. Sizes in pixels.
inline std::string svg_picture(int width, int height, int font_size, std::string_view body) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"{2}\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{3}</svg>\n",
      width, height, font_size, body);
}

// A plot of curves over sizes, as a picture that stands on its own: logarithmic axis of bytes, or a
// linear one of something else, grid, markers, legend; or several plots in one picture.

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

// At which sizes the cheapest algorithm changes, of measured or modelled times: as data, as text
// and as a picture.

// One network: a curve per algorithm, times in us over bytes, all of the same sizes; a curve
// without a point is of an algorithm that does not run there.
struct NetworkCurves {
  std::string network;
  std::vector<PlotCurve> curves;
};

struct Crossover {
  double bytes = 0;        // from here on
  std::size_t winner = 0;  // the cheapest is this curve
  double us = 0;           // its time here
};

// The first of the sizes, and where another curve takes over: between two neighbouring sizes, where
// straight lines through both curves' times meet (times of the model are straight lines in the
// bytes, but for blocks of whole bytes and numbers of segments that change). Whoever is within a
// thousandth of the cheapest is as cheap: among those the first curve, and whoever is ahead stays.
// Of several that take over between two sizes only the last is seen.
std::vector<Crossover> crossovers(const NetworkCurves& network);

// A table of them; for terminals, each line with "# " before it.
Table crossovers_table(const std::vector<NetworkCurves>& networks);
std::string crossovers_text(const std::vector<NetworkCurves>& networks);

// A panel per network: time over bytes, both logarithmic, and the crossovers marked. Sizes are
// positive, and at least two. `what` begins each title: "all_reduce among 8 ranks".
std::string crossovers_svg(std::string_view what, const std::vector<NetworkCurves>& networks);

// The trees that a schedule's messages make, drawn as trees.

// For each phase and block: who gets it from whom (copies), or adds it for whom (additions). Where
// that makes a tree in which somebody has two children or more, it is drawn, the root first, each
// child below its parent with the round of its first message; blocks that move alike are drawn
// once. Empty where there is no such tree, as in rings and exchanges.
std::string trees_text(const Schedule& schedule, const Goal& goal, bool utf8);

// A schedule as a picture: ranks side by side, time downwards, an arrow per message.

// Copies are blue, additions orange, each with its blocks; several messages from the same rank to
// the same in a round are one arrow. `title` stands above. Rounds from `first` on, `count` of them.
std::string schedule_svg(std::string_view title, const Schedule& schedule, const Goal& goal,
                         int first, int count);

}  // namespace rankine::tools
