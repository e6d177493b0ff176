#include "engine/network/throttle.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "engine/base/deadline.h"
#include "engine/network/timed_schedule.h"
#include "engine/network/virtual_clock.h"

namespace rankine {
namespace {

// Wall: what a rank sleeps for in a round, and whose lateness becomes its own.
struct Deadline {
  Ticks until = 0;  // 0: nothing arrives
  std::vector<Rank> sources{};
};

// From the moment at which all ranks are known to be there until time runs: they are woken
// meanwhile.
constexpr std::int64_t kLeadNs = 1'000'000, kLeadPerRankNs = 50'000;
// Where every rank has a core: the last stretch of a sleep is spent awake, since a timer needs
// longer to wake a sleeping core.
constexpr std::int64_t kAwakeNs = 80'000;

void sleep_until(std::int64_t when_ns, const WaitPolicy& policy) {
  const bool spins = policy.mode == WaitPolicy::Mode::spin;
  const std::int64_t asleep_until = spins ? when_ns - kAwakeNs : when_ns;
  if (now_ns() < asleep_until) {
    const timespec when{asleep_until / 1'000'000'000, asleep_until % 1'000'000'000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr) == EINTR) {
    }
  }
  while (now_ns() < when_ns) pause_cpu();
}

// The kernel may wake a thread later than asked, by its timer slack: 50 us by default.
class NoTimerSlack {
 public:
  void begin() {
    before_ = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  }
  void end() {
    if (before_ > 0) prctl(PR_SET_TIMERSLACK, before_, 0, 0, 0);
    before_ = 0;
  }

 private:
  int before_ = 0;
};

}  // namespace

std::string_view name_of(ClockMode mode) {
  switch (mode) {
    case ClockMode::none:
      return "none";
    case ClockMode::wall:
      return "wall";
    case ClockMode::virtual_time:
      return "virtual";
  }
  return "none";
}

std::optional<ClockMode> parse_clock_mode(std::string_view text) {
  for (const ClockMode mode : {ClockMode::none, ClockMode::wall, ClockMode::virtual_time}) {
    if (name_of(mode) == text) return mode;
  }
  return std::nullopt;
}

struct Throttle::State {
  // One rank's clock: what it knows of the port model, its channels to the others.
  class RankClock : public RoundObserver {
   public:
    bool before_round(int k) noexcept override { return shared->keep_deadline(*this, k); }

    State* shared = nullptr;
    Waiter waiter;

    std::vector<Deadline> deadlines;        // by round
    std::vector<std::int64_t> late_before;  // by round: `late` when the rank came to it; read by
                                            // others once its progress says that it has
    std::vector<std::int64_t> woke_ns;      // by round; 0: did not sleep
    std::vector<std::int64_t> behind_ns;    // one per deadline
    std::int64_t late = 0;                  // nanoseconds behind the plan
    std::int64_t missed = 0;
    std::int64_t finished_ns = 0;
    NoTimerSlack slack;
  };

  State(int ranks, const ThrottleOptions& with)
      : options(with),
        crossbar(ranks, with.wait, with.timeout_ns),
        clocks(static_cast<std::size_t>(ranks)) {}

  RankClock& clock_of(Rank r) { return clocks[static_cast<std::size_t>(r)]; }
  void plan_round(PortModel<Ticks>& model, std::span<const TimedTransfer> transfers);
  bool keep_deadline(RankClock& clock, int k) noexcept;
  bool start_together(RankClock& clock) noexcept;
  double ns_of(Ticks ticks) const {
    return nearest_double(ticks, schedule->ticks_per_second()) * 1e9 * options.dilate;
  }

  const ThrottleOptions options;
  Crossbar crossbar;
  std::shared_ptr<const TimedSchedule> schedule;
  std::optional<VirtualClock> virtual_clock;
  std::vector<Ticks> ends;  // wall: when each round ends, as planned
  std::vector<RankClock> clocks;
  std::int64_t start_ns = 0;  // wall; written by rank 0 before it tells the others to go
};

