#include "engine/papers/live_queue.h"

#include <malloc.h>

#include <condition_variable>
#include <mutex>

namespace rankine::claims {
namespace {

// What runs that are not small hold, of all that are being made.
class Room {
 public:
  static bool is_small(std::size_t bytes) { return bytes <= (std::size_t{64} << 20); }

  // There is always room for one.
  bool has(std::size_t bytes) const {
    constexpr std::size_t kTogether = std::size_t{3} << 30;
    return is_small(bytes) || held_ == 0 || held_ + bytes <= kTogether;
  }
  void take(std::size_t bytes) { held_ += is_small(bytes) ? 0 : bytes; }
  void give_back(std::size_t bytes) { held_ -= is_small(bytes) ? 0 : bytes; }

 private:
  std::size_t held_ = 0;
};

std::mutex mutex;
std::condition_variable given_back;
Room room;  // under the mutex

}  // namespace

// What live ranks take in memory, about: plans of many moves, and what each rank has beside them.
std::size_t bytes_for(std::uint64_t moves, int ranks) {
  constexpr std::size_t kPerMove = 250, kPerRank = std::size_t{128} << 10;
  return kPerMove * moves + kPerRank * static_cast<std::size_t>(ranks);
}

std::size_t LiveQueue::take() {
  std::unique_lock lock(mutex);
  while (true) {
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if (bytes_[i] == kTaken || !room.has(bytes_[i])) continue;
      room.take(bytes_[i]);
      bytes_[i] = kTaken;
      return i;
    }
    given_back.wait(lock);
  }
}

void LiveQueue::give_back(std::size_t bytes) {
  // What it had lies in pieces all over the heap.
  if (!Room::is_small(bytes)) malloc_trim(0);
  const std::lock_guard lock(mutex);
  room.give_back(bytes);
  given_back.notify_all();
}

}  // namespace rankine::claims
