/* Every collective function that the library takes over, with checked results, in each of MPI's
 * three ways: the same calls as blocking, nonblocking (started) and persistent (prepared) ones. For
 * programs that include checks.h. */
#pragma once

#include <mpi.h>

#include "prepared_names.h"

enum way { kBlocking, kStarted, kPrepared };

/* The calls of a round: finished, under way or prepared. */
static struct {
  enum way way;
  int count;
  MPI_Request requests[16];
} calls;

static MPI_Request* next_request(void) { return &calls.requests[calls.count++]; }

#define CALL(name, iname, ...)                                         \
  (calls.way == kBlocking  ? MPI_##name(__VA_ARGS__)                   \
   : calls.way == kStarted ? MPI_I##iname(__VA_ARGS__, next_request()) \
                           : MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, next_request()))

/* False if the calls of this round are those that an earlier round has prepared. */
static int makes_calls(enum way way, int round) {
  calls.way = way;
  if (way == kPrepared && round > 0) return 0;
  calls.count = 0;
  return 1;
}
/* Prepared calls keep their root. Others take turns among three roots, so that each root repeats
 * within four rounds: the library passes the first calls of each kind and root to MPI. */
static int root_of(enum way way, int round) {
  return way == kPrepared ? ranks - 1 : round % (ranks < 3 ? ranks : 3);
}

/* Each rank starts and waits for the requests in a different order. */
static void run_in_turns(int count, MPI_Request* requests, int round, int starts) {
  for (int i = 0; i < count && starts; ++i) MPI_Start(&requests[(i + rank + round) % count]);
  for (int i = 0; i < count; ++i)
    MPI_Wait(&requests[(count - 1 - i + rank) % count], MPI_STATUS_IGNORE);
}
static void end_round(int round) {
  run_in_turns(calls.count, calls.requests, round, calls.way == kPrepared);
}
static void free_all(int count, MPI_Request* requests) {
  for (int i = 0; i < count; ++i) MPI_Request_free(&requests[i]);
}
/* A wait leaves prepared requests and no started ones. */
static void end_calls(void) {
  int right = 1;
  for (int i = 0; i < calls.count; ++i)
    right &= (calls.requests[i] != MPI_REQUEST_NULL) == (calls.way == kPrepared);
  if (calls.way == kPrepared) free_all(calls.count, calls.requests);
  for (int i = 0; i < calls.count; ++i) right &= calls.requests[i] == MPI_REQUEST_NULL;
  check("requests", right);
}

