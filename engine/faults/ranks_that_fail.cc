// Fault families of ranks that stall, leave, throw, end or never call. Ranks of functions that end
// by an exception, pthread_exit() or pthread_cancel() run on the threads of a team. If ranks are
// processes, each process has such a thread, which owns its rank's member: unwinding the stack
// destroys the member.

#include <cxxabi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/api/team.h"
#include "engine/faults/failing_new.h"
#include "engine/faults/fault.h"
#include "engine/faults/fixture.h"
#include "engine/run/machine.h"

namespace rankine::faults {

class FaultTeam {
 public:
  // If the ranks cannot be made, the error is judged and works() is false. Processes meet in run().
  FaultTeam(const FaultCase& test, const Promise& promise, Tally& tally);
  FaultTeam(const FaultTeam&) = delete;
  FaultTeam& operator=(const FaultTeam&) = delete;

  bool works() const { return team_ != nullptr || fixture_ != nullptr; }
  Judge& judge() { return fixture_ ? fixture_->judge() : *judge_; }
  Communicator& communicator() {
    return fixture_ ? fixture_->communicator() : team_->communicator();
  }

  struct Functions {
    std::function<void(Member&, CaseBuffers&)> of_rank;
    Rank victim = 0;  // the rank of the function that may end early
    // Runs meanwhile, on a further thread in the victim's process.
    std::function<void()> director{};
    // Called in the victim's process after its function has ended: the exception, or nullptr.
    std::function<void(const std::exception_ptr&)> ended{};
  };
  // Returns when all functions have ended: the status of the team's run, or nullopt if ranks are
  // processes.
  std::optional<Status> run(const Functions& functions);
  // The team, for a further run; nullptr if ranks are processes.
  Team* team() { return team_.get(); }

