// What every rank has called lately, for whoever asks afterwards: the last kCalls calls per rank,
// by their fingerprints, and with times when they began and ended.
//
// The price in a call is one store, of eight bytes into a line that nobody else writes; with times
// two readings of the clock more. Written by the rank, read by anybody: what is read while ranks
// are at work may be a call behind.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/schedule/blocks.h"
#include "engine/run/fingerprint.h"
#include "engine/run/wait.h"

namespace rankine {

class FlightRecorder {
 public:
  static constexpr std::uint64_t kCalls = 1024;

  FlightRecorder(int ranks, bool times) : tracks_(static_cast<std::size_t>(ranks)) {
    for (Track& track : tracks_) {
      track.fingerprints = std::make_unique<std::atomic<std::uint64_t>[]>(kCalls);
      if (times) track.times = std::make_unique<Times[]>(kCalls);
    }
  }

  // Rank r begins its call of that number, from 1; its thread only.
  void begin(Rank r, std::uint64_t number, std::uint64_t fingerprint) noexcept {
    Track& track = track_of(r);
    track.fingerprints[number % kCalls].store(fingerprint, std::memory_order_relaxed);
    if (track.times == nullptr) return;
    Times& times = track.times[number % kCalls];
    times.end_ns.store(0, std::memory_order_relaxed);
    times.begin_ns.store(now_ns(), std::memory_order_relaxed);
  }
  void end(Rank r, std::uint64_t number) noexcept {
    Track& track = track_of(r);
    if (track.times == nullptr) return;
    track.times[number % kCalls].end_ns.store(now_ns(), std::memory_order_relaxed);
  }

  struct Call {
    std::uint64_t number = 0;
    Fingerprint fingerprint;
    std::int64_t begin_ns = 0, end_ns = 0;  // of the monotonic clock; 0: not recorded, or not ended
  };
  // The last calls of rank r, of which it has begun `begun`, oldest first.
  std::vector<Call> last_calls(Rank r, std::uint64_t begun) const {
    const Track& track = tracks_[static_cast<std::size_t>(r)];
    std::vector<Call> out;
    for (std::uint64_t n = begun < kCalls ? 1 : begun - kCalls + 1; n <= begun; ++n) {
      Call call{n, {track.fingerprints[n % kCalls].load(std::memory_order_relaxed)}};
      if (track.times != nullptr) {
        call.begin_ns = track.times[n % kCalls].begin_ns.load(std::memory_order_relaxed);
        call.end_ns = track.times[n % kCalls].end_ns.load(std::memory_order_relaxed);
      }
      out.push_back(call);
    }
    return out;
  }

  bool has_times() const { return !tracks_.empty() && tracks_[0].times != nullptr; }

  std::size_t bytes() const {
    const std::size_t one = has_times() ? sizeof(Times) : 0;
    return tracks_.size() * kCalls * (sizeof(std::uint64_t) + one);
  }

 private:
  struct Times {
    std::atomic<std::int64_t> begin_ns{0}, end_ns{0};
  };
  struct alignas(kCacheLine) Track {
    std::unique_ptr<std::atomic<std::uint64_t>[]> fingerprints;
    std::unique_ptr<Times[]> times;  // nullptr: not recorded
  };
  Track& track_of(Rank r) { return tracks_[static_cast<std::size_t>(r)]; }

  std::vector<Track> tracks_;
};

}  // namespace rankine
