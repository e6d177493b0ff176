// What a thread that may not call MPI has done for it by the one that may: a queue from one thread
// to another. An errand is asked whether it is over until it says so, and those behind it wait.
//
// Memory order: what the thread wrote before it posted an errand is there for whoever does it
// (post() with serve()), and what that one wrote is there for who finds it done (serve() with
// is_done() and post()).
#pragma once

#include <array>
#include <cstdint>

#include "engine/base/cache_line.h"
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

}  // namespace rankine
