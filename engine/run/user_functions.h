// Calls into functions of the user's, which may throw where the engine must not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "engine/run/kernels/types.h"

namespace rankine {

inline void say_what_it_threw(std::string& why, const char* what) noexcept {
  try {
    why = what;
  } catch (...) {  // without a text, then
  }
}

// Whether f() returned; where it threw, `why` says what.
template <class F>
bool returns(const F& f, std::string& why) noexcept {
  try {
    f();
    return true;
  } catch (const std::exception& error) {
    say_what_it_threw(why, error.what());
  } catch (...) {
    say_what_it_threw(why, "what is no std::exception");
  }
  return false;
}

// What a rank goes on to do with its own result, row by row, while that is in its cache: a C
// function and what it is told of itself.
//
// `finish` is called on rows of the rank's output that are final: `rows` points to row `first`,
// `count` of them lie there side by side. It is called from the thread of its rank, on each row
// once, in no promised order, on as many rows at a time as were finished together. It reads the
// rows and writes to places of its own; the output itself it must leave as it is, since other ranks
// may still be reading it, and its places overlap no buffer of the call on any rank. So the output
// and its bits are those of the call without an epilogue, and where what becomes of a row follows
// from that row alone, so are the epilogue's those of a pass over the whole output afterwards
// (apply()). Rows need no alignment.
//
// It may throw: its rank's call and all that still need its rank end with Code::remote_error, which
// says which rank it was and what it threw. It makes no calls of its own.
//
// Ranks must agree on whether there is one and on the bytes of a row; the functions and contexts
// are each rank's own. The value is copied where a call is started or prepared; what `context`
// points to stays until the call has ended.

struct Epilogue {
  void (*finish)(const void* rows, std::size_t first, std::size_t count, void* context) = nullptr;
  void* context = nullptr;
  std::size_t row_elements = 0;    // of the call's type: 1 and more
  std::optional<DataType> type{};  // that the call must have; none: any
};

// The pass over `count` rows afterwards; it throws what the function throws.
inline void apply(const Epilogue& epilogue, const void* rows, std::size_t count) {
  if (count > 0) epilogue.finish(rows, 0, count, epilogue.context);
}

// The same inside a call. False: the function threw, and `why` says what.
bool finish_rows(const Epilogue& epilogue, const void* rows, std::size_t first, std::size_t count,
                 std::string& why) noexcept;

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
