// This header keeps a modelled network's time on the real clock: functions sleep until deadlines,
// measure the machine's wake-ups and choose the dilation, and Perturbation delays ranks for tests.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/run/interpret.h"
#include "engine/run/policy.h"
#include "engine/run/rank_control.h"

namespace rankine {

// Sleeps until that moment of the monotonic clock. Returns false if the communicator was aborted.
bool sleep_until(std::int64_t when_ns, const RankControl& rank_control) noexcept;

// Removes the calling thread's timer slack from begin() to end(): by default the kernel may wake a
// thread 50 us later than asked.
class NoTimerSlack {
 public:
  void begin() noexcept;
  void end() noexcept;

 private:
  int before_ = 0;
};

// Sleeps `sleeps` times as a wall clock does, and returns how many nanoseconds too late the calling
// thread was woken each time. Call it on all ranks' threads at once, because these will sleep so.
std::vector<std::int64_t> measure_wake_ups(int sleeps, std::int64_t sleep_ns,
                                           const WaitPolicy& policy);

// The times that decide which dilation a machine can keep in real time. Seconds; model times are
// not dilated.
struct WallDemands {
  double total = 0;       // of the model
  double least = 0;       // the model's cheapest message
  double resolution = 0;  // the lateness of the machine's wake-ups, ninth decile
  double data = 0;        // the call on these threads without a clock
};

// The dilation with which measured times come close to the model's: a late wake-up at the end is 2
// % of the whole, the cheapest message takes several wake-ups, moving the data takes a sixteenth of
// the time, and the whole is long enough that other programs' turns on the cores do not decide. Two
// digits, rounded up; at least 1.
double fitting_dilation(const WallDemands& demands);

// The reason why the machine cannot keep this dilation, with one that it can keep; empty if it can.
// Reasons: messages shorter than the machine's wake-ups, or data that take longer to move than the
// model allows.
std::string dilation_refusal(const WallDemands& demands, double dilate);

// Parses a dilation: "500", "1.5"; "auto" returns 0, for the dilation that the machine needs.
Result<double> parse_dilation(std::string_view argument, std::string_view text);

// The dilation for calls not known yet, of `ranks` ranks on `cpus` hardware threads that wait by
// `policy`: an empty message takes several wake-ups of all ranks, one after the other if cores are
// few, and a long one takes several times as long as moving its bytes. Measured by the calling
// thread, in a few milliseconds. `fabric` comes from wired_for().
double machine_dilation(const Fabric& fabric, int ranks, int cpus, const WaitPolicy& policy);

// Seeded perturbation of one rank: it is delayed at random between the rounds of its calls, to
// expose errors that good timing hides. Results and virtual times must stay exact; wall times get
// worse. A seed always delays the same ranks in the same rounds by the same amounts. Use it from
// the rank's thread only, for any number of calls.
//
//   slow rank      one rank in four is late in every second round or so, by up to 50 us
//   slow link      in one round of eight, a rank's messages are late by up to 200 us
//   late wake-up   in one round of sixteen, a rank gives its core away a few times
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
