#include "engine/tools/lesson/written_schedule.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "engine/tools/lesson/schedule_parts.h"

namespace rankine::tools {
namespace {

// "0..3,6"
std::string list_text(const IndexList& list) {
  std::string out;
  const auto add = [&out](const std::string& part) { out += (out.empty() ? "" : ",") + part; };
  for (int i = 0; i < list.runs(); ++i) {
    const Run& run = list.run(i);
    if (run.stride == 1 && run.count > 1) {
      add(fmt::format("{}..{}", run.first, run.first + run.count - 1));
      continue;
    }
    for (int j = 0; j < run.count; ++j) add(std::to_string(run.first + j * run.stride));
  }
  return out;
}

}  // namespace

Schedule WrittenSchedule::schedule() const {
  auto all = std::make_shared<std::vector<std::vector<Transfer>>>();
  for (const std::vector<WrittenTransfer>& round : rounds) {
    std::vector<Transfer>& copied = all->emplace_back();
    for (const WrittenTransfer& one : round) copied.push_back(one.transfer);
  }
  const auto send_all = [all](int k, Send send) {
    for (const Transfer& t : (*all)[static_cast<std::size_t>(k)]) send.exactly(t);
  };
  return {.ranks = goal.ranks,
          .blocks = goal.blocks,
          .rounds = static_cast<int>(rounds.size()),
          .round = send_all,
          .planes = planes};
}

std::string transfer_text(const Transfer& t) {
  std::string out =
      fmt::format("{} -> {}: {}", list_text(t.from), list_text(t.to), list_text(t.what.list));
  const bool moves = t.where.plane != t.what.plane;
  if (t.what.plane != 0) out += fmt::format(" on {}", t.what.plane);
  if (moves) out += fmt::format(" to {}", t.where.plane);
  return out + (t.act == Act::reduce ? " +" : "");
}

std::string schedule_text(const Schedule& schedule, const Goal& goal) {
  std::string out = fmt::format("{} {}", name_of(goal.collective), schedule.ranks);
  if (has_root(goal.collective)) out += fmt::format(" root {}", goal.root);
  if (goal.collective == Collective::send_recv) out += fmt::format(" peer {}", goal.peer);
  if (schedule.blocks != natural_blocks(goal.collective, schedule.ranks)) {
    out += fmt::format(" blocks {}", schedule.blocks);
  }
  if (schedule.planes != 1) out += fmt::format(" planes {}", schedule.planes);
  if (!goal.same_bits) out += " other_bits";
  out += '\n';
  for (int k = 0; k < schedule.rounds; ++k) {
    out += fmt::format("round {}\n", k);
    for_each_transfer(schedule, k, [&out](const Transfer& t) { out += transfer_text(t) + '\n'; });
  }
  return out;
}

}  // namespace rankine::tools
