// What RANKINE_MPI asks of the preload library: words with commas between them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rankine::mpi {

struct PreloadSettings {
  bool takes = true;      // "on", the default; "off": everything is passed on
  bool reports = false;   // "report": say at the end what was done
  bool messages = false;  // "messages": by MPI's messages also where ranks could share memory;
                          // "memory", the default, is the contrary
};

// Read once. A word that is none of these ends the process, with what is allowed.
const PreloadSettings& preload_settings();

}  // namespace rankine::mpi

// The functions of MPI that the preload library takes over: the one table of them, of which their
// names in C and Fortran, their three forms and the report's lines are made.
//
// RANKINE_FUNCTIONS(KNOWN, OWN) is a line for each, KNOWN(Allreduce, allreduce, RANKINE_REDUCED):
// MPI_Allreduce, what C calls it in small letters, and its parameters but for the communicator.
// KNOWN: all ranks know how much is moved; OWN: each knows its own lengths only.
//
// RANKINE_REDUCED(P) is P(Type, name) of each parameter. Type is a name in preload_parameters.h:
// what it is there depends on whether counts are ints (MPI_Bcast) or MPI_Count (MPI_Bcast_c).

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

// What the preload library did, for who asks with RANKINE_MPI=report: counted per function of MPI.

namespace rankine::mpi {

#define RANKINE_ENUMERATOR(Name, name, PARAMETERS) name,
enum class Function : std::uint8_t { RANKINE_FUNCTIONS(RANKINE_ENUMERATOR, RANKINE_ENUMERATOR) };
#undef RANKINE_ENUMERATOR
inline constexpr int kFunctions = 17;
std::string_view name_of(Function function);  // "MPI_Allreduce"

// How a program calls it. A prepared call is taken as often as it is started, and passed on once.
enum class Form : std::uint8_t { waited_for, started, prepared };
inline constexpr int kForms = 3;
std::string name_of(Function function, Form form);  // "MPI_Iallreduce", "MPI_Allreduce_init"

// Why a call is MPI's own.
enum class Passed : std::uint8_t {
  arguments,  // what MPI has its own errors for
  intercommunicator,
  processes,  // of several MPI_COMM_WORLDs, or some of which do not have this library
  empty,      // no bytes to move: buffers may be anything then
  type,
  operation,
  first_calls,     // of a communicator that may not live long
  large,           // too much to post, where lengths are known to some ranks only; or to pack
  lengths,         // known to some ranks only, where calls go by messages
  refused,         // the engine has no plan for it, or no communicator
  not_waited_for,  // started or prepared where ranks would have to ask each other, or by messages
};
inline constexpr int kPassed = 11;
std::string_view name_of(Passed why);

// Thread-safe: numbers that are only added to.
class Report {
 public:
  void taken(Function function, std::uint64_t bytes, double seconds,
             Form form = Form::waited_for) noexcept;
  void passed(Function function, Passed why, Form form = Form::waited_for) noexcept;
  // A communicator whose calls are taken from now on, through shared memory or by messages.
  void communicator(bool is_over_memory) noexcept;
  // On standard error, by one rank.
  void print(int rank, int ranks) const;

 private:
  struct Line {
    std::uint64_t taken = 0, bytes = 0, nanoseconds = 0;
    std::array<std::uint64_t, kPassed> passed{};
  };
  static void print(const std::string& name, const Line& line);
  Line& line_of(Function function, Form form) {
    return lines_[static_cast<std::size_t>(function)][static_cast<std::size_t>(form)];
  }
  std::array<std::array<Line, kForms>, kFunctions> lines_;
  std::uint64_t by_memory_ = 0, by_messages_ = 0;  // communicators
};

// This process's.
Report& report();

}  // namespace rankine::mpi
