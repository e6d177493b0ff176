// Ranks on threads of their own that run plans with the real interpreter, mailboxes and counters,
// below the public interface. Keeps its counters from run to run, as a communicator does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/exec/crossbar.h"
#include "engine/exec/interpret.h"
#include "tests/engine/exec/random.h"
#include "tests/engine/exec/random_call.h"

namespace rankine {

class TestTeam {
 public:
  struct Options {
    int ranks = 2;
    WaitPolicy policy{};
    std::int64_t timeout_ns = 60'000'000'000;
    std::uint32_t first_count = 0;  // of all counters
    std::size_t slot_payload = 48;
    bool strict = false;  // as of Crossbar
  };

  explicit TestTeam(const Options& options);
  ~TestTeam();

  // Every rank runs all calls, one after the other, each at a pace of its own: `seed` draws yields
  // and spins between calls and between rounds. A rank's buffers and scratch are overwritten as
  // soon as its call returns. Empty, or what went wrong first.
  std::string run(std::span<const TestCall* const> calls, std::uint64_t seed);

  Crossbar& crossbar();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

WaitPolicy random_policy(Random& random);

}  // namespace rankine
