// What ranks tell each other before they can send: an all-gather of a few bytes, in which nobody
// waits, through memory that processes share which are forked later. Header only.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "bench/rivals/buffer.h"
#include "bench/rivals/meeting.h"

namespace rankine::rivals {

struct alignas(kLine) ExchangeSeat {
  static constexpr std::size_t kMost = std::size_t{64} << 10;  // bytes that a rank can tell at once

  std::atomic<std::uint64_t> begun{0};  // exchanges
  // Of exchanges in turn: who has ended one and begins the next leaves the one before untouched,
  // which others may be reading. Nobody gets further ahead, since all must have begun.
  std::byte told[2][kMost];
};

using ExchangeSeats = SharedArray<ExchangeSeat>;  // one for each rank

// One rank's side. All ranks make the same exchanges in the same order, one at a time.
class Exchange {
 public:
  Exchange(const ExchangeSeats& seats, std::size_t rank) noexcept : seats_(seats), rank_(rank) {}

  // Begins one: `own` is read now; `all`, which has room for so many bytes of each rank, is
  // written when it ends. False: these are more than kMost, and nothing has begun.
  bool begin(const void* own, void* all, std::size_t bytes) noexcept {
    if (bytes > ExchangeSeat::kMost) return false;
    under_way_ = true;
    all_ = static_cast<std::byte*>(all);
    bytes_ = bytes;
    ExchangeSeat& seat = seats_[rank_];
    ++begun_;
    std::copy_n(static_cast<const std::byte*>(own), bytes, seat.told[begun_ % 2]);
    seat.begun.store(begun_, std::memory_order_release);  // pairs with the acquire in ended()
    return true;
  }

  // Whether the one that has begun has ended; if not, others on this core get a turn.
  bool ended() noexcept {
    if (!under_way_) return true;
    for (const ExchangeSeat& seat : seats_) {
      if (seat.begun.load(std::memory_order_acquire) >= begun_) continue;
      sched_yield();
      return false;
    }
    std::byte* to = all_;
    for (const ExchangeSeat& seat : seats_) to = std::copy_n(seat.told[begun_ % 2], bytes_, to);
    under_way_ = false;
    return true;
  }

 private:
  const ExchangeSeats& seats_;
  const std::size_t rank_;
  std::uint64_t begun_ = 0;
  bool under_way_ = false;
  std::byte* all_ = nullptr;  // of the one that is
  std::size_t bytes_ = 0;
};

}  // namespace rankine::rivals
