// In the network: a switch that copies one message to many (multicast), adds up messages from many
// (ALU), or both at once. NVLink SHARP (NVLS), InfiniBand SHARP; Graham et al., "Scalable
// hierarchical aggregation protocol (SHArP)", COMHPC 2016.
//   p ranks    r rank
#pragma once

#include "algorithms/schedule/combine.h"
#include "algorithms/tree.h"

namespace rankine {

inline Schedule switch_broadcast(int p, Rank root) {
  return {p, 1, p > 1 ? 1 : 0,
          [p, root](int, Send send) { send(root, ranks_from(root + 1, p - 1), block(0), copy); }};
}

inline Schedule switch_reduce(int p, Rank root) { return dual(switch_broadcast(p, root)); }

inline Schedule switch_all_gather(int p) {
  return {p, p, p > 1 ? 1 : 0, [p](int, Send send) {
            for (Rank r : ranks(p)) send(r, ranks_from(r + 1, p - 1), block(r), copy);
          }};
}

inline Schedule switch_reduce_scatter(int p) { return dual(switch_all_gather(p)); }

// Everyone's vector meets in the switch, and the sum comes back to everyone beside its own vector
// (plane 1), from where it is taken over: the second round is local.
inline Schedule switch_all_reduce(int p) {
  Schedule out{p, 1, p > 1 ? 2 : 0, [p](int k, Send send) {
                 if (k == 0) {
                   send(ranks_from(0, p), ranks_from(0, p), block(0), block(0, 1), reduce);
                 } else {
                   for (Rank r : ranks(p)) send(r, r, block(0, 1), block(0), copy);
                 }
               }};
  out.planes = 2;
  return out;
}

// Where the switch copies and does not add, as PCIe's (Lu, "Collective Algorithms", 2026, 3.3): the
// sum is rank 0's by messages, up a binomial tree, and everyone's by one multicast.
inline Schedule tree_reduce_then_multicast(int p) {
  return then(named("reduce", tree_reduce(knomial_far(p, 2), 0, 1)),
              named("broadcast", switch_broadcast(p, 0)));
}

}  // namespace rankine
