#include <map>
#include <memory>

#include "algorithms/held.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/in_time.h"
#include "algorithms/torus_lines.h"
#include "algorithms/turn_order.h"

namespace rankine {
namespace {

struct Round {
  Turn turn;              // of the all-gather's line
  std::vector<int> done;  // by dimension: rounds of its line that lie before
};

// One all-gather, which begins with that dimension. All ranks have come equally far, so what rank r
// has is a product: every dimension's Held at r's coordinate.
Schedule gather(const std::shared_ptr<const TorusLines>& lines, Turns turns, int first) {
  const int dimensions = lines->dimensions(), n = lines->torus().ranks();
  std::vector<Round> rounds;
  std::vector<int> of_lines, done(static_cast<std::size_t>(dimensions), 0);
  for (int d = 0; d < dimensions; ++d) of_lines.push_back((*lines)[d].rounds);
  for (const Turn& turn : gathering_turns_from(first, of_lines, turns)) {
    rounds.push_back({turn, done});
    if (turn.round != kIdle) ++at(done, turn.dimension);
  }
  std::vector<std::map<int, Held>> held;
  for (int d = 0; d < dimensions; ++d) {
    std::vector<int> asked;
    for (const Round& round : rounds) {
      if (round.turn.dimension != d) asked.push_back(at(round.done, d));
    }
    held.push_back(held_before((*lines)[d], asked));
  }
  const auto round = [lines, rounds, held](int k, Send send) {
    const auto& [turn, before] = at(rounds, k);
    if (turn.round == kIdle) return;
    std::vector<const Held*> others;
    for (int d = 0; d < lines->dimensions(); ++d) {
      others.push_back(d == turn.dimension ? nullptr : &at(held, d).at(at(before, d)));
    }
    const auto tell = [&](const Transfer& t, Rank from, Rank to) {
      const BlockSet what{held_product(lines->torus(), others, t.what.list, from)};
      send.exactly({from, to, what, what, t.act});
    };
    lines->for_each_transfer_along(turn.dimension, turn.round, tell);
  };
  return lines->schedule({n, n, static_cast<int>(rounds.size()), round}, Moves::with_rank);
}

}  // namespace

Schedule torus_all_gather(const std::vector<int>& dims, const std::vector<Line>& lines,
                          Turns turns) {
  std::vector<Schedule> parts;
  for (const Line& line : lines) {
    const auto along = std::make_shared<const TorusLines>(dims, line);
    for (int first = 0; first < along->dimensions(); ++first) {
      parts.push_back(gather(along, turns, first));
    }
  }
  return in_time(side_by_side(std::move(parts)));
}

}  // namespace rankine
