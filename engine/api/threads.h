// The threads of this process that play ranks, on whatever communicator: those that have made a
// call on a member that lives, and those that make progress for ranks (progress_thread.h). Where they outnumber the cores nobody spins (Crowd in crossbar.h).
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/base/status.h"
#include "engine/run/crossbar.h"
#include "engine/run/machine.h"
#include "engine/run/policy.h"
#include "engine/run/wait.h"
#include "numa/refusals.h"

namespace rankine {

// Of this process; a forked child begins with none. Thread-safe.
class RankThreads {
 public:
  // One more member, or one less, whose calls are made by that thread (thread_id()). add() may
  // throw std::bad_alloc, and waits for nobody that stands still: false, then; ask again later.
  static bool add(int thread);
  static void remove(int thread) noexcept;
  // How many threads have members.
  static const Atomic<int>& count() noexcept;
};

// The CPUs on which this process's teams have pinned their ranks, and those where threads make
// progress for ranks (progress_thread.h), so that the next team goes elsewhere where it can.

// Those CPUs are taken for as long as this lives. Thread-safe; of this process: a forked child
// begins with none taken. May throw std::bad_alloc.
class TakenCores {
 public:
  explicit TakenCores(std::vector<int> cpus);
  ~TakenCores();
  TakenCores(const TakenCores&) = delete;
  TakenCores& operator=(const TakenCores&) = delete;

  // All that are taken now.
  static std::vector<int> all();

 private:
  const std::vector<int> cpus_;
};

// Letting time pass between looks at several things that one waits for.

// How whoever has several things to wait for lets time pass: awake as its policy says, then in naps
// that grow.
class Idling {
 public:
  // `probed`: so many of the policy's probes have been made.
  explicit Idling(const WaitPolicy& policy, std::uint32_t probed = 0)
      : policy_(policy), patience_(policy, probed) {}

  // Whether so much time has passed that other things may be looked at: it has slept, or looked at
  // the clock.
  bool once() noexcept {
    switch (patience_.next()) {
      case Patience::Turn::probe:
        pause_cpu();
        return false;
      case Patience::Turn::yield:
        yield_cpu();
        return false;
      case Patience::Turn::look:
        patience_.looked(now_ns());
        return true;
      case Patience::Turn::sleep:
        break;
    }
    const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);
    sleep_ns(nap_ns_);
    nap_ns_ = std::min<std::int64_t>(2 * nap_ns_, kLongestNapNs);
    return true;
  }
  void begin_again() noexcept {
    patience_ = Patience(policy_);
    nap_ns_ = kFirstNapNs;
  }

 private:
  static constexpr std::int64_t kFirstNapNs = 20'000, kLongestNapNs = 1'000'000;

  const WaitPolicy& policy_;
  Patience patience_;
  std::int64_t nap_ns_ = kFirstNapNs;
};

// A call that gives way: it is made on a thread of its own which runs only while somebody has told
// it to, up to where it would wait or has ended. So whoever has started it goes on with other
// things, and nothing that the call does (a network's clock, say) needs to know. Two switches of
// threads for every turn: for calls on modelled networks, where speed is no matter.

class CallThread : public OtherWork {
 public:
  // `call` is made at the first turn. Throws std::system_error where there is no thread to be had.
  explicit CallThread(std::function<void()> call);
  // The call has ended.
  ~CallThread() override;

  // It goes on: whether it has ended. For the thread that made this; what either side did before is
  // visible to the other.
  bool go_on();

  void give_way(int turn) noexcept override;

 private:
  enum class Turn : std::uint8_t { ours, the_calls, over };
  void wait_for_turn(Turn turn);
  void pass_to(Turn turn);

  const std::function<void()> call_;
  std::mutex mutex_;
  std::condition_variable passed_;
  Turn turn_ = Turn::ours;
  std::thread thread_;
};

// A thread that moves on what ranks have started, while they do other things: one per communicator
// that names a core for it (CommunicatorOptions::progress_core), for all its ranks and the groups
// that are split from it. Else progress is made by whoever is inside a call (request.h).
//
// For as long as it lives it is pinned to that core, keeps it from teams (taken_cores.h), and
// counts among the threads that play ranks (rank_threads.h). It sleeps while nothing is started;
// while all that is started waits it lets time pass as the communicator's policy says (idling.h).

class Agenda;

// What came of a look at what is started.
enum class Progress : std::uint8_t { nothing_to_do, all_waits, moved };

class ProgressThread {
 public:
  // It waits as that crossbar says, which outlives it. Errors: invalid_argument for a core to which
  // it cannot be pinned, system where there is no thread to be had.
  static Result<std::shared_ptr<ProgressThread>> start(int core, const Crossbar& crossbar);
  // On another thread than its own.
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // Moves that on, too, for as long as it lives. Thread-safe; may throw std::bad_alloc.
  void serve(const std::shared_ptr<Agenda>& agenda);
  // There is something on an agenda that nobody is at. Thread-safe.
  void wake() noexcept;

 private:
  ProgressThread(int core, const Crossbar& crossbar);
  void work();
  Progress once() noexcept;
  // The next one that lives from there on, or nullptr. Those that are gone leave the list.
  std::shared_ptr<Agenda> agenda_at(std::size_t i) noexcept;

  const TakenCores core_;
  const Crossbar& crossbar_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<std::weak_ptr<Agenda>> agendas_;
  bool due_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace rankine