// Wall: what the ranks would agree on in this round, worked out by one.
void Throttle::State::plan_round(PortModel<Ticks>& model, std::span<const TimedTransfer> of_round) {
  model.begin_round(model.end());
  for (RankClock& clock : clocks) clock.deadlines.emplace_back();
  for (const auto& [t, cost, touched] : of_round) {
    const Ticks end = model.take(t, cost);
    if (is_local(t)) continue;
    t.to.for_each([&](Rank to) {
      Deadline& deadline = clock_of(to).deadlines.back();
      deadline.until = std::max(deadline.until, end);
      t.from.for_each([&](Rank from) {
        if (from != to) deadline.sources.push_back(from);
      });
    });
  }
  model.end_round();
  ends.push_back(model.round_end());
  if (options.sync != Sync::rounds) return;
  for (std::size_t r = 0; r < clocks.size(); ++r) {
    if (clocks[r].deadlines.back().until == 0) continue;
    // All wait for the last of the round before, so its lateness is everybody's.
    clocks[r].deadlines.back().sources.clear();
    for (std::size_t other = 0; other < clocks.size(); ++other) {
      if (other != r) clocks[r].deadlines.back().sources.push_back(static_cast<Rank>(other));
    }
  }
}

// --- Wall ---

// Progress counters: 1 when a rank is there (rank 0: when all are), 2 + k when it comes to round k.
bool Throttle::State::start_together(RankClock& clock) noexcept {
  const Rank n = static_cast<Rank>(clocks.size());
  const Rank self = clock.waiter.rank;
  std::atomic<std::uint32_t>& here = crossbar.progress(self).value;
  if (self == 0) {
    for (Rank r = 1; r < n; ++r) {
      if (!wait_until(clock.waiter, crossbar.progress(r).value, 1, r, 0)) return false;
    }
    start_ns = now_ns() + kLeadNs + n * kLeadPerRankNs;
    publish(crossbar, self, here, 1);
  } else {
    publish(crossbar, self, here, 1);
    if (!wait_until(clock.waiter, crossbar.progress(0).value, 1, 0, 0)) return false;
  }
  clock.slack.begin();
  sleep_until(start_ns, options.wait);
  return true;
}

bool Throttle::State::keep_deadline(RankClock& clock, int k) noexcept {
  if (k == 0 && !start_together(clock)) return false;
  const auto round = static_cast<std::size_t>(k);
  const std::uint32_t come = static_cast<std::uint32_t>(k) + 2;
  clock.late_before[round] = clock.late;
  publish(crossbar, clock.waiter.rank, crossbar.progress(clock.waiter.rank).value, come);
  const Deadline& deadline = clock.deadlines[round];
  if (deadline.until == 0) return true;

  const std::int64_t planned = deadline_after(start_ns, saturated_ns(ns_of(deadline.until)));
  sleep_until(deadline_after(planned, clock.late), options.wait);
  // Senders came to this round a message ago, unless they are late.
  for (const Rank source : deadline.sources) {
    if (!wait_until(clock.waiter, crossbar.progress(source).value, come, source, k)) return false;
    clock.late = std::max(clock.late, clock_of(source).late_before[round]);
  }
  const std::int64_t due = deadline_after(planned, clock.late);
  sleep_until(due, options.wait);
  const std::int64_t now = now_ns();
  const std::int64_t behind = now - due;
  clock.woke_ns[round] = now;
  clock.behind_ns.push_back(behind);
  if (behind > options.tolerance_ns) {
    clock.late += behind;
    ++clock.missed;
  }
  return true;
}

// --- Throttle ---

Throttle::Throttle(std::unique_ptr<State> state) : state_(std::move(state)) {}
Throttle::~Throttle() = default;

