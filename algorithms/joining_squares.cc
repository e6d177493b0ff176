#include "algorithms/joining_squares.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rankine {
namespace {

// The cycle's vertices by their numbers along another one.
std::vector<int> numbered(const Cycle& cycle, const Cycle& along) {
  std::vector<std::pair<Rank, int>> places;
  for (const Rank r : along) places.emplace_back(r, static_cast<int>(places.size()));
  std::sort(places.begin(), places.end());
  std::vector<int> out;
  for (const Rank r : cycle) {
    out.push_back(std::lower_bound(places.begin(), places.end(), std::pair(r, 0))->second);
  }
  return out;
}

}  // namespace

JoiningSquares::JoiningSquares(Cycle& first, const Cycle& other, bool even)
    : m(static_cast<int>(first.size())), last(2 - m % 2), aside(1 + m % 2) {
  for (int begin = 0; begin < m; ++begin) {
    second = numbered(other, first);
    place_ = numbered(first, other);
    for (const int x : beside(m - 1)) {
      u = even ? x : m - 1;
      w = even ? m - 1 : x;
      if (find_tie() && (!even || find_alike())) return;
    }
    std::rotate(first.begin(), first.begin() + 1, first.end());
  }
  throw std::logic_error("disjoint_cycles: no squares join three cycles");
}

std::array<int, 2> JoiningSquares::beside(int x) const {
  const int i = at(place_, x);
  return {at(second, wrapped(i - 1, m)), at(second, wrapped(i + 1, m))};
}

// s and t: away from 0 1 2, and so is what is beyond them.
bool JoiningSquares::find_tie() {
  for (s = 3; s < m; ++s) {
    if (!apart(s)) continue;
    for (const int to : beside(s)) {
      t = to;
      beyond = beside(t)[0] == s ? beside(t)[1] : beside(t)[0];
      if (!apart(t) && t >= 3 && beyond >= 3) return true;
    }
  }
  return false;
}

bool JoiningSquares::find_alike() {
  const auto leaves = [this](int x) { return over(x) && level(x) == last; };
  for (p = 0; p < m; ++p) {
    for (const int to : beside(p)) {
      q = to;
      if (leaves(p) && leaves(q)) return true;
    }
  }
  return false;
}

}  // namespace rankine
