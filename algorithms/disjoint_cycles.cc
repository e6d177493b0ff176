#include "algorithms/disjoint_cycles.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace rankine {
namespace {

// What is left of a torus of two dimensions without the edges of a Hamiltonian cycle, walked from
// rank 0 on: two neighbours of everybody.
std::vector<Rank> rest_of(const Torus& torus, const std::vector<Rank>& cycle) {
  std::set<std::pair<Rank, Rank>> used;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const Rank a = cycle[i], b = cycle[(i + 1) % cycle.size()];
    used.insert({a, b});
    used.insert({b, a});
  }
  const auto neighbours = [&torus](Rank r) {
    std::array<Rank, 4> out{};
    for (int d = 0; d < 2; ++d) {
      const int a = torus.size(d), x = torus.coordinate(r, d), stride = torus.stride(d);
      out[static_cast<std::size_t>(2 * d)] = r + ((x + 1) % a - x) * stride;
      out[static_cast<std::size_t>(2 * d) + 1] = r + ((x + a - 1) % a - x) * stride;
    }
    return out;
  };
  std::vector<Rank> walk = {0};
  for (Rank before = -1; walk.size() < cycle.size();) {
    const Rank here = walk.back();
    const auto all = neighbours(here);
    const auto next = std::find_if(all.begin(), all.end(), [&](Rank r) {
      return r != before && !used.contains({here, r});
    });
    before = here;
    walk.push_back(*next);
  }
  return walk;
}

}  // namespace

std::vector<std::vector<Rank>> disjoint_cycles(const std::vector<int>& dims) {
  if (dims.size() == 1) return {hamiltonian_cycle(dims)};
  const Torus torus(dims);
  // The longer dimension's ranks are rows, each walked once round from where the one before ended:
  // as many as there are columns but one shift the next row one way, the others in turn, so that
  // the last one ends where the first one began.
  const int rows = torus.size(0) >= torus.size(1) ? 0 : 1, columns = 1 - rows;
  const int a = torus.size(columns);
  std::vector<Rank> cycle;
  for (int row = 0, column = 0; row < torus.size(rows); ++row) {
    const bool up = row < a - 1 || (row - a + 1) % 2 == 0;
    for (int x = 0; x < a; ++x) {
      const int at = ((column + (up ? x : -x)) % a + a) % a;
      cycle.push_back(row * torus.stride(rows) + at * torus.stride(columns));
    }
    column = ((column + (up ? -1 : 1)) % a + a) % a;
  }
  return {cycle, rest_of(torus, cycle)};
}

}  // namespace rankine
