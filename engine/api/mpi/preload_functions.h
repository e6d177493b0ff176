// The functions of MPI that the preload library takes over: the one table of them, of which their
// names in C and Fortran, their three forms and the report's lines are made.
//
// RANKINE_FUNCTIONS(KNOWN, OWN) is a line for each, KNOWN(Allreduce, allreduce, RANKINE_REDUCED):
// MPI_Allreduce, what C calls it in small letters, and its parameters but for the communicator.
// KNOWN: all ranks know how much is moved; OWN: each knows its own lengths only.
//
// RANKINE_REDUCED(P) is P(Type, name) of each parameter. Type is a name in preload_parameters.h:
// what it is there depends on whether counts are ints (MPI_Bcast) or MPI_Count (MPI_Bcast_c).
#pragma once

#define RANKINE_NOTHING(P)
#define RANKINE_REDUCED(P) \
  P(ConstBuffer, in) P(Buffer, out) P(Count, count) P(Type, type) P(Op, op)
#define RANKINE_REDUCED_TO_ROOT(P) RANKINE_REDUCED(P) P(Root, root)
#define RANKINE_REDUCED_BLOCKS(P) \
  P(ConstBuffer, in) P(Buffer, out) P(Counts, counts) P(Type, type) P(Op, op)
#define RANKINE_BUFFER_OF_ROOT(P) P(Buffer, buffer) P(Count, count) P(Type, type) P(Root, root)
#define RANKINE_IN(P) P(ConstBuffer, in) P(Count, in_count) P(Type, in_type)
#define RANKINE_OUT(P) P(Buffer, out) P(Count, out_count) P(Type, out_type)
#define RANKINE_IN_BLOCKS(P) \
  P(ConstBuffer, in) P(Counts, in_counts) P(Places, in_places) P(Type, in_type)
#define RANKINE_OUT_BLOCKS(P) \
  P(Buffer, out) P(Counts, out_counts) P(Places, out_places) P(Type, out_type)
#define RANKINE_MOVED(P) RANKINE_IN(P) RANKINE_OUT(P)
#define RANKINE_MOVED_AT_ROOT(P) RANKINE_MOVED(P) P(Root, root)
#define RANKINE_GATHERED(P) RANKINE_IN(P) RANKINE_OUT_BLOCKS(P)
#define RANKINE_GATHERED_AT_ROOT(P) RANKINE_GATHERED(P) P(Root, root)
#define RANKINE_SCATTERED_AT_ROOT(P) RANKINE_IN_BLOCKS(P) RANKINE_OUT(P) P(Root, root)
#define RANKINE_EXCHANGED(P) RANKINE_IN_BLOCKS(P) RANKINE_OUT_BLOCKS(P)
#define RANKINE_IN_OF_TYPES(P) \
  P(ConstBuffer, in)           \
  P(Counts, in_counts) P(Places, in_places) P(Types, in_types)
#define RANKINE_OUT_OF_TYPES(P) \
  P(Buffer, out)                 \
  P(Counts, out_counts) P(Places, out_places) P(Types, out_types)
#define RANKINE_EXCHANGED_OF_TYPES(P) RANKINE_IN_OF_TYPES(P) RANKINE_OUT_OF_TYPES(P)

// In the order of the report; those with counts again for themselves.
#define RANKINE_FUNCTIONS(KNOWN, OWN)             \
  RANKINE_FUNCTIONS_BEFORE_BARRIER(KNOWN, OWN)    \
  KNOWN(Barrier, barrier, RANKINE_NOTHING)        \
  RANKINE_FUNCTIONS_BEHIND_BARRIER(KNOWN, OWN)
#define RANKINE_FUNCTIONS_WITH_COUNTS(ANY)   \
  RANKINE_FUNCTIONS_BEFORE_BARRIER(ANY, ANY) \
  RANKINE_FUNCTIONS_BEHIND_BARRIER(ANY, ANY)
#define RANKINE_FUNCTIONS_BEFORE_BARRIER(KNOWN, OWN) \
  KNOWN(Allgather, allgather, RANKINE_MOVED)         \
  KNOWN(Allgatherv, allgatherv, RANKINE_GATHERED)    \
  KNOWN(Allreduce, allreduce, RANKINE_REDUCED)       \
  KNOWN(Alltoall, alltoall, RANKINE_MOVED)           \
  OWN(Alltoallv, alltoallv, RANKINE_EXCHANGED)       \
  OWN(Alltoallw, alltoallw, RANKINE_EXCHANGED_OF_TYPES)
#define RANKINE_FUNCTIONS_BEHIND_BARRIER(KNOWN, OWN)                 \
  KNOWN(Bcast, bcast, RANKINE_BUFFER_OF_ROOT)                        \
  KNOWN(Exscan, exscan, RANKINE_REDUCED)                             \
  KNOWN(Gather, gather, RANKINE_MOVED_AT_ROOT)                       \
  OWN(Gatherv, gatherv, RANKINE_GATHERED_AT_ROOT)                    \
  KNOWN(Reduce, reduce, RANKINE_REDUCED_TO_ROOT)                     \
  KNOWN(Reduce_scatter, reduce_scatter, RANKINE_REDUCED_BLOCKS)      \
  KNOWN(Reduce_scatter_block, reduce_scatter_block, RANKINE_REDUCED) \
  KNOWN(Scan, scan, RANKINE_REDUCED)                                 \
  KNOWN(Scatter, scatter, RANKINE_MOVED_AT_ROOT)                     \
  OWN(Scatterv, scatterv, RANKINE_SCATTERED_AT_ROOT)

// Lists of parameters, which another follows or that follow one: P of the above.
#define RANKINE_DECLARED(Type, name) WithInts::Type name,
#define RANKINE_DECLARED_LARGE(Type, name) WithCounts::Type name,
#define RANKINE_GIVEN(Type, name) name,
#define RANKINE_ALSO_DECLARED(Type, name) , Either::Type name
#define RANKINE_ALSO_GIVEN(Type, name) , name
