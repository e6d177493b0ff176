// Exact time: integers in a unit in which every alpha and every byte is a whole number.
//
// A unit is chosen per question (fabric, size, blocks), so that no rounding ever happens; the last
// step turns ticks into seconds once. 128 bits hold hours at the finest units in use.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/timing.h"

namespace rankine {

// Whether these are the bytes of a collective's natural blocks (collective.h): the error says how
// many there are, or which is too large.
Status check_counts(Collective collective, int ranks, std::span<const std::uint64_t> counts);

// What a message costs, in ticks: alpha of its link, plus the weight of its blocks times the link's
// beta per unit of weight.
class Pricing {
 public:
  // No message costs more, so that one can be added to any time up to this without overflow.
  static constexpr Ticks kMost = Ticks{1} << 125;

  // `bytes` is M (blocks_per_m() of the goal's blocks make it up). Blocks get whole bytes, the
  // first M mod B one more; with `ideal` every block is exactly M / B. Errors: more than 2^52
  // bytes, and times whose common unit or whose greatest message leave 128 bits.
  static Result<Pricing> make(const Fabric& fabric, const Goal& goal, std::uint64_t bytes,
                              bool ideal);

  // The same of natural blocks of so many bytes each (collective.h), in order: each of their S
  // parts gets whole bytes, the first ones one more. Errors: also check_counts().
  static Result<Pricing> of_counts(const Fabric& fabric, const Goal& goal,
                                   std::span<const std::uint64_t> counts);

  // Of blocks of so many bytes each, in order.
  static Result<Pricing> of_blocks(const Fabric& fabric, std::span<const std::uint64_t> bytes);

  // The weight of a set of blocks; bytes times weight_per_byte().
  std::int64_t weight(const IndexList& blocks) const {
    std::int64_t total = 0;
    for (int i = 0; i < blocks.runs(); ++i) {
      const Run& run = blocks.run(i);
      total += run.stride == 1 ? upto_[static_cast<std::size_t>(run.first + run.count)] -
                                     upto_[static_cast<std::size_t>(run.first)]
                               : weight_of_strided(run);
    }
    return total;
  }
  // Whether all blocks weigh the same.
  bool blocks_alike() const;
  std::int64_t weight_per_byte() const { return weight_per_byte_; }

  // In ticks; the betas per unit of weight. Where messages share links, betas are even, so that
  // half a message has a price. Where they do not, every one crosses one link, whose hop the alphas
  // have.
  struct LinkRates {
    Ticks alpha = 0, beta = 0;
  };
  struct Rates {
    std::vector<LinkRates> links;  // by Fabric's kinds of links
    Ticks switch_alpha = 0, hop = 0, gamma = 0;
  };
  const Rates& rates() const { return rates_; }
  // No transfer of this goal's blocks costs more where messages share no links.
  Ticks most() const { return most_; }

  // Of links that messages do not share; RoundPrices has the others.
  Ticks message(const Fabric& fabric, Rank from, Rank to, std::int64_t weight) const {
    const LinkRates& rates = link(fabric, from, to);
    return rates.alpha + rates.beta * weight;
  }
  const LinkRates& link(const Fabric& fabric, Rank from, Rank to) const {
    return rates_.links[static_cast<std::size_t>(fabric.kind_between(from, to))];
  }
  // A multicast or ALU transfer: two hops and one passage of the data.
  Ticks through_switch(std::int64_t weight) const {
    return rates_.switch_alpha * 2 + rates_.links.front().beta * weight;
  }
  // What it takes a receiver to add what a transfer brings, or a rank to add blocks of its own. A
  // switch adds up on the way.
  Ticks adding(const Transfer& t, std::int64_t weight) const {
    return t.act == Act::reduce && t.from.size() == 1 ? rates_.gamma * weight : 0;
  }

  // Rounded once, to the nearest double.
  double seconds(Ticks ticks) const { return nearest_double(ticks, per_second_); }
  Rational exact_seconds(Ticks ticks) const { return {ticks, per_second_}; }
  Ticks ticks_per_second() const { return per_second_; }

 private:
  std::int64_t weight_of_strided(const Run& run) const;
  // The unit and the rates, once the weights are there.
  Status settle(const Fabric& fabric);

  std::vector<std::int64_t> upto_;  // weight of the blocks before each block
  std::int64_t weight_per_byte_ = 1;
  Ticks per_second_ = 1;
  Ticks most_ = 0;
  Rates rates_;
};

}  // namespace rankine
