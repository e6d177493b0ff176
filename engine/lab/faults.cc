// Implements rankine faults: plays the table of faults and prints a row per fault, the broken
// promises and the commands that repeat them; or lists the faults.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/environment.h"
#include "engine/base/units.h"
#include "engine/cli/console.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/faults/fault.h"
#include "engine/lab/commands.h"

namespace rankine::tools {
namespace {

using Clock = std::chrono::steady_clock;
using faults::CaseResult;
using faults::Fault;
using faults::FaultCase;
using faults::Tally;

struct FaultsArguments {
  std::vector<const Fault*> faults;  // empty: all
  std::optional<Collective> collective;
  std::string algorithms = "all";
  std::vector<int> ranks;  // empty: faults::kRanks, or kProcessRanks
  int repeat = 1;
  std::optional<std::uint64_t> seed;
  int jobs = 0;            // 0: one per core
  bool processes = false;  // ranks are processes
  int cycles = 0;          // > 0: plays only the fault `cycles`, this often per number of ranks
  bool quick = false;
  bool list = false;
  bool json = false, csv = false;

  static constexpr int kQuickSample = 40;  // `quick` plays one case in 40
  static constexpr int kMostRanks = 256;
  static constexpr int kRanksOfCycles = 4;
};

struct FaultsReport {
  struct Row {
    const Fault* fault;
    Tally tally{};
    double seconds = 0;  // sum over processes
  };
  std::vector<Row> rows{};
  Tally total{};
  std::vector<std::string> again{};  // commands that repeat broken cases
  std::uint64_t seed = 1;
  double seconds = 0;
  bool processes = false;                  // ranks were processes
  int cycles = 0;                          // played because of --cycles
  std::vector<const Fault*> not_played{};  // requested faults that this mode omits
};

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

// The rows and the total.
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
        "not played with ranks as {} ('rankine faults --list' gives the reasons): {}\n",
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
        "\n{}: a rank's process killed, a communicator of those left, one with its successor\n",
        counted(cycles, "cycle"));
  }
  console.out << fmt::format("\n{}, {}: {}, {} wrong, {} undocumented, {} late, in {}\n",
                             counted(total.cases, "case"), counted(calls, "call"),
                             counted(total.hangs, "hang"), total.wrong, total.undocumented,
                             total.late, format_seconds(seconds));
}

