#include "engine/tools/svg_plot.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

#include "engine/tools/text.h"
#include "engine/tools/xml_text.h"

namespace rankine::tools {
namespace {

constexpr int kLeft = 64, kTop = 44, kPlotWidth = 620, kPlotHeight = 340, kLegend = 190,
              kBottom = 62, kRow = 22;
constexpr double kMarker = 4;
constexpr int kEdge = 6;  // how far markers may stand out of the frame, left and right

// Told apart by those who do not see all colours (Okabe & Ito).
constexpr std::array<std::string_view, 8> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#000000", "#e69f00", "#56b4e9", "#7f7f7f"};

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

}  // namespace

std::string to_svg(const Plot& plot) {
  const int width = kLeft + kPlotWidth + kLegend, height = kTop + kPlotHeight + kBottom;
  const auto x_of = [&plot](double bytes) {
    return kLeft + kPlotWidth * std::log2(bytes / plot.bytes_low) /
                       std::log2(plot.bytes_high / plot.bytes_low);
  };
  const auto y_of = [&plot](double y) {
    return kTop + kPlotHeight * (plot.y_high - y) / (plot.y_high - plot.y_low);
  };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<clipPath id=\"frame\"><rect x=\"{4}\" y=\"{3}\" width=\"{5}\" height=\"{6}\"/></clipPath>\n"
      "<text x=\"{2}\" y=\"26\" font-size=\"15\">{7}</text>\n",
      width, height, kLeft, kTop, kLeft - kEdge, kPlotWidth + 2 * kEdge, kPlotHeight,
      xml_text(plot.title));

  const double grid = grid_of(plot.y_high - plot.y_low);
  for (double y = std::ceil(plot.y_low / grid) * grid; y <= plot.y_high + grid / 1e6; y += grid) {
    const double value = std::round(y / grid) * grid + 0.0;  // no "-0"
    svg += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
        kLeft, kLeft + kPlotWidth, y_of(y), y_of(y), value == 0 ? "#555" : "#ddd", kLeft - 8,
        y_of(y) + 4, value);
  }
  constexpr double kBetweenLabels = 4;
  for (double bytes = plot.bytes_low; bytes <= plot.bytes_high; bytes *= kBetweenLabels) {
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#eee\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
        x_of(bytes), kTop, kTop + kPlotHeight, kTop + kPlotHeight + 18, format_bytes(bytes));
  }
  svg += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#555\"/>\n"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">size of the vector</text>\n"
      "<text x=\"16\" y=\"{}\" transform=\"rotate(-90 16 {})\" text-anchor=\"middle\">{}</text>\n",
      kLeft, kTop, kPlotWidth, kPlotHeight, kLeft + kPlotWidth / 2, height - 18,
      kTop + kPlotHeight / 2, kTop + kPlotHeight / 2, xml_text(plot.y_label));

  svg += "<g clip-path=\"url(#frame)\">\n";
  if (plot.dotted) {
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#555\" "
        "stroke-dasharray=\"2 3\"/>\n",
        x_of(*plot.dotted), kTop, kTop + kPlotHeight);
  }
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    std::string points;
    for (const PlotPoint& p : plot.curves[i].points) {
      points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x_of(p.bytes), y_of(p.y));
    }
    svg +=
        fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>\n",
                    points, kColours[i % kColours.size()]);
    for (const PlotPoint& p : plot.curves[i].points) {
      svg += marker(i, x_of(p.bytes), y_of(p.y), p.hollow);
    }
  }
  svg += "</g>\n";

  const int x = kLeft + kPlotWidth + 20;
  int y = kTop + 12;
  for (std::size_t i = 0; i < plot.curves.size(); ++i, y += kRow) {
    svg += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"1.8\"/>\n", x,
        x + 24, y, y, kColours[i % kColours.size()]);
    svg += marker(i, x + 12, y, false);
    svg += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", x + 32, y + 4,
                       xml_text(plot.curves[i].name));
  }
  if (plot.dotted) {
    svg += fmt::format(
        "<line x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#555\" stroke-dasharray=\"2 "
        "3\"/>\n<text x=\"{3}\" y=\"{4}\">{5}</text>\n",
        x + 12, y - 8, y + 8, x + 32, y + 4, xml_text(plot.dotted_name));
  }
  return svg + "</svg>\n";
}

}  // namespace rankine::tools
