// How ranks store what they stage for others: past the caches, or into their own. Past them a line
// takes as long whoever had it before, and whoever reads it has it from memory. Into its own caches
// it is taken back from who has read it before, and fetched from there by who reads it next: which
// is sooner done between near cores, and takes several times as long between far ones. Nobody can
// say for long which cores are near (a virtual machine moves its own), so ranks compare while they
// work: now and then they time some calls' stores and fetches, and then some calls' the other way.
//
// They do so together. Who stores one way and who fetches what was stored so may be different
// ranks, and one that went another way than its peers would find the worse of both. All ranks make
// the same calls, so they time, and try the other way, in the same ones; each tells the others what
// it has found, and the first one concludes. Whoever hears of it a call late loses nothing but
// time: places, order and bits are the same either way.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "algorithms/schedule/blocks.h"
#include "engine/base/memory.h"
#include "engine/run/machine.h"

namespace rankine {

// What a rank tells the others. Zeroed at first; each word has one writer, that rank.
struct alignas(kCacheLine) StagingTimes {
  // So many calls are timed as ever, and as many the other way.
  static constexpr std::uint32_t kTimes = 3;
  struct Work {
    Atomic<std::uint32_t> stores_ns{0}, fetches_ns{0};
  };
  Work work[2][kTimes];  // relaxed; as ever, the other way
  // That it has told. Release: pairs with StagingStores::conclude().
  Atomic<std::uint32_t> times{0};
  Atomic<bool> into_caches{false};  // what the first rank has concluded; relaxed
};
static_assert(sizeof(StagingTimes) == kCacheLine);

// A rank's part in it. Used by the rank's thread only.
class StagingStores {
 public:
  // A call in which something is staged begins. times_of(r): what rank r tells.
  template <class TimesOf>
  void begin_call(Rank rank, int ranks, TimesOf times_of) noexcept {
    if (is_timed_) done_[tries_ ? 1 : 0][(call_ - 1) % (kTimes + 1)] = work_;
    work_ = {};
    if (++call_ > between_) {
      call_ = 1;
      between_ = std::min(2 * between_, kMostBetween);
    }
    // After one that is not timed: where lines lie after stores of the one kind is not where those
    // of the other find them.
    is_timed_ = call_ <= 2 * kTimes + 1 && call_ != kTimes + 1;
    tries_ = call_ > kTimes && call_ <= 2 * kTimes + 1;
    if (call_ == 2 * kTimes + 2) tell(times_of(rank));
    if (call_ == kConcludes && rank == 0) conclude(ranks, times_of);
    past_caches_ = !times_of(0).into_caches.load(std::memory_order_relaxed);
  }

  bool past_caches() const noexcept { return past_caches_ != tries_; }
  bool is_timed() const noexcept { return is_timed_; }
  // So many bytes of a timed call were stored in so long, or fetched.
  void add(bool stored, std::size_t bytes, std::int64_t ns) noexcept {
    work_.bytes += bytes;
    (stored ? work_.stores_ns : work_.fetches_ns) += ns;
  }

 private:
  static constexpr std::uint32_t kTimes = StagingTimes::kTimes;
  // Which call of those between two comparisons, from 1 on: others have told by then, since nobody
  // gets so far ahead of who fetches from him.
  static constexpr std::uint32_t kConcludes = 3 * kTimes + 8;
  // Soon after another at first, and seldom later on, since trying the other way costs what it
  // costs.
  static constexpr std::uint32_t kLeastBetween = 32, kMostBetween = 256;
  static_assert(kConcludes < kLeastBetween);
  // The other way has to win by so much, so many times in turn: interruptions prove nothing.
  static constexpr double kMargin = 0.95;
  static constexpr std::uint32_t kWins = kTimes;

  struct Work {
    std::size_t bytes = 0;
    std::int64_t stores_ns = 0, fetches_ns = 0;
  };

  void tell(StagingTimes& mine) const noexcept {
    const auto clipped = [](std::int64_t ns) {
      return static_cast<std::uint32_t>(
          std::min<std::int64_t>(ns, std::numeric_limits<std::uint32_t>::max()));
    };
    for (std::size_t way = 0; way < 2; ++way) {
      for (std::size_t i = 0; i < kTimes; ++i) {
        StagingTimes::Work& told = mine.work[way][i];
        told.stores_ns.store(clipped(done_[way][i].stores_ns), std::memory_order_relaxed);
        told.fetches_ns.store(clipped(done_[way][i].fetches_ns), std::memory_order_relaxed);
      }
    }
    mine.times.store(mine.times.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  template <class TimesOf>
  void conclude(int ranks, TimesOf times_of) noexcept {
    // Who stores longest, and then who fetches longest.
    std::array<std::array<double, kTimes>, 2> stores{}, fetches{};
    StagingTimes& mine = times_of(0);
    const std::uint32_t times = mine.times.load(std::memory_order_relaxed);
    for (Rank r = 0; r < ranks; ++r) {
      StagingTimes& theirs = times_of(r);
      // Acquire: pairs with the release in tell().
      if (theirs.times.load(std::memory_order_acquire) != times) return;
      for (std::size_t way = 0; way < 2; ++way) {
        for (std::size_t i = 0; i < kTimes; ++i) {
          const StagingTimes::Work& told = theirs.work[way][i];
          const auto longest = [](double& most, const Atomic<std::uint32_t>& ns) {
            most = std::max(most, static_cast<double>(ns.load(std::memory_order_relaxed)));
          };
          longest(stores[way][i], told.stores_ns);
          longest(fetches[way][i], told.fetches_ns);
        }
      }
    }
    for (std::size_t i = 0; i < kTimes; ++i) {
      const auto as_ever = static_cast<double>(done_[0][i].bytes);
      const auto other = static_cast<double>(done_[1][i].bytes);
      // Calls of other sizes take other times per byte.
      if (as_ever == 0 || other > 2 * as_ever || as_ever > 2 * other) continue;
      const bool wins = (stores[1][i] + fetches[1][i]) * as_ever <
                        kMargin * (stores[0][i] + fetches[0][i]) * other;
      wins_ = wins ? wins_ + 1 : 0;
    }
    if (wins_ < kWins) return;
    mine.into_caches.store(!mine.into_caches.load(std::memory_order_relaxed),
                           std::memory_order_relaxed);
    wins_ = 0;
  }

  bool past_caches_ = true;  // as all store when they try nothing; never far from the best
  bool is_timed_ = false;    // this call is
  bool tries_ = false;       // the other way
  std::uint32_t between_ = kLeastBetween;
  std::uint32_t call_ = 0;  // since the last comparison began, from 1 on
  Work work_;               // of this call
  Work done_[2][kTimes];    // of those that were timed, as ever and the other way
  std::uint32_t wins_ = 0;  // in turn; the first rank's
};

}  // namespace rankine
