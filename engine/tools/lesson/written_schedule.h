// A schedule as somebody wrote it down, by hand or by a program of whatever language.
//
//   all_gather 4            the collective, and how many ranks; further words:
//                             root R   peer R      of collectives that have them (0; the next rank)
//                             blocks B             a multiple of the collective's own number
//                             planes P             the vector and P - 1 scratch vectors (1)
//                             other_bits           of all_reduce: ranks may add in other orders
//   round                   begins a round; "round 0" says which it is
//   0 -> 1: 0               rank 0 sends block 0 to rank 1, which keeps it
//   2 -> 3: 2 +             rank 3 adds it to its own
//   0 <-> 1: 0..3,6 +       both ways; several blocks in one message
//   0 -> 1..3: 2            to several: one transfer that a switch copies; likewise from several
//   1 -> 1: 2 on 1 to 0 +   read on plane 1, added on plane 0; "on 1" alone: on plane 1 both
//
// What follows # is a remark, and empty lines are nothing. All that is read in a round is read
// before anything of it is written (algorithms/schedule/schedule.h). The same as JSON is one object
// whose members have these names, and `transfers`, a list of rounds, each a list of
//
//   {"from": 0, "to": [1], "what": [0], "act": "copy" or "reduce", "what_plane": 0,
//    "where_plane": 0}
//
// as the page's player has it; other members are left aside, and so is a root that means nothing.
// A program may say in "line" which of its lines makes the transfer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"

namespace rankine::tools {

// What is read at most: beyond, a mistake is more likely than a question.
inline constexpr int kMostWrittenRanks = 4096;
inline constexpr int kMostWrittenBlocks = 1 << 20;
inline constexpr std::size_t kMostWrittenMoves = std::size_t{1} << 23;  // of one block each

struct WrittenTransfer {
  Transfer transfer;
  int line = 0;  // where it is written, from 1; 0: in JSON that does not say
};
using WrittenRounds = std::vector<std::vector<WrittenTransfer>>;

struct WrittenSchedule {
  Goal goal;
  int planes = 1;
  WrittenRounds rounds;

  // As all readers of schedules have it; shares nothing with this.
  Schedule schedule() const;
};

// Text, or JSON where it begins with a brace. What can be read is in range, and need not be right.
// Errors: invalid_argument, with the line, what stands there and what is allowed.
Result<WrittenSchedule> read_schedule(std::string_view text);

// "0 -> 1: 0..3 on 1 to 0 +"
std::string transfer_text(const Transfer& transfer);

// The whole as text; read_schedule() reads the same transfers from it.
std::string schedule_text(const Schedule& schedule, const Goal& goal);

}  // namespace rankine::tools
