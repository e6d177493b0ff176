#include "algorithms/held.h"

#include <algorithm>

#include "algorithms/schedule/everyone.h"

namespace rankine {
namespace {

// The indices that are marked, as few runs.
IndexList runs_of(const std::vector<char>& marked) {
  std::vector<int> sorted;
  for (int i = 0; i < static_cast<int>(marked.size()); ++i) {
    if (at(marked, i) != 0) sorted.push_back(i);
  }
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

// Dimensions from d on; `base` is what the coordinates before d come to.
void append_product(const Torus& torus, const std::vector<const Held*>& others,
                    const IndexList& what, Rank r, int d, int base, IndexList& out) {
  const Held* held = at(others, d);
  const IndexList& list = held == nullptr ? what : at(*held, torus.coordinate(r, d));
  if (d + 1 == torus.dimensions()) {
    for (int i = 0; i < list.runs(); ++i) {
      out.append(Run{base + list.run(i).first, list.run(i).count, list.run(i).stride});
    }
  } else {
    list.for_each([&](int x) {
      append_product(torus, others, what, r, d + 1, base + x * torus.stride(d), out);
    });
  }
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
      for (const auto& marked : has) out[k].push_back(runs_of(marked));
    }
    if (k == line.rounds) break;
    for_each_transfer(stated, k, [&](const Transfer& t) {
      const Rank to = t.to.front();
      auto& receiver = at(has, all != nullptr ? 0 : to);
      const IndexList where = all != nullptr
                                  ? all->rotation().rotated(t.where.list, all->rotation().back(to))
                                  : t.where.list;
      where.for_each([&](Block b) { at(receiver, b) = 1; });
    });
  }
  return out;
}

IndexList held_product(const Torus& torus, const std::vector<const Held*>& others,
                       const IndexList& what, Rank r) {
  IndexList out;
  append_product(torus, others, what, r, 0, 0, out);
  return out;
}

}  // namespace rankine
