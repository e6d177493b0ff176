#include "engine/tools/compare.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/files.h"
#include "engine/tools/comparison.h"
#include "engine/tools/real_number.h"
#include "engine/tools/table.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::ordered_json;

struct CompareArguments {
  std::string a, b;
  std::optional<double> fail_above;
  bool json = false, csv = false;
};

Result<std::optional<double>> read_ratio(std::string_view argument, std::string_view text) {
  if (const auto value = parse_real(text); value && *value > 0) return std::optional(*value);
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

struct Tally {
  int slower = 0, faster = 0, same = 0, failed = 0;
};

Tally tally_of(const Comparison& comparison, const CompareArguments& arguments) {
  Tally tally;
  for (const ComparedRow& row : comparison.rows) {
    ++(row.slower() ? tally.slower : row.faster() ? tally.faster : tally.same);
    tally.failed += fails(row, arguments);
  }
  return tally;
}

Table table_of(const CompareArguments& arguments, const PerfFile& a, const PerfFile& b,
               const Comparison& comparison, const Tally& tally) {
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
  const auto a = read_report(arguments.a);
  if (!a.ok()) return a.status();
  const auto b = read_report(arguments.b);
  if (!b.ok()) return b.status();
  const auto comparison = compare_files(*a, *b);
  if (!comparison.ok()) return comparison.status();
  const Tally tally = tally_of(*comparison, arguments);
  const Table table = table_of(arguments, *a, *b, *comparison, tally);
  if (arguments.json) {
    Json json = {{"a", {{"file", arguments.a}, {"start_time", a->started}}},
                 {"b", {{"file", arguments.b}, {"start_time", b->started}}},
                 {"rows", to_json(table)},
                 {"geometric_mean", comparison->geometric_mean()},
                 {"slower", tally.slower},
                 {"faster", tally.faster},
                 {"same", tally.same},
                 {"only_a", comparison->only_a},
                 {"only_b", comparison->only_b}};
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
      tool.add_subcommand("compare", "two JSON reports of perf: what became faster or slower");
  add_text(app, "a", a.a, "A.json", "the report to compare with").required();
  add_text(app, "b", a.b, "B.json", "the report in question").required();
  add_argument(app, "--fail-above", a.fail_above, read_ratio, "RATIO",
               "exit with 1 where a row's b/a is above it, and beyond its noise");
  add_formats(app, a.json, a.csv, "rows and verdicts as JSON");
  app.footer(
      "Examples:\n"
      "  rankine perf all_reduce --json before.json\n"
      "  rankine perf all_reduce --json after.json\n"
      "  rankine compare before.json after.json\n"
      "  rankine compare before.json after.json --fail-above 1.05\n"
      "Rows of the same size, type, operation, root, network and place go together; where a "
      "report "
      "has several algorithms for a row, also of the same algorithm. Rows of several cycles "
      "(perf -N 5) count as one, by their median, and their scatter counts, which shows what a "
      "single "
      "run cannot: how far runs are apart. nccl-tests' own -J files are read as well.\n"
      "Exit codes: 0 compared, 1 a row above --fail-above, 2 usage, 3 environment.");
  return {app, [owned](Console& console) { return compare(*owned, console); }};
}

}  // namespace rankine::tools
