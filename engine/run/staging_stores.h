// How a rank stores what it stages for others: past the caches, or into its own. Past them a line
// takes as long whoever had it before, and whoever reads it has it from memory. Into its own caches
// it is taken back from who has read it before, and fetched from there by who reads it next: which
// is sooner done between near cores, and takes several times as long between far ones. Nobody can
// say for long which cores are near (a virtual machine moves its own), so ranks compare while they
// work: now and then they time one call's stores and fetches, and then the next one's the other
// way.
//
// All ranks make the same calls, so they try the other way in the same ones. What they conclude is
// each one's own affair: places, order and bits are the same either way. Used by the rank's thread
// only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankine {

// Until what this core has stored is where others find it: a clock that is read before leaves out
// what stores past the caches take longest for, and others then wait for.
inline void wait_for_stores() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_mfence();
#endif
}

class StagingStores {
 public:
  // A call in which something is staged begins.
  void begin_call() noexcept {
    if (is_timed_) judge();
    is_timed_ = calls_ < kFirst || calls_ % kBetween < 2;
    tries_ = is_timed_ && calls_ % 2 == 1;
    ++calls_;
    time_ = {};
  }

  bool past_caches() const noexcept { return past_caches_ != tries_; }
  bool is_timed() const noexcept { return is_timed_; }
  // So many bytes of a timed call were stored or fetched in so long.
  void add(std::size_t bytes, std::int64_t ns) noexcept {
    time_.bytes += static_cast<double>(bytes);
    time_.ns += static_cast<double>(ns);
  }

 private:
  struct Time {
    double bytes = 0, ns = 0;
  };
  static constexpr std::uint32_t kFirst = 8, kBetween = 128;  // calls
  // The other way has to win by so much, so many times in turn: interruptions prove nothing.
  static constexpr double kMargin = 0.95;
  static constexpr int kWins = 3;

  void judge() noexcept {
    if (!tries_) {
      before_ = time_;
      return;
    }
    // Calls of other sizes take other times per byte.
    if (time_.bytes == 0 || time_.bytes > 2 * before_.bytes || before_.bytes > 2 * time_.bytes)
      return;
    const bool wins = time_.ns * before_.bytes < kMargin * before_.ns * time_.bytes;
    wins_ = wins ? wins_ + 1 : 0;
    if (wins_ < kWins) return;
    past_caches_ = !past_caches_;
    wins_ = 0;
  }

  bool past_caches_ = true;  // which is never far from the best
  bool is_timed_ = false;    // this call is
  bool tries_ = false;       // the other way
  std::uint32_t calls_ = 0;
  Time time_, before_;  // of this call; of the last one that was timed and did as ever
  int wins_ = 0;
};

}  // namespace rankine
