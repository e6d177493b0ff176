/* What programs of MPI's check, and how they count it, without a call that the preload library takes
 * over. For one file of a program, which fills in rank and ranks. */
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
