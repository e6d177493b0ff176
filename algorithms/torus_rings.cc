// Makes the cycles of torus_rings.h: cycles of a product of graphs, cut and joined by exchanging
// edges of squares.

#include "algorithms/torus_rings.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "algorithms/schedule/schedule.h"
#include "algorithms/torus.h"

namespace rankine {

using Cycle = std::vector<Rank>;

// The i-th of numbers that rise from 0 to `last` and then alternate between `aside`, its neighbour,
// and `last`. Squares exchanged at these levels, one after the other along a cycle, join the layers
// of that cycle: each of the first ones joins one layer more, and then two more change nothing (if
// e and f are neighbouring squares, paths through e f e begin and end as those through e).
int zigzag(int i, int last, int aside);

// A graph that is one cycle or several: the two neighbours of every vertex. Misuse throws
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

  // One cycle of the graph, in all layers.
  Factor in_layers(const std::vector<int>& cycle) const;
  // The cycle, at all vertices of the graph.
  Factor columns() const;
  // Takes the square over the edge from x to y between the layers `level` and the next one.
  // `across` has its edges in the layers and `along` those between the layers: they exchange these
  // edges. That joins two cycles of either factor to one; if both edges were in one cycle, it stays
  // one if the edges are walked in one direction, and otherwise falls apart.
  void exchange(Factor& across, Factor& along, int level, int x, int y) const;
  // The walk in ranks, given the ranks of the layers and of the graph's vertices. Ranks add up: the
  // two have coordinates in different dimensions.
  Cycle named(const Factor& factor, const Cycle& layers, const Cycle& graph) const;

 private:
  int vertex(int layer, int x) const { return layer % layers_ * width_ + x; }
  int layers_, width_;
};

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

// The squares that join three cycles, in a cycle times a graph of two cycles that share no edge
// (append_triple()). The graph's vertices are numbered along its first cycle. The squares over that
// cycle's edges, except three, and over two of the second one's, s t and u w, are a tree over all
// columns: they make them one cycle. The squares over the first cycle's edges lie at levels in a
// zigzag, and make its layers one cycle; every level but one has one square over the second cycle's
// edges.
//   m vertices    u, w  the edges w - 1 w, w w + 1 and u u + 1 of the first cycle have no square;
//   with an odd number of layers u = m - 1, else w = m - 1    level 0: only 0 1 and s t

struct JoiningSquares {
  // Rotates `first` until there are such squares. `even`: the number of layers is even.
  JoiningSquares(Cycle& first, const Cycle& second, bool even);

  bool over(int x) const { return x != u && x != w && x + 1 != w && x + 1 < m; }  // x x + 1
  int level(int x) const { return zigzag(x - (x > u ? 1 : 0) - (x > w ? 2 : 0), last, aside); }

  int m, last, aside;  // for zigzag()
  int u = 0, w = 0;
  int s = 0, t = 0, beyond = 0;  // beyond: the second cycle's next one after t
  // With an even number of layers: an edge of the second cycle that the first one's squares leave
  // in one direction.
  int p = 0, q = 0;
  std::vector<int> second;  // the second cycle

 private:
  std::array<int, 2> beside(int x) const;  // in the second cycle
  // True if only s t joins x to u and w.
  bool apart(int x) const { return x < w && (x > u || u == m - 1); }
  bool find_tie();
  bool find_alike();

  std::vector<int> place_;  // places of the vertices in the second cycle
};

namespace {

// The cycle's vertices by their numbers along another one.
std::vector<int> numbered(const Cycle& cycle, const Cycle& along) {
  std::vector<std::pair<Rank, int>> places;
  for (const Rank r : along) places.emplace_back(r, static_cast<int>(places.size()));
  std::sort(places.begin(), places.end());
  std::vector<int> out;
  for (const Rank r : cycle) {
    out.push_back(std::lower_bound(places.begin(), places.end(), std::pair(r, 0))->second);
  }
  return out;
}

}  // namespace

