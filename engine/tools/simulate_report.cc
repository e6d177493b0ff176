#include "engine/tools/simulate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "engine/base/units.h"
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

Table rounds_of(const std::vector<Answer>& answers, bool shared) {
  Table table(as::data("algorithm"), "round", as::model_time("ends at"),
              as::bytes("link").when(shared), As("{:g}")("congestion").when(shared),
              as::number("hops").when(shared));
  for (const Answer& a : answers) {
    for (std::size_t k = 0; k < a.result.round_end.size(); ++k) {
      auto& row = table.add(a.question.algorithm->name, k, a.round_end(k));
      if (!shared) continue;
      const RoundTraffic& round = a.result.traffic[k];
      row.insert(row.end(), {bytes_of_load(round.load, a.result.weight_per_byte),
                             round.congestion(), round.hops});
    }
  }
  return table;
}

}  // namespace

void print(std::vector<Answer> answers, bool rounds, bool csv, Console& console) {
  std::stable_sort(answers.begin(), answers.end(),
                   [](const Answer& a, const Answer& b) { return a.seconds() < b.seconds(); });
  const bool contest = answers.size() > 1;
  const bool shared = answers.front().question.fabric.wiring.shares_links();
  Table table(as::text("algorithm", "-"), as::data("algorithm"), as::number("P", "segments", "-"),
              as::model_time("time"), as::text("").when(contest),
              As("{:.2f}")("algbw", "algbw_gbs"), As("{:.2f}")("busbw", "busbw_gbs"),
              As("{:.1f}%")("eta", "", "-"), "rounds", "messages", as::bytes("sent"),
              as::bytes("received"), as::bytes("reduced"), "partners", "ports",
              as::bytes("link", "", "-").when(shared), As("{:g}")("congestion").when(shared),
              as::number("hops").when(shared));
  for (const Answer& a : answers) {
    const Simulation& r = a.result;
    const std::string name(a.question.algorithm->name);
    const std::string_view mark = !contest ? "" : &a == answers.data() ? "* " : "  ";
    const auto size = [&r](const std::vector<std::int64_t>& weights) {
      return bytes_of(greatest(weights), r.weight_per_byte);
    };
    auto& row =
        table.add(std::string(mark) + name, name,
                  a.question.algorithm->takes("segments") ? Cell(a.params.segments) : Cell(),
                  a.seconds(), bar(a.seconds(), answers.back().seconds()), a.algbw() * 1e-9,
                  a.busbw() * 1e-9, a.eta(), r.rounds, r.messages, size(r.sent), size(r.received),
                  size(r.reduced), r.partners_max, r.ports_needed());
    if (!shared) continue;
    row.insert(
        row.end(),
        {r.traffic.empty() ? Cell() : bytes_of_load(busiest_round(r).load, r.weight_per_byte),
         congestion_max(r), hops_max(r)});
  }
  if (csv) {
    console.out << to_csv(rounds ? rounds_of(answers, shared) : table);
    return;
  }
  console.out << describe(answers.front().question) << "\n";
  if (const Question& question = answers.front().question; question.fidelity == Fidelity::flow) {
    console.out << "fidelity flow: messages share links max-min fairly in continuous time\n";
  } else if (question.fidelity == Fidelity::packet) {
    console.out << fmt::format(
        "fidelity packet: links store and forward packets of {}, first come, first served\n",
        format_bytes(question.fabric.mtu));
  }
  console.out << "\n";
  console.out << to_text(table) << (contest ? "\n* the fastest" : "")
              << "\nP: segments; algbw and busbw in GB/s; eta: busbw over the peak; sent, received, "
                 "reduced, partners and\nports of the busiest rank.\n"
              << (shared ? "link, congestion and hops: what the busiest link carries in a round, "
                           "in bytes and in messages of the\nround's largest size, and the links "
                           "of the longest route; of the worst round each.\n"
                         : "");
  print_port_budgets(answers, console);
  if (!rounds) return;
  for (const Answer& a : answers) {
    console.out << "\n" << a.question.algorithm->name << "\n" << to_text(rounds_of({a}, shared));
  }
}

}  // namespace rankine::tools
