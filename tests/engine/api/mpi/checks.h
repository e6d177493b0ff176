/* Checks of MPI programs, counted without a call that the preload library takes over. Include it in
 * one source file of a program; the program sets rank and ranks. */
#pragma once

#include <mpi.h>
#include <stdio.h>

static int rank, ranks, passed, failed;

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
