// Which operations of a program touch which memory: for passes that move work in time or from rank
// to rank and must know what they would disturb.
//
// What operations touch begins and ends at few places of a rank's memory, the borders of its
// blocks. Between two neighbouring ones lies a *stretch*, and each knows who touches it; so a
// question costs what it has to answer, and not what the program has besides.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "engine/compile/plan_limits.h"
#include "engine/compile/program.h"

namespace rankine {

// The same bytes under one name where input and output are one memory, at equal offsets, as in an
// all-reduce in place.
inline Place resolved(Place place, Buffers buffers) {
  if (buffers == Buffers::in_place && place.memory == Memory::input) place.memory = Memory::output;
  return place;
}

class Footprint {
 public:
  struct Touch {
    int operation = 0;
    bool same_bytes = false;  // as were asked for, no more and no less
  };

  // What of ranks' memories will be asked about: from the first byte of each to the last one.
  // Nothing is noted of what does not touch that.
  class Memories {
   public:
    // `buffers`: as in resolved().
    Memories(int ranks, Buffers buffers)
        : buffers_(buffers), asked_(static_cast<std::size_t>(ranks) * kMemories) {}

    void add(Rank rank, Place place, std::size_t bytes) {
      Bytes& asked = asked_[number(rank, place)];
      asked.begin = std::min(asked.begin, place.offset);
      asked.end = std::max(asked.end, place.offset + bytes);
      ++questions_;
    }
    std::size_t questions() const { return questions_; }  // add() was told of

   private:
    friend class Footprint;
    static constexpr std::size_t kMemories = 3;  // input, output, scratch
    struct Bytes {
      std::size_t begin = std::numeric_limits<std::size_t>::max(), end = 0;
      bool touched_by(std::size_t from, std::size_t to) const { return from < end && begin < to; }
    };

    std::size_t number(Rank rank, Place place) const {
      return static_cast<std::size_t>(rank) * kMemories +
             static_cast<std::size_t>(resolved(place, buffers_).memory);
    }

    Buffers buffers_;
    std::vector<Bytes> asked_;
    std::size_t questions_ = 0;
  };

  // `further`: about so often add() will be called.
  Footprint(const Program& program, Memories asked, std::size_t further = 0,
            PlanMeter* meter = nullptr);

  // Calls visit(touch) for everything that touches these bytes of `rank`, which some operation
  // does, in order of operations but for what add() brought. Not for two threads at once.
  template <class Visit>
  void for_each(Rank rank, Place place, std::size_t bytes, Visit visit) const {
    const auto [first, last] = stretches(memories_.number(rank, place), place.offset, bytes);
    std::vector<int>& found = found_;
    found.clear();
    for (int i = first; i < last; ++i) {
      for (int at = stretches_[static_cast<std::size_t>(i)].first; at != kNone;) {
        const Link& link = links_[static_cast<std::size_t>(at)];
        // Once, of those that touch several of these.
        if (i == std::max(first, link.first)) found.push_back(at);
        at = link.next;
      }
    }
    if (last - first > 1) std::sort(found.begin(), found.end());
    for (const int at : found) {
      const Link& link = links_[static_cast<std::size_t>(at)];
      visit(Touch{link.operation, link.first == first && link.last == last});
    }
  }

  // An operation will touch bytes that begin and end where others that are there do.
  void add(Rank rank, int operation, Place place, std::size_t bytes);

 private:
  static constexpr int kNone = -1;
  struct Stretch {
    std::size_t begin = 0;
    int first = kNone, last = kNone;  // of its links
  };
  // An operation that touches the stretches `first` to before `last`: at each of them.
  struct Link {
    int operation = 0;
    int first = 0, last = 0;
    int next = kNone;  // at this stretch
  };
  struct Range {
    int first, last;
  };
  // The stretches of a memory, `first` to before `last`: the last one is where the others end.
  struct OfMemory {
    int first = 0, last = 0;
    std::size_t length = 1;  // of each, if all were of one
  };

  // Those between these bytes' ends.
  Range stretches(std::size_t memory, std::size_t offset, std::size_t bytes) const;
  void add_to(std::size_t memory, int operation, std::size_t offset, std::size_t bytes);

  const Memories memories_;
  std::vector<Stretch> stretches_;  // by memory, each in order
  std::vector<OfMemory> of_memory_;
  std::vector<Link> links_;
  mutable std::vector<int> found_;
};

}  // namespace rankine
