// Ranks on threads of their own that run plans with the real interpreter, mailboxes and counters,
// below the public interface. Keeps its counters from run to run, as a communicator does.
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
#include "engine/run/crossbar.h"
#include "engine/run/interpret.h"
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
    bool strict = false;    // as of Crossbar
    bool one_half = false;  // a fault: boards have one half
    // Which of the calls rank r makes as its i-th; nullopt: it leaves before. None: the i-th.
    std::function<std::optional<std::size_t>(std::size_t r, std::size_t i)> choose{};
    // Runs the ranks, and returns when all have come to their ends. None: a thread each.
    std::function<void(std::vector<std::function<void()>>)> launch{};
  };

  // How a rank's part in a run ended.
  struct Ending {
    std::size_t calls = 0;        // that it completed
    Status status{};              // of the one that it did not complete
    std::string wrong_data{};     // what its last call brought that is not right
    std::int64_t slowest_ns = 0;  // how long its slowest call took
  };

  explicit TestTeam(const Options& options);
  ~TestTeam();

  // Every rank runs all calls, one after the other, each at a pace of its own: `seed` draws yields
  // and spins between calls and between rounds. A rank's buffers and scratch are overwritten as
  // soon as its call returns. Empty, or what went wrong first.
  std::string run(std::span<const TestCall* const> calls, std::uint64_t seed);

  // The same on so many threads, this one and others, each of which plays its share of the ranks by
  // steps in a random order (interpret_some()): on one, the same seed has the same order.
  std::string step(std::span<const TestCall* const> calls, std::uint64_t seed,
                   std::size_t threads = 1);

  // Of the last run, by rank.
  const std::vector<Ending>& endings() const;
  Crossbar& crossbar();

 private:
  void prepare(std::span<const TestCall* const> calls);

  struct State;
  std::unique_ptr<State> state_;
};

WaitPolicy random_policy(Random& random);

}  // namespace rankine
