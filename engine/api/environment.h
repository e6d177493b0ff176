// Where the counters of a communicator begin: 0, but for tests near their wrap.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "algorithms/catalogue.h"
#include "engine/api/communicator.h"
#include "engine/api/network.h"
#include "engine/api/processes/identity.h"
#include "engine/base/costs.h"
#include "engine/base/status.h"
#include "engine/run/crossbar.h"
#include "engine/run/plan.h"

namespace rankine {

// For as long as it lives, of the communicators that this thread makes.
class FirstCount {
 public:
  explicit FirstCount(std::uint32_t count) : before_(current_) { current_ = count; }
  ~FirstCount() { current_ = before_; }
  FirstCount(const FirstCount&) = delete;
  FirstCount& operator=(const FirstCount&) = delete;

  static std::uint32_t current() { return current_; }

 private:
  inline static thread_local std::uint32_t current_ = 0;
  const std::uint32_t before_;
};

// Environment variables, in the field's habit: they force, or fail; never a silent substitute.
//
//   RANKINE_ALGO=all_reduce:ring;broadcast:chain   the algorithm of calls that name none; a name
//                                                  alone is that of all collectives that have it;
//                                                  of two such names the last
//   RANKINE_WAIT=auto|spin|yield|park              how ranks wait
//   RANKINE_TRANSPORT=auto|direct|mailbox|board    the transport of calls that name none
//   RANKINE_ISA=portable|avx2|avx512|avx512_bf16   caps the kernels (see kernels/reduce.h); an
//                                                  error if this machine does not have it
//   RANKINE_FLIGHT_RECORD=FILE                     where a communicator that ends by an error
//                                                  leaves its flight record, as JSON; %p: the
//                                                  process's id. A regular file, or not there yet;
//                                                  it is written whole, or (with a warning) not at
//                                                  all
//   RANKINE_FLIGHT_TIMES=0|1                       whether flight records have times
//   RANKINE_NETWORK=scale_out                      a modelled network that all calls are put on, or
//                                                  a file's path; see network.h
//   RANKINE_TUNING=FILE|off                        the machine's tuning table (see tuning.h), which
//                                                  is a cache: what does not suit is not used
//
// and, of the library under MPI programs, RANKINE_MPI and RANKINE_MPI_NODES. Names of collectives
// and algorithms may be written as people type them (typed_names.h).
//
// A name that is one or two letters away from one of these is an error. Any other name that begins
// with RANKINE_ has no effect; one warning for the whole process lists such names, but for those of
// the build and the tests (RANKINE_WITH_..., RANKINE_TEST_..., RANKINE_MPI...) and of an
// installation (RANKINE_ROOT, _DIR, _HOME, _PREFIX, _VERSION, _LIBRARY_PATH and their like).
//
// A privileged program reads none of them (see base/environment_variable.h).

struct Environment {
  std::array<const Algorithm*, kCollectives> algorithm{};  // nullptr: not forced
  std::optional<Transport> transport;
  std::optional<WaitPolicy::Mode> wait;
  std::string flight_record;  // a file's path, or empty
  bool flight_times = false;
  std::shared_ptr<const CallNetwork> network{};  // none: full speed
};

// "all_reduce:ring;broadcast:chain", or "ring". The error names the part that is wrong and what is
// allowed.
Result<std::array<const Algorithm*, kCollectives>> parse_forced_algorithms(std::string_view text);
Result<std::optional<Transport>> parse_forced_transport(std::string_view text);
Result<std::optional<WaitPolicy::Mode>> parse_wait_mode(std::string_view text);

// Reads the variables now. Errors name the variable and its value.
Result<Environment> read_environment();

// What this process says of itself where it meets those whose ranks will be of one communicator
// with its own.

// Errors: a machine that does not say which it is. Throws std::bad_alloc.
Result<ProcessSettings> process_settings(const CommunicatorOptions& options,
                                         const Environment& environment, const Costs& costs);

}  // namespace rankine
