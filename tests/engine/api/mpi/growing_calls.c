/* An MPI program without any use of Rankine: all-reduces in place that grow until shared memory has
 * no room for them, and then small ones. Every rank prints "right". The library passes calls to MPI
 * only if there is no room for them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  enum { kMost = 4 << 20 };
  int rank, ranks, count, turn, i, right = 1, all = 0;
  int* x = malloc(sizeof(int) * kMost);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (i = 0; i < 5; ++i) MPI_Barrier(MPI_COMM_WORLD);
  for (count = 1; count <= kMost; count *= 4) {
    for (turn = 0; turn < 3; ++turn) {
      for (i = 0; i < count; ++i) x[i] = i + rank;
      MPI_Allreduce(MPI_IN_PLACE, x, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      for (i = 0; i < count; ++i) right &= x[i] == i * ranks + ranks * (ranks - 1) / 2;
    }
  }
  for (turn = 0; turn < 50; ++turn) {
    x[0] = turn;
    MPI_Allreduce(MPI_IN_PLACE, x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    right &= x[0] == turn * ranks;
  }
  PMPI_Reduce(&right, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s\n", all ? "right" : "wrong");
  free(x);
  MPI_Finalize();
  return !right;
}
