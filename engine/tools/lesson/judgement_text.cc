#include "engine/tools/lesson/judgement_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/units.h"
#include "engine/tools/network_text.h"

namespace rankine::tools {

std::string violation_name(const Violation& violation) {
  std::string out(name_of(violation.kind));
  std::string_view between = " at ";
  for (const auto& [name, at] :
       {std::pair("round", violation.round), std::pair("rank", violation.rank),
        std::pair("block", violation.block)}) {
    if (at < 0) continue;
    out += fmt::format("{}{} {}", between, name, at);
    between = ", ";
  }
  return out;
}

std::string violation_text(const WrittenSchedule& written, const Violation& violation) {
  std::string out =
      fmt::format("  the rule: {}\n  here: {}\n", rule_of(violation.kind), violation.text);
  constexpr std::size_t kMostShown = 8;
  const std::vector<std::size_t> found = transfers_at(written, violation);
  for (std::size_t i = 0; i < found.size() && i < kMostShown; ++i) {
    const WrittenTransfer& one =
        written.rounds[static_cast<std::size_t>(violation.round)][found[i]];
    const std::string where = one.line > 0
                                  ? fmt::format("line {}", one.line)
                                  : fmt::format("round {}, transfer {}", violation.round, found[i]);
    out += fmt::format("  {}: {}\n", where, transfer_text(one.transfer));
  }
  if (found.size() > kMostShown) out += fmt::format("  and {} more\n", found.size() - kMostShown);
  return out;
}

Cell times_of(double value, double least) { return least > 0 ? Cell(value / least) : "-"; }

std::string costs_text(const Judgement& judged, const Fabric& fabric, std::uint64_t bytes,
                       Sync sync) {
  const RankCounts& busiest = judged.counts.busiest;
  const Simulation& simulated = judged.simulation;
  Table table(as::text(""), as::number(""), As("{:.2f} x")(""), as::text(""));
  auto& rows = table.rows;
  rows = {{"rounds", judged.counts.rounds, "", "a switch helps, so nothing to compare"}};
  if (judged.least_rounds) {
    rows.back()[2] = times_of(judged.counts.rounds, *judged.least_rounds);
    rows.back()[3] = fmt::format("the least with as many ports: {}", *judged.least_rounds);
  }
  rows.push_back({"bytes", format_bytes(judged.bytes), times_of(judged.bytes, judged.least_bytes),
                  fmt::format("some rank has to move {} of M, which is {}",
                              format_bytes(judged.least_bytes), format_bytes(bytes))});
  rows.push_back({"ports", std::max(busiest.send_ports, busiest.receive_ports), "",
                  fmt::format("sends {} and receives {} in a round at most; the network has {}",
                              busiest.send_ports, busiest.receive_ports, fabric.ports)});
  rows.push_back({"time", format_duration(simulated.seconds), "", "nothing to compare with"});
  if (judged.best) {
    rows.back()[2] = times_of(simulated.seconds, judged.best->seconds);
    rows.back()[3] = fmt::format("the catalogue's best: {}, {}", judged.best->algorithm->name,
                                 format_duration(judged.best->seconds));
  }
  return fmt::format("{}\nBytes and ports of the busiest rank; time on {}, {}.\n",
                     to_text(table, "  "), describe(fabric), name_of(sync));
}

}  // namespace rankine::tools
