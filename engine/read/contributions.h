// Sets of ranks whose contributions a partial sum holds, as numbers of eight bytes.
//
// Nearly every set that an algorithm makes is a cyclic interval of ranks: it is stored as such, and
// adding two neighbours costs a few instructions. Any other set is a bit set that the pool keeps
// once, and sums of those are remembered. Each set has one representation, so equal sets are equal
// numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/schedule/everyone.h"

namespace rankine {

// Not thread-safe: a pool for each thread.
class ContributionPool {
 public:
  // 0: empty. Top bit clear: first << 32 | count, of a cyclic interval; count == ranks has first ==
  // 0. Top bit set: the number of a bit set of this pool.
  using Set = std::uint64_t;
  static constexpr Set kEmpty = 0;
  static constexpr Set kOverlap = ~Set{0};  // no set: the answer of sum()

  explicit ContributionPool(int ranks)
      : ranks_(static_cast<std::uint32_t>(ranks)),
        words_((static_cast<std::size_t>(ranks) + 63) / 64) {}

  Set of(Rank r) const { return interval(static_cast<std::uint32_t>(r), 1); }
  Set everyone() const { return interval(0, ranks_); }
  // `count` neighbours, one or more.
  Set run(Rank first, int count) const {
    return interval(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count));
  }

  // All of a and b, or kOverlap where they have a rank in common.
  Set sum(Set a, Set b) {
    if (a == kEmpty) return b;
    if (b == kEmpty) return a;
    if (is_interval(a) && is_interval(b)) {
      const std::uint32_t ahead =
          first(b) >= first(a) ? first(b) - first(a) : first(b) + ranks_ - first(a);
      const std::uint32_t behind = ranks_ - ahead;
      if (ahead < count(a) || behind < count(b)) return kOverlap;
      if (ahead == count(a)) return interval(first(a), count(a) + count(b));
      if (behind == count(b)) return interval(first(b), count(a) + count(b));
    }
    return remembered(a, b, true);
  }

  // All of a and b, whether they overlap or not.
  Set united(Set a, Set b) {
    if (a == b || b == kEmpty) return a;
    if (a == kEmpty) return b;
    return remembered(a, b, false);
  }

  // The ranks of a set, turned.
  Set rotated(Set set, const Rotation& rotation, Rank by) {
    if (set == kEmpty || by == 0) return set;
    if (!is_interval(set) || rotation.dims().size() > 1)
      return rotated_one_by_one(set, rotation, by);
    return interval((first(set) + static_cast<std::uint32_t>(by)) % ranks_, count(set));
  }

  std::vector<Rank> members(Set set) const;  // ascending
  std::string to_string(Set set) const;      // "{0..3, 6}", "{}"
  std::string common(Set a, Set b) const;    // what both have, as to_string()

 private:
  using Bits = std::vector<std::uint64_t>;
  struct Remembered {
    Set a = kEmpty, b = kEmpty, result = kEmpty;
  };

  static constexpr Set kInterned = Set{1} << 63;
  static bool is_interval(Set set) { return set < kInterned; }
  static std::uint32_t first(Set set) { return static_cast<std::uint32_t>(set >> 32); }
  static std::uint32_t count(Set set) { return static_cast<std::uint32_t>(set); }
  Set interval(std::uint32_t first, std::uint32_t count) const {
    return (count == ranks_ ? Set{0} : Set{first} << 32) | count;
  }

  Set rotated_one_by_one(Set set, const Rotation& rotation, Rank by);
  Set remembered(Set a, Set b, bool disjoint);
  Set computed(Set a, Set b, bool disjoint);
  void write_bits(Set set, Bits& bits) const;
  Set intern(const Bits& bits);
  std::string text_of(const Bits& bits) const;

  std::uint32_t ranks_;
  std::size_t words_;
  Bits store_;                        // bit set i: words_ words from i * words_ on
  std::vector<std::uint32_t> index_;  // hash table of 1 + number of a bit set, 0: free
  std::size_t interned_ = 0;
  std::vector<Remembered> sums_[2];  // hash tables; by `disjoint`
  std::size_t sums_held_[2] = {0, 0};
  Bits left_, right_;  // scratch
};

}  // namespace rankine
