// Which squares join three cycles: of a cycle times a graph of two cycles that share no edge
// (cycle_products.cc). The graph's vertices are numbered along its first cycle. The squares over
// that cycle's edges, but for three, and over two of the second one's, s t and u w, are a tree over
// all columns: they make them one cycle. Those over the first one's lie at levels in a zigzag, and
// make its layers one cycle; those over the second one's are one for every level but one.
//   m vertices    u, w  the edges w - 1 w, w w + 1 and u u + 1 of the first cycle have no square;
//   among an odd number of layers u = m - 1, else w = m - 1    level 0: only 0 1 and s t
#pragma once

#include <array>
#include <vector>

#include "algorithms/layers.h"

namespace rankine {

struct JoiningSquares {
  // Turns `first` until there are such squares. `even`: the layers' number.
  JoiningSquares(Cycle& first, const Cycle& second, bool even);

  bool over(int x) const { return x != u && x != w && x + 1 != w && x + 1 < m; }  // x x + 1
  int level(int x) const { return zigzag(x - (x > u ? 1 : 0) - (x > w ? 2 : 0), last, aside); }

  int m, last, aside;  // the zigzag's
  int u = 0, w = 0;
  int s = 0, t = 0, beyond = 0;  // beyond: the second cycle's next one after t
  // Among an even number of layers: an edge of the second cycle that the first one's squares leave
  // in the same direction.
  int p = 0, q = 0;
  std::vector<int> second;  // the second cycle

 private:
  std::array<int, 2> beside(int x) const;  // in the second cycle
  // Whether only s t joins x to u and w.
  bool apart(int x) const { return x < w && (x > u || u == m - 1); }
  bool find_tie();
  bool find_alike();

  std::vector<int> place_;  // of the vertices in the second cycle
};

}  // namespace rankine
