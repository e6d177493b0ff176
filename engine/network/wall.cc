#include "engine/network/wall.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <vector>

#include "engine/base/statistics.h"
#include "engine/base/units.h"
#include "engine/run/machine.h"
#include "engine/run/wait.h"

namespace rankine {
namespace {

// If every rank has a core, the last part of a sleep is spent awake, because a timer needs longer
// to wake a sleeping core.
constexpr std::int64_t kAwakeNs = 80'000;
// A sleeping thread checks at this interval if the communicator was aborted.
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

bool sleep_until(std::int64_t when_ns, const RankControl& rank_control) noexcept {
  return sleep_as(rank_control.policy(), when_ns, [&] { return rank_control.aborted(); });
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

namespace {

constexpr double kWakeUpsPerMessage = 4;

// Two digits, and at least 1.
double rounded_up(double dilation) {
  if (dilation <= 1) return 1;
  const double unit = std::pow(10, std::floor(std::log10(dilation)) - 1);
  constexpr double kRounding = 1e-9;  // 480 must not become 490 for a trace
  return std::ceil(dilation / unit - kRounding) * unit;
}

}  // namespace

double fitting_dilation(const WallDemands& demands) {
  if (demands.total <= 0 || demands.least <= 0) return 1;
  constexpr double kShareAtEnd = 0.02, kTimesData = 16;
  constexpr double kShortest =
      20e-3;  // seconds: other programs' turns on the cores are a small part of the whole
  return rounded_up(
      std::max({kShortest / demands.total, demands.resolution / (kShareAtEnd * demands.total),
                kWakeUpsPerMessage * demands.resolution / demands.least,
                kTimesData * demands.data / demands.total}));
}

std::string dilation_refusal(const WallDemands& demands, double dilate) {
  if (demands.total <= 0 || demands.least <= 0) return {};
  const double least = demands.least * dilate, total = demands.total * dilate;
  const auto refusal = [&](const std::string& why) {
    return fmt::format("dilate is {:g}: {}; this machine can do {:g}", dilate, why,
                       fitting_dilation(demands));
  };
  if (least < demands.resolution) {
    return refusal(fmt::format("the cheapest message would take {}, and threads are woken {} late",
                               format_duration(least), format_duration(demands.resolution)));
  }
  if (total < demands.data) {
    return refusal(fmt::format("the schedule would take {}, and moving the data takes {}",
                               format_duration(total), format_duration(demands.data)));
  }
  return {};
}

Result<double> parse_dilation(std::string_view argument, std::string_view text) {
  if (text == "auto") return 0.0;
  constexpr double kMost = 1e12;
  const auto value = parse_decimal(argument, text);
  if (value.ok() && Rational(0) < *value && value->to_double() <= kMost) return value->to_double();
  return invalid_argument(
      fmt::format("{} is '{}'; allowed are positive numbers up to 1e12, and auto", argument, text));
}

double machine_dilation(const Fabric& fabric, int ranks, int cpus, const WaitPolicy& policy) {
  // If ranks outnumber cores, each rank waits for its turn, in every meeting of a round.
  constexpr double kTurn = 25e-6;
  const double turns = std::max(1.0, static_cast<double>(ranks) / std::max(1, cpus));

  constexpr int kSleeps = 12;
  constexpr std::int64_t kSleepNs = 200'000;
  constexpr double kNineOfTen = 0.9;
  std::vector<double> late;
  for (const std::int64_t ns : measure_wake_ups(kSleeps, kSleepNs, policy)) {
    late.push_back(static_cast<double>(ns) * 1e-9);
  }
  const double wake_up = quantile(std::move(late), kNineOfTen) + (turns - 1) * kTurn;
  const double alpha = fabric.least_latency().to_double();

  // In the worst case a message is copied into place, read again and written.
  constexpr double kPasses = 3, kTimesData = 4;
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  std::vector<std::byte> from(kBytes, std::byte{1}), to(kBytes);
  std::vector<double> copies;
  for (int i = 0; i < 5; ++i) {
    const std::int64_t begin = now_ns();
    std::memcpy(to.data(), from.data(), kBytes);
    copies.push_back(static_cast<double>(now_ns() - begin) * 1e-9);
  }
  const double moved = kPasses * turns * median(std::move(copies));
  const double modelled =
      static_cast<double>(kBytes) * fabric.link.per_byte().to_double() / fabric.ports;

  double needed = 1;
  if (alpha > 0) needed = std::max(needed, kWakeUpsPerMessage * wake_up / alpha);
  if (modelled > 0) needed = std::max(needed, kTimesData * moved / modelled);
  return rounded_up(needed);
}

Perturbation::Perturbation(std::uint64_t seed, Rank rank)
    : random_(seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank)) {
  random_.discard(16);  // neighbouring seeds begin alike
  slow_ = one_in(4);
}

void Perturbation::sleep_up_to(std::uint64_t ns) {
  const timespec time{0, static_cast<long>(random_() % ns)};
  nanosleep(&time, nullptr);  // a signal may end it early: a shorter delay
  ++delays_;
}

bool Perturbation::before_round(int) noexcept {
  if (slow_ && one_in(2)) sleep_up_to(50'000);
  if (one_in(8)) sleep_up_to(200'000);
  if (one_in(16)) {
    for (std::uint64_t yields = 1 + random_() % 8; yields > 0; --yields) sched_yield();
    ++delays_;
  }
  return true;
}

}  // namespace rankine
