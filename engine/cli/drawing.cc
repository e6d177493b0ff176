#include "engine/cli/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/units.h"
#include "engine/read/draw.h"

namespace rankine::tools {
namespace {

constexpr int kLeft = 64, kTop = 44, kPlotWidth = 620, kPlotHeight = 340, kLegend = 190,
              kBottom = 62, kRow = 22, kLeastRow = 15, kSwatch = 32;
constexpr double kMarker = 4;
constexpr int kEdge = 6;  // extent of markers beyond the frame, left and right

// Distinguishable with colour blindness (Okabe & Ito).
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

// A step of 1, 2 or 5 times a power of ten that gives 5 to 10 lines.
double grid_of(double range) {
  double grid = std::pow(10, std::floor(std::log10(range)));
  if (range / grid < 2) return grid / 5;
  if (range / grid < 5) return grid / 2;
  return grid;
}

// For a logarithmic axis: 1, 2 and 5 times powers of ten, or powers of ten alone on a long axis.
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
    grid.push_back(std::round(y / step) * step + 0.0);  // avoids "-0"
  }
  return grid;
}

constexpr int kHeight = kTop + kPlotHeight + kBottom, kLegendTop = kTop + 12;

// Many names stand closer; even more names need a taller picture.
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

// Draws a ring, and a line from it down to the axis; the word stands below, where the lowest curves
// leave room, and words of neighbours alternate in height.
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

// Draws everything but the paper. `id` must be unique in the picture.
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
  std::vector<const PlotCurve*> strong;  // with a colour
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
      const auto y_on_curve = [&](const PlotCurve& of) {
        return std::find_if(of.points.begin(), of.points.end(),
                            [&](const PlotPoint& each) { return each.bytes == point.bytes; })
            ->y;
      };
      if (point.y < y_on_curve(*place->second)) place->second = &curve;
    }
  }
  std::vector<std::pair<int, std::size_t>> order;  // minus places won; then by index
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

namespace {

constexpr double kAsCheap = 1.001;
constexpr double kUsPerSecond = 1e6;

// The first curve that is as cheap as any at a size; the number of curves if no curve has points.
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
      table.add(network.network, bytes, network.curves[winner].name, us / kUsPerSecond, us);
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
  std::vector<std::string> strong;  // a curve has one colour in all panels
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

namespace {

// From a child to its parent, with the first round of a message between them.
struct Edge {
  Rank parent = 0;
  int round = 0;
  bool operator==(const Edge&) const = default;
};
using Edges = std::map<Rank, Edge>;

struct Tree {
  Rank root = 0;
  Edges edges{};
};

struct Moves {
  Edges edges{};
  bool is_tree = true;

