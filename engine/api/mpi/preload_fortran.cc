// The same calls of programs in Fortran, whose library of MPI does not pass by C's names: those of
// mpif.h and `use mpi`, and with Open MPI of `use mpi_f08`, as GNU Fortran writes them.
//
// Arguments come by address, handles as numbers, and the constants that stand for buffers as
// addresses of variables that the MPI's Fortran library has. So each function is C's of the table
// (preload_functions.h) with arguments by address.
#include <dlfcn.h>
#include <mpi.h>

#include <cstddef>
#include <type_traits>
#include <vector>

#include "engine/api/mpi/preload_functions.h"
#include "engine/api/mpi/preload_requests.h"

namespace rankine::mpi {
namespace {

// Of the variable with one of these names, `offset` bytes behind its beginning; nullptr: the
// program has no Fortran.
template <std::size_t kNames>
const void* variable(const char* const (&names)[kNames], std::size_t offset) {
  for (const char* name : names) {
    if (const void* found = dlsym(RTLD_DEFAULT, name)) {
      return static_cast<const std::byte*>(found) + offset;
    }
  }
  return nullptr;
}

// What stands for MPI_IN_PLACE and MPI_BOTTOM there.
struct Constants {
#ifdef OPEN_MPI
  const void* in_place = variable({"mpi_fortran_in_place_", "mpi_fortran_in_place"}, 0);
  const void* bottom = variable({"mpi_fortran_bottom_", "mpi_fortran_bottom"}, 0);
#else  // MPICH: the common block's first two integers
  const void* in_place = variable({"mpipriv1_"}, sizeof(MPI_Fint));
  const void* bottom = variable({"mpipriv1_"}, 0);
#endif
};

void* buffer(void* given) {
  static const Constants fortran;
  if (given == nullptr) return given;
  if (given == fortran.in_place) return MPI_IN_PLACE;
  return given == fortran.bottom ? MPI_BOTTOM : given;
}

// What C calls T. Numbers that C has as int, and their arrays, are what they are; so are MPICH's
// handles.
static_assert(sizeof(MPI_Fint) == sizeof(int));
template <class T>
T in_c(void* given) {
  if constexpr (std::is_same_v<T, void*> || std::is_same_v<T, const void*>) {
    return buffer(given);
  } else if constexpr (std::is_same_v<T, const int*> || std::is_same_v<T, MPI_Request*>) {
    return static_cast<T>(given);
  } else {
    const MPI_Fint number = *static_cast<const MPI_Fint*>(given);
    if constexpr (std::is_same_v<T, int>) return number;
    if constexpr (std::is_same_v<T, MPI_Datatype>) return MPI_Type_f2c(number);
    if constexpr (std::is_same_v<T, MPI_Op>) return MPI_Op_f2c(number);
    if constexpr (std::is_same_v<T, MPI_Comm>) return MPI_Comm_f2c(number);
  }
}
template <class... Arguments, class... Given>
int call(int (*function)(Arguments...), Given*... given) {
  return function(in_c<Arguments>(given)...);
}

// One for each rank that the communicator's ranks talk to; none, which MPI has an error for, where
// there is no communicator.
std::vector<MPI_Datatype> types_of(void* types, MPI_Comm comm) {
  int is_inter = 0, ranks = 0;
  if (comm != MPI_COMM_NULL) {
    MPI_Comm_test_inter(comm, &is_inter);
    is_inter != 0 ? MPI_Comm_remote_size(comm, &ranks) : MPI_Comm_size(comm, &ranks);
  }
  std::vector<MPI_Datatype> found;
  for (int r = 0; r < ranks; ++r) {
    found.push_back(in_c<MPI_Datatype>(static_cast<MPI_Fint*>(types) + r));
  }
  return found;
}
// The one that has arrays of handles.
int call(decltype(&MPI_Alltoallw) function, void* in, void* in_counts, void* in_places,
         void* in_types, void* out, void* out_counts, void* out_places, void* out_types,
         void* comm) {
  const bool in_place = buffer(in) == MPI_IN_PLACE;  // then in_types may be anything
  const auto ranks = in_c<MPI_Comm>(comm);
  const std::vector<MPI_Datatype> out_list = types_of(out_types, ranks);
  const std::vector<MPI_Datatype> in_list = in_place ? out_list : types_of(in_types, ranks);
  return function(buffer(in), in_c<const int*>(in_counts), in_c<const int*>(in_places),
                  in_list.data(), buffer(out), in_c<const int*>(out_counts),
                  in_c<const int*>(out_places), out_list.data(), ranks);
}

}  // namespace
}  // namespace rankine::mpi

