// The places of a network where ranks sit, and how far each has come there. They outlive calls, and
// communicators that share them share their ranks' time and ports: who makes a call on one begins
// where its last call, on whichever, has left it.
//
// A seat belongs to one thread at a time: that of the rank that sits there, while it makes a call.
// Others may read it when no call is made.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/port_model.h"
#include "engine/network/prices.h"
#include "engine/network/wall.h"
#include "engine/run/crossbar.h"
#include "engine/run/interpret.h"
#include "engine/run/mailbox.h"

namespace rankine {

// When messages held the ports of one direction; and how many of them did at once, at most.
class PortUse {
 public:
  void hold(Ticks from, Ticks until) {
    if (from < until) held_.emplace_back(from, until);
  }
  // Everything that was held is over before what comes.
  void settle() {
    most_ = most();
    held_.clear();
  }
  int most() const {
    // A port that becomes free is free for who wants it at that moment: ends go first.
    std::vector<std::pair<Ticks, int>> changes;
    for (const auto& [from, until] : held_) {
      changes.emplace_back(from, 1);
      changes.emplace_back(until, -1);
    }
    std::sort(changes.begin(), changes.end());
    int most = most_, now = 0;
    for (const auto& [when, change] : changes) most = std::max(most, now += change);
    return most;
  }

 private:
  std::vector<std::pair<Ticks, Ticks>> held_;
  int most_ = 0;
};

// How well a wall clock's deadlines were kept at one seat.
struct SeatLateness {
  std::int64_t late_ns = 0;  // how far behind the plan whoever sits here is
  std::int64_t deadlines = 0, missed = 0;
  std::int64_t worst_ns = 0;
  std::vector<std::int64_t> behind_ns;  // of the last deadlines
  std::int64_t finished_ns = 0;         // when the last call ended; real time
};

struct alignas(kCacheLine) Seat {
  Ticks now = 0;  // when its last message ended, and its own work
  PortUse sending, receiving;
  SeatLateness lateness;
};

class NetworkSeats {
 public:
  // `origin_ns`: a zeroed word that processes share, each of which has such seats of its own and
  // uses those of its ranks; it must outlive this. nullptr: all ranks are threads of this process.
  explicit NetworkSeats(int seats, std::atomic<std::int64_t>* origin_ns = nullptr)
      : seats_(static_cast<std::size_t>(seats)),
        origin_ns_(origin_ns != nullptr ? *origin_ns : own_origin_ns_) {}
  int size() const { return static_cast<int>(seats_.size()); }
  Seat& at(int place) { return seats_[static_cast<std::size_t>(place)]; }
  const Seat& at(int place) const { return seats_[static_cast<std::size_t>(place)]; }

  // Wall: the moment of the monotonic clock at which the model's time began; 0 before that. Set
  // once, by whoever is the first (release); acquire: pairs with it.
  std::int64_t origin_ns() const { return origin_ns_.load(std::memory_order_acquire); }
  void begin_at(std::int64_t when_ns) {
    std::int64_t none = 0;
    origin_ns_.compare_exchange_strong(none, when_ns, std::memory_order_acq_rel);
  }

  // Time begins again, at 0 for everybody. While no rank makes a call.
  void restart() {
    for (Seat& seat : seats_) seat = Seat();
    origin_ns_.store(0, std::memory_order_release);  // pairs with origin_ns()
  }

 private:
  std::vector<Seat> seats_;
  std::atomic<std::int64_t> own_origin_ns_{0};
  std::atomic<std::int64_t>& origin_ns_;
};

// A schedule on a network, as clocks on threads need it: what each of its transfers costs, and whom
// it touches. Made once for all ranks, and immutable.

struct TimedTransfer {
  Transfer transfer;
  Ticks cost = 0, once = 0;     // once: what of it a port pays once a round (RoundPrices)
  std::vector<Rank> touched{};  // the first of them, a receiver, coordinates
};

class TimedSchedule {
 public:
  // `fabric` as wired_for() gives it, `pricing` of the same fabric. Errors: a transfer that the
  // fabric cannot do, and what else simulate() refuses.
  // `may_go_on` is asked before each round, and ends it by an error; empty: nobody does.
  static Result<std::shared_ptr<const TimedSchedule>> make(
      const Schedule& schedule, const Goal& goal, const Fabric& fabric, const Pricing& pricing,
      const std::function<Status()>& may_go_on = {});

