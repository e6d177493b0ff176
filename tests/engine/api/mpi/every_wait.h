/* Every MPI function that waits for or tests several requests of different kinds. For programs that
 * include checks.h. */
#pragma once

#include <mpi.h>

/* At most 8 requests. start() starts the requests with a bit in `under_way`; the others stay
 * inactive. ended() checks the results and counts one check; `right` is the check of the wait
 * itself. */
struct mixture {
  MPI_Request* requests;
  int count, under_way;
  void (*start)(void);
  void (*ended)(const char* what, int right);
};

static void wait_in_every_way(const struct mixture* m) {
  MPI_Status statuses[8];
  int indices[8], index, flag, n, count, ended, seen, all = 0;
  for (index = 0; index < m->count; ++index) all += m->under_way >> index & 1;

  /* The first request is a message of one number with tag 5. */
  m->start();
  MPI_Waitall(m->count, m->requests, statuses);
  MPI_Get_count(&statuses[0], MPI_INT, &n);
  m->ended("MPI_Waitall", n == 1 && statuses[0].MPI_TAG == 5);

  m->start();
  for (seen = 0, ended = 0; ended < all; ++ended) {
    MPI_Waitany(m->count, m->requests, &index, statuses);
    seen |= 1 << index;
  }
  MPI_Waitany(m->count, m->requests, &index, statuses);
  m->ended("MPI_Waitany", seen == m->under_way && index == MPI_UNDEFINED);

  m->start();
  for (ended = 0; ended < all; ended += count)
    MPI_Waitsome(m->count, m->requests, &count, indices, statuses);
  MPI_Waitsome(m->count, m->requests, &count, indices, statuses);
  m->ended("MPI_Waitsome", count == MPI_UNDEFINED);

  m->start();
  for (flag = 0; !flag;) MPI_Testall(m->count, m->requests, &flag, statuses);
  m->ended("MPI_Testall", 1);

  m->start();
  for (ended = 0; ended < all; ended += flag)
    MPI_Testany(m->count, m->requests, &index, &flag, MPI_STATUS_IGNORE);
  m->ended("MPI_Testany", 1);

  m->start();
  for (ended = 0; ended < all; ended += count)
    MPI_Testsome(m->count, m->requests, &count, indices, statuses);
  m->ended("MPI_Testsome", 1);

  /* The test order is reversed. */
  m->start();
  for (index = m->count - 1; index >= 0; --index)
    for (flag = 0; !flag;) MPI_Test(&m->requests[index], &flag, statuses);
  m->ended("MPI_Test", 1);
}
