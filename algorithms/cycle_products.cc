#include "algorithms/cycle_products.h"

#include <numeric>
#include <utility>

#include "algorithms/joining_squares.h"

namespace rankine {
namespace {

std::vector<int> counted(int n) {
  std::vector<int> out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

}  // namespace

// The longer one's vertices are layers, each joined to the next one by one square, whose columns
// join the shorter one's. Where the longer one is odd and the other one is not, the last layer is
// joined to the first one, too, and where it is the other way round, so is the last column: both
// edges of that square are then walked in one direction.
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

// Three or four layers are joined as JoiningSquares says; two more at a time repeat level 0, with
// the squares beside its own in between.
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
  // Where all lengths are even, whatever is exchanged with columns is walked in opposite
  // directions, and one cycle too many would be left. The first cycle gives these edges away.
  if (even) product.exchange(b, a, level(squares.last), squares.p, squares.q);
  for (const Factor* factor : {&a, &b, &along}) {
    out.push_back(product.named(*factor, layers, first));
  }
}

}  // namespace rankine
