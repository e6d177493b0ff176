// What a call promises of the last bits of its sums: CallOptions::order for one call,
// CommunicatorOptions::order and TeamOptions::order for those that say nothing themselves.
//
// Sums and products of floats depend on how they are bracketed, since each addition rounds. The
// levels say how. All ranks of a call ask for the same one (else: mismatch). What is exact whatever
// the brackets (integers, bits, min, max, and all that only moves) keeps every level by itself.
// Operations of the user's (user_op.h) count as ones that round. A result that is NaN is a NaN with
// every level, but its sign and payload are not promised, not even to be the same on every rank:
// processors keep those of one of the operands, and compilers choose which. (A canonical NaN costs
// sums of f32 two instructions per register; min and max have it.) Source of the rules: brackets.h,
// which reads them from the plan that runs.
//
// With every level but the last, sums of floats of 16 and 8 bits are those of f32, rounded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/run/kernels/types.h"

namespace rankine {

enum class Order : std::uint8_t {
  // The same bits on every rank. Calls that name no algorithm have that without asking; asked for,
  // algorithms that cannot (other_bits in the catalogue) are refused.
  coherent,
  // The same bits in every run of a program, also on another machine: what runs follows from the
  // call and this version of the engine alone (on a modelled network, also from that), and not from
  // what was measured here, its costs or its levels. Else a new tuning table may choose other
  // brackets. In place and apart, or of another size, the same call may have other bits.
  repeatable,
  // The bits of a loop over the ranks from 0 on, in the type: floats of 16 and 8 bits in f32,
  // rounded once, at the end (avg: after the division).
  by_rank,
  // An element's bits depend on what the ranks bring for it and on nothing else: not on count,
  // offset, algorithm, transport, segments, in place or apart. Among calls of this level; today
  // these have the bits of by_rank, which is not promised.
  size_invariant,
  // The same bits whatever number of ranks the same contributions are divided among: those of the
  // binary tree over the contributions, every node rounded to the type. With 2^k contributions per
  // rank (fewer at the last ones) each rank adds its own up first (reduce_group()), and N ranks,
  // N/2 or one leave the same bits. size_invariant as well. avg has no such level: it divides by
  // the number of ranks.
  group_invariant,
};
inline constexpr int kOrders = 5;

std::string_view name_of(Order order);  // "by_rank"
std::optional<Order> parse_order(std::string_view text);

// Some of the levels.
class OrderSet {
 public:
  constexpr bool has(Order order) const { return (bits_ >> static_cast<int>(order) & 1) != 0; }
  constexpr void add(Order order, bool it = true) {
    bits_ |= static_cast<unsigned>(it) << static_cast<int>(order);
  }
  bool operator==(const OrderSet&) const = default;

 private:
  unsigned bits_ = 0;
};
std::string to_string(const OrderSet& orders);  // "coherent, by_rank"

// dst[i] = the contributions srcs[0][i], srcs[1][i] ..., for i < count, in the brackets of
// group_invariant: what a rank brings that holds several of them. They are neighbours, and 2^k of
// them, the same on every rank; the last ranks may hold fewer. dst is one of the sources or
// overlaps none; no alignment. Errors: no source, avg, a type without that operation.
Status reduce_group(DataType type, ReduceOp op, std::span<const void* const> srcs, void* dst,
                    std::size_t count);

}  // namespace rankine
