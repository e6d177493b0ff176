#include "engine/tools/choose.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <span>

#include "engine/api/tuning/choose.h"
#include "engine/api/tuning/tuning.h"
#include "engine/network/predict.h"
#include "engine/tools/candidate_table.h"
#include "engine/tools/choose_on_threads.h"
#include "engine/tools/menu.h"
#include "engine/tools/network.h"
#include "engine/tools/question.h"
#include "engine/tools/table.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

struct ChooseArguments {
  Collective collective = Collective::all_reduce;
  int ranks = 8;
  std::vector<int> dims;
  std::size_t bytes = std::size_t{1} << 20;
  NetworkArguments network;
  const Menu* menu = find_menu("all");
  std::optional<Sync> sync{};  // none: dataflow
  bool c_real = false, explain = false, json = false, csv = false;
};

// The network's candidates by what they would take if they were as far from the model as on this
// machine. Returns where the factors come from.
Result<std::string> weigh_by_table(const ChooseArguments& a, const Fabric& fabric,
                                   std::vector<Candidate>& candidates) {
  const TuningTable* table = machine_tuning();
  if (table == nullptr) {
    return Status(Code::system,
                  "--c-real needs a tuning table of this machine; 'rankine tune' makes one");
  }
  const std::span<const MeasuredCReal> measured = table->c_real_near(a.collective, a.ranks);
  const auto of = [&](const Algorithm& line) { return c_real_of(measured, line); };
  if (Status status = weigh(candidates, of, fabric, {.sync = a.sync.value_or(Sync::dataflow)});
      !status.ok())
    return status;
  if (candidates.front().c_real) return source_of(measured, *table);
  return Status(
      Code::system,
      fmt::format("--c-real: the table '{}' has no c_real of an algorithm of {} that can "
                  "run here; 'rankine tune --collectives {} --ranks {}' measures them",
                  tuning_file().path, name_of(a.collective), name_of(a.collective), a.ranks));
}

Result<Exit> run_choose(ChooseArguments a, Console& console) {
  a.bytes = vector_bytes(a.collective, a.bytes);
  if (a.network == NetworkArguments{} && a.dims.empty()) {
    if (a.c_real) {
      return invalid_argument(
          "--c-real is for modelled networks: calls on threads of this machine go by what "
          "'rankine tune' measured as it is");
    }
    if (a.sync) {
      return invalid_argument(fmt::format(
          "--sync is {}, which is for modelled networks: ranks of this machine wait for "
          "their data only",
          name_of(*a.sync)));
    }
    if (a.csv) {
      return invalid_argument(
          "--csv has the candidates on a modelled network; --json says what calls on threads of "
          "this machine get");
    }
    if (a.menu->lines.empty()) {
      return choose_on_threads({a.collective, a.ranks, a.bytes, a.explain, a.json}, console);
    }
    return invalid_argument(
        fmt::format("--menu is '{}', which is for modelled networks: on threads of this machine "
                    "calls get what this library ships",
                    a.menu->name));
  }
  std::vector<const Algorithm*> lines;
  for (const Algorithm& line : catalogue()) {
    if (line.collective == a.collective) lines.push_back(&line);
  }
  const auto offered = on_menu(*a.menu, a.collective, std::move(lines));
  if (!offered.ok()) return offered.status();
  const auto network = network_of(a.network);
  if (!network.ok()) return network.status();
  const auto fabric = wired_for(*network, a.ranks, a.dims);
  if (!fabric.ok()) return fabric.status();
  Params params;
  params.ranks = a.ranks;
  params.peer = a.ranks > 1 ? 1 : 0;
  params.segments = 0;
  params.dims = a.dims;
  auto candidates = [&] {
    Progress progress(console);
    std::size_t done = 0, all = 0, simulations = 0;
    return predict(
        a.collective, params, a.bytes, *fabric, {.sync = a.sync.value_or(Sync::dataflow)},
        [&] {
          ++simulations;
          if (progress.due()) {
            progress.show(fmt::format("algorithm {} of {}, {}", done + 1, all,
                                      counted(simulations, "simulation")));
          }
          return Status();
        },
        [&](std::size_t now, std::size_t of) {
          done = now;
          all = of;
        });
  }();
  if (!candidates.ok()) return candidates.status();
  std::erase_if(*candidates, [&](const Candidate& c) { return !a.menu->has(*c.algorithm); });
  std::string source = "network model";
  if (a.c_real && candidates->front().ok()) {
    const auto from = weigh_by_table(a, *fabric, *candidates);
    if (!from.ok()) return from.status();
    source += ", " + *from;
  }
  const Candidate& best = candidates->front();
  if (!best.ok()) return invalid_argument("no algorithm can run: " + best.refusal);
  const Table table = table_of(*candidates);
  if (a.csv) {
    console.out << to_csv(table);
    return Exit::ok;
  }
  if (a.json) {
    nlohmann::ordered_json rows = to_json(table);
    nlohmann::ordered_json out = {{"collective", name_of(a.collective)},
                                  {"ranks", a.ranks},
                                  {"bytes", a.bytes},
                                  {"source", source},
                                  {"network", fabric->name},
                                  {"menu", a.menu->name},
                                  {"sync", name_of(a.sync.value_or(Sync::dataflow))},
                                  {"choice", rows.front()},
                                  {"candidates", std::move(rows)}};
    console.out << out.dump(2) << '\n';
    return Exit::ok;
  }
  const std::string wiring = describe_wiring(*fabric);
  console.out << fmt::format("{} of {} among {} on {}{}: {}, {} ({})\n", name_of(a.collective),
                             format_bytes(a.bytes), counted(a.ranks, "rank"), fabric->name,
                             wiring.empty() ? "" : fmt::format(" ({})", wiring),
                             best.algorithm->name, format_duration(best.expected()), source);
  if (a.explain) console.out << to_text(table);
  return Exit::ok;
}

}  // namespace

