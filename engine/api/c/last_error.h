// How the C functions tell what went wrong: a result, and the text that rkGetLastError() gives to
// the same thread. Nothing gets out of guarded() but a result.
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "engine/api/c/rankine.h"
#include "engine/base/status.h"
#include "engine/run/kernels/types.h"

namespace rankine {

// Keeps "function: text" for rkGetLastError() and returns the result.
rkResult_t tell(const char* function, rkResult_t result, std::string_view text) noexcept;
rkResult_t tell(const char* function, const Status& status) noexcept;

// The result that a code has in C; its text is not kept.
rkResult_t result_of(Code code) noexcept;

// Why a C function is not begun: rkInvalidUsage, or no handle where one should be. Thrown, since
// what comes after it makes no sense, and caught by guarded().
struct Refusal {
  rkResult_t result;
  std::string text;
};

// Runs the body of a C function, which returns a Status or throws.
template <class Body>
rkResult_t guarded(const char* function, const Body& body) noexcept {
  try {
    const Status status = body();
    return status.ok() ? rkSuccess : tell(function, status);
  } catch (const Refusal& refusal) {
    return tell(function, refusal.result, refusal.text);
  } catch (const std::bad_alloc&) {
    return tell(function, rkOutOfMemory, "there is no memory");
  } catch (const std::exception& e) {
    return tell(function, rkInternalError, e.what());
  } catch (...) {  // of a C++ function that the caller has given as a C one
    return tell(function, rkInternalError, "what was thrown is no std::exception");
  }
}

// The engine's types and operations by their numbers in C.

// By rkDataType_t and rkRedOp_t.
inline constexpr std::array kTypes = {
    DataType::i8,     DataType::u8,     DataType::i32, DataType::u32, DataType::i64,
    DataType::u64,    DataType::f16,    DataType::f32, DataType::f64, DataType::bf16,
    DataType::f8e4m3, DataType::f8e5m2, DataType::b8,  DataType::c64, DataType::c128};
inline constexpr std::array kOps = {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min,
                                    ReduceOp::avg, ReduceOp::band, ReduceOp::bor, ReduceOp::bxor};
static_assert(kTypes.size() == rkNumTypes && kOps.size() == rkNumOps);
static_assert(rkNumTypes == kDataTypes && rkNumOps == kReduceOps);

// The row of that number. No cast to an enum that has no such value. Throws a Refusal.
template <class Table>
typename Table::value_type row(const Table& table, const char* name, int number) {
  if (number >= 0 && static_cast<std::size_t>(number) < table.size()) {
    return table[static_cast<std::size_t>(number)];
  }
  throw Refusal{rkInvalidArgument, std::string(name) + " is " + std::to_string(number) +
                                       "; allowed are 0 to " + std::to_string(table.size() - 1)};
}

}  // namespace rankine
