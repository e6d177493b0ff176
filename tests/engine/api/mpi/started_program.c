/* An MPI program without any use of Rankine that makes nonblocking collective calls: every one that
 * the preload library takes over, waited and tested for in every way, while other ranks wait
 * elsewhere in MPI for the waiting ranks. It prints the same result with and without the library:
 * "N passed, M failed". With the argument "threads" two threads do all this at once. */
#include <mpi.h>
#include <unistd.h>

#include "checks.h"
#include "every_call.h"
#include "every_wait.h"

enum { kRounds = 4 }; /* the library passes the first calls of each kind to MPI */

static void wait_for(MPI_Request* request) { MPI_Wait(request, MPI_STATUS_IGNORE); }

/* Two sums, a message to the right and one from the left. */
static struct {
  MPI_Request requests[5];
  int x, sum, most, sent, received;
} m;
static void start_mixed(void) {
  m.x = rank, m.sum = m.most = m.received = -1, m.sent = 10 * rank;
  MPI_Irecv(&m.received, 1, MPI_INT, (rank + ranks - 1) % ranks, 5, MPI_COMM_WORLD, &m.requests[0]);
  MPI_Iallreduce(&m.x, &m.sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &m.requests[1]);
  m.requests[2] = MPI_REQUEST_NULL;
  MPI_Isend(&m.sent, 1, MPI_INT, (rank + 1) % ranks, 5, MPI_COMM_WORLD, &m.requests[3]);
  MPI_Iallreduce(&m.x, &m.most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &m.requests[4]);
}
static void check_mixed(const char* what, int right) {
  for (int i = 0; i < 5; ++i) right &= m.requests[i] == MPI_REQUEST_NULL;
  check(what, right && m.sum == sum_of_ranks() && m.most == ranks - 1 &&
                  m.received == 10 * ((rank + ranks - 1) % ranks));
}

static void among_messages(void) {
  const struct mixture mixture = {m.requests, 5, 27, start_mixed, check_mixed};
  MPI_Status statuses[5];
  int flag;
  wait_in_every_way(&mixture);

  start_mixed();
  for (flag = 0; !flag;) MPI_Request_get_status(m.requests[4], &flag, statuses);
  check("MPI_Request_get_status leaves a request", m.requests[4] != MPI_REQUEST_NULL);
  MPI_Waitall(5, m.requests, statuses);
  check_mixed("MPI_Request_get_status", 1);

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  int index, count, indices[1];
  start_mixed();
  for (flag = 0; !flag;) MPI_Request_get_status_any(1, &m.requests[4], &index, &flag, statuses);
  MPI_Waitall(5, m.requests, statuses);
  check_mixed("MPI_Request_get_status_any", index == 0);

  start_mixed();
  for (count = 0; count == 0;)
    MPI_Request_get_status_some(1, &m.requests[4], &count, indices, statuses);
  MPI_Waitall(5, m.requests, statuses);
  check_mixed("MPI_Request_get_status_some", count == 1 && indices[0] == 0);

  start_mixed();
  for (flag = 0; !flag;) MPI_Request_get_status_all(5, m.requests, &flag, statuses);
  const int is_over = m.sum == sum_of_ranks() && m.most == ranks - 1;
  MPI_Waitall(5, m.requests, statuses);
  check_mixed("MPI_Request_get_status_all", is_over);
#endif
}

/* Rank 0 waits in MPI for the other ranks, which wait for nonblocking calls that rank 0 has started
 * too. The second of two calls begins after the first ends, so all ranks must make progress. */