static void reductions(enum way way, int first, int end) {
  enum { N = 1000 };
  static int in[N], out[N], in_place[N];
  int *blocks = ints_per_rank(3), *sums = ints_per_rank(3), *pairs = ints_per_rank(2);
  int *pairs_too = ints_per_rank(2), *counts = ints_per_rank(1);
  int few[3], mine[3], i, before = 0, right[11];
  long x[3], y[3], z[3];
  float f, g, h, p;
  for (i = 0; i < ranks; ++i) {
    counts[i] = i % 3;
    if (i < rank) before += counts[i];
  }
  for (i = 0; i < 11; ++i) right[i] = 1;
  for (int round = first; round < end; ++round) {
    const int root = root_of(way, round), is_root = rank == root;
    for (i = 0; i < N; ++i) in[i] = in_place[i] = rank + i + round, out[i] = -1;
    x[0] = z[0] = rank + round, x[1] = z[1] = 2 * rank, x[2] = z[2] = 1, y[0] = y[1] = y[2] = -1;
    f = (float)(1 + round), g = h = -1, p = f;
    for (i = 0; i < 3 * ranks; ++i) blocks[i] = sums[i] = i + rank + round;
    for (i = 0; i < 2 * ranks; ++i) pairs[i] = pairs_too[i] = i + rank - round;
    for (i = 0; i < 3; ++i) few[i] = mine[i] = -1;
    if (makes_calls(way, round)) {
      const MPI_Comm comm = MPI_COMM_WORLD;
      CALL(Allreduce, allreduce, in, out, N, MPI_INT, MPI_SUM, comm);
      CALL(Allreduce, allreduce, MPI_IN_PLACE, in_place, N, MPI_INT, MPI_MAX, comm);
      CALL(Reduce, reduce, x, y, 3, MPI_LONG, MPI_SUM, root, comm);
      CALL(Reduce, reduce, is_root ? MPI_IN_PLACE : z, is_root ? z : NULL, 3, MPI_LONG, MPI_SUM,
           root, comm);
      CALL(Scan, scan, &f, &g, 1, MPI_FLOAT, MPI_SUM, comm);
      CALL(Exscan, exscan, &f, &h, 1, MPI_FLOAT, MPI_SUM, comm);
      CALL(Scan, scan, rank % 2 ? &f : MPI_IN_PLACE, &p, 1, MPI_FLOAT, MPI_MAX, comm);
      CALL(Reduce_scatter_block, reduce_scatter_block, pairs, mine, 2, MPI_INT, MPI_SUM, comm);
      CALL(Reduce_scatter_block, reduce_scatter_block, MPI_IN_PLACE, pairs_too, 2, MPI_INT, MPI_SUM,
           comm);
      CALL(Reduce_scatter, reduce_scatter, sums, few, counts, MPI_INT, MPI_SUM, comm);
      CALL(Reduce_scatter, reduce_scatter, MPI_IN_PLACE, blocks, counts, MPI_INT, MPI_SUM, comm);
    }
    end_round(round);
    for (i = 0; i < N; ++i) {
      right[0] &= out[i] == sum_of_ranks() + (i + round) * ranks && in[i] == rank + i + round;
      right[1] &= in_place[i] == ranks - 1 + i + round;
    }
    const int total = sum_of_ranks() + round * ranks;
    right[2] &= is_root ? y[0] == total && y[1] == 2 * sum_of_ranks() && y[2] == ranks : y[0] == -1;
    right[3] &= z[0] == (is_root ? total : rank + round) && z[2] == (is_root ? ranks : 1);
    right[4] &= g == (float)((rank + 1) * (1 + round));
    right[5] &= rank == 0 || h == (float)(rank * (1 + round));
    right[6] &= p == f;
    right[7] &= mine[1] == (2 * rank + 1 - round) * ranks + sum_of_ranks() && mine[2] == -1;
    right[8] &= pairs_too[0] == mine[0] && pairs_too[1] == mine[1];
    for (i = 0; i < counts[rank]; ++i) {
      right[9] &= few[i] == (before + i + round) * ranks + sum_of_ranks();
      right[10] &= blocks[i] == few[i];
    }
    right[9] &= few[counts[rank]] == -1;
  }
  end_calls();
  check("MPI_Allreduce", right[0]);
  check("MPI_Allreduce in place", right[1]);
  check("MPI_Reduce", right[2]);
  check("MPI_Reduce in place", right[3]);
  check("MPI_Scan", right[4]);
  check("MPI_Exscan", right[5]);
  check("MPI_Scan in place on some ranks", right[6]);
  check("MPI_Reduce_scatter_block", right[7]);
  check("MPI_Reduce_scatter_block in place", right[8]);
  check("MPI_Reduce_scatter", right[9]);
  check("MPI_Reduce_scatter in place", right[10]);
}