nlohmann::ordered_json to_json(const FaultsReport& report) {
  const auto& [rows, total, commands, seed, seconds, processes, cycles, not_played] = report;
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

// "4,5", "stall,leave" or "1..9".
Result<std::vector<const Fault*>> read_faults(std::string_view argument, std::string_view text) {
  const auto all = faults::faults();
  std::vector<const Fault*> chosen;
  for (const std::string_view part : split_list(text)) {
    const Fault* found = nullptr;
    for (const Fault& fault : all) {
      if (part == fault.name) found = &fault;
    }
    if (found != nullptr) {
      chosen.push_back(found);
      continue;
    }
    const auto numbers = parse_whole_list(argument, part, 1, static_cast<int>(all.size()));
    if (!numbers.ok() && !part.empty() && part.front() >= '0' && part.front() <= '9') {
      return numbers.status();
    }
    if (!numbers.ok()) {
      std::vector<std::string_view> names;
      for (const Fault& fault : all) names.push_back(fault.name);
      return unknown_name(argument, part, names);
    }
    for (const int number : *numbers) chosen.push_back(&all[static_cast<std::size_t>(number - 1)]);
  }
  return chosen;
}

Result<faults::Selection> selection_of(const FaultsArguments& arguments) {
  faults::Selection selection;
  selection.faults = arguments.faults;
  selection.ranks = arguments.ranks;
  selection.cycles = arguments.cycles;
  if (arguments.cycles > 0) {
    if (!arguments.processes) {
      return invalid_argument("--cycles is given; it needs ranks as processes: add --processes");
    }
    if (!selection.faults.empty()) {
      return invalid_argument(
          "--cycles is given; it plays only the fault cycles: leave out --fault");
    }
    for (const Fault& fault : faults::faults()) {
      if (fault.name == "cycles") selection.faults.push_back(&fault);
    }
    if (selection.ranks.empty()) selection.ranks = {FaultsArguments::kRanksOfCycles};
  }
  if (arguments.collective) selection.collectives = {*arguments.collective};
  if (arguments.algorithms != "all") {
    auto lines = read_algorithms("--algo", arguments.algorithms, arguments.collective);
    if (!lines.ok()) return lines.status();
    selection.algorithms = *lines;
    // Faults that do not depend on the algorithm are played for its collective.
    if (!arguments.collective) {
      for (const Algorithm* entry : *lines) selection.collectives.push_back(entry->collective);
    }
  }
  selection.repeat = arguments.repeat;
  selection.processes = arguments.processes;
  selection.seed = arguments.seed.value_or(1);
  if (arguments.quick) selection.sample = FaultsArguments::kQuickSample;
  return selection;
}

// The command that repeats a case. A case depends on its members, --seed and --repeat.
std::string again(const FaultCase& test, const FaultsArguments& arguments) {
  std::string text =
      fmt::format("rankine faults {} --fault {} --ranks {} --seed {}", name_of(test.collective),
                  test.fault->number, test.ranks, arguments.seed.value_or(1));
  if (test.algorithm != nullptr) text += fmt::format(" --algo {}", test.algorithm->name);
  if (arguments.processes) text += " --processes";
  if (test.fault->name == "cycles" && arguments.cycles > 0) {
    return fmt::format("rankine faults --processes --cycles {} --ranks {} --seed {}",
                       arguments.cycles, test.ranks, arguments.seed.value_or(1));
  }
  if (arguments.repeat > 1) text += fmt::format(" --repeat {}", arguments.repeat);
  return text;
}

std::vector<std::string> broken_cases(const std::vector<CaseResult>& results,
                                      const FaultsArguments& arguments) {
  constexpr std::size_t kShown = 10;
  std::vector<std::string> commands;
  for (const CaseResult& result : results) {
    if (result.tally.broken() == 0 || commands.size() == kShown) continue;
    commands.push_back(again(result.test, arguments));
  }
  return commands;
}

std::vector<const Fault*> chosen_faults(const FaultsArguments& arguments) {
  if (!arguments.faults.empty()) return arguments.faults;
  std::vector<const Fault*> all;
  for (const Fault& fault : faults::faults()) all.push_back(&fault);
  return all;
}

// The requested faults that are not played in the chosen mode (threads or processes).
std::vector<const Fault*> not_played(const FaultsArguments& arguments) {
  std::vector<const Fault*> left;
  for (const Fault* fault : chosen_faults(arguments)) {
    if (!faults::is_played(*fault, arguments.processes)) left.push_back(fault);
  }
  return left;
}

// Exit::wrong: a promise was broken.
Result<Exit> play_faults(const FaultsArguments& arguments, Console& console) {
  // Without this check, every case of every communicator would report the error.
  if (const auto environment = read_environment(); !environment.ok()) return environment.status();
  if (arguments.list && arguments.json) {
    return invalid_argument("--list is given; it prints text or CSV: leave out --json");
  }
  if (arguments.list) {
    print_list(chosen_faults(arguments), arguments.csv, console);
    return Exit::ok;
  }
  const std::vector<const Fault*> left_out = not_played(arguments);
  if (left_out.size() == arguments.faults.size() && !left_out.empty()) {
    const Fault& fault = *left_out.front();
    return invalid_argument(fmt::format(
        "--fault is '{}'; it needs ranks as {}{}", fault.name,
        arguments.processes ? "threads: " : "processes: add --processes", fault.threads_only));
  }
  const auto selection = selection_of(arguments);
  if (!selection.ok()) return selection.status();
  const std::vector<FaultCase> cases = faults::cases_of(*selection);
  if (cases.empty()) {
    return invalid_argument(
        "no case is left: the selected faults do not concern this collective, or no selected "
        "algorithm allows these --ranks; 'rankine faults --list' shows the faults");
  }
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  faults::RunnerOptions options{.jobs = arguments.jobs};
  Result<std::vector<CaseResult>> results = [&] {
    Progress progress(console);
    options.progress = [&](std::size_t done, const FaultCase& last) {
      progress.show(fmt::format("{} of {} cases, {}{}: {} among {} ranks", done, cases.size(),
                                format_seconds(seconds()), time_left(done, cases.size(), seconds()),
                                last.fault->name, last.ranks));
    };
    return faults::run_cases(cases, options);
  }();
  if (!results.ok()) return results.status();
  FaultsReport report = report_of(*results);
  report.again = broken_cases(*results, arguments);
  report.seed = selection->seed;
  report.processes = arguments.processes;
  if (arguments.cycles > 0) {
    for (const FaultCase& test : cases) report.cycles += test.cycles;
  }
  // A whole table on threads omits only faults for --processes and does not list them.
  const bool is_a_part = arguments.cycles > 0;
  if ((arguments.processes && !is_a_part) || !arguments.faults.empty()) {
    report.not_played = left_out;
  }
  report.seconds = seconds();
  if (arguments.json) {
    console.out << to_json(report).dump(2) << "\n";
  } else {
    print(report, arguments.csv, console);
  }
  return report.total.broken() == 0 ? Exit::ok : Exit::wrong;
}

}  // namespace

