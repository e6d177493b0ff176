#include "algorithms/torus.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "algorithms/parameters.h"

namespace rankine {

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
      return "dims is " + dims_text(dims) + "; allowed are sizes from 2";
    }
    product *= size;
    if (product > ranks) break;
  }
  if (product == ranks) return std::nullopt;
  return "dims is " + dims_text(dims) +
         "; allowed are sizes whose product is the number of ranks, " + std::to_string(ranks);
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

}  // namespace rankine
