/* Checks of MPI programs, counted without a call that the preload library takes over. Include it in
 * one source file of a program. */
#pragma once

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, passed, failed;

/* Begins the program. With the argument "threads" it returns 1 if two threads may call MPI. */
static inline int begin_program(int argc, char** argv) {
  const int several = argc > 1 && strcmp(argv[1], "threads") == 0;
  int level = 0;
  MPI_Init_thread(&argc, &argv, several ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return several && level == MPI_THREAD_MULTIPLE;
}

/* Memory for so many numbers per rank, until the end of the program. */
static struct kept {
  struct kept* before;
  int numbers[];
} * kept;
static inline int* ints_per_rank(int number) {
  struct kept* const one = malloc(sizeof(*one) + sizeof(int) * (size_t)(number * ranks));
  one->before = kept;
  kept = one;
  return one->numbers;
}

/* Ends the program: prints "N passed, M failed", and returns main's result. */
static inline int end_program(void) {
  if (rank == 0) printf("%d passed, %d failed\n", passed, failed);
  fflush(stdout);
  MPI_Finalize();
  for (struct kept* one = kept; one != NULL; one = kept) {
    kept = one->before;
    free(one);
  }
  return failed != 0;
}

static void check(const char* what, int right) {
  int all = 0;
  PMPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!right) printf("rank %d: %s is wrong\n", rank, what);
  if (all)
    ++passed;
  else
    ++failed;
}

static int sum_of_ranks(void) { return ranks * (ranks - 1) / 2; }

/* The calls of one of two threads, on a communicator of its own. */
struct work {
  MPI_Comm comm;
  int tag, right;
};
static inline void work_on_two_threads(void* (*work)(void*)) {
  struct work mine[2];
  pthread_t other;
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &mine[i].comm);
    mine[i].tag = i, mine[i].right = 1;
  }
  pthread_create(&other, NULL, work, &mine[1]);
  work(&mine[0]);
  pthread_join(other, NULL);
  for (int i = 0; i < 2; ++i) MPI_Comm_free(&mine[i].comm);
  check("two threads", mine[0].right && mine[1].right);
}
