// Takes over the same calls of Fortran programs, because Fortran's MPI library does not call the C
// names: the functions of mpif.h, `use mpi` and `use mpi_f08`, with GNU Fortran's symbol names.
// (MPICH's Fortran 2008 module calls the C functions, which the library takes over, if a function
// has buffers; otherwise it calls PMPI directly.)
//
// Arguments are passed by address, handles as numbers, and special buffer constants as addresses of
// variables of MPI's Fortran library. So each function converts its arguments and calls the C
// function of RANKINE_FUNCTIONS (preload_report.h).
#include <dlfcn.h>
#include <mpi.h>

#include <cstddef>
#include <type_traits>
#include <vector>

#include "engine/api/mpi/preload_blocks.h"
#include "engine/api/mpi/preload_presence.h"
#include "engine/api/mpi/preload_report.h"

namespace rankine::mpi {
namespace {

// Returns the address `offset` bytes behind the begin of a variable with one of these names;
// nullptr if the program contains no Fortran MPI.
template <std::size_t kNames>
const void* variable(const char* const (&names)[kNames], std::size_t offset) {
  for (const char* name : names) {
    if (const void* found = dlsym(RTLD_DEFAULT, name)) {
      return static_cast<const std::byte*>(found) + offset;
    }
  }
  return nullptr;
}

// The Fortran addresses of MPI_IN_PLACE and MPI_BOTTOM.
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

// Converts a Fortran argument to C type T. Integers that C has as int, arrays of them, and MPICH's
// handles need no conversion.
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
    if constexpr (std::is_same_v<T, MPI_Info>) return MPI_Info_f2c(number);
  }
}
// Calls MPI's own Fortran function `name`; its last argument receives the error code.
template <class... CallArguments>
int started_by(const char* name, CallArguments*... given) {
  using Function = void(CallArguments * ..., MPI_Fint*);
  const auto function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  MPI_Fint error = MPI_ERR_OTHER;
  if (function != nullptr) function(given..., &error);
  return error;
}

template <class... Arguments, class... CallArguments>
int call(int (*function)(Arguments...), CallArguments*... given) {
  return function(in_c<Arguments>(given)...);
}

// One type per rank that the communicator's ranks talk to. Empty without a communicator; MPI has an
// error for that.
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
// MPI_Alltoallw is the only function with arrays of handles.
int call(decltype(&MPI_Alltoallw) function, void* in, void* in_counts, void* in_places,
         void* in_types, void* out, void* out_counts, void* out_places, void* out_types,
         void* comm) {
  const bool in_place = buffer(in) == MPI_IN_PLACE;  // then MPI ignores in_types
  const auto ranks = in_c<MPI_Comm>(comm);
  return guarded(ranks, [&] {
    const std::vector<MPI_Datatype> out_list = types_of(out_types, ranks);
    const std::vector<MPI_Datatype> in_list = in_place ? out_list : types_of(in_types, ranks);
    return function(buffer(in), in_c<const int*>(in_counts), in_c<const int*>(in_places),
                    in_list.data(), buffer(out), in_c<const int*>(out_counts),
                    in_c<const int*>(out_places), out_list.data(), ranks);
  });
}

// In Fortran 2008 the error argument is optional.
void tell(MPI_Fint* error, int came) {
  if (error != nullptr) *error = came;
}
void give(MPI_Fint* request, const MPI_Request& known, MPI_Fint* error, int came) {
  if (came == MPI_SUCCESS) *request = MPI_Request_c2f(known);
  tell(error, came);
}

}  // namespace
}  // namespace rankine::mpi

using namespace rankine::mpi;

