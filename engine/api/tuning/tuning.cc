#include "engine/api/tuning/tuning.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "engine/api/tuning/tuning_json.h"
#include "engine/api/version.h"
#include "engine/base/files.h"
#include "engine/base/json_text.h"
#include "engine/run/kernels/reduce.h"
#include "numa/refusals.h"
#include "numa/topology.h"

namespace rankine {

std::string cpu_model() {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

Hardware read_hardware() {
  const Topology topology = Topology::detect();
  return {.cpu = cpu_model(),
          .cores = topology.cores(),
          .packages = topology.packages(),
          .numa_nodes = static_cast<int>(topology.nodes().size()),
          .l3_groups = topology.l3_groups(),
          .l1d = topology.caches().l1d,
          .l2 = topology.caches().l2,
          .l3 = topology.caches().l3,
          .isa = std::string(name_of(best_isa())),
          .version = std::string(kVersion)};
}

std::optional<std::string> difference(const Hardware& there, const Hardware& here) {
  std::optional<std::string> found;
  const auto compare = [&found](const char* name, const auto& a, const auto& b) {
    if (found || a == b) return;
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(a)>>) {
      found = std::string(name) + " is " + std::to_string(a) + " there and " + std::to_string(b) +
              " here";
    } else {
      found = std::string(name) + " is '" + a + "' there and '" + b + "' here";
    }
  };
  compare("cpu", there.cpu, here.cpu);
  compare("cores", there.cores, here.cores);
  compare("packages", there.packages, here.packages);
  compare("numa_nodes", there.numa_nodes, here.numa_nodes);
  compare("l3_groups", there.l3_groups, here.l3_groups);
  compare("l1d", there.l1d, here.l1d);
  compare("l2", there.l2, here.l2);
  compare("l3", there.l3, here.l3);
  compare("isa", there.isa, here.isa);
  compare("version", there.version, here.version);
  return found;
}

namespace {

constexpr double kAttoseconds = 1e18;  // per second

Rational exact(double seconds) {
  return {static_cast<Int128>(std::llround(seconds * kAttoseconds)),
          static_cast<Int128>(kAttoseconds)};
}

}  // namespace

Result<Fabric> machine_fabric(const CostModel& model) {
  const struct {
    std::string_view name;
    double seconds;
    bool may_be_zero;
  } kMembers[] = {
      {"alpha", model.alpha, false}, {"beta", model.beta, false}, {"gamma", model.gamma, true}};
  for (const auto& [name, seconds, may_be_zero] : kMembers) {
    const bool fits = (may_be_zero ? seconds >= 0 : seconds * kAttoseconds >= 1);
    if (fits && seconds <= kMostSeconds) continue;
    return invalid_argument(fmt::format("model.{} is {}; allowed are numbers {} to {}", name,
                                        seconds, may_be_zero ? "from 0" : "above 0", kMostSeconds));
  }
  Fabric fabric;
  fabric.name = "this machine";
  fabric.link = {exact(model.alpha), exact(model.beta)};
  fabric.gamma = exact(model.gamma);
  return fabric;
}

namespace {

auto key_of(const TuningRow& row) { return std::tuple(row.collective, row.ranks, row.bytes); }
// Orders by address: all algorithms lie in one array.
auto key_of(const MeasuredCReal& m) { return std::tuple(m.collective, m.ranks, m.algorithm); }

// Sorts the rows and keeps the last row of each key.
template <class T>
std::vector<T> last_of_each(std::vector<T> all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const T& a, const T& b) { return key_of(a) < key_of(b); });
  std::vector<T> out;
  for (T& one : all) {
    if (!out.empty() && key_of(out.back()) == key_of(one)) out.pop_back();
    out.push_back(std::move(one));
  }
  return out;
}

// Ignores errors: if the folder cannot be made, writing the file fails and reports that.
void make_folder_of(const std::string& path) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
}

Status of_table(const Status& status) {
  return status.ok() ? status : Status(status.code(), "the tuning table " + status.text());
}

}  // namespace