  void add(Rank child, Rank parent, int round) {
    const auto [found, is_new] = edges.try_emplace(child, Edge{parent, round});
    is_tree = is_tree && (is_new || found->second.parent == parent);
  }
};

// Requires one root above all ranks, and a rank with two children.
std::optional<Tree> tree_of(const Moves& moves) {
  if (!moves.is_tree || moves.edges.empty()) return std::nullopt;
  std::set<Rank> roots;
  std::map<Rank, int> children;
  for (const auto& [child, edge] : moves.edges) {
    if (!moves.edges.contains(edge.parent)) roots.insert(edge.parent);
    ++children[edge.parent];
    Rank up = child;
    std::size_t steps = 0;
    for (auto at = moves.edges.find(up); at != moves.edges.end(); at = moves.edges.find(up)) {
      up = at->second.parent;
      if (++steps > moves.edges.size()) return std::nullopt;  // a circle
    }
  }
  const bool branches = std::any_of(children.begin(), children.end(),
                                    [](const auto& each) { return each.second > 1; });
  if (roots.size() != 1 || !branches) return std::nullopt;
  return Tree{*roots.begin(), moves.edges};
}

void draw_below(const Edges& edges, Rank parent, const std::string& margin, bool utf8,
                std::string& out) {
  std::vector<std::pair<int, Rank>> children;  // by round
  for (const auto& [child, edge] : edges) {
    if (edge.parent == parent) children.push_back({edge.round, child});
  }
  std::sort(children.begin(), children.end());
  for (const auto& [round, child] : children) {
    const bool last = child == children.back().second;
    const std::string_view branch = utf8 ? (last ? "└─ " : "├─ ") : (last ? "`- " : "|- ");
    out += fmt::format("{}{}{} (round {})\n", margin, branch, child, round);
    draw_below(edges, child, margin + (last ? "   " : utf8 ? "│  " : "|  "), utf8, out);
  }
}

std::string list_of(const std::vector<Block>& blocks) {
  if (blocks.size() == 1) return fmt::format("block {}", blocks.front());
  const bool run = blocks.back() - blocks.front() + 1 == static_cast<Block>(blocks.size());
  if (run) return fmt::format("blocks {} to {}", blocks.front(), blocks.back());
  return fmt::format("blocks {}, {}{}", blocks[0], blocks[1],
                     blocks.size() > 2 ? fmt::format(", ... {}", blocks.back()) : "");
}

// True if the trees are equal except for their rounds.
bool alike(const Tree& a, const Tree& b) {
  return a.root == b.root && std::equal(a.edges.begin(), a.edges.end(), b.edges.begin(),
                                        b.edges.end(), [](const auto& x, const auto& y) {
                                          return x.first == y.first &&
                                                 x.second.parent == y.second.parent;
                                        });
}

}  // namespace

std::string trees_text(const Schedule& schedule, const CollectiveSpec& goal, bool utf8) {
  // Phases in their order, then additions before copies, then blocks.
  std::vector<std::string> phases;
  std::map<std::pair<std::size_t, bool>, std::map<Block, Moves>> moves;
  for (const RoundView& view : view_rounds(schedule, goal)) {
    if (view.round < 0) continue;
    if (phases.empty() || phases.back() != view.phase) phases.push_back(view.phase);
    for (const TransferView& transfer : view.transfers) {
      const bool copies = transfer.kind == TransferKind::copy;
      for (const Rank from : transfer.from) {
        for (const Rank to : transfer.to) {
          if (from == to) continue;
          for (const Block block : transfer.what) {
            moves[{phases.size() - 1, copies}][block].add(copies ? to : from, copies ? from : to,
                                                          view.round);
          }
        }
      }
    }
  }
  std::string out;
  for (const auto& [key, blocks] : moves) {
    std::vector<std::pair<Tree, std::vector<Block>>> trees;
    for (const auto& [block, all] : blocks) {
      const auto tree = tree_of(all);
      if (!tree) continue;
      const auto same = std::find_if(trees.begin(), trees.end(),
                                     [&](const auto& each) { return alike(each.first, *tree); });
      if (same != trees.end()) {
        same->second.push_back(block);
      } else {
        trees.push_back({*tree, {block}});
      }
    }
    constexpr std::size_t kMostTrees = 4;
    for (std::size_t i = 0; i < std::min(kMostTrees, trees.size()); ++i) {
      const auto& [tree, of] = trees[i];
      const std::string& phase = phases[key.first];
      out += fmt::format("{}{} {} the tree{}\n{}\n", phase.empty() ? "" : phase + ": ", list_of(of),
                         key.second ? "down" : "up",
                         of.size() > 1 ? fmt::format(", rounds of block {}", of.front()) : "",
                         tree.root);
      draw_below(tree.edges, tree.root, "", utf8, out);
      out += "\n";
    }
    if (trees.size() > kMostTrees) {
      out += fmt::format("and {} trees more, rooted elsewhere or of other blocks\n\n",
                         trees.size() - kMostTrees);
    }
  }
  return out;
}

namespace {

constexpr int kColumnsLeft = 90, kRowsTop = 70, kColumn = 90, kRowsMargin = 40;

int x_of(Rank r) { return kColumnsLeft + r * kColumn; }

// "3", "0..3", "0,2,5", shortened to the available room.
std::string blocks_text(std::vector<Block> blocks) {
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  if (blocks.size() > 1 &&
      blocks.back() - blocks.front() + 1 == static_cast<Block>(blocks.size())) {
    return fmt::format("{}..{}", blocks.front(), blocks.back());
  }
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, blocks.size()); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ",", blocks[i]);
  }
  return blocks.size() > kShown ? text + ",.." : text;
}

using Arrows = std::map<std::tuple<Rank, Rank, TransferKind>, std::vector<Block>>;

Arrows arrows_of(const RoundView& view) {
  Arrows arrows;
  for (const TransferView& transfer : view.transfers) {
    for (const Rank from : transfer.from) {
      for (const Rank to : transfer.to) {
        auto& blocks = arrows[{from, to, transfer.kind}];
        blocks.insert(blocks.end(), transfer.what.begin(), transfer.what.end());
      }
    }
  }
  return arrows;
}

// Places of words without overlap.
class Labels {
 public:
  bool take(int x, int y, int width) {
    constexpr int kLine = 12, kBetween = 10;
    for (const auto& [other_x, other_y, other_width] : taken_) {
      if (std::abs(x - other_x) < (width + other_width) / 2 + kBetween &&
          std::abs(y - other_y) < kLine) {
        return false;
      }
    }
    taken_.emplace_back(x, y, width);
    return true;
  }

