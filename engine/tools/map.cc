#include "engine/tools/map.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "engine/tools/menu.h"
#include "engine/tools/network.h"
#include "engine/tools/text.h"
#include "engine/tools/winner_map.h"

namespace rankine::tools {
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
        "collective is barrier, which has no sizes; 'rankine choose barrier --network NAME' says "
        "which is the cheapest");
  }
  for (std::uint64_t m = a.min_bytes; m <= a.max_bytes; m *= 2) request.sizes.push_back(m);
  auto contenders = read_algorithms("--algo", a.algorithms, a.collective);
  if (!contenders.ok()) return contenders.status();
  const auto offered = on_menu(*a.menu, a.collective, *contenders);
  if (!offered.ok()) return offered.status();
  request.contenders = *offered;

  // Before the work, so that nobody waits for it in vain.
  if (Status s = check_output_files({{"--svg", a.svg}, {"--png", a.png}}); !s.ok()) return s;
  Result<WinnerMap> map = [&] {
    Progress progress(console);
    const auto begin = std::chrono::steady_clock::now();
    return make_winner_map(request, [&](std::size_t done, std::size_t all) {
      if (!progress.due()) return;
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      progress.show(
          fmt::format("{} of {} cells{}", done, all, time_left(done, all, took.count())));
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
               "which one; 'rankine list' shows all")
      .required();
  add_argument(
      app, "-t,--ranks", a.ranks,
      [](std::string_view argument, std::string_view text) {
        return parse_whole_list(argument, text, 1, 1024);
      },
      "LIST", "N: 8, 2,4,8 or 2..16 (2,3,4,6,8,12 ... 64)");
  add_argument(app, "-b,--minbytes", a.min_bytes, parse_size, "SIZE", "smallest M (64)");
  add_argument(app, "-e,--maxbytes", a.max_bytes, parse_size, "SIZE",
               "largest M; from size to size it doubles (256M)");
  add_text(app, "--algo", a.algorithms, "LIST",
           "only these of the catalogue: ring,double_tree (all)");
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