Subcommand add_choose(Command tool) {
  auto owned = std::make_shared<ChooseArguments>();
  ChooseArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "choose",
      "which algorithm runs on this machine and why, or is the cheapest on a modelled network");
  add_argument(app, "collective", a.collective, read_collective, "NAME",
               "which one; 'rankine list' shows all")
      .required();
  add_argument(app, "-t,--ranks", a.ranks, Whole{1, 1024}, "N", "ranks (8)");
  add_argument(app, "--bytes", a.bytes, parse_size, "SIZE", "M: 8, 64K, 1M (1M)");
  add_menu(app, a.menu);
  add_argument(app, "--sync", a.sync, read_sync, "NAME", "dataflow or rounds (dataflow)");
  add_dims(app, a.dims);
  add_network_arguments(app, a.network);
  app.add_flag("--c-real", a.c_real,
               "multiply the model's times by how much longer algorithms take on this machine");
  app.add_flag("--explain", a.explain, "list every candidate with its cost, or why it cannot run");
  add_formats(app, a.json, a.csv, "the choice and all candidates as JSON");
  app.footer(
      "Without a network: what calls on threads of this machine get, and whether that is the "
      "default "
      "or of the table that 'rankine tune' made. With one: what the model says; --c-real "
      "multiplies "
      "that by c_real of the table, time over model, as it is among the nearest number of ranks.\n"
      "Examples:\n"
      "  rankine choose all_reduce --ranks 2 --bytes 64K\n"
      "  rankine choose all_reduce --ranks 64 --bytes 64K --network scale_out --explain\n"
      "  rankine choose all_reduce --ranks 64 --bytes 64K --network scale_out --menu nccl\n"
      "  rankine choose broadcast --ranks 9 --bytes 1M --alpha 2us --bandwidth 50GB/s --ports 2\n"
      "Networks:\n" +
      describe_presets());
  return {app, [owned](Console& console) { return run_choose(*owned, console); }};
}

}  // namespace rankine::tools
