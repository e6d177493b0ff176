#include "engine/api/tuning/tuning_json.h"

#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "engine/base/json_text.h"

namespace rankine {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

Json to_json(const Hardware& h) {
  return {{"cpu", h.cpu},
          {"cores", h.cores},
          {"packages", h.packages},
          {"numa_nodes", h.numa_nodes},
          {"l3_groups", h.l3_groups},
          {"l1d", h.l1d},
          {"l2", h.l2},
          {"l3", h.l3},
          {"isa", h.isa},
          {"version", h.version}};
}

Hardware hardware_of(const Json& json) {
  return {.cpu = json.at("cpu"),
          .cores = json.at("cores"),
          .packages = json.at("packages"),
          .numa_nodes = json.at("numa_nodes"),
          .l3_groups = json.at("l3_groups"),
          .l1d = json.at("l1d"),
          .l2 = json.at("l2"),
          .l3 = json.at("l3"),
          .isa = json.at("isa"),
          .version = json.at("version")};
}

// Of a row of either kind, with what names it.
template <class Row>
Status read_algorithm(const Json& json, Row& row) {
  const std::string collective = json.at("collective"), algorithm = json.at("algorithm");
  const auto parsed = parse_collective(collective);
  if (!parsed) return invalid_argument("collective is '" + collective + "'");
  row.collective = *parsed;
  row.ranks = json.at("ranks");
  row.algorithm = find_algorithm(*parsed, algorithm);
  if (row.algorithm == nullptr) {
    return invalid_argument("algorithm is '" + algorithm + "'; " + collective + " has " +
                            algorithm_names(*parsed));
  }
  if (!row.algorithm->other_bits.empty()) {
    return invalid_argument("algorithm is '" + algorithm +
                            "', which is never chosen: " + std::string(row.algorithm->other_bits));
  }
  Params params;
  params.ranks = row.ranks;
  if (const auto refusal = row.algorithm->refusal(params)) return invalid_argument(*refusal);
  return {};
}

Result<TuningRow> row_of(const Json& json) {
  TuningRow row;
  if (Status status = read_algorithm(json, row); !status.ok()) return status;
  row.bytes = json.at("bytes");
  row.regret = json.at("regret");
  return row;
}

Result<MeasuredCReal> measured_of(const Json& json) {
  MeasuredCReal out;
  if (Status status = read_algorithm(json, out); !status.ok()) return status;
  for (const auto& [name, factor] :
       {std::pair("latency", &CReal::latency), std::pair("bandwidth", &CReal::bandwidth)}) {
    const Json& value = json.at(name);
    if (!value.is_number() || !CReal::allows(value.get<double>())) {
      return invalid_argument(fmt::format("{} is {}; allowed are numbers from {} to {}", name,
                                          value.dump(), CReal::kLeast, CReal::kMost));
    }
    out.c_real.*factor = value;
  }
  return out;
}

// The rows of that member, each read by `read`; errors say which of them is wrong.
template <class Read>
auto rows_of(const Json& rows, std::string_view what, Read read) {
  using Rows = std::vector<std::decay_t<decltype(*read(rows))>>;
  Rows out;
  for (const Json& each : rows) {
    auto row = read(each);
    if (!row.ok()) {
      return Result<Rows>(
          invalid_argument(fmt::format("{} {}: {}", what, out.size() + 1, row.status().text())));
    }
    out.push_back(*row);
  }
  return Result<Rows>(std::move(out));
}

Result<Costs> costs_of(const Json& json) {
  Costs costs;
  for (const auto& [name, value] : json.items()) {
    const CostField* field = find_cost(name);
    if (field == nullptr) {
      std::string names;
      for (const CostField& each : cost_fields()) names += " " + std::string(each.name);
      return invalid_argument("costs has '" + name + "'; allowed are" + names);
    }
    const bool fits = value.is_number_unsigned() && value.get<std::size_t>() >= field->least &&
                      value.get<std::size_t>() <= field->most;
    if (!fits) {
      return invalid_argument("costs." + name + " is " + value.dump() + "; allowed are " +
                              allowed(*field));
    }
    costs.*field->value = value;
  }
  return costs;
}

}  // namespace

nlohmann::ordered_json to_json(const MeasuredCReal& measured) {
  return {{"collective", name_of(measured.collective)},
          {"ranks", measured.ranks},
          {"algorithm", measured.algorithm->name},
          {"latency", measured.c_real.latency},
          {"bandwidth", measured.c_real.bandwidth}};
}

std::string to_json(const TuningTable& table) {
  const CostModel& model = table.model();
  Json json = {{"rankine_tuning", kFormat},
               {"hardware", to_json(table.hardware())},
               {"made", table.made()},
               {"model", {{"alpha", model.alpha}, {"beta", model.beta}, {"gamma", model.gamma}}}};
  Json& costs = json["costs"] = Json::object();
  for (const CostField& field : cost_fields()) {
    const std::size_t value = table.costs().*field.value;
    if (value != Costs().*field.value) costs[std::string(field.name)] = value;
  }
  Json& rows = json["rows"] = Json::array();
  for (const TuningRow& row : table.rows()) {
    rows.push_back({{"collective", name_of(row.collective)},
                    {"ranks", row.ranks},
                    {"bytes", row.bytes},
                    {"algorithm", row.algorithm->name},
                    {"regret", row.regret}});
  }
  Json& c_real = json["c_real"] = Json::array();
  for (const MeasuredCReal& one : table.c_real()) c_real.push_back(to_json(one));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<TuningTable> parse_tuning(std::string_view text) {
  const auto read = read_json<Json>("the text", text);
  if (!read.ok()) return read.status();
  const Json& json = *read;
  try {
    const int format = json.at("rankine_tuning");
    if (format != kFormat) {
      return invalid_argument("rankine_tuning is " + std::to_string(format) + "; allowed is " +
                              std::to_string(kFormat));
    }
    const Json& model = json.at("model");
    const CostModel model_here{
        .alpha = model.at("alpha"), .beta = model.at("beta"), .gamma = model.at("gamma")};
    auto rows = rows_of(json.at("rows"), "row", row_of);
    if (!rows.ok()) return rows.status();
    // A table without these is one of before there were any.
    const auto costs = costs_of(json.value("costs", Json::object()));
    if (!costs.ok()) return costs.status();
    auto c_real = rows_of(json.value("c_real", Json::array()), "c_real", measured_of);
    if (!c_real.ok()) return c_real.status();
    // Only they ask for the model.
    if (const auto fabric = machine_fabric(model_here); !c_real->empty() && !fabric.ok()) {
      return fabric.status();
    }
    return TuningTable(hardware_of(json.at("hardware")), json.at("made"), model_here,
                       std::move(*rows), *costs, std::move(*c_real));
  } catch (const Json::exception& error) {
    return invalid_argument(error.what());
  }
}

}  // namespace rankine
