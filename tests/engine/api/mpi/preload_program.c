/* An MPI program without any use of Rankine: every call that the preload library takes over, in
 * place and apart, with basic and derived types, and calls that the library must pass to MPI. It
 * prints the same result with and without the library: "N passed, M failed". */
#include <mpi.h>

#include "checks.h"

static void allreduces(void) {
  enum { N = 1000 };
  static int in[N], out[N];
  int i, right = 1;
  for (i = 0; i < N; ++i) in[i] = rank + i;
  MPI_Allreduce(in, out, N, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (i = 0; i < N; ++i) right &= out[i] == sum_of_ranks() + i * ranks && in[i] == rank + i;
  check("MPI_Allreduce", right);
  MPI_Allreduce(MPI_IN_PLACE, in, N, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  for (right = 1, i = 0; i < N; ++i) right &= in[i] == ranks - 1 + i;
  check("MPI_Allreduce in place", right);

  double x = 0.5 + rank, y = 0;
  MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  check("MPI_Allreduce of doubles", y == 0.5 * ranks + sum_of_ranks());
  short s = (short)rank, t = 0;
  MPI_Allreduce(&s, &t, 1, MPI_SHORT, MPI_SUM, MPI_COMM_WORLD);
  check("MPI_Allreduce of shorts", t == sum_of_ranks());
  int yes = rank == 0, any = 0;
  MPI_Allreduce(&yes, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
  check("MPI_LOR", any == 1);
  struct {
    double value;
    int index;
  } mine = {(double)((rank + 1) % ranks), rank}, most;
  MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  check("MPI_MAXLOC", most.value == ranks - 1 && most.index == (2 * ranks - 2) % ranks);
  unsigned bits = 1u << (rank % 30), all = 0;
  MPI_Allreduce(&bits, &all, 1, MPI_UNSIGNED, MPI_BOR, MPI_COMM_WORLD);
  check("MPI_BOR", all == (ranks >= 30 ? (1u << 30) - 1 : (1u << ranks) - 1));
  MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check("MPI_Allreduce of nothing", 1);
}

#if MPI_VERSION >= 5
/* MPI's Fortran integers have 8 bytes, unless a Fortran compiler has set another length. */
static void long_integers(void) {
  const char* const sizes[] = {"mpi_logical_size", "mpi_integer_size", "mpi_real_size"};
  long long x = (1LL << 40) + rank, sum = 0;
  int size = 0;
  MPI_Info info;
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  MPI_Get_library_version(library, &size);
  /* Open MPI refuses the lengths; 6.1.0a1 without Fortran crashes. */
  if (strncmp(library, "Open MPI", 8) == 0) return;
  MPI_Abi_get_fortran_info(&info);
  if (info == MPI_INFO_NULL) {
    MPI_Info_create(&info);
    for (int i = 0; i < 3; ++i) MPI_Info_set(info, sizes[i], "8");
    MPI_Info_set(info, "mpi_double_precision_size", "16");
    MPI_Abi_set_fortran_info(info);
  }
  MPI_Info_free(&info);
  MPI_Type_size(MPI_INTEGER, &size);
  if (size != 8) return;
  MPI_Allreduce(&x, &sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD);
  check("MPI_INTEGER of 8 bytes", sum == ranks * (1LL << 40) + sum_of_ranks());
}
#endif

static void first_times_ten(void* in, void* inout, int* n, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *n; ++i) ((int*)inout)[i] = ((int*)in)[i] * 10 % 1000007;
}

static void operations(void) {
  MPI_Op op;
  MPI_Op_create(first_times_ten, 0, &op);
  int x = rank + 1, y = 0;
  MPI_Reduce(&x, &y, 1, MPI_INT, op, 0, MPI_COMM_WORLD);
  check("an operation of the program's", rank != 0 || ranks < 2 || y % 10 == 0);
  MPI_Op_free(&op);
}

static void reduces_and_scans(void) {
  int root;
  for (root = 0; root < ranks; root += 2) {
    long x[3] = {rank, 2 * rank, 1}, y[3] = {-1, -1, -1};
    MPI_Reduce(x, y, 3, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD);
    check("MPI_Reduce",
          rank == root ? y[0] == sum_of_ranks() && y[1] == 2 * y[0] && y[2] == ranks : y[0] == -1);
    if (rank == root)
      MPI_Reduce(MPI_IN_PLACE, x, 3, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD);
    else
      MPI_Reduce(x, NULL, 3, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD);
    check("MPI_Reduce in place", rank == root ? x[0] == sum_of_ranks() : x[0] == rank);
  }
  float f = 1, g = -1;
  MPI_Scan(&f, &g, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  check("MPI_Scan", g == rank + 1);
  g = -1;
  MPI_Exscan(&f, &g, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  check("MPI_Exscan", rank == 0 || g == rank);
  if (rank % 2)
    MPI_Scan(&f, &g, 1, MPI_FLOAT, MPI_PROD, MPI_COMM_WORLD);
  else {
    g = f;
    MPI_Scan(MPI_IN_PLACE, &g, 1, MPI_FLOAT, MPI_PROD, MPI_COMM_WORLD);
  }
  check("MPI_Scan in place on some ranks", g == 1);
}

static void reduce_scatters(void) {
  int* in = ints_per_rank(3);
  int* counts = ints_per_rank(1);
  int i, total = 0, before = 0, out[3] = {-1, -1, -1};
  for (i = 0; i < 2 * ranks; ++i) in[i] = i + rank;
  MPI_Reduce_scatter_block(in, out, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check("MPI_Reduce_scatter_block", out[0] == 2 * rank * ranks + sum_of_ranks() &&
                                        out[1] == (2 * rank + 1) * ranks + sum_of_ranks());
  MPI_Reduce_scatter_block(MPI_IN_PLACE, in, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check("MPI_Reduce_scatter_block in place", in[0] == out[0] && in[1] == out[1]);
  for (i = 0; i < ranks; ++i) {
    counts[i] = i % 3;
    if (i < rank) before += counts[i];
    total += counts[i];
  }
  for (i = 0; i < total; ++i) in[i] = i * 100 + rank;
  MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  int right = 1;
  for (i = 0; i < counts[rank]; ++i) right &= out[i] == (before + i) * 100 * ranks + sum_of_ranks();
  check("MPI_Reduce_scatter", right);
  free(counts);
  free(in);
}

static void moves(void) {
  int n = ranks, i, right;
  int* all = ints_per_rank(4);
  int* to = ints_per_rank(4);
  int* counts = ints_per_rank(1);
  int* places = ints_per_rank(1);
  int mine[2] = {rank, -rank}, root = n - 1;

  int word = rank == root ? 4711 : 0;
  MPI_Bcast(&word, 1, MPI_INT, root, MPI_COMM_WORLD);
  check("MPI_Bcast", word == 4711);
  /* The root sends every second element, and the other ranks receive contiguous elements. */
  MPI_Datatype every_other;
  MPI_Type_vector(4, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  int apart[8] = {1, -1, 2, -1, 3, -1, 4, -1}, together[4] = {0, 0, 0, 0};
  if (rank == root)
    MPI_Bcast(apart, 1, every_other, root, MPI_COMM_WORLD);
  else
    MPI_Bcast(together, 4, MPI_INT, root, MPI_COMM_WORLD);
  check("MPI_Bcast of other types on other ranks",
        rank == root ? apart[1] == -1 && apart[6] == 4 : together[0] == 1 && together[3] == 4);
  for (i = 0; i < 8; ++i) apart[i] = rank == 0 ? i : -7;
  MPI_Bcast(apart, 1, every_other, 0, MPI_COMM_WORLD);
  check("MPI_Bcast into gaps", apart[2] == 2 && apart[6] == 6 && apart[1] == (rank == 0 ? 1 : -7));

  MPI_Allgather(mine, 2, MPI_INT, all, 2, MPI_INT, MPI_COMM_WORLD);
  for (right = 1, i = 0; i < n; ++i) right &= all[2 * i] == i && all[2 * i + 1] == -i;
  check("MPI_Allgather", right);
  for (i = 0; i < 2 * n; ++i) all[i] = i / 2 == rank ? 10 * i : -1;
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 2, MPI_INT, MPI_COMM_WORLD);
  for (right = 1, i = 0; i < 2 * n; ++i) right &= all[i] == 10 * i;
  check("MPI_Allgather in place", right);

  int at = 0;
  for (i = n - 1; i >= 0; --i) { /* the last block first, with a gap behind each */
    counts[i] = i % 3;
    places[i] = at;
    at += counts[i] + 1;
  }
  for (i = 0; i < 4 * n; ++i) to[i] = -5;
  int some[2] = {100 * rank, 100 * rank + 1};
  MPI_Allgatherv(some, counts[rank], MPI_INT, to, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (right = 1, i = 0; i < n; ++i) {
    for (int k = 0; k < counts[i]; ++k) right &= to[places[i] + k] == 100 * i + k;
    right &= to[places[i] + counts[i]] == -5;
  }
  check("MPI_Allgatherv", right);

  for (i = 0; i < n; ++i) all[i] = 100 * rank + i;
  MPI_Alltoall(all, 1, MPI_INT, to, 1, MPI_INT, MPI_COMM_WORLD);
  for (right = 1, i = 0; i < n; ++i) right &= to[i] == 100 * i + rank;
  check("MPI_Alltoall", right);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD);
  for (right = 1, i = 0; i < n; ++i) right &= all[i] == 100 * i + rank;
  check("MPI_Alltoall in place", right);

  for (i = 0; i < 2 * n; ++i) all[i] = -1;
  MPI_Gather(mine, 2, MPI_INT, rank == root ? all : NULL, rank == root ? 2 : 0,
             rank == root ? MPI_INT : MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
  for (right = 1, i = 0; i < n && rank == root; ++i) right &= all[2 * i] == i;
  check("MPI_Gather", right);
  if (rank == root) {
    for (i = 0; i < n; ++i) to[i] = i == root ? 100 : -1;
    MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, to, 1, MPI_INT, root, MPI_COMM_WORLD);
    for (right = 1, i = 0; i < n; ++i) right &= to[i] == (i == root ? 100 : i);
  } else {
    MPI_Gather(mine, 1, MPI_INT, NULL, 0, MPI_INT, root, MPI_COMM_WORLD);
  }
  check("MPI_Gather in place", right);

  int got[2] = {-1, -1};
  for (i = 0; i < 2 * n; ++i) all[i] = 7 * i;
  MPI_Scatter(rank == root ? all : NULL, 2, MPI_INT, got, 2, MPI_INT, root, MPI_COMM_WORLD);
  check("MPI_Scatter", got[0] == 14 * rank && got[1] == 14 * rank + 7);
  if (rank == root)
    MPI_Scatter(all, 2, MPI_INT, MPI_IN_PLACE, 2, MPI_INT, root, MPI_COMM_WORLD);
  else
    MPI_Scatter(NULL, 2, MPI_INT, got, 2, MPI_INT, root, MPI_COMM_WORLD);
  check("MPI_Scatter in place", rank == root ? all[0] == 0 : got[0] == 14 * rank);
  MPI_Type_free(&every_other);
  free(places);
  free(counts);
  free(to);
  free(all);
}

/* Rank r sends (r + 2 * p) % 4 elements to rank p: 1000 * r + 10 * p and the following numbers. */
static int length(int from, int to) { return (from + 2 * to) % 4; }

static void lengths_of_ones_own(void) {
  int n = ranks, i, k, right, root = n / 2;
  int* in = ints_per_rank(8);
  int* out = ints_per_rank(8);
  int* in_counts = ints_per_rank(1);
  int* in_places = ints_per_rank(1);
  int* out_counts = ints_per_rank(1);
  int* out_places = ints_per_rank(1);
  MPI_Datatype* in_types = malloc(sizeof(MPI_Datatype) * (size_t)n);
  MPI_Datatype* out_types = malloc(sizeof(MPI_Datatype) * (size_t)n);
  MPI_Datatype every_other; /* spans three elements, with a gap in the middle */
  MPI_Type_vector(2, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);

  for (int call = 0; call < 4; ++call) {
    /* Input blocks in rank order; output blocks in reverse order, with gaps. */
    for (i = 0; i < 8 * n; ++i) in[i] = out[i] = -1;
    for (i = 0; i < n; ++i) {
      in_counts[i] = length(rank, i);
      in_places[i] = 8 * i;
      out_counts[i] = length(i, rank);
      out_places[i] = 8 * (n - 1 - i) + 1;
      for (k = 0; k < in_counts[i]; ++k) in[8 * i + k] = 1000 * rank + 10 * i + k;
    }
    MPI_Alltoallv(in, in_counts, in_places, MPI_INT, out, out_counts, out_places, MPI_INT,
                  MPI_COMM_WORLD);
    for (right = 1, i = 0; i < n; ++i) {
      for (k = 0; k < out_counts[i]; ++k)
        right &= out[out_places[i] + k] == 1000 * i + 10 * rank + k;
      right &= out[out_places[i] - 1] == -1 && out[out_places[i] + out_counts[i]] == -1;
    }
    check("MPI_Alltoallv", right);

    /* In place, each pair of ranks exchanges equal numbers of elements. */
    for (i = 0; i < 8 * n; ++i) out[i] = -1;
    for (i = 0; i < n; ++i) {
      out_counts[i] = (rank + i) % 3;
      out_places[i] = 8 * i;
      for (k = 0; k < out_counts[i]; ++k) out[8 * i + k] = 1000 * rank + 10 * i + k;
    }
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, out, out_counts, out_places, MPI_INT,
                  MPI_COMM_WORLD);
    for (right = 1, i = 0; i < n; ++i) {
      for (k = 0; k < out_counts[i]; ++k) right &= out[8 * i + k] == 1000 * i + 10 * rank + k;
      right &= out[8 * i + out_counts[i]] == -1;
    }
    check("MPI_Alltoallv in place", right);

    /* Every rank sends two contiguous elements, and odd ranks receive them with a gap in the
     * middle. */
    for (i = 0; i < 8 * n; ++i) out[i] = -1;
    for (i = 0; i < n; ++i) {
      in_counts[i] = 2;
      in_places[i] = 8 * i * (int)sizeof(int);
      in_types[i] = MPI_INT;
      out_counts[i] = rank % 2 ? 1 : 2;
      out_places[i] = 8 * i * (int)sizeof(int);
      out_types[i] = rank % 2 ? every_other : MPI_INT;
      in[8 * i] = 1000 * rank + 10 * i;
      in[8 * i + 1] = -1000 * rank - 10 * i;
    }
    MPI_Alltoallw(in, in_counts, in_places, in_types, out, out_counts, out_places, out_types,
                  MPI_COMM_WORLD);
    for (right = 1, i = 0; i < n; ++i) {
      right &= out[8 * i] == 1000 * i + 10 * rank;
      right &= out[8 * i + (rank % 2 ? 2 : 1)] == -1000 * i - 10 * rank;
      right &= out[8 * i + (rank % 2 ? 1 : 2)] == -1;
    }
    check("MPI_Alltoallw", right);

    for (i = 0; i < 8 * n; ++i) out[i] = -1;
    for (i = 0; i < n; ++i) {
      out_counts[i] = i % 3;
      out_places[i] = 8 * (n - 1 - i);
    }
    int mine[2] = {rank, -rank};
    MPI_Gatherv(mine, rank % 3, MPI_INT, rank == root ? out : NULL,
                rank == root ? out_counts : NULL, rank == root ? out_places : NULL,
                rank == root ? MPI_INT : MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
    for (right = 1, i = 0; i < n && rank == root; ++i) {
      const int* block = out + out_places[i];
      right &= block[0] == (i % 3 > 0 ? i : -1) && block[1] == (i % 3 > 1 ? -i : -1);
      right &= block[2] == -1;
    }
    check("MPI_Gatherv", right);
    if (rank == root) {
      for (i = 0; i < 8 * n; ++i) out[i] = i / 8 == n - 1 - root ? 77 : -1;
      MPI_Gatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, out_counts, out_places, MPI_INT, root,
                  MPI_COMM_WORLD);
      for (right = 1, i = 0; i < n; ++i)
        right &= out[out_places[i]] == (i == root ? 77 : i % 3 > 0 ? i : -1);
    } else {
      MPI_Gatherv(mine, rank % 3, MPI_INT, NULL, NULL, NULL, MPI_INT, root, MPI_COMM_WORLD);
    }
    check("MPI_Gatherv in place", right);

    int got[3] = {-1, -1, -1};
    for (i = 0; i < 8 * n; ++i) in[i] = 7 * i;
    MPI_Scatterv(rank == root ? in : NULL, rank == root ? out_counts : NULL,
                 rank == root ? out_places : NULL, MPI_INT, got, rank % 3, MPI_INT, root,
                 MPI_COMM_WORLD);
    right = 1;
    for (k = 0; k < 3; ++k) right &= got[k] == (k < rank % 3 ? 7 * (8 * (n - 1 - rank) + k) : -1);
    check("MPI_Scatterv", right);
    if (rank == root)
      MPI_Scatterv(in, out_counts, out_places, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root,
                   MPI_COMM_WORLD);
    else
      MPI_Scatterv(NULL, NULL, NULL, MPI_INT, got, rank % 3, MPI_INT, root, MPI_COMM_WORLD);
    check("MPI_Scatterv in place", rank == root ? in[1] == 7 : got[2] == -1);
  }

  /* One rank's block is longer than the library accepts. */
  enum { N = 1 << 16 };
  char* const much = malloc(N * (size_t)n);
  for (i = 0; i < n; ++i) {
    out_counts[i] = i == 0 ? N : 1;
    out_places[i] = N * i;
  }
  memset(much, rank + 1, N * (size_t)n);
  char* const here = malloc(N);
  memset(here, rank + 1, N);
  MPI_Gatherv(here, rank == 0 ? N : 1, MPI_CHAR, much, out_counts, out_places, MPI_CHAR, root,
              MPI_COMM_WORLD);
  for (right = 1, i = 0; i < n && rank == root; ++i)
    right &= much[N * i] == i + 1 && much[N * i + out_counts[i] - 1] == i + 1;
  check("MPI_Gatherv of much", right);
  free(here);
  free(much);
  MPI_Type_free(&every_other);
  free(out_types);
  free(in_types);
  free(out_places);
  free(out_counts);
  free(in_places);
  free(in_counts);
  free(out);
  free(in);
}

/* Nonblocking and persistent calls, together with blocking calls. */
static void not_waited_for(void) {
  MPI_Request requests[4];
  MPI_Status statuses[4];
  int call, kinds = 3, x = rank, sum = -1, word = rank == 0 ? 4711 : 0, right = 1;
  int *ones = ints_per_rank(1), *places = ints_per_rank(1);
  int *in = ints_per_rank(1), *out = ints_per_rank(1);
  for (int i = 0; i < ranks; ++i) ones[i] = 1, places[i] = i;
#if MPI_VERSION >= 4
  int all = -1;
  MPI_Allreduce_init(&x, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[3]);
  kinds = 4;
#endif
  for (call = 0; call < 3; ++call) {
    for (int i = 0; i < ranks; ++i) in[i] = 100 * rank + i;
    MPI_Iallreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Ialltoallv(in, ones, places, MPI_INT, out, ones, places, MPI_INT, MPI_COMM_WORLD,
                   &requests[2]);
    if (kinds == 4) MPI_Start(&requests[3]);
    MPI_Barrier(MPI_COMM_WORLD); /* in flight with the others */
    MPI_Waitall(kinds, requests, statuses);
    right &= sum == sum_of_ranks() && word == 4711;
    for (int i = 0; i < ranks; ++i) right &= out[i] == 100 * i + rank;
#if MPI_VERSION >= 4
    right &= all == ranks - 1;
    all = -1;
#endif
  }
  if (kinds == 4) MPI_Request_free(&requests[3]);
  check("calls that are not waited for", right);
  free(out);
  free(in);
  free(places);
  free(ones);
}

static int copies, deletions;
static int copy_attribute(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)comm, (void)key, (void)extra, (void)in, (void)out;
  ++copies;
  *flag = 0;
  return MPI_SUCCESS;
}
static int delete_attribute(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  ++deletions;
  return MPI_SUCCESS;
}

static void communicators(void) {
  MPI_Comm half, twin, inter;
  int key, x, i, right = 1, half_rank, half_ranks;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  MPI_Comm_rank(half, &half_rank);
  MPI_Comm_size(half, &half_ranks);
  MPI_Comm_create_keyval(copy_attribute, delete_attribute, &key, NULL);
  MPI_Comm_set_attr(half, key, &x);
  for (i = 0; i < 10; ++i) {
    x = 1;
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, half);
    right &= x == half_ranks;
    MPI_Barrier(half);
  }
  check("another communicator", right);
  check("its attributes are not copied", copies == 0);
  MPI_Comm_dup(half, &twin);
  check("but by MPI_Comm_dup", copies == 1);
  x = half_rank == 0 ? 5 : 0;
  MPI_Bcast(&x, 1, MPI_INT, 0, twin);
  check("a duplicate", x == 5);
  MPI_Comm_free(&twin);
  MPI_Comm_free(&half);
  check("attributes go with it", deletions == 1);
  for (i = 0; i < 50; ++i) { /* create and free */
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    x = 1;
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT, MPI_SUM, twin);
    right &= x == ranks;
    MPI_Comm_free(&twin);
  }
  check("many communicators", right);
  for (i = 0; i < 6; ++i) { /* the handle may be reused, with the ranks in another order */
    MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? -rank : rank, &twin);
    for (int call = 0; call < 5; ++call) {
      x = 10 * rank + call;
      MPI_Bcast(&x, 1, MPI_INT, 0, twin);
      right &= x == 10 * (i % 2 ? ranks - 1 : 0) + call;
    }
    MPI_Comm_free(&twin);
  }
  check("one communicator after the other", right);
  if (ranks > 1) {
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 3, &inter);
    x = 1;
    int y = 0, remote = 0;
    MPI_Comm_remote_size(inter, &remote);
    MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, inter);
    check("an intercommunicator", y == remote);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
  }
  MPI_Comm_free_keyval(&key);
}

