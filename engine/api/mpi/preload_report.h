// What the preload library did, for who asks with RANKINE_MPI=report: counted per function of MPI.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/api/mpi/preload_functions.h"

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
