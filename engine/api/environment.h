// Environment holds the settings that environment variables force, FirstCount sets the first count
// of new communicators, and process_settings() describes this process to the processes that it
// meets.
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
#include "engine/run/plan.h"
#include "engine/run/rank_control.h"

namespace rankine {

// FirstCount sets the value at which the counters of a communicator begin, for all communicators
// that this thread makes while the object lives. The default is 0; tests begin near the wrap.
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

// The environment variables force a setting or cause an error, as in other libraries of the field;
// the engine never substitutes another setting silently.
//
//   RANKINE_ALGO=all_reduce:ring;broadcast:chain   the algorithm of calls that name none; a name
//                                                  alone stands for all collectives that have it;
//                                                  the last of two such names counts
//   RANKINE_WAIT=auto|spin|yield|park              the wait mode of ranks
//   RANKINE_TRANSPORT=auto|direct|mailbox|board    the transport of calls that name none
//   RANKINE_ISA=portable|avx2|avx512|avx512_bf16   caps the kernels (on Arm: portable, neon,
//                                                  neon_bf16; see kernels/reduce.h); an error if
//                                                  this machine does not have it
//   RANKINE_FLIGHT_RECORD=FILE                     a communicator that ends by an error writes its
//                                                  flight record to this file, as JSON; %p: the
//                                                  process's id. FILE is a regular file or does
//                                                  not exist; it is written completely, or (with
//                                                  a warning) not at all
//   RANKINE_FLIGHT_TIMES=0|1                       1: flight records have times
//   RANKINE_NETWORK=scale_out                      the modelled network of all calls, or the path
//                                                  of a network file; see network.h
//   RANKINE_TRIALS=0|1                             0: no trials (engine/run/form_trials.h)
//   RANKINE_TUNING=FILE|off                        the machine's tuning table (see tuning.h), which
//                                                  is a cache: an unsuitable table is ignored
//
// The library under MPI programs also reads RANKINE_MPI and RANKINE_MPI_NODES. Names of collectives
// and algorithms may be spelled as people type them (algorithms/catalogue.h).
//
// A name that is one or two letters away from one of these is an error. Any other name that begins
// with RANKINE_ has no effect; one warning per process lists such names, except those of the build
// and the tests (RANKINE_WITH_..., RANKINE_TEST_..., RANKINE_MPI...) and those of an installation
// (RANKINE_ROOT, _DIR, _HOME, _PREFIX, _VERSION, _LIBRARY_PATH and similar).
//
// A privileged program reads none of them (see base/files.h).

struct Environment {
  std::array<const Algorithm*, kCollectives> algorithm{};  // nullptr: not forced
  std::optional<Transport> transport;
  std::optional<WaitPolicy::Mode> wait;
  std::string flight_record;  // a file's path, or empty
  bool flight_times = false;
  bool trials = true;
  std::shared_ptr<const CallNetwork> network{};  // none: full speed
};

// Parses "all_reduce:ring;broadcast:chain", or "ring". The error names the wrong part and the
// allowed values.
Result<std::array<const Algorithm*, kCollectives>> parse_forced_algorithms(std::string_view text);
Result<std::optional<Transport>> parse_forced_transport(std::string_view text);
Result<std::optional<WaitPolicy::Mode>> parse_wait_mode(std::string_view text);

// Reads the variables now. Errors name the variable and its value.
Result<Environment> read_environment();

// The settings that processes compare when they meet as the ranks of one communicator.

// Errors: the machine does not identify itself. Throws std::bad_alloc.
Result<ProcessSettings> process_settings(const CommunicatorOptions& options,
                                         const Environment& environment, const Costs& costs);

}  // namespace rankine
