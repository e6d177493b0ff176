/* Measures the collective calls of an MPI program that does not use Rankine's API.
 * third_party/mpi --compare starts it without the library for LD_PRELOAD and with it.
 *
 * Prints a line per call and size, "MPI_Allreduce 8 1.23": bytes of one rank's buffer (all blocks
 * together), and the median over the calls of the slowest rank's time, in microseconds. A call
 * begins at a moment that all ranks wait for by the machine's clock: a barrier would add the delay
 * of ranks that leave it late. Inputs are written before every call, as in real programs.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kMost = 4 << 20, kLeastCalls = 15, kMostCalls = 200, kFirst = 10 };
static const double kHeadStart = 20e-6; /* time to agree on a moment */

static int rank, ranks, shares_cores;
static char *in, *out;

typedef void (*Body)(int bytes);

static void all_reduce(int bytes) {
  MPI_Allreduce(in, out, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void all_reduce_in_place(int bytes) {
  MPI_Allreduce(MPI_IN_PLACE, in, bytes / 4, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
}
static void bcast(int bytes) { MPI_Bcast(in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }
static void reduce(int bytes) {
  MPI_Reduce(in, out, bytes / 4, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}
static void all_gather(int bytes) {
  MPI_Allgather(in, bytes / ranks, MPI_BYTE, out, bytes / ranks, MPI_BYTE, MPI_COMM_WORLD);
}
static void all_to_all(int bytes) {
  MPI_Alltoall(in, bytes / ranks, MPI_BYTE, out, bytes / ranks, MPI_BYTE, MPI_COMM_WORLD);
}
static void reduce_scatter(int bytes) {
  MPI_Reduce_scatter_block(in, out, bytes / 4 / ranks, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Returns the moment at which all ranks go on. If ranks share cores, waiting ranks yield. */
static double together(void) {
  double moment = now() + kHeadStart;
  PMPI_Allreduce(MPI_IN_PLACE, &moment, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  while (now() < moment) {
    if (shares_cores) sched_yield();
  }
  return moment;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(const char* name, Body body, int bytes) {
  static double mine[kMostCalls], all[kMostCalls];
  int calls = (1 << 24) / (bytes + 1), i;
  if (calls > kMostCalls) calls = kMostCalls;
  if (calls < kLeastCalls) calls = kLeastCalls;
  for (i = -kFirst; i < calls; ++i) {
    memset(in, i & 1, (size_t)bytes);
    const double began = together();
    body(bytes);
    if (i >= 0) mine[i] = now() - began;
  }
  PMPI_Reduce(mine, all, calls, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  qsort(all, (size_t)calls, sizeof(all[0]), compare);
  printf("%s %d %.3f\n", name, bytes, all[calls / 2] * 1e6);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    Body body;
    int least; /* bytes, at least one element of each rank */
  } kCalls[] = {{"MPI_Allreduce", all_reduce, 8},
                {"MPI_Allreduce_in_place", all_reduce_in_place, 8},
                {"MPI_Bcast", bcast, 8},
                {"MPI_Reduce", reduce, 8},
                {"MPI_Allgather", all_gather, 1024},
                {"MPI_Alltoall", all_to_all, 1024},
                {"MPI_Reduce_scatter_block", reduce_scatter, 1024}};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  cpu_set_t cores;
  sched_getaffinity(0, sizeof(cores), &cores);
  shares_cores = ranks > CPU_COUNT(&cores);
  in = malloc(kMost);
  out = malloc(kMost);
  memset(in, 0, kMost);
  memset(out, 0, kMost);
  for (size_t c = 0; c < sizeof(kCalls) / sizeof(kCalls[0]); ++c) {
    for (int bytes = kCalls[c].least; bytes <= kMost; bytes *= bytes < 1024 ? 16 : 4) {
      measure(kCalls[c].name, kCalls[c].body, bytes);
    }
  }
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
