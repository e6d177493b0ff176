#include "algorithms/levels.h"

#include <algorithm>

#include "algorithms/parameters.h"

namespace rankine {

Tree level_tree(int n, Rank root, const std::vector<int>& levels) {
  std::vector<int> sizes = {1};
  for (const int size : levels) {
    if (size > sizes.back() && size < n) sizes.push_back(size);
  }
  sizes.push_back(n);
  const auto leader = [root](Rank r, int size) {
    return r / size == root / size ? root : r / size * size;
  };
  Tree out;
  const int outermost = static_cast<int>(sizes.size()) - 2;
  for (Rank r : ranks(n)) {
    int level = outermost;  // becomes the level of the largest group that r leads
    while (leader(r, at(sizes, level)) != r) --level;
    out.parent.push_back(r == root ? kNoParent : leader(r, at(sizes, level + 1)));
    out.when.push_back(r == root ? -1 : outermost - level);
  }
  return out;
}

std::optional<std::string> levels_refusal(const std::vector<int>& levels, int n) {
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const bool grows = i == 0 || (levels[i] > levels[i - 1] && levels[i] % levels[i - 1] == 0);
    if (levels[i] >= 1 && levels[i] <= n && grows) continue;
    return "levels is " + list_text(levels, ',') + "; allowed are sizes of groups from 1 to " +
           std::to_string(n) + ", each a multiple of the one before, as in 4,16";
  }
  return std::nullopt;
}

int middle_divisor(int n) {
  int divisor = 1;
  for (int d = 2; d <= n / d; ++d) {
    if (n % d == 0) divisor = d;
  }
  return divisor;
}

}  // namespace rankine
