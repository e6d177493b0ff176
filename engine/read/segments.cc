#include "engine/read/segments.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "engine/fabric/ticks.h"

namespace rankine {
namespace {

// One phase for schedules that name none.
std::vector<Phase> phases_of(const Schedule& schedule) {
  return schedule.phases.empty() ? std::vector<Phase>{{"", schedule.rounds}} : schedule.phases;
}

struct Message {
  Ticks alpha = 0, total = 0;
  std::int64_t weight = 0;
};

Message costliest(const Schedule& schedule, const Fabric& fabric, const Pricing& pricing,
                  int first_round, int rounds) {
  Message most;
  for (int k = first_round; k < first_round + rounds; ++k) {
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      const bool plain = t.from.size() == 1 && t.to.size() == 1;
      if (t.from.empty() || t.to.empty() || (plain && t.from.front() == t.to.front())) return;
      const std::int64_t weight = pricing.weight(t.what.list);
      const auto cost = [&](std::int64_t w) {
        return plain ? pricing.message(fabric, t.from.front(), t.to.front(), w)
                     : pricing.through_switch(w);
      };
      if (cost(weight) >= most.total) most = {cost(0), cost(weight), weight};
    });
  }
  return most;
}

}  // namespace

int best_segments(Rational filling, Rational per_segment, int most) {
  const auto enough = [&](int p) {
    return !(Rational(p) * Rational(p + 1) * per_segment < filling);
  };
  int low = 1, high = std::max(1, most);
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (enough(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

Result<int> best_segments(const Algorithm& algorithm, Params params, const Fabric& fabric,
                          std::uint64_t bytes) {
  params.segments = 1;
  if (const auto refusal = algorithm.refusal(params)) return invalid_argument(*refusal);
  if (!algorithm.takes("segments")) return 1;
  const Schedule one = algorithm.make(params);
  params.segments = 2;
  const Schedule two = algorithm.make(params);
  const Goal goal = goal_of(algorithm, params, one);
  const auto pricing = Pricing::make(fabric, goal, bytes, true);
  if (!pricing.ok()) return pricing.status();

  const std::vector<Phase> at_one = phases_of(one), at_two = phases_of(two);
  if (at_one.size() != at_two.size()) return 1;  // a phase without rounds at P = 1 has no pipeline
  Ticks filling = 0, per_segment = 0;
  int round = 0;
  for (std::size_t i = 0; i < at_one.size(); ++i) {
    const int rounds = at_one[i].rounds, step = at_two[i].rounds - rounds;
    if (step > 0) {
      const Message message = costliest(one, fabric, *pricing, round, rounds);
      filling += std::max(0, rounds - step) * (message.total - message.alpha);
      per_segment += step * message.alpha;
    }
    round += rounds;
  }
  // A block has at least one byte per segment.
  const std::uint64_t block = bytes / static_cast<std::uint64_t>(blocks_per_m(goal));
  const int most = static_cast<int>(std::clamp<std::uint64_t>(block, 1, kMostSegments));
  try {
    return best_segments(Rational(filling, 1), Rational(per_segment, 1), most);
  } catch (const std::overflow_error&) {
    return invalid_argument(
        "alpha and beta have too many digits to find the best number of "
        "segments exactly; fewer are needed");
  }
}

}  // namespace rankine
