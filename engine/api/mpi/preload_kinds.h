// MPI's basic types and predefined operations as the engine's.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <limits>
#include <optional>

#include "engine/run/kernels/types.h"

namespace rankine::mpi {

// Nothing: a type of the program's, or one that the engine does not add up (MPI_SHORT,
// MPI_LONG_DOUBLE, MPI_INTEGER of another length than usual).
std::optional<DataType> data_type_of(MPI_Datatype type);
// Nothing: an operation of the program's, or one on pairs (MPI_MINLOC) or truth values (MPI_LAND).
std::optional<ReduceOp> reduce_op_of(MPI_Op op);

// Bytes that 64 bits cannot say, or nearly so.
inline constexpr std::size_t kTooLarge = std::numeric_limits<std::size_t>::max();
// a * b, at most kTooLarge.
inline std::size_t product(std::size_t a, std::size_t b) {
  std::size_t all = 0;
  return __builtin_mul_overflow(a, b, &all) ? kTooLarge : all;
}

// How elements of a type lie in memory.
struct Elements {
  std::size_t size = 0;  // bytes of one, without gaps
  MPI_Aint extent = 0;   // from one to the next
  bool is_plain = true;  // bytes side by side without gaps
};
Elements elements_of(MPI_Datatype type);

}  // namespace rankine::mpi
