/* An MPI program without any use of Rankine. Its ranks differ in everything that MPI permits:
 * addresses, MPI_IN_PLACE, types, arguments of roots, functions with large counts, memory, and
 * processes without the library; the first argument selects one of these. The program prints the
 * same result with and without the library: "N passed, M failed". */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "checks.h"

/* The library leaves the first calls of a communicator to MPI. */
enum { kFirst = 5 };

static void begin(MPI_Comm comm) {
  for (int i = 0; i < kFirst; ++i) MPI_Barrier(comm);
}

/* Without data to move, buffers may be any pointers, equal or different. */
static void empty_calls(void) {
  int x = 7, y = 7, none[64] = {0};
  void* in = rank % 2 ? NULL : &x;
  void* out = rank % 2 || rank % 3 ? &y : NULL;
  for (int turn = 0; turn < 3; ++turn) {
    const int same = rank * turn % 2; /* on some ranks in some turns */
    MPI_Allreduce(same ? NULL : &x, same ? NULL : &y, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(in, 0, rank % 2 ? MPI_INT : MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Alltoall(in, 0, MPI_INT, out, 0, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgather(in, 0, MPI_INT, out, 0, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Allgatherv(in, 0, MPI_INT, out, none, none, MPI_INT, MPI_COMM_WORLD);
    MPI_Reduce(in, out, 0, MPI_INT, MPI_SUM, ranks - 1, MPI_COMM_WORLD);
    MPI_Scan(in, out, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Alltoallv(in, none, none, MPI_INT, out, none, none, MPI_INT, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  check("calls of nothing", x == 7 && y == 7);
}

/* Empty blocks on some ranks; the ranks without data pass no buffer. */
static void empty_blocks(void) {
  int counts[64], places[64], all[128], total = 0, mine[2] = {rank, -rank}, right = 1;
  for (int r = 0; r < ranks; ++r) {
    counts[r] = r % 2 ? 2 : 0;
    places[r] = total;
    total += counts[r];
  }
  for (int turn = 0; turn < 3 && total > 0; ++turn) {
    memset(all, -1, sizeof(all));
    MPI_Allgatherv(counts[rank] ? mine : NULL, counts[rank], MPI_INT, all, counts, places, MPI_INT,
                   MPI_COMM_WORLD);
    for (int r = 0; r < ranks; ++r)
      right &= counts[r] == 0 || (all[places[r]] == r && all[places[r] + 1] == -r);
    for (int i = 0; i < total; ++i) all[i] = i;
    int sums[2] = {-1, -1};
    MPI_Reduce_scatter(all, counts[rank] ? sums : NULL, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (counts[rank])
      right &= sums[0] == places[rank] * ranks && sums[1] == (places[rank] + 1) * ranks;
    MPI_Reduce_scatter(MPI_IN_PLACE, all, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (counts[rank]) right &= all[0] == sums[0] && all[1] == sums[1];
  }
  check("blocks of nothing", right);
}

/* Ranks may place their buffers differently, and only a root needs the root's arguments. */
static void places(void) {
  enum { kN = 300 };
  static char room[(kN + 1) * sizeof(int)];
  static int all[64 * kN], mine[kN];
  int right = 1;
  int* odd = (int*)(void*)(room + (rank % 2)); /* misaligned for int */
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < kN; ++i) mine[i] = rank + i;
    memcpy(odd, mine, sizeof(mine));
    MPI_Allreduce(odd, all, kN, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < kN; ++i) right &= all[i] == sum_of_ranks() + i * ranks;
    for (int i = 0; i < kN; ++i) mine[i] = rank + i;
    for (int root = 0; root < ranks; ++root) {
      int* const here = all + root * kN;
      memcpy(here, mine, sizeof(mine));
      if (rank == root)
        MPI_Gather(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, all, kN, MPI_INT, root, MPI_COMM_WORLD);
      else
        MPI_Gather(mine, kN, MPI_INT, NULL, -1, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
      for (int i = 0; rank == root && i < ranks * kN; ++i) right &= all[i] == i / kN + i % kN;
      if (rank == root)
        MPI_Scatter(all, kN, MPI_INT, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
      else
        MPI_Scatter(NULL, -1, MPI_DATATYPE_NULL, mine, kN, MPI_INT, root, MPI_COMM_WORLD);
      for (int i = 0; i < kN; ++i) right &= mine[i] == rank + i;
    }
    memcpy(all, mine, sizeof(mine));
    MPI_Scan(rank % 2 ? MPI_IN_PLACE : mine, all, kN, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < kN; ++i) right &= all[i] == rank * (rank + 1) / 2 + (rank + 1) * i;
  }
  check("buffers that lie as each rank likes", right);
}

/* Type signatures must agree on all ranks; the types may differ. */
static void types(void) {
  enum { kN = 40 };
  int apart[2 * kN], right = 1;
  MPI_Datatype every_other, here;
  MPI_Type_vector(kN, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  MPI_Aint address;
  int length = kN;
  MPI_Get_address(apart, &address);
  MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &here); /* relative to MPI_BOTTOM */
  MPI_Type_commit(&here);
  for (int turn = 0; turn < 6; ++turn) {
    const int root = turn % ranks, way = (rank + turn) % 3, step = way == 0 ? 2 : 1;
    for (int i = 0; i < 2 * kN; ++i) apart[i] = rank == root ? i / step + turn : -1;
    if (way == 0) MPI_Bcast(apart, 1, every_other, root, MPI_COMM_WORLD);
    if (way == 1) MPI_Bcast(apart, kN, MPI_INT, root, MPI_COMM_WORLD);
    if (way == 2) MPI_Bcast(MPI_BOTTOM, 1, here, root, MPI_COMM_WORLD);
    for (int i = 0; i < kN; ++i) right &= apart[step * i] == i + turn;
  }
  MPI_Type_free(&here);
  MPI_Type_free(&every_other);
  check("types of each rank's own", right);
}

static void facts(void) {
  empty_calls();
  empty_blocks();
  places();
  types();
}

#if MPI_VERSION >= 4
/* Every second rank calls the functions with large counts. */
static void mixed(void) {
  enum { kN = 3 };
  const int large = rank % 2;
  int mine[kN * 64], all[kN * 64], counts[64], at[64], right = 1;
  MPI_Count large_counts[64];
  MPI_Aint large_at[64];
  MPI_Request request;
  for (int r = 0; r < ranks; ++r) {
    counts[r] = (int)(large_counts[r] = kN);
    at[r] = (int)(large_at[r] = (MPI_Aint)kN * r);
  }
  for (int turn = 0; turn < 4; ++turn) {
    for (int i = 0; i < kN * ranks; ++i) mine[i] = rank + turn;
    if (large)
      MPI_Allreduce_c(mine, all, kN, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else
      MPI_Allreduce(mine, all, kN, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    right &= all[0] == sum_of_ranks() + ranks * turn;
    if (large)
      MPI_Iallreduce_c(mine, all, kN, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
    else
      MPI_Iallreduce(mine, all, kN, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    right &= all[0] == ranks - 1 + turn;
    if (large)
      MPI_Bcast_c(all, kN, MPI_INT, 0, MPI_COMM_WORLD);
    else
      MPI_Bcast(all, kN, MPI_INT, 0, MPI_COMM_WORLD);
    if (large)
      MPI_Allgatherv_c(mine, kN, MPI_INT, all, large_counts, large_at, MPI_INT, MPI_COMM_WORLD);
    else
      MPI_Allgatherv(mine, kN, MPI_INT, all, counts, at, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < kN * ranks; ++i) right &= all[i] == i / kN + turn;
    if (large)
      MPI_Alltoallv_c(mine, large_counts, large_at, MPI_INT, all, large_counts, large_at, MPI_INT,
                      MPI_COMM_WORLD);
    else
      MPI_Alltoallv(mine, counts, at, MPI_INT, all, counts, at, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < kN * ranks; ++i) right &= all[i] == i / kN + turn;
    if (large)
      MPI_Reduce_scatter_c(mine, all, large_counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else
      MPI_Reduce_scatter(mine, all, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    right &= all[0] == sum_of_ranks() + ranks * turn;
    if (large)
      MPI_Gatherv_c(mine, kN, MPI_INT, all, large_counts, large_at, MPI_INT, 0, MPI_COMM_WORLD);
    else
      MPI_Gatherv(mine, kN, MPI_INT, all, counts, at, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < kN * ranks; ++i) right &= all[i] == i / kN + turn;
  }
  check("functions with large counts on some ranks", right);
}
#endif

/* The root has one element with more bytes than an int can count. */
static void large(void) {
  const size_t number = ((size_t)1 << 29) + 4;
  int* const data = calloc(number, sizeof(int));
  MPI_Datatype half, whole;
  MPI_Type_contiguous((int)(number / 2), MPI_INT, &half);
  MPI_Type_contiguous(2, half, &whole);
  MPI_Type_commit(&whole);
  if (rank == 0) data[0] = 1, data[number - 1] = 2;
  if (rank == 0)
    MPI_Bcast(data, 1, whole, 0, MPI_COMM_WORLD);
  else
    MPI_Bcast(data, (int)number, MPI_INT, 0, MPI_COMM_WORLD);
  check("a type of more than 2^31 bytes", data[0] == 1 && data[number - 1] == 2);
  int x = rank, sum = 0;
  MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check("and it goes on", sum == sum_of_ranks());
  MPI_Type_free(&whole);
  MPI_Type_free(&half);
  free(data);
}

/* One rank lacks the memory that the library needs. */
static void memory(void) {
  enum { kN = 4 << 20, kSmall = 1000 };
  int* const data = malloc(2 * sizeof(int) * kN);
  MPI_Datatype every_other, few;
  int right = 1;
  MPI_Type_vector(kN, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  MPI_Type_vector(kSmall, 1, 2, MPI_INT, &few);
  MPI_Type_commit(&few);
  for (int turn = 0; turn < 3; ++turn) { /* MPI already has its memory */
    MPI_Bcast(data, 1, few, 0, MPI_COMM_WORLD);
    PMPI_Bcast(data, 1, every_other, 0, MPI_COMM_WORLD);
  }
  if (rank == ranks - 1) {
    long pages = 0;
    FILE* const file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld", &pages) != 1) MPI_Abort(MPI_COMM_WORLD, 1);
    fclose(file);
    const rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (4 << 20);
    setrlimit(RLIMIT_AS, &(struct rlimit){most, RLIM_INFINITY});
  }
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 2 * kN; ++i) data[i] = rank == 0 ? i + turn : -1;
    MPI_Bcast(data, 1, every_other, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 2 * kN; i += 2) right &= data[i] == i + turn;
    MPI_Bcast(data, 1, few, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 2 * kSmall; i += 2) right &= data[i] == i + turn;
  }
  check("no memory on one rank", right);
  MPI_Type_free(&few);
  MPI_Type_free(&every_other);
  free(data);
}

/* Merges these processes with spawned processes; the spawned program calls it too. */
static void together_with(MPI_Comm others, int high) {
  MPI_Comm all;
  int here, number, sum = 0, right = 1;
  MPI_Intercomm_merge(others, high, &all);
  MPI_Comm_rank(all, &here);
  MPI_Comm_size(all, &number);
  for (int turn = 0; turn < 2 * kFirst; ++turn) {
    MPI_Allreduce(&here, &sum, 1, MPI_INT, MPI_SUM, all);
    right &= sum == number * (number - 1) / 2;
  }
  check("processes of two beginnings", right);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&others);
}

static void spawns(const char* program, char** arguments) {
  MPI_Comm others;
  MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others,
                 MPI_ERRCODES_IGNORE);
  together_with(others, 0);
}

/* Several communicators; no communicator may wait for a meeting that cannot happen. */
static void communicators(void) {
  int right = 1;
  for (int i = 0; i < 8; ++i) {
    MPI_Comm comm;
    int sum = 0;
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
    begin(comm);
    for (int turn = 0; turn < 5; ++turn) {
      MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
      right &= sum == sum_of_ranks();
    }
    MPI_Comm_free(&comm);
  }
  check("communicators", right);
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "facts";
  MPI_Comm parent;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  begin(MPI_COMM_WORLD);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) together_with(parent, 1);
  if (strcmp(what, "facts") == 0) facts();
#if MPI_VERSION >= 4
  if (strcmp(what, "mixed") == 0) mixed();
#endif
  if (strcmp(what, "large") == 0) large();
  if (strcmp(what, "memory") == 0) memory();
  if (strcmp(what, "spawns") == 0) spawns(argv[2], argv + 3);
  if (strcmp(what, "communicators") == 0) communicators();
  if (rank == 0 && parent == MPI_COMM_NULL) printf("%d passed, %d failed\n", passed, failed);
  fflush(stdout);
  MPI_Finalize();
  return failed != 0;
}
