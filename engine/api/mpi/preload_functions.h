// The functions of MPI that the preload library takes over: the one table of them, of which their
// names in C and Fortran, their three forms and the report's lines are made.
//
// RANKINE_FUNCTIONS(KNOWN, OWN) is a line for each, KNOWN(Allreduce, allreduce, RANKINE_REDUCED):
// MPI_Allreduce, what C calls it in small letters, and its parameters but for the communicator.
// KNOWN: all ranks know how much is moved; OWN: each knows its own lengths only.
//
// RANKINE_REDUCED(P) is P(type, name) of each parameter.
#pragma once

#define RANKINE_NOTHING(P)
#define RANKINE_REDUCED(P) \
  P(const void*, in) P(void*, out) P(int, count) P(MPI_Datatype, type) P(MPI_Op, op)
#define RANKINE_REDUCED_TO_ROOT(P) RANKINE_REDUCED(P) P(int, root)
#define RANKINE_REDUCED_BLOCKS(P) \
  P(const void*, in) P(void*, out) P(const int*, counts) P(MPI_Datatype, type) P(MPI_Op, op)
#define RANKINE_BUFFER_OF_ROOT(P) P(void*, buffer) P(int, count) P(MPI_Datatype, type) P(int, root)
#define RANKINE_IN(P) P(const void*, in) P(int, in_count) P(MPI_Datatype, in_type)
#define RANKINE_OUT(P) P(void*, out) P(int, out_count) P(MPI_Datatype, out_type)
#define RANKINE_IN_BLOCKS(P) \
  P(const void*, in) P(const int*, in_counts) P(const int*, in_places) P(MPI_Datatype, in_type)
#define RANKINE_OUT_BLOCKS(P) \
  P(void*, out) P(const int*, out_counts) P(const int*, out_places) P(MPI_Datatype, out_type)
#define RANKINE_MOVED(P) RANKINE_IN(P) RANKINE_OUT(P)
#define RANKINE_MOVED_AT_ROOT(P) RANKINE_MOVED(P) P(int, root)
#define RANKINE_GATHERED(P) RANKINE_IN(P) RANKINE_OUT_BLOCKS(P)
#define RANKINE_GATHERED_AT_ROOT(P) RANKINE_GATHERED(P) P(int, root)
#define RANKINE_SCATTERED_AT_ROOT(P) RANKINE_IN_BLOCKS(P) RANKINE_OUT(P) P(int, root)
#define RANKINE_EXCHANGED(P) RANKINE_IN_BLOCKS(P) RANKINE_OUT_BLOCKS(P)
#define RANKINE_IN_OF_TYPES(P) \
  P(const void*, in)           \
  P(const int*, in_counts) P(const int*, in_places) P(const MPI_Datatype*, in_types)
#define RANKINE_OUT_OF_TYPES(P) \
  P(void*, out)                 \
  P(const int*, out_counts) P(const int*, out_places) P(const MPI_Datatype*, out_types)
#define RANKINE_EXCHANGED_OF_TYPES(P) RANKINE_IN_OF_TYPES(P) RANKINE_OUT_OF_TYPES(P)

// In the order of the report.
#define RANKINE_FUNCTIONS(KNOWN, OWN)                                \
  KNOWN(Allgather, allgather, RANKINE_MOVED)                         \
  KNOWN(Allgatherv, allgatherv, RANKINE_GATHERED)                    \
  KNOWN(Allreduce, allreduce, RANKINE_REDUCED)                       \
  KNOWN(Alltoall, alltoall, RANKINE_MOVED)                           \
  OWN(Alltoallv, alltoallv, RANKINE_EXCHANGED)                       \
  OWN(Alltoallw, alltoallw, RANKINE_EXCHANGED_OF_TYPES)              \
  KNOWN(Barrier, barrier, RANKINE_NOTHING)                           \
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
#define RANKINE_DECLARED(type, name) type name,
#define RANKINE_GIVEN(type, name) name,
#define RANKINE_ALSO_DECLARED(type, name) , type name
#define RANKINE_ALSO_GIVEN(type, name) , name
