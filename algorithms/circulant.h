// Circulant: in round k everyone sends to the rank skip(k) further on, for any p.
// Traff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", 2024/2025.
//   p ranks    r rank    k round    i distance: R[i] of rank r is about block r + i
//   c: skips, and which R[i] travel in which round (skips.h)
// The paper copies blocks into R, rotated by r, and back. Here blocks keep their number wherever
// they are: R[i] is block r + i, and nothing is copied.
#pragma once

#include <memory>

#include "algorithms/all_to_all.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/skips.h"

namespace rankine {

using SharedRounds = std::shared_ptr<const CirculantRounds>;

// Algorithm 1.
inline Schedule circulant_reduce_scatter(const SharedRounds& c) {
  return {c->ranks(), c->ranks(), c->rounds(), [c](int k, Send send) {
            for (Rank r : ranks(c->ranks())) {
              BlockSet moving;
              for (int n = 0; n < c->sent(k).runs(); ++n) {
                const Run i = c->sent(k).run(n);
                moving.list.append(Run{r + i.first, i.count, i.stride});
              }
              send(r, r + c->skip(k), moving, reduce);
            }
          }};
}

// The second half of Algorithm 2: the skips in reverse.
inline Schedule circulant_all_gather(const SharedRounds& c) {
  return dual(circulant_reduce_scatter(c));
}

// Algorithm 2.
inline Schedule circulant_all_reduce(const SharedRounds& c) {
  return reduce_scatter_then(circulant_all_gather(c));
}

// Algorithm 1 with concatenation for the sum: R[i] is all the blocks for rank r + i that have come
// this far, each from where it has `gone` from.
inline Schedule circulant_all_to_all(const SharedRounds& c) {
  const int p = c->ranks();
  return {p, p * p, c->rounds(), [c, p, ways = c->ways()](int k, Send send) {
            for (Rank r : ranks(p)) {
              BlockSet moving;
              for (const auto& [gone, left] : ways[static_cast<std::size_t>(k)]) {
                moving.list.append(pair_of(p, r - gone, r + left));
              }
              send(r, r + c->skip(k), moving, copy);
            }
          }};
}

// What the all-to-all does with the blocks of one rank, the root.
inline Schedule circulant_scatter(const SharedRounds& c, Rank root) {
  const int p = c->ranks();
  return turned(root, {p, p, c->rounds(), [c, p, ways = c->ways()](int k, Send send) {
                         std::vector<BlockSet> moving(static_cast<std::size_t>(p));
                         for (const auto& [gone, left] : ways[static_cast<std::size_t>(k)]) {
                           moving[static_cast<std::size_t>(gone)].list.append(gone + left);
                         }
                         for (Rank r : ranks(p)) {
                           const BlockSet& below = moving[static_cast<std::size_t>(r)];
                           if (!below.list.empty()) send(r, r + c->skip(k), below, copy);
                         }
                       }});
}

inline Schedule circulant_gather(const SharedRounds& c, Rank root) {
  return dual(circulant_scatter(c, root));
}

// The extreme case of irregular blocks (corollary 3): all of the vector is the root's block, and
// R[i] is that block at the rank i before the root.
inline Schedule circulant_reduce(const SharedRounds& c, Rank root) {
  return rooted_at(root,
                   {c->ranks(), 1, c->rounds(), [c](int k, Send send) {
                      c->sent(k).for_each([&](int i) { send(-i, -c->next(i), block(0), reduce); });
                    }});
}

inline Schedule circulant_broadcast(const SharedRounds& c, Rank root) {
  return dual(circulant_reduce(c, root));
}

}  // namespace rankine
