// Simulator is a deterministic machine for whole runs: all ranks are fibers on one thread, and a
// seed determines the next rank and the faults. Time is virtual: it passes with every turn, and if
// no thread can move it jumps to the first time at which one can, so deadlines cost nothing. Equal
// seeds give equal runs.
//
// Loads see the newest value; the explorer covers the other values. Vector clocks watch plain
// memory and travel with release and acquire only, so a memory order that is too weak, or a missing
// wait, shows as a race regardless of timing. (Only the last read of a byte is remembered, so some
// races are missed.) Random choices: the next rank, at every use of a word, with a likelihood per
// run; spurious returns of futexes; and at fault points, the plan of faults.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/fibers.h"
#include "tests/engine/run/random.h"
#include "tests/models/machine.h"

namespace rankine::model {

class Simulator final : public Machine {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  struct Fault {
    enum class Kind : std::uint8_t {
      stall,  // for `ns`
      die,    // the thread ends where it is
      act,    // `act` is called
    };
    Kind kind = Kind::stall;
    std::size_t thread = 0;
    std::uint64_t at = 0;  // the number of the thread's fault point, from 0
    std::int64_t ns = 0;
    std::function<void()> act{};
  };
  struct Options {
    std::uint64_t seed = 0;
    std::vector<Fault> faults{};
    bool looks_about = true;  // false: a lost wake-up sleeps until its deadline
    // Faults of the machine, for tests: futex_wake does nothing; memory orders are relaxed in
    // functions with this text in their names.
    bool wakes = true;
    std::string relaxed_in{};
  };

  explicit Simulator(const Options& options);

  // Runs the threads until each has ended or died.
  void run(std::vector<std::function<void()>> threads);

  std::uint64_t trace() const { return trace_; }  // a hash of all turns
  std::uint64_t turns() const { return turns_; }
  const std::string& race() const { return race_; }  // the first on plain memory; empty: none

  // --- Machine
  void come_to(Act act, const void* word) override;
  std::uint64_t load(const void* word, std::uint64_t newest, std::memory_order order,
                     const Site& site) override;
  void store(const void* word, std::uint64_t former, std::uint64_t value, bool reads,
             std::memory_order order, const Site& site) override;
  void lock(const void* mutex) override;
  void unlock(const void* mutex) override;
  void compiler_fence() override {}
  void barrier_everywhere() override { come_to(Act::everybody, nullptr); }
  void futex_wait(const void* word, const std::uint32_t& newest, std::uint32_t seen,
                  std::int64_t until_ns) override;
  void futex_wake_all(const void* word) override;
  void yield() override;
  void sleep(std::int64_t ns) override;
  std::int64_t now() override { return now_; }
  std::int64_t look_about() override;
  int thread() override { return self_ + 1; }
  bool has_ended(int thread) override;
  void will_read(const void* memory, std::size_t bytes) override { touch(memory, bytes, false); }
  void will_write(const void* memory, std::size_t bytes) override { touch(memory, bytes, true); }
  void fault_point() override;

 private:
  enum class State : std::uint8_t { ready, locking, asleep, ended };
  using Clock = std::vector<std::uint32_t>;  // by thread
  struct Thread {
    Clock clock;
    State state = State::ready;
    const void* word = nullptr;  // asleep on it, or waits for it
    std::int64_t until = 0;
    std::uint64_t fault_points = 0;
  };
  // A byte of plain memory: the time and the thread of its last write and of its last read.
  struct Byte {
    std::uint32_t written = 0, read = 0;
    std::uint8_t writer = 0, reader = 0;
  };
  static void join(Clock& clock, const Clock& other);
  std::memory_order effective(std::memory_order order, const Site& site) const;
  void touch(const void* memory, std::size_t bytes, bool writes);
  Thread& self() { return threads_[static_cast<std::size_t>(self_)]; }
  int pick();
  void pass_on();

  const Options options_;
  Random random_;
  const int switches_;  // one turn in `switches_` changes the thread
  Fibers fibers_;
  std::vector<Thread> threads_;
  std::vector<const void*> locked_;
  std::unordered_map<const void*, Clock> released_;  // the clocks of words and locks
  std::unordered_map<std::uintptr_t, std::array<Byte, 64>> lines_;
  std::string race_;
  int self_ = 0;
  std::int64_t now_ = 1'000'000'000;
  std::uint64_t trace_ = 0, turns_ = 0;
};

}  // namespace rankine::model
