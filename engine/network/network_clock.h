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
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/zeroed_pages.h"
#include "engine/network/lateness.h"
#include "engine/network/port_model.h"
#include "engine/network/seats.h"
#include "engine/network/ticks.h"
#include "engine/network/timed_schedule.h"
#include "engine/network/timing.h"
#include "engine/network/wall.h"
#include "engine/run/crossbar.h"
#include "engine/run/interpret.h"
#include "engine/run/mailbox.h"

namespace rankine {

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
