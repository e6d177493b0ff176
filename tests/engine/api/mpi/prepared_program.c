/* An MPI program without any use of Rankine that makes persistent collective calls: every one that
 * the preload library takes over, started alone and in arrays, in a different order on each rank,
 * waited and tested for in every way, and freed. It prints the same result with and without the
 * library: "N passed, M failed". With the argument "threads" two threads do all this at once. */
#include <mpi.h>
#include <unistd.h>

#include "checks.h"
#include "every_call.h"
#include "every_wait.h"

enum { kRounds = 5 };

static int are_all_there(int count, const MPI_Request* requests) {
  for (int i = 0; i < count; ++i)
    if (requests[i] == MPI_REQUEST_NULL) return 0;
  return 1;
}

/* Two persistent sums, a persistent message to the right and one from the left, and a nonblocking
 * sum. */
static struct {
  MPI_Request requests[6];
  int x, sum, most, sent, received, once;
} m;
static void make_mixed(void) {
  MPI_Recv_init(&m.received, 1, MPI_INT, (rank + ranks - 1) % ranks, 5, MPI_COMM_WORLD,
                &m.requests[0]);
  MPI_Allreduce_init(&m.x, &m.sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &m.requests[1]);
  MPI_Send_init(&m.sent, 1, MPI_INT, (rank + 1) % ranks, 5, MPI_COMM_WORLD, &m.requests[2]);
  MPI_Allreduce_init(&m.x, &m.most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &m.requests[3]);
  m.requests[4] = m.requests[5] = MPI_REQUEST_NULL;
}
static void start_mixed(void) {
  m.x = rank, m.sum = m.most = m.received = m.once = -1, m.sent = 10 * rank;
  MPI_Startall(4, m.requests);
  MPI_Iallreduce(&m.x, &m.once, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &m.requests[5]);
}
static void check_mixed(const char* what, int right) {
  right &= are_all_there(4, m.requests) && m.requests[5] == MPI_REQUEST_NULL;
  check(what, right && m.sum == sum_of_ranks() && m.most == ranks - 1 && m.once == sum_of_ranks() &&
                  m.received == 10 * ((rank + ranks - 1) % ranks));
}

static void among_messages(void) {
  const struct mixture mixture = {m.requests, 6, 47, start_mixed, check_mixed};
  MPI_Status statuses[6];
  int index, flag, seen;
  make_mixed();

  MPI_Waitall(6, m.requests, statuses);
  MPI_Waitany(6, m.requests, &index, statuses);
  MPI_Test(&m.requests[1], &flag, statuses);
  check("requests that rest", index == MPI_UNDEFINED && flag && are_all_there(4, m.requests));
  wait_in_every_way(&mixture);

  start_mixed();
  for (flag = 0; !flag;) MPI_Request_get_status(m.requests[3], &flag, statuses);
  const int is_over = m.most == ranks - 1;
  MPI_Waitall(6, m.requests, statuses);
  check_mixed("MPI_Request_get_status", is_over);

  /* Only one of the requests is started, again and again. */
  for (seen = 0, index = 0; index < 50; ++index) {
    m.x = rank + index, m.sum = -1;
    MPI_Start(&m.requests[1]);
    MPI_Wait(&m.requests[1], MPI_STATUS_IGNORE);
    seen += m.sum == sum_of_ranks() + index * ranks;
  }
  check("again and again", seen == 50);
  free_all(4, m.requests);
}

/* A wait or test for an inactive request returns at once with an empty status. Statuses may be
 * ignored everywhere. A request that a rank frees in flight still completes (MPI does not specify
 * this). */