Result<std::unique_ptr<Throttle>> Throttle::create(const Schedule& schedule, const Goal& goal,
                                                   const Fabric& given, const Pricing& pricing,
                                                   const ThrottleOptions& options) {
  const auto wired = wired_for(given, schedule.ranks);
  if (!wired.ok()) return wired.status();
  const Fabric& fabric = *wired;
  auto timed = TimedSchedule::make(schedule, goal, fabric, pricing);
  if (!timed.ok()) return timed.status();
  auto state = std::make_unique<State>(schedule.ranks, options);
  state->schedule = std::move(*timed);
  const bool wall = options.mode == ClockMode::wall;
  if (!wall) state->virtual_clock.emplace(schedule.ranks, options.sync);
  for (Rank r : ranks(schedule.ranks)) {
    State::RankClock& clock = state->clock_of(r);
    clock.shared = state.get();
    clock.waiter = {.crossbar = &state->crossbar, .rank = r};
    if (!wall) {
      state->virtual_clock->of(r).begin(*state->schedule, clock.waiter);
      continue;
    }
    const auto rounds = static_cast<std::size_t>(schedule.rounds);
    clock.late_before.assign(rounds, 0);
    clock.woke_ns.assign(rounds, 0);
    clock.behind_ns.reserve(rounds);
  }
  if (wall) {
    PortModel<Ticks> model(schedule, goal, fabric.ports, options.sync);
    for (int k = 0; k < schedule.rounds; ++k)
      state->plan_round(model, state->schedule->of_round(k));
  }
  return std::unique_ptr<Throttle>(new Throttle(std::move(state)));
}

RoundObserver& Throttle::observer(Rank r) {
  if (state_->virtual_clock) return state_->virtual_clock->of(r);
  return state_->clock_of(r);
}

void Throttle::finished(Rank r) {
  State::RankClock& clock = state_->clock_of(r);
  clock.finished_ns = now_ns();
  clock.slack.end();
}

std::vector<Ticks> Throttle::round_end() const {
  std::vector<Ticks> ends = state_->ends;
  if (!state_->virtual_clock) return ends;
  for (Rank r : ranks(static_cast<int>(state_->clocks.size()))) {
    const std::vector<Ticks>& of_rank = state_->virtual_clock->of(r).round_end();
    ends.resize(std::max(ends.size(), of_rank.size()), 0);
    for (std::size_t k = 0; k < of_rank.size(); ++k) ends[k] = std::max(ends[k], of_rank[k]);
  }
  return ends;
}

Ticks Throttle::end() const {
  Ticks last = 0;
  for (const Ticks end : round_end()) last = std::max(last, end);
  return last;
}

std::int64_t Throttle::elapsed_ns() const {
  std::int64_t last = state_->start_ns;
  for (const State::RankClock& clock : state_->clocks) last = std::max(last, clock.finished_ns);
  return last - state_->start_ns;
}

std::vector<std::int64_t> Throttle::round_elapsed_ns() const {
  std::vector<std::int64_t> elapsed;
  for (const State::RankClock& clock : state_->clocks) {
    elapsed.resize(std::max(elapsed.size(), clock.woke_ns.size()), 0);
    for (std::size_t k = 0; k < clock.woke_ns.size(); ++k) {
      if (clock.woke_ns[k] == 0) continue;
      elapsed[k] = std::max(elapsed[k], clock.woke_ns[k] - state_->start_ns);
    }
  }
  return elapsed;
}

Lateness Throttle::lateness() const {
  Lateness lateness;
  std::vector<std::int64_t> behind;
  for (const State::RankClock& clock : state_->clocks) {
    behind.insert(behind.end(), clock.behind_ns.begin(), clock.behind_ns.end());
    lateness.missed += clock.missed;
    lateness.passed_on_ns = std::max(lateness.passed_on_ns, clock.late);
  }
  lateness.deadlines = static_cast<std::int64_t>(behind.size());
  if (behind.empty()) return lateness;
  std::sort(behind.begin(), behind.end());
  lateness.median_ns = behind[behind.size() / 2];
  lateness.worst_ns = behind.back();
  return lateness;
}

double Throttle::ns_of(Ticks ticks) const { return state_->ns_of(ticks); }
Ticks Throttle::least_cost() const { return state_->schedule->least_cost(); }

Status Throttle::health() const {
  return state_->crossbar.aborted() ? state_->crossbar.reason() : Status();
}

std::vector<std::int64_t> measure_wake_ups(int sleeps, std::int64_t sleep_ns,
                                           const WaitPolicy& policy) {
  NoTimerSlack slack;
  slack.begin();
  std::vector<std::int64_t> late;
  for (int i = 0; i < sleeps; ++i) {
    const std::int64_t until = now_ns() + sleep_ns;
    sleep_until(until, policy);
    late.push_back(now_ns() - until);
  }
  slack.end();
  return late;
}

}  // namespace rankine
