#include "algorithms/held.h"

#include <algorithm>

#include "algorithms/schedule/everyone.h"

namespace rankine {
namespace {

// Sorted indices, as few runs.
IndexList runs_of(const std::vector<int>& sorted) {
  IndexList out;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    const int stride = end < sorted.size() ? sorted[end] - sorted[i] : 1;
    while (end < sorted.size() && sorted[end] - sorted[end - 1] == stride) ++end;
    out.append(Run{sorted[i], static_cast<int>(end - i), stride});
    i = end;
  }
  return out;
}

}  // namespace

std::map<int, Held> held_before(const Schedule& line, const std::vector<int>& rounds_asked) {
  std::map<int, Held> out;
  if (rounds_asked.empty()) return out;
  const Everyone* all = everyone_in(line);
  const Schedule& stated = all != nullptr ? all->part() : line;
  const auto a = static_cast<std::size_t>(line.ranks);
  std::vector<std::vector<char>> has(all != nullptr ? 1 : a, std::vector<char>(a, 0));
  for (std::size_t c = 0; c < has.size(); ++c) has[c][c] = 1;
  for (int k = 0; k <= line.rounds; ++k) {
    if (std::find(rounds_asked.begin(), rounds_asked.end(), k) != rounds_asked.end()) {
      Held& held = out[k];
      for (const auto& blocks : has) {
        std::vector<int> sorted;
        for (std::size_t b = 0; b < a; ++b) {
          if (blocks[b] != 0) sorted.push_back(static_cast<int>(b));
        }
        held.push_back(runs_of(sorted));
      }
    }
    if (k == line.rounds) break;
    for_each_transfer(stated, k, [&](const Transfer& t) {
      const Rank to = t.to.front();
      auto& receiver = has[all != nullptr ? 0 : static_cast<std::size_t>(to)];
      const IndexList where = all != nullptr
                                  ? all->rotation().rotated(t.where.list, all->rotation().back(to))
                                  : t.where.list;
      where.for_each([&](Block b) { receiver[static_cast<std::size_t>(b)] = 1; });
    });
  }
  return out;
}

}  // namespace rankine
