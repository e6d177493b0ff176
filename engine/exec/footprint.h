// Which operations of a program touch which memory: for passes that move work in time or from rank
// to rank and must know what they would disturb.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/exec/program.h"

namespace rankine {

class Footprint {
 public:
  struct Touch {
    int operation = 0;
    Place place;
    std::size_t bytes = 0;
  };

  // `buffers`: whether input and output are one memory, at equal offsets, as in an all-reduce.
  Footprint(const Program& program, Buffers buffers);

  // Calls visit(touch) for everything that touches these bytes of `rank`, in order of operations
  // but for what add() brought.
  template <class Visit>
  void for_each(Rank rank, Place place, std::size_t bytes, Visit visit) const {
    place = resolved(place);
    for (const Touch& touch : touches_[static_cast<std::size_t>(rank)]) {
      if (touch.place.memory == place.memory && touch.place.offset < place.offset + bytes &&
          place.offset < touch.place.offset + touch.bytes) {
        visit(touch);
      }
    }
  }

  void add(Rank rank, int operation, Place place, std::size_t bytes) {
    touches_[static_cast<std::size_t>(rank)].push_back({operation, resolved(place), bytes});
  }

  // The same bytes under the one name that for_each() has for them.
  Place resolved(Place place) const {
    if (one_memory_ && place.memory == Memory::input) place.memory = Memory::output;
    return place;
  }

 private:
  const bool one_memory_;
  std::vector<std::vector<Touch>> touches_;  // by rank
};

}  // namespace rankine