// The functions that a Fortran 2008 module calls have other names: all functions of Open MPI, and
// MPICH's functions without buffers.
#ifdef OPEN_MPI
#define RANKINE_ALSO(name, ...) [[gnu::alias("mpi_" #name "_")]] void ompi_##name##_f(__VA_ARGS__);
#define RANKINE_ALSO_WITH_BUFFERS(name, ...) RANKINE_ALSO(name, __VA_ARGS__)
#else
#define RANKINE_ALSO(name, ...) \
  [[gnu::alias("mpi_" #name "_")]] void mpi_##name##_f08_(__VA_ARGS__);
#define RANKINE_ALSO_WITH_BUFFERS(name, ...)
#endif

extern "C" {

#define RANKINE_ADDRESS(type, name) void *name,
#define RANKINE_WAITED_FOR(Name, name, PARAMETERS)                              \
  void mpi_##name##_(PARAMETERS(RANKINE_ADDRESS) void* comm, MPI_Fint* error) { \
    tell(error, call(MPI_##Name, PARAMETERS(RANKINE_GIVEN) comm));              \
  }                                                                             \
  RANKINE_ALSO_WITH_BUFFERS(name, PARAMETERS(RANKINE_ADDRESS) void*, MPI_Fint*)
RANKINE_FUNCTIONS(RANKINE_WAITED_FOR, RANKINE_WAITED_FOR)

#define RANKINE_STARTED(Name, name, PARAMETERS)                                           \
  void mpi_i##name##_(PARAMETERS(RANKINE_ADDRESS) void* comm, MPI_Fint* request,          \
                      MPI_Fint* error) {                                                  \
    MPI_Request made = MPI_REQUEST_NULL;                                                  \
    give(request, made, error, call(MPI_I##name, PARAMETERS(RANKINE_GIVEN) comm, &made)); \
  }                                                                                       \
  RANKINE_ALSO_WITH_BUFFERS(i##name, PARAMETERS(RANKINE_ADDRESS) void*, MPI_Fint*, MPI_Fint*)
// Started functions with own lengths are never taken, so they stay MPI's.
#define RANKINE_LEFT(Name, name, PARAMETERS)
RANKINE_FUNCTIONS(RANKINE_STARTED, RANKINE_LEFT)

// As in C (preload.cc).
#define RANKINE_PREPARED(MPI_FUNCTION, fortran_function, PARAMETERS)                             \
  int MPI_FUNCTION(PARAMETERS(RANKINE_DECLARED) MPI_Comm comm, MPI_Info info,                    \
                   MPI_Request* request);                                                        \
  void fortran_function(PARAMETERS(RANKINE_ADDRESS) void* comm, void* info, MPI_Fint* request,   \
                        MPI_Fint* error) {                                                       \
    MPI_Request made = MPI_REQUEST_NULL;                                                         \
    give(request, made, error, call(MPI_FUNCTION, PARAMETERS(RANKINE_GIVEN) comm, info, &made)); \
  }
#if MPI_VERSION >= 4
#define RANKINE_PREPARED_MPI(Name, name, PARAMETERS)                                          \
  RANKINE_PREPARED(MPI_##Name##_init, mpi_##name##_init_, PARAMETERS)                         \
  RANKINE_ALSO_WITH_BUFFERS(name##_init, PARAMETERS(RANKINE_ADDRESS) void*, void*, MPI_Fint*, \
                            MPI_Fint*)
RANKINE_FUNCTIONS(RANKINE_PREPARED_MPI, RANKINE_LEFT)
#endif
#ifdef OPEN_MPI
#define RANKINE_PREPARED_MPIX(Name, name, PARAMETERS)                   \
  RANKINE_PREPARED(MPIX_##Name##_init, mpix_##name##_init_, PARAMETERS) \
  [[gnu::alias("mpix_" #name "_init_")]] void ompix_##name##_init_f(    \
      PARAMETERS(RANKINE_ADDRESS) void*, void*, MPI_Fint*, MPI_Fint*);
RANKINE_FUNCTIONS(RANKINE_PREPARED_MPIX, RANKINE_LEFT)
#endif

// Functions for prepared requests.
void mpi_start_(MPI_Fint* request, MPI_Fint* error) {
  MPI_Request known = MPI_Request_f2c(*request);
  give(request, known, error, MPI_Start(&known));
}

void mpi_startall_(MPI_Fint* count, MPI_Fint* requests, MPI_Fint* error) {
  tell(error, guarded(MPI_COMM_WORLD, [&] {
         std::vector<MPI_Request> known;
         for (int i = 0; i < *count; ++i) known.push_back(MPI_Request_f2c(requests[i]));
         const int came = MPI_Startall(*count, known.data());
         for (int i = 0; came == MPI_SUCCESS && i < *count; ++i)
           requests[i] = MPI_Request_c2f(known[static_cast<std::size_t>(i)]);
         return came;
       }));
}

void mpi_request_free_(MPI_Fint* request, MPI_Fint* error) {
  MPI_Request known = MPI_Request_f2c(*request);
  give(request, known, error, MPI_Request_free(&known));
}

// MPI's Fortran init functions initialize more than the C functions.
void mpi_init_(MPI_Fint* error) {
  tell(error, start_mpi([] { return started_by("mpi_init_"); }));
}

void mpi_init_thread_(MPI_Fint* wanted, MPI_Fint* given, MPI_Fint* error) {
  tell(error, start_mpi([&] { return started_by("mpi_init_thread_", wanted, given); }));
}

void mpi_finalize_(MPI_Fint* error) { tell(error, MPI_Finalize()); }

RANKINE_ALSO(init, MPI_Fint*)
RANKINE_ALSO(init_thread, MPI_Fint*, MPI_Fint*, MPI_Fint*)
RANKINE_ALSO(start, MPI_Fint*, MPI_Fint*)
RANKINE_ALSO(startall, MPI_Fint*, MPI_Fint*, MPI_Fint*)
RANKINE_ALSO(request_free, MPI_Fint*, MPI_Fint*)
RANKINE_ALSO(finalize, MPI_Fint*)
#ifdef MPICH_VERSION
RANKINE_ALSO(barrier, void*, MPI_Fint*)
RANKINE_ALSO(ibarrier, void*, MPI_Fint*, MPI_Fint*)
RANKINE_ALSO(barrier_init, void*, void*, MPI_Fint*, MPI_Fint*)
#endif
}