 private:
  std::vector<std::tuple<int, int, int>> taken_;
};

// The vertical place of a round. Rounds with many messages between many ranks are taller, to fit
// the words.
struct Band {
  int top, height;
};

int height_of(const std::vector<RoundView>& rounds, int ranks) {
  constexpr int kUsual = 70, kTallest = 300, kOfAnArrow = 4;
  std::size_t most = 0;
  for (const RoundView& view : rounds) most = std::max(most, arrows_of(view).size());
  const int arrows = static_cast<int>(std::min<std::size_t>(most, kTallest));
  return arrows <= 2 * ranks ? kUsual : std::clamp(kOfAnArrow * arrows, kUsual, kTallest);
}

std::string arrow(Rank from, Rank to, TransferKind kind, const std::vector<Block>& blocks,
                  Band band, Labels& labels) {
  const bool adds = kind == TransferKind::reduce;
  const char* colour = adds ? "#d55e00" : "#0072b2";
  const std::string label = fmt::format("{}{}", adds ? "+" : "", blocks_text(blocks));
  if (from == to) {  // local work
    return fmt::format(
        "<circle cx=\"{0}\" cy=\"{1}\" r=\"5\" fill=\"{2}\"/>\n"
        "<text x=\"{3}\" y=\"{1}\" fill=\"{2}\">{4}</text>\n",
        x_of(from), band.top + band.height / 2, colour, x_of(from) + 8, xml_text(label));
  }
  const int x1 = x_of(from), x2 = x_of(to), y1 = band.top + 8, y2 = band.top + band.height - 8;
  int x = 0, y = 0;
  // Nearer to the sender, so that the two directions of an exchange do not meet; otherwise any free
  // place.
  for (const int percent : {30, 20, 40, 60, 75, 50, 85, 30}) {
    x = x1 + (x2 - x1) * percent / 100;
    y = y1 + (y2 - y1) * percent / 100;
    if (labels.take(x, y, text_width(label))) break;
  }
  return fmt::format(
      "<line x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{3}\" stroke=\"{4}\" "
      "stroke-width=\"1.5\" marker-end=\"url(#{5})\"/>\n"
      "<text x=\"{6}\" y=\"{7}\" fill=\"{4}\" text-anchor=\"middle\" stroke=\"white\" "
      "stroke-width=\"3\" paint-order=\"stroke\">{8}</text>\n",
      x1, y1, x2, y2, colour, adds ? "adds" : "copies", x, y, xml_text(label));
}

std::string arrow_head(const char* name, const char* colour) {
  return fmt::format(
      "<marker id=\"{}\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" "
      "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" "
      "fill=\"{}\"/></marker>\n",
      name, colour);
}

}  // namespace

std::string schedule_svg(std::string_view title, const Schedule& schedule,
                         const CollectiveSpec& goal, int first, int count) {
  const std::vector<RoundView> rounds = view_rounds(schedule, goal);
  const int row = height_of(rounds, schedule.ranks);
  const int height = kRowsTop + count * row + kRowsMargin;
  std::string body =
      "<defs>\n" + arrow_head("copies", "#0072b2") + arrow_head("adds", "#d55e00") + "</defs>\n";
  body += fmt::format("<text x=\"20\" y=\"24\" font-size=\"15\">{}</text>\n", xml_text(title));
  for (Rank r = 0; r < schedule.ranks; ++r) {
    body += fmt::format(
        "<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\">rank {2}</text>\n"
        "<line x1=\"{0}\" y1=\"{3}\" x2=\"{0}\" y2=\"{4}\" stroke=\"#bbbbbb\"/>\n",
        x_of(r), kRowsTop - 12, r, kRowsTop, kRowsTop + count * row);
  }
  for (const RoundView& view : rounds) {
    if (view.round < first || view.round >= first + count) continue;
    const Band band{kRowsTop + (view.round - first) * row, row};
    body +=
        fmt::format("<text x=\"10\" y=\"{}\">round {}</text>\n", band.top + row / 2, view.round);
    body += fmt::format("<line x1=\"10\" y1=\"{0}\" x2=\"{1}\" y2=\"{0}\" stroke=\"#eeeeee\"/>\n",
                        band.top, x_of(schedule.ranks - 1) + kRowsMargin);
    Labels labels;
    for (const auto& [ends, blocks] : arrows_of(view)) {
      const auto& [from, to, kind] = ends;
      body += arrow(from, to, kind, blocks, band, labels);
    }
  }
  const int words = 40 + 8 * static_cast<int>(title.size());
  return svg_picture(std::max(words, x_of(schedule.ranks - 1) + kColumn), height, 12, body);
}

}  // namespace rankine::tools