/* The types are freed while the calls are under way, or before the first start. */
static void moves(enum way way, int first, int end) {
  int *all = ints_per_rank(2), *all_too = ints_per_rank(2), *some = ints_per_rank(4);
  int *counts = ints_per_rank(1), *places = ints_per_rank(1), *to = ints_per_rank(1);
  int *from = ints_per_rank(1), *swapped = ints_per_rank(1), *everyones = ints_per_rank(2);
  int *gathered = ints_per_rank(1), *handed = ints_per_rank(2);
  int apart[8], together[8], mine[2], got[2], got_too[2], i, right[11];
  for (i = 0; i < ranks; ++i) counts[i] = i % 3, places[i] = 4 * (ranks - 1 - i);
  for (i = 0; i < 11; ++i) right[i] = 1;
  for (int round = first; round < end; ++round) {
    const int root = root_of(way, round), is_root = rank == root, r = 1000 * round;
    for (i = 0; i < 8; ++i) apart[i] = together[i] = is_root ? r + i : -7;
    for (i = 0; i < ranks; ++i) {
      to[i] = swapped[i] = r + 100 * rank + i, from[i] = everyones[2 * i] = all[2 * i] = -1;
      all_too[2 * i] = all_too[2 * i + 1] = i == rank ? r + 10 * i : -1;
      handed[2 * i] = r + 7 * i, handed[2 * i + 1] = r + 7 * i + 1;
      gathered[i] = i == root ? 100 : -1;
    }
    for (i = 0; i < 4 * ranks; ++i) some[i] = -5;
    mine[0] = r + rank, mine[1] = -rank, got[0] = got[1] = got_too[0] = -1;
    if (makes_calls(way, round)) {
      const MPI_Comm comm = MPI_COMM_WORLD;
      const MPI_Datatype none = MPI_DATATYPE_NULL;
      MPI_Datatype gaps, pair;
      MPI_Type_vector(4, 1, 2, MPI_INT, &gaps);
      MPI_Type_contiguous(2, MPI_INT, &pair);
      MPI_Type_commit(&gaps);
      MPI_Type_commit(&pair);
      CALL(Bcast, bcast, apart, 1, gaps, root, comm);
      CALL(Bcast, bcast, together, is_root ? 1 : 4, is_root ? gaps : MPI_INT, root, comm);
      CALL(Allgather, allgather, mine, 1, pair, all, 2, MPI_INT, comm);
      CALL(Allgather, allgather, MPI_IN_PLACE, 0, none, all_too, 2, MPI_INT, comm);
      CALL(Allgatherv, allgatherv, mine, counts[rank], MPI_INT, some, counts, places, MPI_INT,
           comm);
      CALL(Alltoall, alltoall, to, 1, MPI_INT, from, 1, MPI_INT, comm);
      CALL(Alltoall, alltoall, MPI_IN_PLACE, 0, none, swapped, 1, MPI_INT, comm);
      CALL(Gather, gather, mine, 2, MPI_INT, is_root ? everyones : NULL, is_root ? 2 : 0,
           is_root ? MPI_INT : none, root, comm);
      CALL(Gather, gather, is_root ? MPI_IN_PLACE : mine, 1, MPI_INT, is_root ? gathered : NULL, 1,
           MPI_INT, root, comm);
      CALL(Scatter, scatter, is_root ? handed : NULL, 1, is_root ? pair : none, got, 2, MPI_INT,
           root, comm);
      CALL(Scatter, scatter, is_root ? handed : NULL, 2, MPI_INT, is_root ? MPI_IN_PLACE : got_too,
           2, MPI_INT, root, comm);
      if (way == kBlocking) MPI_Barrier(comm);
      if (way == kStarted) MPI_Ibarrier(comm, next_request());
      if (way == kPrepared) MPI_Barrier_init(comm, MPI_INFO_NULL, next_request());
      MPI_Type_free(&gaps);
      MPI_Type_free(&pair);
    }
    end_round(round);
    for (i = 0; i < 8; ++i) right[0] &= apart[i] == (i % 2 == 0 || is_root ? r + i : -7);
    for (i = 0; i < 4; ++i) right[1] &= together[i] == r + (is_root ? i : 2 * i);
    right[1] &= together[4] == (is_root ? r + 4 : -7);
    for (i = 0; i < ranks; ++i) {
      const int* const block = some + places[i];
      right[2] &= all[2 * i] == r + i && all[2 * i + 1] == -i;
      right[3] &= all_too[2 * i] == r + 10 * i && all_too[2 * i + 1] == r + 10 * i;
      right[4] &= block[0] == (counts[i] > 0 ? r + i : -5) && block[1] == (counts[i] > 1 ? -i : -5);
      right[4] &= block[2] == -5;
      right[5] &= from[i] == r + 100 * i + rank;
      right[6] &= swapped[i] == r + 100 * i + rank;
      right[7] &= everyones[2 * i] == (is_root ? r + i : -1);
      right[8] &= gathered[i] == (i == root ? 100 : is_root ? r + i : -1);
    }
    right[9] &= got[0] == r + 7 * rank && got[1] == r + 7 * rank + 1;
    right[10] &= is_root ? handed[0] == r : got_too[0] == r + 7 * rank;
  }
  end_calls();
  check("MPI_Bcast into gaps", right[0]);
  check("MPI_Bcast of other types on other ranks", right[1]);
  check("MPI_Allgather", right[2]);
  check("MPI_Allgather in place", right[3]);
  check("MPI_Allgatherv", right[4]);
  check("MPI_Alltoall", right[5]);
  check("MPI_Alltoall in place", right[6]);
  check("MPI_Gather", right[7]);
  check("MPI_Gather in place", right[8]);
  check("MPI_Scatter", right[9]);
  check("MPI_Scatter in place", right[10]);
}

/* Calls with one length per rank: each rank sends a different length to each rank, also 0. Blocks
 * lie apart, and some in reverse order. */
