// Collective calls that are MPI's own, and counted for the report: those that a program makes ready
// to be started again and again, which ranks may start in different orders; and those that it
// starts where all ranks would have to wait for each other's lengths first (engine/DESIGN.md).
#include <mpi.h>

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
#if MPI_VERSION >= 4
#define RANKINE_PREPARED(function, name, arguments, ...)                    \
  int MPI_##name##_init(__VA_ARGS__, MPI_Info info, MPI_Request* request) { \
    count(Function::function, Form::prepared);                              \
    return PMPI_##name##_init(RANKINE_LIST arguments, info, request);       \
  }
#else
#define RANKINE_PREPARED(...)
#endif
#define RANKINE_STARTED(function, name, arguments, ...)       \
  int MPI_I##function(__VA_ARGS__, MPI_Request* request) {    \
    count(Function::function, Form::started);                 \
    return PMPI_I##function(RANKINE_LIST arguments, request); \
  }                                                           \
  RANKINE_PREPARED(function, name, arguments, __VA_ARGS__)

extern "C" {

RANKINE_PREPARED(allgather, Allgather, (in, in_count, in_type, out, out_count, out_type, comm),
                 const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
                 MPI_Datatype out_type, MPI_Comm comm)
RANKINE_PREPARED(allgatherv, Allgatherv,
                 (in, in_count, in_type, out, counts, places, out_type, comm), const void* in,
                 int in_count, MPI_Datatype in_type, void* out, const int* counts,
                 const int* places, MPI_Datatype out_type, MPI_Comm comm)
RANKINE_PREPARED(allreduce, Allreduce, (in, out, elements, type, op, comm), const void* in,
                 void* out, int elements, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
RANKINE_PREPARED(alltoall, Alltoall, (in, in_count, in_type, out, out_count, out_type, comm),
                 const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
                 MPI_Datatype out_type, MPI_Comm comm)
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
RANKINE_PREPARED(barrier, Barrier, (comm), MPI_Comm comm)
RANKINE_PREPARED(bcast, Bcast, (buffer, elements, type, root, comm), void* buffer, int elements,
                 MPI_Datatype type, int root, MPI_Comm comm)
RANKINE_PREPARED(exscan, Exscan, (in, out, elements, type, op, comm), const void* in, void* out,
                 int elements, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
RANKINE_PREPARED(gather, Gather, (in, in_count, in_type, out, out_count, out_type, root, comm),
                 const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
                 MPI_Datatype out_type, int root, MPI_Comm comm)
RANKINE_STARTED(gatherv, Gatherv,
                (in, in_count, in_type, out, counts, places, out_type, root, comm), const void* in,
                int in_count, MPI_Datatype in_type, void* out, const int* counts, const int* places,
                MPI_Datatype out_type, int root, MPI_Comm comm)
RANKINE_PREPARED(reduce, Reduce, (in, out, elements, type, op, root, comm), const void* in,
                 void* out, int elements, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
RANKINE_PREPARED(reduce_scatter, Reduce_scatter, (in, out, counts, type, op, comm), const void* in,
                 void* out, const int* counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
RANKINE_PREPARED(reduce_scatter_block, Reduce_scatter_block, (in, out, elements, type, op, comm),
                 const void* in, void* out, int elements, MPI_Datatype type, MPI_Op op,
                 MPI_Comm comm)
RANKINE_PREPARED(scan, Scan, (in, out, elements, type, op, comm), const void* in, void* out,
                 int elements, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
RANKINE_PREPARED(scatter, Scatter, (in, in_count, in_type, out, out_count, out_type, root, comm),
                 const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
                 MPI_Datatype out_type, int root, MPI_Comm comm)
RANKINE_STARTED(scatterv, Scatterv,
                (in, counts, places, in_type, out, out_count, out_type, root, comm), const void* in,
                const int* counts, const int* places, MPI_Datatype in_type, void* out,
                int out_count, MPI_Datatype out_type, int root, MPI_Comm comm)
}
