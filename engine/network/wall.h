// Keeping moments of a modelled network's time on the real clock.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/run/crossbar.h"
#include "engine/run/interpret.h"
#include "engine/run/policy.h"

namespace rankine {

// Sleeps until that moment of the monotonic clock. False: the communicator ended before.
bool sleep_until(std::int64_t when_ns, const Crossbar& crossbar) noexcept;

// The kernel may wake a thread later than asked, by its timer slack: 50 us by default. None for the
// calling thread from begin() to end().
class NoTimerSlack {
 public:
  void begin() noexcept;
  void end() noexcept;

 private:
  int before_ = 0;
};

// How many nanoseconds after the moment it asked for the calling thread is woken, `sleeps` times;
// as a wall clock sleeps. To be called on all ranks' threads at once, as these will sleep.
std::vector<std::int64_t> measure_wake_ups(int sleeps, std::int64_t sleep_ns,
                                           const WaitPolicy& policy);

// How far a modelled network's time must be stretched for a machine to keep it in real time.

// What decides whether a wall clock can be honoured. Seconds; model times are not dilated.
struct WallDemands {
  double total = 0;       // of the model
  double least = 0;       // the model's cheapest message
  double resolution = 0;  // how late the machine wakes a thread, nine times out of ten
  double data = 0;        // what the same call takes on these threads without a clock
};

// The dilation with which measured times come close to the model's: a late wake-up at the end is 2
// % of the whole, the cheapest message takes several wake-ups, moving the data a sixteenth of the
// time, and all of it long enough that other programs' turns on the cores do not decide. Two
// digits, rounded up; at least 1.
double fitting_dilation(const WallDemands& demands);

// Why this dilation cannot be honoured, with one that can; empty where it can: messages that are
// shorter than the machine's wake-ups, or data that take longer to move than the model allows.
std::string dilation_refusal(const WallDemands& demands, double dilate);

// "500", "1.5": a dilation; "auto": 0, what the machine needs.
Result<double> parse_dilation(std::string_view argument, std::string_view text);

// For calls that nobody knows yet, of so many ranks on `cpus` hardware threads, each waiting like
// that: a message of no bytes takes several wake-ups of all ranks, one after the other where cores
// are few, and a long one several times what moving its bytes takes them. Measured by the calling
// thread, in a few milliseconds. `fabric` as wired_for() gives it.
double machine_dilation(const Fabric& fabric, int ranks, int cpus, const WaitPolicy& policy);

// Seeded perturbation: ranks are delayed at random, between the rounds of their calls, so that what
// hides in good timing comes to light. Results and virtual times must stay exact; wall times get
// worse. The same seed delays the same ranks in the same rounds by the same amounts.
//
//   slow rank      one rank in four is late in every second round or so, by up to 50 us
//   slow link      one round in eight, what a rank is about to send is late by up to 200 us
//   late wake-up   one round in sixteen, a rank gives its core away a few times

// One rank's; used by its thread only, for any number of calls.
class Perturbation : public RoundObserver {
 public:
  Perturbation(std::uint64_t seed, Rank rank);
  bool before_round(int k) noexcept override;

  std::int64_t delays() const { return delays_; }

 private:
  bool one_in(std::uint64_t n) { return random_() % n == 0; }
  void sleep_up_to(std::uint64_t ns);

  std::mt19937_64 random_;
  bool slow_ = false;
  std::int64_t delays_ = 0;
};

}  // namespace rankine
