#include "algorithms/run_sums.h"

#include <algorithm>
#include <utility>

#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/torus.h"

namespace rankine {
namespace {

// Planes. The sums for messages lie on kSum and the one after it.
constexpr int kOwn = 0, kLeft = 1, kRight = 2, kSum = 3;

struct Local {
  int what, where;
  TransferKind kind;
};
struct Wire {
  int distance, what, where;
};
// A round of the plan in terms of planes.
struct PlannedTurn {
  // local work: two rounds before the messages, and beside the messages
  std::vector<Local> first, second, last;
  std::vector<Wire> wires;
};

std::vector<int> planes_of(RunParts parts, Runs runs) {
  std::vector<int> out;
  if (parts.own) out.push_back(kOwn);
  if (parts.left && runs.left > 0) out.push_back(kLeft);
  if (parts.right && runs.right > 0) out.push_back(kRight);
  return out;
}

std::vector<PlannedTurn> turns_of(const RunPlan& plan) {
  std::vector<PlannedTurn> turns;
  Runs runs;
  for (std::size_t k = 0; k < plan.size(); ++k) {
    const bool last = k + 1 == plan.size();
    PlannedTurn turn;
    Runs next = runs;
    std::vector<std::pair<RunParts, int>> summed;  // parts that a plane already holds added up
    for (const RunMessage& message : plan[k]) {
      const std::vector<int> planes = planes_of(message.parts, runs);
      int what = planes.front();
      if (planes.size() > 1) {
        const auto there = std::find_if(summed.begin(), summed.end(),
                                        [&](const auto& of) { return of.first == message.parts; });
        if (there != summed.end()) {
          what = there->second;
        } else {
          what = kSum + static_cast<int>(summed.size());
          summed.emplace_back(message.parts, what);
          turn.first.push_back({planes[0], what, copy});
          for (std::size_t i = 1; i < planes.size(); ++i) {
            turn.second.push_back({planes[i], what, reduce});
          }
        }
      }
      const bool from_left = message.distance > 0;
      turn.wires.push_back({message.distance, what, last ? kOwn : from_left ? kLeft : kRight});
      (from_left ? next.left : next.right) += runs.length(message.parts);
    }
    if (last) {
      if (runs.left > 0) turn.last.push_back({kLeft, kOwn, reduce});
      if (runs.right > 0) turn.last.push_back({kRight, kOwn, reduce});
    }
    runs = next;
    turns.push_back(std::move(turn));
  }
  return turns;
}

bool whole_sums_only(const RunPlan& plan) {
  Runs runs;
  for (const auto& round : plan) {
    Runs next = runs;
    for (const RunMessage& message : round) {
      const int length = runs.length(message.parts);
      if (length != runs.total()) return false;
      (message.distance > 0 ? next.left : next.right) += length;
    }
    runs = next;
  }
  return true;
}

}  // namespace

// The run of a sender to the left must end where the receiver's run begins.
RunMessage message_from_left(Runs theirs, Runs now, RunParts parts) {
  const int after_own = parts.right ? theirs.right : parts.own ? 0 : -1;
  return {parts, now.left + 1 + after_own};
}

RunMessage message_from_right(Runs theirs, Runs now, RunParts parts) {
  const int before_own = parts.left ? theirs.left : parts.own ? 0 : -1;
  return {parts, -(now.right + 1 + before_own)};
}

Schedule run_sums_all_reduce(int n, const RunPlan& plan) {
  const int rounds = static_cast<int>(plan.size());
  if (whole_sums_only(plan)) {
    const auto part = [plan](int k, Send send) {
      for (const RunMessage& message : plan[static_cast<std::size_t>(k)]) {
        send(0, message.distance, block(0), reduce);
      }
    };
    return rotation_symmetric({n, 1, rounds, part}, Moves::nothing);
  }
  const auto turns = turns_of(plan);
  int planes = kSum;
  for (const PlannedTurn& turn : turns) {
    for (const Local& local : turn.first) planes = std::max(planes, local.where + 1);
  }
  const auto part = [turns](int k, Send send) {
    const PlannedTurn& turn = turns[static_cast<std::size_t>(k / kRoundsPerTurn)];
    const int in_turn = k % kRoundsPerTurn;
    for (const Local& local : in_turn == 0 ? turn.first : in_turn == 1 ? turn.second : turn.last) {
      send(0, 0, block(0, local.what), block(0, local.where), local.kind);
    }
    if (in_turn + 1 < kRoundsPerTurn) return;
    for (const Wire& wire : turn.wires) {
      send(0, wire.distance, block(0, wire.what), block(0, wire.where), reduce);
    }
  };
  return rotation_symmetric({n, 1, rounds * kRoundsPerTurn, part, {}, planes}, Moves::nothing);
}

}  // namespace rankine
