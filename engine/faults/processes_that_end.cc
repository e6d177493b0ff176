// Ranks' processes that are killed, exit, stop, or become another program.
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <functional>

#include "engine/faults/fatal_signals.h"
#include "engine/faults/plays.h"
#include "engine/faults/scene.h"

namespace rankine::faults {
namespace {

// Calls until one fails; every so often one in which everybody waits for everybody, so that who is
// gone is missed.
void call_on(const FaultCase& test, Seat& seat, const CollectiveCase& call) {
  constexpr int kEvery = 8;
  for (int i = 1; seat.call(i % kEvery == 0 ? meeting(test, test.ranks) : call); ++i) {
  }
}

// A signal comes at any time: mostly while the ranks make calls, now and then while they meet,
// where one that has never come is what the timeout is for.
void play_signal(const FaultCase& test, Dice& dice, int signal, Promise promise, Tally& tally) {
  const CollectiveCase call = good_call(test, dice);
  const Rank victim = dice.below(test.ranks);
  const bool while_meeting = dice.one_in(16);
  const int delay_us = dice.below(while_meeting ? 3'000 : 500);
  if (while_meeting) {
    promise.timeout = kShort;
    promise.documented = {Code::rank_lost, Code::timeout};
    promise.at_once = false;
  }
  Scene* scene_of_all = nullptr;
  const auto begin_to_end = [&] {
    scene_of_all->judge().mark_fault();
    scene_of_all->goes(victim);
    if (!send_me_soon(signal, delay_us)) raise(SIGKILL);  // then it comes now
  };
  Scene scene(test, promise, tally, {.before_they_meet = [&](Rank rank) {
                if (while_meeting && rank == victim) begin_to_end();
              }});
  scene_of_all = &scene;
  scene.run([&](Seat& seat) {
    if (!while_meeting && seat.rank() == victim) begin_to_end();
    call_on(test, seat, call);
  });
}

// end() is what the victim comes to between two calls, or at a round of one.
void play_end(const FaultCase& test, Dice& dice, const Promise& promise, Tally& tally,
              const std::function<void()>& end) {
  const CollectiveCase call = good_call(test, dice);
  const Rank victim = dice.below(test.ranks);
  const int round = dice.below(rounds_of(call));
  const int calls = dice.below(3);  // before
  const bool inside = !dice.one_in(3);
  Scene scene(test, promise, tally);
  const auto come_to_the_end = [&] {
    scene.judge().mark_fault();
    scene.goes(victim);
    end();
  };
  AtRound at(round, [&] {
    come_to_the_end();
    return true;
  });
  scene.run([&](Seat& seat) {
    if (seat.rank() != victim) return call_on(test, seat, call);
    for (int i = 0; i < calls; ++i) {
      if (!seat.call(call)) return;
    }
    if (inside) seat.call(call, {.observer = &at});
    come_to_the_end();  // also where it had no such round
  });
}

}  // namespace

void play_killed(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const auto signals = fatal_signals();
  const int signal =
      signals[static_cast<std::size_t>(dice.below(static_cast<int>(signals.size())))];
  play_signal(test, dice, signal, {.at_once = true, .documented = {Code::rank_lost}}, tally);
}

void play_gone(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const bool has_a_child = dice.one_in(4);
  play_end(test, dice, {.at_once = true, .documented = {Code::rank_lost}}, tally, [has_a_child] {
    if (has_a_child && fork() == 0) {
      // It has the memory that all share, and the lock of its parent's seat with it.
      for (int one = 0; one < 4096; ++one) close(one);
      sleep(1);
    }
    _exit(0);
  });
}

void play_stopped(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const Promise promise{.timeout = kShort, .documented = {Code::timeout}};
  if (dice.one_in(2)) return play_signal(test, dice, SIGSTOP, promise, tally);
  play_end(test, dice, promise, tally, [] { raise(SIGSTOP); });
}

void play_exec(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  if (access("/bin/sleep", X_OK) != 0) {
    Judge(test, {}, tally).excuse("there is no /bin/sleep to become");
    return;
  }
  play_end(test, dice, {.at_once = true, .documented = {Code::rank_lost}}, tally, [] {
    execl("/bin/sleep", "sleep", "60", nullptr);
    _exit(1);  // as well gone
  });
}

}  // namespace rankine::faults
