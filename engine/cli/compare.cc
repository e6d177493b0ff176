// The command `rankine compare`: reads two reports of perf or nccl-tests and compares their times.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/statistics.h"
#include "engine/cli/perf.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "engine/run/kernels/types.h"

namespace rankine::tools {
namespace {

std::string text_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  if (found->is_number_integer()) return std::to_string(found->get<std::int64_t>());
  if (!found->is_string()) return {};
  const std::string text = *found;  // nccl-tests pads its roots with blanks
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin);
}

std::optional<double> number_of(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// Maps nccl-tests' and Rankine's names of types to one name.
std::string type_text(const std::string& text) {
  const auto type = parse_data_type(text);
  return type ? std::string(name_of(*type)) : text;
}

// The spread in perf's reports; in nccl-tests' reports (with -I 1) the deviation over the mean.
std::optional<double> spread_of(const nlohmann::json& row, const nlohmann::json& series,
                                const std::string& place) {
  if (const auto spread = number_of(series, "spread")) return spread;
  const auto per_iter = row.find(place + "_per_iter");
  if (per_iter == row.end()) return std::nullopt;
  const auto percent = number_of(*per_iter, "cv_pct");
  return percent ? std::optional(*percent / 100) : std::nullopt;
}

// Merges the times of a row measured in several cycles into their median, with the scatter of the
// cycles.
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
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return refuse("it is no JSON object");
  const auto results = json.find("results");
  if (results == json.end() || !results->is_array()) return refuse("it has no list 'results'");
  PerfFile out{.started = text_of(json, "start_time")};
  if (const auto config = json.find("config"); config != json.end() && config->is_object()) {
    out.collective = text_of(*config, "collective");
    if (const auto ranks = number_of(*config, "ranks")) out.ranks = static_cast<int>(*ranks);
  }
  std::vector<MeasuredTime> times;
  for (const nlohmann::json& row : *results) {
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
        fmt::format("the first report is of {}, the second of {}; allowed is one collective",
                    a.collective, b.collective));
  }
  if (a.ranks != 0 && b.ranks != 0 && a.ranks != b.ranks) {
    return invalid_argument(
        fmt::format("the first report is among {}, the second among {}; allowed is one number",
                    counted(a.ranks, "rank"), b.ranks));
  }
  bool several = false;  // true: some row has several algorithms
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

