// Alpha, beta and ports made real: the clocks under which threads execute a schedule.
//
//   virtual   nobody waits for real time. Each message carries the time at which it would end, and
//             the ranks work these out among themselves: deterministic, whatever the machine does,
//             and equal to simulate() to the last tick.
//   wall      the same, and nobody uses a message before its time has come on the real clock;
//             `dilate` stretches all times so that a few cores can honour them. A rank that is late
//             passes its lateness on, so what is measured is honest.
//
// Ranks handle the clock's events (one per transfer that touches them) in the order in which the
// schedule states them. All who touch a transfer tell its coordinator, the first receiver, when they
// are ready; it takes the latest, adds the cost, and tells them the end. That order is one for all
// ranks, so the meetings cannot deadlock. Data take their own way: see RoundObserver in interpret.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/exec/crossbar.h"
#include "engine/exec/interpret.h"
#include "engine/fabric/fabric.h"
#include "engine/fabric/ticks.h"

namespace rankine {

enum class ClockMode : std::uint8_t { none, wall, virtual_time };
std::string_view name_of(ClockMode mode);
std::optional<ClockMode> parse_clock_mode(std::string_view text);  // none, wall, virtual

struct ThrottleOptions {
  ClockMode mode = ClockMode::virtual_time;
  bool by_rounds = false;  // a round starts when the last message of the one before has ended
  double dilate = 1;       // wall: real seconds per modelled second
  WaitPolicy wait{};
  std::int64_t timeout_ns = 30'000'000'000;
};

// The clock of one execution of one schedule; shared by its ranks, used once.
class Throttle {
 public:
  // Errors: a transfer that the fabric cannot do (as simulate() has them).
  static Result<std::unique_ptr<Throttle>> create(const Schedule& schedule, const Fabric& fabric,
                                                  const Pricing& pricing,
                                                  const ThrottleOptions& options);
  ~Throttle();

  // The observer that rank r's interpreter calls before each round. Wall: the first call waits for
  // all ranks, and time runs from then on.
  RoundObserver& observer(Rank r);

  // After all ranks have run: when the last message ended; per round likewise.
  Ticks end() const;
  std::vector<Ticks> round_end() const;
  // Wall: real nanoseconds from the common start until rank r had done its part (call finished(r)
  // on its thread when its call has returned).
  void finished(Rank r);
  std::int64_t elapsed_ns() const;
  Status health() const;

 private:
  struct State;
  explicit Throttle(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rankine
