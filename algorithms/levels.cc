#include "algorithms/levels.h"

#include <algorithm>

#include "algorithms/list_text.h"

namespace rankine {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

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
    int level = outermost;  // of the largest group below all that r leads
    while (leader(r, sizes[at(level)]) != r) --level;
    out.parent.push_back(r == root ? kNoParent : leader(r, sizes[at(level + 1)]));
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

int most_children(const Tree& tree, int rounds) {
  std::vector<std::vector<int>> told(tree.parent.size(),
                                     std::vector<int>(at(std::max(1, tree.rounds())), 0));
  for (Rank r : ranks(tree.ranks())) {
    if (tree.parent_of(r) != kNoParent) ++told[at(tree.parent_of(r))][at(tree.when_of(r))];
  }
  int most = 0;
  for (const std::vector<int>& by_round : told) {
    for (std::size_t first = 0; first < by_round.size(); ++first) {
      int sum = 0;
      for (std::size_t k = first; k < by_round.size() && k < first + at(rounds); ++k) {
        sum += by_round[k];
      }
      most = std::max(most, sum);
    }
  }
  return most;
}

int most_neighbours(const Tree& tree) {
  std::vector<int> neighbours(tree.parent.size(), 0);
  for (Rank r : ranks(tree.ranks())) {
    if (tree.parent_of(r) == kNoParent) continue;
    ++neighbours[at(r)];
    ++neighbours[at(tree.parent_of(r))];
  }
  return *std::max_element(neighbours.begin(), neighbours.end());
}

}  // namespace rankine
