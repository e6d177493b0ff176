// What a thread that may not call MPI has done for it by the one that may: a queue from one thread
// to another. An errand is asked whether it is over until it says so, and those behind it wait.
//
// Memory order: what the thread wrote before it posted an errand is there for whoever does it
// (post() with serve()), and what that one wrote is there for who finds it done (serve() with
// is_done() and post()).
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
  static constexpr std::uint32_t kMost = 64;  // under way at once

  struct Errand {
    bool (*is_over)(void* of, int what) noexcept = nullptr;
    void* of = nullptr;  // what it is about: stays until the errand is done
    int what = 0;
  };

  // --- whose errands they are --------------------------------------------------------------------
  // False: kMost are under way.
  bool post(const Errand& errand) noexcept {
    if (posted_ - done_.load(std::memory_order_acquire) == kMost) return false;  // serve()
    errands_[posted_ % kMost] = errand;
    there_.store(++posted_, std::memory_order_release);  // pairs with serve()
    return true;
  }
  // Of the latest one, from 1 on; modulo 2^32.
  std::uint32_t number() const noexcept { return posted_; }
  bool is_done(std::uint32_t number) const noexcept {
    // Pairs with serve().
    return static_cast<std::int32_t>(done_.load(std::memory_order_acquire) - number) >= 0;
  }

  // --- who does them -----------------------------------------------------------------------------
  // As many as are over.
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

// What the ranks of one node tell each other through memory that all of them reach: that a message
// is there, with its data or where they lie, and that it has been used.
//
//   slot   number | tag | data, or an address     a cache line; of each ordered pair kSlots, in
//   turn used   how many the reader has done with      a line of its own
//
// Single producer, single consumer. A word and what comes with it are one line, so a small message
// costs one transfer. Nobody waits here: who is to wait looks again.
//
// Memory order: a slot's number is stored with release when the rest of it, and what it points to,
// has been written, and loaded with acquire before it is read (post() and next()). `used` is stored
// with release when the reader has read, and loaded with acquire before the writer writes there
// again (used() with room() and is_used()).

// One rank's end of all its pairs; used by one thread at a time. Ranks are numbered on the node.
class NodeMail {
 public:
  static constexpr std::uint32_t kSlots = 8;
  static constexpr std::size_t kData = kCacheLine - 2 * sizeof(std::uint32_t);

  // Of memory that `ranks` ranks share, from a cache line on, zeroed before any of them begins.
  static std::size_t bytes(int ranks);
  NodeMail(std::byte* memory, int ranks, int self);

  // --- who sends ---------------------------------------------------------------------------------
  // kData bytes of the next message to that rank, or nullptr: all slots are full.
  std::byte* room(int to) noexcept;
  // What has been written there is that message. Returns its number.
  std::uint32_t post(int to, std::uint32_t tag) noexcept;
  // Whether the reader has done with the message of that number.
  bool is_used(int to, std::uint32_t number) noexcept;

  // --- who receives ------------------------------------------------------------------------------
  struct Message {
    const std::byte* data = nullptr;  // nullptr: it is not there yet
    std::uint32_t tag = 0;
  };
  // The oldest message from that rank that has not been used.
  Message next(int from) const noexcept;
  void used(int from) noexcept;

 private:
  struct alignas(kCacheLine) Slot {
    Atomic<std::uint32_t> number;  // of the message in it, from 1 on; modulo 2^32
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
  std::vector<std::uint32_t> sent_, received_;  // so far, by rank
  std::vector<std::uint32_t> used_seen_;        // by rank: of what was sent there
};

}  // namespace rankine
