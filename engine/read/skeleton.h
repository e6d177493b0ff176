// The messages of a schedule on a torus without what they carry, and of ranks that nobody can tell
// apart those of one.
//
// Who sends how many blocks to whom in which round is all that is left. A rank goes on to a round
// when all is there that was sent to it in the rounds before: so does a process that posts the
// receives and sends of a round and waits for all of them (MPI_Waitall), with no barrier between
// processes. What a message waits for then needs no blocks.
//
// A turn of the torus (every coordinate of a dimension more by so many, or its mirror image) that
// turns each round's messages into themselves turns times into themselves as well. So of ranks that
// such turns bring to each other one stands for all, and of their links one. The messages of 512
// ranks are what recursive doubling has on 16 x 16 x 16, those of one what Trivance has.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"

namespace rankine {

// Which ranks of a torus are alike, and which of its links. Immutable.
class Alike {
 public:
  // Of one dimension: coordinates that differ by `step`, which divides its size; and, where
  // `mirrored`, x and -1 - x as well. Mirrored only with an even step: nobody is its own image.
  struct Line {
    int step = 1;
    bool mirrored = false;
    bool operator==(const Line&) const = default;
  };
  Alike(const std::vector<int>& dims, std::vector<Line> lines);

  const std::vector<Line>& lines() const { return lines_; }
  int classes() const { return classes_; }
  int class_of(Rank r) const { return class_of_[static_cast<std::size_t>(r)]; }
  // Of a class the rank of the least coordinates, whose messages a skeleton has.
  bool stands_for_others(Rank r) const { return stands_[static_cast<std::size_t>(r)]; }

  // Links as Routes (engine/network/wiring.h) numbers those of a torus: by rank, dimension, way.
  int links() const { return classes_ * ways_; }
  int class_of_link(int link) const {
    const auto of_rank = static_cast<std::size_t>(link / 2);
    const Rank r = link / ways_;
    return class_of(r) * ways_ + (link % ways_ ^ (turned_[of_rank] ? 1 : 0));
  }

 private:
  std::vector<Line> lines_;
  int classes_ = 1, ways_ = 2;  // ways out of a rank
  std::vector<int> class_of_;
  std::vector<bool> stands_;
  std::vector<bool> turned_;  // by rank and dimension: it is a mirror image there
};

// A message, by what it weighs.
struct Sent {
  Rank from = 0, to = 0;
  int blocks = 0;
  auto operator<=>(const Sent&) const = default;
};
using SentByRound = std::vector<std::vector<Sent>>;

struct Skeleton {
  std::vector<int> dims;
  Alike alike;
  Goal goal;             // of the schedule that it is of
  SentByRound messages;  // of the ranks that stand for others, in the order stated

  // The same as a schedule for readers: a message brings its first blocks, as many as it has.
  Schedule schedule() const;
};

// On a torus of these sizes (one: a ring). Errors: sizes that are not those of so many ranks, a
// multicast or ALU transfer.
Result<Skeleton> skeleton_of(const Schedule& schedule, const Goal& goal,
                             const std::vector<int>& dims);
// Of all messages of a schedule, by those who have gone through it anyway.
Skeleton skeleton_of(const SentByRound& all, const Goal& goal, const std::vector<int>& dims);

}  // namespace rankine
