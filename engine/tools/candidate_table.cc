#include "engine/tools/candidate_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/tools/text.h"

namespace rankine::tools {

Table table_of(const std::vector<Candidate>& candidates) {
  const bool weighed = std::any_of(candidates.begin(), candidates.end(),
                                   [](const Candidate& c) { return c.c_real.has_value(); });
  const auto has_segments = [](const Candidate& c) {
    return c.ok() && c.algorithm->takes("segments");
  };
  const bool segmented = std::any_of(candidates.begin(), candidates.end(), has_segments);
  Table table(as::text("", "-"), as::text("algorithm"), as::model_time("time"),
              As("{:.3g}")("c_real").when(weighed), as::model_time("expected").when(weighed),
              As("{:.2f} x")("to best", "-"), "rounds", as::number("segments").when(segmented),
              as::text("", "-"), as::data("refusal"));
  for (const Candidate& c : candidates) {
    const bool known = c.ok() && (!weighed || c.c_real);
    const double best = candidates.front().expected();
    std::vector<Cell>& row = table.add(&c == candidates.data() && c.ok() ? "*" : "",
                                       c.algorithm->name, c.ok() ? Cell(c.seconds) : Cell(),
                                       c.c_real, c.c_real ? Cell(c.expected()) : Cell());
    row.push_back(!known ? Cell() : Cell(best > 0 ? c.expected() / best : 1.0));
    row.push_back(c.ok() ? Cell(c.rounds) : Cell());
    row.push_back(has_segments(c) ? Cell(c.params.segments) : Cell());
    row.push_back(!c.ok() ? "cannot run: " + c.refusal : known ? "" : "no c_real was measured");
    if (!c.ok()) row.push_back(c.refusal);
  }
  return table;
}

std::string source_of(std::span<const MeasuredCReal> measured, const TuningTable& table) {
  return fmt::format("c_real measured among {}, table of {}",
                     counted(measured.front().ranks, "rank"), table.made());
}

}  // namespace rankine::tools
