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
#include <utility>
#include <vector>

#include "engine/base/cache_line.h"
#include "engine/network/timing.h"

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

}  // namespace rankine