/* The ranks make their first calls on the two communicators in different orders, and do not free
 * them before MPI_Finalize. */
static void left_to_the_end(void) {
  static MPI_Comm left[2];
  int i, call, right = 1, first = rank == 0 ? 0 : 1;
  int *ones = ints_per_rank(1), *places = ints_per_rank(1);
  int *in = ints_per_rank(1), *out = ints_per_rank(1);
  for (i = 0; i < 2; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &left[i]);
  for (i = 0; i < 2 && ranks > 1; ++i) { /* roots do not wait */
    const int which = i ^ first;
    int x = rank == which ? 5 + which : 0;
    MPI_Bcast(&x, 1, MPI_INT, which, left[which]);
    right &= x == 5 + which;
  }
  for (i = 0; i < ranks; ++i) ones[i] = 1, places[i] = i, in[i] = 100 * rank + i;
  for (call = 0; call < 5; ++call) {
    MPI_Alltoallv(in, ones, places, MPI_INT, out, ones, places, MPI_INT, left[call % 2]);
    MPI_Alltoallv(in, ones, places, MPI_INT, out, ones, places, MPI_INT, left[1 - call % 2]);
    for (i = 0; i < ranks; ++i) right &= out[i] == 100 * i + rank;
  }
  check("communicators that are left to the end", right);
  free(out);
  free(in);
  free(places);
  free(ones);
}

