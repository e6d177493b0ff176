// Implements rankine soak: plays the soak of engine/faults/soak.h and prints its events, latencies
// by quarter, and counts.

#include "engine/faults/soak.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>

#include "engine/api/environment.h"
#include "engine/base/units.h"
#include "engine/cli/console.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/lab/commands.h"

namespace rankine::tools {
namespace {

using faults::SoakCount;
using faults::SoakLatencies;
using faults::SoakReport;

struct SoakArguments {
  int minutes = 20, ranks = 4;
  std::optional<std::uint64_t> seed;
  bool no_load = false;
};

std::string events_of(const SoakReport& report) {
  std::string text;
  for (const auto& [name, count] : report.events) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

void print(const SoakReport& report, Console& console) {
  Table times(as::text("latency"), as::text("phase"), as::number("samples"),
              as::measured_time("p50"), as::measured_time("p90"), as::measured_time("p99"),
              as::measured_time("p99.9"), as::measured_time("max"));
  const auto add = [&](const std::string& what, const std::string& phase, const SoakLatencies& t) {
    times.add(what, phase, t.samples, t.p50, t.p90, t.p99, t.p999, t.most);
  };
  const auto name_of_phase = [](int p) {
    return p == 0 ? std::string("warm-up") : fmt::format("quarter {}", p);
  };
  Table counts(as::text("count"), as::number("warm-up"), as::number("1"), as::number("2"),
               as::number("3"), as::number("4"));
  for (int p = 0; p < faults::kSoakPhases; ++p) {
    add("all-reduce, 32 B", name_of_phase(p), report.small[static_cast<std::size_t>(p)]);
  }
  for (int p = 0; p < faults::kSoakPhases; ++p) {
    add("calls of all kinds", name_of_phase(p), report.any[static_cast<std::size_t>(p)]);
  }
  add("error to shrunken", "all", report.shrinks);
  add("shrunken to grown", "all", report.grows);
  for (const SoakCount& count : faults::kSoakCounts) {
    auto& row = counts.add(count.name);
    for (const auto& of_phase : report.counts) row.emplace_back(of_phase.*count.value);
  }
  console.out << events_of(report) << "\n\n"
              << to_text(times) << "\nleft in the process that lives through the run:\n"
              << to_text(counts) << "\n";
  for (const std::string& what : report.broken) console.out << "broken: " << what << "\n";
  // The last line is read by .ci/run.
  console.out << fmt::format("{} passed, {} failed\n", report.broken.empty() ? 1 : 0,
                             report.broken.size());
}

Result<Exit> play_soak(const SoakArguments& arguments, Console& console) {
  if (const auto environment = read_environment(); !environment.ok()) return environment.status();
  const InterruptGuard guard;
  Progress progress(console);
  const auto report = faults::soak(
      {.ranks = arguments.ranks,
       .seconds = 60.0 * arguments.minutes,
       .seed = arguments.seed.value_or(1),
       .other_load = !arguments.no_load,
       .progress = [&](double seconds, const SoakReport& so_far) {
         progress.show(fmt::format("{} of {} minutes: {}", static_cast<int>(seconds / 60),
                                   arguments.minutes, events_of(so_far)));
         return interruption() == 0;
       }});
  progress.clear();
  if (!report.ok()) return report.status();
  print(*report, console);
  return report->broken.empty() ? Exit::ok : Exit::wrong;
}

}  // namespace

Subcommand add_soak(Command tool) {
  auto owned = std::make_shared<SoakArguments>();
  SoakArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "soak", "kill, shrink and grow ranks for a long time, and count what is left behind");
  add_argument(app, "--minutes", a.minutes, Whole{1, 10'000}, "N",
               "length of the run, a tenth of which is warm-up (20)");
  add_argument(app, "-t,--ranks", a.ranks, Whole{2, faults::SoakOptions::kMostRanks}, "N",
               "processes (4)");
  add_argument(app, "--seed", a.seed, read_seed, "N", "seed of all random choices (1)");
  app.add_flag("--no-load", a.no_load, "no other load: no process per core that computes");
  app.footer(
      "Processes make collectives of varying sizes, messages and groups, with a tuning table and "
      "beside other load. At random times one is killed, or revokes the communicator; the others "
      "shrink, and grow with its successor, during which processes are killed, too. Each result is "
      "checked. After the warm-up and after each quarter all ranks destroy their communicators, "
      "and "
      "the process that lives through the run counts its memory, descriptors, threads and "
      "mappings.\n"
      "Exit codes: 0 no wrong result and nothing left behind, 1 otherwise, 2 usage. Times never "
      "fail the run.");
  return {app, [owned](Console& console) { return play_soak(*owned, console); }};
}

}  // namespace rankine::tools
