// The arrows of a drawing (draw.h): the transfers of a round.
#pragma once

#include <string>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/read/drawing_words.h"
#include "engine/read/round_view.h"

namespace rankine {

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

}  // namespace rankine
