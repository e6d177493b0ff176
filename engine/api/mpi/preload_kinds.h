// MPI's basic types and predefined operations as the engine's.
#pragma once

#include <mpi.h>

#include <optional>

#include "engine/run/kernels/types.h"

namespace rankine::mpi {

// Nothing: a type of the program's, or one that the engine does not add up (MPI_SHORT,
// MPI_LONG_DOUBLE).
std::optional<DataType> data_type_of(MPI_Datatype type);
// Nothing: an operation of the program's, or one on pairs (MPI_MINLOC) or truth values (MPI_LAND).
std::optional<ReduceOp> reduce_op_of(MPI_Op op);

// Whether elements of that type are bytes side by side without gaps.
bool is_plain(MPI_Datatype type);

}  // namespace rankine::mpi
