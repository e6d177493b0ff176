#include "engine/tools/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/statistics.h"
#include "engine/base/units.h"
#include "engine/run/kernels/types.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  if (found->is_number_integer()) return std::to_string(found->get<std::int64_t>());
  if (!found->is_string()) return {};
  const std::string text = *found;  // nccl-tests pads its roots with blanks
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin);
}

std::optional<double> number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// nccl-tests' names and ours alike.
std::string type_text(const std::string& text) {
  const auto type = parse_data_type(text);
  return type ? std::string(name_of(*type)) : text;
}

// perf's own figure; of nccl-tests, with -I 1, the deviation over the mean.
std::optional<double> spread_of(const Json& row, const Json& series, const std::string& place) {
  if (const auto spread = number_of(series, "spread")) return spread;
  const auto per_iter = row.find(place + "_per_iter");
  if (per_iter == row.end()) return std::nullopt;
  const auto percent = number_of(*per_iter, "cv_pct");
  return percent ? std::optional(*percent / 100) : std::nullopt;
}

// Where a row was measured in several cycles, they count as one, and scatter as far as they do.
std::vector<MeasuredTime> merged(const std::vector<MeasuredTime>& times) {
  std::map<std::pair<std::string, std::string>, std::vector<const MeasuredTime*>> same;
  for (const MeasuredTime& one : times) same[{one.row, one.algorithm}].push_back(&one);
  std::vector<MeasuredTime> out;
  for (const MeasuredTime& one : times) {
    const auto& all = same[{one.row, one.algorithm}];
    if (all.front() != &one) continue;
    MeasuredTime whole = one;
    std::vector<double> us, spreads;
    for (const MeasuredTime* each : all) {
      us.push_back(each->us);
      if (each->spread) spreads.push_back(*each->spread);
    }
    whole.us = median(us);
    if (all.size() > 1) spreads = {std::max(median(spreads), relative_spread(us))};
    whole.spread = spreads.empty() ? std::nullopt : std::optional(spreads.front());
    out.push_back(std::move(whole));
  }
  return out;
}

}  // namespace

Result<PerfFile> PerfFile::parse(const std::string& file, std::string_view text) {
  const auto refuse = [&file](std::string_view why) {
    return invalid_argument(fmt::format("'{}' is no report of perf: {}", file, why));
  };
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return refuse("it is no JSON object");
  const auto results = json.find("results");
  if (results == json.end() || !results->is_array()) return refuse("it has no list 'results'");
  PerfFile out{.started = text_of(json, "start_time")};
  if (const auto config = json.find("config"); config != json.end() && config->is_object()) {
    out.collective = text_of(*config, "collective");
    if (const auto ranks = number_of(*config, "ranks")) out.ranks = static_cast<int>(*ranks);
  }
  std::vector<MeasuredTime> times;
  for (const Json& row : *results) {
    const auto size = row.is_object() ? number_of(row, "size") : std::nullopt;
    if (!size || *size < 0) return refuse("a result has no 'size'");
    const std::string network = text_of(row, "network");
    for (const std::string place : {"out_of_place", "in_place"}) {
      const auto series = row.find(place);
      if (series == row.end() || !series->is_object()) continue;  // nccl-tests leaves some out
      auto us = number_of(*series, "time");
      if (!us) us = number_of(*series, "cpu_time");
      if (!us) return refuse(fmt::format("'{}' of a result has no 'time'", place));
      if (!(*us > 0)) continue;
      const std::string root = text_of(row, "root");
      times.push_back(
          {.row = fmt::format("{:.0f} {} {}{}{} {}", *size, type_text(text_of(row, "type")),
                              text_of(row, "redop"), root == "-1" ? "" : " root " + root,
                              network.empty() ? "" : " on " + network,
                              place == "in_place" ? "in place" : "out of place"),
           .bytes = static_cast<std::size_t>(*size),
           .algorithm = text_of(row, place == "in_place" ? "in_place_algorithm" : "algorithm"),
           .us = *us,
           .spread = spread_of(row, *series, place)});
    }
  }
  if (times.empty()) return refuse("it has no times");
  out.times = merged(times);
  return out;
}

double Comparison::geometric_mean() const {
  double sum = 0;
  for (const ComparedRow& row : rows) sum += std::log(row.ratio);
  return std::exp(sum / static_cast<double>(std::max<std::size_t>(1, rows.size())));
}

Result<Comparison> compare_files(const PerfFile& a, const PerfFile& b) {
  if (!a.collective.empty() && !b.collective.empty() && a.collective != b.collective) {
    return invalid_argument(
        fmt::format("the first report is of {}, the second of {}", a.collective, b.collective));
  }
  if (a.ranks != 0 && b.ranks != 0 && a.ranks != b.ranks) {
    return invalid_argument(fmt::format("the first report is among {}, the second among {}",
                                        counted(a.ranks, "rank"), b.ranks));
  }
  bool several = false;  // algorithms for a row
  for (const PerfFile* file : {&a, &b}) {
    std::set<std::string> rows;
    for (const MeasuredTime& one : file->times) several |= !rows.insert(one.row).second;
  }
  const auto key_of = [several](const MeasuredTime& one) {
    return several ? one.row + ", " + one.algorithm : one.row;
  };
  std::map<std::string, const MeasuredTime*> others;
  for (const MeasuredTime& one : b.times) others[key_of(one)] = &one;
  Comparison out;
  for (const MeasuredTime& one : a.times) {
    const auto found = others.find(key_of(one));
    if (found == others.end()) {
      out.only_a.push_back(key_of(one));
      continue;
    }
    const MeasuredTime& other = *found->second;
    others.erase(found);
    ComparedRow row{.a = one, .b = other, .ratio = other.us / one.us};
    if (one.spread || other.spread) row.noise = one.spread.value_or(0) + other.spread.value_or(0);
    out.rows.push_back(std::move(row));
  }
  for (const MeasuredTime& one : b.times) {
    if (others.contains(key_of(one))) out.only_b.push_back(key_of(one));
  }
  if (out.rows.empty()) {
    return invalid_argument(
        fmt::format("the reports have no row in common: the first begins with "
                    "'{}', the second with '{}'",
                    key_of(a.times.front()), key_of(b.times.front())));
  }
  return out;
}

}  // namespace rankine::tools
