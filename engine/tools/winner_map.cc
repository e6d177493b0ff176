#include "engine/tools/winner_map.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "engine/base/units.h"
#include "engine/tools/svg.h"

namespace rankine::tools {
namespace {

// Colours that stay apart for people who see colours differently (after Okabe and Ito), then
// shades.
constexpr std::array<std::string_view, 12> kColours = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                                       "#d55e00", "#56b4e9", "#f0e442", "#7f7f7f",
                                                       "#8c564b", "#9467bd", "#17becf", "#bcbd22"};

std::vector<const Algorithm*> winners_of(const WinnerMap& map) {
  std::vector<const Algorithm*> winners;
  for (const Winner& cell : map.cells) {
    if (cell.algorithm != nullptr &&
        std::find(winners.begin(), winners.end(), cell.algorithm) == winners.end()) {
      winners.push_back(cell.algorithm);
    }
  }
  std::sort(winners.begin(), winners.end());  // catalogue order
  return winners;
}

Status fill(Winner& cell, const MapRequest& request, int ranks, std::uint64_t bytes,
            const std::function<Status()>& before_each) {
  Params params;
  params.ranks = ranks;
  params.segments = 0;
  auto candidates = predict(request.collective, params, bytes, request.fabric, request.simulate,
                            before_each);
  if (!candidates.ok()) return candidates.status();
  std::erase_if(*candidates, [&](const Candidate& c) {
    const auto& only = request.contenders;
    return !c.ok() ||
           (!only.empty() && std::find(only.begin(), only.end(), c.algorithm) == only.end());
  });
  if (candidates->empty()) return {};
  const Candidate& best = candidates->front();
  cell = {best.algorithm, best.seconds, 1};
  if (candidates->size() > 1 && best.seconds > 0) {
    cell.lead = std::max(1.0, (*candidates)[1].seconds / best.seconds);
  }
  return {};
}

}  // namespace

Result<WinnerMap> make_winner_map(const MapRequest& request,
                                  const std::function<void(std::size_t, std::size_t)>& progress) {
  WinnerMap map{request.collective, request.fabric, request.ranks, request.sizes, {}};
  const std::size_t columns = map.sizes.size();
  map.cells.resize(map.ranks.size() * columns);
  std::mutex mutex;
  std::size_t done = 0;
  Status failed;
  tbb::parallel_for(std::size_t{0}, map.cells.size(), [&](std::size_t i) {
    const auto before_each = [&] {
      const std::lock_guard lock(mutex);
      if (progress) progress(done, map.cells.size());
      return failed;
    };
    Status status = fill(map.cells[i], request, map.ranks[i / columns], map.sizes[i % columns],
                         before_each);
    const std::lock_guard lock(mutex);
    if (!status.ok() && failed.ok()) failed = std::move(status);
    if (progress) progress(++done, map.cells.size());
  });
  if (!failed.ok()) return failed;
  return map;
}

Table winners_table(const WinnerMap& map) {
  Table table("ranks", as::bytes("from", "size"), as::text("cheapest", "algorithm", "nothing"),
              as::model_time("time there", "time"), As("{:.2f} x")("the second", "lead"));
  table.title = fmt::format("{}: the cheapest algorithm on {}, from which size on",
                            name_of(map.collective), map.fabric.name);
  for (std::size_t row = 0; row < map.ranks.size(); ++row) {
    for (std::size_t column = 0; column < map.sizes.size(); ++column) {
      const Winner& here = map.at(row, column);
      if (column > 0 && here.algorithm == map.at(row, column - 1).algorithm) continue;
      std::vector<Cell>& cells = table.add(map.ranks[row], map.sizes[column]);
      if (here.algorithm == nullptr) continue;
      cells.insert(cells.end(), {here.algorithm->name, here.seconds, here.lead});
    }
  }
  return table;
}

std::string to_svg(const WinnerMap& map) {
  constexpr int kCell = 26, kLeft = 70, kTop = 50, kBottom = 60, kLegend = 230;
  const int columns = static_cast<int>(map.sizes.size()), rows = static_cast<int>(map.ranks.size());
  const int width = kLeft + columns * kCell + kLegend;
  const auto winners = winners_of(map);
  const int height = std::max(kTop + rows * kCell + kBottom,
                              kTop + static_cast<int>(winners.size()) * 22 + kBottom);
  const auto colour = [&](const Algorithm* algorithm) {
    const auto at = std::find(winners.begin(), winners.end(), algorithm) - winners.begin();
    return kColours[static_cast<std::size_t>(at) % kColours.size()];
  };
  std::string svg = fmt::format(
      "<text x=\"{}\" y=\"24\" font-size=\"15\">{}: the cheapest algorithm on {}</text>\n", kLeft,
      name_of(map.collective), map.fabric.name);
  for (int row = 0; row < rows; ++row) {
    const int y = kTop + (rows - 1 - row) * kCell;
    const auto r = static_cast<std::size_t>(row);
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kLeft - 8,
                       y + kCell * 2 / 3, map.ranks[r]);
    for (int column = 0; column < columns; ++column) {
      const Winner& cell = map.at(r, static_cast<std::size_t>(column));
      if (cell.algorithm == nullptr) continue;
      const double opacity = std::clamp(0.45 + (cell.lead - 1) * 1.1, 0.45, 1.0);
      svg += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" fill-opacity=\"{:.2f}\">"
          "<title>N = {}, {}: {}, {}, second {:.2f} x</title></rect>\n",
          kLeft + column * kCell, y, kCell - 1, kCell - 1, colour(cell.algorithm), opacity,
          map.ranks[r], format_bytes(map.sizes[static_cast<std::size_t>(column)]),
          cell.algorithm->name, format_seconds(cell.seconds), cell.lead);
    }
  }
  const int axis = kTop + rows * kCell;
  for (int column = 0; column < columns; column += std::max(1, columns / 8)) {
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       kLeft + column * kCell + kCell / 2, axis + 18,
                       format_size(map.sizes[static_cast<std::size_t>(column)]));
  }
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">M, bytes</text>\n<text x=\"16\" y=\"{}\" "
      "transform=\"rotate(-90 16 {})\" text-anchor=\"middle\">N, ranks</text>\n",
      kLeft + columns * kCell / 2, axis + 42, kTop + rows * kCell / 2, kTop + rows * kCell / 2);
  int y = kTop;
  for (const Algorithm* algorithm : winners) {
    const int x = kLeft + columns * kCell + 20;
    svg += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"14\" height=\"14\" fill=\"{}\"/>"
        "<text x=\"{}\" y=\"{}\">{}</text>\n",
        x, y, colour(algorithm), x + 22, y + 12, algorithm->name);
    y += 22;
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"#555\">pale: the second is close</text>\n",
                     kLeft + columns * kCell + 20, y + 12);
  return svg_picture(width, height, 12, svg);
}

}  // namespace rankine::tools
