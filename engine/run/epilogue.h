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
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "engine/run/kernels/types.h"

namespace rankine {

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

}  // namespace rankine
