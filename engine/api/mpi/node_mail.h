// Errands passes work from a thread that may not call MPI to the thread that may. NodeMail passes
// messages between the ranks of one node through shared memory. Neither uses MPI.
//
// An errand is a function that the other thread calls until it returns true; later errands wait
// behind it.
//
// Memory order: writes before post() are visible to the thread that runs the errand (post() pairs
// with serve()), and the errand's writes are visible after is_done() returns true (serve() pairs
// with is_done() and post()).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/memory.h"
#include "engine/run/machine.h"

namespace rankine {

class Errands {
 public:
  static constexpr std::uint32_t kMost = 64;  // pending at once

  struct Errand {
    bool (*is_over)(void* of, int what) noexcept = nullptr;
    void* of = nullptr;  // argument of is_over; must stay valid until the errand is done
    int what = 0;
  };

  // --- the posting thread ------------------------------------------------------------------------
  // Returns false if kMost errands are pending.
  bool post(const Errand& errand) noexcept {
    if (posted_ - done_.load(std::memory_order_acquire) == kMost) return false;  // serve()
    errands_[posted_ % kMost] = errand;
    there_.store(++posted_, std::memory_order_release);  // pairs with serve()
    return true;
  }
  // The number of the latest errand, from 1 on; modulo 2^32.
  std::uint32_t number() const noexcept { return posted_; }
  bool is_done(std::uint32_t number) const noexcept {
    // Pairs with serve().
    return static_cast<std::int32_t>(done_.load(std::memory_order_acquire) - number) >= 0;
  }

  // --- the serving thread ------------------------------------------------------------------------
  // Runs errands in order until one is not over.
  void serve() noexcept {
    const std::uint32_t there = there_.load(std::memory_order_acquire);  // pairs with post()
    while (served_ != there) {
      const Errand& errand = errands_[served_ % kMost];
      if (!errand.is_over(errand.of, errand.what)) return;
      done_.store(++served_, std::memory_order_release);  // pairs with is_done() and post()
    }
  }

 private:
  std::array<Errand, kMost> errands_{};
  alignas(kCacheLine) Atomic<std::uint32_t> there_{0};
  std::uint32_t posted_ = 0;
  alignas(kCacheLine) Atomic<std::uint32_t> done_{0};
  std::uint32_t served_ = 0;
};

// The ranks of one node tell each other through shared memory that a message is there, with its
// data or their address, and that it has been used.
//
//   slot   number | tag | data, or an address     a cache line; kSlots per ordered pair, in turn
//   used   count of messages the reader has used  one cache line per pair
//
// Single producer, single consumer. A slot's number and its data share one cache line, so a small
// message costs one cache-line transfer. No function here blocks: a waiting caller polls.
//
// Memory order: the writer stores a slot's number with release after the rest of the slot and the
// data that it points to; the reader loads it with acquire before reading them (post() pairs with
// next()). The reader stores `used` with release after reading; the writer loads it with acquire
// before it reuses the slot (used() pairs with room() and is_used()).

// One rank's end of all its pairs; used by one thread at a time. Ranks have their numbers on the
// node.
class NodeMail {
 public:
  static constexpr std::uint32_t kSlots = 8;
  static constexpr std::size_t kData = kCacheLine - 2 * sizeof(std::uint32_t);

  // Bytes of shared memory for `ranks` ranks. The memory starts at a cache line and is zeroed
  // before any rank uses it.
  static std::size_t bytes(int ranks);
  NodeMail(std::byte* memory, int ranks, int self);

  // --- sender ------------------------------------------------------------------------------------
  // Returns room for kData bytes of data of the next message to rank `to`, or nullptr if all slots
  // are full.
  std::byte* room(int to) noexcept;
  // Sends the message written to room(). Returns its number.
  std::uint32_t post(int to, std::uint32_t tag) noexcept;
  // Returns true if the reader has used message `number`.
  bool is_used(int to, std::uint32_t number) noexcept;

  // --- receiver ----------------------------------------------------------------------------------
  struct Message {
    const std::byte* data = nullptr;  // nullptr: no message has arrived
    std::uint32_t tag = 0;
  };
  // The oldest unused message from rank `from`.
  Message next(int from) const noexcept;
  void used(int from) noexcept;

 private:
  struct alignas(kCacheLine) Slot {
    Atomic<std::uint32_t> number;  // number of the slot's message, from 1 on; modulo 2^32
    std::uint32_t tag;
    std::byte data[kData];
  };
  static_assert(sizeof(Slot) == kCacheLine);
  struct alignas(kCacheLine) Used {
    Atomic<std::uint32_t> count;
  };
  static_assert(sizeof(Used) == kCacheLine);

  std::size_t pair(int from, int to) const {
    return static_cast<std::size_t>(to) * ranks_ + static_cast<std::size_t>(from);
  }
  Slot& slot(int from, int to, std::uint32_t number) const {
    return slots_[pair(from, to) * kSlots + number % kSlots];
  }

  const std::size_t ranks_;
  const int self_;
  Slot* const slots_;
  Used* const used_;
  std::vector<std::uint32_t> sent_, received_;  // number of messages so far, by rank
  std::vector<std::uint32_t> used_seen_;        // by rank: latest value of the receiver's count
};

}  // namespace rankine
