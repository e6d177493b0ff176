// Exact time: integers in a unit in which every alpha and every byte is a whole number.
//
// A unit is chosen per question (fabric, size, blocks), so that no rounding ever happens; the last
// step turns ticks into seconds once. 128 bits hold hours at the finest units in use.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/exec/status.h"
#include "engine/fabric/fabric.h"

namespace rankine {

__extension__ using Ticks = __int128;

// What a message costs, in ticks: alpha of its link, plus the weight of its blocks times the link's
// beta per unit of weight.
class Pricing {
 public:
  // `bytes` is M (blocks_per_m() of the goal's blocks make it up). Blocks get whole bytes, the
  // first M mod B one more; with `ideal` every block is exactly M / B. Errors: a unit beyond 128
  // bits.
  static Result<Pricing> make(const Fabric& fabric, const Goal& goal, std::uint64_t bytes,
                              bool ideal);

  // The weight of a set of blocks; bytes times weight_per_byte().
  std::int64_t weight(const IndexList& blocks) const;
  std::int64_t weight_per_byte() const { return weight_per_byte_; }

  Ticks message(const Fabric& fabric, Rank from, Rank to, std::int64_t weight) const {
    const bool far = &fabric.between_ranks(from, to) == &fabric.between;
    return far ? far_alpha_ + far_beta_ * weight : near_alpha_ + near_beta_ * weight;
  }
  // A multicast or ALU transfer: two hops and one passage of the data.
  Ticks through_switch(std::int64_t weight) const {
    return switch_alpha_ * 2 + near_beta_ * weight;
  }

  double seconds(Ticks ticks) const;
  // The same as an exact fraction's text would be too long for people; tests compare ticks.
  Ticks ticks_per_second() const { return per_second_; }

 private:
  std::vector<std::int64_t> upto_;  // weight of the blocks before each block
  std::int64_t weight_per_byte_ = 1;
  Ticks per_second_ = 1;
  Ticks near_alpha_ = 0, near_beta_ = 0, far_alpha_ = 0, far_beta_ = 0, switch_alpha_ = 0;
};

}  // namespace rankine