 private:
  const FaultCase& test_;
  std::unique_ptr<RankFixture> fixture_;  // for processes
  std::unique_ptr<Judge> judge_;          // for a team, and so is team_
  std::unique_ptr<Team> team_;
};

FaultTeam::FaultTeam(const FaultCase& test, const Promise& promise, Tally& tally) : test_(test) {
  if (test.processes) {
    fixture_ = std::make_unique<RankFixture>(test, promise, tally);
    return;
  }
  judge_ = std::make_unique<Judge>(test, promise, tally);
  auto made = Team::create(team_options(test));
  if (judge_->answer(made.status())) team_ = std::move(*made);
}

namespace {

// Runs a rank's function on this thread; the member is destroyed when it ends. (In catch (...) the
// exception may have no object if GCC unwinds, as in team.cc.)
[[gnu::no_sanitize("null")]] std::exception_ptr inject_alone(
    std::unique_ptr<Member> mine, CaseBuffers& buffers, const FaultTeam::Functions& functions) {
  try {
    const std::unique_ptr<Member> owned = std::move(mine);
    functions.of_rank(*owned, buffers);
  } catch (abi::__forced_unwind&) {
    throw;  // pthread_exit() or pthread_cancel()
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

std::optional<Status> FaultTeam::run(const Functions& functions) {
  std::thread directs;
  if (team_ != nullptr) {
    if (functions.director) directs = std::thread(functions.director);
    std::vector<CaseBuffers> buffers(static_cast<std::size_t>(test_.ranks));
    const Status status = team_->run(
        [&](Member& me) { functions.of_rank(me, buffers[static_cast<std::size_t>(me.rank())]); });
    if (directs.joinable()) directs.join();
    if (functions.ended) functions.ended(team_->thrown());
    return status;
  }
  fixture_->run([&](Seat& seat) {
    const bool is_victim = seat.rank() == functions.victim;
    if (is_victim && functions.director) directs = std::thread(functions.director);
    std::exception_ptr thrown;
    std::thread plays(
        [&] { thrown = inject_alone(std::move(seat.member), seat.buffers, functions); });
    plays.join();
    if (directs.joinable()) directs.join();
    if (is_victim && functions.ended) functions.ended(thrown);
  });
  return std::nullopt;
}

// Ranks that stall, leave, throw or never call.

namespace {

// Holds the calling thread while `holds` is true. Async-signal-safe.
std::atomic<bool> holds{false}, holding{false};

void hold() {
  const int saved = errno;
  holding.store(true);
  while (holds.load(std::memory_order_acquire)) {  // pairs with the release stores to holds
    const timespec nap{0, 200'000};
    nanosleep(&nap, nullptr);
  }
  errno = saved;
}

// Lets the calling thread take SIGUSR2, which holds it, or keeps the signal pending.
void take_signals(bool takes) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(takes ? SIG_UNBLOCK : SIG_BLOCK, &set, nullptr);
}

}  // namespace

void inject_stall(const FaultCase& test, Dice& dice, const CollectiveCase& call, Tally& tally) {
  const Rank victim = dice.below(test.ranks);
  // asleep, busy: before a round. held: by a signal, anywhere in the call (a parked wait, say).
  // planning: in the plan that all other ranks wait for.
  enum { asleep, busy, held, planning };
  // (Not for processes: each process makes plans for itself.)
  const int kind = dice.below(new_can_fail() && !test.processes ? 4 : 3);
  const int round = dice.below(rounds_of(call));
  // Mostly the victim goes on when the other ranks have been told; sometimes only when they have
  // returned.
  const bool outlasts = dice.one_in(8) && kind != held;
  const int delay_us = 1 + dice.below(60);
  const int allocation = 1 + dice.below(20);
  RankFixture fixture(test, {.timeout = kShort, .documented = {Code::timeout}}, tally,
                      {.director_at = victim});
  const auto may_go_on = [&] { return outlasts ? fixture.all_done_but(1) : fixture.over(1); };
  std::optional<timer_t> timer;  // of the victim
  AtRound stall(round, [&] {
    if (kind == busy) {
      while (!may_go_on()) yield_cpu();
    } else if (kind == asleep) {
      wait_for(may_go_on);
    } else {
      take_signals(true);
      const itimerspec soon{{0, 0}, {0, delay_us * 1'000}};
      timer_settime(*timer, 0, &soon, nullptr);
    }
    return true;
  });
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { hold(); };
  sigaction(SIGUSR2, &action, &before);
  holds.store(true, std::memory_order_release);  // pairs with hold()
  holding.store(false);
  if (kind == planning) at_allocation(allocation, hold);
  fixture.run(
      [&](Seat& seat) {
        if (seat.rank() != victim) {
          // The victim must be the rank that plans.
          if (kind == planning) wait_for([&] { return holding.load() || fixture.any_done(); });
          seat.call(call);
        } else if (kind == planning) {
          seat.call(call, {.excused = true, .allocations_count = true});
        } else if (kind != held) {
          seat.call(call, {.observer = &stall, .excused = true});
        } else {
          // The signal comes only inside the call: a thread held with a lock of the allocator or
          // of this program would block all other threads, whatever the engine does.
          take_signals(false);
          timer = timer_of_this_thread(SIGUSR2);
          if (!timer) return fixture.judge().excuse("no timer can be made");
          seat.call(call,
                    {.observer = &stall, .excused = true, .returned = [] { take_signals(false); }});
          timer_delete(*timer);
        }
      },
      [&] {
        if (kind == held || kind == planning) wait_for(may_go_on);
        holds.store(false, std::memory_order_release);  // pairs with hold()
      });
  at_allocation(0, nullptr);
  sigaction(SIGUSR2, &before, nullptr);
}

namespace {

// A rank that ends before its first call, between two calls, or in a round of the call.
struct Ending {
  enum Kind { before_the_call, between_calls, inside };
  CollectiveCase call;
  Rank victim = 0;
  int round = 0;
  Kind kind = before_the_call;
};

Ending ending_of(const CollectiveCase& good, Dice& dice, bool may_be_inside) {
  Ending ending;
  ending.call = good;
  ending.victim = dice.below(good.ranks);
  ending.round = dice.below(rounds_of(ending.call));
  ending.kind = static_cast<Ending::Kind>(dice.below(may_be_inside ? 3 : 2));
  return ending;
}

// Makes a rank's calls, each by make(How); the victim makes them up to its end. `inside` ends the
// victim in the midst of a call.
template <class Make>
void make_calls(const Ending& ending, Rank rank, RoundObserver& inside, Judge& judge,
                const Make& make) {
  const bool is_victim = rank == ending.victim;
  if (ending.kind == Ending::between_calls) {
    if (!make(How{.excused = is_victim}) && !is_victim) return;
  }
  if (!is_victim) {
    make(How{});
  } else if (ending.kind == Ending::inside) {
    make(How{.observer = &inside, .excused = true});
  } else {
    judge.mark_fault();
  }
}

// The error on the other ranks after an exception has unwound a rank's function. A team sees the
// exception; processes only see that the rank has left.
Code code_of_unwinding(const FaultCase& test) {
  return test.processes ? Code::rank_lost : Code::remote_error;
}

}  // namespace

void inject_leave(const FaultCase& test, Dice& dice, const CollectiveCase& good, Tally& tally) {
  const Ending ending = ending_of(good, dice, kThreadsMayVanish);
  RankFixture fixture(test, {.at_once = true, .documented = {Code::rank_lost}}, tally);
  AtRound vanish(ending.round, [&]() -> bool {
    fixture.judge().mark_fault();
    fixture.goes(ending.victim);
    // The seat keeps the memory that other ranks may still read, because only the thread ends.
    syscall(SYS_exit, 0);
    return false;
  });
  fixture.run([&](Seat& seat) {
    make_calls(ending, seat.rank(), vanish, fixture.judge(),
               [&](const How& how) { return seat.call(ending.call, how); });
    if (seat.rank() == ending.victim && ending.kind != Ending::inside) seat.member.reset();
  });
}

void inject_finalize(const FaultCase& test, Dice& dice, const CollectiveCase& good, Tally& tally) {
  const Ending ending = ending_of(good, dice, false);
  const bool has_started = Dice(test.seed + 1).one_in(2);
  RankFixture fixture(test, {.at_once = true, .documented = {Code::rank_lost}}, tally);
  fixture.run([&](Seat& seat) {
    AtRound never(-1, [] { return true; });
    const bool is_victim = seat.rank() == ending.victim;
    make_calls(ending, seat.rank(), never, fixture.judge(), [&](How how) {
      // A call that was started before leave() must still succeed.
      how.make = [&](Member& me, const Call& call) {
        auto request = me.start(call);
        if (!request.ok()) return request.status();
        if (is_victim && has_started) me.leave();
        return request->wait();
      };
      return seat.call(ending.call, how);
    });
    if (is_victim && !seat.member->leave()) {
      fixture.judge().blame("leave() says that calls are still in flight");
    }
  });
}

void inject_abandon(const FaultCase& test, Dice& dice, const CollectiveCase& good, Tally& tally) {
  Ending ending = ending_of(good, dice, false);
  ending.kind = Ending::between_calls;  // a rank without a call may still come
  RankFixture fixture(test, {.at_once = true, .documented = {Code::rank_lost}}, tally);
  fixture.run([&](Seat& seat) {
    // The thread ends, and the member stays. The exception is kept, as std::async does.
    std::exception_ptr thrown;
    std::thread plays([&] {
      try {
        AtRound never(-1, [] { return true; });
        make_calls(ending, seat.rank(), never, fixture.judge(),
                   [&](const How& how) { return seat.call(ending.call, how); });
        if (seat.rank() == ending.victim) throw std::runtime_error("out of luck");
      } catch (const std::exception&) {
        thrown = std::current_exception();
      }
    });
    plays.join();
  });
}

void inject_throw(const FaultCase& test, Dice& dice, const CollectiveCase& good, Tally& tally) {
  const Ending ending = ending_of(good, dice, true);
  const std::string text = "out of luck in " + std::to_string(test.seed);
  FaultTeam fault_team(
      test, {.at_once = true, .documented = {Code::remote_error, code_of_unwinding(test)}}, tally);
  if (!fault_team.works()) return;
  Judge& judge = fault_team.judge();
  // An observer must not throw: it ends the call, and then the rank's function throws.
  AtRound fail(ending.round, [&] {
    judge.mark_fault();
    fault_team.communicator().abort(
        Status(Code::remote_error, "rank " + std::to_string(ending.victim) + " threw: " + text));
    return false;
  });
  const auto play = [&](Member& me, CaseBuffers& mine) {
    make_calls(ending, me.rank(), fail, judge,
               [&](const How& how) { return judge.call(me, mine, ending.call, how); });
    if (me.rank() == ending.victim) throw std::runtime_error(text);
  };
  const auto comes_out = [&](const std::exception_ptr& thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
      judge.blame("the exception is lost");
    } catch (const std::runtime_error& error) {
      if (error.what() != text) judge.blame("another exception: " + std::string(error.what()));
    }
  };
  const std::optional<Status> status =
      fault_team.run({.of_rank = play, .victim = ending.victim, .ended = comes_out});
  if (status &&
      (status->code() != Code::remote_error || status->text().find(text) == std::string::npos)) {
    judge.blame("the run says '" + status->text() + "'");
  }
}

namespace {

// The victim's thread ends in its function. Each rank makes its good calls; then the victim calls
// end(), which must not return. `pending`: the victim's thread is cancelled before its good call,
// which must still succeed.
void inject_thread_end(const FaultCase& test, const Ending& ending, bool pending, Tally& tally,
                       const std::function<void()>& end,
                       const std::function<void()>& director = {}) {
  FaultTeam fault_team(test, {.at_once = true, .documented = {Code::rank_lost}}, tally);
  if (!fault_team.works()) return;
  Judge& judge = fault_team.judge();
  AtRound vanish(ending.round, [&]() -> bool {
    judge.mark_fault();
    syscall(SYS_exit, 0);  // no unwinding; the process waits for the thread and goes on
    return false;
  });
  const auto play = [&](Member& me, CaseBuffers& mine) {
    const bool is_victim = me.rank() == ending.victim;
    const auto call = [&](RoundObserver* observer) {
      return judge.call(me, mine, ending.call, {.observer = observer});
    };
    // A pending cancellation has to wait: calls are no cancellation points.
    if (is_victim && pending) pthread_cancel(pthread_self());
    if (ending.kind == Ending::between_calls || pending) call(nullptr);
    if (is_victim && ending.kind == Ending::inside) call(&vanish);
    if (is_victim) {
      judge.mark_fault();
      end();
      judge.blame("the thread goes on");
    }
    call(nullptr);
  };
  const std::optional<Status> status =
      fault_team.run({.of_rank = play, .victim = ending.victim, .director = director});
  if (status) {
    // The other ranks may have had all data before the end; the team is finished all the same.
    if (status->code() != Code::rank_lost) judge.blame("the run says '" + status->text() + "'");
    judge.answer(fault_team.team()->run([](Member&) {}));
  }
}

}  // namespace

void inject_thread_exit(const FaultCase& test, Dice& dice, const CollectiveCase& good,
                        Tally& tally) {
  // A team needs threads that unwind.
  const Ending ending = ending_of(good, dice, test.processes && kThreadsMayVanish);
  inject_thread_end(test, ending, false, tally, [] { pthread_exit(nullptr); });
}

void inject_thread_cancel(const FaultCase& test, Dice& dice, const CollectiveCase& good,
                          Tally& tally) {
#if defined(__SANITIZE_THREAD__)
  Judge(test, {}, tally).excuse("the thread sanitizer loses the locks of a cancelled thread");
  return;
#endif
  const Ending ending = ending_of(good, dice, false);
  const bool pending = Dice(test.seed + 1).one_in(2);
  std::atomic<pthread_t> asleep{};  // the victim's thread, once it waits for its cancellation
  const auto sleep = [&] {
    asleep.store(pthread_self());
    for (;;) sleep_ns(1'000'000'000);
  };
  const auto cancel = [&] {
    wait_for([&] { return asleep.load() != pthread_t{}; });
    pthread_cancel(asleep.load());
  };
  inject_thread_end(test, ending, pending, tally, sleep,
                    pending ? std::function<void()>() : std::function<void()>(cancel));
}

void inject_never_calls(const FaultCase& test, Dice& dice, const CollectiveCase& call,
                        Tally& tally) {
  const Rank victim = dice.below(test.ranks);
  const int calls = dice.below(3);  // good calls before the missing one
  RankFixture fixture(test, {.timeout = kShort, .documented = {Code::timeout}}, tally);
  fixture.run([&](Seat& seat) {
    if (!seat.call_often(calls, call)) return;
    if (seat.rank() != victim) {
      seat.call(call);
      return;
    }
    wait_for([&] { return fixture.over(1); });
    // The victim's late call must return the error of the other ranks.
    if (!fixture.communicator().health().ok()) seat.call(call, {.excused = true});
  });
}

}  // namespace rankine::faults
