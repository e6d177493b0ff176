// In a ring algorithm every rank passes one block to the right-hand neighbour in every round.
// Neighbour exchange, the double ring barrier and the chain follow. Patarasuk & Yuan, "Bandwidth
// optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009.
//   p ranks and blocks    k round    The code states rank 0's part (schedule/rotation_symmetric.h).
#pragma once

#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/rotation_symmetric.h"

namespace rankine {

// Round k: a rank passes on the block that it received in round k - 1, its own one at first.
inline Schedule ring_all_gather(int p) {
  return rotation_symmetric({p, p, p - 1, [](int k, Send send) { send(0, 1, block(-k), copy); }},
                            Moves::with_rank);
}

// Both directions, each with one half of every block: as many rounds of half the size.
inline Schedule ring_mirrored_all_gather(int p) {
  return halves(ring_all_gather(p), mirrored(ring_all_gather(p)));
}

// Both directions, every block the shorter way: half of the rounds. At even p, the block from the
// rank straight across is split: either direction brings one half. All to the right, then all to
// the left, so that ports do not wait for one another if there is only one.
//   s parts of a block    h rounds in which whole blocks arrive from both sides
inline Schedule ring_shortest_all_gather(int p) {
  const int s = p % 2 == 0 ? 2 : 1, h = (p - 1) / 2;
  return rotation_symmetric({p, s * p, p / 2,
                             [s, h](int k, Send send) {
                               send(0, 1, k < h ? blocks(-s * k, s) : block(-s * k), copy);
                               send(0, -1, k < h ? blocks(s * k, s) : block(s * k + 1), copy);
                             }},
                            Moves::with_rank);
}

// Reversed in time, the ring turns left, and rank r ends with block r, as the contract asks (the
// textbooks' version that turns right leaves it with block r + 1).
inline Schedule ring_reduce_scatter(int p) { return dual(ring_all_gather(p)); }
inline Schedule ring_mirrored_reduce_scatter(int p) { return dual(ring_mirrored_all_gather(p)); }
inline Schedule ring_shortest_reduce_scatter(int p) { return dual(ring_shortest_all_gather(p)); }

inline Schedule ring_all_reduce(int p) { return reduce_scatter_then(ring_all_gather(p)); }
inline Schedule ring_mirrored_all_reduce(int p) {
  return reduce_scatter_then(ring_mirrored_all_gather(p));
}
inline Schedule ring_shortest_all_reduce(int p) {
  return reduce_scatter_then(ring_shortest_all_gather(p));
}

// Neighbour exchange: an all-gather of p / 2 rounds in which every rank exchanges with its left and
// its right neighbour in turn, two blocks at a time. Chen, Zhang, Zhang & Yuan, "Performance
// evaluation of allgather algorithms on terascale Linux cluster with fast Ethernet", HPC Asia 2005;
// Open MPI (coll/base), which takes a ring for odd p, and so does this.
//   p ranks    r rank    k round    pair c: ranks 2c and 2c + 1

// Rank r receives the blocks of this pair in round k; k = 0 gives its own pair, and it had one of
// these blocks already. Pairs come from both sides in turn, each time from farther away.
constexpr int pair_received(Rank r, int k) {
  const int way = k % 2 == 0 ? k / 2 : -(k + 1) / 2;
  return r / 2 + (r % 2 == 0 ? way : -way);
}

inline Schedule neighbour_exchange_all_gather(int p) {
  if (p % 2 == 1) return ring_all_gather(p);
  return {p, p, p / 2, [p](int k, Send send) {
            for (Rank r : ranks(p)) {
              const Rank partner = (r + k) % 2 == 0 ? r + 1 : r - 1;
              send(r, partner, k == 0 ? block(r) : blocks(2 * pair_received(r, k - 1), 2), copy);
            }
          }};
}

// The double ring barrier: a token goes round twice. After the first time round the last rank knows
// that all have come; the second time round tells the others. Open MPI (coll/base, barrier
// double_ring).
//   p ranks    k round

inline Schedule double_ring_barrier(int p) {
  return {p, 1, 2 * (p - 1), [](int k, Send send) { send(k, k + 1, block(0), reduce); }};
}

// The chain (pipelined ring broadcast): the root's vector is passed from neighbour to neighbour, in
// segments that follow one another one round apart. Patarasuk & Yuan, JPDC 69(2), 2009.
//   p ranks    s segments    round k moves segment k - r from rank r to r + 1

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

// Each rank's own block, the farthest first, so that all arrive at the end: round k passes the
// block of rank p - 1 - k + r from r to r + 1, if that is its way.
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
