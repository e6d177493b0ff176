// Combinators: schedules from schedules. Each is a few lines and keeps the meaning of its parts;
// whoever writes an algorithm writes the part that is new and combines the rest.
//
// All arguments must agree in the number of ranks and blocks (where a combinator does not change
// them); a disagreement is a mistake in our own code and throws std::logic_error.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "algorithms/schedule/blocks.h"
#include "algorithms/schedule/schedule.h"

namespace rankine {

// First a, then b.
Schedule then(Schedule a, Schedule b);

// Several at once, round by round; the shorter ones end early. Two trees, two directions of a ring.
Schedule together(std::vector<Schedule> parts);
Schedule together(Schedule a, Schedule b);

// Time reversal: rounds run backwards, every arrow turns round, a copy becomes a reduction.
// The dual of a broadcast is a reduce, of an all-gather a reduce-scatter.
Schedule dual(Schedule a);

// An all-reduce from its second half: first the dual of `all_gather`, which leaves every rank with
// its own block of the sum, then `all_gather` itself.
Schedule reduce_scatter_then(Schedule all_gather);

// All n at once, each on its part of every block: block b becomes n * b + i for the i-th.
Schedule side_by_side(std::vector<Schedule> parts);
Schedule halves(Schedule a, Schedule b);

// The same schedule among other ranks and on other blocks of a larger one: rank r of `a` is played
// by rank(r), block b of `a` is the blocks block(b). Where `block` is empty, blocks stay.
struct Group {
  int ranks;   // of the larger schedule
  int blocks;  // of the larger schedule
  std::function<Rank(Rank)> rank;
  std::function<IndexList(Block)> block{};
};
Schedule on(Group group, Schedule a);

// on() for the common cases.
Schedule on_ranks(int ranks, std::vector<Rank> members, Schedule a);  // same blocks
Schedule on_blocks(int blocks, Block first, Schedule a);              // a's blocks, from `first` on
Schedule rooted_at(Rank root, Schedule a);  // rank 0's part is played by root, 1's by root + 1, ...

// Where every rank has blocks of its own (block b belongs to rank b, or its part of the blocks):
// the same schedule turned by so many ranks, or in a mirror that maps rank r to -r. Blocks move
// along.
Schedule turned(int by, Schedule a);
Schedule mirrored(Schedule a);

// Every block split into `parts` equal neighbours that travel together: block b becomes the blocks
// b * parts ... b * parts + parts - 1. No round changes.
Schedule refined(int parts, Schedule a);

// Segment s of every block runs through `a` on its own, `interval` rounds behind segment s - 1.
// Block b becomes `segments` neighbours, as in refined(). A round is stated segment by segment;
// where they share ports the youngest, which is to end last, may come first.
enum class Segments : unsigned char { oldest_first, youngest_first };
Schedule pipelined(Schedule a, int segments, int interval = 1,
                   Segments stated = Segments::oldest_first);

// The push form: what a rank adds up, its owners first store beside it, each on a plane of its own,
// and the rank adds it up there. A round becomes two, the second of them local. Which of two ranks
// moves the data is the executor's to say; a schedule says where data lie. Looks at every round
// once.
Schedule pushed(Schedule a);

// Without the rounds in which nothing happens. Loses phases. Looks at every round once.
Schedule packed(Schedule a);

// a's rounds as one phase of that name.
Schedule named(std::string name, Schedule a);

// A schedule without a round, e.g. of any collective among one rank.
Schedule nothing(int ranks, int blocks);

// Rewrites what a network cannot do into plain messages.

// The same schedule in one -> one messages wherever `abilities` ask for it; rounds stay, ports and
// bytes grow. A one -> many transfer becomes a message to each receiver, in their order. A
// reduction many -> one becomes a transfer of each sender, in theirs. A many -> many transfer is
// split on the sides that need it; where both do, into all pairs.
Schedule lower(Schedule schedule, Abilities abilities);

}  // namespace rankine
