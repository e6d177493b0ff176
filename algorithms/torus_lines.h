// The lines of a torus and what is done along them (torus_turns.h): what one of each dimension
// does, all do at the same time.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "algorithms/schedule/everyone.h"
#include "algorithms/torus_turns.h"

namespace rankine {

class TorusLines {
 public:
  TorusLines(const std::vector<int>& dims, const Line& line) : torus_(dims) {
    for (const int size : dims) lines_.push_back(line(size));
    alike_ = std::all_of(lines_.begin(), lines_.end(),
                         [](const Schedule& one) { return everyone_in(one) != nullptr; });
  }

  const Torus& torus() const { return torus_; }
  const Schedule& operator[](int d) const { return at(lines_, d); }
  int dimensions() const { return torus_.dimensions(); }

  // visit(transfer of the line, from, to) for a round of all lines of dimension d; where everyone
  // does the same along every line, for rank 0's part of it.
  template <class Visit>
  void for_each_transfer_along(int d, int round, const Visit& visit) const {
    const Schedule& line = at(lines_, d);
    for_each_transfer(alike_ ? everyone_in(line)->part() : line, round, [&](const Transfer& t) {
      const int x = t.from.front(), way = (t.to.front() - x) * torus_.stride(d);
      const auto from = [&](Rank r) { visit(t, r, r + way); };
      alike_ ? from(x * torus_.stride(d)) : torus_.for_each_at(d, x, from);
    });
  }

  // The schedule whose rounds are made of those transfers.
  Schedule schedule(Schedule stated, Moves moves) const {
    if (!alike_) return stated;
    std::vector<int> dims;
    for (const Schedule& line : lines_) dims.push_back(line.ranks);
    Rotation rotation(std::move(dims), stated.blocks, moves);
    return everyone(std::move(stated), std::move(rotation));
  }

 private:
  Torus torus_;
  std::vector<Schedule> lines_;
  bool alike_ = false;
};

}  // namespace rankine