static void at_rest_and_after(MPI_Comm other) {
  enum { kCalls = 3 };
  int i, round, flag, index, count, n, right = 1, x[kCalls], indices[kCalls];
  volatile int sum[kCalls];
  MPI_Request requests[kCalls];
  MPI_Status status, *volatile nobodys = MPI_STATUSES_IGNORE; /* compilers warn of its address */
  for (i = 0; i < kCalls; ++i)
    MPI_Allreduce_init(&x[i], (int*)&sum[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &requests[i]);
  for (round = 0; round < kRounds; ++round) {
    x[0] = rank + round, sum[0] = -1;
    MPI_Start(&requests[0]);
    MPI_Wait(&requests[0], &status);
    right &= sum[0] == sum_of_ranks() + round * ranks;
    for (i = 0; i < 2; ++i) {
      flag = 0;
      if (i == 0) MPI_Wait(&requests[0], &status);
      if (i == 1) MPI_Test(&requests[0], &flag, &status);
      MPI_Get_count(&status, MPI_INT, &n);
      right &= status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG && n == 0;
      right &= flag == i && requests[0] != MPI_REQUEST_NULL;
    }
    right &= sum[0] == sum_of_ranks() + round * ranks;
  }
  check("waited for once more", right);

  for (right = 1, round = 0; round < 7; ++round) {
    for (i = 0; i < kCalls; ++i) x[i] = rank + i + round, sum[i] = -1;
    MPI_Startall(kCalls, requests);
    for (n = 0; n < kCalls; n += count) {
      count = 1, flag = 0;
      if (round == 0) MPI_Wait(&requests[n], MPI_STATUS_IGNORE);
      if (round == 1) MPI_Waitany(kCalls, requests, &index, MPI_STATUS_IGNORE);
      if (round == 2) MPI_Waitsome(kCalls, requests, &count, indices, nobodys);
      if (round == 3) MPI_Waitall(kCalls, requests, nobodys), count = kCalls;
      if (round == 4) MPI_Testany(kCalls, requests, &index, &count, MPI_STATUS_IGNORE);
      if (round == 5) MPI_Testsome(kCalls, requests, &count, indices, nobodys);
      if (round == 6) MPI_Testall(kCalls, requests, &flag, nobodys), count = kCalls * flag;
    }
    for (i = 0; i < kCalls; ++i) right &= sum[i] == sum_of_ranks() + (i + round) * ranks;
  }
  check("statuses that nobody wants", right);

  for (i = 0; i < kCalls; ++i) x[i] = rank + i, sum[i] = -1;
  MPI_Startall(kCalls, requests);
  if (rank == 0) MPI_Request_free(&requests[1]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
  if (rank != 0) MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  while (sum[1] == -1) MPI_Iprobe(MPI_ANY_SOURCE, 0, other, &flag, MPI_STATUS_IGNORE);
  for (right = 1, i = 0; i < kCalls; ++i) right &= sum[i] == sum_of_ranks() + i * ranks;
  check("freed while under way", right && (requests[1] == MPI_REQUEST_NULL) == (rank == 0));
  MPI_Request_free(&requests[0]);
  if (rank != 0) MPI_Request_free(&requests[1]);
  MPI_Request_free(&requests[2]);
}

/* Persistent calls while other ranks wait in MPI for something else and make blocking calls. */
static void while_others_wait(MPI_Comm other) {
  enum { kCalls = 6 };
  int how, i, x[kCalls], sum[kCalls], twice, word, right = 1;
  MPI_Request requests[kCalls];
  MPI_Status statuses[kCalls];
  for (i = 0; i < kCalls; ++i)
    MPI_Allreduce_init(&x[i], &sum[i], 1, MPI_INT, MPI_SUM, i % 2 ? MPI_COMM_WORLD : other,
                       MPI_INFO_NULL, &requests[i]);
  for (how = 0; how < 20; ++how) {
    for (i = 0; i < kCalls; ++i) x[i] = rank + i + how, sum[i] = -1;
    MPI_Startall(kCalls, requests);
    for (int turn = 0; turn < 2; ++turn) {
      if (turn == (rank != 0)) {
        if (how % 4 == 0) MPI_Barrier(other);
        if (how % 4 == 1) MPI_Allreduce(&rank, &twice, 1, MPI_INT, MPI_SUM, other);
        if (how % 4 == 2 && rank == 0)
          for (i = 1; i < ranks; ++i)
            MPI_Recv(&word, 1, MPI_INT, i, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (how % 4 == 2 && rank != 0) MPI_Send(&rank, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
        if (how % 4 == 3 && rank == 0) usleep(2000);
      } else {
        MPI_Waitall(kCalls, requests, statuses);
      }
    }
    for (i = 0; i < kCalls; ++i) right &= sum[i] == sum_of_ranks() + (i + how) * ranks;
  }
  check("calls while ranks wait for other things", right);
  free_all(kCalls, requests);
}

/* More calls than the library has channels; large calls; and persistent requests that outlive their
 * communicator. */
static void many(void) {
  enum { kMany = 70, kMuch = 1 << 18 };
  static int x[kMany], sum[kMany], much[kMuch];
  MPI_Request requests[kMany], large, lengths;
  MPI_Comm own;
  int i, round, right = 1, large_right = 1, *ones = ints_per_rank(1);
  int *places = ints_per_rank(1), *in = ints_per_rank(1);
  int* out = ints_per_rank(1);
  for (i = 0; i < ranks; ++i) ones[i] = 1, places[i] = i, in[i] = 100 * rank + i, out[i] = -1;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  MPI_Bcast_init(much, kMuch, MPI_INT, 0, own, MPI_INFO_NULL, &large);
  for (i = 0; i < kMany; ++i)
    MPI_Allreduce_init(&x[i], &sum[i], 1, MPI_INT, MPI_SUM, own, MPI_INFO_NULL, &requests[i]);
  MPI_Alltoallv_init(in, ones, places, MPI_INT, out, ones, places, MPI_INT, own, MPI_INFO_NULL,
                     &lengths);
  for (round = 0; round < 2; ++round) {
    for (i = 0; i < kMany; ++i) x[i] = rank + i, sum[i] = -1;
    for (i = 0; i < kMuch; ++i) much[i] = rank == 0 ? i + round : -1;
    MPI_Start(&large);
    MPI_Start(&lengths);
    run_in_turns(kMany, requests, round, 1);
    MPI_Wait(&large, MPI_STATUS_IGNORE);
    MPI_Wait(&lengths, MPI_STATUS_IGNORE);
    for (i = 0; i < kMany; ++i) right &= sum[i] == sum_of_ranks() + i * ranks;
    for (i = 0; i < kMuch; ++i) large_right &= much[i] == i + round;
    for (i = 0; i < ranks; ++i) large_right &= out[i] == 100 * i + rank;
  }
  check("many", right);
  check("large, and lengths of each rank's own", large_right);
  free_all(kMany, requests);
  MPI_Request_free(&large);
  MPI_Request_free(&lengths);

  /* Requests are created and freed repeatedly, in a different order on each rank. */
  for (right = 1, round = 0; round < 40; ++round) {
    for (i = 0; i < 4; ++i) {
      x[i] = rank + round, sum[i] = -1;
      MPI_Allreduce_init(&x[i], &sum[i], 1, MPI_INT, i % 2 ? MPI_SUM : MPI_MAX, own, MPI_INFO_NULL,
                         &requests[i]);
    }
    run_in_turns(4, requests, round, 1);
    for (i = 0; i < 4; ++i) {
      right &= sum[i] == (i % 2 ? sum_of_ranks() + round * ranks : ranks - 1 + round);
      MPI_Request_free(&requests[(i + rank) % 4]);
    }
  }
  check("made ready and freed", right);

  /* A persistent request outlives its communicator, also if it starts after the end of the
   * communicator. */
  MPI_Allreduce_init(x, sum, 1, MPI_INT, MPI_SUM, own, MPI_INFO_NULL, &requests[0]);
  MPI_Allreduce_init(x, sum + 1, 1, MPI_INT, MPI_MAX, own, MPI_INFO_NULL, &requests[1]);
  MPI_Start(&requests[0]);
#ifndef OPEN_MPI /* Open MPI's calls do not survive this */
  MPI_Comm_free(&own);
#endif
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  right = 1;
  for (round = 0; round < 3; ++round) {
    x[0] = rank + round, sum[0] = sum[1] = -1;
    run_in_turns(2, requests, round, 1);
    right &= sum[0] == sum_of_ranks() + round * ranks && sum[1] == ranks - 1 + round;
  }
  check("a communicator that is freed meanwhile", right);
  free_all(2, requests);
#ifdef OPEN_MPI
  MPI_Comm_free(&own);
#endif
}

/* The calls of one thread. */
static void* work(void* argument) {
  struct work* mine = argument;
  int x = 0, sum = 0, word = 0;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Allreduce_init(&x, &sum, 1, MPI_INT, MPI_SUM, mine->comm, MPI_INFO_NULL, &requests[0]);
  MPI_Bcast_init(&word, 1, MPI_INT, 0, mine->comm, MPI_INFO_NULL, &requests[1]);
  for (int call = 0; call < 300; ++call) {
    x = rank + call, sum = -1, word = rank == 0 ? call : -1;
    if (call % 10 == 0) MPI_Barrier(mine->comm);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, statuses);
    mine->right &= sum == sum_of_ranks() + call * ranks && word == call;
  }
  free_all(2, requests);
  return NULL;
}

int main(int argc, char** argv) {
  const int several = begin_program(argc, argv);
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  every_call(kPrepared, 0, kRounds);
  among_messages();
  at_rest_and_after(other);
  while_others_wait(other);
  many();
  if (several) work_on_two_threads(work);
  return end_program();
}
