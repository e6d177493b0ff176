// Error reporting of the C functions: a result, and the text that rkGetLastError() returns on the
// same thread. guarded() converts every exception to a result; row() converts the C numbers of
// types and operations.
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

#include "engine/api/c/rankine.h"
#include "engine/base/status.h"
#include "engine/run/kernels/types.h"

namespace rankine {

// Stores "function: text" for rkGetLastError() and returns the result.
rkResult_t tell(const char* function, rkResult_t result, std::string_view text) noexcept;
rkResult_t tell(const char* function, const Status& status) noexcept;
// In a handler: stores the text of the exception, and returns its result.
rkResult_t tell_caught(const char* function) noexcept;

inline Status is_null(const char* name) { return invalid_argument(std::string(name) + " is NULL"); }

// The C result for a code. Stores no text.
rkResult_t result_of(Code code) noexcept;

// A reason to refuse a C call: rkInvalidUsage, or an invalid handle. Thrown because the rest of the
// call makes no sense without a handle, and caught by guarded().
struct Refusal {
  rkResult_t result;
  std::string text;
};

// Runs the body of a C function, which returns a Status, or the result whose text is stored, or
// throws.
template <class Body>
rkResult_t guarded(const char* function, const Body& body) noexcept {
  try {
    if constexpr (std::is_same_v<decltype(body()), rkResult_t>) {
      return body();
    } else {
      const Status status = body();
      return status.ok() ? rkSuccess : tell(function, status);
    }
  } catch (...) {
    return tell_caught(function);
  }
}

// The engine's types and operations by their C numbers.

// Indexed by rkDataType_t and rkRedOp_t.
inline constexpr std::array kTypes = {
    DataType::i8,     DataType::u8,     DataType::i32, DataType::u32, DataType::i64,
    DataType::u64,    DataType::f16,    DataType::f32, DataType::f64, DataType::bf16,
    DataType::f8e4m3, DataType::f8e5m2, DataType::b8,  DataType::c64, DataType::c128};
inline constexpr std::array kOps = {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min,
                                    ReduceOp::avg, ReduceOp::band, ReduceOp::bor, ReduceOp::bxor};
static_assert(kTypes.size() == rkNumTypes && kOps.size() == rkNumOps);
static_assert(rkNumTypes == kDataTypes && rkNumOps == kReduceOps);

[[noreturn, gnu::cold]] void refuse_number(const char* name, int number, std::size_t rows);

// Returns the table's row for a number, without a cast of invalid numbers to an enum. Throws a
// Refusal.
template <class Table>
[[gnu::always_inline]] inline typename Table::value_type row(const Table& table, const char* name,
                                                             int number) {
  // A negative number becomes a large one.
  if (static_cast<unsigned>(number) >= table.size()) [[unlikely]]
    refuse_number(name, number, table.size());
  return table[static_cast<unsigned>(number)];
}

}  // namespace rankine
