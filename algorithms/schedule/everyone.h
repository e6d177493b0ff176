// Schedules in which every rank does the same, seen from where it stands: one rank's part, turned
// round. Their rounds are made of that part and of nothing else, so whoever has the part has all of
// the schedule, and readers may look at one rank where there are a million.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"

namespace rankine {

// What becomes of blocks when ranks are turned. With s blocks per rank, or per pair of ranks:
enum class Moves : unsigned char {
  nothing,    // they are everybody's and stay: one vector, in any number of segments
  with_rank,  // s neighbours belong to a rank, which takes them along: N * s
  with_pair,  // s neighbours belong to a pair (source major): N * N * s
};

// Turning ranks round a ring; on a torus, round the rings of all dimensions. Turned by rank r are
// all whom the same turn brings from where they were to where they are as rank 0 to r. Immutable.
class Rotation {
 public:
  // The sizes of a torus, whose last dimension varies fastest; of a ring one. `blocks`: of all,
  // what `moves` divides.
  Rotation(std::vector<int> dims, int blocks, Moves moves);

  int ranks() const { return ranks_; }
  const std::vector<int>& dims() const { return dims_; }
  Moves moves() const { return moves_; }
  bool operator==(const Rotation&) const = default;

  Rank rotated(Rank r, Rank by) const {
    if (dims_.size() > 1) return rotated_on_torus(r, by);
    const Rank sum = r + by;
    return sum < ranks_ ? sum : sum - ranks_;
  }
  // Turning by it undoes turning by `by`.
  Rank back(Rank by) const;
  IndexList rotated(const IndexList& blocks, Rank by) const;
  Transfer rotated(const Transfer& t, Rank by) const;

  // visit(Rank) for all ranks: along `dimension`, and for each coordinate there in order.
  template <class Visit>
  void for_each_rank(std::size_t dimension, const Visit& visit) const {
    int stride = 1;
    for (std::size_t d = dims_.size(); --d > dimension;) stride *= dims_[d];
    const int size = dims_[dimension];
    for (int x = 0; x < size; ++x) {
      for (Rank line = x * stride; line < ranks_; line += size * stride) {
        for (int i = 0; i < stride; ++i) visit(line + i);
      }
    }
  }
  // The dimension of a torus along which it is from one rank to another; the first one.
  std::size_t dimension_between(Rank from, Rank to) const;

 private:
  Rank rotated_on_torus(Rank r, Rank by) const;
  Block block_rotated(Block b, Rank by) const;

  std::vector<int> dims_;
  int ranks_ = 1, blocks_ = 1, share_ = 1;  // of a rank or pair
  Moves moves_;
};

// What Schedule::round is where everyone does the same: rank 0's part of each round, from one rank
// to one, for each of whose transfers there is one of every rank. It is stated a transfer after the
// other, each for all ranks.
class Everyone {
 public:
  Everyone(Schedule part, Rotation rotation)
      : part_(std::make_shared<const Schedule>(std::move(part))), rotation_(std::move(rotation)) {}
  void operator()(int k, Send send) const;

  // Its transfers may begin at any rank: they stand for all that they are turned to. No more than
  // one port at either end of anybody is held by all that one stands for.
  const Schedule& part() const { return *part_; }
  const Rotation& rotation() const { return rotation_; }

 private:
  std::shared_ptr<const Schedule> part_;
  Rotation rotation_;
};

// The schedule of all from one rank's part, which has the ranks, blocks and rounds of the whole.
Schedule everyone(Schedule part, Moves moves);  // round a ring
Schedule everyone(Schedule part, Rotation rotation);

// That part and turn, of a schedule that everyone() has made, or a combinator of such; of others
// nullptr. The rounds themselves are asked, so that what was made of it by hand is no such
// schedule.
const Everyone* everyone_in(const Schedule& schedule);
// The same where the goal, too, asks of every rank what it asks of rank 0, turned.
const Everyone* everyone_for(const Schedule& schedule, const Goal& goal);

}  // namespace rankine
