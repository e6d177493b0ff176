// Collective calls that are MPI's own, and counted for the report: those that a program starts
// where all ranks would have to wait for each other's lengths first (engine/DESIGN.md).
#include <mpi.h>

#include "engine/api/mpi/preload_report.h"
#include "engine/api/mpi/preload_settings.h"

namespace rankine::mpi {
namespace {

void count(Function function) {
  if (preload_settings().takes) report().passed(function, Passed::not_waited_for, Form::started);
}

}  // namespace
}  // namespace rankine::mpi

using namespace rankine::mpi;

#define RANKINE_LIST(...) __VA_ARGS__
#define RANKINE_STARTED(function, arguments, ...)             \
  int MPI_I##function(__VA_ARGS__, MPI_Request* request) {    \
    count(Function::function);                                \
    return PMPI_I##function(RANKINE_LIST arguments, request); \
  }

extern "C" {

RANKINE_STARTED(alltoallv,
                (in, in_counts, in_places, in_type, out, out_counts, out_places, out_type, comm),
                const void* in, const int* in_counts, const int* in_places, MPI_Datatype in_type,
                void* out, const int* out_counts, const int* out_places, MPI_Datatype out_type,
                MPI_Comm comm)
RANKINE_STARTED(alltoallw,
                (in, in_counts, in_places, in_types, out, out_counts, out_places, out_types, comm),
                const void* in, const int* in_counts, const int* in_places,
                const MPI_Datatype* in_types, void* out, const int* out_counts,
                const int* out_places, const MPI_Datatype* out_types, MPI_Comm comm)
RANKINE_STARTED(gatherv, (in, in_count, in_type, out, counts, places, out_type, root, comm),
                const void* in, int in_count, MPI_Datatype in_type, void* out, const int* counts,
                const int* places, MPI_Datatype out_type, int root, MPI_Comm comm)
RANKINE_STARTED(scatterv, (in, counts, places, in_type, out, out_count, out_type, root, comm),
                const void* in, const int* counts, const int* places, MPI_Datatype in_type,
                void* out, int out_count, MPI_Datatype out_type, int root, MPI_Comm comm)
}
