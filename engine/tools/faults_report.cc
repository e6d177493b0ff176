#include "engine/tools/faults_report.h"

#include <fmt/format.h>

#include <numeric>
#include <ostream>
#include <string_view>

#include "engine/base/units.h"
#include "engine/tools/table.h"
#include "engine/tools/terminal.h"

namespace rankine::tools {
namespace {

using faults::CaseResult;
using faults::Fault;
using faults::Tally;

// "timeout 120, mismatch 3"
std::string errors_of(const Tally& tally) {
  std::string text;
  for (std::size_t code = 1; code < tally.returned.size(); ++code) {
    if (tally.returned[code] == 0) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", name_of(static_cast<Code>(code)), tally.returned[code]);
  }
  return text;
}

// "rank lost, timeout"
std::string names_of(const faults::Codes& codes) {
  std::string text;
  for (int code = 1; code < kCodes; ++code) {
    if (!codes.has(static_cast<Code>(code))) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name_of(static_cast<Code>(code)));
  }
  return text;
}

std::string documented_of(const Fault& fault) {
  const std::string all = names_of(fault.documented), more = names_of(fault.more_of_processes);
  return "ok" + (all.empty() ? "" : ", " + all) + (more.empty() ? "" : "; processes " + more);
}

std::string_view ranks_of(const Fault& fault) {
  if (fault.processes_only) return "processes";
  return fault.threads_only.empty() ? "either" : "threads";
}

Table table_of(const FaultsReport& report) {
  Table table(as::number("", "number"), as::text("fault", "name"), as::data("what"),
              as::data("how"), "cases", "ok", "hangs", "wrong", as::number("undoc", "undocumented"),
              "late", as::data("not_possible"), as::data("why_not_possible"),
              as::measured_time("time", "seconds"), as::text("documented errors", "errors"));
  const auto add = [&table](Cell number, std::string_view name, Cell what, Cell how, const Tally& t,
                            double seconds) {
    table.add(number, name, what, how, t.cases, t.returned[0], t.hangs, t.wrong, t.undocumented,
              t.late, t.impossible, t.why_impossible, seconds, errors_of(t));
  };
  for (const auto& [fault, tally, seconds] : report.rows) {
    add(fault->number, fault->name, fault->what, fault->how, tally, seconds);
  }
  add({}, "all", {}, {}, report.total, report.seconds);
  return table;
}

}  // namespace

FaultsReport report_of(const std::vector<CaseResult>& results) {
  FaultsReport report;
  auto& rows = report.rows;
  for (const CaseResult& result : results) {
    if (rows.empty() || rows.back().fault != result.test.fault) rows.push_back({result.test.fault});
    rows.back().tally += result.tally;
    rows.back().seconds += result.seconds;
    report.total += result.tally;
  }
  return report;
}

void print(const FaultsReport& report, bool csv, Console& console) {
  const auto& [rows, total, commands, seed, seconds, processes, cycles, not_played] = report;
  const Table table = table_of(report);
  console.out << (csv ? to_csv(table) : to_text(table));
  if (csv) return;
  if (!not_played.empty()) {
    std::string names;
    for (const Fault* fault : not_played) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", fault->name);
    }
    console.out << fmt::format(
        "not played where ranks are {} ('rankine faults --list' says why): {}\n",
        processes ? "processes" : "threads", names);
  }
  for (const auto& row : rows) {
    if (row.tally.impossible == 0) continue;
    console.out << fmt::format("not possible here: {} of {} of {} {}: {}\n", row.tally.impossible,
                               counted(row.tally.cases, "case"), row.fault->number, row.fault->name,
                               row.tally.why_impossible);
  }
  for (const auto& row : rows) {
    for (const std::string& remark : row.tally.remarks) {
      console.out << fmt::format("broken: {}\n", remark);
    }
  }
  for (const std::string& command : commands) console.out << fmt::format("again: {}\n", command);
  const std::int64_t calls =
      std::accumulate(total.returned.begin(), total.returned.end(), std::int64_t{0});
  if (cycles > 0) {
    console.out << fmt::format(
        "\n{}: a rank's process killed, a communicator of those left, one with its "
        "successor\n",
        counted(cycles, "cycle"));
  }
  console.out << fmt::format("\n{}, {}: {}, {} wrong, {} undocumented, {} late, in {}\n",
                             counted(total.cases, "case"), counted(calls, "call"),
                             counted(total.hangs, "hang"), total.wrong, total.undocumented,
                             total.late, format_seconds(seconds));
}

nlohmann::ordered_json to_json(const FaultsReport& report) {
  const auto& [rows, total, commands, seed, seconds, processes, cycles, not_played] = report;
  using Json = nlohmann::ordered_json;
  Json all = to_json(table_of(report));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Tally& tally = i < rows.size() ? rows[i].tally : total;
    Json& errors = all[i]["errors"] = Json::object();
    for (std::size_t code = 1; code < tally.returned.size(); ++code) {
      if (tally.returned[code] != 0)
        errors[name_of(static_cast<Code>(code))] = tally.returned[code];
    }
    all[i]["remarks"] = tally.remarks;
  }
  Json of_all = all.back();
  of_all.erase("name");
  all.erase(rows.size());
  Json json = {{"seed", seed},
               {"ranks_are", processes ? "processes" : "threads"},
               {"cycles", cycles},
               {"faults", std::move(all)},
               {"not_played", Json::array()}};
  for (const Fault* fault : not_played) json["not_played"].push_back(fault->name);
  json["total"] = std::move(of_all);
  json["again"] = commands;
  return json;
}

void print_list(const std::vector<const Fault*>& chosen, bool csv, Console& console) {
  constexpr std::string_view kGrains[] = {"ranks", "collective", "algorithm"};
  constexpr int kReadable = 100, kIndent = 4;
  const int width = terminal_width(kReadable);
  Table table(as::number("number"), as::text("fault"), as::text("what"), as::text("for each"),
              as::text("ranks are"), as::text("may give"), as::text("how"));
  for (const Fault* fault : chosen) {
    const std::string_view grain = kGrains[static_cast<std::size_t>(fault->grain)];
    table.add(fault->number, fault->name, fault->what, grain, ranks_of(*fault),
              documented_of(*fault), fault->how);
    if (csv) continue;
    console.out << fmt::format("{:>2}  {}: {}\n", fault->number, fault->name, fault->what)
                << wrapped(fmt::format("for each {}; ranks are {}; may give {}", grain,
                                       ranks_of(*fault), documented_of(*fault)),
                           width, kIndent)
                << wrapped(fmt::format("how: {}", fault->how), width, kIndent);
    if (fault->threads_only.empty()) continue;
    console.out << wrapped(fmt::format("for threads only: {}", fault->threads_only), width,
                           kIndent);
  }
  if (csv) console.out << to_csv(table);
}

}  // namespace rankine::tools
