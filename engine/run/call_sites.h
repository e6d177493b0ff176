// RankCalls are the figures of one rank for `rankine top`: how often each call site made each
// collective, how long the calls took, and how much of that time the rank waited. A call site is a
// name that the program gives (Member::set_call_site()). SharedText holds such a name.
//
// They lie in a memory file (engine/api/processes/call_sites.h), which other processes read. Only
// the thread that plays the rank writes them, and only if the communicator records times. Relaxed:
// no decision depends on these values, and a reader may find a call half counted. Zeroed memory is
// a rank without calls.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "algorithms/schedule/blocks.h"
#include "engine/run/fingerprint.h"

namespace rankine {

// A text of at most kMost bytes, without control characters. One thread sets it; any thread reads
// it, and may then find parts of two texts.
class SharedText {
 public:
  static constexpr std::size_t kMost = 63;

  SharedText() = default;
  explicit SharedText(std::string_view text) noexcept { set(text); }

  // Cuts a longer text, before a character of UTF-8.
  void set(std::string_view text) noexcept {
    char bytes[kMost + 1] = {};
    std::size_t length = std::min(text.size(), kMost);
    while (length < text.size() && length > 0 && (text[length] & 0xc0) == 0x80) --length;
    std::transform(
        text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length), bytes,
        [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127 ? ' ' : c; });
    std::array<std::uint64_t, (kMost + 1) / 8> words;
    std::memcpy(words.data(), bytes, sizeof(bytes));
    for (std::size_t i = 0; i < words.size(); ++i) {
      words_[i].store(words[i], std::memory_order_relaxed);
    }
  }
  std::string get() const {
    std::array<std::uint64_t, (kMost + 1) / 8> words;
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = words_[i].load(std::memory_order_relaxed);
    }
    const auto* const bytes = reinterpret_cast<const char*>(words.data());
    return {bytes, strnlen(bytes, kMost)};
  }
  bool is_empty() const noexcept { return words_[0].load(std::memory_order_relaxed) == 0; }
  bool equals(const SharedText& other) const noexcept {
    return std::equal(
        words_.begin(), words_.end(), other.words_.begin(), [](const auto& a, const auto& b) {
          return a.load(std::memory_order_relaxed) == b.load(std::memory_order_relaxed);
        });
  }

 private:
  std::array<std::atomic<std::uint64_t>, (kMost + 1) / 8> words_{};
};

// TimeClasses counts times by size, in classes an eighth wide, up to 18 minutes.
struct TimeClasses {
  static constexpr int kClasses = 304;
  static int of(std::int64_t ns) noexcept {
    const auto value =
        static_cast<std::uint64_t>(std::clamp<std::int64_t>(ns, 0, (std::int64_t{1} << 40) - 1));
    if (value < 8) return static_cast<int>(value);
    const auto bits = static_cast<int>(std::bit_width(value));  // from 4
    return (bits - 3) * 8 + static_cast<int>(value >> (bits - 4) & 7);
  }
  // The times of a class, in ns.
  static double width(int of) noexcept {
    return of < 8 ? 1 : static_cast<double>(std::uint64_t{1} << (of / 8 - 1));
  }
  static double begin(int of) noexcept { return of < 8 ? of : width(of) * (8 + of % 8); }
  static double middle(int of) noexcept { return of < 8 ? of : begin(of) + width(of) / 2; }
  // The class of the time that the fraction `part` of all times does not exceed; -1: no times.
  // count_of(c): the number of times in class c.
  template <class CountOf>
  static int quantile(double part, const CountOf& count_of) noexcept {
    double all = 0, below = 0;
    for (int c = 0; c < kClasses; ++c) all += static_cast<double>(count_of(c));
    for (int c = 0; c < kClasses; ++c) {
      below += static_cast<double>(count_of(c));
      if (below > 0 && below >= part * all) return c;
    }
    return -1;
  }
};

// The calls of one collective at one site.
struct SiteCalls {
  std::atomic<std::uint32_t> kind{0};  // RankCalls::kind_of(); 0: free
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::int64_t> took_ns{0}, waited_ns{0};  // sums
  std::array<std::atomic<std::uint32_t>, TimeClasses::kClasses> times{};
};

class RankCalls {
 public:
  static constexpr std::size_t kSites = 128, kRows = 192, kPast = 1024;
  // Further sites are counted here, and further rows in the last one.
  static constexpr std::uint32_t kOtherSites = kSites - 1, kVarious = 15;
  static constexpr std::string_view kOthers = "(other sites)";

  // The number of a site; 0: calls without a site. The rank's thread calls it.
  std::uint32_t site_of(const SharedText& name) noexcept {
    if (name.is_empty()) return 0;
    for (std::uint32_t i = 1; i < kOtherSites; ++i) {
      if (sites[i].is_empty()) sites[i].set(name.get());
      if (sites[i].equals(name)) return i;
    }
    sites[kOtherSites].set(kOthers);
    return kOtherSites;
  }

