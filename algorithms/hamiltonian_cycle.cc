#include "algorithms/hamiltonian_cycle.h"

#include <numeric>
#include <utility>

#include "algorithms/torus.h"

namespace rankine {
namespace {

// An order of the cells of a grid whose rows are cycles: the first row's order, row by row, every
// row walked once round upwards or downwards, so that the next one begins one column later or
// earlier. It closes where these shifts add up to a whole turn.
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
  // Dimension after dimension: the cycle over those before is the row of a grid whose columns are
  // the next one, or the other way round where that does not close (odd rows, fewer than columns).
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

}  // namespace rankine
