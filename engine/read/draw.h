// view_rounds() computes the transfers of each round of a schedule and the contents of every rank
// afterwards, and draw() writes them as text for a terminal.
//
// View and drawing prove nothing and accept wrong schedules: a contribution added twice is shown
// twice ("0+1+1"), and a read of an empty place yields nothing. Pure functions; safe to call from
// several threads at once.
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
  TransferKind kind = TransferKind::copy;
};

// The content of one place that is not empty.
struct HoldingView {
  Block block = 0;
  int plane = 0;
  std::vector<Rank> contributions;  // ascending; a rank appears twice if it was added twice
  // exactly the contributions that the rank must receive (contributors)
  bool complete = false;
  bool needed = false;   // the goal asks for it here
  bool written = false;  // in this round
};

struct RoundView {
  int round = -1;                               // -1: before the first round
  std::string phase;                            // name of the phase, or empty
  std::vector<TransferView> transfers;          // in the order stated
  std::vector<std::vector<HoldingView>> ranks;  // after the round; by plane, then block, ascending
};

// The view before the first round, then one view per round.
std::vector<RoundView> view_rounds(const Schedule& schedule, const CollectiveSpec& goal);

// True if all ranks, blocks and planes of the transfer exist in the schedule. Others are shown and
// do nothing.
bool is_playable(const Schedule& schedule, const TransferView& t);

// The words of a drawing: signs, and sets of ranks and blocks as short texts.

// The signs of a drawing.
struct Signs {
  std::string_view nothing, held, written, range, rule;
  std::string_view wire, wire_end, swap_begin;  // 0 -1-> 2, 0 <-1-> 2
  std::string_view switched, switched_end;      // 0 =1=> 2,3
};
inline constexpr Signs kAscii = {".", "o", "*", "..", "|", "-", "->", "<-", "=", "=>"};
inline constexpr Signs kUtf8 = {"·", "●", "▸", "‥", "│", "─", "→", "←", "═", "⇒"};

std::size_t width_of(std::string_view text);  // in columns

// 0..3, 6..1 (over the end of n), 0..6/2 (every second), 0..2+5; "+" is `joint`. `indices` is
// ascending; `suffix` follows every number.
std::string set_text(const std::vector<int>& indices, int n, std::string_view joint,
                     const Signs& signs, const std::string& suffix = "");

// One prime (') for each plane of scratch.
std::string primes(int plane);

// The number of neighbouring blocks per block of the collective.
int parts_of(const CollectiveSpec& goal);
bool is_all_to_all(const CollectiveSpec& goal);

// 0>1..3 2>1: all-to-all's blocks by source; parts of a block as 0>1.0.
std::string routes_text(const std::vector<Block>& blocks, const CollectiveSpec& goal,
                        const Signs& signs);

// The columns of a drawing's tables: the contents of the ranks after each round.

struct Cell {
  std::string text;
  bool written = false, complete = false;
  bool operator==(const Cell&) const = default;
};
struct Column {
  std::string title;
  std::vector<std::vector<Cell>> cells;  // by view, then rank
  // of the widest text or title; set by the caller that draws
  std::size_t width = 0;
};

// One column per place; neighbouring blocks with equal columns share one. For an all-to-all: the
// sources of a rank's blocks, and the blocks that it has yet to send.
std::vector<Column> columns_of(const Schedule& schedule, const CollectiveSpec& goal,
                               const std::vector<RoundView>& views, const Signs& signs);

// The arrows of a drawing: the transfers of a round.

// One arrow: a transfer, or several messages alike.
struct Arrow {
  std::vector<Rank> from, to;
  std::string label;
  bool is_switched = false;  // one transfer with several senders or receivers
  bool is_swap = false;      // two messages with equal blocks, in both directions
  bool is_local = false;
};

// Messages that differ in the receiver only become one arrow, then those that differ in the sender
// only, then pairs that exchange equal blocks. Ordered by sender, arrows of several senders by
// receiver.
std::vector<Arrow> arrows_of(const RoundView& view, const CollectiveSpec& goal, const Signs& signs);

std::string arrow_text(const Arrow& arrow, int ranks, const Signs& signs);

// Draws every round of a schedule for a terminal.
//
// For each round: the transfers, then the contents of every rank, one row per rank and one column
// per block, as in the papers' traces. A cell is a partial sum, written as the set of ranks that
// have contributed to it:
//
//   .      nothing                                0+3      the contributions of 0 and 3
//   2      only rank 2's                          0..3     0, 1, 2 and 3
//   all    complete: all contributions            6..1     over the end: 6, 7, 0 and 1 (N = 8)
//   *all   in front: written in this round        0..6/2   every second: 0, 2, 4 and 6
//
// An arrow shows sender, block and receiver: 0 -3-> 1 copies block 3, 0 -+3-> 1 adds it, 0 <-+3-> 1
// adds it both ways, 0 =3=> 1..4 is one transfer through a switch, 1..3 -+0-> 0 are three messages.
// 3' is block 3 of scratch plane 1, -3:3'-> goes from one to the other, and "at 2: 3 += 3'" is
// local work.
//
// Scans show the set even if the sum is complete, because each rank's complete sum is different.
//
// Copying collectives show a block as held (o) or not. An all-to-all, which has N x N blocks, shows
// the sources of each rank's blocks, and the blocks that it has yet to send: "source>destination".
// Rounds stand side by side within the width, and blocks that look alike throughout share a column.
// The texts are deterministic and kept as golden files.

struct DrawOptions {
  bool colour = false;  // ANSI colours
  bool utf8 = false;    // lines and arrows instead of ASCII
  int width = 100;      // columns to keep to, if the widest row allows
  bool states = true;   // false: the transfers only
};

// Ends with a line feed. Made for N <= 16; beyond, rows get wide.
std::string draw(const Schedule& schedule, const CollectiveSpec& goal,
                 const DrawOptions& options = {});

}  // namespace rankine
