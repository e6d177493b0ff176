#include "engine/read/statement.h"

#include <fmt/format.h>

#include <string_view>

#include "algorithms/closed_form.h"

namespace rankine {

std::optional<std::string> compare_statement(const Algorithm& line, const Params& params,
                                             const Goal& goal, const Counts& counts) {
  const int m = blocks_per_m(goal);
  const struct {
    const char* field;
    std::string_view formula;
    Rational derived;
    const char* unit;
  } fields[] = {
      {"rounds", line.rounds, counts.rounds, ""},
      {"sent", line.sent, Rational(counts.busiest.sent, m), " M"},
      {"received", line.received, Rational(counts.busiest.received, m), " M"},
      {"send_ports", line.send_ports, counts.busiest.send_ports, ""},
      {"receive_ports", line.receive_ports, counts.busiest.receive_ports, ""},
  };
  for (const auto& field : fields) {
    if (field.formula == kComputed) continue;
    const Rational stated = evaluate(field.formula, params);
    if (stated == field.derived) continue;
    return fmt::format("{} '{}' states {} = {} = {}{}; the schedule has {}{}",
                       name_of(line.collective), line.name, field.field, field.formula,
                       stated.to_string(), field.unit, field.derived.to_string(), field.unit);
  }
  return std::nullopt;
}

}  // namespace rankine
