// Model time on threads, which nobody waits for: deterministic, whatever the machine does, and
// equal to simulate() to the last tick, from call to call.
//
// Ranks handle the clock's events (one per transfer that touches them) in the order in which the
// schedule states them. All who touch a transfer tell its coordinator, the first receiver, when
// they are ready; it takes the latest, adds the cost, and tells them the end. That order is one for
// all ranks, so the meetings cannot deadlock. Data take their own way: see RoundObserver in
// interpret.h.
//
// A rank begins a schedule at the time at which its last message of the one before ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/network/port_model.h"
#include "engine/network/ticks.h"
#include "engine/network/timed_schedule.h"
#include "engine/run/crossbar.h"
#include "engine/run/interpret.h"
#include "engine/run/mailbox.h"

namespace rankine {

class VirtualClock {
 public:
  VirtualClock(int ranks, Sync sync);
  VirtualClock(const VirtualClock&) = delete;
  VirtualClock& operator=(const VirtualClock&) = delete;

  // One rank's part: the observer of its interpreter. For that rank's thread.
  class OfRank : public RoundObserver {
   public:
    // What is observed next, all ranks alike; both must outlive the call. Waits are the waiter's.
    // May throw std::bad_alloc.
    void begin(const TimedSchedule& schedule, Waiter& waiter);
    // False, and the waiter's crossbar is aborted, also where there is no memory.
    bool before_round(int k) noexcept override;

    // When this rank's last message ended, and as far as it has worked beside.
    Ticks now() const { return now_; }
    // Work of its own, between schedules, that takes so long.
    void work(Ticks ticks);
    // When its last message of each round of the latest schedule ended.
    const std::vector<Ticks>& round_end() const { return round_end_; }

   private:
    friend class VirtualClock;

    bool agree_on_round(int k);
    bool meet(const TimedTransfer& timed, Ticks& end) noexcept;
    bool greatest(Ticks& value) noexcept;
    bool tell(Rank peer, Ticks value) noexcept;
    bool hear(Rank peer, Ticks& value) noexcept;

    Sync sync_ = Sync::dataflow;
    Ticks now_ = 0;
    Waiter* waiter_ = nullptr;
    const TimedSchedule* schedule_ = nullptr;
    std::optional<PortModel<Ticks>> model_;  // of this rank
    std::vector<Ticks> round_end_;
    std::vector<Outbox> to_;   // by peer
    std::vector<Inbox> from_;  // by peer
    std::vector<std::uint32_t> sent_, received_;
  };
  OfRank& of(Rank r) { return ranks_[static_cast<std::size_t>(r)]; }
  const OfRank& of(Rank r) const { return ranks_[static_cast<std::size_t>(r)]; }

  // Between so many ranks: every pair has a mailbox for times.
  static std::size_t bytes(int ranks);

 private:
  static constexpr std::uint32_t kStride = 64;
  struct alignas(kCacheLine) Slot {
    std::byte bytes[kStride];
  };

  std::vector<Slot> slots_;
  std::vector<Counter> credits_;
  std::vector<OfRank> ranks_;
};

}  // namespace rankine
