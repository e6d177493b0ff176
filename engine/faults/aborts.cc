// abort(): from other threads, from signal handlers, twice, at the last step.
#include <atomic>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/faults/plays.h"
#include "engine/faults/scene.h"
#include "engine/run/machine.h"

namespace rankine::faults {
namespace {

std::atomic<Communicator*> ended_by_signal{nullptr};
std::atomic<int> signals_handled{0};

void end_by_signal(int) {
  if (Communicator* const its = ended_by_signal.load()) its->abort();
  signals_handled.fetch_add(1);
}

}  // namespace

void play_abort(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  const int rounds = rounds_of(call);
  const Rank victim = dice.below(test.ranks);
  enum { stranger, two_strangers, signal_inside, signal_anywhere, signal_allocating, last_step };
  const int kind = dice.below(6);
  // A process reaches its own threads only.
  const Rank neighbour = test.processes ? victim : (victim + 1) % test.ranks;
  const int delay_us = dice.below(400);
  struct sigaction before {};
  {
    Scene scene(test, {.at_once = true, .documented = {Code::aborted}}, tally,
                {.director_at = victim});
    if (!scene.works()) return;
    signals_handled.store(0);
    struct sigaction action {};
    action.sa_handler = end_by_signal;
    sigaction(SIGUSR1, &action, &before);
    const auto abort_as = [&](const char* who) {
      scene.judge().mark_fault();
      scene.communicator().abort(std::string(who) + " pressed a key");
    };
    AtRound signals(dice.below(rounds), [&] {
      scene.judge().mark_fault();
      raise(SIGUSR1);
      raise(SIGUSR1);
      return true;
    });
    AtRound last(rounds - 1, [&] {
      abort_as("the last step");
      return true;
    });
    RoundObserver* observer = kind == signal_inside ? &signals
                              : kind == last_step   ? &last
                                                    : nullptr;
    scene.run(
        [&](Seat& seat) {
          ended_by_signal.store(&scene.communicator());
          scene.arrive();
          if (kind == signal_allocating && seat.rank() == victim) {
            // The handler comes in the midst of malloc() or free(), mostly.
            std::vector<std::unique_ptr<char[]>> held(64);
            for (std::size_t i = 0; signals_handled.load() == 0 && !scene.over(); i = i * 29 + 1) {
              held[i % held.size()] = std::make_unique<char[]>(i % 5'000 + 1);
            }
          }
          // Calls until the end comes, where it comes from outside.
          bool ok = true;
          do {
            ok = seat.call(call, {.observer = seat.rank() == victim ? observer : nullptr});
          } while (ok && observer == nullptr);
        },
        [&] {
          if (observer != nullptr) return;
          wait_for([&] { return scene.arrived() == test.ranks || scene.any_done(); });
          sleep_ns(delay_us * 1'000);
          if (kind == stranger) abort_as("a stranger");
          if (kind == two_strangers) {
            std::thread other([&] { abort_as("another"); });
            abort_as("a stranger");
            other.join();
          }
          if (kind == signal_anywhere || kind == signal_allocating) {
            // Threads are joined only when we have returned.
            scene.judge().mark_fault();
            pthread_kill(scene.thread_of(victim), SIGUSR1);
            if (kind == signal_anywhere) pthread_kill(scene.thread_of(neighbour), SIGUSR1);
            wait_for([&] { return signals_handled.load() > 0; });
          }
        });
    sigaction(SIGUSR1, &before, nullptr);
  }
  fresh_start(test, call, tally);
}

}  // namespace rankine::faults