static void lengths(enum way way, int first, int end) {
  enum { kMost = 8 };
  int *in = ints_per_rank(kMost), *out = ints_per_rank(kMost), *swapped = ints_per_rank(kMost);
  int *words = ints_per_rank(kMost), *all = ints_per_rank(kMost), *all_too = ints_per_rank(kMost);
  int *handed = ints_per_rank(kMost), *in_counts = ints_per_rank(1), *out_counts = ints_per_rank(1);
  int *in_places = ints_per_rank(1), *out_places = ints_per_rank(1),
      *byte_places = ints_per_rank(1);
  int *ones = ints_per_rank(1), *alike = ints_per_rank(1), *thirds = ints_per_rank(1);
  int mine[kMost], got[kMost], got_too[kMost], i, k, right[7];
  MPI_Datatype* pairs = malloc(sizeof(MPI_Datatype) * (size_t)ranks);
  for (i = 0; i < ranks; ++i) {
    in_counts[i] = (rank + 2 * i) % 4, out_counts[i] = (i + 2 * rank) % 4;
    in_places[i] = kMost * (ranks - 1 - i), out_places[i] = kMost * i;
    byte_places[i] = (int)sizeof(int) * kMost * i, ones[i] = 1;
    alike[i] = 1 + (rank + i) % 2, thirds[i] = i % 3;
  }
  for (i = 0; i < 7; ++i) right[i] = 1;
  for (int round = first; round < end; ++round) {
    const int root = root_of(way, round), is_root = rank == root, r = 10000 * round;
    for (i = 0; i < ranks * kMost; ++i) {
      in[i] = swapped[i] = r + 1000 * rank + i, handed[i] = r + i;
      out[i] = words[i] = all[i] = all_too[i] = -1;
    }
    for (k = 0; k < kMost; ++k) mine[k] = r + 100 * rank + k, got[k] = got_too[k] = -1;
    if (makes_calls(way, round)) {
      const MPI_Comm comm = MPI_COMM_WORLD;
      const MPI_Datatype none = MPI_DATATYPE_NULL;
      MPI_Datatype gaps, pair;
      MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
      MPI_Type_contiguous(2, MPI_INT, &pair);
      MPI_Type_commit(&gaps);
      MPI_Type_commit(&pair);
      for (i = 0; i < ranks; ++i) pairs[i] = i % 2 ? pair : gaps;
      CALL(Alltoallv, alltoallv, in, in_counts, in_places, MPI_INT, out, out_counts, out_places,
           MPI_INT, comm);
      CALL(Alltoallv, alltoallv, MPI_IN_PLACE, NULL, NULL, none, swapped, alike, out_places,
           MPI_INT, comm);
      CALL(Alltoallw, alltoallw, in, ones, byte_places, pairs, words, ones, byte_places, pairs,
           comm);
      CALL(Gatherv, gatherv, mine, rank % 3, MPI_INT, is_root ? all : NULL, is_root ? thirds : NULL,
           is_root ? in_places : NULL, is_root ? MPI_INT : none, root, comm);
      CALL(Gatherv, gatherv, is_root ? MPI_IN_PLACE : mine, rank % 3, MPI_INT,
           is_root ? all_too : NULL, is_root ? thirds : NULL, is_root ? out_places : NULL, MPI_INT,
           root, comm);
      CALL(Scatterv, scatterv, is_root ? handed : NULL, is_root ? thirds : NULL,
           is_root ? in_places : NULL, is_root ? MPI_INT : none, got, rank % 3, MPI_INT, root,
           comm);
      CALL(Scatterv, scatterv, is_root ? handed : NULL, is_root ? thirds : NULL,
           is_root ? out_places : NULL, MPI_INT, is_root ? MPI_IN_PLACE : got_too, rank % 3,
           MPI_INT, root, comm);
      MPI_Type_free(&gaps);
      MPI_Type_free(&pair);
    }
    end_round(round);
    for (i = 0; i < ranks; ++i) {
      for (k = 0; k < kMost; ++k) {
        const int at = kMost * i + k, theirs = r + 1000 * i + kMost * rank + k;
        const int is_there = k < thirds[i], sent = i % 2 ? k < 2 : k == 0 || k == 2;
        right[0] &= out[at] == (k < out_counts[i] ? theirs + kMost * (ranks - 1 - 2 * rank) : -1);
        right[1] &= swapped[at] == (k < alike[i] ? theirs : r + 1000 * rank + at);
        /* Rank i sends with its type for this rank; this rank receives with rank i's type. */
        const int one = r + 1000 * i + kMost * rank, other = one + (rank % 2 ? 1 : 2);
        right[2] &= words[at] == (!sent ? -1 : k == 0 ? one : other);
        right[3] &=
            all[kMost * (ranks - 1 - i) + k] == (is_root && is_there ? r + 100 * i + k : -1);
        right[4] &= all_too[at] == (is_root && i != root && is_there ? r + 100 * i + k : -1);
      }
    }
    for (k = 0; k < kMost; ++k) {
      const int is_there = k < rank % 3;
      right[5] &= got[k] == (is_there ? r + kMost * (ranks - 1 - rank) + k : -1);
      right[6] &= got_too[k] == (is_there && !is_root ? r + kMost * rank + k : -1);
    }
  }
  end_calls();
  check("MPI_Alltoallv", right[0]);
  check("MPI_Alltoallv in place", right[1]);
  check("MPI_Alltoallw", right[2]);
  check("MPI_Gatherv", right[3]);
  check("MPI_Gatherv in place", right[4]);
  check("MPI_Scatterv", right[5]);
  check("MPI_Scatterv in place", right[6]);
  free(pairs);
}

/* Rounds `first` to `end` - 1; prepared calls begin with round 0. */
static void every_call(enum way way, int first, int end) {
  reductions(way, first, end);
  moves(way, first, end);
  lengths(way, first, end);
}
