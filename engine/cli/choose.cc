// The command `rankine choose`: compares the algorithms for a modelled network or for this
// machine's threads, and explains the choice.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/api/communicator.h"
#include "engine/api/environment.h"
#include "engine/api/plans.h"
#include "engine/api/tuning/choose.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/files.h"
#include "engine/base/status.h"
#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/machine.h"
#include "engine/cli/question.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "engine/network/predict.h"

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
  std::string c_real_of;  // text of --c-real-of
};

// The choice comes first, with a mark; algorithms that cannot run come last.
Table table_of(const std::vector<Candidate>& candidates) {
  const bool weighed = std::any_of(candidates.begin(), candidates.end(),
                                   [](const Candidate& c) { return c.c_real.has_value(); });
  const auto has_segments = [](const Candidate& c) {
    return c.ok() && c.algorithm->takes("segments");
  };
  const bool segmented = std::any_of(candidates.begin(), candidates.end(), has_segments);
  Table table(as::text("", "-"), as::text("algorithm"), as::model_time("time"),
              As("{:.3g}")("c_real").when(weighed), as::model_time("expected").when(weighed),
              As("{:.2f} x")("to best", "-"), "rounds", as::number("segments").when(segmented),
              as::text("", "-"), as::data("refusal"));
  for (const Candidate& c : candidates) {
    const bool known = c.ok() && (!weighed || c.c_real);
    const double best = candidates.front().expected();
    std::vector<Cell>& row = table.add(&c == candidates.data() && c.ok() ? "*" : "",
                                       c.algorithm->name, c.ok() ? Cell(c.seconds) : Cell(),
                                       c.c_real, c.c_real ? Cell(c.expected()) : Cell());
    row.push_back(!known ? Cell() : Cell(best > 0 ? c.expected() / best : 1.0));
    row.push_back(c.ok() ? Cell(c.rounds) : Cell());
    row.push_back(has_segments(c) ? Cell(c.params.segments) : Cell());
    row.push_back(!c.ok() ? "cannot run: " + c.refusal : known ? "" : "no c_real was measured");
    if (!c.ok()) row.push_back(c.refusal);
  }
  return table;
}

// The source of c_real: "c_real measured among 4 ranks, table of 2026-11-22T16:04:04Z".
std::string source_of(std::span<const MeasuredCReal> measured, const TuningTable& table) {
  return fmt::format("c_real measured among {}, table of {}",
                     counted(measured.front().ranks, "rank"), table.made());
}

// The costs that decided, in the order of all costs.
std::vector<CostField> deciding(const Choice& choice) {
  std::vector<CostField> fields;
  std::copy_if(cost_fields().begin(), cost_fields().end(), std::back_inserter(fields),
               [&](const CostField& field) {
                 return std::find(choice.by.begin(), choice.by.end(), field.value) !=
                        choice.by.end();
               });
  return fields;
}

// The values of the deciding costs.
std::string explain(const Choice& choice, const Costs& costs) {
  std::string text;
  for (const CostField& field : deciding(choice)) {
    const std::size_t value = costs.*field.value;
    text += fmt::format("  {}: {} = {}{}\n", field.decides, field.name, value_text(field, value),
                        value != Costs().*field.value ? ", measured here" : "");
  }
  return text;
}

// The model's times of the contenders, and the reason why they decided or not.
std::string explain_c_real(const ChooseArguments& a, const Choice& choice,
                           const TuningTable& table) {
  const std::string from = source_of(table.c_real_near(a.collective, a.ranks), table);
  return fmt::format("  {}; the default stays unless it is {} times the best of\n{}", from, kMargin,
                     to_text(table_of(choice.by_model), "  "));
}

