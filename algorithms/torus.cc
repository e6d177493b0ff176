#include "algorithms/torus.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "algorithms/parameters.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/schedule/schedule.h"
#include "algorithms/schedule/stating_order.h"

namespace rankine {

std::string dims_text(const std::vector<int>& dims) { return list_text(dims, 'x'); }

std::optional<std::vector<int>> read_dims(std::string_view text) {
  auto dims = read_list(text, 'x');
  if (!dims || dims->size() > kMostDims) return std::nullopt;
  return std::count(dims->begin(), dims->end(), 0) == 0 ? dims : std::nullopt;
}

std::optional<std::string> dims_refusal(const std::vector<int>& dims, int ranks) {
  std::int64_t product = 1;
  for (const int size : dims) {
    if (size < 1 || (size == 1 && dims.size() > 1)) {
      return "dims is " + dims_text(dims) + "; allowed are sizes from 2";
    }
    product *= size;
    if (product > ranks) break;
  }
  if (product == ranks) return std::nullopt;
  return "dims is " + dims_text(dims) +
         "; allowed are sizes whose product is the number of ranks, " + std::to_string(ranks);
}

std::vector<int> balanced_dims(int ranks, int dimensions) {
  if (dimensions == 1) return {ranks};
  std::vector<int> best;
  // The first size is the largest: as small as the others allow.
  for (int first = 2; first <= ranks / 2; ++first) {
    if (ranks % first != 0) continue;
    std::vector<int> rest = balanced_dims(ranks / first, dimensions - 1);
    if (rest.empty() || rest.front() > first || rest.back() < 2) continue;
    best = {first};
    best.insert(best.end(), rest.begin(), rest.end());
    break;
  }
  return best;
}

Torus::Torus(std::vector<int> dims) : dims_(std::move(dims)), strides_(dims_.size()) {
  for (std::size_t d = dims_.size(); d-- > 0;) {
    strides_[d] = ranks_;
    ranks_ *= dims_[d];
  }
}

class TorusLines {
 public:
  TorusLines(const std::vector<int>& dims, const Line& line) : torus_(dims) {
    for (const int size : dims) lines_.push_back(line(size));
    alike_ = std::all_of(lines_.begin(), lines_.end(),
                         [](const Schedule& one) { return symmetry_of(one) != nullptr; });
  }

  const Torus& torus() const { return torus_; }
  const Schedule& operator[](int d) const { return at(lines_, d); }
  int dimensions() const { return torus_.dimensions(); }

  // visit(transfer of the line, from, to) for a round of all lines of dimension d; if every rank
  // does the same work along every line, only for rank 0's part of it.
  template <class Visit>
  void for_each_transfer_along(int d, int round, const Visit& visit) const {
    const Schedule& line = at(lines_, d);
    for_each_transfer(alike_ ? symmetry_of(line)->part() : line, round, [&](const Transfer& t) {
      const int x = t.from.front(), way = (t.to.front() - x) * torus_.stride(d);
      const auto from = [&](Rank r) { visit(t, r, r + way); };
      alike_ ? from(x * torus_.stride(d)) : torus_.for_each_at(d, x, from);
    });
  }

  // The schedule made of those transfers.
  Schedule schedule(Schedule stated, Moves moves) const {
    if (!alike_) return stated;
    std::vector<int> dims;
    for (const Schedule& line : lines_) dims.push_back(line.ranks);
    Rotation rotation(std::move(dims), stated.blocks, moves);
    return rotation_symmetric(std::move(stated), std::move(rotation));
  }

