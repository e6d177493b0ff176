// Takes over the collective calls of an unmodified MPI program through MPI's profiling interface:
//
//   LD_PRELOAD=librankine_mpi_openmpi.so RANKINE_MPI=report mpirun -n 4 program
//
// Every function of RANKINE_FUNCTIONS (preload_report.h) is defined here in three forms: blocking,
// started and prepared. preload_call.h decides which calls are taken, and preload_collectives.cc
// prepares their buffers.
//
// RANKINE_MPI (preload_report.h) switches the library on or off, chooses the transport, and
// requests a report at the end.
#include <mpi.h>

#include <cstdio>
#include <functional>
#include <memory>

#include "engine/api/mpi/preload_call.h"
#include "engine/api/mpi/preload_communicators.h"
#include "engine/api/mpi/preload_presence.h"
#include "engine/api/mpi/preload_report.h"
#include "engine/api/mpi/preload_requests.h"

namespace rankine::mpi {
namespace {

// Prepares a call: runs `make` now, to decide if the call is taken, and again at each start.
int prepare(Function function, MPI_Comm comm, MPI_Request* request,
            const std::function<int(InterceptedCall&)>& make, const std::function<int()>& pass_on) {
  const auto prepared = std::make_shared<Prepared>();
  InterceptedCall now(function, {Form::prepared, request, &prepared}, comm, pass_on);
  const int error = make(now);
  if (prepared->channel == nullptr) return error;
  prepared->start = [function, make](const std::shared_ptr<Prepared>& mine) {
    // MPI requires that the program keeps the arguments unchanged.
    InterceptedCall again(function, {Form::prepared, nullptr, &mine}, mine->channel->on->comm,
                          [] { return MPI_ERR_ARG; });
    return make(again);
  };
  const Status status = prepared_calls().add(prepared, request);
  if (status.ok()) return MPI_SUCCESS;
  std::fprintf(stderr, "rankine: %s\n", status.text().c_str());
  PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

int end_all() {
  prepared_calls().end();
  communicators().forget_all();
  requests().end();
  if (preload_settings().reports) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) report().print(rank, ranks);
  }
  return MPI_SUCCESS;
}

}  // namespace
}  // namespace rankine::mpi

using namespace rankine;
using namespace rankine::mpi;

extern "C" {

// MPI_FUNCTION is MPI_Bcast or MPI_Bcast_c; DECLARED is the macro that declares its parameters.
#define RANKINE_WAITED_FOR_AS(MPI_FUNCTION, name, PARAMETERS, DECLARED)                     \
  int MPI_FUNCTION(PARAMETERS(DECLARED) MPI_Comm comm) {                                    \
    return guarded(comm, [&] {                                                              \
      const auto pass_on = [&] { return P##MPI_FUNCTION(PARAMETERS(RANKINE_GIVEN) comm); }; \
      InterceptedCall call(Function::name, {}, comm, std::ref(pass_on));                    \
      return rankine::mpi::name(call PARAMETERS(RANKINE_ALSO_GIVEN));                       \
    });                                                                                     \
  }
#define RANKINE_WAITED_FOR(Name, name, PARAMETERS) \
  RANKINE_WAITED_FOR_AS(MPI_##Name, name, PARAMETERS, RANKINE_DECLARED)
RANKINE_FUNCTIONS(RANKINE_WAITED_FOR, RANKINE_WAITED_FOR)

#define RANKINE_STARTED_AS(MPI_FUNCTION, name, PARAMETERS, DECLARED)                     \
  int MPI_FUNCTION(PARAMETERS(DECLARED) MPI_Comm comm, MPI_Request* request) {           \
    return guarded(comm, [&] {                                                           \
      const auto pass_on = [&] {                                                         \
        return P##MPI_FUNCTION(PARAMETERS(RANKINE_GIVEN) comm, request);                 \
      };                                                                                 \
      InterceptedCall call(Function::name, {rankine::mpi::Form::started, request}, comm, \
                           std::ref(pass_on));                                           \
      return rankine::mpi::name(call PARAMETERS(RANKINE_ALSO_GIVEN));                    \
    });                                                                                  \
  }
#define RANKINE_STARTED(Name, name, PARAMETERS) \
  RANKINE_STARTED_AS(MPI_I##name, name, PARAMETERS, RANKINE_DECLARED)
RANKINE_FUNCTIONS(RANKINE_STARTED, RANKINE_STARTED)

// Standard since MPI 4. Before, Open MPI has them under other names (mpi-ext.h), unless it was
// built without them.
#define RANKINE_PREPARED_AS(MPI_FUNCTION, name, PARAMETERS, DECLARED)                         \
  [[gnu::weak]] int P##MPI_FUNCTION(PARAMETERS(DECLARED) MPI_Comm comm, MPI_Info info,        \
                                    MPI_Request* request);                                    \
  int MPI_FUNCTION(PARAMETERS(DECLARED) MPI_Comm comm, MPI_Info info, MPI_Request* request) { \
    return guarded(comm, [&] {                                                                \
      return prepare(                                                                         \
          Function::name, comm, request,                                                      \
          [=](InterceptedCall& call) {                                                        \
            return rankine::mpi::name(call PARAMETERS(RANKINE_ALSO_GIVEN));                   \
          },                                                                                  \
          [&] { return P##MPI_FUNCTION(PARAMETERS(RANKINE_GIVEN) comm, info, request); });    \
    });                                                                                       \
  }
#ifdef OPEN_MPI
#define RANKINE_PREPARED_MPIX(Name, name, PARAMETERS) \
  RANKINE_PREPARED_AS(MPIX_##Name##_init, name, PARAMETERS, RANKINE_DECLARED)
RANKINE_FUNCTIONS(RANKINE_PREPARED_MPIX, RANKINE_PREPARED_MPIX)
#endif

#if MPI_VERSION >= 4
#define RANKINE_PREPARED_MPI(Name, name, PARAMETERS) \
  RANKINE_PREPARED_AS(MPI_##Name##_init, name, PARAMETERS, RANKINE_DECLARED)
RANKINE_FUNCTIONS(RANKINE_PREPARED_MPI, RANKINE_PREPARED_MPI)

// Functions with large counts; a barrier has none. Ranks may mix them with the others.
#define RANKINE_LARGE(Name, name, PARAMETERS)                                     \
  RANKINE_WAITED_FOR_AS(MPI_##Name##_c, name, PARAMETERS, RANKINE_DECLARED_LARGE) \
  RANKINE_STARTED_AS(MPI_I##name##_c, name, PARAMETERS, RANKINE_DECLARED_LARGE)   \
  RANKINE_PREPARED_AS(MPI_##Name##_init_c, name, PARAMETERS, RANKINE_DECLARED_LARGE)
RANKINE_FUNCTIONS_WITH_COUNTS(RANKINE_LARGE)
#endif

int MPI_Finalize() {
  static_cast<void>(guarded(MPI_COMM_NULL, [] { return end_all(); }));
  return PMPI_Finalize();
}
}
