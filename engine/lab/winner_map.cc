#include "engine/lab/winner_map.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <ostream>
#include <utility>

#include "engine/base/parallel.h"
#include "engine/base/units.h"
#include "engine/cli/arguments.h"
#include "engine/cli/drawing.h"
#include "engine/cli/text.h"
#include "engine/lab/commands.h"

namespace rankine::tools {
namespace {

// Colours that colour-blind people can tell apart (after Okabe and Ito), then shades.
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
  auto candidates =
      predict(request.collective, params, bytes, request.fabric, request.simulate, before_each);
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
  parallel_for(map.cells.size(), [&](std::size_t i) {
    const auto before_each = [&] {
      const std::lock_guard lock(mutex);
      if (progress) progress(done, map.cells.size());
      return failed;
    };
    Status status =
        fill(map.cells[i], request, map.ranks[i / columns], map.sizes[i % columns], before_each);
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

namespace {

struct MapArguments {
  Collective collective = Collective::all_reduce;
  std::vector<int> ranks = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
  std::size_t min_bytes = 64, max_bytes = std::size_t{256} << 20;
  std::string algorithms = "all";
  NetworkArguments network;
  const Menu* menu = find_menu("all");
  Sync sync = Sync::dataflow;
  std::string svg, png;
  bool json = false, csv = false;
};

nlohmann::ordered_json to_json(const WinnerMap& map) {
  nlohmann::ordered_json out = {{"collective", name_of(map.collective)},
                                {"network", map.fabric.name},
                                {"ranks", map.ranks},
                                {"sizes", map.sizes}};
  for (std::size_t row = 0; row < map.ranks.size(); ++row) {
    nlohmann::ordered_json cells = nlohmann::ordered_json::array();
    for (std::size_t column = 0; column < map.sizes.size(); ++column) {
      const Winner& w = map.at(row, column);
      if (w.algorithm == nullptr) {
        cells.push_back(nullptr);
      } else {
        cells.push_back({{"algorithm", w.algorithm->name}, {"time", w.seconds}, {"lead", w.lead}});
      }
    }
    out["winners"].push_back(cells);
  }
  return out;
}

Result<Exit> run_map(const MapArguments& a, Console& console) {
  MapRequest request{a.collective, {}, a.ranks, {}, {}, {.sync = a.sync}};
  const auto fabric = network_of(a.network);
  if (!fabric.ok()) return fabric.status();
  request.fabric = *fabric;
  if (a.min_bytes == 0 || a.max_bytes < a.min_bytes) {
    return invalid_argument(
        fmt::format("--minbytes is {} and --maxbytes is {}; allowed are 1 and more, rising",
                    a.min_bytes, a.max_bytes));
  }
  if (a.collective == Collective::barrier) {
    return invalid_argument(
        "collective is barrier, which has no sizes; 'rankine choose barrier --network NAME' shows "
        "the cheapest algorithm");
  }
  for (std::uint64_t m = a.min_bytes; m <= a.max_bytes; m *= 2) request.sizes.push_back(m);
  auto contenders = read_algorithms("--algo", a.algorithms, a.collective);
  if (!contenders.ok()) return contenders.status();
  const auto offered = on_menu(*a.menu, a.collective, *contenders);
  if (!offered.ok()) return offered.status();
  request.contenders = *offered;

  // Checks the files before the work begins, so that no work is lost.
  if (Status s = check_output_files({{"--svg", a.svg}, {"--png", a.png}}); !s.ok()) return s;
  Result<WinnerMap> map = [&] {
    Progress progress(console);
    const auto begin = std::chrono::steady_clock::now();
    return make_winner_map(request, [&](std::size_t done, std::size_t all) {
      if (!progress.due()) return;
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      progress.show(fmt::format("{} of {} cells{}", done, all, time_left(done, all, took.count())));
    });
  }();
  if (!map.ok()) return map.status();
  const std::string svg = to_svg(*map);
  if (!a.svg.empty()) {
    if (Status status = write_picture("--svg", a.svg, svg); !status.ok()) return status;
  }
  if (!a.png.empty()) {
    Status status = write_picture("--png", a.png, svg, "png");
    if (!status.ok()) return status;
  }
  if (a.json) {
    console.out << to_json(*map).dump(2) << '\n';
    return Exit::ok;
  }
  const Table table = winners_table(*map);
  console.out << (a.csv ? to_csv(table) : to_text(table));
  return Exit::ok;
}

}  // namespace

Subcommand add_map(Command tool) {
  auto owned = std::make_shared<MapArguments>();
  MapArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "map",
      "the cheapest algorithm over ranks and sizes on a modelled network, as text and picture");
  add_argument(app, "collective", a.collective, read_collective, "NAME",
               "a collective; 'rankine list' shows all")
      .required();
  add_argument(
      app, "-t,--ranks", a.ranks,
      [](std::string_view argument, std::string_view text) {
        return parse_whole_list(argument, text, 1, 1024);
      },
      "LIST", "N: 8, 2,4,8 or 2..16 (2,3,4,6,8,12 ... 64)");
  add_argument(app, "-b,--minbytes", a.min_bytes, parse_size, "SIZE", "smallest M (64)");
  add_argument(app, "-e,--maxbytes", a.max_bytes, parse_size, "SIZE",
               "largest M; each size is twice the size before (256M)");
  add_text(app, "--algo", a.algorithms, "LIST",
           "only these algorithms of the catalogue: ring,double_tree (all)");
  add_menu(app, a.menu);
  add_argument(app, "--sync", a.sync, read_sync, "NAME", "dataflow or rounds (dataflow)");
  add_network_arguments(app, a.network);
  add_picture_file(app, "--svg", a.svg, "write the picture to this file");
  add_output_file(app, "--png", a.png, "write the picture to this file, as pixels");
  add_formats(app, a.json, a.csv, "the whole map as JSON");
  app.footer(
      "Examples:\n"
      "  rankine map all_reduce --network scale_out --svg map.svg --png map.png\n"
      "  rankine map all_reduce --menu nccl --network scale_up\n"
      "  rankine map all_reduce --algo ring,binary_tree,double_tree,hierarchical --network "
      "two_level\n"
      "Networks:\n" +
      describe_presets());
  return {app, [owned](Console& console) { return run_map(*owned, console); }};
}

}  // namespace rankine::tools
