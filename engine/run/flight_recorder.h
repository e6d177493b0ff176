// FlightRecorder keeps the last kCalls calls of every rank for later reports: their fingerprints
// and, optionally, their begin and end times. Then it also counts calls by site (call_sites.h).
//
// A call pays one store of eight bytes into a line that no other rank writes; times add two clock
// readings. The rank writes; any thread may read, and may see a record one call old while ranks are
// at work.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/schedule/blocks.h"
#include "engine/run/call_sites.h"
#include "engine/run/fingerprint.h"
#include "engine/run/wait.h"

namespace rankine {

class FlightRecorder {
 public:
  static constexpr std::uint64_t kCalls = 1024;

  // memory: for ranks that are processes, zeroed shared memory with kBytesPerRank bytes per rank,
  // `stride` bytes apart; nullptr: the recorder allocates its own, but for the ranks in `left_out`,
  // which make no calls here.
  FlightRecorder(int ranks, bool times, std::byte* memory = nullptr, std::size_t stride = 0,
                 const std::vector<bool>& left_out = {})
      : tracks_(static_cast<std::size_t>(ranks)), has_times_(times) {
    for (std::size_t r = 0; r < tracks_.size(); ++r) {
      Track& track = tracks_[r];
      if (memory == nullptr) {
        if (r < left_out.size() && left_out[r]) continue;
        track.own_fingerprints = std::make_unique<Fingerprints>();
        if (times) track.own_times = std::make_unique<AllTimes>();
        track.fingerprints = track.own_fingerprints.get();
        track.times = track.own_times.get();
      } else {
        track.fingerprints = reinterpret_cast<Fingerprints*>(memory);
        if (times) track.times = reinterpret_cast<AllTimes*>(memory + sizeof(Fingerprints));
        memory += stride;
      }
    }
  }

  struct Call {
    std::uint64_t number = 0;
    Fingerprint fingerprint;
    std::int64_t begin_ns = 0, end_ns = 0;  // monotonic clock; 0: not recorded, or not ended
  };
  // The last calls of rank r, oldest first, numbered from 1. `begun`: the number of calls that it
  // has begun, the first one with the number `before` + 1.
  std::vector<Call> last_calls(Rank r, std::uint64_t begun, std::uint64_t before) const {
    const Track& track = tracks_[static_cast<std::size_t>(r)];
    std::vector<Call> out;
    if (track.fingerprints == nullptr) return out;
    for (std::uint64_t n = begun < kCalls ? 1 : begun - kCalls + 1; n != begun + 1; ++n) {
      const std::size_t i = (before + n) % kCalls;
      Call call{n, {(*track.fingerprints)[i].load(std::memory_order_relaxed)}};
      if (track.times != nullptr) {
        call.begin_ns = (*track.times)[i].begin_ns.load(std::memory_order_relaxed);
        call.end_ns = (*track.times)[i].end_ns.load(std::memory_order_relaxed);
      }
      out.push_back(call);
    }
    return out;
  }

  bool has_times() const { return has_times_; }

  std::size_t bytes() const {
    const std::size_t one = has_times() ? sizeof(Times) : 0;
    return tracks_.size() * kCalls * (sizeof(std::uint64_t) + one);
  }

 private:
  struct Times {
    std::atomic<std::int64_t> begin_ns{0}, end_ns{0};
  };
  using Fingerprints = std::array<std::atomic<std::uint64_t>, kCalls>;
  using AllTimes = std::array<Times, kCalls>;

 public:
  // The records of one rank. begin() and end() are called on the rank's thread only.
  struct alignas(kCacheLine) Track {
    // The rank begins the call with that number. note() leaves out the times.
    [[gnu::always_inline]] void note(std::uint64_t number, std::uint64_t fingerprint) noexcept {
      (*fingerprints)[number % kCalls].store(fingerprint, std::memory_order_relaxed);
    }
    [[gnu::always_inline]] void begin(std::uint64_t number, std::uint64_t fingerprint) noexcept {
      note(number, fingerprint);
      if (times != nullptr) [[unlikely]]
        begin_time(number, fingerprint);
    }
    [[gnu::always_inline]] void end(std::uint64_t number) noexcept {
      if (times != nullptr) [[unlikely]]
        end_time(number);
    }

    Fingerprints* fingerprints = nullptr;
    AllTimes* times = nullptr;    // nullptr: not recorded
    CallTimer timer;              // with times, of a rank of this process
    std::uint32_t call_site = 0;  // RankCalls::site_of(); of the calls that the rank makes next
    std::unique_ptr<Fingerprints> own_fingerprints;
    std::unique_ptr<AllTimes> own_times;

   private:
    [[gnu::noinline]] void begin_time(std::uint64_t number, std::uint64_t fingerprint) noexcept {
      Times& one = (*times)[number % kCalls];
      const std::int64_t now = now_ns();
      one.end_ns.store(0, std::memory_order_relaxed);
      one.begin_ns.store(now, std::memory_order_relaxed);
      if (timer.figures != nullptr) timer.begin(call_site, fingerprint, now);
    }
    [[gnu::noinline]] void end_time(std::uint64_t number) noexcept {
      const std::int64_t now = now_ns();
      (*times)[number % kCalls].end_ns.store(now, std::memory_order_relaxed);
      if (timer.figures == nullptr) return;
      timer.end((*fingerprints)[number % kCalls].load(std::memory_order_relaxed), now);
    }
  };
  // Valid during the recorder's life.
  Track& track_of(Rank r) { return tracks_[static_cast<std::size_t>(r)]; }

  static constexpr std::size_t kBytesPerRank = sizeof(Fingerprints) + sizeof(AllTimes);

 private:
  std::vector<Track> tracks_;
  const bool has_times_;
};

}  // namespace rankine
