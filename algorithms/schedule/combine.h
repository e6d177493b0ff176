// Combinators make schedules from schedules. Each is a few lines and preserves the meaning of its
// parts; an algorithm states its new part and combines the rest.
//
// All arguments must agree in the number of ranks and blocks (unless a combinator changes them); a
// disagreement is a bug of the caller and throws std::logic_error.
#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/schedule/blocks.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/schedule/schedule.h"

namespace rankine {

// First a, then b.
Schedule then(Schedule a, Schedule b);

// Several at once, round by round; the shorter ones end early. Two trees, two directions of a ring.
Schedule together(std::vector<Schedule> parts);
Schedule together(Schedule a, Schedule b);

// Time reversal: rounds run backwards, every arrow is reversed, a copy becomes a reduction. The
// dual of a broadcast is a reduce, the dual of an all-gather a reduce-scatter.
Schedule dual(Schedule a);

// An all-reduce from its second half: first the dual of `all_gather`, which leaves every rank with
// its own block of the sum, then `all_gather` itself.
Schedule reduce_scatter_then(Schedule all_gather);

// All n at once, each on one part of every block: block b becomes n * b + i for the i-th.
Schedule side_by_side(std::vector<Schedule> parts);
Schedule halves(Schedule a, Schedule b);

// Places a schedule among the ranks and blocks of a larger one: rank r of `a` becomes rank(r),
// block b of `a` becomes the blocks block(b). If `block` is empty, blocks stay.
struct Group {
  int ranks;   // the larger schedule's
  int blocks;  // the larger schedule's
  std::function<Rank(Rank)> rank;
  std::function<IndexList(Block)> block{};
};
Schedule on(Group group, Schedule a);

// on() for the common cases.
Schedule on_blocks(int blocks, Block first, Schedule a);  // a's blocks, from `first` on
// root takes the part of rank 0, root + 1 that of rank 1, ...
Schedule rooted_at(Rank root, Schedule a);

// For schedules in which block b belongs to rank b (or a rank's part of the blocks to it): the
// schedule rotated by `by` ranks, or mirrored so that rank r becomes -r. Blocks move along.
Schedule turned(int by, Schedule a);
Schedule mirrored(Schedule a);

// Every block split into `parts` equal neighbours that travel together: block b becomes the blocks
// b * parts ... b * parts + parts - 1. Rounds stay.
Schedule refined(int parts, Schedule a);

// Segment s of every block runs through `a` separately, `interval` rounds behind segment s - 1.
// Block b becomes `segments` neighbours, as in refined(). A round is stated segment by segment; if
// segments share ports, the youngest, which ends last, may be stated first.
enum class Segments : unsigned char { oldest_first, youngest_first };
Schedule pipelined(Schedule a, int segments, int interval = 1,
                   Segments stated = Segments::oldest_first);

// The push form: senders store their data beside the receiver's block, each on a separate plane,
// and the receiver adds them there. A round becomes two, the second of them local. The executor
// decides which of two ranks moves the data; a schedule only says where data lie. Visits every
// round once.
Schedule pushed(Schedule a);

// Removes the rounds without transfers. Loses phases. Visits every round once.
Schedule packed(Schedule a);

// a's rounds as one phase of that name.
Schedule named(std::string name, Schedule a);

// A schedule without rounds, for example of any collective among one rank.
Schedule nothing(int ranks, int blocks);

// Replaces transfers that a network cannot do (`abilities`) by one -> one messages; rounds stay,
// ports and bytes grow. A one -> many transfer becomes a message to each receiver, in their order.
// A many -> one reduction becomes a transfer of each sender, in their order. A many -> many
// transfer is split on the sides that need it; if both do, into all pairs.
Schedule lower(Schedule schedule, Abilities abilities);

// broadcast_of() and reduce_of() make a broadcast and a reduce from an all-gather: the transfers
// that carry the root's blocks. Each block comes to every other rank once, so it goes down a tree
// as deep as the all-gather has rounds; reversed in time it is a reduce. Trivance's "other
// Broadcast based collectives" (Juerss, Addanki & Schmid, 2026, section 8); for a circulant
// all-gather, the irregular blocks of Traff, "Optimal, Non-pipelined Reduce-scatter and Allreduce
// Algorithms", 2025, corollary 3.
//   s blocks of a rank, the broadcast's blocks

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
