#include "engine/exec/throttle.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <string>

namespace rankine {
namespace {

// One transfer as one of its ranks sees it.
struct Event {
  Rank coordinator = 0;
  std::vector<Rank> others{};  // at the coordinator: everybody else who touches the transfer
  Ticks cost = 0;
  bool sends = false, receives = false, replaces = false;
  std::vector<int> reads{}, writes{};  // places of this rank
};

constexpr std::uint32_t kStride = 64;

void sleep_until(std::int64_t when_ns) {
  const timespec when{when_ns / 1'000'000'000, when_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr) == EINTR) {
  }
}

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
  // One rank's clock: its ports, when its places were filled, its channels to the others.
  class RankClock : public RoundObserver {
   public:
    bool before_round(int k) noexcept override { return shared->before_round(*this, k); }

    State* shared = nullptr;
    Waiter waiter;
    std::vector<std::vector<Event>> rounds;
    std::vector<Ticks> send_ports, receive_ports, ready;
    std::vector<Ticks> round_end;
    std::vector<Outbox> to;   // by peer
    std::vector<Inbox> from;  // by peer
    std::vector<std::uint32_t> sent, received;
    Ticks late = 0;         // how far real time ran ahead of the plan after the last round
    Ticks last_target = 0;  // wall: what the last round slept for
    std::int64_t finished_ns = 0;
  };

  State(int ranks, const ThrottleOptions& with)
      : options(with), crossbar(ranks, with.wait, with.timeout_ns),
        clocks(static_cast<std::size_t>(ranks)) {}

  bool before_round(RankClock& clock, int k) noexcept;
  bool start_together(RankClock& clock) noexcept;
  bool meet(RankClock& clock, const Event& event, Ticks& end) noexcept;
  bool greatest(RankClock& clock, Ticks& value) noexcept;
  void keep_time(RankClock& clock, Ticks until) noexcept;
  bool tell(RankClock& clock, Rank peer, Ticks value) noexcept;
  bool hear(RankClock& clock, Rank peer, Ticks& value) noexcept;

  void connect();
  double ns_per_tick() const {
    return 1e9 * options.dilate / static_cast<double>(ticks_per_second);
  }

  const ThrottleOptions options;
  Crossbar crossbar;
  Ticks ticks_per_second = 1;
  std::vector<RankClock> clocks;
  struct alignas(kCacheLine) Slot {
    std::byte bytes[kStride];
  };
  std::vector<Slot> slots;
  std::vector<Counter> credits;
  std::int64_t start_ns = 0;  // wall; written by rank 0 before it tells the others to go
};

// Every pair has a mailbox for times, beside those for data.
void Throttle::State::connect() {
  const std::size_t n = clocks.size();
  slots = std::vector<Slot>(n * n * kSlots);
  credits = std::vector<Counter>(n * n);
  for (std::size_t a = 0; a < n; ++a) {
    clocks[a].to.resize(n);
    clocks[a].from.resize(n);
    clocks[a].sent.assign(n, 0);
    clocks[a].received.assign(n, 0);
  }
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      Slot* first = &slots[(a * n + b) * kSlots];
      for (std::uint32_t i = 0; i < kSlots; ++i) new (first + i) SlotHeader;
      const Mailbox mailbox{first->bytes, kStride, &credits[a * n + b]};
      clocks[a].to[b].mailbox = mailbox;
      clocks[b].from[a].mailbox = mailbox;
    }
  }
}

bool Throttle::State::tell(RankClock& clock, Rank peer, Ticks value) noexcept {
  const auto p = static_cast<std::size_t>(peer);
  return clock.to[p].send(clock.waiter, peer, clock.sent[p]++, &value, sizeof(value), 0, 0);
}

bool Throttle::State::hear(RankClock& clock, Rank peer, Ticks& value) noexcept {
  const auto p = static_cast<std::size_t>(peer);
  SlotHeader* slot = clock.from[p].wait(clock.waiter, peer, clock.received[p], 0);
  if (slot == nullptr) return false;
  std::memcpy(&value, payload(*slot), sizeof(value));
  clock.from[p].release(clock.waiter, ++clock.received[p], false);
  return true;
}

// All ranks' greatest value, through rank 0.
bool Throttle::State::greatest(RankClock& clock, Ticks& value) noexcept {
  const Rank n = static_cast<Rank>(clocks.size());
  if (clock.waiter.rank != 0) return tell(clock, 0, value) && hear(clock, 0, value);
  for (Rank r = 1; r < n; ++r) {
    Ticks other = 0;
    if (!hear(clock, r, other)) return false;
    value = std::max(value, other);
  }
  for (Rank r = 1; r < n; ++r) {
    if (!tell(clock, r, value)) return false;
  }
  return true;
}

