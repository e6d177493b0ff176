// Torus: ranks on a grid of D dimensions whose every line is a ring, and collectives that work
// along its lines.
//
// An algorithm says what happens among the ranks of one line; this file lets the dimensions take
// turns. Collectives run side by side, each on its part of every block and each beginning with
// another dimension, so that no two of them use a link at the same time ("multidimensional tori" in
// Sack & Gropp, "Collective algorithms for multiported torus networks", ACM TOPC 1(2), 2015; in
// Swing and in Trivance):
//
//   rotating  one round in every dimension in turn: 0 1 2 0 1 2 ...
//   whole     all rounds of a dimension, then of the next: 0 0 0 1 1 1 ...
//
// A dimension that has no round left when its turn comes lets it pass: dimensions of different
// sizes never get into each other's way, at the price of idle turns.
//   D dimensions    a size of one    the last dimension varies fastest: r = (x0 * a1 + x1) * a2 +
//   x2
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/schedule.h"

namespace rankine {

inline constexpr std::size_t kMostDims = 14;

// "4x4x2"; reading gives nullopt where the text is no list of 1 to kMostDims sizes from 1.
std::string dims_text(const std::vector<int>& dims);
std::optional<std::vector<int>> read_dims(std::string_view text);

// Why `ranks` ranks cannot form a torus of these sizes, as text that says what is needed; nothing
// where they can.
std::optional<std::string> dims_refusal(const std::vector<int>& dims, int ranks);

// The torus of so many dimensions whose sizes are nearest to each other, largest first; nothing
// where `ranks` has too few factors.
std::vector<int> balanced_dims(int ranks, int dimensions);

// The ranks of a torus in an order in which neighbours follow each other, the first one after the
// last one: a Hamiltonian cycle. Rank 0 comes first.
std::vector<Rank> hamiltonian_cycle(const std::vector<int>& dims);

class Torus {
 public:
  explicit Torus(std::vector<int> dims);
  int ranks() const { return ranks_; }
  int dimensions() const { return static_cast<int>(dims_.size()); }
  int size(int d) const { return dims_[static_cast<std::size_t>(d)]; }
  int stride(int d) const { return strides_[static_cast<std::size_t>(d)]; }  // between neighbours
  int coordinate(Rank r, int d) const { return r / stride(d) % size(d); }

  // visit(Rank) for all whose coordinate in dimension d is x, ascending.
  template <class Visit>
  void for_each_at(int d, int x, const Visit& visit) const {
    for (Rank line = x * stride(d); line < ranks_; line += size(d) * stride(d)) {
      for (int i = 0; i < stride(d); ++i) visit(line + i);
    }
  }

 private:
  std::vector<int> dims_, strides_;
  int ranks_ = 1;
};

// What the ranks of one line do, given how many they are. All-gathers: blocks are the ranks' own.
// All-reduces: one block; where they keep partial sums on further planes, kRoundsPerTurn rounds
// belong together, of which the last one has the messages.
using Line = std::function<Schedule(int size)>;
inline constexpr int kRoundsPerTurn = 3;

enum class Turns : unsigned char { rotating, whole };

// One all-gather for every line and first dimension, side by side: block b is split into
// lines.size() * D parts that follow each other. The turns are those of the reduce-scatter that is
// its dual: an all-gather takes them from the last to the first.
Schedule torus_all_gather(const std::vector<int>& dims, const std::vector<Line>& lines,
                          Turns turns);

// All-reduces whose messages are sums over the whole vector. `parts`: D, one beginning with each
// dimension; or 1. Rotating; where a line keeps partial sums, whole: a sum over half a line cannot
// travel along another one.
Schedule torus_all_reduce(const std::vector<int>& dims, const Line& line, int parts);

}  // namespace rankine
