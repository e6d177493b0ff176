// Call is one collective call as its arguments; CallOptions says how to make it; Order is the
// promise about the bits of its sums.
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

// Order is the promise that a call makes about the last bits of its sums: CallOptions::order for
// one call; CommunicatorOptions::order and TeamOptions::order for calls that set none.
//
// Sums and products of floats depend on their brackets, because each addition rounds. A level fixes
// the brackets. All ranks of a call ask for the same level (otherwise: mismatch). Results that are
// exact under any brackets (integers, bits, min, max, and calls that only move data) keep every
// level. Operations of the user (UserOp) count as rounding. A NaN result is a NaN with every level,
// but its sign and payload are not promised, not even to agree between ranks: processors keep those
// of one operand, and compilers choose the operand. (A canonical NaN costs sums of f32 two
// instructions per register; min and max have it.) Source of the rules: engine/compile/ssa.h,
// which reads the brackets from the plan that runs.
//
// With every level but group_invariant, sums of 16-bit and 8-bit floats equal sums in f32, rounded
// once.
enum class Order : std::uint8_t {
  // All ranks get identical bits. Calls that name no algorithm always have this. If a call asks for
  // it, algorithms without it (other_bits in the catalogue) are refused.
  coherent,
  // Every run of a program gets identical bits, also on another machine: the plan follows only from
  // the call and this version of the engine (and from the modelled network, if there is one), not
  // from measurements, costs or levels of this machine. Without it a new tuning table may choose
  // other brackets. A call may have other bits in place than apart, or with another size.
  repeatable,
  // The bits of a loop over the ranks from 0 on, in the type of the call; floats of 16 and 8 bits
  // are added in f32 and rounded once, at the end (avg: after the division).
  by_rank,
  // An element's bits depend only on the ranks' contributions to it: not on count, offset,
  // algorithm, transport, segments, in place or apart. This holds among calls of this level. Today
  // they have the bits of by_rank, which is not promised.
  size_invariant,
  // The bits do not depend on the number of ranks that share the contributions: they are the bits
  // of the binary tree over the contributions, with every node rounded to the type. With 2^k
  // contributions per rank (fewer at the last ranks) each rank first adds its own contributions
  // (reduce_group()); N ranks, N/2 ranks and one rank then get the same bits. It implies
  // size_invariant. avg does not have this level, because it divides by the number of ranks.
  group_invariant,
  // For tensor-parallel layers: as group_invariant, for calls whose result rounds only in its tree,
  // so that 1, 2, 4 and 8 ranks get the same bits. K, the dimension that the ranks divide, has
  // kTpLeaves leaves for any number of ranks. Refused are other numbers of ranks, and sums of
  // floats of 16 and 8 bits: their inputs are partial sums that were rounded, on each number of
  // ranks at another node. Partial sums are f32 (or f64); the result is rounded afterwards, for
  // example by an epilogue. engine/api/python/examples/row_parallel.py is such a layer.
  tp_invariant,
};
inline constexpr int kOrders = 6;
inline constexpr int kTpLeaves = 8;

std::string_view name_of(Order order);  // "by_rank"
std::optional<Order> parse_order(std::string_view text);

// A set of levels.
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

// dst[i] = the reduction of srcs[0][i], srcs[1][i] ..., for i < count, in the brackets of
// group_invariant. A rank with several contributions uses it to make its input. The contributions
// of a rank are consecutive; each rank has the same number of them, 2^k; the last ranks may have
// fewer. dst equals one of the sources or overlaps none; no alignment is needed. Errors: no source,
// avg, a type without that operation.
Status reduce_group(DataType type, ReduceOp op, std::span<const void* const> srcs, void* dst,
                    std::size_t count);

// CallOptions says how to make a call; by default the engine chooses.
struct CallOptions {
  // A name of the catalogue. The call runs this algorithm or fails: the engine never substitutes
  // another and never ignores a parameter below that the algorithm does not take. If empty,
  // parameters count if the engine's choice takes them.
  std::string_view algorithm{};
  int segments = 0;  // P of pipelined algorithms; 0: chosen by size
  // ranks per group of hierarchical algorithms; 0: the communicator's, else the default
  int group = 0;
  int aggregation = 0;                   // blocks per message of PAT; 0: its default
  int radix = 0;                         // for trees, butterflies and Bruck's algorithm; 0: two
  std::optional<Transport> transport{};  // forced, or the faster one
  // The time that the call may wait for its peers, planning included, from its first long wait on;
  // then the communicator ends on all ranks. 0: the communicator's timeout; milliseconds::max(): no
  // limit.
  std::chrono::milliseconds timeout{0};
  std::span<const int> dims{};   // torus sizes, for algorithms that take dims; empty: one ring
  std::span<const int> skips{};  // skips of circulant graphs, per round; empty: the default
  // for trees by levels: group sizes, innermost first; empty: the communicator's, else the default
  std::span<const int> levels{};
  // A number that all ranks must agree on beside count and type, for example a code for the
  // structure of the vector. Different numbers are a mismatch. The engine compares a hash of 20
  // bits, with the counts.
  std::uint64_t tag = 0;
  // The promised level of order (Order); the call fails if it cannot be kept. None: the
  // communicator's level.
  std::optional<Order> order{};
  // For ranks that are processes: declares that the buffers of all ranks come from this
  // communicator's Member::allocate(), so that other processes read and write them in place. If
  // false, other processes read a copy in shared memory. It has no effect on threads, messages,
  // barriers, and calls with displacements or factors.
  bool shared_payloads = false;
  // A function that this rank applies to the rows in its output while they are in its cache
  // (engine/run/user_functions.h, epilogues.h); for all_reduce, reduce_scatter and all_gather.
  // nullptr: none. Every rank's output must be whole rows. The engine copies the struct when the
  // call is started or prepared.
  const Epilogue* epilogue = nullptr;
};

