// The settings of the preload library (RANKINE_MPI), its table of MPI functions, and its report,
// which counts taken and passed calls per function.
//
// PreloadSettings holds the words of RANKINE_MPI, a list with commas.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rankine::mpi {

struct PreloadSettings {
  bool takes = true;      // "on" (default); "off": all calls are passed on to MPI
  bool reports = false;   // "report": print a report at the end
  bool messages = false;  // "messages": never use shared memory; default "memory"
};

// Reads the variable once. An unknown word ends the process with an error that lists the allowed
// words.
const PreloadSettings& preload_settings();

}  // namespace rankine::mpi

// The table of the MPI functions that the preload library takes over. Their names in C and Fortran,
// their three forms and the report's lines are generated from this table.
//
// RANKINE_FUNCTIONS(KNOWN, OWN) has one line per function: KNOWN(Allreduce, allreduce,
// RANKINE_REDUCED) is MPI_Allreduce, its name in lower case, and its parameters except the
// communicator. KNOWN: all ranks know the lengths of all data; OWN: each rank knows its own lengths
// only.
//
// RANKINE_REDUCED(P) is P(Type, name) for each parameter. Type is a name of the structs in
// preload_blocks.h: its C type depends on the type of counts, int (MPI_Bcast) or MPI_Count
// (MPI_Bcast_c).

#define RANKINE_NOTHING(P)
#define RANKINE_REDUCED(P) P(ConstBuffer, in) P(Buffer, out) P(Count, count) P(Type, type) P(Op, op)
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
  P(Buffer, out)                \
  P(Counts, out_counts) P(Places, out_places) P(Types, out_types)
#define RANKINE_EXCHANGED_OF_TYPES(P) RANKINE_IN_OF_TYPES(P) RANKINE_OUT_OF_TYPES(P)

// In the order of the report. RANKINE_FUNCTIONS_WITH_COUNTS lists only functions with counts.
#define RANKINE_FUNCTIONS(KNOWN, OWN)          \
  RANKINE_FUNCTIONS_BEFORE_BARRIER(KNOWN, OWN) \
  KNOWN(Barrier, barrier, RANKINE_NOTHING)     \
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

// Values for P above. Each expands a list of parameters, with commas after or before each.
#define RANKINE_DECLARED(Type, name) WithInts::Type name,
#define RANKINE_DECLARED_LARGE(Type, name) WithCounts::Type name,
#define RANKINE_GIVEN(Type, name) name,
#define RANKINE_ALSO_DECLARED(Type, name) , Either::Type name
#define RANKINE_ALSO_GIVEN(Type, name) , name

// The report, printed if RANKINE_MPI contains report. It counts calls per MPI function.

namespace rankine::mpi {

#define RANKINE_ENUMERATOR(Name, name, PARAMETERS) name,
enum class Function : std::uint8_t { RANKINE_FUNCTIONS(RANKINE_ENUMERATOR, RANKINE_ENUMERATOR) };
#undef RANKINE_ENUMERATOR
inline constexpr int kFunctions = 17;
std::string_view name_of(Function function);  // "MPI_Allreduce"

// The form of a call. The report counts a prepared call as taken at each start, and as passed on
// once.
enum class Form : std::uint8_t { waited_for, started, prepared };
inline constexpr int kForms = 3;
std::string name_of(Function function, Form form);  // "MPI_Iallreduce", "MPI_Allreduce_init"

// The reason to pass a call on to MPI.
enum class Passed : std::uint8_t {
  arguments,  // MPI has an error for the arguments
  intercommunicator,
  processes,  // in several MPI_COMM_WORLDs, or without this library
  empty,      // no bytes to move; then buffers may be arbitrary
  type,
  operation,
  first_calls,     // the communicator may be short-lived
  large,           // too large to post (lengths known to some ranks only), or to pack
  lengths,         // known to some ranks only, while calls go by messages
  refused,         // the engine has no plan for it, or no communicator
  not_waited_for,  // started or prepared, and ranks would need to communicate first
};
inline constexpr int kPassed = 11;
std::string_view name_of(Passed why);

// Thread-safe: counters that only grow.
class Report {
 public:
  void taken(Function function, std::uint64_t bytes, double seconds,
             Form form = Form::waited_for) noexcept;
  void passed(Function function, Passed why, Form form = Form::waited_for) noexcept;
  // Counts a communicator with taken calls, through shared memory or by messages.
  void communicator(bool is_over_memory) noexcept;
  // Prints to standard error, on the calling rank.
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

// One object per process.
Report& report();

}  // namespace rankine::mpi