bool Throttle::State::start_together(RankClock& clock) noexcept {
  const Rank n = static_cast<Rank>(clocks.size());
  Ticks here = 0;
  if (clock.waiter.rank != 0) return tell(clock, 0, here) && hear(clock, 0, here);
  for (Rank r = 1; r < n; ++r) {
    if (!hear(clock, r, here)) return false;
  }
  start_ns = now_ns();
  for (Rank r = 1; r < n; ++r) {
    if (!tell(clock, r, here)) return false;
  }
  return true;
}

// When this transfer ends, agreed by all who touch it.
bool Throttle::State::meet(RankClock& clock, const Event& event, Ticks& end) noexcept {
  Ticks ready = 0;
  if (event.sends) {
    ready = *std::min_element(clock.send_ports.begin(), clock.send_ports.end());
    if (!options.by_rounds) {
      for (const int place : event.reads) {
        ready = std::max(ready, clock.ready[static_cast<std::size_t>(place)]);
      }
    }
  }
  if (event.receives) {
    ready = std::max(ready, *std::min_element(clock.receive_ports.begin(),
                                              clock.receive_ports.end()));
  }
  if (event.coordinator != clock.waiter.rank) {
    if (!tell(clock, event.coordinator, ready) || !hear(clock, event.coordinator, end)) return false;
  } else {
    for (const Rank other : event.others) {
      Ticks theirs = 0;
      if (!hear(clock, other, theirs)) return false;
      ready = std::max(ready, theirs);
    }
    end = ready + event.cost;
    for (const Rank other : event.others) {
      if (!tell(clock, other, end)) return false;
    }
  }
  if (event.sends) *std::min_element(clock.send_ports.begin(), clock.send_ports.end()) = end;
  if (event.receives) {
    *std::min_element(clock.receive_ports.begin(), clock.receive_ports.end()) = end;
  }
  return true;
}

// Sleeps until the plan's `until` and notes how late it really is.
void Throttle::State::keep_time(RankClock& clock, Ticks until) noexcept {
  const double unit = ns_per_tick();
  const std::int64_t target =
      start_ns + static_cast<std::int64_t>(static_cast<double>(until) * unit);
  if (now_ns() < target) sleep_until(target);
  const std::int64_t behind = now_ns() - target;
  clock.late = behind > 0 ? static_cast<Ticks>(static_cast<double>(behind) / unit) : 0;
}

bool Throttle::State::before_round(RankClock& clock, int k) noexcept {
  if (k == 0 && options.mode == ClockMode::wall && !start_together(clock)) return false;
  Ticks last = clock.round_end.empty() ? 0 : clock.round_end.back();
  if (options.by_rounds) {
    if (!greatest(clock, last)) return false;
    std::fill(clock.send_ports.begin(), clock.send_ports.end(), last);
    std::fill(clock.receive_ports.begin(), clock.receive_ports.end(), last);
  }
  struct Arrival {
    const Event* event;
    Ticks end;
  };
  std::vector<Arrival> arrivals;
  Ticks round_end = options.by_rounds ? last : 0, arrived = 0;
  for (const Event& event : clock.rounds[static_cast<std::size_t>(k)]) {
    Ticks end = 0;
    if (!event.sends && !event.receives) {  // local: there as soon as its source
      for (const int place : event.reads) {
        end = std::max(end, clock.ready[static_cast<std::size_t>(place)]);
      }
    } else if (!meet(clock, event, end)) {
      return false;
    }
    round_end = std::max(round_end, end);
    if (!event.writes.empty()) {
      arrivals.push_back({&event, end});
      arrived = std::max(arrived, end);
    }
  }
  if (options.mode == ClockMode::wall && arrived > 0) {
    keep_time(clock, arrived);
  } else {
    clock.late = 0;
  }
  if (!options.by_rounds) {
    for (const Arrival& a : arrivals) {
      if (!a.event->replaces) continue;
      for (const int place : a.event->writes) clock.ready[static_cast<std::size_t>(place)] = 0;
    }
    for (const Arrival& a : arrivals) {
      for (const int place : a.event->writes) {
        Ticks& ready = clock.ready[static_cast<std::size_t>(place)];
        ready = std::max(ready, a.end + clock.late);
      }
    }
  }
  clock.round_end.push_back(round_end + clock.late);
  return true;
}

