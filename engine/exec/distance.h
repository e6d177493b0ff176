// How far away another rank's core is, measured in passing: the time of one load of a cache line
// that this rank has just written. Cores that share a last-level cache answer in some 40 ns, others
// in 120 and more (both with the clock's own 20 ns). Virtual machines move their processors, so
// this changes within minutes; the least of the last few looks is taken, since whatever disturbs a
// look makes it longer.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/exec/machine.h"

namespace rankine {

class Distance {
 public:
  static constexpr std::int64_t kNearNs = 90;

  // Far, until measured: what suits far cores costs less on near ones than the other way round.
  bool is_near() const { return *std::min_element(last_.begin(), last_.end()) < kNearNs; }

  // At a word on a line that only the other rank writes, and only we read. A value that we have
  // seen before says nothing: then the line is ours.
  void look(const Atomic<std::uint32_t>& word) {
    const std::int64_t before = now_ns();
    const std::uint32_t value = word.load(std::memory_order_relaxed);  // pairs with nothing
    const std::int64_t after = now_ns();
    if (value != seen_) took(after - before);
    seen_ = value;
  }
  void took(std::int64_t ns) {
    last_[next_] = ns;
    next_ = (next_ + 1) % last_.size();
  }

 private:
  std::array<std::int64_t, 4> last_{kNearNs, kNearNs, kNearNs, kNearNs};
  std::size_t next_ = 0;
  std::uint32_t seen_ = 0;
};

}  // namespace rankine
