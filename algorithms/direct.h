// Direct: one round, everyone to everyone. In shared memory it needs no network at all; elsewhere
// it pays with N - 1 concurrent messages per rank. Stated by distance, i = 1, 2 ...: of one
// distance nobody sends or receives two (schedule/edge_colours.h).    p ranks and blocks    r rank
#pragma once

#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/everyone.h"

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
  return everyone(in_one_round(p, p, tell), Moves::with_rank);
}
inline Schedule direct_reduce_scatter(int p) { return dual(direct_all_gather(p)); }

// One-shot: everyone reads all vectors and adds them up by itself.
inline Schedule direct_all_reduce_one_shot(int p) {
  const auto add = [](int i, Send send) { send(i, 0, block(0), reduce); };
  return everyone(in_one_round(p, 1, add), Moves::nothing);
}

// Two-shot: everyone adds up one block, then hands it to all.
inline Schedule direct_all_reduce_two_shot(int p) {
  return then(named("reduce-scatter", direct_reduce_scatter(p)),
              named("all-gather", direct_all_gather(p)));
}

// Two-shot broadcast: everyone fetches one block from the root, then hands it to all others.
inline Schedule direct_broadcast_two_shot(int p, Rank root) {
  const auto fetch = [](Rank r, Send send) { send(0, r, block(r), copy); };
  const auto hand_on = [p](int i, Send send) {
    for (Rank r = 1; r < p; ++r) send(r + i, r, block(r + i), copy);
  };
  return turned(root, then(named("scatter", in_one_round(p, p, fetch)),
                           named("all-gather", in_one_round(p, p, hand_on))));
}

// Two-shot reduce: everyone adds up one block, then hands it to the root.
inline Schedule direct_reduce_two_shot(int p, Rank root) {
  const auto hand = [](Rank r, Send send) { send(r, 0, block(r), copy); };
  return turned(root, then(named("reduce-scatter", direct_reduce_scatter(p)),
                           named("gather", in_one_round(p, p, hand))));
}

// The all-reduces with the peers' vectors, or parts of one block, stored beside one's own first.
inline Schedule direct_all_reduce_one_shot_push(int p) {
  return pushed(direct_all_reduce_one_shot(p));
}
inline Schedule direct_all_reduce_two_shot_push(int p) {
  return then(named("reduce-scatter", pushed(direct_reduce_scatter(p))),
              named("all-gather", direct_all_gather(p)));
}

// Rank 0 tells everyone at once.
inline Schedule direct_broadcast(int p) {
  return in_one_round(p, 1, [](Rank r, Send send) { send(0, r, block(0), copy); });
}

// Central: all vectors to rank 0, which adds them up and sends the sum back to everyone.
inline Schedule central_all_reduce(int p) {
  return then(named("reduce", dual(direct_broadcast(p))), named("broadcast", direct_broadcast(p)));
}

// One hop from root to peer; nothing, where they are the same.
inline Schedule direct_send_recv(int p, Rank root, Rank peer) {
  return {p, 1, root == peer ? 0 : 1,
          [root, peer](int, Send send) { send(root, peer, block(0), copy); }};
}

}  // namespace rankine