  const Schedule& schedule() const { return schedule_; }
  const Goal& goal() const { return goal_; }
  int ports() const { return ports_; }
  Ticks ticks_per_second() const { return ticks_per_second_; }
  Ticks least_cost() const { return least_cost_; }  // of a message; 0 where there is none

  // In the order stated: all of a round, and those that touch a rank.
  std::span<const TimedTransfer> of_round(int k) const {
    return transfers_[static_cast<std::size_t>(k)];
  }
  std::span<const TimedTransfer* const> of_rank(Rank r, int k) const {
    return touching_[static_cast<std::size_t>(r) * transfers_.size() + static_cast<std::size_t>(k)];
  }

  std::size_t bytes() const;  // of memory, about

 private:
  TimedSchedule(const Schedule& schedule, const Goal& goal, int ports, Ticks ticks_per_second)
      : schedule_(schedule), goal_(goal), ports_(ports), ticks_per_second_(ticks_per_second) {}

  const Schedule schedule_;
  const Goal goal_;
  const int ports_;
  const Ticks ticks_per_second_;
  Ticks least_cost_ = 0;
  std::vector<std::vector<TimedTransfer>> transfers_;        // by round
  std::vector<std::vector<const TimedTransfer*>> touching_;  // by rank and round
};

// Alpha, beta and ports made real: the clock under which the ranks of a communicator execute their
// schedules, with real data.
//
//   virtual   nobody waits for real time. What the ranks agree on is deterministic, whatever the
//             machine does, and equal to simulate() to the last tick, from schedule to schedule.
//   wall      the same times, kept on the real clock as well: a rank does not touch what a round
//             brings it before the moment at which the last message of it arrives. `dilate`
//             stretches all times, so that a few cores can keep them.
//
// Ranks handle the clock's events (one per transfer that touches them) in the order in which the
// schedule states them. All who touch a transfer tell its coordinator, the first receiver, when
// they have a port for it; it takes the latest, adds the cost, and tells them the end. Until then
// each holds its port. That order is one for all ranks, so the meetings cannot deadlock. Data take
// their own way: see RoundObserver in interpret.h.
//
// Wall. Deadlines are absolute: a timer that wakes a rank a little late does not make the next
// message late, and what moving the data costs vanishes in the sleep until the next one. A rank
// that is later than `tolerance_ns` could not keep its deadline; it keeps that much distance from
// the plan from then on, and so does everybody who shares a message with it, so that what is
// measured is honest. Work that a rank does between its calls makes it late in the same way.
//
// A rank begins a schedule at the time at which its last message of the one before ended (seats.h).
//
// Ranks may be processes: each has a clock of its own, with the state of its own ranks. They share
// the words that ranks tell one another, and the moment at which a wall clock's time began.

struct NetworkClockOptions {
  Sync sync = Sync::dataflow;
  ClockMode mode = ClockMode::virtual_time;  // or wall
  Ticks ticks_per_second = 1;                // of all schedules
  double dilate = 1;                         // wall: real seconds per modelled second
  std::int64_t tolerance_ns = 200'000;       // wall: how late a rank may be and still be on time
};

class NetworkClock {
 public:
  // What two ranks need for words in one direction.
  static constexpr std::size_t kChannelBytes = 5 * kCacheLine;

  // Rank r sits at places[r] of `seats`, where nobody else of these ranks does. `channels`: zeroed
  // memory that all processes share whose ranks these are, kChannelBytes for each ordered pair; it
  // must outlive this. nullptr: all ranks are threads of this process.
  NetworkClock(const NetworkClockOptions& options, std::shared_ptr<NetworkSeats> seats,
               const std::vector<int>& places, std::byte* channels = nullptr);
  ~NetworkClock();
  NetworkClock(const NetworkClock&) = delete;
  NetworkClock& operator=(const NetworkClock&) = delete;

  // What ranks need to agree on the times of this schedule, made before any of them begins it. One
  // caller at a time; ranks may be at work on other schedules. May throw std::bad_alloc.
  void provide(const TimedSchedule& schedule);

  // One rank's part: the observer of its interpreter. For that rank's thread.
  class OfRank : public RoundObserver {
   public:
    // What is observed next, all ranks alike; both must outlive the call. Waits are the waiter's.
    // It begins for this rank at `start`, or where its seat is. False, and the waiter's crossbar is
    // aborted, also where there is no memory.
    bool begin(const TimedSchedule& schedule, Waiter& waiter,
               std::optional<Ticks> start = std::nullopt) noexcept;
    // Likewise.
    bool before_round(int k) noexcept override;
    // After the last round, or where the call ended before: whether it is done, which the former
    // says so far. Likewise.
    bool finish(bool done) noexcept;
    // When its last message ended, of the latest schedule. The seat goes there, where it is not
    // further already.
    Ticks ended() const { return reached_; }
    void go_to(Ticks time) { seat_->now = std::max(seat_->now, time); }

