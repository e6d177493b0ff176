#include "engine/tools/network_command.h"

#include <fmt/format.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "engine/network/fabric.h"
#include "engine/network/network_file.h"
#include "engine/network/network_members.h"
#include "engine/tools/network.h"
#include "engine/tools/table.h"

namespace rankine::tools {
namespace {

struct NetworkCommandArguments {
  std::string network;  // a preset's name or a file's; empty: all presets
  int ranks = 0;        // 0: none in particular
  std::vector<int> dims;
  bool schema = false;
};

std::string describe_members() {
  Table table(as::text(""), as::text(""));
  for (const NetworkMember& row : network_members()) {
    // Presets are listed with their sources.
    const std::string allowed = row.kind == NetworkMember::Kind::preset ? "" : row.allowed();
    table.add(row.name, fmt::format("{}: {}{}", row.example, row.help,
                                    allowed.empty() ? "" : "; allowed are " + allowed));
  }
  return to_text(table, "  ");
}

Result<Exit> run_network(const NetworkCommandArguments& a, Console& console) {
  if (a.schema) {
    console.out << network_schema();
    return Exit::ok;
  }
  if (a.network.empty()) {
    if (a.ranks > 0 || !a.dims.empty()) {
      return invalid_argument("a network is needed with --ranks and --dims");
    }
    console.out << describe_presets();
    return Exit::ok;
  }
  if (a.ranks == 0 && !a.dims.empty()) return invalid_argument("--dims needs --ranks");
  auto fabric = find_network("network", a.network);
  if (fabric.ok() && a.ranks > 0) fabric = wired_for(*fabric, a.ranks, a.dims);
  if (!fabric.ok()) return fabric.status();
  const auto text = write_network(*fabric);
  if (!text.ok()) return text.status();
  console.out << *text;
  return Exit::ok;
}

}  // namespace

Subcommand add_network(Command tool) {
  auto owned = std::make_shared<NetworkCommandArguments>();
  NetworkCommandArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "network", "modelled networks: presets, files that are checked, and what files may say");
  const Option network =
      add_text(app, "network", a.network, "NAME",
               "a preset or a JSON file, to be checked and printed as a file (all presets)");
  add_argument(app, "-t,--ranks", a.ranks, Whole{1, Routes::kMostRanks}, "N",
               "also check it for so many ranks, and fill in what it leaves open");
  add_dims(app, a.dims);
  app.add_flag("--schema", a.schema, "the JSON Schema of network files (draft 2020-12)")
      .excludes(network);
  app.footer(
      "Examples:\n"
      "  rankine network\n"
      "  rankine network torus > mine.json\n"
      "  rankine network mine.json --ranks 64 --dims 8x8\n"
      "  rankine network --schema > network.schema.json\n"
      "A file is one JSON object; all members may be missing:\n" +
      describe_members() + "Presets:\n" + describe_presets());
  return {app, [owned](Console& console) { return run_network(*owned, console); }};
}

}  // namespace rankine::tools
