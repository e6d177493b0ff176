#include "algorithms/torus.h"

#include <cstdint>
#include <utility>

#include "algorithms/list_text.h"
#include "algorithms/schedule/combine.h"

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
      const int at = ((column + (up ? x : -x)) % a + a) % a;
      order.push_back(i * row_stride + row[static_cast<std::size_t>(at)]);
    }
    column = ((column + (up ? -1 : 1)) % a + a) % a;
  }
  return order;
}

}  // namespace

std::string dims_text(const std::vector<int>& dims) { return list_text(dims, 'x'); }

std::optional<std::vector<int>> read_dims(std::string_view text) {
  auto dims = read_list(text, 'x');
  if (!dims || dims->size() > kMostDims) return std::nullopt;
  return std::count(dims->begin(), dims->end(), 0) == 0 ? dims : std::nullopt;
}

std::optional<std::string> dims_refusal(const std::vector<int>& dims, int ranks) {
  std::int64_t product = 1;
  for (const int size : dims) {
    if (size < 1 || (size == 1 && dims.size() > 1)) {
      return "dims is " + dims_text(dims) + "; every size must be at least 2";
    }
    product *= size;
    if (product > ranks) break;
  }
  if (product == ranks) return std::nullopt;
  return "dims is " + dims_text(dims) + "; the sizes must multiply to the number of ranks, " +
         std::to_string(ranks);
}

std::vector<int> balanced_dims(int ranks, int dimensions) {
  if (dimensions == 1) return {ranks};
  std::vector<int> best;
  // The first size is the largest: as small as the others allow.
  for (int first = 2; first <= ranks / 2; ++first) {
    if (ranks % first != 0) continue;
    std::vector<int> rest = balanced_dims(ranks / first, dimensions - 1);
    if (rest.empty() || rest.front() > first || rest.back() < 2) continue;
    best = {first};
    best.insert(best.end(), rest.begin(), rest.end());
    break;
  }
  return best;
}

Torus::Torus(std::vector<int> dims) : dims_(std::move(dims)), strides_(dims_.size()) {
  for (std::size_t d = dims_.size(); d-- > 0;) {
    strides_[d] = ranks_;
    ranks_ *= dims_[d];
  }
}

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
    for (int x = 0; x < a; ++x) column[static_cast<std::size_t>(x)] = x;
    std::vector<Rank> turned = wind(column, length, a);
    for (Rank& r : turned) {
      r = cycle[static_cast<std::size_t>(r / a)] + r % a * torus.stride(d);
    }
    cycle = std::move(turned);
  }
  return cycle;
}

}  // namespace rankine