Subcommand add_faults(Command tool) {
  auto owned = std::make_shared<FaultsArguments>();
  FaultsArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "faults", "inject every fault of the table into every collective, and count broken promises");
  add_argument(app, "--fault", a.faults, read_faults, "LIST",
               "numbers or names: 4,5 or stall,leave or 1..9 (all)");
  add_argument(app, "collective,--collective", a.collective, read_collective, "NAME",
               "only this one");
  add_text(app, "--algo,--algorithm", a.algorithms, "LIST", "names of the catalogue, or all (all)");
  add_argument(
      app, "-t,--ranks", a.ranks,
      [](std::string_view argument, std::string_view text) {
        return parse_whole_list(argument, text, 2, FaultsArguments::kMostRanks);
      },
      "LIST", "N: 8, 2,3,8 or 2..16 (2,3,4,5,7,8,16,33,64; processes 2,3,4,7)");
  add_argument(app, "--repeat", a.repeat, Whole{1, 1'000'000}, "N",
               "repetitions of each case, each with another seed (1)");
  add_argument(app, "--seed", a.seed, read_seed, "N",
               "seed of random choices: victims, steps, sizes, types (1)");
  add_argument(app, "--jobs", a.jobs, Whole{1, 1024}, "N",
               "processes at once (one per core that affinity and quota allow)");
  app.add_flag(
      "--processes", a.processes,
      "ranks are processes: plays the table's faults of processes, and processes that end");
  add_argument(app, "--cycles", a.cycles, Whole{1, 1'000'000}, "N",
               "with --processes: a rank is killed and replaced N times (among 4 ranks)");
  app.add_flag("--quick", a.quick, "one case in 40, the same ones for the same seed");
  app.add_flag("--list", a.list, "list the faults and play none");
  add_formats(app, a.json, a.csv, "counts and remarks as JSON");
  app.footer(
      "The promise: every call of every surviving rank returns within its deadline plus one "
      "second, with success or one documented error; a success is never wrong; then a new "
      "communicator works in the same process. Columns: ok, successes of single ranks; hangs, "
      "cases in which a call never returned; wrong, successes with wrong data, and changes of "
      "bytes that no rank may change; undoc, outcomes that are not documented for the fault, and "
      "processes that died; late, calls that returned more than a second after their deadline "
      "(errors: after the loss, exception or abort() that is the fault). With ranks as processes, "
      "the surviving processes make the new communicator, and a file that remains in /dev/shm "
      "counts as undocumented.\n"
      "Examples:\n"
      "  rankine faults --quick                          a sample, in seconds\n"
      "  rankine faults                                  the whole table\n"
      "  rankine faults broadcast --fault 4..8 --ranks 2..9 --repeat 5\n"
      "  rankine faults --fault stall --algo ring --ranks 64 --seed 7\n"
      "  rankine faults --processes --fault killed --ranks 3 --repeat 10\n"
      "  rankine faults --processes --cycles 1000\n"
      "Exit codes: 0 all promises kept, 1 one was broken, 2 usage.");
  return {app, [owned](Console& console) { return play_faults(*owned, console); }};
}

}  // namespace rankine::tools