namespace {

struct CompareArguments {
  std::string a, b;
  std::optional<double> fail_above;
  bool json = false, csv = false;
};

Result<double> read_ratio(std::string_view argument, std::string_view text) {
  if (const auto value = parse_real(text); value && *value > 0) return *value;
  return invalid_argument(fmt::format(
      "{} is '{}'; allowed are ratios above 0, such as 1.05 for 5 % slower", argument, text));
}

Result<PerfFile> read_report(const std::string& path) {
  constexpr std::size_t kLimit = std::size_t{256} << 20;
  const SmallFile file = read_small_file(path, kLimit);
  if (file.ok()) return PerfFile::parse(path, file.text);
  return Status(file.is_missing ? Code::invalid_argument : Code::system,
                fmt::format("'{}' cannot be read: {}", path, file.error));
}

std::string_view verdict_of(const ComparedRow& row) {
  return row.slower() ? "slower" : row.faster() ? "faster" : "same";
}

bool fails(const ComparedRow& row, const CompareArguments& arguments) {
  return arguments.fail_above && row.slower() && row.ratio > *arguments.fail_above;
}

std::string describe(const std::string& path, const PerfFile& file) {
  return fmt::format("{}{}{}{}", path, file.started.empty() ? "" : ", " + file.started,
                     file.collective.empty() ? "" : ", " + file.collective,
                     file.ranks == 0 ? "" : " among " + counted(file.ranks, "rank"));
}

struct Outcome {
  int slower = 0, faster = 0, same = 0, failed = 0;
};

Outcome tally_of(const Comparison& comparison, const CompareArguments& arguments) {
  Outcome tally;
  for (const ComparedRow& row : comparison.rows) {
    ++(row.slower() ? tally.slower : row.faster() ? tally.faster : tally.same);
    tally.failed += fails(row, arguments);
  }
  return tally;
}

Table table_of(const CompareArguments& arguments, const PerfFile& a, const PerfFile& b,
               const Comparison& comparison, const Outcome& tally) {
  Table table(as::text("row"), as::data("size"), as::data("a_algorithm"), as::data("b_algorithm"),
              As("{:.4g}")("a (us)", "a_us"), As("{:.4g}")("b (us)", "b_us"),
              As("{:.3f}")("b/a", "ratio"), As("{:.1f}%")("noise", "", "?"), as::text(""),
              as::data("verdict"), as::text("algorithm", "-"));
  table.title = fmt::format("a: {}\nb: {}", describe(arguments.a, a), describe(arguments.b, b));
  bool unknown = false;
  for (const ComparedRow& row : comparison.rows) {
    unknown |= !row.noise;
    const std::string_view verdict = verdict_of(row);
    table.add(row.a.row, row.a.bytes, row.a.algorithm, row.b.algorithm, row.a.us, row.b.us,
              row.ratio, row.noise, verdict == "same" ? "" : verdict, verdict,
              row.a.algorithm == row.b.algorithm ? row.a.algorithm
                                                 : row.a.algorithm + " -> " + row.b.algorithm);
  }
  table.notes = {fmt::format(
      "\nb/a: b takes {:.3f} of a's time, geometric mean of {}; beyond noise {} faster, {} "
      "slower, {} not\n"
      "noise: the sum of both spreads, each half the distance of the quartiles",
      comparison.geometric_mean(), counted(comparison.rows.size(), "row"), tally.faster,
      tally.slower, tally.same)};
  if (unknown)
    table.notes.push_back("?: neither report has a spread; every difference counts there");
  for (const auto& [which, only] :
       {std::pair("a", comparison.only_a), std::pair("b", comparison.only_b)}) {
    if (only.empty()) continue;
    table.notes.push_back(fmt::format("only in {}: {}, {}{}", which, counted(only.size(), "row"),
                                      only.front(), only.size() == 1 ? "" : " ..."));
  }
  return table;
}

Result<Exit> compare(const CompareArguments& arguments, Console& console) {
  const auto a = read_report(arguments.a).value();
  const auto b = read_report(arguments.b).value();
  const auto comparison = compare_files(a, b).value();
  const Outcome tally = tally_of(comparison, arguments);
  const Table table = table_of(arguments, a, b, comparison, tally);
  if (arguments.json) {
    Json json = {{"a", {{"file", arguments.a}, {"start_time", a.started}}},
                 {"b", {{"file", arguments.b}, {"start_time", b.started}}},
                 {"rows", to_json(table)},
                 {"geometric_mean", comparison.geometric_mean()},
                 {"slower", tally.slower},
                 {"faster", tally.faster},
                 {"same", tally.same},
                 {"only_a", comparison.only_a},
                 {"only_b", comparison.only_b}};
    if (arguments.fail_above) {
      json["fail_above"] = *arguments.fail_above;
      json["failed"] = tally.failed;
    }
    console.out << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    console.out << (arguments.csv ? to_csv(table) : to_text(table));
  }
  if (tally.failed == 0) return Exit::ok;
  console.err << fmt::format("rankine compare: {} row{} slower than {:g} x, beyond noise\n",
                             tally.failed, tally.failed == 1 ? " is" : "s are",
                             *arguments.fail_above);
  return Exit::wrong;
}

}  // namespace

Subcommand add_compare(Command tool) {
  auto owned = std::make_shared<CompareArguments>();
  CompareArguments& a = *owned;
  const Command app =
      tool.add_subcommand("compare", "compare two JSON reports of perf: faster and slower rows");
  add_text(app, "a", a.a, "A.json", "the report to compare with").required();
  add_text(app, "b", a.b, "B.json", "the report in question").required();
  add_argument(app, "--fail-above", a.fail_above, read_ratio, "RATIO",
               "exit with 1 if a row's b/a is above RATIO and beyond its noise");
  add_formats(app, a.json, a.csv, "rows and verdicts as JSON");
  app.footer(
      "Examples:\n"
      "  rankine perf all_reduce --json before.json\n"
      "  rankine perf all_reduce --json after.json\n"
      "  rankine compare before.json after.json\n"
      "  rankine compare before.json after.json --fail-above 1.05\n"
      "Rows with equal size, type, operation, root, network and place are compared; if a report "
      "has several algorithms for a row, the algorithm must be equal, too. Rows of several "
      "cycles (perf -N 5) count as one, by their median, and their scatter counts as noise; a "
      "single run cannot show the scatter between runs. nccl-tests' -J files are read as well.\n"
      "Exit codes: 0 compared, 1 a row above --fail-above, 2 usage, 3 environment.");
  return {app, [owned](Console& console) { return compare(*owned, console); }};
}

}  // namespace rankine::tools
