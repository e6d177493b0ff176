// Alpha, beta and ports made real: the clocks under which threads execute a schedule.
//
//   virtual   nobody waits for real time: the ranks work times out among themselves
//             (virtual_clock.h). Each message carries the time at which it would end.
//   wall      the same times as deadlines on the real clock: a rank does not touch what a round
//             brings it before the moment at which the last message of it would have arrived.
//             `dilate` stretches all times so that a few cores can honour them.
//
// Wall. The deadlines are known beforehand, so no rank has to meet another to learn them; what
// moving the data costs vanishes in the sleep until the next one. Deadlines are absolute: a timer
// that wakes a rank a little late does not make the next message late. A rank that is later than
// `tolerance_ns` could not honour its deadline; it keeps that much distance from the plan from then
// on and so does everybody who receives from it, so that what is measured is honest. lateness()
// counts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/network/fabric.h"
#include "engine/network/port_model.h"
#include "engine/network/ticks.h"
#include "engine/run/crossbar.h"
#include "engine/run/interpret.h"

namespace rankine {

enum class ClockMode : std::uint8_t { none, wall, virtual_time };
std::string_view name_of(ClockMode mode);
std::optional<ClockMode> parse_clock_mode(std::string_view text);  // none, wall, virtual

struct ThrottleOptions {
  ClockMode mode = ClockMode::virtual_time;
  Sync sync = Sync::dataflow;
  double dilate = 1;                    // wall: real seconds per modelled second
  std::int64_t tolerance_ns = 200'000;  // wall: how late a rank may be and still be on time
  WaitPolicy wait{};
  std::int64_t timeout_ns = 30'000'000'000;
};

// How well the machine kept a wall clock's deadlines, over all ranks and rounds.
struct Lateness {
  std::int64_t deadlines = 0;     // that ranks slept for
  std::int64_t missed = 0;        // by more than the tolerance
  std::int64_t median_ns = 0;     // of all deadlines: how long after it the rank went on
  std::int64_t worst_ns = 0;      // likewise
  std::int64_t passed_on_ns = 0;  // the greatest distance from the plan that a rank ended with
};

// The clock of one execution of one schedule; shared by its ranks, used once.
class Throttle {
 public:
  // `pricing` must be of the same fabric, whose open parts wired_for() fills in. Errors: a transfer
  // that the fabric cannot do, and what else simulate() refuses.
  static Result<std::unique_ptr<Throttle>> create(const Schedule& schedule, const Goal& goal,
                                                  const Fabric& fabric, const Pricing& pricing,
                                                  const ThrottleOptions& options);
  ~Throttle();

  // The observer that rank r's interpreter calls before each round. Wall: the first call waits for
  // all ranks, and time runs from then on.
  RoundObserver& observer(Rank r);
  // To be called on rank r's thread when its call has returned.
  void finished(Rank r);

  // When the last message ended; per round likewise. Virtual: as the ranks agreed, after all have
  // run. Wall: as planned.
  Ticks end() const;
  std::vector<Ticks> round_end() const;

  // Wall, after all have finished: real nanoseconds from the common start until the last rank had
  // finished; until the last rank had what each round brings (0: it brings nothing); and how late
  // they were.
  std::int64_t elapsed_ns() const;
  std::vector<std::int64_t> round_elapsed_ns() const;
  Lateness lateness() const;
  // Wall: a modelled time in real nanoseconds.
  double ns_of(Ticks ticks) const;

  // The cheapest message, or 0 where there is none.
  Ticks least_cost() const;
  Status health() const;

 private:
  struct State;
  explicit Throttle(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// How many nanoseconds after the moment it asked for the calling thread is woken, `sleeps` times;
// as a wall clock sleeps. To be called on all ranks' threads at once, as these will sleep.
std::vector<std::int64_t> measure_wake_ups(int sleeps, std::int64_t sleep_ns,
                                           const WaitPolicy& policy);

}  // namespace rankine
