#include "algorithms/disjoint_cycles.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "algorithms/layers.h"

namespace rankine {
namespace {

std::vector<int> counted(int n) {
  std::vector<int> out(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) out[static_cast<std::size_t>(i)] = i;
  return out;
}

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

// Two cycles times each other: two cycles. The longer one's vertices are layers, each joined to the
// next one by one square, whose columns join the shorter one's. Where the longer one is odd and the
// other one is not, the last layer is joined to the first one, too, and where it is the other way
// round, so is the last column: both edges of that square are then walked in one direction.
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

// Which squares make three cycles of a cycle times a graph of two. Its vertices are numbered along
// the graph's first cycle. The squares over that cycle's edges, but for three, and over two of the
// second one's, s t and u w, are a tree over all columns: they make them one cycle. Those over the
// first one's lie at levels in a zigzag, and make its layers one cycle; those over the second one's
// are one for every level but one.
//   m vertices    u, w  the edges w - 1 w, w w + 1 and u u + 1 of the first cycle have no square;
//   where n is odd u = m - 1, else w = m - 1    level 0: only 0 1 and s t
struct Squares {
  int m, last, aside;  // the zigzag's
  int u = 0, w = 0;
  int s = 0, t = 0, beyond = 0;  // beyond: the second cycle's next one after t
  int p = 0, q = 0;              // where n is even: see append_triple()

  bool over(int x) const { return x != u && x != w && x + 1 != w && x + 1 < m; }  // x x + 1
  int turn(int x) const { return zigzag(x - (x > u ? 1 : 0) - (x > w ? 2 : 0), last, aside); }
  // Whether only s t joins x to u and w.
  bool apart(int x) const { return x < w && (x > u || u == m - 1); }
};
using Neighbours = std::vector<std::array<int, 2>>;  // in the second cycle

// s and t: away from 0 1 2, and so is what is beyond them.
bool find_tie(Squares& squares, const Neighbours& neighbours) {
  for (int s = 3; s < squares.m; ++s) {
    if (!squares.apart(s)) continue;
    for (const int t : neighbours[static_cast<std::size_t>(s)]) {
      const auto& of_t = neighbours[static_cast<std::size_t>(t)];
      squares.s = s;
      squares.t = t;
      squares.beyond = of_t[0] == s ? of_t[1] : of_t[0];
      if (!squares.apart(t) && t >= 3 && squares.beyond >= 3) return true;
    }
  }
  return false;
}

// p and q: an edge of the second cycle that the first one's squares leave in the same direction.
bool find_alike(Squares& squares, const Neighbours& neighbours) {
  const auto leaves = [&](int x) { return squares.over(x) && squares.turn(x) == squares.last; };
  for (int p = 0; p < squares.m; ++p) {
    for (const int q : neighbours[static_cast<std::size_t>(p)]) {
      squares.p = p;
      squares.q = q;
      if (leaves(p) && leaves(q)) return true;
    }
  }
  return false;
}

// A cycle times a graph of two cycles that share no edge: three cycles. n is odd where m is. Three
// or four layers are joined as Squares says; two more at a time repeat level 0, with the squares
// beside its own in between.
void append_triple(const Cycle& layers, Cycle first, const Cycle& second, std::vector<Cycle>& out) {
  const int n = static_cast<int>(layers.size()), m = static_cast<int>(first.size());
  const bool even = n % 2 == 0;
  const int more = even ? n - 4 : n - 3;
  Squares squares{.m = m, .last = 2 - m % 2, .aside = 1 + m % 2};
  std::vector<int> of_second;
  const auto found = [&] {
    of_second = numbered(second, first);
    Neighbours neighbours(first.size());
    for (std::size_t i = 0; i < of_second.size(); ++i) {
      const std::size_t next = (i + 1) % of_second.size();
      neighbours[static_cast<std::size_t>(of_second[i])][1] = of_second[next];
      neighbours[static_cast<std::size_t>(of_second[next])][0] = of_second[i];
    }
    return std::any_of(neighbours.back().begin(), neighbours.back().end(), [&](int x) {
      squares.u = even ? x : m - 1;
      squares.w = even ? m - 1 : x;
      return find_tie(squares, neighbours) && (!even || find_alike(squares, neighbours));
    });
  };
  for (int begin = 0; !found(); ++begin) {
    if (begin == m) throw std::logic_error("disjoint_cycles: no squares join three cycles");
    std::rotate(first.begin(), first.begin() + 1, first.end());
  }
  const Layers product(n, m);
  Factor a = product.in_layers(counted(m)), b = product.in_layers(of_second);
  Factor along = product.columns();
  const auto level = [more](int base) { return base == 0 ? 0 : base + more; };
  for (int x = 0; x < m; ++x) {
    if (squares.over(x)) product.exchange(a, along, level(squares.turn(x)), x, x + 1);
  }
  product.exchange(b, along, level(even ? 3 : squares.aside), squares.u, squares.w);
  product.exchange(b, along, 0, squares.s, squares.t);
  for (int k = 1; k <= more; ++k) {
    const bool beside = k % 2 == 1;
    product.exchange(a, along, k, beside ? 2 : 0, 1);
    product.exchange(b, along, k, beside ? squares.beyond : squares.s, squares.t);
  }
  // Where all lengths are even, whatever is exchanged with columns is walked in opposite
  // directions, and one cycle too many would be left. The first cycle gives these edges away.
  if (even) product.exchange(b, a, level(squares.last), squares.p, squares.q);
  for (const Factor* factor : {&a, &b, &along}) {
    out.push_back(product.named(*factor, layers, first));
  }
}

// Of the torus of these dimensions, each its size and stride.
std::vector<Cycle> cycles_of(const std::vector<std::pair<int, int>>& dims) {
  if (dims.size() == 1) {
    Cycle cycle;
    for (int x = 0; x < dims[0].first; ++x) cycle.push_back(x * dims[0].second);
    return {cycle};
  }
  // The product of two tori with as many cycles each, or one more in the second one: pairs, and a
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