  // A site and a collective, or kVarious, in one word, which is not 0.
  static constexpr std::uint32_t kind_of(std::uint32_t site, std::uint32_t collective) noexcept {
    return 1 + (kVarious + 1) * site + collective;
  }
  static constexpr std::uint32_t site_in(std::uint32_t kind) noexcept {
    return (kind - 1) / (kVarious + 1);
  }
  static constexpr std::uint32_t collective_in(std::uint32_t kind) noexcept {
    return (kind - 1) % (kVarious + 1);
  }

  // Counts a call that has ended.
  void count(std::uint32_t what, std::uint64_t fingerprint, std::int64_t began, std::int64_t now,
             std::int64_t waited) noexcept {
    SiteCalls& row = row_of(what);
    add(row.took_ns, now - began);
    add(row.waited_ns, waited);
    add(row.times[static_cast<std::size_t>(TimeClasses::of(now - began))], 1U);
    add(row.calls, std::uint64_t{1});
    const std::uint64_t n = ended.load(std::memory_order_relaxed);
    Past& call = past[n % kPast];
    call.begin_ns.store(began, std::memory_order_relaxed);
    call.end_ns.store(now, std::memory_order_relaxed);
    call.waited_ns.store(waited, std::memory_order_relaxed);
    call.fingerprint.store(fingerprint, std::memory_order_relaxed);
    call.kind.store(what, std::memory_order_relaxed);
    ended.store(n + 1, std::memory_order_relaxed);
  }

  struct Past {
    std::atomic<std::int64_t> begin_ns{0}, end_ns{0}, waited_ns{0};
    std::atomic<std::uint64_t> fingerprint{0};
    std::atomic<std::uint32_t> kind{0};
  };
  std::atomic<Rank> rank{0};
  std::atomic<std::uint64_t> ended{0};     // calls
  std::atomic<std::int64_t> waited_ns{0};  // in all calls
  // The call under way that has begun or waited last.
  std::atomic<std::int64_t> begin_ns{0};  // 0: none
  std::atomic<std::uint32_t> kind{0};
  std::atomic<Rank> waits_for{0};  // the awaited rank plus 1; 0: none
  std::array<SharedText, kSites> sites{};
  std::array<SiteCalls, kRows> rows{};
  std::array<Past, kPast> past{};  // the last calls, by `ended`

 private:
  // One thread writes, so that a sum needs no read-modify-write.
  template <class T>
  static void add(std::atomic<T>& sum, T value) noexcept {
    sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
  SiteCalls& row_of(std::uint32_t what) noexcept {
    for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
      const std::uint32_t its = rows[i].kind.load(std::memory_order_relaxed);
      if (its == 0) rows[i].kind.store(what, std::memory_order_relaxed);
      if (its == 0 || its == what) return rows[i];
    }
    sites[kOtherSites].set(kOthers);
    rows.back().kind.store(kind_of(kOtherSites, kVarious), std::memory_order_relaxed);
    return rows.back();
  }
};

// CallTimer times the calls of a rank on a communicator, or its messages to or from one peer: one
// at a time. Calls of several timers overlap, and each counts the waits of its time.
struct CallTimer {
  void begin(std::uint32_t site, std::uint64_t fingerprint, std::int64_t now) noexcept {
    kind =
        RankCalls::kind_of(site, static_cast<std::uint32_t>(Fingerprint{fingerprint}.collective()));
    begin_ns = now;
    waited_before_ns = figures->waited_ns.load(std::memory_order_relaxed);
    show();
  }
  // The call under way belongs to another site.
  void set_site(std::uint32_t site) noexcept {
    kind = RankCalls::kind_of(site, RankCalls::collective_in(kind));
    show();
  }
  void end(std::uint64_t fingerprint, std::int64_t now) noexcept {
    const std::int64_t waited = figures->waited_ns.load(std::memory_order_relaxed);
    if (figures->begin_ns.load(std::memory_order_relaxed) == begin_ns) {
      figures->begin_ns.store(0, std::memory_order_relaxed);
    }
    figures->count(kind, fingerprint, begin_ns, now, waited - waited_before_ns);
  }
  void show() const noexcept {
    figures->kind.store(kind, std::memory_order_relaxed);
    figures->begin_ns.store(begin_ns, std::memory_order_relaxed);
  }

  RankCalls* figures = nullptr;  // nullptr: not recorded
  Rank peer = -1;                // of messages
  std::uint32_t kind = 0;
  std::int64_t begin_ns = 0, waited_before_ns = 0;
};

// RecordedWait adds the time of its life to the waits of a call; nullptr: it does nothing.
class RecordedWait {
 public:
  explicit RecordedWait(const CallTimer* call, Rank peer) noexcept : call_(call) {
    if (call_ != nullptr) [[unlikely]]
      begin(peer);
  }
  ~RecordedWait() {
    if (call_ != nullptr) [[unlikely]]
      end();
  }
  RecordedWait(const RecordedWait&) = delete;
  RecordedWait& operator=(const RecordedWait&) = delete;

 private:
  [[gnu::noinline]] void begin(Rank peer) noexcept;
  [[gnu::noinline]] void end() noexcept;

  const CallTimer* const call_;
  std::int64_t begin_ns_ = 0;
};

}  // namespace rankine
