// Direct algorithms send from all ranks to all ranks in one round. In shared memory this needs no
// network at all; on a network it costs N - 1 concurrent messages per rank. Messages are stated by
// distance, i = 1, 2 ...: no rank sends or receives two of one distance (schedule/stating_order.h).
// All-to-alls follow.
//   p ranks and blocks    r rank
#pragma once

#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/rotation_symmetric.h"

namespace rankine {

// tell(i, send) for every i from 1 to p - 1: a peer, or a distance.
template <class Tell>
Schedule in_one_round(int p, int blocks, const Tell& tell) {
  return {p, blocks, p > 1 ? 1 : 0, [p, tell](int, Send send) {
            for (int i = 1; i < p; ++i) tell(i, send);
          }};
}

inline Schedule direct_all_gather(int p) {
  const auto tell = [](Rank r, Send send) { send(0, r, block(0), copy); };
  return rotation_symmetric(in_one_round(p, p, tell), Moves::with_rank);
}
inline Schedule direct_reduce_scatter(int p) { return dual(direct_all_gather(p)); }

// One-shot: every rank reads all vectors and adds them up.
inline Schedule direct_all_reduce_one_shot(int p) {
  const auto add = [](int i, Send send) { send(i, 0, block(0), reduce); };
  return rotation_symmetric(in_one_round(p, 1, add), Moves::nothing);
}

// Two-shot: every rank adds up one block, then sends it to all.
inline Schedule direct_all_reduce_two_shot(int p) {
  return then(named("reduce-scatter", direct_reduce_scatter(p)),
              named("all-gather", direct_all_gather(p)));
}

// Two-shot broadcast: every rank fetches one block from the root, then sends it to all others.
inline Schedule direct_broadcast_two_shot(int p, Rank root) {
  const auto fetch = [](Rank r, Send send) { send(0, r, block(r), copy); };
  const auto hand_on = [p](int i, Send send) {
    for (Rank r = 1; r < p; ++r) send(r + i, r, block(r + i), copy);
  };
  return turned(root, then(named("scatter", in_one_round(p, p, fetch)),
                           named("all-gather", in_one_round(p, p, hand_on))));
}

// Two-shot reduce: every rank adds up one block, then sends it to the root.
inline Schedule direct_reduce_two_shot(int p, Rank root) {
  const auto hand = [](Rank r, Send send) { send(r, 0, block(r), copy); };
  return turned(root, then(named("reduce-scatter", direct_reduce_scatter(p)),
                           named("gather", in_one_round(p, p, hand))));
}

// The all-reduces that first store the peers' vectors, or parts of one block, beside the rank's
// own.
inline Schedule direct_all_reduce_one_shot_push(int p) {
  return pushed(direct_all_reduce_one_shot(p));
}
inline Schedule direct_all_reduce_two_shot_push(int p) {
  return then(named("reduce-scatter", pushed(direct_reduce_scatter(p))),
              named("all-gather", direct_all_gather(p)));
}

// Rank 0 sends to all ranks at once.
inline Schedule direct_broadcast(int p) {
  return in_one_round(p, 1, [](Rank r, Send send) { send(0, r, block(0), copy); });
}

// Central: all vectors to rank 0, which adds them up and sends the sum back to all ranks.
inline Schedule central_all_reduce(int p) {
  return then(named("reduce", dual(direct_broadcast(p))), named("broadcast", direct_broadcast(p)));
}

// One hop from root to peer; nothing if they are equal.
inline Schedule direct_send_recv(int p, Rank root, Rank peer) {
  return {p, 1, root == peer ? 0 : 1,
          [root, peer](int, Send send) { send(root, peer, block(0), copy); }};
}

// All-to-all: the block from s to d has number s * p + d everywhere. Pairwise exchange: Thakur,
// Rabenseifner & Gropp, IJHPCA 19(1), 2005. The ring: Lu, "Collective Algorithms", 2026, 7.1. The
// code states rank 0's part (schedule/rotation_symmetric.h).
//   p ranks    k round    w the way from a block's source to its destination, modulo p

inline Block pair_of(int p, Rank source, Rank destination) {
  return wrapped(source, p) * p + wrapped(destination, p);
}

inline Schedule direct_all_to_all(int p) {
  return rotation_symmetric({p, p * p, p > 1 ? 1 : 0,
                             [p](int, Send send) {
                               for (int w = 1; w < p; ++w)
                                 send(0, w, block(pair_of(p, 0, w)), copy);
                             }},
                            Moves::with_pair);
}

// Pairwise direct send with staggered partners: round k serves distance k + 1, so that every rank
// sends one message and receives one.
inline Schedule pairwise_all_to_all(int p) {
  return rotation_symmetric({p, p * p, p - 1,
                             [p](int k, Send send) {
                               const int w = k + 1;
                               send(0, w, block(pair_of(p, 0, w)), copy);
                             }},
                            Moves::with_pair);
}

// The ring relay, every block the shorter way: round k passes on, in one message each way, all
// blocks with more than k hops to go. At even p, blocks for the rank straight across are split into
// halves, one for each direction.
//   u parts of a block    h the farthest way of blocks that are not split
inline Schedule ring_all_to_all(int p) {
  const int u = p % 2 == 0 ? 2 : 1, h = (p - 1) / 2;
  return rotation_symmetric(
      {p, u * p * p, p / 2,
       [p, u, h](int k, Send send) {
         for (int side : {1, -1}) {
           BlockSet moving;
           for (int w = k + 1; w <= p / 2; ++w) {
             const Block b = u * pair_of(p, -side * k, side * (w - k));
             moving.list.append(w <= h ? Run{b, u, 1} : Run{b + (side < 0), 1, 1});
           }
           send(0, side, moving, copy);
         }
       }},
      Moves::with_pair);
}

// The ring relay as textbooks trace it: one block at a time, first those with one hop to go, then
// those with two ...; the block for the rank straight across goes to the right.
inline Schedule ring_relay_all_to_all(int p) {
  const int right = p / 2, left = (p - 1) / 2;  // the farthest way in either direction
  return rotation_symmetric({p, p * p, right * (right + 1) / 2,
                             [p, left](int k, Send send) {
                               int w = 1;  // round k is the hop number k of the blocks with w hops
                               for (; k >= w; ++w) k -= w;
                               send(0, 1, block(pair_of(p, -k, w - k)), copy);
                               if (w <= left) send(0, -1, block(pair_of(p, k, k - w)), copy);
                             }},
                            Moves::with_pair);
}

}  // namespace rankine