using namespace rankine::mpi;

// Of Open MPI's, what its modules for Fortran 2008 call has a name of its own.
#ifdef OPEN_MPI
#define RANKINE_ALSO(name, ...) [[gnu::alias("mpi_" #name "_")]] void ompi_##name##_f(__VA_ARGS__);
#else
#define RANKINE_ALSO(name, ...)
#endif

extern "C" {

#define RANKINE_ADDRESS(type, name) void *name,
#define RANKINE_WAITED_FOR(Name, name, PARAMETERS)                              \
  void mpi_##name##_(PARAMETERS(RANKINE_ADDRESS) void* comm, MPI_Fint* error) { \
    *error = call(MPI_##Name, PARAMETERS(RANKINE_GIVEN) comm);                  \
  }                                                                             \
  RANKINE_ALSO(name, PARAMETERS(RANKINE_ADDRESS) void*, MPI_Fint*)
RANKINE_FUNCTIONS(RANKINE_WAITED_FOR, RANKINE_WAITED_FOR)

#define RANKINE_STARTED(Name, name, PARAMETERS)                                  \
  void mpi_i##name##_(PARAMETERS(RANKINE_ADDRESS) void* comm, MPI_Fint* request, \
                      MPI_Fint* error) {                                         \
    MPI_Request made = MPI_REQUEST_NULL;                                         \
    *error = call(MPI_I##name, PARAMETERS(RANKINE_GIVEN) comm, &made);           \
    if (*error == MPI_SUCCESS) *request = MPI_Request_c2f(made);                 \
  }                                                                              \
  RANKINE_ALSO(i##name, PARAMETERS(RANKINE_ADDRESS) void*, MPI_Fint*, MPI_Fint*)
// Those of own lengths, which are never taken, are left to MPI's library.
#define RANKINE_LEFT(Name, name, PARAMETERS)
RANKINE_FUNCTIONS(RANKINE_STARTED, RANKINE_LEFT)

#ifdef OPEN_MPI
// Of requests that C has made ready, say. MPICH's own of these call C's.
void mpi_start_(MPI_Fint* request, MPI_Fint* error) {
  MPI_Request known = MPI_Request_f2c(*request);
  *error = MPI_Start(&known);
  if (*error == MPI_SUCCESS) *request = MPI_Request_c2f(known);
}

void mpi_startall_(MPI_Fint* count, MPI_Fint* requests, MPI_Fint* error) {
  std::vector<MPI_Request> known;
  for (int i = 0; i < *count; ++i) known.push_back(MPI_Request_f2c(requests[i]));
  *error = MPI_Startall(*count, known.data());
  if (*error != MPI_SUCCESS) return;
  for (int i = 0; i < *count; ++i)
    requests[i] = MPI_Request_c2f(known[static_cast<std::size_t>(i)]);
}

void mpi_request_free_(MPI_Fint* request, MPI_Fint* error) {
  MPI_Request known = MPI_Request_f2c(*request);
  *error = MPI_Request_free(&known);
  if (*error == MPI_SUCCESS) *request = MPI_Request_c2f(known);
}
#else
// MPICH's own does not call C's.
void mpi_request_get_status_(MPI_Fint* request, MPI_Fint* is_complete, MPI_Fint* status,
                             MPI_Fint* error) {
  using Function = void (*)(MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "mpi_request_get_status_"));
  requests().move_on_in_mpi();
  next(request, is_complete, status, error);
}
#endif

void mpi_finalize_(MPI_Fint* error) { *error = MPI_Finalize(); }

RANKINE_ALSO(start, MPI_Fint*, MPI_Fint*)
RANKINE_ALSO(startall, MPI_Fint*, MPI_Fint*, MPI_Fint*)
RANKINE_ALSO(request_free, MPI_Fint*, MPI_Fint*)
RANKINE_ALSO(finalize, MPI_Fint*)
}
