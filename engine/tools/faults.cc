#include "engine/tools/faults.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <ostream>
#include <string_view>

#include "engine/api/environment.h"
#include "engine/tools/faults_report.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

using Clock = std::chrono::steady_clock;
using faults::CaseResult;
using faults::Fault;
using faults::FaultCase;

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
      return invalid_argument("--cycles is for ranks that are processes: add --processes");
    }
    if (!selection.faults.empty()) {
      return invalid_argument("--cycles is of one fault, cycles, and --fault names some");
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
      for (const Algorithm* line : *lines) selection.collectives.push_back(line->collective);
    }
  }
  selection.repeat = arguments.repeat;
  selection.processes = arguments.processes;
  selection.seed = arguments.seed.value_or(1);
  if (arguments.quick) selection.sample = FaultsArguments::kQuickSample;
  return selection;
}

// The command that plays a case again: cases depend on what they are, and on --seed and --repeat.
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

// Of those that were asked for, what is not played where ranks are such.
std::vector<const Fault*> not_played(const FaultsArguments& arguments) {
  std::vector<const Fault*> left;
  for (const Fault* fault : chosen_faults(arguments)) {
    if (!faults::is_played(*fault, arguments.processes)) left.push_back(fault);
  }
  return left;
}

}  // namespace

Result<Exit> play_faults(const FaultsArguments& arguments, Console& console) {
  // Else every case of every communicator would say so.
  if (const auto environment = read_environment(); !environment.ok()) return environment.status();
  if (arguments.list && arguments.json) {
    return invalid_argument("--list is text; leave out --json, which is of what was played");
  }
  if (arguments.list) {
    print_list(chosen_faults(arguments), arguments.csv, console);
    return Exit::ok;
  }
  const std::vector<const Fault*> left_out = not_played(arguments);
  if (left_out.size() == arguments.faults.size() && !left_out.empty()) {
    const Fault& fault = *left_out.front();
    return invalid_argument(fmt::format(
        "--fault is '{}', which is for ranks that are {}{}", fault.name,
        arguments.processes ? "threads: " : "processes: add --processes", fault.threads_only));
  }
  const auto selection = selection_of(arguments);
  if (!selection.ok()) return selection.status();
  const std::vector<FaultCase> cases = faults::cases_of(*selection);
  if (cases.empty()) {
    return invalid_argument(
        "no case is left: the faults asked for do not concern that collective, or no algorithm "
        "asked for allows these --ranks; 'rankine faults --list' shows the faults");
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
  // Of a whole table of threads nothing is left out but what --processes is there for.
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
               "each case so many times, with other seeds (1)");
  add_argument(app, "--seed", a.seed, read_seed, "N",
               "of what cases leave open: victims, steps, sizes, types (1)");
  add_argument(app, "--jobs", a.jobs, Whole{1, 1024}, "N",
               "processes at once (one per core that affinity and quota allow)");
  app.add_flag("--processes", a.processes,
               "ranks are processes: what concerns them of the table, and processes that end");
  add_argument(app, "--cycles", a.cycles, Whole{1, 1'000'000}, "N",
               "with --processes: a rank is killed and replaced so many times (among 4 ranks)");
  app.add_flag("--quick", a.quick, "one case in 40, the same ones for the same seed");
  app.add_flag("--list", a.list, "say what the faults are, and play none");
  add_formats(app, a.json, a.csv, "counts and remarks as JSON");
  app.footer(
      "The promise: every call of every surviving rank returns within its deadline plus one "
      "second, "
      "with success or one documented error; a success is never wrong; then a new communicator "
      "works in the same process. Columns: ok, successes of single ranks; hangs, cases in which a "
      "call never returned; wrong, successes with wrong data and bytes changed that nobody may "
      "change; undoc, any other outcome than those documented for the fault, and processes that "
      "died; late, calls that came more than a second after their deadline (errors: after the "
      "loss, "
      "exception or abort() that is the fault). Where ranks are processes, those that are left "
      "make "
      "the new communicator, and a file that they leave in /dev/shm counts as undocumented.\n"
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
