/* An MPI program without any use of Rankine that makes mismatched collective calls. The argument
 * selects the mismatch; every rank prints whether it got an error. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prepared_names.h"

int main(int argc, char** argv) {
  enum { kMost = 16 };
  int rank, ranks, i, code = MPI_SUCCESS, told = 0;
  int in[kMost] = {0}, out[kMost] = {0}, ones[kMost], places[kMost];
  const char* const what = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (i = 0; i < kMost; ++i) ones[i] = 1, places[i] = i;
  for (i = 0; i < 5; ++i) MPI_Barrier(MPI_COMM_WORLD);
  /* MPI also executes the first call of this kind. */
  MPI_Alltoallv(in, ones, places, MPI_INT, out, ones, places, MPI_INT, MPI_COMM_WORLD);
  if (strcmp(what, "lengths") == 0) {
    if (rank == 1) ones[0] = 2;
    code = MPI_Alltoallv(in, ones, places, MPI_INT, out, ones, places, MPI_INT, MPI_COMM_WORLD);
    ones[0] = 1;
  } else if (strcmp(what, "roots") == 0) {
    code = MPI_Gatherv(in, 1, MPI_INT, out, ones, places, MPI_INT, rank == 1, MPI_COMM_WORLD);
  } else if (strcmp(what, "functions") == 0) {
    code = rank == 1 ? MPI_Scatterv(in, ones, places, MPI_INT, out, 1, MPI_INT, 0, MPI_COMM_WORLD)
                     : MPI_Gatherv(in, 1, MPI_INT, out, ones, places, MPI_INT, 0, MPI_COMM_WORLD);
  } else if (strcmp(what, "barrier") == 0) {
    code = rank == 1 ? MPI_Barrier(MPI_COMM_WORLD)
                     : MPI_Alltoallv(in, ones, places, MPI_INT, out, ones, places, MPI_INT,
                                     MPI_COMM_WORLD);
  }
  if (strcmp(what, "started") == 0) {
    MPI_Request request;
    for (i = 0; i < 2; ++i) { /* MPI executes the first one */
      const int count = i == 1 && rank == 1 ? 2 : 1;
      MPI_Iallreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
      code = MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (i == 1) break;
      MPI_Iallreduce(in, out, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
      code |= MPI_Wait(&request, MPI_STATUS_IGNORE) | MPI_Barrier(MPI_COMM_WORLD);
      if (code != MPI_SUCCESS) break;
    }
  }
  if (strcmp(what, "prepared") == 0) {
    MPI_Request requests[2];
    MPI_Allreduce_init(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Allreduce_init(in, out, 1, MPI_INT, rank == 1 ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &requests[1]);
    MPI_Start(&requests[1]);
    code = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
  }
  if (strcmp(what, "twice") == 0) {
    MPI_Request request;
    int sum = -1;
    MPI_Allreduce_init(&ranks, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    code = MPI_Start(&request);
    if (MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS || sum != ranks * ranks) code = 0;
    MPI_Request_free(&request);
  }
  if (strcmp(what, "prepared_lengths") == 0) {
    MPI_Request request;
    if (rank == 1) ones[0] = 2;
    code = MPI_Alltoallv_init(in, ones, places, MPI_INT, out, ones, places, MPI_INT, MPI_COMM_WORLD,
                              MPI_INFO_NULL, &request);
    ones[0] = 1;
  }
  if (strcmp(what, "alone") == 0) { /* a call that is the first of its kind on one rank only */
    for (i = 0; i < 2; ++i) MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    code = MPI_Allreduce(in, out, rank == 1 ? 2 : 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  if (strcmp(what, "in_place") == 0) {
    for (i = 0; i < 2; ++i) MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    code = MPI_Allreduce(rank == 1 ? MPI_IN_PLACE : in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  if (strcmp(what, "blocks") == 0) { /* one rank's block lengths contradict */
    for (i = 0; i < 2; ++i)
      MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD);
    code = MPI_Allgather(in, rank == 1 ? 2 : 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD);
  }
  if (strcmp(what, "first_posts") == 0) { /* one rank makes its first call of such a kind */
    int sum = 0;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (i = 0; i < 6; ++i) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    code = rank == 1 ? MPI_Alltoallv(in, ones, places, MPI_INT, out, ones, places, MPI_INT, comm)
                     : MPI_Barrier(comm);
  }
  told = code != MPI_SUCCESS;
  /* An error from posts does not end the communicator. */
  if (strcmp(what, "lengths") == 0 || strcmp(what, "roots") == 0 ||
      strcmp(what, "functions") == 0 || strcmp(what, "twice") == 0 ||
      strcmp(what, "prepared_lengths") == 0) {
    for (i = 0; i < ranks; ++i) in[i] = 10 * rank + i;
    code = MPI_Alltoallv(in, ones, places, MPI_INT, out, ones, places, MPI_INT, MPI_COMM_WORLD);
    for (i = 0; i < ranks; ++i) told &= out[i] == 10 * i + rank;
    told &= code == MPI_SUCCESS;
  }
  printf("rank %d %s\n", rank, told ? "was told" : "was not told");
  fflush(stdout);
  PMPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
