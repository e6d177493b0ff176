#include "engine/tools/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/units.h"
#include "engine/tools/svg.h"

namespace rankine::tools {
namespace {

constexpr int kLeft = 64, kTop = 44, kPlotWidth = 620, kPlotHeight = 340, kLegend = 190,
              kBottom = 62, kRow = 22, kLeastRow = 15, kSwatch = 32;
constexpr double kMarker = 4;
constexpr int kEdge = 6;  // how far markers may stand out of the frame, left and right

// Told apart by those who do not see all colours (Okabe & Ito).
constexpr std::array<std::string_view, 8> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#000000", "#e69f00", "#56b4e9", "#7f7f7f"};

constexpr std::string_view kFaded = "#d4d4d4";

// Circle, square, triangle, diamond.
std::string marker(std::size_t which, double x, double y, bool hollow) {
  const std::string_view colour = kColours[which % kColours.size()];
  const std::string paint = fmt::format("fill=\"{}\" stroke=\"{}\" stroke-width=\"1.5\"",
                                        hollow ? "white" : colour, colour);
  const double m = kMarker;
  switch (which % 4) {
    case 0:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" {}/>\n", x, y, m, paint);
    case 1:
      return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" {}/>\n", x - m,
                         y - m, 2 * m, 2 * m, paint);
    case 2:
      return fmt::format("<polygon points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" {}/>\n", x,
                         y - m - 1, x - m - 1, y + m, x + m + 1, y + m, paint);
    default:
      return fmt::format(
          "<polygon points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" {}/>\n", x,
          y - m - 1, x + m + 1, y, x, y + m + 1, x - m - 1, y, paint);
  }
}

// 1, 2 or 5 times a power of ten, so that there are 5 to 10 lines.
double grid_of(double range) {
  double grid = std::pow(10, std::floor(std::log10(range)));
  if (range / grid < 2) return grid / 5;
  if (range / grid < 5) return grid / 2;
  return grid;
}

// On a logarithmic axis: 1, 2 and 5 times powers of ten, or those powers alone where they are many.
std::vector<double> log_grid(double low, double high) {
  const bool many = high / low > 1e3;
  std::vector<double> grid;
  for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10) {
    for (const double step : {1, 2, 5}) {
      const double y = step * power;
      if (y < low * (1 - 1e-9) || y > high * (1 + 1e-9) || (many && step > 1)) continue;
      grid.push_back(y);
    }
  }
  return grid;
}

std::vector<double> linear_grid(double low, double high) {
  const double step = grid_of(high - low);
  std::vector<double> grid;
  for (double y = std::ceil(low / step) * step; y <= high + step / 1e6; y += step) {
    grid.push_back(std::round(y / step) * step + 0.0);  // no "-0"
  }
  return grid;
}

constexpr int kHeight = kTop + kPlotHeight + kBottom, kLegendTop = kTop + 12;

// Many names stand closer, and very many need a taller picture.
int legend_rows(const Plot& plot) {
  const auto faded = std::count_if(plot.curves.begin(), plot.curves.end(),
                                   [](const PlotCurve& curve) { return curve.faded; });
  return static_cast<int>(plot.curves.size()) + 1 - (faded > 0 ? static_cast<int>(faded) - 1 : 0);
}

int legend_row(const Plot& plot) {
  const int rows = legend_rows(plot);
  return std::clamp((kHeight - kLegendTop) / rows, kLeastRow, kRow);
}

int height_of(const Plot& plot) {
  if (!plot.legend) return kHeight;
  const int rows = legend_rows(plot);
  return std::max(kHeight, kLegendTop + rows * legend_row(plot));
}

int width_of(const Plot& plot) {
  if (!plot.legend) return kLeft + kPlotWidth + 24;
  constexpr int kAround = 40;
  int legend = kLegend;
  for (const PlotCurve& curve : plot.curves) {
    legend = std::max(legend, kSwatch + text_width(curve.name) + kAround);
  }
  return kLeft + kPlotWidth + legend;
}

std::string dashes(std::size_t curve) {
  constexpr std::array<std::string_view, 3> kDashes = {"6 4", "2 3", "9 3 2 3"};
  if (curve < kColours.size()) return "";
  return fmt::format(" stroke-dasharray=\"{}\"",
                     kDashes[(curve / kColours.size() - 1) % kDashes.size()]);
}

