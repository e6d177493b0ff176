// Wraps the functions that wait for requests, test them or query their status, for MPIs that have
// no progress callback (preload_requests.h): each wrapper first makes started calls progress.
//
// MPICH's functions of mpif.h call the C functions, but its Fortran 2008 module calls PMPI
// directly, so the module's functions are wrapped too. There a request is a structure that contains
// only the C handle.
#include <mpi.h>

#ifndef OPEN_MPI

#include <dlfcn.h>

#include <memory>

#include "engine/api/mpi/preload_communicators.h"
#include "engine/api/mpi/preload_presence.h"
#include "engine/api/mpi/preload_requests.h"

namespace rankine::mpi {
namespace {

bool move_on(int count, const MPI_Request these[]) {
  bool is_under_way = false;
  guarded(MPI_COMM_NULL, [&] {
    const auto started = requests().under_way(count, these);
    const auto prepared = started ? nullptr : prepared_calls().under_way(count, these);
    is_under_way = started || prepared;
    if (!is_under_way) return MPI_SUCCESS;
    requests().move_on_in_mpi();
    // Also make MPI progress: other ranks may wait for its messages before they start their calls.
    const MPI_Comm comm = started ? started->comm : prepared->channel->on->comm;
    int flag = 0;
    return PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE);
  });
  return is_under_way;
}
void move_on_until_over(int count, const MPI_Request these[]) {
  for (int i = 0; these != nullptr && i < count; ++i) {
    while (move_on(1, &these[i])) {
    }
  }
}

}  // namespace
}  // namespace rankine::mpi

