// What the preload library did, for who asks with RANKINE_MPI=report: counted per function of MPI.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rankine::mpi {

enum class Function : std::uint8_t {
  allgather,
  allgatherv,
  allreduce,
  alltoall,
  barrier,
  bcast,
  exscan,
  gather,
  reduce,
  reduce_scatter,
  reduce_scatter_block,
  scan,
  scatter,
};
inline constexpr int kFunctions = 13;
std::string_view name_of(Function function);  // "MPI_Allreduce"

// Why a call is MPI's own.
enum class Passed : std::uint8_t {
  arguments,  // what MPI has its own errors for
  intercommunicator,
  type,
  operation,
  first_calls,  // of a communicator that may not live long
  large,        // moved, not added up: MPI copies once
  refused,      // the engine has no plan for it, or no communicator
};
inline constexpr int kPassed = 7;
std::string_view name_of(Passed why);

// Thread-safe: numbers that are only added to.
class Report {
 public:
  void taken(Function function, std::uint64_t bytes, double seconds) noexcept;
  void passed(Function function, Passed why) noexcept;
  // A communicator whose calls are taken from now on, through shared memory or by messages.
  void communicator(bool is_over_memory) noexcept;
  // On standard error, by one rank.
  void print(int rank, int ranks) const;

 private:
  struct Line {
    std::uint64_t taken = 0, bytes = 0, nanoseconds = 0;
    std::array<std::uint64_t, kPassed> passed{};
  };
  std::array<Line, kFunctions> lines_;
  std::uint64_t by_memory_ = 0, by_messages_ = 0;  // communicators
};

}  // namespace rankine::mpi
