#include "engine/cli/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/json_text.h"
#include "engine/base/units.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/read/count.h"

namespace rankine::tools {

bool is_order(std::string_view text) {
  bool found = false, first = true;
  for_each_line(text, [&](int, const Words& words) {
    if (std::exchange(first, false)) found = words[0] == "pipeline";
  });
  return found;
}

namespace {

// Each rank that has the data sends it to `ports` others in a round.
int rounds_to_reach(int ranks, int ports) {
  int rounds = 0;
  for (std::int64_t reached = 1; reached < ranks; reached *= ports + 1) ++rounds;
  return rounds;
}

bool needs_switch(const Schedule& schedule) {
  bool found = false;
  for (int k = 0; k < schedule.rounds && !found; ++k) {
    for_each_transfer(schedule, k, [&found](const Transfer& t) {
      found = found || t.from.size() > 1 || t.to.size() > 1;
    });
  }
  return found;
}

bool has(const IndexList& list, int index) {
  bool found = false;
  list.for_each([&](int each) { found = found || each == index; });
  return found;
}

}  // namespace

Result<Judgement> judge(const WrittenSchedule& written, const Fabric& fabric, std::uint64_t bytes,
                        const SimulateOptions& options) {
  const Schedule schedule = written.schedule();
  const CollectiveSpec& goal = written.goal;
  Judgement out;
  for (const auto& round : written.rounds) out.transfers += round.size();
  constexpr std::int64_t kMostStates = std::int64_t{1} << 26;  // about a gigabyte
  out.violation = verify(schedule, goal, {.max_states = kMostStates});
  if (out.violation) {
    if (out.violation->kind == ViolationKind::too_large) {
      return invalid_argument(out.violation->text);
    }
    return out;
  }
  out.counts = count(schedule);
  auto simulated = simulate(schedule, goal, fabric, bytes, options);
  if (!simulated.ok()) return simulated.status();
  out.simulation = std::move(*simulated);
  const RankCounts& busiest = out.counts.busiest;
  const int ports = std::max(busiest.send_ports, busiest.receive_ports);
  if (!needs_switch(schedule)) {
    out.least_rounds = goal.collective == Collective::send_recv ? (goal.root == goal.peer ? 0 : 1)
                       : ports > 0                              ? rounds_to_reach(goal.ranks, ports)
                                                                : 0;
  }
  out.bytes = bytes_of(std::max(greatest(out.simulation.sent), greatest(out.simulation.received)),
                       out.simulation.weight_per_byte);
  out.least_bytes = bus_factor(goal.collective, goal.ranks) * static_cast<double>(bytes);
  if (goal.ranks > kMostComparedRanks) return out;
  Params params;
  params.ranks = goal.ranks;
  params.root = goal.root;
  params.peer = goal.peer;
  params.segments = 0;
  auto candidates = predict(goal.collective, params, bytes, fabric, options);
  if (!candidates.ok()) return candidates.status();
  if (!candidates->empty() && candidates->front().ok()) out.best = std::move(candidates->front());
  return out;
}

std::string_view rule_of(ViolationKind kind) {
  switch (kind) {
    case ViolationKind::bad_shape:
    case ViolationKind::bad_index:
    case ViolationKind::bad_sizes:
      return "ranks, blocks and planes are those of the first line";
    case ViolationKind::too_large:
      return "a schedule must fit in memory for its proof";
    case ViolationKind::other_block:
      return "a block keeps its number everywhere";
    case ViolationKind::many_to_copy:
      return "a copy has one sender; sums have several";
    case ViolationKind::not_there:
      return "only data present at the beginning of the round is read";
    case ViolationKind::double_count:
      return "each rank's contribution is added once";
    case ViolationKind::two_copies:
      return "in one round a place gets one copy";
    case ViolationKind::mixed_acts:
      return "in one round a place gets a copy or additions, and not both";
    case ViolationKind::redundant:
      return "no transfer brings data that is present already";
    case ViolationKind::dead:
      return "arriving data is sent on, or needed at the end";
    case ViolationKind::wrong_result:
      return "each rank that needs a block ends with all contributions to it";
    case ViolationKind::other_order:
      return "all ranks add up in the same brackets and the same order, for the same bits "
             "everywhere (other_bits in the first line asks for less)";
    case ViolationKind::deadlock:
      return "no rank waits for ever";
  }
  return "";
}

namespace {

// Indices of the transfers of the violation's round that involve its rank and block.
std::vector<std::size_t> transfers_at(const WrittenSchedule& written, const Violation& violation) {
  std::vector<std::size_t> out;
  if (violation.round < 0 || violation.round >= static_cast<int>(written.rounds.size())) return out;
  const auto& round = written.rounds[static_cast<std::size_t>(violation.round)];
  for (std::size_t i = 0; i < round.size(); ++i) {
    const Transfer& t = round[i].transfer;
    const bool of_rank =
        violation.rank < 0 || has(t.from, violation.rank) || has(t.to, violation.rank);
    if (of_rank && (violation.block < 0 || has(t.what.list, violation.block))) out.push_back(i);
  }
  return out;
}

}  // namespace

Json judgement_json(const WrittenSchedule& written, const Judgement& judged, const Fabric& fabric,
                    Sync sync) {
  Json out = {{"collective", name_of(written.goal.collective)},
              {"ranks", written.goal.ranks},
              {"rounds", written.rounds.size()},
              {"transfers", judged.transfers},
              {"proved", !judged.violation}};
  if (const auto& violation = judged.violation) {
    out["kind"] = name_of(violation->kind);
    out["rule"] = rule_of(violation->kind);
    out["round"] = violation->round;
    out["rank"] = violation->rank;
    out["block"] = violation->block;
    out["text"] = violation->text;
    Json& lines = out["lines"] = Json::array();
    for (const std::size_t i : transfers_at(written, *violation)) {
      const auto& round = written.rounds[static_cast<std::size_t>(violation->round)];
      if (round[i].line > 0) lines.push_back(round[i].line);
    }
    return out;
  }
  out["rounds"] = judged.counts.rounds;
  if (judged.least_rounds) out["least_rounds"] = *judged.least_rounds;
  out["bytes"] = judged.bytes;
  out["least_bytes"] = judged.least_bytes;
  out["send_ports"] = judged.counts.busiest.send_ports;
  out["receive_ports"] = judged.counts.busiest.receive_ports;
  out["network"] = fabric.name;
  out["sync"] = name_of(sync);
  out["time"] = judged.simulation.seconds;
  if (judged.best) {
    out["best"] = {{"algorithm", judged.best->algorithm->name}, {"time", judged.best->seconds}};
  }
  return out;
}

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
