// The waits of one rank that took so long that it parked, the last kWaits of them: in which call
// and round, for whom, from when until when, and how they ended. For flight records.
//
// Written by the rank on the slow side of waiting only, where it is about to sleep anyway; read by
// anybody, who may find a wait half written while the rank is at work. Plain std::atomic: nothing
// depends on what stands here, so there is nothing for the model checker to explore.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "algorithms/schedule/blocks.h"

namespace rankine {

struct SlowWait {
  enum class End : std::uint8_t {
    none,      // it goes on
    came,      // what it was for
    deadline,  // passed
    lost,      // the peer had left, or its thread had ended
    mismatch,  // the peer called something else
    aborted,   // somebody ended the communicator
  };
  std::uint64_t call = 0;  // as in CallRecord
  Rank peer = 0;
  int round = 0;                          // as in Op
  std::int64_t begin_ns = 0, end_ns = 0;  // of the monotonic clock; 0: it goes on
  End end = End::none;
};

constexpr std::string_view name_of(SlowWait::End end) {
  constexpr std::string_view kNames[] = {"none", "came", "deadline", "lost", "mismatch", "aborted"};
  const auto i = static_cast<std::size_t>(end);
  return i < std::size(kNames) ? kNames[i] : "?";  // memory that processes share may say anything
}

class alignas(64) SlowWaits {
 public:
  static constexpr std::uint64_t kWaits = 64;

  void begin(std::uint64_t call, Rank peer, int round, std::int64_t now) noexcept {
    const std::uint64_t n = begun_.load(std::memory_order_relaxed);
    Cell& cell = cells_[n % kWaits];
    cell.call.store(call, std::memory_order_relaxed);
    cell.peer.store(peer, std::memory_order_relaxed);
    cell.round.store(round, std::memory_order_relaxed);
    cell.begin_ns.store(now, std::memory_order_relaxed);
    cell.end_ns.store(0, std::memory_order_relaxed);
    cell.end.store(SlowWait::End::none, std::memory_order_relaxed);
    begun_.store(n + 1, std::memory_order_release);  // pairs with last()
  }
  // The wait that began last has ended.
  void end(SlowWait::End how, std::int64_t now) noexcept {
    Cell& cell = cells_[(begun_.load(std::memory_order_relaxed) - 1) % kWaits];
    cell.end_ns.store(now, std::memory_order_relaxed);
    cell.end.store(how, std::memory_order_relaxed);
  }

  // Oldest first.
  std::vector<SlowWait> last() const {
    const std::uint64_t begun = begun_.load(std::memory_order_acquire);  // pairs with begin()
    std::vector<SlowWait> out;
    for (std::uint64_t n = begun < kWaits ? 0 : begun - kWaits; n != begun; ++n) {
      const Cell& cell = cells_[n % kWaits];
      out.push_back(
          {cell.call.load(std::memory_order_relaxed), cell.peer.load(std::memory_order_relaxed),
           cell.round.load(std::memory_order_relaxed),
           cell.begin_ns.load(std::memory_order_relaxed),
           cell.end_ns.load(std::memory_order_relaxed), cell.end.load(std::memory_order_relaxed)});
    }
    return out;
  }

 private:
  struct Cell {
    std::atomic<std::uint64_t> call{0};
    std::atomic<std::int64_t> begin_ns{0}, end_ns{0};
    std::atomic<Rank> peer{0};
    std::atomic<int> round{0};
    std::atomic<SlowWait::End> end{SlowWait::End::none};
  };
  std::atomic<std::uint64_t> begun_{0};
  Cell cells_[kWaits];
};

}  // namespace rankine
