// The chain (pipelined ring broadcast): the root's vector is handed from neighbour to neighbour, in
// segments that follow one another one round apart.
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

inline Schedule chain_reduce(int p, Rank root, int s) { return dual(chain_broadcast(p, root, s)); }

}  // namespace rankine
