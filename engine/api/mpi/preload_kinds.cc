#include "engine/api/mpi/preload_kinds.h"

#include <utility>

namespace rankine::mpi {
namespace {

// A program asks about the same types again and again, and those that MPI names stay what they are:
// each thread keeps the last. (preload_communicators.cc says where.)
template <class Found>
struct Last {
  MPI_Datatype type{};
  std::optional<Found> found{};
};
[[gnu::tls_model("initial-exec")]] thread_local Last<DataType> last_data_type;
[[gnu::tls_model("initial-exec")]] thread_local Last<Elements> last_elements;

// Also of a type of more bytes than an int can say. kTooLarge: more than MPI_Count can.
std::size_t bytes_of_one(MPI_Datatype type) {
  MPI_Count size = 0;
#if MPI_VERSION >= 4
  MPI_Type_size_c(type, &size);
#else
  MPI_Type_size_x(type, &size);
#endif
  return size == MPI_UNDEFINED ? kTooLarge : static_cast<std::size_t>(size);
}

std::optional<DataType> look_up(MPI_Datatype type) {
  using enum DataType;
  static_assert(sizeof(long) == 8);
  const std::pair<MPI_Datatype, DataType> known[] = {
      {MPI_FLOAT, f32},
      {MPI_DOUBLE, f64},
      {MPI_INT, i32},
      {MPI_UNSIGNED, u32},
      {MPI_LONG, i64},
      {MPI_UNSIGNED_LONG, u64},
      {MPI_LONG_LONG, i64},
      {MPI_UNSIGNED_LONG_LONG, u64},
      {MPI_SIGNED_CHAR, i8},
      {MPI_UNSIGNED_CHAR, u8},
      {MPI_INT8_T, i8},
      {MPI_UINT8_T, u8},
      {MPI_INT32_T, i32},
      {MPI_UINT32_T, u32},
      {MPI_INT64_T, i64},
      {MPI_UINT64_T, u64},
      {MPI_AINT, i64},
      {MPI_OFFSET, i64},
      {MPI_COUNT, i64},
      {MPI_C_FLOAT_COMPLEX, c64},
      {MPI_C_DOUBLE_COMPLEX, c128},
      {MPI_REAL, f32},
      {MPI_DOUBLE_PRECISION, f64},
      {MPI_INTEGER, i32},
      {MPI_COMPLEX, c64},
      {MPI_DOUBLE_COMPLEX, c128},
      {MPI_REAL4, f32},
      {MPI_REAL8, f64},
      {MPI_INTEGER1, i8},
      {MPI_INTEGER4, i32},
      {MPI_INTEGER8, i64},
      {MPI_COMPLEX8, c64},
      {MPI_COMPLEX16, c128},
  };
  for (const auto& [theirs, ours] : known) {
    if (theirs != type || theirs == MPI_DATATYPE_NULL) continue;
    // Under the standard ABI Fortran's are as long as whoever starts MPI says.
    if (bytes_of_one(type) == size_of(ours)) return ours;
    break;
  }
  return {};
}

}  // namespace

std::optional<DataType> data_type_of(MPI_Datatype type) {
  if (last_data_type.found && last_data_type.type == type) return last_data_type.found;
  const auto found = look_up(type);
  if (found) last_data_type = {type, found};
  return found;
}

std::optional<ReduceOp> reduce_op_of(MPI_Op op) {
  using enum ReduceOp;
  const std::pair<MPI_Op, ReduceOp> known[] = {
      {MPI_SUM, sum},   {MPI_PROD, prod}, {MPI_MIN, min},   {MPI_MAX, max},
      {MPI_BAND, band}, {MPI_BOR, bor},   {MPI_BXOR, bxor},
  };
  for (const auto& [theirs, ours] : known) {
    if (theirs == op) return ours;
  }
  return {};
}

Elements elements_of(MPI_Datatype type) {
  if (last_elements.found && last_elements.type == type) return *last_elements.found;
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  MPI_Aint begin = 0, extent = 0;
  MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  MPI_Type_get_extent(type, &begin, &extent);
  const std::size_t size = bytes_of_one(type);
  const bool is_named = combiner == MPI_COMBINER_NAMED;
  const Elements found{size, extent,
                       is_named && begin == 0 && static_cast<std::size_t>(extent) == size};
  if (is_named) last_elements = {type, found};
  return found;
}

}  // namespace rankine::mpi