// Calls MPI's Fortran function of that name with the program's arguments.
#define RANKINE_NEXT(function, ...)                                                              \
  [&](auto*... given) {                                                                          \
    static const auto next = reinterpret_cast<decltype(&function)>(dlsym(RTLD_NEXT, #function)); \
    next(given...);                                                                              \
  }(__VA_ARGS__)

using namespace rankine::mpi;

extern "C" {

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  move_on_until_over(1, request);
  return PMPI_Wait(request, status);
}

int MPI_Waitall(int count, MPI_Request these[], MPI_Status statuses[]) {
  move_on_until_over(count, these);
  return PMPI_Waitall(count, these, statuses);
}

int MPI_Waitany(int count, MPI_Request these[], int* index, MPI_Status* status) {
  while (move_on(count, these)) {
    int flag = 0;
    const int error = PMPI_Testany(count, these, index, &flag, status);
    if (flag != 0 || error != MPI_SUCCESS) return error;
  }
  return PMPI_Waitany(count, these, index, status);
}

int MPI_Waitsome(int count, MPI_Request these[], int* ended, int indices[], MPI_Status statuses[]) {
  while (move_on(count, these)) {
    const int error = PMPI_Testsome(count, these, ended, indices, statuses);
    if (error != MPI_SUCCESS || *ended != 0) return error;
  }
  return PMPI_Waitsome(count, these, ended, indices, statuses);
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  move_on(1, request);
  return PMPI_Test(request, flag, status);
}

int MPI_Testall(int count, MPI_Request these[], int* flag, MPI_Status statuses[]) {
  move_on(count, these);
  return PMPI_Testall(count, these, flag, statuses);
}

int MPI_Testany(int count, MPI_Request these[], int* index, int* flag, MPI_Status* status) {
  move_on(count, these);
  return PMPI_Testany(count, these, index, flag, status);
}

int MPI_Testsome(int count, MPI_Request these[], int* ended, int indices[], MPI_Status statuses[]) {
  move_on(count, these);
  return PMPI_Testsome(count, these, ended, indices, statuses);
}

int MPI_Request_get_status(MPI_Request request, int* is_complete, MPI_Status* status) {
  requests().move_on_in_mpi();
  return PMPI_Request_get_status(request, is_complete, status);
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)

int MPI_Request_get_status_all(int count, const MPI_Request these[], int* are_complete,
                               MPI_Status statuses[]) {
  requests().move_on_in_mpi();
  return PMPI_Request_get_status_all(count, these, are_complete, statuses);
}

int MPI_Request_get_status_any(int count, const MPI_Request these[], int* index, int* is_complete,
                               MPI_Status* status) {
  requests().move_on_in_mpi();
  return PMPI_Request_get_status_any(count, these, index, is_complete, status);
}

int MPI_Request_get_status_some(int count, const MPI_Request these[], int* complete, int indices[],
                                MPI_Status statuses[]) {
  requests().move_on_in_mpi();
  return PMPI_Request_get_status_some(count, these, complete, indices, statuses);
}

#endif

#ifdef MPICH_VERSION

// The error argument is optional.
void mpi_request_get_status_f08_(MPI_Request* request, MPI_Fint* is_complete, void* status,
                                 MPI_Fint* error) {
  requests().move_on_in_mpi();
  RANKINE_NEXT(mpi_request_get_status_f08_, request, is_complete, status, error);
}

void mpi_test_f08_(MPI_Request* request, MPI_Fint* flag, void* status, MPI_Fint* error) {
  move_on(1, request);
  RANKINE_NEXT(mpi_test_f08_, request, flag, status, error);
}

void mpi_testall_f08_(MPI_Fint* count, MPI_Request these[], MPI_Fint* flag, void* statuses,
                      MPI_Fint* error) {
  move_on(*count, these);
  RANKINE_NEXT(mpi_testall_f08_, count, these, flag, statuses, error);
}

void mpi_testany_f08_(MPI_Fint* count, MPI_Request these[], MPI_Fint* index, MPI_Fint* flag,
                      void* status, MPI_Fint* error) {
  move_on(*count, these);
  RANKINE_NEXT(mpi_testany_f08_, count, these, index, flag, status, error);
}

void mpi_testsome_f08_(MPI_Fint* count, MPI_Request these[], MPI_Fint* ended, MPI_Fint* indices,
                       void* statuses, MPI_Fint* error) {
  move_on(*count, these);
  RANKINE_NEXT(mpi_testsome_f08_, count, these, ended, indices, statuses, error);
}

void mpi_wait_f08_(MPI_Request* request, void* status, MPI_Fint* error) {
  move_on_until_over(1, request);
  RANKINE_NEXT(mpi_wait_f08_, request, status, error);
}

void mpi_waitall_f08_(MPI_Fint* count, MPI_Request these[], void* statuses, MPI_Fint* error) {
  move_on_until_over(*count, these);
  RANKINE_NEXT(mpi_waitall_f08_, count, these, statuses, error);
}

void mpi_waitany_f08_(MPI_Fint* count, MPI_Request these[], MPI_Fint* index, void* status,
                      MPI_Fint* error) {
  MPI_Fint flag = 0, came = MPI_SUCCESS;
  while (flag == 0 && came == MPI_SUCCESS && move_on(*count, these))
    RANKINE_NEXT(mpi_testany_f08_, count, these, index, &flag, status, &came);
  if (flag == 0 && came == MPI_SUCCESS) {
    RANKINE_NEXT(mpi_waitany_f08_, count, these, index, status, error);
  } else if (error != nullptr) {
    *error = came;
  }
}

void mpi_waitsome_f08_(MPI_Fint* count, MPI_Request these[], MPI_Fint* ended, MPI_Fint* indices,
                       void* statuses, MPI_Fint* error) {
  MPI_Fint came = MPI_SUCCESS;
  *ended = 0;
  while (*ended == 0 && came == MPI_SUCCESS && move_on(*count, these))
    RANKINE_NEXT(mpi_testsome_f08_, count, these, ended, indices, statuses, &came);
  if (*ended == 0 && came == MPI_SUCCESS) {
    RANKINE_NEXT(mpi_waitsome_f08_, count, these, ended, indices, statuses, error);
  } else if (error != nullptr) {
    *error = came;
  }
}

#endif
}

#endif
