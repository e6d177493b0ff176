#include "engine/tools/simulate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "engine/base/units.h"
#include "engine/tools/metrics.h"
#include "engine/tools/port_budget.h"
#include "engine/tools/table.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

// Nothing of who needs one port; of several algorithms only those that want more than there is.
void print_port_budgets(const std::vector<Answer>& answers, Console& console) {
  for (const Answer& a : answers) {
    const int needed = a.result.ports_needed(), ports = a.question.fabric.ports;
    if (needed <= 1 || (answers.size() > 1 && !rounds_serialise(needed, ports))) continue;
    console.out << fmt::format("{} {}\n", a.question.algorithm->name, port_budget(needed, ports));
  }
}

// As long as the time is, of the longest; at least one where there is time.
std::string bar(double seconds, double longest) {
  constexpr double kLongest = 20;
  if (!(longest > 0) || !(seconds > 0)) return {};
  return std::string(static_cast<std::size_t>(std::max(1.0, kLongest * seconds / longest)), '#');
}

}  // namespace

void print(std::vector<Answer> answers, bool rounds, Console& console) {
  std::stable_sort(answers.begin(), answers.end(),
                   [](const Answer& a, const Answer& b) { return a.seconds() < b.seconds(); });
  const bool contest = answers.size() > 1;
  console.out << describe(answers.front().question) << "\n";
  if (const Question& question = answers.front().question; question.fidelity == Fidelity::flow) {
    console.out << "fidelity flow: messages share links max-min fairly in continuous time\n";
  } else if (question.fidelity == Fidelity::packet) {
    console.out << fmt::format(
        "fidelity packet: links store and forward packets of {}, first come, first served\n",
        format_bytes(question.fabric.mtu));
  }
  console.out << "\n";
  std::vector<std::vector<std::string>> rows = {{"algorithm", "P", "time", "algbw", "busbw", "eta",
                                                 "rounds", "messages", "sent", "received",
                                                 "reduced", "partners", "ports"}};
  if (contest) rows.front().insert(rows.front().begin() + 3, "");
  const bool shared = answers.front().question.fabric.wiring.shares_links();
  if (shared) rows.front().insert(rows.front().end(), {"link", "congestion", "hops"});
  for (const Answer& a : answers) {
    const Simulation& r = a.result;
    const auto size = [&r](const std::vector<std::int64_t>& weights) {
      return format_bytes(bytes_of(greatest(weights), r.weight_per_byte));
    };
    rows.push_back(
        {(!contest               ? ""
          : &a == answers.data() ? "* "
                                 : "  ") +
             std::string(a.question.algorithm->name),
         a.question.algorithm->takes("segments") ? std::to_string(a.params.segments) : "-",
         format_duration(a.seconds()), fmt::format("{:.2f}", a.algbw() * 1e-9),
         fmt::format("{:.2f}", a.busbw() * 1e-9), eta_text(a.eta()), std::to_string(r.rounds),
         std::to_string(r.messages), size(r.sent), size(r.received), size(r.reduced),
         std::to_string(r.partners_max), std::to_string(r.ports_needed())});
    if (contest) {
      rows.back().insert(rows.back().begin() + 3, bar(a.seconds(), answers.back().seconds()));
    }
    if (shared) {
      const bool none = r.traffic.empty();
      rows.back().push_back(
          none ? "-" : format_bytes(bytes_of_load(busiest_round(r).load, r.weight_per_byte)));
      rows.back().push_back(fmt::format("{:g}", congestion_max(r)));
      rows.back().push_back(std::to_string(hops_max(r)));
    }
  }
  console.out << columns(rows, contest ? "lrrlrrrrrrrrrrrrr" : "lrrrrrrrrrrrrrrr")
              << (contest ? "\n* the fastest" : "")
              << "\nalgbw and busbw in GB/s; eta: busbw over the peak; sent, received, reduced, "
                 "partners and ports of the "
                 "busiest rank.\n"
              << (shared ? "link, congestion and hops: what the busiest link carries in a round, "
                           "in bytes and in messages of the\nround's largest size, and the links "
                           "of the longest route; of the worst round each.\n"
                         : "");
  print_port_budgets(answers, console);
  if (!rounds) return;
  for (const Answer& a : answers) {
    std::vector<std::vector<std::string>> ends = {{"round", "ends at"}};
    if (shared) ends.front().insert(ends.front().end(), {"link", "congestion", "hops"});
    for (std::size_t k = 0; k < a.result.round_end.size(); ++k) {
      ends.push_back({std::to_string(k), format_duration(a.round_end(k))});
      if (!shared) continue;
      const RoundTraffic& round = a.result.traffic[k];
      ends.back().push_back(format_bytes(bytes_of_load(round.load, a.result.weight_per_byte)));
      ends.back().push_back(fmt::format("{:g}", round.congestion()));
      ends.back().push_back(std::to_string(round.hops));
    }
    console.out << "\n" << a.question.algorithm->name << "\n" << columns(ends, "rrrrr");
  }
}

}  // namespace rankine::tools