/* Rank 1 receives the rest of a message while rank 0 is already in a collective call. Rank 1 makes
 * the collective call only after the receive. */
static void messages_meanwhile(void) {
  enum { N = 1 << 20 };
  int x, sum, i, right = 1;
  int* data = malloc(sizeof(int) * N);
  if (ranks > 1) {
    for (x = 0; x < 3; ++x) {
      MPI_Request sent;
      for (i = 0; i < N; ++i) data[i] = rank == 0 ? i + x : -1;
      if (rank == 0) MPI_Isend(data, N, MPI_INT, 1, 17, MPI_COMM_WORLD, &sent);
      if (rank == 1) MPI_Recv(data, N, MPI_INT, 0, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      MPI_Barrier(MPI_COMM_WORLD);
      if (rank == 0) MPI_Wait(&sent, MPI_STATUS_IGNORE);
      right &= sum == x * ranks;
      for (i = 0; i < N && rank == 1; ++i) right &= data[i] == i + x;
    }
  }
  check("messages under way meanwhile", right);
  free(data);
}

/* MPICH as Debian and others build it checks no arguments. */
#ifdef OPEN_MPI
static void errors(void) {
  int x = 1, y = 0, class = 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int code = MPI_Bcast(&x, 1, MPI_INT, ranks, MPI_COMM_WORLD);
  MPI_Error_class(code, &class);
  check("a root that there is not", class == MPI_ERR_ROOT);
  code = MPI_Allreduce(&x, &y, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Error_class(code, &class);
  check("a count below 0", class == MPI_ERR_COUNT);
  code = MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD);
  check("bits of a double", code != MPI_SUCCESS);
  int ones[64], none[64];
  for (int i = 0; i < 64; ++i) ones[i] = rank == 0 ? -1 : 1, none[i] = 0;
  if (ranks == 1) { /* a rank with an error returns, and the others would wait for it */
    code = MPI_Alltoallv(none, ones, none, MPI_INT, none, ones, none, MPI_INT, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    check("a count below 0 of one's own", class == MPI_ERR_COUNT);
  }
  code = MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check("and it goes on", code == MPI_SUCCESS && y == ranks);
}
#endif

int main(int argc, char** argv) {
  begin_program(argc, argv);
  /* The library passes the first calls of a communicator to MPI. */
  for (int i = 0; i < 5; ++i) MPI_Barrier(MPI_COMM_WORLD);
  allreduces();
#if MPI_VERSION >= 5
  long_integers();
#endif
  operations();
  reduces_and_scans();
  reduce_scatters();
  moves();
  lengths_of_ones_own();
  not_waited_for();
  communicators();
  left_to_the_end();
  messages_meanwhile();
  MPI_Barrier(MPI_COMM_WORLD);
#ifdef OPEN_MPI
  errors();
#endif
  return end_program();
}
