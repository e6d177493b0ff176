// What the parameters in preload_functions.h are in C, and how the library's own functions take
// them: one function for MPI_Bcast and MPI_Bcast_c, so ranks may mix the two in one call.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rankine::mpi {

// A program's list of numbers of 4 or 8 bytes: counts, or displacements. The list stays the
// program's and outlives this.
class Numbers {
 public:
  Numbers() = default;
  template <class T>
  Numbers(const T* list) : list_(list), is_wide_(sizeof(T) == sizeof(std::int64_t)) {  // NOLINT
    static_assert(sizeof(T) == sizeof(std::int32_t) || sizeof(T) == sizeof(std::int64_t));
  }

  bool is_null() const { return list_ == nullptr; }
  std::int64_t operator[](int i) const {
    const auto at = static_cast<std::size_t>(i);
    if (is_wide_) return number<std::int64_t>(at);
    return number<std::int32_t>(at);
  }

 private:
  template <class T>
  T number(std::size_t i) const {
    T found;
    std::memcpy(&found, static_cast<const std::byte*>(list_) + i * sizeof(T), sizeof(T));
    return found;
  }

  const void* list_ = nullptr;
  bool is_wide_ = false;
};

struct SameParameters {
  using Buffer = void*;
  using ConstBuffer = const void*;
  using Type = MPI_Datatype;
  using Types = const MPI_Datatype*;
  using Op = MPI_Op;
  using Root = int;
};
struct WithInts : SameParameters {
  using Count = int;
  using Counts = const int*;
  using Places = const int*;
};
struct WithCounts : SameParameters {
  using Count = MPI_Count;
  using Counts = const MPI_Count*;
  using Places = const MPI_Aint*;
};
struct Either : SameParameters {
  using Count = std::int64_t;
  using Counts = Numbers;
  using Places = Numbers;
};

}  // namespace rankine::mpi
