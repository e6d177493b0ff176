#include "engine/tools/lesson/check_function.h"

#include <fmt/format.h>

#include <optional>
#include <ostream>
#include <utility>

#include "engine/base/json_text.h"
#include "engine/base/units.h"
#include "engine/tools/interrupt.h"
#include "engine/tools/lesson/judge.h"
#include "engine/tools/lesson/judgement_json.h"
#include "engine/tools/lesson/judgement_text.h"
#include "engine/tools/lesson/schedule_function.h"
#include "engine/tools/network_text.h"
#include "numa/cpus.h"

namespace rankine::tools {
namespace {

std::vector<Cell> row_of(int ranks, const Judgement& judged) {
  if (judged.violation) {
    return {ranks, "wrong", "", "", "", "", "", violation_name(*judged.violation)};
  }
  const double seconds = judged.simulation.seconds;
  std::vector<Cell> row = {ranks,
                           judged.counts.rounds,
                           judged.least_rounds,
                           judged.bytes,
                           times_of(judged.bytes, judged.least_bytes),
                           seconds};
  if (judged.best)
    row.insert(row.end(), {times_of(seconds, judged.best->seconds), judged.best->algorithm->name});
  return row;
}

struct Wrong {
  WrittenSchedule written;
  Violation violation;
};

void print_verdict(const std::vector<int>& proved, const std::vector<int>& wrong,
                   const std::optional<Wrong>& first, std::ostream& out) {
  if (wrong.empty()) {
    out << fmt::format("proved for N = {}\n", format_cpu_list(proved));
    return;
  }
  out << fmt::format("wrong for N = {}{}\n", format_cpu_list(wrong),
                     proved.empty() ? "" : "; proved for N = " + format_cpu_list(proved))
      << fmt::format("N = {}: {}\n", wrong[0], violation_name(first->violation))
      << violation_text(first->written, first->violation);
}

}  // namespace

Result<Exit> check_function(const FunctionQuestion& q, Console& console) {
  // A function may go on for ever; its folder and its process are not left behind.
  const InterruptGuard guard;
  const auto interrupted = [&console] {
    console.err << "rankine check: interrupted\n";
    return exit_of_interruption();
  };
  const auto function = ScheduleFunction::open(q.file, q.limits);
  if (interruption() != 0) return interrupted();
  if (!function.ok()) return function.status();
  Table table("N", "rounds", as::number("least", "", "-"), as::bytes("bytes"),
              As("{:.2f} x")("of the least"), as::model_time("time"), As("{:.2f} x")("of the best"),
              as::text("the best"));
  std::vector<int> proved, wrong;
  std::optional<Wrong> first;
  Progress progress(console);
  for (const int ranks : q.ranks) {
    progress.show(fmt::format("{}, N = {}", q.file, ranks));
    auto written = function->schedule(ranks);
    if (interruption() != 0) {
      progress.clear();
      return interrupted();
    }
    if (!written.ok()) return written.status();
    const auto fabric = wired_for(q.network, ranks);
    if (!fabric.ok()) return fabric.status();
    const auto judged = judge(*written, *fabric, q.bytes, q.options);
    if (!judged.ok()) return judged.status();
    (judged->violation ? wrong : proved).push_back(ranks);
    if (q.json) {
      console.out << judgement_json(*written, *judged, *fabric, q.options.sync).dump() << '\n';
      continue;
    }
    table.rows.push_back(row_of(ranks, *judged));
    if (judged->violation && !first) first = Wrong{std::move(*written), *judged->violation};
  }
  progress.clear();
  const Exit exit = wrong.empty() ? Exit::ok : Exit::wrong;
  if (q.json) return exit;
  console.out << to_text(table) << '\n';
  print_verdict(proved, wrong, first, console.out);
  if (!proved.empty()) {
    console.out << fmt::format("\nbytes: of {}, by the busiest rank; time: on {}, {}\n",
                               format_bytes(q.bytes), describe(q.network), name_of(q.options.sync));
  }
  return exit;
}

}  // namespace rankine::tools