Throttle::Throttle(std::unique_ptr<State> state) : state_(std::move(state)) {}
Throttle::~Throttle() = default;

Result<std::unique_ptr<Throttle>> Throttle::create(const Schedule& schedule, const Fabric& fabric,
                                                   const Pricing& pricing,
                                                   const ThrottleOptions& options) {
  Status status = check_fabric(fabric);
  if (!status.ok()) return status;
  auto state = std::make_unique<State>(schedule.ranks, options);
  state->ticks_per_second = pricing.ticks_per_second();
  state->connect();
  for (Rank r : ranks(schedule.ranks)) {
    State::RankClock& clock = state->clocks[static_cast<std::size_t>(r)];
    clock.shared = state.get();
    clock.waiter = {.crossbar = &state->crossbar, .rank = r};
    clock.rounds.resize(static_cast<std::size_t>(schedule.rounds));
    clock.send_ports.assign(static_cast<std::size_t>(fabric.ports), 0);
    clock.receive_ports.assign(static_cast<std::size_t>(fabric.ports), 0);
    clock.ready.assign(static_cast<std::size_t>(schedule.places()), 0);
  }
  for (int k = 0; k < schedule.rounds; ++k) {
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      const bool plain = t.from.size() == 1 && t.to.size() == 1;
      if ((t.to.size() > 1 && !fabric.multicast) || (t.from.size() > 1 && !fabric.alu)) {
        status = invalid_argument("network '" + fabric.name + "' cannot do a transfer of round " +
                                  std::to_string(k) + "; lower the schedule first");
        return;
      }
      const std::int64_t weight = pricing.weight(t.what.list);
      const bool local = plain && t.from.front() == t.to.front();
      std::vector<Rank> touched = t.to.to_vector();
      t.from.for_each([&](Rank r) {
        if (std::find(touched.begin(), touched.end(), r) == touched.end()) touched.push_back(r);
      });
      const Rank coordinator = touched.front();
      const auto contains = [](const RankSet& set, Rank r) {
        bool found = false;
        set.for_each([&](Rank member) { found = found || member == r; });
        return found;
      };
      for (const Rank r : touched) {
        Event event{.coordinator = coordinator};
        event.cost = plain ? pricing.message(fabric, t.from.front(), t.to.front(), weight)
                           : pricing.through_switch(weight);
        event.sends = !local && contains(t.from, r);
        event.receives = !local && contains(t.to, r);
        event.replaces = t.act == Act::copy;
        if (r == coordinator) event.others.assign(touched.begin() + 1, touched.end());
        if (contains(t.from, r)) {
          t.what.list.for_each([&](Block b) {
            event.reads.push_back(place_of(schedule, b, t.what.plane));
          });
        }
        if (contains(t.to, r)) {
          t.where.list.for_each([&](Block b) {
            event.writes.push_back(place_of(schedule, b, t.where.plane));
          });
        }
        state->clocks[static_cast<std::size_t>(r)].rounds[static_cast<std::size_t>(k)].push_back(
            std::move(event));
      }
    });
  }
  if (!status.ok()) return status;
  return std::unique_ptr<Throttle>(new Throttle(std::move(state)));
}

RoundObserver& Throttle::observer(Rank r) { return state_->clocks[static_cast<std::size_t>(r)]; }

std::vector<Ticks> Throttle::round_end() const {
  std::vector<Ticks> ends;
  for (const State::RankClock& clock : state_->clocks) {
    ends.resize(std::max(ends.size(), clock.round_end.size()), 0);
    for (std::size_t k = 0; k < clock.round_end.size(); ++k) {
      ends[k] = std::max(ends[k], clock.round_end[k]);
    }
  }
  return ends;
}

Ticks Throttle::end() const {
  Ticks last = 0;
  for (const Ticks end : round_end()) last = std::max(last, end);
  return last;
}

void Throttle::finished(Rank r) {
  state_->clocks[static_cast<std::size_t>(r)].finished_ns = now_ns();
}

std::int64_t Throttle::elapsed_ns() const {
  std::int64_t last = state_->start_ns;
  for (const State::RankClock& clock : state_->clocks) last = std::max(last, clock.finished_ns);
  return last - state_->start_ns;
}

Status Throttle::health() const {
  return state_->crossbar.aborted() ? state_->crossbar.reason() : Status();
}

}  // namespace rankine
