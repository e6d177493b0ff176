// A session: what one team of ranks does in its life, calls of all forms back to back. Drawn from a
// seed, which replays it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/engine/run/random.h"
#include "tests/engine/run/random_call.h"

namespace rankine {

struct SessionRules {
  CallRules calls{};     // ranks: at most so many
  int schedules = 5;     // different calls
  int repetitions = 12;  // at most so many further calls of the same schedules
  bool checks_plans = true;
};

struct Session {
  int ranks = 1;
  std::size_t slot_payload = 48;
  std::uint32_t first_count = 0;  // of all counters: often shortly before they wrap
  std::vector<TestCall> made;
  std::vector<const TestCall*> calls;  // of `made`, in the order in which they are run
  std::string fault;                   // a plan that is wrong at first sight; empty: none

  // A fault that was found while running, with all that helps to understand it.
  std::string explain(const std::string& what) const;
};

Session random_session(Random& random, SessionRules rules);

}  // namespace rankine
