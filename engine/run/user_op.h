// An operation of the user's that a collective reduces by, on elements of any size: a C function
// and what it is told of itself. The shape of MPI's user functions.
//
// `apply` makes inout[i] = in[i] op inout[i] for i < count: `in` holds what the lower ranks have
// brought. It is called on pieces of a vector, from the threads of the ranks that add up, by
// several at once, and knows neither which rank's data it sees nor where in the vector they lie;
// both pointers are aligned to a cache line and do not overlap. It must be associative, and the
// result of a call is the same on every rank even where it is so only nearly, as sums of floats
// are. Where it is not commutative, the engine runs only algorithms that bring contributions
// together in the order of the ranks (rank_order.h), and refuses others by name.
//
// It may throw: its rank's call and all that still need what the rank makes end with
// Code::remote_error, which says which rank it was and what it threw. It makes no calls of its own.
//
// Ranks must agree: `apply`, the size of elements and whether it commutes are compared, as a hash
// of 20 bits (Fingerprint); `context` is each rank's own. The operation belongs to the caller and
// stays until the call returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rankine {

struct UserOp {
  void (*apply)(const void* in, void* inout, std::size_t count, void* context) = nullptr;
  void* context = nullptr;
  std::size_t element_bytes = 0;  // 1 to kMostElementBytes
  bool commutative = true;        // whether a op b is b op a
};

inline constexpr std::size_t kMostElementBytes = 4096;

// What ranks compare. Never 0. between_processes: without where the function lies, which differs.
std::uint64_t identity_of(const UserOp& op, bool between_processes = false) noexcept;

// Destinations 0 to n_dsts - 1 = srcs[0] op srcs[1] op ... folded left to right. A destination may
// be one of the sources, and else overlaps none; no alignment. n_srcs is 2 or more, bytes a
// multiple of the element's. False: the operation threw, `why` says what, and the destinations hold
// part of the result.
bool combine(const UserOp& op, void* const* dsts, std::size_t n_dsts, const void* const* srcs,
             std::size_t n_srcs, std::size_t bytes, std::string& why) noexcept;

}  // namespace rankine
