// The columns of a drawing's tables (draw.h): what the ranks hold after each round.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/read/drawing_words.h"
#include "engine/read/round_view.h"

namespace rankine {

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

}  // namespace rankine