static void wait_meanwhile(int how, int round, MPI_Comm other) {
  enum { N = 1 << 16 };
  static int much[N];
  const int tag = 100 + how, others = ranks - 1;
  int word = -1, i;
  MPI_Status status;
  if (how < 6 && ranks > 1) {
    if (rank == 0) {
      for (i = 1; i <= others; ++i) {
        switch (how) {
          case 0:
            MPI_Recv(&word, 1, MPI_INT, i, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            break;
          case 1:
            MPI_Probe(i, tag, MPI_COMM_WORLD, &status);
            MPI_Recv(&word, 1, MPI_INT, i, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            break;
          case 2:
            MPI_Ssend(&round, 1, MPI_INT, i, tag, MPI_COMM_WORLD);
            break;
          case 3:
            MPI_Sendrecv(&round, 1, MPI_INT, i, tag, &word, 1, MPI_INT, i, tag, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            break;
          case 4:
            MPI_Send(much, N, MPI_INT, i, tag, MPI_COMM_WORLD);
            break;
          case 5:
            for (int flag = 0; !flag;) MPI_Iprobe(i, tag, MPI_COMM_WORLD, &flag, &status);
            MPI_Recv(&word, 1, MPI_INT, i, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            break;
        }
      }
    } else if (how == 2 || how == 4) {
      MPI_Recv(much, N, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (how == 3) {
      MPI_Sendrecv(&rank, 1, MPI_INT, 0, tag, &word, 1, MPI_INT, 0, tag, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    } else {
      MPI_Send(&rank, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
    }
  } else if (how == 6) { /* the library takes it over, on another communicator */
    MPI_Barrier(other);
  } else if (how == 7) { /* the library passes it to MPI */
    MPI_Bcast(much, N, MPI_INT, 0, other);
  } else if (how == 8) {
    MPI_Comm twin;
    MPI_Comm_dup(other, &twin);
    MPI_Comm_free(&twin);
  } else if (how == 9 && ranks > 1) { /* Open MPI has no windows of one process */
    MPI_Win window;
    MPI_Win_create(much, sizeof(much), sizeof(int), MPI_INFO_NULL, other, &window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
  } else if (how == 10) { /* computes */
    if (rank == 0) usleep(20000);
  }
}
static void while_others_wait(int round, MPI_Comm other) {
  int how, i, x[8], sum[8], right;
  MPI_Request requests[8];
  MPI_Status statuses[8];
  for (how = 0; how < 11; ++how) {
    for (right = 1, i = 0; i < 8; ++i) {
      x[i] = rank + i, sum[i] = -1;
      MPI_Iallreduce(&x[i], &sum[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]);
    }
    if (rank == 0) wait_meanwhile(how, round, other);
    MPI_Waitall(8, requests, statuses);
    if (rank != 0) wait_meanwhile(how, round, other);
    for (i = 0; i < 8; ++i) right &= sum[i] == sum_of_ranks() + i * ranks;
    check("calls while ranks wait for other things", right);
  }
}

/* Rank 0 waits for a call and for two long messages at once. Rank 1 starts the call only after the
 * messages. */
static void long_messages(void) {
  enum { N = 1 << 20 };
  MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[3];
  int x = rank, sum = -1, i, right = 1;
  int *in = malloc(sizeof(int) * N), *out = malloc(sizeof(int) * N);
  for (i = 0; i < N; ++i) in[i] = i + rank, out[i] = -1;
  if (rank == 0 && ranks > 1) {
    MPI_Isend(in, N, MPI_INT, 1, 7, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(out, N, MPI_INT, 1, 8, MPI_COMM_WORLD, &requests[2]);
  }
  if (rank == 1) {
    usleep(5000);
    MPI_Recv(out, N, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(in, N, MPI_INT, 0, 8, MPI_COMM_WORLD);
  }
  MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  MPI_Waitall(3, requests, statuses);
  for (i = 0; i < N && rank < 2 && ranks > 1; ++i) right &= out[i] == i + 1 - rank;
  check("long messages beside a call", right && sum == sum_of_ranks());
  free(out);
  free(in);
}

/* Several communicators that ranks use in different orders, blocking calls together with
 * nonblocking ones, and communicators that are freed meanwhile. */
static void communicators(MPI_Comm other) {
  MPI_Comm own;
  MPI_Request requests[3];
  MPI_Status statuses[3];
  int call, x = rank, y = 2 * rank, sum = -1, twice = -1, word = rank == 0 ? 5 : 0, right = 1, i;
  int *ones = ints_per_rank(1), *places = ints_per_rank(1);
  int *in = ints_per_rank(1), *out = ints_per_rank(1);
  for (i = 0; i < ranks; ++i) ones[i] = 1, places[i] = i, in[i] = 100 * rank + i;
  for (i = 0; i < 2; ++i) {
    if (i == rank % 2)
      MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    else
      MPI_Iallreduce(&y, &twice, 1, MPI_INT, MPI_SUM, other, &requests[1]);
  }
  for (i = 0; i < 2; ++i) wait_for(&requests[rank == 0 ? i : 1 - i]);
  check("two communicators", sum == sum_of_ranks() && twice == 2 * sum_of_ranks());

  sum = twice = -1;
  MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  MPI_Ibcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Allreduce(&y, &twice, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]);
  MPI_Alltoallv(in, ones, places, MPI_INT, out, ones, places, MPI_INT, MPI_COMM_WORLD);
  MPI_Waitall(3, requests, statuses);
  for (i = 0; i < ranks; ++i) right &= out[i] == 100 * i + rank;
  check("calls that wait beside them",
        right && sum == sum_of_ranks() && twice == 2 * sum_of_ranks() && word == 5);

  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  for (right = 1, call = 0; call < 10; ++call) {
    sum = -1;
    if (call % 2) MPI_Barrier(own);
    MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, own, &requests[0]);
#ifndef OPEN_MPI /* Open MPI's calls do not survive this */
    if (call == 9) MPI_Comm_free(&own);
#endif
    wait_for(&requests[0]);
    right &= sum == sum_of_ranks();
  }
#ifdef OPEN_MPI
  MPI_Comm_free(&own);
#endif
  check("a communicator that is freed meanwhile", right);
}

/* The calls of one thread. */
static void* work(void* argument) {
  struct work* mine = argument;
  for (int call = 0; call < 300; ++call) {
    int x = rank + call, sum = -1, word = rank == 0 ? call : -1, token = -1;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    if (call % 10 == 0) MPI_Barrier(mine->comm);
    MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, mine->comm, &requests[0]);
    MPI_Ibcast(&word, 1, MPI_INT, 0, mine->comm, &requests[1]);
    if (rank == 0 && ranks > 1)
      MPI_Recv(&token, 1, MPI_INT, 1, mine->tag, mine->comm, MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests, statuses);
    if (rank == 1) MPI_Send(&call, 1, MPI_INT, 0, mine->tag, mine->comm);
    mine->right &= sum == sum_of_ranks() + call * ranks && word == call;
  }
  return NULL;
}

int main(int argc, char** argv) {
  const int several = begin_program(argc, argv);
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  for (int i = 0; i < 5; ++i) MPI_Barrier(MPI_COMM_WORLD), MPI_Barrier(other);
  for (int round = 0; round < kRounds; ++round) {
    every_call(kStarted, round, round + 1);
    among_messages();
    while_others_wait(round, other);
    long_messages();
    communicators(other);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(other);
  }
  if (several) work_on_two_threads(work);
  return end_program();
}
