// The renderer: every round of a schedule, for a reader at a terminal.
//
// For each round: who sends what to whom, then what every rank holds, one row per rank and one
// column per block, as in the papers' traces. A cell is a partial sum, written as the set of ranks
// whose contributions it holds:
//
//   .      nothing                                0+3      the contributions of 0 and 3
//   2      rank 2's own                           0..3     of 0, 1, 2 and 3
//   all    complete: all there is to add          6..1     over the end: of 6, 7, 0 and 1 (N = 8)
//   *all   in front: written in this round        0..6/2   of every second: 0, 2, 4 and 6
//
// An arrow says who sends which block: 0 -3-> 1 copies block 3, 0 -+3-> 1 adds it, 0 <-+3-> 1 does
// so both ways, 0 =3=> 1..4 is one transfer through a switch, 1..3 -+0-> 0 are three messages. 3'
// is block 3 of scratch plane 1, -3:3'-> goes from one to the other, and "at 2: 3 += 3'" is local
// work.
//
// Scans show the sum that a rank has even where it is complete: every rank's is another one.
//
// Copying collectives show a block as held (o) or not. All-to-all, whose blocks are N x N, shows
// from whom each rank has its blocks, and which blocks it has yet to send: "source>destination".
// Rounds stand side by side as far as the width allows, and blocks that look alike throughout share
// a column. The texts are deterministic and kept as golden files.
//
// Drawing proves nothing and stops at nothing: what a wrong schedule adds twice is shown twice
// ("0+1+1"), what it reads in vain is nothing. Pure functions; may be called from any number of
// threads at once.
#pragma once

#include <string>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"

namespace rankine {

struct DrawOptions {
  bool colour = false;  // ANSI colours
  bool utf8 = false;    // lines and arrows instead of ASCII
  int width = 100;      // columns to keep to, as far as the widest row allows
  bool states = true;   // false: the transfers only
};

// Ends with a line feed. Made for N <= 16; beyond, rows get wide.
std::string draw(const Schedule& schedule, const Goal& goal, const DrawOptions& options = {});

}  // namespace rankine
