// Where MPICH waits for or tests calls that were made ready, it asks nobody about them, and does
// not call us either (preload_requests.h): so we move them on before it looks.
#include <mpi.h>

#ifdef MPICH_VERSION

#include <memory>

#include "engine/api/mpi/preload_prepared.h"
#include "engine/api/mpi/preload_requests.h"

namespace rankine::mpi {
namespace {

bool move_on(int count, const MPI_Request these[]) {
  const std::shared_ptr<Prepared> call = prepared_calls().under_way(count, these);
  if (call == nullptr) return false;
  requests().move_on_in_mpi();
  // And MPI, whose messages others may wait for before they start theirs.
  int flag = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, call->channel->on->comm, &flag, MPI_STATUS_IGNORE);
  return true;
}
void move_on_until_over(int count, const MPI_Request these[]) {
  while (move_on(count, these)) {
  }
}

}  // namespace
}  // namespace rankine::mpi

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
}

#endif
