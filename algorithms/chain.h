// The chain (pipelined ring broadcast): the root's vector is handed from neighbour to neighbour, in
// segments that follow one another one round apart.
// Patarasuk & Yuan, JPDC 69(2), 2009.
//   p ranks    s segments    round k moves segment k - r from rank r to r + 1
#pragma once

#include "algorithms/schedule/combine.h"

namespace rankine {

// One vector down the chain 0 -> 1 -> ... -> p - 1.
inline Schedule chain_hops(int p) {
  return {p, 1, p - 1, [](int k, Send send) { send(k, k + 1, block(0), copy); }};
}

inline Schedule chain_broadcast(int p, Rank root, int s) {
  return rooted_at(root, pipelined(chain_hops(p), s));
}

// Reversed before it is cut into segments, so that segment 0 is first here too.
inline Schedule chain_reduce(int p, Rank root, int s) {
  return rooted_at(root, pipelined(dual(chain_hops(p)), s));
}

inline Schedule chain_all_reduce(int p, int s) {
  return then(named("reduce", chain_reduce(p, 0, s)), named("broadcast", chain_broadcast(p, 0, s)));
}

// Everyone's own block, the farthest first, so that all arrive at the end: round k hands the block
// of rank p - 1 - k + r from r to r + 1, if that is its way.
inline Schedule chain_scatter(int p, Rank root) {
  return turned(root, {p, p, p - 1, [p](int k, Send send) {
                         for (Rank r = 0; r <= k && r < p - 1; ++r) {
                           const Block b = p - 1 - k + r;
                           if (b > r && b < p) send(r, r + 1, block(b), copy);
                         }
                       }});
}

inline Schedule chain_gather(int p, Rank root) { return dual(chain_scatter(p, root)); }

}  // namespace rankine
