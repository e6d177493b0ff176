// Exchanges with one partner per round along the lines of a torus: what recursive doubling and
// Swing have in common.
//
// Each comes in two forms. The bandwidth-optimal one halves the vector from round to round, nearest
// partners first, and doubles it again on the way back; 2D of them at once, half of them mirrored,
// use all ports. The latency-optimal one exchanges the whole vector, on one port.
//   a ranks of a line, a power of two    k round of the reduce-scatter    l = log2 a
#pragma once

#include <algorithm>
#include <vector>

#include "algorithms/schedule/combine.h"
#include "algorithms/torus_turns.h"

namespace rankine {

// With whom rank r of a line exchanges in round k; an involution.
using Partner = Rank (*)(int a, Rank r, int k);

// Whose blocks rank r has when the exchanges of rounds l - 1 ... k are done (in an all-gather, the
// farthest partners first), ascending.
inline std::vector<Rank> heard_of(int a, Rank r, int k, Partner partner) {
  std::vector<Rank> out = {r};
  for (int i = floor_log2(a) - 1; i >= k; --i) {
    // Everybody in `out` has heard of its partner in round i: partners of a round are disjoint.
    const std::size_t size = out.size();
    for (std::size_t j = 0; j < size; ++j) out.push_back(partner(a, out[j], i));
  }
  std::sort(out.begin(), out.end());
  return out;
}

// The all-gather of one line; its dual halves.
inline Line halving_line(Partner partner) {
  return [partner](int a) -> Schedule {
    return {a, a, floor_log2(a), [a, partner, l = floor_log2(a)](int round, Send send) {
              const int k = l - 1 - round;
              for (Rank r : ranks(a)) {
                BlockSet what;
                for (const Rank b : heard_of(a, r, k + 1, partner)) what.list.append(Run{b, 1, 1});
                send(r, partner(a, r, k), what, copy);
              }
            }};
  };
}

// The all-reduce of one line, whole vectors in every round.
inline Line whole_line(Partner partner) {
  return [partner](int a) -> Schedule {
    return {a, 1, floor_log2(a), [a, partner](int k, Send send) {
              for (Rank r : ranks(a)) send(r, partner(a, r, k), block(0), reduce);
            }};
  };
}

inline Schedule exchange_all_gather(const std::vector<int>& dims, Partner partner) {
  const Line line = halving_line(partner);
  const Line other_way = [line](int a) { return mirrored(line(a)); };
  return torus_all_gather(dims, {line, other_way}, Turns::rotating);
}

}  // namespace rankine
