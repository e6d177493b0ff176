#include "engine/network/wall.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "engine/run/wait.h"

namespace rankine {
namespace {

// Where every rank has a core: the last stretch of a sleep is spent awake, since a timer needs
// longer to wake a sleeping core.
constexpr std::int64_t kAwakeNs = 80'000;
// Who sleeps looks so often whether the communicator has ended.
constexpr std::int64_t kNapNs = 20'000'000;

void nap_until(std::int64_t when_ns) {
  const timespec when{when_ns / 1'000'000'000, when_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr) == EINTR) {
  }
}

template <class Ended>
bool sleep_as(const WaitPolicy& policy, std::int64_t when_ns, const Ended& ended) {
  const bool spins = policy.mode == WaitPolicy::Mode::spin;
  const std::int64_t asleep_until = spins ? when_ns - kAwakeNs : when_ns;
  for (std::int64_t now = now_ns(); now < asleep_until; now = now_ns()) {
    if (ended()) return false;
    nap_until(std::min(asleep_until, deadline_after(now, kNapNs)));
  }
  while (now_ns() < when_ns) pause_cpu();
  return !ended();
}

}  // namespace

bool sleep_until(std::int64_t when_ns, const Crossbar& crossbar) noexcept {
  return sleep_as(crossbar.policy(), when_ns, [&] { return crossbar.aborted(); });
}

void NoTimerSlack::begin() noexcept {
  before_ = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
}

void NoTimerSlack::end() noexcept {
  if (before_ > 0) prctl(PR_SET_TIMERSLACK, before_, 0, 0, 0);
  before_ = 0;
}

std::vector<std::int64_t> measure_wake_ups(int sleeps, std::int64_t sleep_ns,
                                           const WaitPolicy& policy) {
  NoTimerSlack slack;
  slack.begin();
  std::vector<std::int64_t> late;
  for (int i = 0; i < sleeps; ++i) {
    const std::int64_t until = now_ns() + sleep_ns;
    sleep_as(policy, until, [] { return false; });
    late.push_back(now_ns() - until);
  }
  slack.end();
  return late;
}

}  // namespace rankine
