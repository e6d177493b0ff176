// Circulant: in round k everyone sends to the rank skip(k) further on, for any p.
// Traff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", 2024/2025.
//   p ranks    k round    i distance: R[i] of rank 0, whose part is stated, is about block i
//   c: skips, and which R[i] travel in which round (circulant_rounds.h)
// The paper copies blocks into R, rotated by its rank r, and back. Here R[i] is block r + i.
#pragma once

#include <map>
#include <memory>

#include "algorithms/all_to_all.h"
#include "algorithms/circulant_rounds.h"
#include "algorithms/one_block.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/everyone.h"

namespace rankine {

using SharedRounds = std::shared_ptr<const CirculantRounds>;

// Algorithm 1.
inline Schedule circulant_reduce_scatter(const SharedRounds& c) {
  return everyone({c->ranks(), c->ranks(), c->rounds(),
                   [c](int k, Send send) { send(0, c->skip(k), BlockSet{c->sent(k)}, reduce); }},
                  Moves::with_rank);
}

// The second half of Algorithm 2: the skips in reverse.
inline Schedule circulant_all_gather(const SharedRounds& c) {
  return dual(circulant_reduce_scatter(c));
}

// Algorithm 2.
inline Schedule circulant_all_reduce(const SharedRounds& c) {
  return reduce_scatter_then(circulant_all_gather(c));
}

// Algorithm 1 with concatenation for the sum: R[i] is all the blocks for rank i that have come this
// far, each from where it has `gone` from.
inline Schedule circulant_all_to_all(const SharedRounds& c) {
  const int p = c->ranks();
  return everyone({p, p * p, c->rounds(),
                   [c, p, ways = c->ways()](int k, Send send) {
                     BlockSet moving;
                     for (const auto& [gone, left] : at(ways, k)) {
                       moving.list.append(pair_of(p, -gone, left));
                     }
                     send(0, c->skip(k), moving, copy);
                   }},
                  Moves::with_pair);
}

// What the all-to-all does with the blocks of one rank, the root.
inline Schedule circulant_scatter(const SharedRounds& c, Rank root) {
  const auto round = [c, ways = c->ways()](int k, Send send) {
    std::map<Rank, BlockSet> moving;
    for (const auto& [gone, left] : at(ways, k)) moving[gone].list.append(gone + left);
    for (const auto& [r, below] : moving) send(r, r + c->skip(k), below, copy);
  };
  return turned(root, {c->ranks(), c->ranks(), c->rounds(), round});
}

inline Schedule circulant_gather(const SharedRounds& c, Rank root) {
  return dual(circulant_scatter(c, root));
}

// The extreme case of irregular blocks (corollary 3): all of the vector is the root's block.
inline Schedule circulant_broadcast(const SharedRounds& c, Rank root) {
  return broadcast_of(circulant_all_gather(c), root);
}

inline Schedule circulant_reduce(const SharedRounds& c, Rank root) {
  return reduce_of(circulant_all_gather(c), root);
}

}  // namespace rankine