// A ring, and a line from it down to the axis; the word stands below, where the lowest curves leave
// room, and words of neighbours at other heights.
std::string drawing(const PlotMark& mark, std::size_t number, double x, double y) {
  constexpr double kRing = 8, kLine = 14;
  const double below = 2 * kRing + 6 + (number % 2 == 0 ? 0 : kLine);
  const bool leftwards = x + kRing + text_width(mark.text) > kLeft + kPlotWidth;
  return fmt::format(
      "<circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"{2}\" fill=\"none\" stroke=\"black\"/>\n"
      "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{3:.1f}\" y2=\"{4}\" stroke=\"#555\" "
      "stroke-dasharray=\"2 3\"/>\n<text x=\"{5:.1f}\" y=\"{6:.1f}\"{7}>{8}</text>\n",
      x, y, kRing, y + kRing, kTop + kPlotHeight, leftwards ? x - kRing + 2 : x + kRing - 2,
      y + below, leftwards ? " text-anchor=\"end\"" : "", xml_text(mark.text));
}

// Everything but the paper. id: another one for every plot of a picture.
std::string drawing(const Plot& plot, int id) {
  const bool linear_x = plot.x_label && !plot.log_x;
  const auto x_of = [&plot, linear_x](double bytes) {
    if (linear_x) {
      return kLeft + kPlotWidth * (bytes - plot.bytes_low) / (plot.bytes_high - plot.bytes_low);
    }
    return kLeft + kPlotWidth * std::log2(bytes / plot.bytes_low) /
                       std::log2(plot.bytes_high / plot.bytes_low);
  };
  const auto y_of = [&plot](double y) {
    const double part = plot.log_y
                            ? std::log2(plot.y_high / y) / std::log2(plot.y_high / plot.y_low)
                            : (plot.y_high - y) / (plot.y_high - plot.y_low);
    return kTop + kPlotHeight * part;
  };
  std::string svg = fmt::format(
      "<clipPath id=\"frame{0}\"><rect x=\"{1}\" y=\"{2}\" width=\"{3}\" height=\"{4}\"/>"
      "</clipPath>\n<text x=\"{5}\" y=\"26\" font-size=\"15\">{6}</text>\n",
      id, kLeft - kEdge, kTop, kPlotWidth + 2 * kEdge, kPlotHeight, kLeft, xml_text(plot.title));

  for (const double y :
       plot.log_y ? log_grid(plot.y_low, plot.y_high) : linear_grid(plot.y_low, plot.y_high)) {
    svg += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
        kLeft, kLeft + kPlotWidth, y_of(y), y_of(y), y == plot.baseline ? "#555" : "#ddd",
        kLeft - 8, y_of(y) + 4, y);
  }
  const auto x_line = [&](double bytes, const std::string& text) {
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#eee\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
        x_of(bytes), kTop, kTop + kPlotHeight, kTop + kPlotHeight + 18, text);
  };
  constexpr double kBetweenLabels = 4;
  if (linear_x) {
    for (const double x : linear_grid(plot.bytes_low, plot.bytes_high)) {
      x_line(x, fmt::format("{:g}", x));
    }
  } else {
    for (double bytes = plot.bytes_low; bytes <= plot.bytes_high; bytes *= kBetweenLabels) {
      x_line(bytes, plot.x_label ? fmt::format("{:.0f}", bytes) : format_bytes(bytes));
    }
  }
  svg += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#555\"/>\n"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n"
      "<text x=\"16\" y=\"{}\" transform=\"rotate(-90 16 {})\" text-anchor=\"middle\">{}</text>\n",
      kLeft, kTop, kPlotWidth, kPlotHeight, kLeft + kPlotWidth / 2, kHeight - 18,
      xml_text(plot.x_label.value_or("size of the vector")), kTop + kPlotHeight / 2,
      kTop + kPlotHeight / 2, xml_text(plot.y_label));

  svg += fmt::format("<g clip-path=\"url(#frame{})\">\n", id);
  if (plot.dotted) {
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#555\" "
        "stroke-dasharray=\"2 3\"/>\n",
        x_of(*plot.dotted), kTop, kTop + kPlotHeight);
  }
  const auto line_of = [&](const PlotCurve& curve) {
    std::string points;
    for (const PlotPoint& p : curve.points) {
      points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x_of(p.bytes), y_of(p.y));
    }
    return points;
  };
  std::vector<const PlotCurve*> strong;  // in colours
  for (const PlotCurve& curve : plot.curves) {
    if (!curve.faded) {
      strong.push_back(&curve);
      continue;
    }
    svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", line_of(curve),
                       kFaded);
  }
  const std::size_t faded = plot.curves.size() - strong.size();
  for (std::size_t i = 0; i < strong.size(); ++i) {
    const std::string points = line_of(*strong[i]);
    svg += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{}/>\n", points,
        kColours[i % kColours.size()], dashes(i));
    if (linear_x) continue;
    for (const PlotPoint& p : strong[i]->points) {
      svg += marker(i, x_of(p.bytes), y_of(p.y), p.hollow);
    }
  }
  for (std::size_t i = 0; i < plot.marks.size(); ++i) {
    svg += drawing(plot.marks[i], i, x_of(plot.marks[i].bytes), y_of(plot.marks[i].y));
  }
  svg += "</g>\n";
  if (!plot.legend) return svg;

  const int x = kLeft + kPlotWidth + 20;
  int y = kLegendTop;
  const int row = legend_row(plot);
  for (std::size_t i = 0; i < strong.size(); ++i) {
    if (strong[i]->points.empty()) continue;
    svg += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"1.8\"{}/>\n", x,
        x + 24, y, y, kColours[i % kColours.size()], dashes(i));
    svg += marker(i, x + 12, y, false);
    svg += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", x + kSwatch, y + 4,
                       xml_text(strong[i]->name));
    y += row;
  }
  if (faded > 0) {
    svg += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\" stroke=\"{}\"/>\n"
        "<text x=\"{}\" y=\"{}\">{} others</text>\n",
        x, x + 24, y, y, kFaded, x + kSwatch, y + 4, faded);
    y += row;
  }
  if (plot.dotted) {
    svg += fmt::format(
        "<line x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#555\" stroke-dasharray=\"2 "
        "3\"/>\n<text x=\"{3}\" y=\"{4}\">{5}</text>\n",
        x + 12, y - 8, y + 8, x + kSwatch, y + 4, xml_text(plot.dotted_name));
  }
  return svg;
}

}  // namespace