std::optional<CReal> c_real_of(std::span<const MeasuredCReal> measured,
                               const Algorithm& algorithm) {
  const auto found = std::find_if(measured.begin(), measured.end(), [&](const MeasuredCReal& one) {
    return one.algorithm == &algorithm;
  });
  return found != measured.end() ? std::optional(found->c_real) : std::nullopt;
}

TuningTable::TuningTable(Hardware hardware, std::string made, CostModel model,
                         std::vector<TuningRow> rows, const Costs& costs,
                         std::vector<MeasuredCReal> c_real)
    : hardware_(std::move(hardware)),
      made_(std::move(made)),
      model_(model),
      rows_(last_of_each(std::move(rows))),
      costs_(costs),
      c_real_(last_of_each(std::move(c_real))) {}

const TuningRow* TuningTable::find(Collective collective, int ranks, std::size_t bytes) const {
  const auto before = [](const TuningRow& row,
                         const std::tuple<Collective, int, std::size_t>& key) {
    return key_of(row) < key;
  };
  const auto here = [&](const TuningRow& row) {
    return row.collective == collective && row.ranks == ranks;
  };
  // Treats 0 bytes as 1.
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

std::span<const MeasuredCReal> TuningTable::c_real_near(Collective collective, int ranks) const {
  const auto distance = [ranks](const MeasuredCReal& one) {
    return std::abs(std::log(static_cast<double>(one.ranks) / ranks));
  };
  const MeasuredCReal* nearest = nullptr;
  for (const MeasuredCReal& one : c_real_) {
    if (one.collective != collective) continue;
    if (nearest == nullptr || distance(one) < distance(*nearest)) nearest = &one;
  }
  if (nearest == nullptr) return {};
  const auto other = [&](const MeasuredCReal& one) {
    return one.collective != collective || one.ranks != nearest->ranks;
  };
  const MeasuredCReal* const end = c_real_.data() + c_real_.size();
  return {nearest, std::find_if(nearest, end, other)};
}

TuningFile tuning_file() {
  const auto value = [](const char* name) {
    const char* text = environment_variable(name);
    return std::string(text != nullptr ? text : "");
  };
  const std::string named = value("RANKINE_TUNING");
  if (named == "off") return {};
  if (!named.empty()) return {named, true};
  // The XDG specification calls relative paths invalid.
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
  // Never destroyed: ranks may still plan with it while exit() destroys static objects.
  static const auto* const table = new auto([]() -> std::optional<TuningTable> {
    const TuningFile file = tuning_file();
    // Without a table, do not spend time on reading the hardware.
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

// Reads the common fields of both kinds of rows.
template <class Row>
Status read_algorithm(const Json& json, Row& row) {
  const std::string collective = json.at("collective"), algorithm = json.at("algorithm");
  const auto parsed = parse_collective(collective);
  if (!parsed) return invalid_argument("collective is '" + collective + "', which is unknown");
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

// Reads the rows of that member with `read`; errors name the row.
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
  std::set<const CostField*> read;
  for (const auto& [name, value] : json.items()) {
    const CostField* field = find_cost(name);
    if (field == nullptr) {
      field = find_old_cost(name);
      if (field != nullptr) {
        warn_once("tuning.old_names", "the tuning table has the deprecated name '" + name +
                                          "' in costs; write '" + std::string(field->name) +
                                          "', or run 'rankine tune' again");
      }
    }
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
    if (!read.insert(field).second) {
      return invalid_argument("costs has '" + std::string(field->name) +
                              "' twice: by this name and by an old one");
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
    // Older tables have no costs and no c_real.
    const auto costs = costs_of(json.value("costs", Json::object()));
    if (!costs.ok()) return costs.status();
    auto c_real = rows_of(json.value("c_real", Json::array()), "c_real", measured_of);
    if (!c_real.ok()) return c_real.status();
    // Only c_real need the model.
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
