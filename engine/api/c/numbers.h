// The engine's types and operations by their numbers in C.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "engine/api/c/last_error.h"
#include "engine/api/c/rankine.h"
#include "engine/run/kernels/types.h"

namespace rankine {

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
