// threads.h manages the threads of this process that play ranks: RankThreads counts them,
// TakenCores records their CPUs, Idling paces their polling, CallThread runs a call in turns with
// its starter, and ProgressThread advances started calls.
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
#include "engine/run/machine.h"
#include "engine/run/policy.h"
#include "engine/run/rank_control.h"
#include "engine/run/wait.h"
#include "numa/refusals.h"

namespace rankine {

// RankThreads counts the threads of this process that play ranks on any communicator: threads that
// have made a call on a living member, and threads of progress cores. If these outnumber the cores,
// waiting ranks do not spin (Crowd in engine/run/rank_control.h). A forked child begins with none.
// Thread-safe.
class RankThreads {
 public:
  // add() counts one more member of that thread (thread_id()), remove() one less. add() may throw
  // std::bad_alloc. It does not wait for a thread that is stopped with the lock: then it returns
  // false, and the caller should try again later.
  static bool add(int thread);
  static void remove(int thread) noexcept;
  // The number of threads that have members.
  static const Atomic<int>& count() noexcept;
};

// TakenCores marks CPUs as taken as long as the object lives: CPUs to which this process's teams
// have pinned ranks, and CPUs of progress threads. The next team avoids them if it can.
// Thread-safe; a forked child begins with none taken. May throw std::bad_alloc.
class TakenCores {
 public:
  explicit TakenCores(std::vector<int> cpus);
  ~TakenCores();
  TakenCores(const TakenCores&) = delete;
  TakenCores& operator=(const TakenCores&) = delete;

  // All CPUs that are taken now.
  static std::vector<int> all();

 private:
  const std::vector<int> cpus_;
};

// Idling paces a thread that polls several things: it stays awake as the policy says, then naps for
// growing times.
class Idling {
 public:
  // `probed`: the number of the policy's probes already made.
  explicit Idling(const WaitPolicy& policy, std::uint32_t probed = 0)
      : policy_(policy), patience_(policy, probed) {}

  // Lets time pass once; sleeps for at most `most_ns`. True if it slept or read the clock, so that
  // the caller may poll other things.
  bool once(std::int64_t most_ns = kLongestNapNs) noexcept {
    switch (patience_.next()) {
      case SpinBudget::Turn::probe:
        pause_cpu();
        return false;
      case SpinBudget::Turn::yield:
        yield_cpu();
        return false;
      case SpinBudget::Turn::look:
        patience_.looked(now_ns());
        return true;
      case SpinBudget::Turn::sleep:
        break;
    }
    const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);
    sleep_ns(std::min(nap_ns_, most_ns));
    nap_ns_ = std::min<std::int64_t>(2 * nap_ns_, kLongestNapNs);
    return true;
  }
  void begin_again() noexcept {
    patience_ = SpinBudget(policy_);
    nap_ns_ = kFirstNapNs;
  }

 private:
  static constexpr std::int64_t kFirstNapNs = 20'000, kLongestNapNs = 1'000'000;

  const WaitPolicy& policy_;
  SpinBudget patience_;
  std::int64_t nap_ns_ = kFirstNapNs;
};

// CallThread runs one call on a separate thread, in turns with the thread that started it. The call
// runs only during go_on(), until it would wait or has ended. So the starter continues with other
// work, and the call's code (a network's clock, for example) needs no change. Each turn costs two
// thread switches: use it for calls on modelled networks, for which speed does not matter.

class CallThread : public YieldCallback {
 public:
  // `call` begins in the first turn. Throws std::system_error if the system refuses a thread.
  explicit CallThread(std::function<void()> call);
  // The call must have ended.
  ~CallThread() override;

  // Runs the call for one turn. True if it has ended. Only the thread that constructed this may
  // call it. Each side sees all earlier writes of the other side.
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

// ProgressThread advances started calls while their ranks compute. A communicator that names a core
// for it (CommunicatorOptions::progress_core) has one, for all its ranks and for the groups that
// are split from it. Without one, calls on the ranks' threads make progress (request.h).
//
// The thread is pinned to that core for its whole life, marks it as taken (TakenCores) and counts
// among the threads that play ranks (RankThreads). It sleeps while no call is started. While all
// started calls wait, it lets time pass as the communicator's policy says (Idling).

class ProgressEngine;

// The result of one pass over the started calls.
enum class Progress : std::uint8_t { nothing_to_do, all_waits, moved };

class ProgressThread {
 public:
  // The thread waits as the policy of `rank_control` says; `rank_control` must outlive it. Errors:
  // invalid_argument for a core to which the thread cannot be pinned; system if the system refuses
  // a thread.
  static Result<std::shared_ptr<ProgressThread>> start(int core, const RankControl& rank_control);
  // Must run on another thread.
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // Also advances this progress engine as long as it lives. Thread-safe; may throw std::bad_alloc.
  void serve(const std::shared_ptr<ProgressEngine>& progress_engine);
  // A progress engine has work and its owner is not advancing it. Thread-safe.
  void wake() noexcept;

 private:
  ProgressThread(int core, const RankControl& rank_control);
  void work();
  Progress once() noexcept;
  // Returns the next living progress engine from index i on, or nullptr. Removes expired agendas
  // from the list.
  std::shared_ptr<ProgressEngine> engine_at(std::size_t i) noexcept;

  const TakenCores core_;
  const RankControl& rank_control_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<std::weak_ptr<ProgressEngine>> engines_;
  bool due_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace rankine