// The engine's choice for calls on this machine's threads that name no algorithm, and its reason.
Result<Exit> choose_on_threads(const ChooseArguments& a, Console& console) {
  const auto environment = read_environment().value();
  if (environment.network != nullptr) {
    return invalid_argument(fmt::format(
        "environment variable RANKINE_NETWORK is '{}', which puts programs' calls on that network: "
        "unset it, or ask with --network",
        environment_variable("RANKINE_NETWORK")));
  }
  const TuningTable* table = machine_tuning();
  Costs costs = costs_among(a.ranks, machine_costs());
  if (!environment.trials) costs.trial_max_bytes = 0;
  const Choice chosen =
      rankine::choose(a.collective, a.ranks, a.bytes, Buffers::apart, table, costs);
  const TuningRow* row = chosen.row;
  const Algorithm* choice = environment.algorithm[static_cast<std::size_t>(a.collective)];
  std::string source = "environment", why = "RANKINE_ALGO says so";
  if (choice == nullptr) {
    choice = chosen.algorithm;
    source = row != nullptr ? "table" : chosen.by_c_real ? "c_real" : "default";
    if (chosen.by_c_real) {
      why = source_of(table->c_real_near(a.collective, a.ranks), *table);
    } else if (row != nullptr) {
      why = fmt::format("table of {}, measured at {}, regret {:.2f}", table->made(),
                        format_bytes(row->bytes), row->regret);
    } else {
      why = table != nullptr ? "default: the table does not cover this" : "default: no table";
    }
  }
  // The plan's further forms, if such calls have them.
  std::vector<Plan::FurtherForm> trials;
  if (trial_class_of(a.collective, a.ranks, a.bytes, Buffers::apart, costs)) {
    const Call call{.collective = a.collective,
                    .count = count_for(a.collective, a.ranks, a.bytes, 1),
                    .type = DataType::u8};
    const auto plan = plan_among(a.ranks, call, costs, environment, table, 0).value();
    trials = plan->plan.further_forms;
  }
  if (a.json) {
    nlohmann::ordered_json out = {{"collective", name_of(a.collective)},
                                  {"ranks", a.ranks},
                                  {"bytes", a.bytes},
                                  {"source", source},
                                  {"choice", {{"algorithm", choice->name}}}};
    if (source != "environment" && !chosen.by_model.empty()) {
      out["candidates"] = to_json(table_of(chosen.by_model));
    }
    if (source == "default") {
      for (const CostField& field : deciding(chosen)) {
        out["costs"][std::string(field.name)] = costs.*field.value;
      }
    }
    for (const Plan::FurtherForm& form : trials) {
      out["trials"].push_back({{"form", name_of(form.form)},
                               {"algorithm", form.algorithm},
                               {"transport", name_of(form.transport)}});
    }
    if (row != nullptr && source == "table") {
      out["table"] = {{"file", tuning_file().path},
                      {"made", table->made()},
                      {"bytes", row->bytes},
                      {"regret", row->regret}};
    }
    console.out << out.dump(2) << '\n';
    return Exit::ok;
  }
  console.out << fmt::format("{} of {} among {} on threads of this machine: {} ({})\n",
                             name_of(a.collective), format_bytes(a.bytes), counted(a.ranks, "rank"),
                             choice->name, why);
  if (a.explain) {
    if (source == "default") console.out << explain(chosen, costs);
    for (const Plan::FurtherForm& form : trials) {
      console.out << fmt::format("  ranks time it against a form that {}: {} on the {} transport\n",
                                 name_of(form.form), form.algorithm, name_of(form.transport));
    }
    if (source != "environment" && !chosen.by_model.empty()) {
      console.out << explain_c_real(a, chosen, *table);
    }
    console.out << "'rankine tune' measures the others; --network asks a model instead\n";
  }
  return Exit::ok;
}

