#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ostream>

#include "algorithms/torus.h"
#include "engine/base/units.h"
#include "engine/tools/reproduce_report.h"
#include "engine/tools/table.h"

namespace rankine::reproduce {
namespace {

using tools::Cell, tools::Table;
namespace as = tools::as;

std::string number(const Value& value) {
  return fmt::format("{:.4g}", static_cast<double>(value.approximate()));
}
std::string number(const std::optional<Value>& value) { return value ? number(*value) : "-"; }

void print_table(std::ostream& out, const std::vector<TableRow>& all, int table) {
  out << fmt::format(
      "Table {}: how many times the optimum. Printed is the paper's entry (n without end), derived "
      "what its text\ncomes to for just so many ranks, found the schedule's; = where these two are "
      "equal, as fractions.\n\n",
      table);
  Table text(as::text(""), as::text(""), "", "", "", "", "", "", "", "", "", as::text(""));
  text.add("", "", "rounds", "", "", "bytes", "", "", "delay");
  text.add("algorithm", "ranks", "printed", "derived", "found", "printed", "derived", "found",
           "printed", "derived", "found");
  std::vector<std::string> notes;
  for (const TableRow& row : all) {
    if (row.table != table) continue;
    std::vector<Cell>& cells = text.add(row.line->name, dims_text(row.dims));
    for (const TableEntry* entry : {&row.lambda, &row.delta, &row.theta}) {
      cells.push_back(number(entry->printed));
      cells.push_back(number(entry->derived));
      cells.push_back(number(entry->found) + (entry->exact() ? " =" : "  "));
    }
    if (!row.why.empty()) {
      const std::string why(row.why);
      const auto known = std::find(notes.begin(), notes.end(), why);
      cells.push_back(fmt::format("({})", known - notes.begin() + 1));
      if (known == notes.end()) notes.push_back(why);
    }
  }
  out << to_text(text);
  for (std::size_t i = 0; i < notes.size(); ++i) out << fmt::format("({}) {}\n", i + 1, notes[i]);
  out << "\n";
}

void print_figure(std::ostream& out, const Panel& panel) {
  constexpr std::size_t kEvery = 2;  // the figures' marks are powers of four
  out << panel.spec.title << "\n\n";
  Table table(as::bytes("size"));
  for (const Curve& curve : panel.curves) {
    const std::string name = std::string(curve.contender->name) + ", %";
    table.columns.push_back(&curve == &panel.trivance() ? "Trivance" : as::number(name));
  }
  const auto sizes = figure_sizes();
  for (std::size_t i = 0; i < sizes.size(); i += kEvery) {
    const auto bytes = static_cast<double>(sizes[i]);
    std::vector<Cell>& cells = table.add(bytes);
    for (const Curve& curve : panel.curves) {
      const std::string_view form = letter_of(panel.form(curve, bytes));
      cells.push_back(&curve == &panel.trivance()
                          ? fmt::format("{} {}", format_seconds(panel.time(curve, bytes)), form)
                          : fmt::format("{:+.1f} {}", 100 * panel.gain(curve, bytes), form));
    }
  }
  out << to_text(table) << "fastest: ";
  std::string text(panel.fastest(static_cast<double>(sizes.front())).contender->name);
  for (const Crossover& crossover : crossovers(panel)) {
    text += fmt::format(", {} from {}", crossover.after->contender->name,
                        format_bytes(crossover.bytes));
  }
  out << text << "\nfrom L to B:";
  std::string changes;
  for (const Curve& curve : panel.curves) {
    if (const auto bytes = panel.change_of_form(curve)) {
      changes += fmt::format("{} {} at {}", changes.empty() ? "" : ",", curve.contender->name,
                             format_bytes(*bytes));
    }
  }
  out << changes << "\n\n";
}

void print_statement(std::ostream& out, std::string_view id, std::string_view where,
                     std::string_view text, std::string_view stated, std::string_view found,
                     std::string_view verdict, std::string_view why) {
  out << fmt::format("{}  [{}]\n  {}\n  paper {}; found {}: {}\n", id, where, text, stated, found,
                     verdict);
  if (!why.empty()) out << fmt::format("  {}\n", why);
  out << "\n";
}

}  // namespace

void print(std::ostream& out, const Trivance& trivance) {
  out << kTrivanceTitle << "\n\n";
  print_table(out, trivance.rows, 1);
  print_table(out, trivance.rows, 2);
  out << "Figures 6 to 10: time over that of Trivance, less 1, in percent (positive: Trivance is "
         "faster); L or B is the form\nthat is the faster one. Eq. (1), 1.5 us per round, 200 ns "
         "per hop.\n\n";
  for (const Panel& panel : trivance.panels) print_figure(out, panel);
  out << "Statements. Gains are those of the figures, against the fastest of the others.\n\n";
  for (const Outcome& outcome : trivance.outcomes) {
    const Statement& s = *outcome.statement;
    print_statement(out, s.id, s.where, s.text, stated_text(s), found_text(outcome),
                    verdict_text(outcome), outcome.agrees ? "" : s.why);
  }
  out << fmt::format("{} of {} statements agree\n", agreeing(trivance.outcomes),
                     trivance.outcomes.size());
}

void print(std::ostream& out, const std::vector<TraffOutcome>& outcomes) {
  out << kTraffTitle << "\n\n";
  for (const TraffOutcome& outcome : outcomes) {
    const TraffStatement& s = *outcome.statement;
    out << fmt::format("{}  [{}]\n  {}\n  {} {}, p = {}\n  paper {}; found {}: {}\n", s.id, s.where,
                       s.text, outcome.cases, outcome.cases == 1 ? "case" : "cases",
                       outcome.processors, outcome.shown.stated, outcome.shown.found,
                       verdict_text(outcome));
    if (!outcome.agrees() && !s.why.empty()) out << fmt::format("  {}\n", s.why);
    out << "\n";
  }
  out << fmt::format("{} of {} statements agree\n", agreeing(outcomes), outcomes.size());
}

}  // namespace rankine::reproduce
