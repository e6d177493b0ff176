// A schedule, round by round, as machines and drawings show it: who sends what to whom, and what
// every rank holds then.
//
// This proves nothing and stops at nothing: what a wrong schedule adds twice is there twice, what
// it reads in vain is nothing. Pure functions; may be called from any number of threads at once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"

namespace rankine {

struct TransferView {
  std::vector<Rank> from, to;
  std::vector<Block> what, where;
  int what_plane = 0, where_plane = 0;
  Act act = Act::copy;
};

// One place that holds something.
struct HoldingView {
  Block block = 0;
  int plane = 0;
  std::vector<Rank> contributions;  // ascending; a rank twice where it was added twice
  bool complete = false;            // exactly the contributions that a rank must hear (heard_by)
  bool needed = false;              // the goal asks for it here
  bool written = false;             // in this round
};

struct RoundView {
  int round = -1;                               // -1: before the first
  std::string phase;                            // its name, or empty
  std::vector<TransferView> transfers;          // in the order stated
  std::vector<std::vector<HoldingView>> ranks;  // after the round; by plane, then block, ascending
};

// What is there at first, then one view per round.
std::vector<RoundView> view_rounds(const Schedule& schedule, const Goal& goal);

// Whether all that it names exists in the schedule: what does not is shown and does nothing.
bool is_playable(const Schedule& schedule, const TransferView& t);

// The words of a drawing (draw.h): signs, and sets of ranks and blocks as short texts.

// The signs that a drawing is made of.
struct Signs {
  std::string_view nothing, held, written, range, rule;
  std::string_view wire, wire_end, swap_begin;  // 0 -1-> 2, 0 <-1-> 2
  std::string_view switched, switched_end;      // 0 =1=> 2,3
};
inline constexpr Signs kAscii = {".", "o", "*", "..", "|", "-", "->", "<-", "=", "=>"};
inline constexpr Signs kUtf8 = {"·", "●", "▸", "‥", "│", "─", "→", "←", "═", "⇒"};

std::size_t width_of(std::string_view text);  // in columns

// 0..3, 6..1 (over the end of n), 0..6/2 (every second), 0..2+5; "+" stands for the joint.
// `indices` is ascending; `suffix` follows every number.
std::string set_text(const std::vector<int>& indices, int n, std::string_view joint,
                     const Signs& signs, const std::string& suffix = "");

// One for each plane of scratch.
std::string primes(int plane);

// How many neighbours each of the collective's blocks is split into.
int parts_of(const Goal& goal);
bool is_all_to_all(const Goal& goal);

// 0>1..3 2>1: all-to-all's blocks by source; parts of a block as 0>1.0.
std::string routes_text(const std::vector<Block>& blocks, const Goal& goal, const Signs& signs);

// The columns of a drawing's tables (draw.h): what the ranks hold after each round.

struct Cell {
  std::string text;
  bool written = false, complete = false;
  bool operator==(const Cell&) const = default;
};
struct Column {
  std::string title;
  std::vector<std::vector<Cell>> cells;  // by view, then rank
  std::size_t width = 0;                 // of the widest text or title; set by who draws it
};

// One column per place; neighbouring blocks that look the same throughout share one. Of
// all-to-all: from whom a rank has its blocks, and which blocks it has yet to send.
std::vector<Column> columns_of(const Schedule& schedule, const Goal& goal,
                               const std::vector<RoundView>& views, const Signs& signs);

// The arrows of a drawing (draw.h): the transfers of a round.

// What is drawn as one arrow: a transfer, or several messages alike.
struct Arrow {
  std::vector<Rank> from, to;
  std::string label;
  bool is_switched = false;  // one transfer with several senders or receivers
  bool is_swap = false;      // the same both ways
  bool is_local = false;
};

// Messages that differ in the receiver only are one arrow, then those that differ in the sender
// only, then pairs that exchange the same. By sender; what several send, by receiver.
std::vector<Arrow> arrows_of(const RoundView& view, const Goal& goal, const Signs& signs);

std::string arrow_text(const Arrow& arrow, int ranks, const Signs& signs);

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

struct DrawOptions {
  bool colour = false;  // ANSI colours
  bool utf8 = false;    // lines and arrows instead of ASCII
  int width = 100;      // columns to keep to, as far as the widest row allows
  bool states = true;   // false: the transfers only
};

// Ends with a line feed. Made for N <= 16; beyond, rows get wide.
std::string draw(const Schedule& schedule, const Goal& goal, const DrawOptions& options = {});

}  // namespace rankine
