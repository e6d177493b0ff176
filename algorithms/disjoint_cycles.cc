#include "algorithms/disjoint_cycles.h"

#include <algorithm>
#include <utility>

#include "algorithms/cycle_products.h"
#include "algorithms/torus.h"

namespace rankine {
namespace {

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
