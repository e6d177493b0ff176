/* An MPI program without any use of Rankine: every blocking call that the preload library takes
 * over, basic types and operations, and calls that the library must pass to MPI. It
 * prints the same result with and without the library: "N passed, M failed". */
#include <mpi.h>

#include "checks.h"
#include "every_call.h"

/* Types and operations. */
static void allreduces(void) {
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

/* One rank's block is longer than the library accepts. */
static void much(void) {
  enum { N = 1 << 16 };
  const int root = ranks / 2;
  int *counts = ints_per_rank(1), *places = ints_per_rank(1), right = 1;
  char* const all = (char*)ints_per_rank(N / (int)sizeof(int));
  static char here[N];
  for (int i = 0; i < ranks; ++i) counts[i] = i == 0 ? N : 1, places[i] = N * i;
  memset(here, rank + 1, N);
  MPI_Gatherv(here, counts[rank], MPI_CHAR, all, counts, places, MPI_CHAR, root, MPI_COMM_WORLD);
  for (int i = 0; i < ranks && rank == root; ++i)
    right &= all[N * i] == i + 1 && all[N * i + counts[i] - 1] == i + 1;
  check("MPI_Gatherv of much", right);
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
  every_call(kBlocking, 0, 4);
  much();
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
