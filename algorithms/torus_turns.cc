#include "algorithms/torus_turns.h"

#include <algorithm>
#include <map>
#include <memory>

#include "algorithms/held.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/everyone.h"
#include "algorithms/schedule/in_time.h"
#include "algorithms/turn_order.h"

namespace rankine {
namespace {

// What is stated of a line: the part of coordinate 0, where everyone does the same.
const Schedule& stated_of(const Schedule& line, bool of_one) {
  return of_one ? everyone_in(line)->part() : line;
}

// visit(Rank) for all who do what coordinate x of their line does; or for the one of them whose
// other coordinates are 0.
template <class Visit>
void for_each_doing(const Torus& torus, int dimension, int x, bool of_one, const Visit& visit) {
  if (of_one) return visit(x * torus.stride(dimension));
  torus.for_each_at(dimension, x, visit);
}

// One all-gather over the torus. All ranks have come equally far, so what rank r has is a product:
// every dimension's Held at r's coordinate.
class Gather {
 public:
  Gather(const Torus& torus, const Line& line, Turns turns, int first) : torus_(torus) {
    const int dimensions = torus.dimensions();
    std::vector<int> of_lines;
    for (int d = 0; d < dimensions; ++d) {
      lines_.push_back(line(torus.size(d)));
      of_lines.push_back(lines_.back().rounds);
    }
    // The reduce-scatter's, from the last to the first.
    std::vector<Turn> all = turns_from(first, of_lines, turns);
    std::vector<int> done(lines_.size(), 0);
    for (; !all.empty(); all.pop_back()) {
      Turn turn = all.back();
      if (turn.round != kIdle) turn.round = line_of(turn.dimension).rounds - 1 - turn.round;
      rounds_.push_back({turn, done});
      if (turn.round != kIdle) ++done[static_cast<std::size_t>(turn.dimension)];
    }
    for (int d = 0; d < dimensions; ++d) {
      std::vector<int> asked;
      for (const Round& round : rounds_) {
        if (round.turn.dimension != d) asked.push_back(round.done[static_cast<std::size_t>(d)]);
      }
      held_.push_back(held_before(line_of(d), asked));
    }
  }

  int rounds() const { return static_cast<int>(rounds_.size()); }
  // Whether everyone does the same, along every line.
  bool alike() const {
    return std::all_of(lines_.begin(), lines_.end(),
                       [](const Schedule& line) { return everyone_in(line) != nullptr; });
  }

  // Round k, with block b as b * parts + part; all of it, or where all are alike the part of one.
  void round(int k, int part, int parts, bool of_one, Send send) const {
    const auto& [turn, done] = rounds_[static_cast<std::size_t>(k)];
    if (turn.round == kIdle) return;
    const int d = turn.dimension;
    std::vector<const Held*> others(lines_.size(), nullptr);
    for (std::size_t e = 0; e < lines_.size(); ++e) {
      if (static_cast<int>(e) != d) others[e] = &held_[e].at(done[e]);
    }
    for_each_transfer(stated_of(line_of(d), of_one), turn.round, [&](const Transfer& t) {
      const int way = (t.to.front() - t.from.front()) * torus_.stride(d);
      for_each_doing(torus_, d, t.from.front(), of_one, [&](Rank r) {
        BlockSet what;
        append_product(others, t.what.list, r, 0, 0, part, parts, what.list);
        send.exactly({r, r + way, what, what, t.act});
      });
    });
  }

 private:
  struct Round {
    Turn turn;              // of the all-gather's line
    std::vector<int> done;  // by dimension: rounds of its line that lie before
  };
  const Schedule& line_of(int d) const { return lines_[static_cast<std::size_t>(d)]; }

  // All blocks whose coordinate in the dimension at work (whose entry in `others` is empty) is in
  // `what`, and in every other one among those that r has. Dimensions from d on; `base` is what the
  // coordinates before d come to.
  void append_product(const std::vector<const Held*>& others, const IndexList& what, Rank r, int d,
                      int base, int part, int parts, IndexList& out) const {
    const Held* held = others[static_cast<std::size_t>(d)];
    const IndexList& list =
        held == nullptr ? what : (*held)[static_cast<std::size_t>(torus_.coordinate(r, d))];
    const int stride = torus_.stride(d);
    if (d + 1 == torus_.dimensions()) {
      for (int i = 0; i < list.runs(); ++i) {
        const Run& run = list.run(i);
        out.append(Run{(base + run.first) * parts + part, run.count, run.stride * parts});
      }
      return;
    }
    list.for_each([&](int x) {
      append_product(others, what, r, d + 1, base + x * stride, part, parts, out);
    });
  }

