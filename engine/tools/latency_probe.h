// Where the machine stands right now: the one-way latency of a cache line between two cores.
//
// A virtual machine may move its cores between two rounds of a measurement, which changes small
// messages by 2 to 6 times. So a measurement is bracketed by this probe, and repeated where the
// probe says that the machine has changed under it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace rankine::tools {

class LatencyProbe {
 public:
  // Called by two threads at once, on two cores, with side 0 and side 1: both spin, so on one core
  // this would take time slices. Side 0 gets ns, side 1 gets 0. It is the least of a few short
  // series, so that only the machine's state counts and not who else ran. Both sides ask for the
  // same series and trips. May be played again.
  double play(int side, int series = 7, int trips = 500) noexcept {
    using Clock = std::chrono::steady_clock;
    auto least = Clock::duration::max();
    // Both sides leave a game knowing its last value.
    std::uint64_t& value = side == 0 ? mine_ : theirs_;
    for (int i = 0; i < series; ++i) {
      const auto begin = Clock::now();
      for (int trip = 0; trip < trips; ++trip, value += 2) {
        if (side == 0) {
          ball_.store(value + 1, std::memory_order_release);  // pairs with side 1's acquire
          await(value + 2);
        } else {
          await(value + 1);
          ball_.store(value + 2, std::memory_order_release);  // pairs with side 0's acquire
        }
      }
      least = std::min(least, Clock::now() - begin);
    }
    if (side != 0) return 0;
    return std::chrono::duration<double, std::nano>(least).count() / (2 * trips);
  }

 private:
  static constexpr std::size_t kLine = 128;  // two cache lines: hardware fetches them in pairs

  void await(std::uint64_t value) noexcept {
    while (ball_.load(std::memory_order_acquire) != value) {  // pairs with the other side's store
    }
  }

  alignas(kLine) std::atomic<std::uint64_t> ball_{0};
  alignas(kLine) std::uint64_t mine_ = 0;    // side 0's
  alignas(kLine) std::uint64_t theirs_ = 0;  // side 1's
};

// A measurement within which the probe changed by more than this is not steady.
inline constexpr double kSteady = 1.5;
inline constexpr int kRepeats = 3;  // of an unsteady one

// The greatest change among the probes of one measurement, at least 1; probes are zero where two
// ranks do not have two cores, which never change.
inline double drift(const std::vector<double>& probes) {
  const auto [least, most] = std::minmax_element(probes.begin(), probes.end());
  return least == probes.end() || *least <= 0 ? 1 : *most / *least;
}

// Measures once, and again where that was not steady, up to kRepeats times; keeps the calmest.
// once() returns something that drift_of() tells the drift of. repeats: how often again.
template <class Once, class DriftOf>
auto calmest(Once&& once, DriftOf&& drift_of, int& repeats) {
  auto best = once();
  for (repeats = 0; repeats < kRepeats && drift_of(best) > kSteady; ++repeats) {
    auto again = once();
    if (drift_of(again) < drift_of(best)) best = std::move(again);
  }
  return best;
}

}  // namespace rankine::tools
