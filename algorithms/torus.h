// Torus numbers ranks on a grid of D dimensions in which every line is a ring.
//   D dimensions    a size of one    the last varies fastest: r = (x0 * a1 + x1) * a2 + x2
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/schedule.h"

namespace rankine {

inline constexpr std::size_t kMostDims = 14;

// "4x4x2"; read_dims() returns nullopt unless the text is a list of 1 to kMostDims sizes >= 1.
std::string dims_text(const std::vector<int>& dims);
std::optional<std::vector<int>> read_dims(std::string_view text);

// The reason why `ranks` ranks cannot form a torus of these sizes, as an error text; nullopt if
// they can.
std::optional<std::string> dims_refusal(const std::vector<int>& dims, int ranks);

// The torus with `dimensions` sizes nearest to each other, largest first; empty if `ranks` has too
// few factors.
std::vector<int> balanced_dims(int ranks, int dimensions);

class Torus {
 public:
  explicit Torus(std::vector<int> dims);
  int ranks() const { return ranks_; }
  int dimensions() const { return static_cast<int>(dims_.size()); }
  int size(int d) const { return at(dims_, d); }
  int stride(int d) const { return at(strides_, d); }  // between neighbours
  int coordinate(Rank r, int d) const { return r / stride(d) % size(d); }

  // visit(Rank) for all ranks with coordinate x in dimension d, ascending.
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

// Collectives on a torus from schedules for its lines.
//
// An algorithm defines the rounds among the ranks of one line; here the dimensions take
// turns. Collectives run side by side, each on one part of every block and each beginning with
// another dimension, so that no two of them use a link at one time ("multidimensional tori" in Sack
// & Gropp, "Collective algorithms for multiported torus networks", ACM TOPC 1(2), 2015; in Swing
// and in Trivance):
//
//   rotating  one round in every dimension in turn: 0 1 2 0 1 2 ...
//   whole     all rounds of a dimension, then of the next: 0 0 0 1 1 1 ...
//   apart     whole, and every dimension's turn lasts as long as the largest one's: collectives
//   meet
//             nowhere, and take D times the rounds of the largest dimension
//
// If sizes differ, a dimension without remaining rounds otherwise skips its turn, so that
// collectives stay out of each other's way; but no collective waits for the largest dimension, in
// which they meet. That takes D - 1 times the rounds of the largest dimension but one, plus the
// rounds of the largest. Loads that meet are those that links would have carried one after the
// other, so the busiest links of all rounds together carry no more. With two dimensions no turn is
// idle. With more, the idle turns could be used only at the price of higher loads: two dimensions
// cannot keep three collectives busy.

// The schedule of one line, given its number of ranks. All-gathers: blocks are the ranks' own.
// All-reduces: one block; if they keep partial sums on further planes, kRoundsPerTurn rounds belong
// together, and the last one of them has the messages.
using Line = std::function<Schedule(int size)>;
inline constexpr int kRoundsPerTurn = 3;

enum class Turns : unsigned char { rotating, whole, apart };

// One all-gather for every line and first dimension, side by side: block b is split into
// lines.size() * D parts that follow each other. The turns are those of the reduce-scatter that is
// its dual: an all-gather takes them from the last to the first. `changed` may restate each of the
// all-gathers, of one block per rank.
Schedule torus_all_gather(const std::vector<int>& dims, const std::vector<Line>& lines, Turns turns,
                          const std::function<Schedule(const Schedule&)>& changed = {});

// All-reduces with messages that are sums over the whole vector. `parts`: D, one beginning with
// each dimension; or 1. Rotating; whole if a line keeps partial sums: a sum over half a line cannot
// travel along another one.
Schedule torus_all_reduce(const std::vector<int>& dims, const Line& line, int parts);

}  // namespace rankine
