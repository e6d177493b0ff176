// broadcast_of() and reduce_of() make a broadcast and a reduce from an all-gather: the transfers
// that carry the root's blocks. Each block comes to every other rank once, so it goes down a tree
// as deep as the all-gather has rounds; reversed in time it is a reduce. Trivance's "other
// Broadcast based collectives" (Juerss, Addanki & Schmid, 2026, section 8); for a circulant
// all-gather, the irregular blocks of Traff, "Optimal, Non-pipelined Reduce-scatter and Allreduce
// Algorithms", 2025, corollary 3.
//   s blocks of a rank, the broadcast's blocks
#pragma once

#include <map>
#include <stdexcept>

#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/rotation_symmetric.h"

namespace rankine {

// For an all-gather in which every rank does the same work (else std::logic_error): a transfer in
// rank 0's part with a block of another rank becomes, rotated until that rank is the root, a
// transfer of the root's block.
inline Schedule broadcast_of(const Schedule& all_gather, Rank root) {
  const RotationSymmetric* alike = symmetry_of(all_gather);
  if (alike == nullptr || alike->rotation().moves() != Moves::with_rank) {
    throw std::logic_error("broadcast_of: the all-gather's ranks do different work");
  }
  const int s = all_gather.blocks / all_gather.ranks;
  const auto round = [all = *alike, root, s](int k, Send send) {
    const Rotation& rotation = all.rotation();
    for_each_transfer(all.part(), k, [&](const Transfer& t) {
      std::map<Rank, BlockSet> of;  // by the blocks' rank
      t.what.list.for_each([&](Block b) { of[b / s].list.append(b % s); });
      for (const auto& [owner, what] : of) {
        const Rank by = rotation.rotated(root, rotation.back(owner));
        send(rotation.rotated(t.from.front(), by), rotation.rotated(t.to.front(), by), what,
             t.kind);
      }
    });
  };
  return {all_gather.ranks, s, all_gather.rounds, round, all_gather.phases};
}

inline Schedule reduce_of(const Schedule& all_gather, Rank root) {
  return dual(broadcast_of(all_gather, root));
}

}  // namespace rankine
