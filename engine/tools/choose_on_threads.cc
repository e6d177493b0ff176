#include "engine/tools/choose_on_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/environment.h"
#include "engine/api/tuning/choose.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/environment_variable.h"
#include "engine/tools/candidate_table.h"
#include "engine/tools/cost_text.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

// The costs that decided, in the order of all.
std::vector<CostField> deciding(const Choice& choice) {
  std::vector<CostField> fields;
  std::copy_if(cost_fields().begin(), cost_fields().end(), std::back_inserter(fields),
               [&](const CostField& field) {
                 return std::find(choice.by.begin(), choice.by.end(), field.value) !=
                        choice.by.end();
               });
  return fields;
}

// What they are here.
std::string explain(const Choice& choice, const Costs& costs) {
  std::string text;
  for (const CostField& field : deciding(choice)) {
    const std::size_t value = costs.*field.value;
    text += fmt::format("  {}: {} = {}{}\n", field.decides, field.name, value_text(field, value),
                        value != Costs().*field.value ? ", measured here" : "");
  }
  return text;
}

// What the model says of the contenders, and why that decided or did not.
std::string explain_c_real(const ThreadsQuestion& a, const Choice& choice,
                           const TuningTable& table) {
  const std::string from = source_of(table.c_real_near(a.collective, a.ranks), table);
  return fmt::format("  {}; the default stays unless it is {} times the best of\n{}", from, kMargin,
                     to_text(table_of(choice.by_model), "  "));
}

}  // namespace

Result<Exit> choose_on_threads(const ThreadsQuestion& a, Console& console) {
  const auto environment = read_environment();
  if (!environment.ok()) return environment.status();
  if (environment->network != nullptr) {
    return invalid_argument(fmt::format(
        "environment variable RANKINE_NETWORK is '{}', which puts programs' calls on that network: "
        "unset it, or ask with --network",
        environment_variable("RANKINE_NETWORK")));
  }
  const TuningTable* table = machine_tuning();
  const Costs costs = costs_among(a.ranks, machine_costs());
  const Choice chosen =
      rankine::choose(a.collective, a.ranks, a.bytes, Buffers::apart, table, costs);
  const TuningRow* row = chosen.row;
  const Algorithm* choice = environment->algorithm[static_cast<std::size_t>(a.collective)];
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
    if (source != "environment" && !chosen.by_model.empty()) {
      console.out << explain_c_real(a, chosen, *table);
    }
    console.out
        << "'rankine tune' measures the others; with --network it is a model that is asked\n";
  }
  return Exit::ok;
}

}  // namespace rankine::tools
