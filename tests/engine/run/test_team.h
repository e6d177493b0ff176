// TestTeam runs plans on a thread per rank with the real interpreter, mailboxes and counters, below
// the public interface. It keeps its counters from run to run, as a communicator does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/run/interpret.h"
#include "engine/run/rank_control.h"
#include "tests/engine/run/random.h"
#include "tests/engine/run/random_call.h"

namespace rankine {

class TestTeam {
 public:
  struct Options {
    int ranks = 2;
    WaitPolicy policy{};
    std::int64_t timeout_ns = 60'000'000'000;
    std::uint32_t first_count = 0;  // of all counters
    std::size_t slot_payload = 48;
    bool strict = false;    // see RankControl
    bool one_half = false;  // a fault: boards have one half
    // The index of the call that rank r makes as its i-th; nullopt: the rank leaves before it.
    // Empty function: call i.
    std::function<std::optional<std::size_t>(std::size_t r, std::size_t i)> choose{};
    // Runs the ranks, and returns when all have ended. Empty function: one thread per rank.
    std::function<void(std::vector<std::function<void()>>)> launch{};
  };

  // The end of a rank's part in a run.
  struct Ending {
    std::size_t calls = 0;        // completed calls
    Status status{};              // status of the call that failed
    std::string wrong_data{};     // the first wrong data of its last call
    std::int64_t slowest_ns = 0;  // duration of its slowest call
  };

  explicit TestTeam(const Options& options);
  ~TestTeam();

  // Every rank runs all calls, one after the other, at a random pace: `seed` draws yields and spins
  // between calls and between rounds. A rank's buffers and scratch are overwritten as soon as its
  // call returns. Returns the first fault, or an empty text.
  std::string run(std::span<const TestCall* const> calls, std::uint64_t seed);

  // As run(), on `threads` threads, this one included. Each thread plays its share of the ranks by
  // steps in a random order (interpret_some()). With one thread, equal seeds give equal orders.
  std::string step(std::span<const TestCall* const> calls, std::uint64_t seed,
                   std::size_t threads = 1);

  // The ends of the last run, by rank.
  const std::vector<Ending>& endings() const;
  RankControl& rank_control();

 private:
  void prepare(std::span<const TestCall* const> calls);

  struct State;
  std::unique_ptr<State> state_;
};

WaitPolicy random_policy(Random& random);

}  // namespace rankine
