// StagingStores chooses how ranks store staged data: past the caches, or into their own caches.
//
// A line stored past the caches takes one time, independent of its former reader, and the next
// reader gets it from memory. A line stored into the writer's caches is first taken back from its
// former reader, and the next reader fetches it from there: faster between near cores, several
// times slower between far ones. No rank knows for long which cores are near (a virtual machine
// moves its own), so ranks measure: now and then they time the stores and fetches of some calls,
// and then those of some calls in the other way.
//
// All ranks change the way together, as in form_trials.h: a rank on another way than its peers has
// the disadvantages of both. But rank 0 concludes; a rank that learns it late loses only time.
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

// The times that a rank publishes. Zeroed at first; each word has one writer, that rank.
struct alignas(kCacheLine) StagingTimes {
  // The number of calls timed in the current way, and again in the other way.
  static constexpr std::uint32_t kTimes = 3;
  struct Work {
    Atomic<std::uint32_t> stores_ns{0}, fetches_ns{0};
  };
  Work work[2][kTimes];  // relaxed; [0] current way, [1] other way
  // The number of publications. Release: pairs with StagingStores::conclude().
  Atomic<std::uint32_t> times{0};
  Atomic<bool> into_caches{false};  // rank 0's conclusion; relaxed
};
static_assert(sizeof(StagingTimes) == kCacheLine);

// One rank's part in the comparison. Used by the rank's thread only.
class StagingStores {
 public:
  // A call with staged data begins. times_of(r): the published times of rank r.
  template <class TimesOf>
  void begin_call(Rank rank, int ranks, TimesOf times_of) noexcept {
    if (is_timed_) done_[tries_ ? 1 : 0][(call_ - 1) % (kTimes + 1)] = work_;
    work_ = {};
    if (++call_ > between_) {
      call_ = 1;
      between_ = std::min(2 * between_, kMostBetween);
    }
    // The first call of each way is not timed: its lines lie where stores of the other way left
    // them.
    is_timed_ = call_ <= 2 * kTimes + 1 && call_ != kTimes + 1;
    tries_ = call_ > kTimes && call_ <= 2 * kTimes + 1;
    if (call_ == 2 * kTimes + 2) tell(times_of(rank));
    if (call_ == kConcludes && rank == 0) conclude(ranks, times_of);
    past_caches_ = !times_of(0).into_caches.load(std::memory_order_relaxed);
  }

  bool past_caches() const noexcept { return past_caches_ != tries_; }
  bool is_timed() const noexcept { return is_timed_; }
  // A timed call stored or fetched `bytes` bytes in `ns` nanoseconds.
  void add(bool stored, std::size_t bytes, std::int64_t ns) noexcept {
    work_.bytes += bytes;
    (stored ? work_.stores_ns : work_.fetches_ns) += ns;
  }

 private:
  static constexpr std::uint32_t kTimes = StagingTimes::kTimes;
  // The call, counted from 1 in each interval between comparisons, in which rank 0 concludes. All
  // ranks have published by then, since no rank gets this far ahead of one that fetches from it.
  static constexpr std::uint32_t kConcludes = 3 * kTimes + 8;
  // Comparisons are frequent at first and rare later, because a try in the slower way costs time.
  static constexpr std::uint32_t kLeastBetween = 32, kMostBetween = 256;
  static_assert(kConcludes < kLeastBetween);
  // The other way must win by this margin, kWins times in succession: interruptions prove nothing.
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
    // The longest store time and the longest fetch time over ranks.
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
      // Calls of very different sizes have different times per byte.
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

  bool past_caches_ = true;  // the way of all ranks outside tries; never far from the best
  bool is_timed_ = false;    // this call is timed
  bool tries_ = false;       // this call goes the other way
  std::uint32_t between_ = kLeastBetween;
  std::uint32_t call_ = 0;  // since the last comparison began, from 1
  Work work_;               // work of this call
  Work done_[2][kTimes];    // work of timed calls: [0] current way, [1] other way
  std::uint32_t wins_ = 0;  // in succession; rank 0 only
};

}  // namespace rankine
