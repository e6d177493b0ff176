#include "algorithms/torus.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "algorithms/list_text.h"
#include "algorithms/schedule/combine.h"

namespace rankine {
namespace {

// Whose turn it is, and which of its rounds.
struct Turn {
  int dimension = 0;
  int round = 0;
};

// `most`: rounds of the dimension that has most of them.
Turn turn_of(Turns turns, int t, int first, int dimensions, int most) {
  const int d = turns == Turns::rotating ? t % dimensions : t / most;
  return {(first + d) % dimensions, turns == Turns::rotating ? t / dimensions : t % most};
}

// Sorted indices, as few runs.
IndexList runs_of(const std::vector<int>& sorted) {
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

// By coordinate: the blocks of its line that a rank has, as coordinates.
using Held = std::vector<IndexList>;

// What the ranks of a line have before round k of its all-gather, for every k asked for.
std::map<int, Held> held_before(const Schedule& line, const std::vector<int>& rounds_asked) {
  const auto a = static_cast<std::size_t>(line.ranks);
  std::vector<std::vector<char>> has(a, std::vector<char>(a, 0));
  for (std::size_t c = 0; c < a; ++c) has[c][c] = 1;
  std::map<int, Held> out;
  for (int k = 0; k <= line.rounds; ++k) {
    if (std::find(rounds_asked.begin(), rounds_asked.end(), k) != rounds_asked.end()) {
      Held& held = out[k];
      for (const auto& blocks : has) {
        std::vector<int> sorted;
        for (std::size_t b = 0; b < a; ++b) {
          if (blocks[b] != 0) sorted.push_back(static_cast<int>(b));
        }
        held.push_back(runs_of(sorted));
      }
    }
    if (k == line.rounds) break;
    for_each_transfer(line, k, [&has](const Transfer& t) {
      auto& receiver = has[static_cast<std::size_t>(t.to.front())];
      t.where.list.for_each([&](Block b) { receiver[static_cast<std::size_t>(b)] = 1; });
    });
  }
  return out;
}

// One all-gather over the torus. All ranks have come equally far, so what rank r has is a product:
// every dimension's Held at r's coordinate.
class Gather {
 public:
  Gather(const Torus& torus, const Line& line, Turns turns, int first) : torus_(torus) {
    const int dimensions = torus.dimensions();
    for (int d = 0; d < dimensions; ++d) {
      lines_.push_back(line(torus.size(d)));
      most_ = std::max(most_, lines_.back().rounds);
    }
    std::vector<int> done(lines_.size(), 0);
    for (int k = 0; k < most_ * dimensions; ++k) {
      // The reduce-scatter runs them from the last to the first, so an idle turn comes early.
      Turn turn = turn_of(turns, most_ * dimensions - 1 - k, first, dimensions, most_);
      const int of_line = line_of(turn.dimension).rounds;
      turn.round = turn.round < of_line ? of_line - 1 - turn.round : -1;
      rounds_.push_back({turn, done});
      if (turn.round >= 0) ++done[static_cast<std::size_t>(turn.dimension)];
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

  // Round k, with block b as b * parts + part.
  void round(int k, int part, int parts, Send send) const {
    const auto& [turn, done] = rounds_[static_cast<std::size_t>(k)];
    if (turn.round < 0) return;
    const int d = turn.dimension;
    std::vector<const Held*> others(lines_.size(), nullptr);
    for (std::size_t e = 0; e < lines_.size(); ++e) {
      if (static_cast<int>(e) != d) others[e] = &held_[e].at(done[e]);
    }
    for_each_transfer(line_of(d), turn.round, [&](const Transfer& t) {
      const int way = (t.to.front() - t.from.front()) * torus_.stride(d);
      torus_.for_each_at(d, t.from.front(), [&](Rank r) {
        BlockSet what;
        append_product(others, t.what.list, r, 0, 0, part, parts, what.list);
        send.exactly({r, r + way, what, what, t.act});
      });
    });
  }

 private:
  struct Round {
    Turn turn;              // its round is the line's, or -1 where the dimension is idle
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

// An order of the cells of a grid whose rows are cycles: the first row's order, row by row, every
// row walked once round upwards or downwards, so that the next one begins one column later or
// earlier. It closes where these shifts add up to a whole turn.
std::vector<Rank> wind(const std::vector<Rank>& row, int rows, int row_stride) {
  const int a = static_cast<int>(row.size());
  std::vector<Rank> order;
  int column = 0;
  for (int i = 0; i < rows; ++i) {
    // Walking up leaves the next row one column back. Even rows: as many ups as downs. Odd rows:
    // `a` of them, odd too and no more than the rows, walk up; the rest cancel.
    const bool up = rows % 2 == 0 ? i % 2 == 0 : i < a || (i - a) % 2 == 0;
    for (int x = 0; x < a; ++x) {
      const int at = ((column + (up ? x : -x)) % a + a) % a;
      order.push_back(i * row_stride + row[static_cast<std::size_t>(at)]);
    }
    column = ((column + (up ? -1 : 1)) % a + a) % a;
  }
  return order;
}

}  // namespace

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
      return "dims is " + dims_text(dims) + "; every size must be at least 2";
    }
    product *= size;
    if (product > ranks) break;
  }
  if (product == ranks) return std::nullopt;
  return "dims is " + dims_text(dims) + "; the sizes must multiply to the number of ranks, " +
         std::to_string(ranks);
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

Schedule torus_all_gather(const std::vector<int>& dims, const std::vector<Line>& lines,
                          Turns turns) {
  const Torus torus(dims);
  const int d = torus.dimensions(), parts = d * static_cast<int>(lines.size());
  std::vector<std::shared_ptr<const Gather>> gathers;
  for (int part = 0; part < parts; ++part) {
    gathers.push_back(std::make_shared<const Gather>(
        torus, lines[static_cast<std::size_t>(part / d)], turns, part % d));
  }
  return {torus.ranks(), torus.ranks() * parts, gathers.front()->rounds(),
          [gathers, parts](int k, Send send) {
            for (int part = 0; part < parts; ++part) {
              gathers[static_cast<std::size_t>(part)]->round(k, part, parts, send);
            }
          }};
}

Schedule torus_all_reduce(const std::vector<int>& dims, const Line& line, int parts) {
  const Torus torus(dims);
  std::vector<Schedule> lines;
  std::vector<int> first_plane;  // of every dimension's partial sums: planes are not used twice
  int most = 0, planes = 1;
  for (int d = 0; d < torus.dimensions(); ++d) {
    lines.push_back(line(torus.size(d)));
    first_plane.push_back(planes - 1);
    planes += lines.back().planes - 1;
  }
  const auto width = [](const Schedule& of) { return of.planes == 1 ? 1 : kRoundsPerTurn; };
  const int widest = planes == 1 ? 1 : kRoundsPerTurn;
  for (const Schedule& of : lines) most = std::max(most, of.rounds / width(of));
  const Turns turns = planes == 1 ? Turns::rotating : Turns::whole;

  Schedule out{torus.ranks(), parts, most * torus.dimensions() * widest, {}, {}, planes};
  out.round = [=](int k, Send send) {
    for (int part = 0; part < parts; ++part) {
      const Turn turn = turn_of(turns, k / widest, part, torus.dimensions(), most);
      const int d = turn.dimension;
      const Schedule& along = lines[static_cast<std::size_t>(d)];
      const int before = width(along) - widest + k % widest;  // this turn's rounds before this one
      const int round = turn.round * width(along) + before;
      if (before < 0 || round >= along.rounds) continue;
      const auto plane = [&](int of_line) {
        return of_line == 0 ? 0 : first_plane[static_cast<std::size_t>(d)] + of_line;
      };
      for_each_transfer(along, round, [&](const Transfer& t) {
        const int way = (t.to.front() - t.from.front()) * torus.stride(d);
        torus.for_each_at(d, t.from.front(), [&](Rank r) {
          send.exactly({r, r + way, block(part, plane(t.what.plane)),
                        block(part, plane(t.where.plane)), t.act});
        });
      });
    }
  };
  return packed(std::move(out));
}

std::vector<Rank> hamiltonian_cycle(const std::vector<int>& dims) {
  // Dimension after dimension: the cycle over those before is the row of a grid whose columns are
  // the next one, or the other way round where that does not close (odd rows, fewer than columns).
  const Torus torus(dims);
  std::vector<Rank> cycle = {0};
  for (int d = torus.dimensions() - 1; d >= 0; --d) {
    const int a = torus.size(d), length = static_cast<int>(cycle.size());
    if (a % 2 == 0 || (length % 2 == 1 && length <= a)) {
      cycle = wind(cycle, a, torus.stride(d));
      continue;
    }
    std::vector<Rank> column(static_cast<std::size_t>(a));
    for (int x = 0; x < a; ++x) column[static_cast<std::size_t>(x)] = x;
    std::vector<Rank> turned = wind(column, length, a);
    for (Rank& r : turned) {
      r = cycle[static_cast<std::size_t>(r / a)] + r % a * torus.stride(d);
    }
    cycle = std::move(turned);
  }
  return cycle;
}

}  // namespace rankine