// Reads "double_tree=2,chain=1.5:2": the factor of the time of bytes, or of alphas and of bytes.
Result<std::map<const Algorithm*, CReal>> read_c_real(std::string_view text,
                                                      Collective collective) {
  std::map<const Algorithm*, CReal> out;
  for (const std::string_view part : split_list(text)) {
    const std::size_t end = std::min(part.find('='), part.size());
    const auto named = read_algorithms("--c-real-of", part.substr(0, end), collective).value();
    const std::string_view factors = part.substr(std::min(end + 1, part.size()));
    const std::size_t colon = factors.find(':');
    const auto latency = parse_real(colon == factors.npos ? "1" : factors.substr(0, colon));
    const auto bandwidth = parse_real(factors.substr(colon + 1));
    if (!latency || !bandwidth || !CReal::allows(*latency) || !CReal::allows(*bandwidth)) {
      return invalid_argument(
          fmt::format("--c-real-of is '{}'; allowed after a name are = and the factor of the time "
                      "of bytes, or of alphas and of bytes (double_tree=2, double_tree=1.5:2), "
                      "each from {:g} to {:g}",
                      part, CReal::kLeast, CReal::kMost));
    }
    for (const Algorithm* entry : named) out[entry] = {*latency, *bandwidth};
  }
  return out;
}

// Multiplies the candidates' times by their deviations from the model (c_real): by those that the
// user gives, then by those of the table with --c-real, or by 1 without. Returns the source of the
// factors.
Result<std::string> weigh_by(const ChooseArguments& a, const Fabric& fabric,
                             std::vector<Candidate>& candidates) {
  const auto given = read_c_real(a.c_real_of, a.collective).value();
  const TuningTable* table = a.c_real ? machine_tuning() : nullptr;
  if (a.c_real && table == nullptr) {
    return Status(Code::system,
                  "--c-real needs a tuning table of this machine; 'rankine tune' makes one");
  }
  const auto measured = table != nullptr ? table->c_real_near(a.collective, a.ranks)
                                         : std::span<const MeasuredCReal>();
  const auto of = [&](const Algorithm& entry) -> std::optional<CReal> {
    const auto found = given.find(&entry);
    if (found != given.end()) return found->second;
    return table != nullptr ? c_real_of(measured, entry) : CReal{};
  };
  if (Status status = weigh(candidates, of, fabric, {.sync = a.sync.value_or(Sync::dataflow)});
      !status.ok())
    return status;
  const std::string by_hand = "c_real given: " + a.c_real_of;
  if (table == nullptr) return by_hand;
  if (candidates.front().c_real) {
    return source_of(measured, *table) + (given.empty() ? "" : ", " + by_hand);
  }
  return Status(
      Code::system,
      fmt::format("--c-real: the table '{}' has no c_real of an algorithm of {} that can "
                  "run here; 'rankine tune --collectives {} --ranks {}' measures them",
                  tuning_file().path, name_of(a.collective), name_of(a.collective), a.ranks));
}

