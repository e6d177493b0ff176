#include "engine/tools/lesson/judge.h"

#include <algorithm>
#include <array>
#include <utility>

#include "algorithms/catalogue.h"
#include "engine/read/count.h"
#include "engine/tools/answer.h"
#include "engine/tools/metrics.h"

namespace rankine::tools {
namespace {

// Whoever has it hands it to `ports` others in a round.
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
  const Goal& goal = written.goal;
  Judgement out;
  for (const auto& round : written.rounds) out.transfers += round.size();
  constexpr std::int64_t kMostStates = std::int64_t{1} << 26;  // a gigabyte
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
      return "what is proved has to fit in memory";
    case ViolationKind::other_block:
      return "a block keeps its number wherever it goes";
    case ViolationKind::many_to_copy:
      return "a copy has one sender; sums have several";
    case ViolationKind::not_there:
      return "nothing is read that is not there when the round begins";
    case ViolationKind::double_count:
      return "each rank's contribution is added once";
    case ViolationKind::two_copies:
      return "in one round a place gets one copy";
    case ViolationKind::mixed_acts:
      return "in one round a place gets a copy or additions, and not both";
    case ViolationKind::redundant:
      return "no transfer brings what is there already";
    case ViolationKind::dead:
      return "what arrives is sent on, or needed at the end";
    case ViolationKind::wrong_result:
      return "who needs a block ends with all contributions to it";
    case ViolationKind::other_order:
      return "all ranks add up in the same brackets and the same order, for the same bits "
             "everywhere (other_bits in the first line asks for less)";
    case ViolationKind::deadlock:
      return "nobody waits for ever";
  }
  return "";
}

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

}  // namespace rankine::tools