// Displacements are the offsets of a rank's blocks in an all-to-all: bytes from the beginning of
// its buffer, indexed by the rank that the block goes to or comes from. An empty list: blocks
// follow one another. Any order is allowed; gaps are allowed and stay as they are. Blocks of `out`
// may not overlap; blocks of `in` may. Each rank chooses separately: ranks may give different
// lists, or none, but a rank without lists may not call in place. No alignment is needed. In such a
// call the engine does not detect outputs of different ranks that overlap.
struct Displacements {
  std::span<const std::size_t> in{}, out{};
};

// `count` is the number of elements per rank for all_gather (input), reduce_scatter (output),
// gather, scatter and all_to_all (per pair); otherwise the whole vector. `counts`, if not empty,
// replaces it with one count per natural block of the collective (see collective.h) and must be
// equal on all ranks.
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
  // For op = user with type = raw: the operation and the size of its elements.
  const UserOp* user_op = nullptr;
  // For op = sum: this rank's factor, or null. The rank multiplies its input by the factor before
  // any addition. It points to an f32 for floats of 16 and 8 bits (the product is rounded to the
  // type), otherwise to an element of the type. Ranks may give different factors; all ranks must
  // give one. The caller owns it until the call returns.
  const void* factor = nullptr;
  // For all_to_all: the places of this rank's blocks, or null. The caller owns it until the call
  // returns or its request is made.
  const Displacements* displacements = nullptr;
  CallOptions options{};
};

// PlainCall is a call with nothing but these arguments, in the form that a repeated call compares.
struct PlainCall {
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  std::uint64_t kinds = kNone;

  static constexpr std::uint64_t kNone = ~std::uint64_t{0};  // of no call
  static constexpr std::uint64_t kinds_of(Collective collective, DataType type, ReduceOp op,
                                          Rank root) noexcept {
    return static_cast<std::uint64_t>(collective) | static_cast<std::uint64_t>(type) << 8 |
           static_cast<std::uint64_t>(op) << 16 |
           std::uint64_t{static_cast<std::uint32_t>(root)} << 32;
  }
  Call call() const noexcept {
    return {.collective = static_cast<Collective>(kinds & 0xff),
            .in = in,
            .out = out,
            .count = count,
            .type = static_cast<DataType>(kinds >> 8 & 0xff),
            .op = static_cast<ReduceOp>(kinds >> 16 & 0xff),
            .root = static_cast<Rank>(kinds >> 32)};
  }
  bool operator==(const PlainCall& other) const noexcept {
    return ((reinterpret_cast<std::uintptr_t>(in) ^ reinterpret_cast<std::uintptr_t>(other.in)) |
            (reinterpret_cast<std::uintptr_t>(out) ^ reinterpret_cast<std::uintptr_t>(other.out)) |
            (count ^ other.count) | (kinds ^ other.kinds)) == 0;
  }
};

// True if PlainCall has all arguments of the call. Inlined, as the calls of TypedCalls that servers
// and trainers make: the compiler then sees the options, and makes the PlainCall only.
[[gnu::always_inline]] inline bool is_plain(const Call& call) noexcept {
  const CallOptions& options = call.options;
  return call.peer == 0 && call.counts.empty() && call.user_op == nullptr &&
         call.factor == nullptr && call.displacements == nullptr && options.algorithm.empty() &&
         options.segments == 0 && options.group == 0 && options.aggregation == 0 &&
         options.radix == 0 && !options.transport && options.timeout.count() == 0 &&
         options.dims.empty() && options.skips.empty() && options.levels.empty() &&
         options.tag == 0 && !options.order && !options.shared_payloads &&
         options.epilogue == nullptr;
}

// Makes a barrier: an all-reduce of one word under "or", which may hear from a rank twice. The
// caller owns the words until the barrier is over.
inline Call barrier_of(std::uint32_t& in, std::uint32_t& out, const CallOptions& options) {
  return {.collective = Collective::barrier,
          .in = &in,
          .out = &out,
          .count = 1,
          .type = DataType::u32,
          .op = ReduceOp::bor,
          .options = options};
}

// True if the call may have that type and operation. Reductions take the operations of types.h, but
// a scan takes no average, because every rank sums another number of ranks.
inline bool takes(Collective collective, DataType type, ReduceOp op) {
  return !reduces(collective) ||
         (supports(type, op) && !(op == ReduceOp::avg && is_prefix(collective)));
}

}  // namespace rankine
