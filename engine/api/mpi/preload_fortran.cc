// The same calls of programs in Fortran, whose library of MPI does not pass by C's names: those of
// mpif.h and `use mpi`, and with Open MPI of `use mpi_f08`, as GNU Fortran writes them.
//
// Arguments come by address, handles as numbers, and the constants that stand for buffers as
// addresses of variables that the MPI's Fortran library has.
#include <dlfcn.h>
#include <mpi.h>

#include <cstddef>
#include <vector>

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

MPI_Datatype type_of(const MPI_Fint* type) { return MPI_Type_f2c(*type); }
MPI_Op op_of(const MPI_Fint* op) { return MPI_Op_f2c(*op); }
MPI_Comm comm_of(const MPI_Fint* comm) { return MPI_Comm_f2c(*comm); }
// One for each rank that the communicator's ranks talk to; none, which MPI has an error for, where
// there is no communicator.
std::vector<MPI_Datatype> types_of(const MPI_Fint* types, MPI_Comm comm) {
  int is_inter = 0, ranks = 0;
  if (comm != MPI_COMM_NULL) {
    MPI_Comm_test_inter(comm, &is_inter);
    is_inter != 0 ? MPI_Comm_remote_size(comm, &ranks) : MPI_Comm_size(comm, &ranks);
  }
  std::vector<MPI_Datatype> found;
  for (int r = 0; r < ranks; ++r) found.push_back(type_of(types + r));
  return found;
}
// Whose request Fortran knows as a number.
template <class Start>
void start(MPI_Fint* request, MPI_Fint* error, const Start& started) {
  MPI_Request made = MPI_REQUEST_NULL;
  *error = started(&made);
  if (*error == MPI_SUCCESS) *request = MPI_Request_c2f(made);
}
// Numbers that C has as int.
static_assert(sizeof(MPI_Fint) == sizeof(int));

}  // namespace
}  // namespace rankine::mpi

using namespace rankine::mpi;