    Ticks now() const { return seat_->now; }
    Ticks ticks_per_second() const { return clock_->options_.ticks_per_second; }
    // Work of its own, between schedules, that takes so long.
    void work(Ticks ticks);

    // Of the latest schedule: when this rank's last message of each round ended; and, wall, so many
    // real nanoseconds after the model's beginning it had what the round brings it (0: nothing).
    const std::vector<Ticks>& round_end() const { return round_end_; }
    const std::vector<std::int64_t>& round_elapsed_ns() const { return round_elapsed_ns_; }

   private:
    friend class NetworkClock;

    // What ranks tell one another: a time, and how late they are.
    struct Word {
      Ticks time = 0;
      std::int64_t late_ns = 0;
      void join(const Word& other) {
        time = std::max(time, other.time);
        late_ns = std::max(late_ns, other.late_ns);
      }
    };
    bool wall() const { return clock_->options_.mode == ClockMode::wall; }
    std::int64_t due_ns(Ticks time) const;
    bool start_together() noexcept;
    bool take_up(Ticks start);
    bool agree_on_round(int k);
    template <class Act>
    bool with_memory(const Act& act) noexcept;
    bool meet(const TimedTransfer& timed, Ticks& end) noexcept;
    template <class Then>
    bool join_all(Word& word, const Then& then) noexcept;
    bool tell(Rank peer, const Word& word) noexcept;
    bool hear(Rank peer, Word& word) noexcept;
    bool keep_deadline(Ticks arrived) noexcept;

    NetworkClock* clock_ = nullptr;
    Seat* seat_ = nullptr;
    Waiter* waiter_ = nullptr;
    const TimedSchedule* schedule_ = nullptr;
    Ticks reached_ = 0;                      // in the latest schedule
    std::int64_t origin_ns_ = 0;             // wall: when the time that this rank knows began
    std::optional<PortModel<Ticks>> model_;  // of this rank
    std::vector<Ticks> round_end_;
    std::vector<std::int64_t> round_elapsed_ns_;
    NoTimerSlack slack_;
  };
  OfRank& of(Rank r) { return ranks_[static_cast<std::size_t>(r)]; }
  const OfRank& of(Rank r) const { return ranks_[static_cast<std::size_t>(r)]; }

  int ranks() const { return static_cast<int>(ranks_.size()); }
  const NetworkClockOptions& options() const { return options_; }
  const NetworkSeats& seats() const { return *seats_; }
  const std::shared_ptr<NetworkSeats>& shared_seats() const { return seats_; }
  std::size_t bytes() const;  // of memory, about; one caller at a time, with provide()

  // The following where no rank makes a call, and of the ranks that this process plays.

  // Time begins again at 0, for all who share the seats.
  void restart();
  // Of all ranks: the latest time; per round of the latest schedule likewise, modelled and, wall,
  // real.
  Ticks now() const;
  std::vector<Ticks> round_end() const;
  std::vector<std::int64_t> round_elapsed_ns() const;
  // Wall: real nanoseconds from the model's beginning until the last rank had finished its latest
  // schedule; and how late they were.
  std::int64_t elapsed_ns() const;
  Lateness lateness() const;
  // The most messages that rank r ever sent at once, and that it received.
  const PortUse& sending(Rank r) const { return of(r).seat_->sending; }
  const PortUse& receiving(Rank r) const { return of(r).seat_->receiving; }

 private:
  // From one rank to another: a mailbox for words, both its ends.
  struct ChannelWords;
  struct Channel;
  Channel& channel(Rank from, Rank to) {
    return *channels_[static_cast<std::size_t>(from) * ranks_.size() +
                      static_cast<std::size_t>(to)];
  }
  void connect(Rank a, Rank b);
  double ns_of(Ticks ticks) const;

  const NetworkClockOptions options_;
  const std::shared_ptr<NetworkSeats> seats_;
  std::byte* const shared_channels_;
  ZeroedVector<Channel*> channels_;             // by pair; made where a schedule needs them
  std::vector<std::unique_ptr<Channel>> made_;  // all of them
  std::vector<OfRank> ranks_;
};

}  // namespace rankine
