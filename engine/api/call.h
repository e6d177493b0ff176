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

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "algorithms/schedule/collective.h"
#include "engine/base/status.h"
#include "engine/run/kernels/types.h"
#include "engine/run/policy.h"
#include "engine/run/user_functions.h"

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

// One collective call as its arguments, before anything is checked.

// How a call is to be done; by default the engine chooses.
struct CallOptions {
  // A name of the catalogue. It runs, or the call fails: never another in its place, and never
  // without a parameter below that it does not take. Where none is named, parameters count where
  // the engine's choice takes them.
  std::string_view algorithm{};
  int segments = 0;  // P of pipelined algorithms; 0: chosen by size
  int group = 0;  // ranks per group of hierarchical ones; 0: the communicator's, else their default
  int aggregation = 0;                   // blocks per message of PAT; 0: its default
  int radix = 0;                         // of trees, butterflies and Bruck's; 0: two
  std::optional<Transport> transport{};  // forced, or the faster one
  // What the call may wait for its peers (also for one that plans the call), from its first long
  // wait on; 0: the communicator's timeout; milliseconds::max(): for ever. Then the communicator
  // ends on all ranks.
  std::chrono::milliseconds timeout{0};
  std::span<const int> dims{};    // sizes of a torus, of algorithms that take dims; empty:
                                  // one ring
  std::span<const int> skips{};   // of circulant graphs, round by round; empty: the default
  std::span<const int> levels{};  // of trees by levels: sizes of groups, innermost first;
                                  // empty: the communicator's, else the default
  // What ranks must agree on beside count and type, as a number: how a vector is made up, say.
  // Ranks that give different ones get a mismatch. Compared as a hash of 20 bits, with the counts.
  std::uint64_t tag = 0;
  // What is promised of the last bits of sums (order.h), or the call fails: never less. None: the
  // communicator's.
  std::optional<Order> order{};
  // Of ranks that are processes: that all ranks' buffers are of Member::allocate() of this
  // communicator, so that the others read and write them in place. Else what they read is a copy,
  // in memory that all share. It makes no difference to threads, and to messages, barriers, and
  // calls that have displacements or factors.
  bool shared_payloads = false;
  // What this rank goes on to do with the rows of its own output while they are in its cache
  // (engine/run/epilogue.h, epilogues.h), of all_reduce, reduce_scatter and all_gather; nullptr:
  // nothing. Every rank's output is whole rows. Copied where the call is started or prepared.
  const Epilogue* epilogue = nullptr;
};

// Where a rank's blocks of an all-to-all lie, in bytes from the beginning of its buffers, by the
// rank that a block goes to or comes from; without a list, one after the other. Gaps are allowed
// and left as they are, and so is any order; what is received may not overlap, and in and out may.
// Each rank's own affair: ranks may say different ones, or none, but then may not call in place. No
// alignment.
// Ranks whose outputs overlap are not told in such a call.
struct Displacements {
  std::span<const std::size_t> in{}, out{};
};

// `count` is per rank for all_gather (what each gives), reduce_scatter (what each gets), gather,
// scatter and all_to_all (per pair); else the whole vector. `counts`, where not empty, replaces it
// with one count per natural block of the collective (see collective.h) and must be the same on all
// ranks.
struct Call {
  Collective collective = Collective::all_reduce;
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;
  Rank root = 0;
  Rank peer = 0;
  std::span<const std::size_t> counts{};
  // For op = user and type = raw, which go together: the operation, and with it the elements' size.
  const UserOp* user_op = nullptr;
  // Where not null, and for op = sum: each rank's own factor, by which it multiplies what it brings
  // before anything is added; an f32 for floats of 16 and 8 bits (the product is rounded to the
  // type), else an element of the type. Ranks may bring different ones, and all bring one. Stays
  // the caller's until the call returns.
  const void* factor = nullptr;
  // all_to_all: where not null, where this rank's blocks lie. The caller's until the call returns,
  // or its request has been made.
  const Displacements* displacements = nullptr;
  CallOptions options{};
};

// A barrier: an all-reduce of one word under "or", which may hear from a rank twice. The words are
// the caller's until it is over.
inline Call barrier_of(std::uint32_t& in, std::uint32_t& out, const CallOptions& options) {
  return {.collective = Collective::barrier,
          .in = &in,
          .out = &out,
          .count = 1,
          .type = DataType::u32,
          .op = ReduceOp::bor,
          .options = options};
}

// Whether such a call may have that type and operation: of those that reduce, what types.h has, but
// no average of a scan, in which every rank hears another number of ranks.
inline bool takes(Collective collective, DataType type, ReduceOp op) {
  return !reduces(collective) ||
         (supports(type, op) && !(op == ReduceOp::avg && is_prefix(collective)));
}

}  // namespace rankine
