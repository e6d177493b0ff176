// Which operations of a program touch which memory: for passes that move work in time or from rank
// to rank and must know what they would disturb.
//
// What operations touch begins and ends at few places of a rank's memory, the borders of its
// blocks. Between two neighbouring ones lies a *stretch*, and each knows who touches it; so a
// question costs what it has to answer, and not what the program has besides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/compile/plan_limits.h"
#include "engine/compile/program.h"

namespace rankine {

class Footprint {
 public:
  struct Touch {
    int operation = 0;
    Place place;
    std::size_t bytes = 0;
  };

  // `buffers`: whether input and output are one memory, at equal offsets, as in an all-reduce.
  Footprint(const Program& program, Buffers buffers, PlanMeter* meter = nullptr);

  // Calls visit(touch) for everything that touches these bytes of `rank`, which some operation
  // does, in order of operations but for what add() brought.
  template <class Visit>
  void for_each(Rank rank, Place place, std::size_t bytes, Visit visit) const {
    place = resolved(place);
    std::vector<int>& found = found_;
    found.clear();
    const auto [first, last] = stretches(rank, place, bytes);
    for (std::size_t i = first; i < last; ++i) {
      for (int at = stretches_[i].first; at != kNone;
           at = links_[static_cast<std::size_t>(at)].next) {
        found.push_back(links_[static_cast<std::size_t>(at)].touch);
      }
    }
    if (last - first > 1) {
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
    }
    for (const int touch : found) visit(touches_[static_cast<std::size_t>(touch)]);
  }

  // An operation will touch bytes that begin and end where others that are there do.
  void add(Rank rank, int operation, Place place, std::size_t bytes);

  // The same bytes under the one name that for_each() has for them.
  Place resolved(Place place) const {
    if (one_memory_ && place.memory == Memory::input) place.memory = Memory::output;
    return place;
  }

 private:
  static constexpr int kNone = -1;
  static constexpr std::size_t kMemories = 3;  // input, output, scratch
  struct Stretch {
    std::size_t begin = 0;
    int first = kNone, last = kNone;  // of its links
  };
  struct Link {
    int touch = 0;
    int next = kNone;
  };
  struct Range {
    std::size_t first, last;
  };

  static std::size_t memory_of(Rank rank, Place place) {
    return static_cast<std::size_t>(rank) * kMemories + static_cast<std::size_t>(place.memory);
  }
  template <class Visit>
  static void for_each_touch(const Program& program, const Visit& visit);
  // Those between these bytes' ends.
  Range stretches(Rank rank, Place place, std::size_t bytes) const;

  const bool one_memory_;
  std::vector<Touch> touches_;
  std::vector<Stretch> stretches_;            // by rank and memory, each in order
  std::vector<std::size_t> first_of_;         // by rank and memory: its first one; and one past all
  mutable std::vector<std::size_t> next_of_;  // behind the one that was looked for last
  std::vector<Link> links_;
  mutable std::vector<int> found_;
};

}  // namespace rankine