 private:
  Torus torus_;
  std::vector<Schedule> lines_;
  bool alike_ = false;
};

// The order in which the dimensions of a torus take turns, and which turns are idle
// (torus.h).

// A turn of a dimension, and the round of its line; kIdle if it has no round left.
struct Turn {
  int dimension = 0;
  int round = 0;
};
inline constexpr int kIdle = -1;

// All turns of a collective that begins with that dimension, in the order of a reduce-scatter;
// `rounds`: the number of rounds of each dimension.
inline std::vector<Turn> turns_from(int first, const std::vector<int>& rounds, Turns turns) {
  const int dimensions = static_cast<int>(rounds.size());
  std::vector<int> falling = rounds;
  std::sort(falling.rbegin(), falling.rend());
  const int most = falling.front();
  const int next = turns == Turns::apart ? most : dimensions > 1 ? falling[1] : 0;
  std::vector<Turn> out;
  const auto add = [&](int i, int round) {
    const int d = (first + i) % dimensions, of_line = at(rounds, d);
    if (round < std::max(next, of_line)) out.push_back({d, round < of_line ? round : kIdle});
  };
  if (turns == Turns::rotating) {
    for (int round = 0; round < most; ++round) {
      for (int i = 0; i < dimensions; ++i) add(i, round);
    }
  } else {
    for (int i = 0; i < dimensions; ++i) {
      for (int round = 0; round < most; ++round) add(i, round);
    }
  }
  return out;
}

// The turns of the all-gather that is the dual of that reduce-scatter: from the last turn to the
// first, and each dimension's rounds reversed.
inline std::vector<Turn> gathering_turns_from(int first, const std::vector<int>& rounds,
                                              Turns turns) {
  std::vector<Turn> out = turns_from(first, rounds, turns);
  std::reverse(out.begin(), out.end());
  for (Turn& turn : out) {
    if (turn.round != kIdle) turn.round = at(rounds, turn.dimension) - 1 - turn.round;
  }
  return out;
}

// The blocks that the ranks of a line have in the course of its all-gather.

// By coordinate: the blocks of its line that a rank has, as coordinates. If every rank does the
// same work (schedule/rotation_symmetric.h), only for coordinate 0.
using Held = std::vector<IndexList>;

// The blocks before round k, for every k asked for.
std::map<int, Held> held_before(const Schedule& line, const std::vector<int>& rounds_asked);

// If all ranks of a torus have come equally far, a rank's blocks are a product. Returns the blocks
// with a coordinate in `what` in the current dimension (the one with an empty entry in `others`),
// and with coordinates that rank r has in every other dimension.
IndexList held_product(const Torus& torus, const std::vector<const Held*>& others,
                       const IndexList& what, Rank r);

namespace {

// The marked indices, in few runs.
IndexList runs_of(const std::vector<char>& marked) {
  std::vector<int> sorted;
  for (int i = 0; i < static_cast<int>(marked.size()); ++i) {
    if (at(marked, i) != 0) sorted.push_back(i);
  }
  IndexList out;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    const int stride = end < sorted.size() ? sorted[end] - sorted[i] : 1;
    while (end < sorted.size() && sorted[end] - sorted[end - 1] == stride) ++end;
    out.append(Run{sorted[i], static_cast<int>(end - i), stride});
    i = end;
  }
  return out;
}

// Handles dimensions from d on; `base` is the sum over the coordinates before d.
void append_held(const Torus& torus, const std::vector<const Held*>& others, const IndexList& what,
                 Rank r, int d, int base, IndexList& out) {
  const Held* held = at(others, d);
  const IndexList& list = held == nullptr ? what : at(*held, torus.coordinate(r, d));
  if (d + 1 == torus.dimensions()) {
    for (int i = 0; i < list.runs(); ++i) {
      out.append(Run{base + list.run(i).first, list.run(i).count, list.run(i).stride});
    }
  } else {
    list.for_each([&](int x) {
      append_held(torus, others, what, r, d + 1, base + x * torus.stride(d), out);
    });
  }
}

}  // namespace

std::map<int, Held> held_before(const Schedule& line, const std::vector<int>& rounds_asked) {
  std::map<int, Held> out;
  if (rounds_asked.empty()) return out;
  const RotationSymmetric* all = symmetry_of(line);
  const Schedule& stated = all != nullptr ? all->part() : line;
  const auto a = static_cast<std::size_t>(line.ranks);
  std::vector<std::vector<char>> has(all != nullptr ? 1 : a, std::vector<char>(a, 0));
  for (std::size_t c = 0; c < has.size(); ++c) has[c][c] = 1;
  for (int k = 0; k <= line.rounds; ++k) {
    if (std::find(rounds_asked.begin(), rounds_asked.end(), k) != rounds_asked.end()) {
      for (const auto& marked : has) out[k].push_back(runs_of(marked));
    }
    if (k == line.rounds) break;
    for_each_transfer(stated, k, [&](const Transfer& t) {
      const Rank to = t.to.front();
      auto& receiver = at(has, all != nullptr ? 0 : to);
      const IndexList where = all != nullptr
                                  ? all->rotation().rotated(t.where.list, all->rotation().back(to))
                                  : t.where.list;
      where.for_each([&](Block b) { at(receiver, b) = 1; });
    });
  }
  return out;
}

IndexList held_product(const Torus& torus, const std::vector<const Held*>& others,
                       const IndexList& what, Rank r) {
  IndexList out;
  append_held(torus, others, what, r, 0, 0, out);
  return out;
}

namespace {

struct Round {
  Turn turn;              // turn of the all-gather's line
  std::vector<int> done;  // by dimension: earlier rounds of its line
};

// One all-gather, which begins with that dimension. All ranks have come equally far, so rank r's
// blocks are a product: every dimension's Held at r's coordinate.
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
      send.exactly({from, to, what, what, t.kind});
    };
    lines->for_each_transfer_along(turn.dimension, turn.round, tell);
  };
  return lines->schedule({n, n, static_cast<int>(rounds.size()), round}, Moves::with_rank);
}

}  // namespace

Schedule torus_all_gather(const std::vector<int>& dims, const std::vector<Line>& lines, Turns turns,
                          const std::function<Schedule(const Schedule&)>& changed) {
  std::vector<Schedule> parts;
  for (const Line& line : lines) {
    const auto along = std::make_shared<const TorusLines>(dims, line);
    for (int first = 0; first < along->dimensions(); ++first) {
      parts.push_back(gather(along, turns, first));
      if (changed) parts.back() = changed(parts.back());
    }
  }
  return in_time(side_by_side(std::move(parts)));
}

namespace {

// Rounds per turn.
int width_of(const Schedule& line) { return line.planes == 1 ? 1 : kRoundsPerTurn; }

// One all-reduce, which begins with that dimension, on one block.
Schedule reduce_in_turns(const std::shared_ptr<const TorusLines>& lines, int first) {
  std::vector<int> of_lines, first_plane;  // each dimension has separate planes for partial sums
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
          {from, to, block(0, plane(t.what.plane)), block(0, plane(t.where.plane)), t.kind});
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
