// Collective calls that are MPI's own, and counted for the report: those that a program starts, or
// makes ready to be started, where all ranks would have to wait for each other's lengths first
// (engine/DESIGN.md).
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>  // calls that are made ready, before MPI had them
#endif

#include "engine/api/mpi/preload_report.h"
#include "engine/api/mpi/preload_settings.h"

namespace rankine::mpi {
namespace {

void count(Function function, Form form) {
  if (preload_settings().takes) report().passed(function, Passed::not_waited_for, form);
}

}  // namespace
}  // namespace rankine::mpi

using namespace rankine::mpi;

#define RANKINE_LIST(...) __VA_ARGS__
#define RANKINE_PREPARED(name, function, arguments, ...)       \
  int name(__VA_ARGS__, MPI_Info info, MPI_Request* request) { \
    count(Function::function, Form::prepared);                 \
    return P##name(RANKINE_LIST arguments, info, request);     \
  }
#if MPI_VERSION >= 4
#define RANKINE_OF_MPI_4 RANKINE_PREPARED
#else
#define RANKINE_OF_MPI_4(...)
#endif
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
#define RANKINE_OF_OPEN_MPI RANKINE_PREPARED
#else
#define RANKINE_OF_OPEN_MPI(...)
#endif
#define RANKINE_STARTED(function, name, arguments, ...)                 \
  int MPI_I##function(__VA_ARGS__, MPI_Request* request) {              \
    count(Function::function, Form::started);                           \
    return PMPI_I##function(RANKINE_LIST arguments, request);           \
  }                                                                     \
  RANKINE_OF_MPI_4(MPI_##name##_init, function, arguments, __VA_ARGS__) \
  RANKINE_OF_OPEN_MPI(MPIX_##name##_init, function, arguments, __VA_ARGS__)

extern "C" {

RANKINE_STARTED(alltoallv, Alltoallv,
                (in, in_counts, in_places, in_type, out, out_counts, out_places, out_type, comm),
                const void* in, const int* in_counts, const int* in_places, MPI_Datatype in_type,
                void* out, const int* out_counts, const int* out_places, MPI_Datatype out_type,
                MPI_Comm comm)
RANKINE_STARTED(alltoallw, Alltoallw,
                (in, in_counts, in_places, in_types, out, out_counts, out_places, out_types, comm),
                const void* in, const int* in_counts, const int* in_places,
                const MPI_Datatype* in_types, void* out, const int* out_counts,
                const int* out_places, const MPI_Datatype* out_types, MPI_Comm comm)
RANKINE_STARTED(gatherv, Gatherv,
                (in, in_count, in_type, out, counts, places, out_type, root, comm), const void* in,
                int in_count, MPI_Datatype in_type, void* out, const int* counts, const int* places,
                MPI_Datatype out_type, int root, MPI_Comm comm)
RANKINE_STARTED(scatterv, Scatterv,
                (in, counts, places, in_type, out, out_count, out_type, root, comm), const void* in,
                const int* counts, const int* places, MPI_Datatype in_type, void* out,
                int out_count, MPI_Datatype out_type, int root, MPI_Comm comm)
}