  const Torus torus_;
  int most_ = 0;
  std::vector<Round> rounds_;
  std::vector<Schedule> lines_;
  std::vector<std::map<int, Held>> held_;
};

}  // namespace

Schedule torus_all_gather(const std::vector<int>& dims, const std::vector<Line>& lines,
                          Turns turns) {
  const Torus torus(dims);
  const int d = torus.dimensions(), parts = d * static_cast<int>(lines.size());
  std::vector<std::shared_ptr<const Gather>> gathers;
  for (int part = 0; part < parts; ++part) {
    gathers.push_back(std::make_shared<const Gather>(
        torus, lines[static_cast<std::size_t>(part / d)], turns, part % d));
  }
  const bool of_one = std::all_of(gathers.begin(), gathers.end(),
                                  [](const auto& gather) { return gather->alike(); });
  const int blocks = torus.ranks() * parts;
  Schedule out{torus.ranks(), blocks, gathers.front()->rounds(),
               [gathers, parts, of_one](int k, Send send) {
                 for (int part = 0; part < parts; ++part) {
                   gathers[static_cast<std::size_t>(part)]->round(k, part, parts, of_one, send);
                 }
               }};
  if (of_one) out = everyone(std::move(out), Rotation(dims, blocks, Moves::with_rank));
  return in_time(std::move(out));
}

Schedule torus_all_reduce(const std::vector<int>& dims, const Line& line, int parts) {
  const Torus torus(dims);
  std::vector<Schedule> lines;
  std::vector<int> first_plane;  // of every dimension's partial sums: planes are not used twice
  int planes = 1;
  for (int d = 0; d < torus.dimensions(); ++d) {
    lines.push_back(line(torus.size(d)));
    first_plane.push_back(planes - 1);
    planes += lines.back().planes - 1;
  }
  const auto width = [](const Schedule& of) { return of.planes == 1 ? 1 : kRoundsPerTurn; };
  const int widest = planes == 1 ? 1 : kRoundsPerTurn;
  std::vector<int> of_lines;
  for (const Schedule& of : lines) of_lines.push_back(of.rounds / width(of));
  std::vector<std::vector<Turn>> turns;  // of every part
  for (int part = 0; part < parts; ++part) {
    turns.push_back(turns_from(part, of_lines, planes == 1 ? Turns::rotating : Turns::whole));
  }

  const int rounds = static_cast<int>(turns.front().size()) * widest;
  const bool of_one = std::all_of(lines.begin(), lines.end(), [](const Schedule& along) {
    return everyone_in(along) != nullptr;
  });
  Schedule out{torus.ranks(), parts, rounds, {}, {}, planes};
  out.round = [=](int k, Send send) {
    for (int part = 0; part < parts; ++part) {
      const Turn turn = turns[static_cast<std::size_t>(part)][static_cast<std::size_t>(k / widest)];
      if (turn.round == kIdle) continue;
      const int d = turn.dimension;
      const Schedule& along = lines[static_cast<std::size_t>(d)];
      const int before = width(along) - widest + k % widest;  // this turn's rounds before this one
      const int round = turn.round * width(along) + before;
      if (before < 0 || round >= along.rounds) continue;
      const auto plane = [&](int of_line) {
        return of_line == 0 ? 0 : first_plane[static_cast<std::size_t>(d)] + of_line;
      };
      for_each_transfer(stated_of(along, of_one), round, [&](const Transfer& t) {
        const int way = (t.to.front() - t.from.front()) * torus.stride(d);
        for_each_doing(torus, d, t.from.front(), of_one, [&](Rank r) {
          send.exactly({r, r + way, block(part, plane(t.what.plane)),
                        block(part, plane(t.where.plane)), t.act});
        });
      });
    }
  };
  if (of_one) out = everyone(std::move(out), Rotation(dims, parts, Moves::nothing));
  return packed(std::move(out));
}

}  // namespace rankine
