#include "algorithms/trivance_cross.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace rankine {
namespace {

using Vector = std::vector<int>;
using Cross = std::vector<Vector>;  // D vectors

// D crosses. In three dimensions x + 2y + 4z meets every residue modulo 7 on cross 0 and is 0 on
// the others, x + 4y + 2z likewise on cross 1 and 0 on cross 2, and x does on cross 2.
std::vector<Cross> crosses(std::size_t dimensions) {
  if (dimensions == 2) return {{{1, 0}, {0, 1}}, {{2, 1}, {-1, 2}}};
  if (dimensions == 3) {
    return {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
            {{2, -1, 0}, {0, 2, -1}, {-1, 0, 2}},
            {{1, 1, 1}, {2, 2, 2}, {3, 3, 3}}};
  }
  throw std::logic_error("there are crosses of 2 and 3 dimensions, not of " +
                         std::to_string(dimensions));
}

}  // namespace

std::vector<std::vector<Rank>> cross_ends(const std::vector<int>& dims) {
  const Torus torus(dims);
  const int p = 2 * torus.dimensions() + 1;
  std::vector<std::vector<Rank>> ends;
  for (int step = 1; step < dims.front(); step *= p) {
    for (const Cross& cross : crosses(dims.size())) {
      ends.emplace_back();
      for (const Vector& v : cross) {
        for (const int way : {step, -step}) {
          Rank end = 0;
          for (int d = 0; d < torus.dimensions(); ++d) {
            end += wrapped(way * at(v, d), torus.size(d)) * torus.stride(d);
          }
          ends.back().push_back(end);
        }
      }
    }
  }
  return ends;
}

Schedule trivance_cross_all_gather(const std::vector<int>& dims) {
  if (dims.size() == 1) return trivance_powers_line(dims.front());
  const int n = Torus(dims).ranks();
  auto ends = cross_ends(dims);
  std::reverse(ends.begin(), ends.end());
  Rotation rotation(dims, n, Moves::with_rank);
  std::vector<BlockSet> has;  // by round: rank 0, of as many ranks to one side as to the other
  std::vector<Rank> reached = {0};
  for (const std::vector<Rank>& round : ends) {
    std::sort(reached.begin(), reached.end());
    has.emplace_back();
    for (const Rank r : reached) has.back().list.append(r);
    std::vector<Rank> more = reached;
    for (const Rank end : round) {
      for (const Rank r : reached) more.push_back(rotation.rotated(r, end));
    }
    reached = std::move(more);
  }
  const int s = static_cast<int>(ends.size());
  const auto part = [ends = std::move(ends), has = std::move(has)](int k, Send send) {
    for (const Rank end : at(ends, k)) send(0, end, at(has, k), copy);
  };
  return everyone({n, n, s, part}, std::move(rotation));
}

}  // namespace rankine
