// Cycles of a product, taken apart and joined: what cycle_products.cc does its work with.
#pragma once

#include <array>
#include <vector>

#include "algorithms/schedule/schedule.h"

namespace rankine {

using Cycle = std::vector<Rank>;

// The i-th of numbers that rise from 0 to `last` and then go between `aside`, its neighbour, and
// `last`. Squares exchanged at these levels, one after the other along a cycle, join the layers of
// that cycle: each of the first ones joins one layer more, and then two more change nothing (where
// e and f are neighbouring squares, paths through e f e begin and end as those through e).
int zigzag(int i, int last, int aside);

// The two neighbours that every vertex has in a graph that is a cycle or several. Misuse throws
// std::logic_error.
class Factor {
 public:
  explicit Factor(int vertices);
  void add(int a, int b);  // an edge
  void replace(int of, int neighbour, int by);
  // All vertices in the order of the cycle, from 0 on; they must be one cycle.
  std::vector<int> walk() const;

 private:
  std::vector<std::array<int, 2>> next_;
  std::vector<int> given_;
};

// The product of a cycle with a graph: a layer of the graph for every vertex of the cycle.
class Layers {
 public:
  Layers(int layers, int width) : layers_(layers), width_(width) {}

  // A cycle of the graph, in all layers.
  Factor in_layers(const std::vector<int>& cycle) const;
  // The cycle, at all vertices of the graph.
  Factor columns() const;
  // Of the square over the edge from x to y and the layers `level` and the next one, `across` has
  // the edges in the layers and `along` those between: they exchange them. That joins two cycles of
  // either to one; where both edges were in one cycle it stays one if they are walked in the same
  // direction, else it falls apart.
  void exchange(Factor& across, Factor& along, int level, int x, int y) const;
  // The walk, given who the layers and the vertices of the graph are. Ranks add up: those of either
  // have coordinates in dimensions of their own.
  Cycle named(const Factor& factor, const Cycle& layers, const Cycle& graph) const;

 private:
  int vertex(int layer, int x) const { return layer % layers_ * width_ + x; }
  int layers_, width_;
};

}  // namespace rankine
