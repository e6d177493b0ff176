// Plans executed by one thread, rank by rank, in any order that their waits allow: an abstract
// machine with the words, slots and counters of the real one. What a plan forgets to wait for shows
// at once, whatever the machine's timing: the next rank to move is drawn, and ranks like to run far
// ahead.
//
// Between calls a rank does what a caller may: its buffers and its scratch are overwritten as soon
// as its call returns, and the next call's data appears just before it enters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/engine/run/random.h"
#include "tests/engine/run/random_call.h"

namespace rankine {

struct ReplayOptions {
  int ranks = 2;
  std::uint32_t first_count = 0;  // of all counters
  std::size_t slot_payload = 48;
  bool one_half = false;  // a fault: boards have one half
};

class Replay {
 public:
  Replay(const ReplayOptions& options, Random& random);
  ~Replay();

  // Every rank runs all calls, one after the other. Empty, or what went wrong: wrong data, a read
  // of memory that nobody has offered or outside all buffers, or everybody stuck.
  std::string run(std::span<const TestCall* const> calls);

  std::uint64_t steps() const;

 private:
  struct Machine;
  std::unique_ptr<Machine> machine_;
};

// What is wrong with a plan at first sight: a wait for something of its own round or later, for
// progress that nobody publishes or for itself, an operand too many or too few. Empty: nothing.
// in_turns: rounds may begin again (turns.h), and only the replay finds out who waits for whom.
std::string fault_of(const Plan& plan, bool in_turns = false);

}  // namespace rankine