JoiningSquares::JoiningSquares(Cycle& first, const Cycle& other, bool even)
    : m(static_cast<int>(first.size())), last(2 - m % 2), aside(1 + m % 2) {
  for (int begin = 0; begin < m; ++begin) {
    second = numbered(other, first);
    place_ = numbered(first, other);
    for (const int x : beside(m - 1)) {
      u = even ? x : m - 1;
      w = even ? m - 1 : x;
      if (find_tie() && (!even || find_alike())) return;
    }
    std::rotate(first.begin(), first.begin() + 1, first.end());
  }
  throw std::logic_error("disjoint_cycles: no squares join three cycles");
}

std::array<int, 2> JoiningSquares::beside(int x) const {
  const int i = at(place_, x);
  return {at(second, wrapped(i - 1, m)), at(second, wrapped(i + 1, m))};
}

// s, t and the vertex beyond them must be away from 0 1 2.
bool JoiningSquares::find_tie() {
  for (s = 3; s < m; ++s) {
    if (!apart(s)) continue;
    for (const int to : beside(s)) {
      t = to;
      beyond = beside(t)[0] == s ? beside(t)[1] : beside(t)[0];
      if (!apart(t) && t >= 3 && beyond >= 3) return true;
    }
  }
  return false;
}

bool JoiningSquares::find_alike() {
  const auto leaves = [this](int x) { return over(x) && level(x) == last; };
  for (p = 0; p < m; ++p) {
    for (const int to : beside(p)) {
      q = to;
      if (leaves(p) && leaves(q)) return true;
    }
  }
  return false;
}

// Cuts products of cycles into cycles that share no edge, and appends all to `out`.

// Two cycles times each other: two cycles.
void append_product(Cycle layers, Cycle graph, std::vector<Cycle>& out);

// A cycle times a graph of two cycles that share no edge: three cycles. If the graph has an odd
// number of vertices, the number of layers must be odd.
void append_triple(const Cycle& layers, Cycle first, const Cycle& second, std::vector<Cycle>& out);