extern "C" {

void mpi_allreduce_(void* in, void* out, MPI_Fint* count, MPI_Fint* type, MPI_Fint* op,
                    MPI_Fint* comm, MPI_Fint* error) {
  *error = MPI_Allreduce(buffer(in), buffer(out), *count, type_of(type), op_of(op), comm_of(comm));
}

void mpi_reduce_(void* in, void* out, MPI_Fint* count, MPI_Fint* type, MPI_Fint* op, MPI_Fint* root,
                 MPI_Fint* comm, MPI_Fint* error) {
  *error =
      MPI_Reduce(buffer(in), buffer(out), *count, type_of(type), op_of(op), *root, comm_of(comm));
}

void mpi_scan_(void* in, void* out, MPI_Fint* count, MPI_Fint* type, MPI_Fint* op, MPI_Fint* comm,
               MPI_Fint* error) {
  *error = MPI_Scan(buffer(in), buffer(out), *count, type_of(type), op_of(op), comm_of(comm));
}

void mpi_exscan_(void* in, void* out, MPI_Fint* count, MPI_Fint* type, MPI_Fint* op, MPI_Fint* comm,
                 MPI_Fint* error) {
  *error = MPI_Exscan(buffer(in), buffer(out), *count, type_of(type), op_of(op), comm_of(comm));
}

void mpi_reduce_scatter_(void* in, void* out, MPI_Fint* counts, MPI_Fint* type, MPI_Fint* op,
                         MPI_Fint* comm, MPI_Fint* error) {
  *error =
      MPI_Reduce_scatter(buffer(in), buffer(out), counts, type_of(type), op_of(op), comm_of(comm));
}

void mpi_reduce_scatter_block_(void* in, void* out, MPI_Fint* count, MPI_Fint* type, MPI_Fint* op,
                               MPI_Fint* comm, MPI_Fint* error) {
  *error = MPI_Reduce_scatter_block(buffer(in), buffer(out), *count, type_of(type), op_of(op),
                                    comm_of(comm));
}

void mpi_bcast_(void* data, MPI_Fint* count, MPI_Fint* type, MPI_Fint* root, MPI_Fint* comm,
                MPI_Fint* error) {
  *error = MPI_Bcast(buffer(data), *count, type_of(type), *root, comm_of(comm));
}

void mpi_allgather_(void* in, MPI_Fint* in_count, MPI_Fint* in_type, void* out, MPI_Fint* out_count,
                    MPI_Fint* out_type, MPI_Fint* comm, MPI_Fint* error) {
  *error = MPI_Allgather(buffer(in), *in_count, type_of(in_type), buffer(out), *out_count,
                         type_of(out_type), comm_of(comm));
}

void mpi_allgatherv_(void* in, MPI_Fint* in_count, MPI_Fint* in_type, void* out, MPI_Fint* counts,
                     MPI_Fint* places, MPI_Fint* out_type, MPI_Fint* comm, MPI_Fint* error) {
  *error = MPI_Allgatherv(buffer(in), *in_count, type_of(in_type), buffer(out), counts, places,
                          type_of(out_type), comm_of(comm));
}

void mpi_alltoall_(void* in, MPI_Fint* in_count, MPI_Fint* in_type, void* out, MPI_Fint* out_count,
                   MPI_Fint* out_type, MPI_Fint* comm, MPI_Fint* error) {
  *error = MPI_Alltoall(buffer(in), *in_count, type_of(in_type), buffer(out), *out_count,
                        type_of(out_type), comm_of(comm));
}

void mpi_alltoallv_(void* in, MPI_Fint* in_counts, MPI_Fint* in_places, MPI_Fint* in_type,
                    void* out, MPI_Fint* out_counts, MPI_Fint* out_places, MPI_Fint* out_type,
                    MPI_Fint* comm, MPI_Fint* error) {
  *error = MPI_Alltoallv(buffer(in), in_counts, in_places, type_of(in_type), buffer(out),
                         out_counts, out_places, type_of(out_type), comm_of(comm));
}

void mpi_alltoallw_(void* in, MPI_Fint* in_counts, MPI_Fint* in_places, MPI_Fint* in_types,
                    void* out, MPI_Fint* out_counts, MPI_Fint* out_places, MPI_Fint* out_types,
                    MPI_Fint* comm, MPI_Fint* error) {
  const bool in_place = buffer(in) == MPI_IN_PLACE;  // then in_types may be anything
  const std::vector<MPI_Datatype> out_list = types_of(out_types, comm_of(comm));
  const std::vector<MPI_Datatype> in_list = in_place ? out_list : types_of(in_types, comm_of(comm));
  *error = MPI_Alltoallw(buffer(in), in_counts, in_places, in_list.data(), buffer(out), out_counts,
                         out_places, out_list.data(), comm_of(comm));
}

void mpi_gatherv_(void* in, MPI_Fint* in_count, MPI_Fint* in_type, void* out, MPI_Fint* counts,
                  MPI_Fint* places, MPI_Fint* out_type, MPI_Fint* root, MPI_Fint* comm,
                  MPI_Fint* error) {
  *error = MPI_Gatherv(buffer(in), *in_count, type_of(in_type), buffer(out), counts, places,
                       type_of(out_type), *root, comm_of(comm));
}

void mpi_scatterv_(void* in, MPI_Fint* counts, MPI_Fint* places, MPI_Fint* in_type, void* out,
                   MPI_Fint* out_count, MPI_Fint* out_type, MPI_Fint* root, MPI_Fint* comm,
                   MPI_Fint* error) {
  *error = MPI_Scatterv(buffer(in), counts, places, type_of(in_type), buffer(out), *out_count,
                        type_of(out_type), *root, comm_of(comm));
}

void mpi_gather_(void* in, MPI_Fint* in_count, MPI_Fint* in_type, void* out, MPI_Fint* out_count,
                 MPI_Fint* out_type, MPI_Fint* root, MPI_Fint* comm, MPI_Fint* error) {
  *error = MPI_Gather(buffer(in), *in_count, type_of(in_type), buffer(out), *out_count,
                      type_of(out_type), *root, comm_of(comm));
}

void mpi_scatter_(void* in, MPI_Fint* in_count, MPI_Fint* in_type, void* out, MPI_Fint* out_count,
                  MPI_Fint* out_type, MPI_Fint* root, MPI_Fint* comm, MPI_Fint* error) {
  *error = MPI_Scatter(buffer(in), *in_count, type_of(in_type), buffer(out), *out_count,
                       type_of(out_type), *root, comm_of(comm));
}

void mpi_barrier_(MPI_Fint* comm, MPI_Fint* error) { *error = MPI_Barrier(comm_of(comm)); }

void mpi_iallreduce_(void* in, void* out, MPI_Fint* count, MPI_Fint* type, MPI_Fint* op,
                     MPI_Fint* comm, MPI_Fint* request, MPI_Fint* error) {
  start(request, error, [&](MPI_Request* made) {
    return MPI_Iallreduce(buffer(in), buffer(out), *count, type_of(type), op_of(op), comm_of(comm),
                          made);
  });
}

void mpi_ireduce_(void* in, void* out, MPI_Fint* count, MPI_Fint* type, MPI_Fint* op,
                  MPI_Fint* root, MPI_Fint* comm, MPI_Fint* request, MPI_Fint* error) {
  start(request, error, [&](MPI_Request* made) {
    return MPI_Ireduce(buffer(in), buffer(out), *count, type_of(type), op_of(op), *root,
                       comm_of(comm), made);
  });
}

void mpi_iscan_(void* in, void* out, MPI_Fint* count, MPI_Fint* type, MPI_Fint* op, MPI_Fint* comm,
                MPI_Fint* request, MPI_Fint* error) {
  start(request, error, [&](MPI_Request* made) {
    return MPI_Iscan(buffer(in), buffer(out), *count, type_of(type), op_of(op), comm_of(comm),
                     made);
  });
}

void mpi_iexscan_(void* in, void* out, MPI_Fint* count, MPI_Fint* type, MPI_Fint* op,
                  MPI_Fint* comm, MPI_Fint* request, MPI_Fint* error) {
  start(request, error, [&](MPI_Request* made) {
    return MPI_Iexscan(buffer(in), buffer(out), *count, type_of(type), op_of(op), comm_of(comm),
                       made);
  });
}

void mpi_ireduce_scatter_(void* in, void* out, MPI_Fint* counts, MPI_Fint* type, MPI_Fint* op,
                          MPI_Fint* comm, MPI_Fint* request, MPI_Fint* error) {
  start(request, error, [&](MPI_Request* made) {
    return MPI_Ireduce_scatter(buffer(in), buffer(out), counts, type_of(type), op_of(op),
                               comm_of(comm), made);
  });
}

void mpi_ireduce_scatter_block_(void* in, void* out, MPI_Fint* count, MPI_Fint* type, MPI_Fint* op,
                                MPI_Fint* comm, MPI_Fint* request, MPI_Fint* error) {
  start(request, error, [&](MPI_Request* made) {
    return MPI_Ireduce_scatter_block(buffer(in), buffer(out), *count, type_of(type), op_of(op),
                                     comm_of(comm), made);
  });
}

void mpi_ibcast_(void* data, MPI_Fint* count, MPI_Fint* type, MPI_Fint* root, MPI_Fint* comm,
                 MPI_Fint* request, MPI_Fint* error) {
  start(request, error, [&](MPI_Request* made) {
    return MPI_Ibcast(buffer(data), *count, type_of(type), *root, comm_of(comm), made);
  });
}

void mpi_iallgather_(void* in, MPI_Fint* in_count, MPI_Fint* in_type, void* out,
                     MPI_Fint* out_count, MPI_Fint* out_type, MPI_Fint* comm, MPI_Fint* request,
                     MPI_Fint* error) {
  start(request, error, [&](MPI_Request* made) {
    return MPI_Iallgather(buffer(in), *in_count, type_of(in_type), buffer(out), *out_count,
                          type_of(out_type), comm_of(comm), made);
  });
}

void mpi_iallgatherv_(void* in, MPI_Fint* in_count, MPI_Fint* in_type, void* out, MPI_Fint* counts,
                      MPI_Fint* places, MPI_Fint* out_type, MPI_Fint* comm, MPI_Fint* request,
                      MPI_Fint* error) {
  start(request, error, [&](MPI_Request* made) {
    return MPI_Iallgatherv(buffer(in), *in_count, type_of(in_type), buffer(out), counts, places,
                           type_of(out_type), comm_of(comm), made);
  });
}

void mpi_ialltoall_(void* in, MPI_Fint* in_count, MPI_Fint* in_type, void* out, MPI_Fint* out_count,
                    MPI_Fint* out_type, MPI_Fint* comm, MPI_Fint* request, MPI_Fint* error) {
  start(request, error, [&](MPI_Request* made) {
    return MPI_Ialltoall(buffer(in), *in_count, type_of(in_type), buffer(out), *out_count,
                         type_of(out_type), comm_of(comm), made);
  });
}

void mpi_igather_(void* in, MPI_Fint* in_count, MPI_Fint* in_type, void* out, MPI_Fint* out_count,
                  MPI_Fint* out_type, MPI_Fint* root, MPI_Fint* comm, MPI_Fint* request,
                  MPI_Fint* error) {
  start(request, error, [&](MPI_Request* made) {
    return MPI_Igather(buffer(in), *in_count, type_of(in_type), buffer(out), *out_count,
                       type_of(out_type), *root, comm_of(comm), made);
  });
}

void mpi_iscatter_(void* in, MPI_Fint* in_count, MPI_Fint* in_type, void* out, MPI_Fint* out_count,
                   MPI_Fint* out_type, MPI_Fint* root, MPI_Fint* comm, MPI_Fint* request,
                   MPI_Fint* error) {
  start(request, error, [&](MPI_Request* made) {
    return MPI_Iscatter(buffer(in), *in_count, type_of(in_type), buffer(out), *out_count,
                        type_of(out_type), *root, comm_of(comm), made);
  });
}

void mpi_ibarrier_(MPI_Fint* comm, MPI_Fint* request, MPI_Fint* error) {
  start(request, error, [&](MPI_Request* made) { return MPI_Ibarrier(comm_of(comm), made); });
}

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

#ifdef OPEN_MPI
// What its modules for Fortran 2008 call.
#define RANKINE_ALSO(name) [[gnu::alias("mpi_" #name "_")]] void ompi_##name##_f
RANKINE_ALSO(allreduce)(void*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(reduce)
(void*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(scan)(void*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(exscan)(void*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(reduce_scatter)(void*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(reduce_scatter_block)
(void*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(bcast)(void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(allgather)
(void*, MPI_Fint*, MPI_Fint*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(allgatherv)
(void*, MPI_Fint*, MPI_Fint*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(alltoall)
(void*, MPI_Fint*, MPI_Fint*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(alltoallv)
(void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*,
 MPI_Fint*);
RANKINE_ALSO(alltoallw)
(void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*,
 MPI_Fint*);
RANKINE_ALSO(gatherv)
(void*, MPI_Fint*, MPI_Fint*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*,
 MPI_Fint*);
RANKINE_ALSO(scatterv)
(void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*,
 MPI_Fint*);
RANKINE_ALSO(gather)
(void*, MPI_Fint*, MPI_Fint*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(scatter)
(void*, MPI_Fint*, MPI_Fint*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(barrier)(MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(iallreduce)
(void*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(ireduce)
(void*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(iscan)(void*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(iexscan)
(void*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(ireduce_scatter)
(void*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(ireduce_scatter_block)
(void*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(ibcast)(void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(iallgather)
(void*, MPI_Fint*, MPI_Fint*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(iallgatherv)
(void*, MPI_Fint*, MPI_Fint*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*,
 MPI_Fint*);
RANKINE_ALSO(ialltoall)
(void*, MPI_Fint*, MPI_Fint*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(igather)
(void*, MPI_Fint*, MPI_Fint*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*,
 MPI_Fint*);
RANKINE_ALSO(iscatter)
(void*, MPI_Fint*, MPI_Fint*, void*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*,
 MPI_Fint*);
RANKINE_ALSO(ibarrier)(MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(start)(MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(startall)(MPI_Fint*, MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(request_free)(MPI_Fint*, MPI_Fint*);
RANKINE_ALSO(finalize)(MPI_Fint*);
#undef RANKINE_ALSO
#endif
}
