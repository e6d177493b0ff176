#include "algorithms/layers.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace rankine {

int zigzag(int i, int last, int aside) {
  return i <= last ? i : (i - last) % 2 == 1 ? aside : last;
}

Factor::Factor(int vertices) : next_(static_cast<std::size_t>(vertices)), given_(next_.size()) {}

void Factor::add(int a, int b) {
  at(at(next_, a), at(given_, a)++) = b;
  at(at(next_, b), at(given_, b)++) = a;
}

void Factor::replace(int of, int neighbour, int by) {
  auto& two = at(next_, of);
  const auto found = std::find(two.begin(), two.end(), neighbour);
  if (found == two.end()) throw std::logic_error("disjoint_cycles: an edge is exchanged twice");
  *found = by;
}

std::vector<int> Factor::walk() const {
  std::vector<int> order = {0};
  for (int before = -1, here = 0; order.size() <= next_.size();) {
    const auto& two = at(next_, here);
    const int to = two[0] == before ? two[1] : two[0];
    if (to == 0) break;
    before = std::exchange(here, to);
    order.push_back(to);
  }
  if (order.size() != next_.size()) throw std::logic_error("disjoint_cycles: a cycle is short");
  return order;
}

Factor Layers::in_layers(const std::vector<int>& cycle) const {
  Factor out(layers_ * width_);
  for (int layer = 0; layer < layers_; ++layer) {
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      out.add(vertex(layer, cycle[i]), vertex(layer, cycle[(i + 1) % cycle.size()]));
    }
  }
  return out;
}

Factor Layers::columns() const {
  Factor out(layers_ * width_);
  for (int v = 0; v < layers_ * width_; ++v) out.add(v, (v + width_) % (layers_ * width_));
  return out;
}

void Layers::exchange(Factor& across, Factor& along, int level, int x, int y) const {
  const int a = vertex(level, x), b = vertex(level, y);
  const int over_a = vertex(level + 1, x), over_b = vertex(level + 1, y);
  const std::array<std::array<int, 3>, 4> corners = {
      // each with its neighbours
      {{a, b, over_a}, {b, a, over_b}, {over_a, over_b, a}, {over_b, over_a, b}}};
  for (const auto& [corner, beside, over] : corners) {
    across.replace(corner, beside, over);
    along.replace(corner, over, beside);
  }
}

Cycle Layers::named(const Factor& factor, const Cycle& layers, const Cycle& graph) const {
  Cycle out;
  for (const int v : factor.walk()) {
    out.push_back(at(layers, v / width_) + at(graph, v % width_));
  }
  return out;
}

}  // namespace rankine
