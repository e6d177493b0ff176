// RotationSymmetric makes a schedule in which every rank does the same work from one rank's part,
// rotated. The rounds consist of this part only, so readers may examine one rank instead of a
// million.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"

namespace rankine {

// How blocks move when ranks are rotated, with s blocks per rank, or per pair of ranks:
enum class Moves : unsigned char {
  nothing,    // blocks belong to all ranks and stay: one vector, in any number of segments
  with_rank,  // s neighbours belong to a rank, which takes them along: N * s
  with_pair,  // s neighbours belong to a pair (source major): N * N * s
};

// Rotates ranks round a ring, or on a torus round the rings of all dimensions. Rotation by r maps
// rank 0 to r. Immutable.
class Rotation {
 public:
  // `dims`: the sizes of a torus, the last dimension varies fastest; one size for a ring. `blocks`:
  // the total number of blocks, which must divide as `moves` requires.
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
  // Rotation by it undoes rotation by `by`.
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
  // The first dimension of a torus in which the two ranks differ.
  std::size_t dimension_between(Rank from, Rank to) const;

 private:
  Rank rotated_on_torus(Rank r, Rank by) const;
  Block block_rotated(Block b, Rank by) const;

  std::vector<int> dims_;
  int ranks_ = 1, blocks_ = 1, share_ = 1;  // blocks of a rank or pair
  Moves moves_;
};

// The Schedule::round of a schedule in which every rank does the same work: each transfer of rank
// 0's part, from one rank to one, stands for one transfer of every rank. The transfers are stated
// one after the other, each for all ranks.
class RotationSymmetric {
 public:
  RotationSymmetric(Schedule part, Rotation rotation)
      : part_(std::make_shared<const Schedule>(std::move(part))), rotation_(std::move(rotation)) {}
  void operator()(int k, Send send) const;

  // The transfers of the part may begin at any rank: they stand for all their rotations. The
  // transfers that one stands for hold at most one port at either end of any rank.
  const Schedule& part() const { return *part_; }
  const Rotation& rotation() const { return rotation_; }

 private:
  std::shared_ptr<const Schedule> part_;
  Rotation rotation_;
};

// The schedule of all ranks from one rank's part, which has the ranks, blocks and rounds of the
// whole.
Schedule rotation_symmetric(Schedule part, Moves moves);  // round a ring
Schedule rotation_symmetric(Schedule part, Rotation rotation);

// The part and rotation of a schedule from rotation_symmetric(), or from a combinator of such;
// nullptr for other schedules. The rounds themselves are checked, so a schedule changed by hand
// does not count.
const RotationSymmetric* symmetry_of(const Schedule& schedule);
// As symmetry_of(), if the goal is invariant under the rotation too; else nullptr.
const RotationSymmetric* symmetry_for(const Schedule& schedule, const CollectiveSpec& goal);

}  // namespace rankine