std::string grid_to_svg(const std::vector<std::vector<Plot>>& rows) {
  int width = 0;
  for (const std::vector<Plot>& row : rows) {
    int right = 0;
    for (const Plot& plot : row) right += width_of(plot);
    width = std::max(width, right);
  }
  std::string plots;
  int y = 0, id = 0;
  for (const std::vector<Plot>& row : rows) {
    int x = 0, height = kHeight;
    for (const Plot& plot : row) {
      height = std::max(height, height_of(plot));
      plots +=
          fmt::format("<g transform=\"translate({} {})\">\n{}</g>\n", x, y, drawing(plot, id++));
      x += width_of(plot);
    }
    y += height;
  }
  return svg_picture(width, y, 12, plots);
}

std::vector<std::string> fade_all_but_least(Plot& plot) {
  if (plot.curves.size() <= kColours.size()) return {};
  std::map<double, const PlotCurve*> least;  // by place
  for (const PlotCurve& curve : plot.curves) {
    for (const PlotPoint& point : curve.points) {
      const auto [place, first] = least.try_emplace(point.bytes, &curve);
      if (first) continue;
      const auto y_there = [&](const PlotCurve& of) {
        return std::find_if(of.points.begin(), of.points.end(),
                            [&](const PlotPoint& each) { return each.bytes == point.bytes; })
            ->y;
      };
      if (point.y < y_there(*place->second)) place->second = &curve;
    }
  }
  std::vector<std::pair<int, std::size_t>> order;  // places won, negative; then as they stand
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    const auto won = std::count_if(least.begin(), least.end(), [&](const auto& place) {
      return place.second == &plot.curves[i];
    });
    order.emplace_back(i == 0 ? std::numeric_limits<int>::min() : -static_cast<int>(won), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::string> names;
  for (const auto& [won, i] : order) {
    if (names.size() < kColours.size() && won < 0) names.push_back(plot.curves[i].name);
  }
  fade_all_but(plot, names);
  return names;
}

void fade_all_but(Plot& plot, const std::vector<std::string>& names) {
  for (PlotCurve& curve : plot.curves) {
    curve.faded =
        !names.empty() && std::find(names.begin(), names.end(), curve.name) == names.end();
  }
}

void fit_axes(Plot& plot) {
  constexpr double kRoom = 1.3;
  plot.bytes_low = plot.y_low = std::numeric_limits<double>::infinity();
  plot.bytes_high = plot.y_high = 0;
  for (const PlotCurve& curve : plot.curves) {
    for (const PlotPoint& point : curve.points) {
      plot.bytes_low = std::min(plot.bytes_low, point.bytes);
      plot.bytes_high = std::max(plot.bytes_high, point.bytes);
      plot.y_low = std::min(plot.y_low, point.y);
      plot.y_high = std::max(plot.y_high, point.y);
    }
  }
  plot.y_low = plot.log_y ? plot.y_low / kRoom : 0;
  plot.y_high *= kRoom;
}

std::string to_svg(const Plot& plot) { return grid_to_svg({{plot}}); }

}  // namespace rankine::tools
