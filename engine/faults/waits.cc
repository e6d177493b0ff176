// Ways to wait that keep ranks awake for ever, and deadlines that never come.
#include <iterator>
#include <limits>

#include "engine/faults/plays.h"
#include "engine/faults/scene.h"
#include "engine/run/machine.h"

namespace rankine::faults {
namespace {

constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kMostNs = std::numeric_limits<std::int64_t>::max();

constexpr WaitPolicy kPolicies[] = {
    {.mode = WaitPolicy::Mode::spin, .spin_ns = 100'000'000'000},
    {.mode = WaitPolicy::Mode::spin, .probes = 0, .spin_ns = kMostNs},
    {.mode = WaitPolicy::Mode::spin, .probes = kMost, .spin_ns = 0},
    {.mode = WaitPolicy::Mode::yield, .yield_ns = 100'000'000'000},
    {.mode = WaitPolicy::Mode::yield, .probes = kMost, .yield_ns = 0},
    {.mode = WaitPolicy::Mode::yield, .probes = 0, .yield_ns = kMostNs},
    {.mode = WaitPolicy::Mode::park, .probes = kMost},
};

}  // namespace

void play_absurd_waits(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  const Rank victim = dice.below(test.ranks);  // never calls
  const WaitPolicy policy = kPolicies[dice.below(static_cast<int>(std::size(kPolicies)))];
  {
    Scene scene(test, {.timeout = kShort, .documented = {Code::timeout}}, tally, {.wait = policy});
    scene.run([&](Seat& seat) {
      if (seat.rank() != victim) seat.call(call);
    });
  }
  {
    Scene scene(test,
                {.timeout = std::chrono::milliseconds::max(),
                 .at_once = true,
                 .documented = {Code::aborted}},
                tally, {.wait = policy});
    scene.run(
        [&](Seat& seat) {
          if (seat.rank() != victim) seat.call(call);
        },
        [&] {
          wait_for([&] { return scene.started() == test.ranks; });
          sleep_ns(5'000'000);
          scene.judge().mark_fault();
          scene.communicator().abort("somebody lost patience");
        });
  }
  fresh_start(test, call, tally);
}

}  // namespace rankine::faults
