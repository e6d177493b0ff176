// Inputs whose result every rank can check exactly, whatever the order in which it is computed.
//
// Contributions repeat along the vector with a period that is a prime, so that a rank compares its
// output with one expected period at the speed of memory, and a block that lands in another place
// is still seen. Values are chosen such that every partial result is exact in the type: whole
// numbers with small sums, products of few twos and halves, anything at all for integers, which
// wrap. f16 and bf16 need no tolerance either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/api/call.h"
#include "engine/run/kernels/types.h"
#include "engine/run/plan.h"

namespace rankine::tools {

// What a call's buffers hold: in blocks as its collective has them, without borders moved.
Goal natural_goal(const Call& call, int ranks);
Layout natural_layout(const Call& call, int ranks);

// Immutable; used by all ranks at once.
class TestData {
 public:
  static constexpr int kPeriod = 1021;  // elements

  // Requires takes(collective, type, op). Different seeds, different values.
  TestData(Collective collective, int ranks, DataType type, ReduceOp op, std::uint64_t seed);

  // Writes rank r's input. `goal` has the collective's natural blocks, and `layout` belongs to it.
  void fill(const Goal& goal, const Layout& layout, Rank r, std::byte* input) const;

  // How many elements of rank r's output are not, to the last bit, what they must be.
  std::int64_t count_wrong(const Goal& goal, const Layout& layout, Rank r,
                           const std::byte* output) const;

 private:
  const std::byte* period_of(Rank source) const;

  std::size_t element_bytes_;
  std::size_t period_bytes_;
  std::vector<std::byte> contributions_;  // one period per rank
  // Where the collective reduces, one period of the result; of scans one per rank.
  std::vector<std::byte> reduced_;
};

}  // namespace rankine::tools
