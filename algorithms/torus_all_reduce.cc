#include <algorithm>
#include <memory>

#include "algorithms/schedule/combine.h"
#include "algorithms/torus_lines.h"
#include "algorithms/turn_order.h"

namespace rankine {
namespace {

// Rounds per turn.
int width_of(const Schedule& line) { return line.planes == 1 ? 1 : kRoundsPerTurn; }

// One all-reduce, which begins with that dimension, on one block.
Schedule reduce_in_turns(const std::shared_ptr<const TorusLines>& lines, int first) {
  std::vector<int> of_lines, first_plane;  // partial sums' planes are not used in two dimensions
  int planes = 1, widest = 1;
  for (int d = 0; d < lines->dimensions(); ++d) {
    const Schedule& line = (*lines)[d];
    of_lines.push_back(line.rounds / width_of(line));
    first_plane.push_back(planes - 1);
    planes += line.planes - 1;
    widest = std::max(widest, width_of(line));
  }
  const auto turns = turns_from(first, of_lines, planes == 1 ? Turns::rotating : Turns::whole);
  const auto round = [=](int k, Send send) {
    const Turn& turn = at(turns, k / widest);
    if (turn.round == kIdle) return;
    const int d = turn.dimension, width = width_of((*lines)[d]);
    const int before = width - widest + k % widest;  // this turn's rounds before this one
    const int round_of_line = turn.round * width + before;
    if (before < 0 || round_of_line >= (*lines)[d].rounds) return;
    const auto plane = [&](int of_line) { return of_line == 0 ? 0 : at(first_plane, d) + of_line; };
    lines->for_each_transfer_along(d, round_of_line, [&](const Transfer& t, Rank from, Rank to) {
      send.exactly(
          {from, to, block(0, plane(t.what.plane)), block(0, plane(t.where.plane)), t.act});
    });
  };
  const int rounds = static_cast<int>(turns.size()) * widest;
  return lines->schedule({lines->torus().ranks(), 1, rounds, round, {}, planes}, Moves::nothing);
}

}  // namespace

Schedule torus_all_reduce(const std::vector<int>& dims, const Line& line, int parts) {
  const auto lines = std::make_shared<const TorusLines>(dims, line);
  std::vector<Schedule> side;
  for (int first = 0; first < parts; ++first) side.push_back(reduce_in_turns(lines, first));
  return packed(side_by_side(std::move(side)));
}

}  // namespace rankine
