#include "engine/api/tuning.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "engine/base/json_text.h"
#include "engine/base/replace_file.h"
#include "engine/base/small_file.h"
#include "numa/warnings.h"

namespace rankine {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

auto key_of(const TuningRow& row) { return std::tuple(row.collective, row.ranks, row.bytes); }

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

Result<TuningRow> row_of(const Json& json) {
  TuningRow row;
  const std::string collective = json.at("collective"), algorithm = json.at("algorithm");
  const auto parsed = parse_collective(collective);
  if (!parsed) return invalid_argument("collective is '" + collective + "'");
  row.collective = *parsed;
  row.ranks = json.at("ranks");
  row.bytes = json.at("bytes");
  row.regret = json.at("regret");
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
  return row;
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

// Where it cannot be made, the file in it cannot either, and that is told.
void make_folder_of(const std::string& path) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
}

Status of_table(const Status& status) {
  return status.ok() ? status : Status(status.code(), "the tuning table " + status.text());
}

}  // namespace

TuningTable::TuningTable(Hardware hardware, std::string made, CostModel model,
                         std::vector<TuningRow> rows, const Costs& costs)
    : hardware_(std::move(hardware)), made_(std::move(made)), model_(model), costs_(costs) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const TuningRow& a, const TuningRow& b) { return key_of(a) < key_of(b); });
  for (TuningRow& row : rows) {
    if (!rows_.empty() && key_of(rows_.back()) == key_of(row)) rows_.pop_back();
    rows_.push_back(row);
  }
}

const TuningRow* TuningTable::find(Collective collective, int ranks, std::size_t bytes) const {
  const auto before = [](const TuningRow& row,
                         const std::tuple<Collective, int, std::size_t>& key) {
    return key_of(row) < key;
  };
  const auto here = [&](const TuningRow& row) {
    return row.collective == collective && row.ranks == ranks;
  };
  // 0 bytes are as few as 1.
  const auto distance = [bytes](const TuningRow& row) {
    const auto log = [](std::size_t n) {
      return std::log2(static_cast<double>(std::max<std::size_t>(1, n)));
    };
    return std::abs(log(row.bytes) - log(bytes));
  };
  const auto above =
      std::lower_bound(rows_.begin(), rows_.end(), std::tuple(collective, ranks, bytes), before);
  const TuningRow* nearest = nullptr;
  if (above != rows_.end() && here(*above)) nearest = &*above;
  if (above != rows_.begin() && here(*(above - 1)) &&
      (nearest == nullptr || distance(*(above - 1)) < distance(*nearest))) {
    nearest = &*(above - 1);
  }
  if (nearest == nullptr || distance(*nearest) > std::log2(kReach)) return nullptr;
  return nearest;
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
    std::vector<TuningRow> rows;
    for (const Json& each : json.at("rows")) {
      auto row = row_of(each);
      if (!row.ok()) {
        return invalid_argument("row " + std::to_string(rows.size() + 1) + ": " +
                                row.status().text());
      }
      rows.push_back(*row);
    }
    // A table without them is one of before there were any.
    const auto costs = costs_of(json.value("costs", Json::object()));
    if (!costs.ok()) return costs.status();
    return TuningTable(
        hardware_of(json.at("hardware")), json.at("made"),
        {.alpha = model.at("alpha"), .beta = model.at("beta"), .gamma = model.at("gamma")},
        std::move(rows), *costs);
  } catch (const Json::exception& error) {
    return invalid_argument(error.what());
  }
}

TuningFile tuning_file() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text != nullptr ? text : "");
  };
  const std::string named = value("RANKINE_TUNING");
  if (named == "off") return {};
  if (!named.empty()) return {named, true};
  // A relative path is invalid there, says the XDG specification.
  const std::string cache = value("XDG_CACHE_HOME"), home = value("HOME");
  if (cache.starts_with('/')) return {cache + "/rankine/tuning.json"};
  if (home.starts_with('/')) return {home + "/.cache/rankine/tuning.json"};
  return {};
}

std::optional<TuningTable> load_tuning(const TuningFile& file, const Hardware& here) {
  if (file.path.empty()) return std::nullopt;
  const SmallFile text = read_small_file(file.path, kMostJsonBytes);
  if (!text.ok()) {
    if (file.named || !text.is_missing) {
      warn_once("tuning.missing", (file.named ? "RANKINE_TUNING is '" : "the tuning table is '") +
                                      file.path + "', which cannot be read (" + text.error +
                                      "); the default choice is used");
    }
    return std::nullopt;
  }
  auto table = parse_tuning(text.text);
  if (!table.ok()) {
    warn_once("tuning.damaged", "the tuning table '" + file.path +
                                    "' is damaged and not used: " + table.status().text());
    return std::nullopt;
  }
  if (const auto why = difference(table->hardware(), here)) {
    warn_once("tuning.elsewhere", "the tuning table '" + file.path +
                                      "' was made on another machine and is not used: " + *why);
    return std::nullopt;
  }
  return std::move(*table);
}

Status save_tuning(const TuningTable& table, const std::string& path) {
  make_folder_of(path);
  return of_table(replace_file(path, to_json(table)));
}

Status prepare_tuning_file(const std::string& path) {
  make_folder_of(path);
  return of_table(check_replaceable(path));
}

const TuningTable* machine_tuning() {
  // Never destroyed: ranks may still plan by it while exit() destroys static objects.
  static const auto* const table = new auto([]() -> std::optional<TuningTable> {
    const TuningFile file = tuning_file();
    // Without a table nobody pays for looking at the hardware.
    std::error_code error;
    if (file.path.empty() || (!file.named && !std::filesystem::exists(file.path, error))) return {};
    return load_tuning(file, read_hardware());
  }());
  return *table ? &**table : nullptr;
}

const Costs& machine_costs() {
  static constexpr Costs kDefaults;
  const TuningTable* table = machine_tuning();
  return table != nullptr ? table->costs() : kDefaults;
}

}  // namespace rankine
