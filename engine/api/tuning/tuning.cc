#include "engine/api/tuning/tuning.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <tuple>

#include "engine/base/environment_variable.h"
#include "engine/base/json_text.h"
#include "engine/base/replace_file.h"
#include "engine/base/small_file.h"
#include "numa/warnings.h"

namespace rankine {
namespace {

auto key_of(const TuningRow& row) { return std::tuple(row.collective, row.ranks, row.bytes); }
// Algorithms lie in one array.
auto key_of(const MeasuredCReal& m) { return std::tuple(m.collective, m.ranks, m.algorithm); }

// Sorted; of what has the same key the last.
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
