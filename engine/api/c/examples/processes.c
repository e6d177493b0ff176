/* Processes of a C program as ranks: each brings its number plus one, and all leave with the sum.
 *
 *   cc processes.c $(pkg-config --cflags --libs rankine)
 */
#define _POSIX_C_SOURCE 200809L
#include <rankine/rankine.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kRanks = 4, kCount = 1000 };

static int play(rkUniqueId id, int rank) {
  float x[kCount];
  rkComm_t comm = RK_COMM_NULL;
  int failed = 0;
  for (int i = 0; i < kCount; ++i) x[i] = (float)(rank + 1);
  if (rkCommInitRank(&comm, kRanks, id, rank) != rkSuccess ||
      rkAllReduce(x, x, kCount, rkFloat32, rkSum, comm) != rkSuccess) {
    fprintf(stderr, "%s\n", rkGetLastError(NULL));
    failed = 1;
  } else if (rank == 0) {
    printf("every element: %g\n", (double)x[kCount - 1]);
    fflush(stdout);
  }
  rkCommDestroy(comm);
  return failed;
}

int main(void) {
  rkUniqueId id;
  int failed = 0;
  if (rkGetUniqueIdOfProcesses(&id) != rkSuccess) return 1;
  /* Any other way by which processes get the same 128 bytes will do. */
  for (int r = 0; r < kRanks; ++r) {
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) _exit(play(id, r));
  }
  for (int r = 0; r < kRanks; ++r) {
    int end = 0;
    if (wait(&end) < 0 || !WIFEXITED(end) || WEXITSTATUS(end) != 0) failed = 1;
  }
  return failed;
}
