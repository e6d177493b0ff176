// User functions are reduction operations and epilogues given by the user. A user function may
// throw; the engine must not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "engine/run/kernels/types.h"

namespace rankine {

inline void report_exception(std::string& why, const char* what) noexcept {
  try {
    why = what;
  } catch (...) {  // the text stays empty
  }
}

// True if f() returned. If it threw, `why` gets the text.
template <class F>
bool returns(const F& f, std::string& why) noexcept {
  try {
    f();
    return true;
  } catch (const std::exception& error) {
    report_exception(why, error.what());
  } catch (...) {
    report_exception(why, "an object that is no std::exception");
  }
  return false;
}

// An epilogue processes a rank's own result row by row while the rows are in its cache: a C
// function and its context.
//
// `finish` is called on final rows of the rank's output: `rows` points to row `first`, and `count`
// rows lie there side by side. It is called from the thread of its rank, on each row once, in no
// promised order, with any number of rows per call. It reads the rows and writes to its own places;
// it must not change the output, since other ranks may still be reading it, and its places must
// overlap no buffer of the call on any rank. So the output has the bits of the call without an
// epilogue. If the function treats each row independently, its results have the bits of a pass over
// the whole output afterwards (apply()). Rows need no alignment.
//
// The function may throw: its rank's call and all calls that still need its rank end with
// Code::remote_error, whose text names the rank and the exception. It must make no collective
// calls.
//
// Ranks must agree on the presence of an epilogue and on the bytes of a row; functions and contexts
// may differ by rank. The value is copied when a call is started or prepared; the object behind
// `context` must live until the call has ended.

struct Epilogue {
  void (*finish)(const void* rows, std::size_t first, std::size_t count, void* context) = nullptr;
  void* context = nullptr;
  std::size_t row_elements = 0;    // of the call's type; at least 1
  std::optional<DataType> type{};  // required type of the call; nullopt: any
};

// A pass over `count` rows after a call; throws any exception of the function.
inline void apply(const Epilogue& epilogue, const void* rows, std::size_t count) {
  if (count > 0) epilogue.finish(rows, 0, count, epilogue.context);
}

// apply() inside a call, from row `first`. False: the function threw, and `why` has the text.
bool finish_rows(const Epilogue& epilogue, const void* rows, std::size_t first, std::size_t count,
                 std::string& why) noexcept;

// A user operation reduces elements of any size in a collective: a C function and its context. It
// has the shape of MPI's user functions.
//
// `apply` computes inout[i] = in[i] op inout[i] for i < count: `in` holds the contribution of the
// lower ranks. It is called on pieces of a vector, from the threads of the ranks that add up,
// concurrently, and does not know the rank of its data or their place in the vector. Both pointers
// are aligned to a cache line and do not overlap. The operation must be associative; the result of
// a call is equal on every rank even if the operation is only nearly associative, as float sums
// are. If it is not commutative, the engine runs only algorithms that combine contributions in rank
// order (engine/compile/ssa.h), and refuses others by name.
//
// The function may throw: its rank's call and all calls that still need the rank's results end with
// Code::remote_error, whose text names the rank and the exception. It must make no collective
// calls.
//
// Ranks must agree: they compare `apply`, the element size and commutativity as a hash of 20 bits
// (Fingerprint); `context` may differ by rank. The caller owns the operation and keeps it until the
// call returns.

struct UserOp {
  void (*apply)(const void* in, void* inout, std::size_t count, void* context) = nullptr;
  void* context = nullptr;
  std::size_t element_bytes = 0;  // 1 to kMostElementBytes
  bool commutative = true;        // a op b equals b op a
};

inline constexpr std::size_t kMostElementBytes = 4096;

// The value that ranks compare. Never 0. between_processes: omits the function's address, which
// then differs.
std::uint64_t identity_of(const UserOp& op, bool between_processes = false) noexcept;

// Destinations 0 to n_dsts - 1 = srcs[0] op srcs[1] op ... folded left to right. A destination may
// be one of the sources, and must not overlap others; no alignment is needed. n_srcs is at least 2,
// bytes a multiple of the element's. False: the operation threw, `why` has the text, and the
// destinations hold part of the result.
bool combine(const UserOp& op, void* const* dsts, std::size_t n_dsts, const void* const* srcs,
             std::size_t n_srcs, std::size_t bytes, std::string& why) noexcept;

}  // namespace rankine