namespace {

std::vector<int> counted(int n) {
  std::vector<int> out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

}  // namespace

// The longer cycle's vertices are layers, each joined to the next one by one square; the squares'
// columns join the shorter one's. If only the longer one is odd, the last layer is joined to the
// first one too, and if only the shorter one is odd, so is the last column: both edges of that
// square are then walked in one direction.
void append_product(Cycle layers, Cycle graph, std::vector<Cycle>& out) {
  if (layers.size() < graph.size()) std::swap(layers, graph);
  const int n = static_cast<int>(layers.size()), m = static_cast<int>(graph.size());
  const Layers product(n, m);
  Factor across = product.in_layers(counted(m)), along = product.columns();
  const int last = n % 2 == 0 && m % 2 == 1 ? m - 1 : m - 2;
  const int levels = n % 2 == 1 && m % 2 == 0 ? n : n - 1;
  for (int level = 0; level < levels; ++level) {
    const int x = zigzag(level, last, last - 1);
    product.exchange(across, along, level, x, (x + 1) % m);
  }
  out.push_back(product.named(across, layers, graph));
  out.push_back(product.named(along, layers, graph));
}

// Three or four layers are joined as JoiningSquares defines; two more at a time repeat level 0,
// with the squares beside its own in between.
void append_triple(const Cycle& layers, Cycle first, const Cycle& second, std::vector<Cycle>& out) {
  const int n = static_cast<int>(layers.size()), m = static_cast<int>(first.size());
  const bool even = n % 2 == 0;
  const int more = even ? n - 4 : n - 3;
  const JoiningSquares squares(first, second, even);
  const Layers product(n, m);
  Factor a = product.in_layers(counted(m)), b = product.in_layers(squares.second);
  Factor along = product.columns();
  const auto level = [more](int base) { return base == 0 ? 0 : base + more; };
  for (int x = 0; x < m; ++x) {
    if (squares.over(x)) product.exchange(a, along, level(squares.level(x)), x, x + 1);
  }
  product.exchange(b, along, level(even ? 3 : squares.aside), squares.u, squares.w);
  product.exchange(b, along, 0, squares.s, squares.t);
  for (int k = 1; k <= more; ++k) {
    const bool beside = k % 2 == 1;
    product.exchange(a, along, k, beside ? 2 : 0, 1);
    product.exchange(b, along, k, beside ? squares.beyond : squares.s, squares.t);
  }
  // If all lengths are even, all edges exchanged with columns are walked in opposite directions,
  // and one cycle too many would remain. The first cycle gives these edges away.
  if (even) product.exchange(b, a, level(squares.last), squares.p, squares.q);
  for (const Factor* factor : {&a, &b, &along}) {
    out.push_back(product.named(*factor, layers, first));
  }
}

namespace {

// An order of the cells of a grid with cyclic rows: the first row's order, row by row, every row
// walked once round upwards or downwards, so that the next one begins one column later or earlier.
// It closes if these shifts add up to a whole turn.
std::vector<Rank> wind(const std::vector<Rank>& row, int rows, int row_stride) {
  const int a = static_cast<int>(row.size());
  std::vector<Rank> order;
  int column = 0;
  for (int i = 0; i < rows; ++i) {
    // Walking up leaves the next row one column back. Even rows: as many ups as downs. Odd rows:
    // `a` of them, odd too and no more than the rows, walk up; the rest cancel.
    const bool up = rows % 2 == 0 ? i % 2 == 0 : i < a || (i - a) % 2 == 0;
    for (int x = 0; x < a; ++x) {
      order.push_back(i * row_stride + at(row, wrapped(column + (up ? x : -x), a)));
    }
    column = wrapped(column + (up ? -1 : 1), a);
  }
  return order;
}

}  // namespace

std::vector<Rank> hamiltonian_cycle(const std::vector<int>& dims) {
  // Dimension after dimension: the cycle over those before is the row of a grid with the next one
  // as columns, or the other way round if that does not close (odd rows, fewer than columns).
  const Torus torus(dims);
  std::vector<Rank> cycle = {0};
  for (int d = torus.dimensions() - 1; d >= 0; --d) {
    const int a = torus.size(d), length = static_cast<int>(cycle.size());
    if (a % 2 == 0 || (length % 2 == 1 && length <= a)) {
      cycle = wind(cycle, a, torus.stride(d));
      continue;
    }
    std::vector<Rank> column(static_cast<std::size_t>(a));
    std::iota(column.begin(), column.end(), 0);
    std::vector<Rank> turned = wind(column, length, a);
    for (Rank& r : turned) r = at(cycle, r / a) + r % a * torus.stride(d);
    cycle = std::move(turned);
  }
  return cycle;
}

namespace {

// The cycles of the torus with these dimensions, each given by size and stride.
std::vector<Cycle> cycles_of(const std::vector<std::pair<int, int>>& dims) {
  if (dims.size() == 1) {
    Cycle cycle;
    for (int x = 0; x < dims[0].first; ++x) cycle.push_back(x * dims[0].second);
    return {cycle};
  }
  // The product of two tori with equally many cycles, or one more in the second one: pairs, and a
  // triple at the end.
  const auto middle = dims.begin() + static_cast<std::ptrdiff_t>(dims.size() / 2);
  const auto one = cycles_of({dims.begin(), middle}), other = cycles_of({middle, dims.end()});
  std::vector<Cycle> out;
  const bool triple = other.size() > one.size();
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (triple && i + 1 == one.size()) {
      append_triple(one[i], other[i], other[i + 1], out);
    } else {
      append_product(one[i], other[i], out);
    }
  }
  return out;
}

}  // namespace

std::vector<std::vector<Rank>> disjoint_cycles(const std::vector<int>& dims) {
  const Torus torus(dims);
  std::vector<std::pair<int, int>> ordered;  // odd ones first, as append_triple() needs them
  for (int d = 0; d < torus.dimensions(); ++d) ordered.emplace_back(torus.size(d), torus.stride(d));
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](const auto& size) { return size.first % 2 == 1; });
  return cycles_of(ordered);
}

}  // namespace rankine