Result<Exit> run_choose(ChooseArguments a, Console& console) {
  a.bytes = vector_bytes(a.collective, a.bytes);
  if (a.network == NetworkArguments{} && a.dims.empty()) {
    if (a.c_real || !a.c_real_of.empty()) {
      return invalid_argument(
          fmt::format("{} is for modelled networks: on this machine's threads calls follow the "
                      "measurements of 'rankine tune' directly",
                      a.c_real ? "--c-real" : "--c-real-of"));
    }
    if (a.sync) {
      return invalid_argument(fmt::format(
          "--sync is {}, which is for modelled networks: ranks of this machine wait for "
          "their data only",
          name_of(*a.sync)));
    }
    if (a.csv) {
      return invalid_argument(
          "--csv lists the candidates on a modelled network; for threads of this machine use "
          "--json");
    }
    if (a.menu->lines.empty()) return choose_on_threads(a, console);
    return invalid_argument(
        fmt::format("--menu is '{}', which is for modelled networks: on threads of this machine "
                    "calls use this library's algorithms",
                    a.menu->name));
  }
  std::vector<const Algorithm*> lines;
  for (const Algorithm& entry : catalogue()) {
    if (entry.collective == a.collective) lines.push_back(&entry);
  }
  const auto offered = on_menu(*a.menu, a.collective, std::move(lines)).value();
  const auto network = network_of(a.network).value();
  const auto fabric = wired_for(network, a.ranks, a.dims).value();
  Params params;
  params.ranks = a.ranks;
  params.peer = a.ranks > 1 ? 1 : 0;
  params.segments = 0;
  params.dims = a.dims;
  auto candidates = [&] {
    Progress progress(console);
    std::size_t done = 0, all = 0, simulations = 0;
    return predict(
        a.collective, params, a.bytes, fabric, {.sync = a.sync.value_or(Sync::dataflow)},
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
  if ((a.c_real || !a.c_real_of.empty()) && candidates->front().ok()) {
    const auto from = weigh_by(a, fabric, *candidates).value();
    source += ", " + from;
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
                                  {"network", fabric.name},
                                  {"menu", a.menu->name},
                                  {"sync", name_of(a.sync.value_or(Sync::dataflow))},
                                  {"choice", rows.front()},
                                  {"candidates", std::move(rows)}};
    console.out << out.dump(2) << '\n';
    return Exit::ok;
  }
  const std::string wiring = describe_wiring(fabric);
  console.out << fmt::format("{} of {} among {} on {}{}: {}, {} ({})\n", name_of(a.collective),
                             format_bytes(a.bytes), counted(a.ranks, "rank"), fabric.name,
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
      "the algorithm that runs on this machine, with the reason, or the cheapest on a modelled "
      "network");
  add_argument(app, "collective", a.collective, read_collective, "NAME",
               "collective; 'rankine list' shows all")
      .required();
  add_argument(app, "-t,--ranks", a.ranks, Whole{1, 1024}, "N", "ranks (8)");
  add_argument(app, "--bytes", a.bytes, parse_size, "SIZE", "M: 8, 64K, 1M (1M)");
  add_menu(app, a.menu);
  add_argument(app, "--sync", a.sync, read_sync, "NAME", "dataflow or rounds (dataflow)");
  add_dims(app, a.dims);
  add_network_arguments(app, a.network);
  app.add_flag("--c-real", a.c_real,
               "multiply the model's times by the table's factors for this machine");
  add_text(app, "--c-real-of", a.c_real_of, "LIST",
           "factors of the model's times: NAME=C for the time of bytes, NAME=L:C also for alphas; "
           "'all' names every algorithm; a later factor replaces an earlier one");
  app.add_flag("--explain", a.explain, "list every candidate with its cost, or why it cannot run");
  add_formats(app, a.json, a.csv, "the choice and all candidates as JSON");
  app.footer(
      "Without a network: the algorithm of calls on threads of this machine, with its source: "
      "the default or the table of 'rankine tune'. With a network: the model's choice; --c-real "
      "multiplies the model's times by the table's c_real, measured time over model time, at the "
      "nearest number of ranks; --c-real-of gives factors by hand, such as c = 2 for the double "
      "tree (Lu, Collective Algorithms, 5.3).\n"
      "Examples:\n"
      "  rankine choose all_reduce --ranks 2 --bytes 64K\n"
      "  rankine choose all_reduce --ranks 64 --bytes 64K --network scale_out --explain\n"
      "  rankine choose all_reduce --ranks 64 --bytes 64K --network scale_out --menu nccl\n"
      "  rankine choose all_reduce --ranks 72 --bytes 4G --alpha 500ns --bandwidth 900GB/s "
      "--ports 4 --menu nccl --c-real-of double_tree_nccl=2\n"
      "  rankine choose broadcast --ranks 9 --bytes 1M --alpha 2us --bandwidth 50GB/s --ports 2\n"
      "Networks:\n" +
      describe_presets());
  return {app, [owned](Console& console) { return run_choose(*owned, console); }};
}

}  // namespace rankine::tools
