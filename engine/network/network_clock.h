// NetworkClock keeps a modelled network's time on the ranks' threads. RankClocks holds each
// rank's time and ports, and TimedSchedule the costs of a schedule's transfers.
//
// Seats are the places of a network where ranks sit. They outlive calls, and communicators that
// share them share their ranks' time and ports: a rank begins a call at the end of its last call,
// on any of these communicators.
//
// A seat belongs to one thread at a time: the thread of the rank that sits there, during a call.
// Other threads may read it while no call is made.
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
#include "engine/run/interpret.h"
#include "engine/run/mailbox.h"
#include "engine/run/rank_control.h"

namespace rankine {

// The times during which messages held the ports of one direction, and the greatest number of ports
// held at once.
class PortUse {
 public:
  void hold(Ticks from, Ticks until) {
    if (from < until) held_.emplace_back(from, until);
  }
  // Call when all later messages begin after the end of all recorded ones: keeps only the maximum.
  void settle() {
    most_ = most();
    held_.clear();
  }
  int most() const {
    // A port that becomes free can be taken at that moment: ends come before begins.
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

// How punctually one seat met the deadlines of a wall clock.
struct SeatLateness {
  std::int64_t late_ns = 0;  // how far the seat's rank is behind the plan
  std::int64_t deadlines = 0, missed = 0;
  std::int64_t worst_ns = 0;
  std::vector<std::int64_t> behind_ns;  // at the last deadlines
  std::int64_t finished_ns = 0;         // real time at the end of the last call
};

struct alignas(kCacheLine) Seat {
  Ticks now = 0;  // the end of its last message and its own work
  PortUse sending, receiving;
  SeatLateness lateness;
};

class RankClocks {
 public:
  // `origin_ns`: a zeroed word that processes share. Each process has a separate RankClocks and
  // uses only the seats of its ranks. The word must outlive this object. nullptr: all ranks are
  // threads of this process.
  explicit RankClocks(int seats, std::atomic<std::int64_t>* origin_ns = nullptr)
      : seats_(static_cast<std::size_t>(seats)),
        origin_ns_(origin_ns != nullptr ? *origin_ns : own_origin_ns_) {}
  int size() const { return static_cast<int>(seats_.size()); }
  Seat& at(int place) { return seats_[static_cast<std::size_t>(place)]; }
  const Seat& at(int place) const { return seats_[static_cast<std::size_t>(place)]; }

  // Wall: the moment of the monotonic clock at which the model's time began; 0 before that. The
  // first caller of begin_at() sets it, once (release); the acquire load here pairs with it.
  std::int64_t origin_ns() const { return origin_ns_.load(std::memory_order_acquire); }
  void begin_at(std::int64_t when_ns) {
    std::int64_t none = 0;
    origin_ns_.compare_exchange_strong(none, when_ns, std::memory_order_acq_rel);
  }

  // Sets the time of all seats back to 0. Call only while no rank makes a call.
  void restart() {
    for (Seat& seat : seats_) seat = Seat();
    origin_ns_.store(0, std::memory_order_release);  // pairs with origin_ns()
  }

 private:
  std::vector<Seat> seats_;
  std::atomic<std::int64_t> own_origin_ns_{0};
  std::atomic<std::int64_t>& origin_ns_;
};

// A schedule on a network, for clocks on threads: the cost of each transfer, and the ranks that it
// touches. Made once for all ranks, and immutable.

struct TimedTransfer {
  Transfer transfer;
  // once: the part of `cost` that a port pays once a round (RoundPrices)
  Ticks cost = 0, once = 0;
  std::vector<Rank> touched{};  // the first one, a receiver, is the coordinator
};

class TimedSchedule {
 public:
  // `fabric` comes from wired_for(), `pricing` is of that fabric. Errors: a transfer that the
  // fabric cannot do, and all other errors of simulate(). `may_go_on` is called before each round,
  // and its error ends make(); empty: no check.
  static Result<std::shared_ptr<const TimedSchedule>> make(
      const Schedule& schedule, const CollectiveSpec& goal, const Fabric& fabric,
      const Pricing& pricing, const std::function<Status()>& may_go_on = {});

  const Schedule& schedule() const { return schedule_; }
  const CollectiveSpec& goal() const { return goal_; }
  int ports() const { return ports_; }
  Ticks ticks_per_second() const { return ticks_per_second_; }
  Ticks least_cost() const { return least_cost_; }  // of a message; 0 without messages

  // In the order stated: all transfers of a round, and the transfers of a round that touch a rank.
  std::span<const TimedTransfer> of_round(int k) const {
    return transfers_[static_cast<std::size_t>(k)];
  }
  std::span<const TimedTransfer* const> of_rank(Rank r, int k) const {
    return touching_[static_cast<std::size_t>(r) * transfers_.size() + static_cast<std::size_t>(k)];
  }

  std::size_t bytes() const;  // of memory, about

 private:
  TimedSchedule(const Schedule& schedule, const CollectiveSpec& goal, int ports,
                Ticks ticks_per_second)
      : schedule_(schedule), goal_(goal), ports_(ports), ticks_per_second_(ticks_per_second) {}

  const Schedule schedule_;
  const CollectiveSpec goal_;
  const int ports_;
  const Ticks ticks_per_second_;
  Ticks least_cost_ = 0;
  std::vector<std::vector<TimedTransfer>> transfers_;        // by round
  std::vector<std::vector<const TimedTransfer*>> touching_;  // by rank and round
};

// NetworkClock applies alpha, beta and ports to real data: the ranks of a communicator execute
// their schedules under it.
//
//   virtual   ranks never wait for real time. The agreed times are deterministic, independent of
//             the machine, and equal to simulate() to the last tick, from schedule to schedule.
//   wall      the times are kept on the real clock as well: a rank does not touch the data of a
//             round before the modelled arrival of the round's last message to it. `dilate`
//             stretches all times, so that a few cores can keep them.
//
// Ranks handle the clock's events (one per transfer that touches them) in the order in which the
// schedule states them. All ranks that a transfer touches tell its coordinator, the first receiver,
// the time at which they have a port for it; the coordinator takes the latest, adds the cost, and
// tells them the end. Until then each rank holds its port. All ranks use one order, so the meetings
// cannot deadlock. Data move separately: see RoundObserver in interpret.h.
//
// Wall deadlines are absolute: a timer that wakes a rank a little late does not delay the next
// message, and the time for moving the data is absorbed by the sleep until the next deadline. A
// rank that is more than `tolerance_ns` late has missed its deadline; from then on it keeps that
// distance from the plan, and so does every rank that shares a message with it, so that measured
// times are honest. Work of a rank between its calls delays it in that way too.
//
// A rank begins a schedule at the end of its last message of the schedule before (RankClocks).
//
// Ranks may be processes: each process has a separate clock, with the state of the process's ranks.
// Processes share the words that ranks send one another, and the moment at which a wall clock's
// time began.

struct NetworkClockOptions {
  Sync sync = Sync::dataflow;
  ClockMode mode = ClockMode::virtual_time;  // or wall
  Ticks ticks_per_second = 1;                // for all schedules
  double dilate = 1;                         // wall: real seconds per modelled second
  // wall: the greatest lateness that still counts as on time
  std::int64_t tolerance_ns = 200'000;
};

class NetworkClock {
 public:
  // The memory for words in one direction between two ranks.
  static constexpr std::size_t kChannelBytes = 5 * kCacheLine;

  // Rank r sits at places[r] of `seats`; the places are distinct. `channels`: zeroed memory shared
  // by the processes of these ranks, kChannelBytes for each ordered pair; it must outlive this
  // object. nullptr: all ranks are threads of this process.
  NetworkClock(const NetworkClockOptions& options, std::shared_ptr<RankClocks> seats,
               const std::vector<int>& places, std::byte* channels = nullptr);
  ~NetworkClock();
  NetworkClock(const NetworkClock&) = delete;
  NetworkClock& operator=(const NetworkClock&) = delete;

  // Makes the channels that ranks need to agree on this schedule's times; call it before any rank
  // begins the schedule. One caller at a time; ranks may be executing other schedules. May throw
  // std::bad_alloc.
  void provide(const TimedSchedule& schedule);

  // One rank's part of the clock: the observer of its interpreter. For that rank's thread.
  class RankClock : public RoundObserver {
   public:
    // Selects the schedule that is observed next; all ranks must pass an equal one. Both arguments
    // must outlive the call. Waits follow the waiter's policy. The rank begins at `start`, or at
    // its seat's time. Returns false if the waiter's RankControl is aborted; aborts it if memory
    // runs out.
    bool begin(const TimedSchedule& schedule, Waiter& waiter,
               std::optional<Ticks> start = std::nullopt) noexcept;
    // Returns false as begin() does.
    bool before_round(int k) noexcept override;
    // Call after the last round, or after a call that ended early: `done` says if all rounds were
    // done. Returns false as begin() does.
    bool finish(bool done) noexcept;
    // ended(): the end of this rank's last message of the latest schedule. go_to(): moves the
    // seat's time forward to `time`, never back.
    Ticks ended() const { return reached_; }
    void go_to(Ticks time) { seat_->now = std::max(seat_->now, time); }

    Ticks now() const { return seat_->now; }
    Ticks ticks_per_second() const { return clock_->options_.ticks_per_second; }
    // Adds the time of the rank's own work between schedules.
    void work(Ticks ticks);

    // For the latest schedule: the end of this rank's last message of each round; and in wall mode
    // the real nanoseconds, from the model's beginning, at which it had the data of each round (0:
    // no data).
    const std::vector<Ticks>& round_end() const { return round_end_; }
    const std::vector<std::int64_t>& round_elapsed_ns() const { return round_elapsed_ns_; }

   private:
    friend class NetworkClock;

    // A message between ranks: a time, and how late the sender is.
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
    Ticks reached_ = 0;  // in the latest schedule
    // wall: the beginning of the model's time, as this rank knows it
    std::int64_t origin_ns_ = 0;
    std::optional<PortModel<Ticks>> model_;  // of this rank
    std::vector<Ticks> round_end_;
    std::vector<std::int64_t> round_elapsed_ns_;
    NoTimerSlack slack_;
  };
  RankClock& of(Rank r) { return ranks_[static_cast<std::size_t>(r)]; }
  const RankClock& of(Rank r) const { return ranks_[static_cast<std::size_t>(r)]; }

  int ranks() const { return static_cast<int>(ranks_.size()); }
  const NetworkClockOptions& options() const { return options_; }
  const RankClocks& seats() const { return *seats_; }
  const std::shared_ptr<RankClocks>& shared_seats() const { return seats_; }
  std::size_t bytes() const;  // of memory, about; one caller at a time, with provide()

  // Call the functions below only while no rank makes a call; they cover the ranks of this process.

  // Sets time back to 0, for all clocks that share the seats.
  void restart();
  // The latest values over all ranks: now; and per round of the latest schedule, the modelled end
  // and (wall) the real time.
  Ticks now() const;
  std::vector<Ticks> round_end() const;
  std::vector<std::int64_t> round_elapsed_ns() const;
  // Wall: real nanoseconds from the model's beginning to the end of the last rank's latest
  // schedule; and the ranks' lateness.
  std::int64_t elapsed_ns() const;
  Lateness lateness() const;
  // The port use of rank r: the most messages sent, or received, at once.
  const PortUse& sending(Rank r) const { return of(r).seat_->sending; }
  const PortUse& receiving(Rank r) const { return of(r).seat_->receiving; }

 private:
  // A mailbox for words from one rank to another, with both its ends.
  struct ChannelWords;
  struct Channel;
  Channel& channel(Rank from, Rank to) {
    return *channels_[static_cast<std::size_t>(from) * ranks_.size() +
                      static_cast<std::size_t>(to)];
  }
  void connect(Rank a, Rank b);
  double ns_of(Ticks ticks) const;

  const NetworkClockOptions options_;
  const std::shared_ptr<RankClocks> seats_;
  std::byte* const shared_channels_;
  ZeroedVector<Channel*> channels_;             // by pair; made when a schedule needs them
  std::vector<std::unique_ptr<Channel>> made_;  // owns all channels
  std::vector<RankClock> ranks_;
};

}  // namespace rankine
