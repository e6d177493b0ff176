// A schedule, round by round, as machines and drawings show it: who sends what to whom, and what
// every rank holds then.
//
// This proves nothing and stops at nothing: what a wrong schedule adds twice is there twice, what
// it reads in vain is nothing. Pure functions; may be called from any number of threads at once.
#pragma once

#include <string>
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

}  // namespace rankine
