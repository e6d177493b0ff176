/* Threads of a C program as ranks: each brings its number plus one, and all leave with the sum.
 *
 *   cc sum.c $(pkg-config --cflags --libs rankine) -pthread
 */
#include <pthread.h>
#include <rankine/rankine.h>
#include <stdio.h>

enum { kRanks = 4, kCount = 1000 };

static rkUniqueId id;

static void* play(void* argument) {
  const int rank = *(const int*)argument;
  static float buffers[kRanks][kCount];
  float* x = buffers[rank];
  rkComm_t comm = RK_COMM_NULL;
  for (int i = 0; i < kCount; ++i) x[i] = (float)(rank + 1);
  if (rkCommInitRank(&comm, kRanks, id, rank) != rkSuccess ||
      rkAllReduce(x, x, kCount, rkFloat32, rkSum, comm) != rkSuccess) {
    fprintf(stderr, "%s\n", rkGetLastError(NULL));
  } else if (rank == 0) {
    printf("every element: %g\n", (double)x[kCount - 1]);
  }
  rkCommDestroy(comm);
  return NULL;
}

int main(void) {
  pthread_t threads[kRanks];
  int ranks[kRanks];
  if (rkGetUniqueId(&id) != rkSuccess) return 1;
  for (int r = 0; r < kRanks; ++r) {
    ranks[r] = r;
    if (pthread_create(&threads[r], NULL, play, &ranks[r]) != 0) return 1;
  }
  for (int r = 0; r < kRanks; ++r) pthread_join(threads[r], NULL);
  return 0;
}
