// Sets of ranks whose contributions a partial sum holds, as numbers of eight bytes.
//
// Nearly every set that an algorithm makes is a cyclic interval of ranks: it is stored as such, and
// adding two neighbours costs a few instructions. Any other set the pool keeps once, and sums of
// those are remembered: as its intervals, or as a bit set where that takes no more memory. So a few
// intervals among 65,536 ranks take a few words, where a bit set has a thousand. Each set has one
// representation, so equal sets are equal numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "algorithms/schedule/everyone.h"

namespace rankine {

// Not thread-safe: a pool for each thread.
class ContributionPool {
 public:
  // 0: empty. Top bit clear: first << 32 | count, of a cyclic interval; count == ranks has first ==
  // 0. Top bit set: the number of a set that this pool keeps.
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
      return rotated_part_by_part(set, rotation, by);
    return interval((first(set) + static_cast<std::uint32_t>(by)) % ranks_, count(set));
  }

  std::vector<Rank> members(Set set) const;  // ascending
  std::string to_string(Set set) const;      // "{0..3, 6}", "{}"
  std::string common(Set a, Set b) const;    // what both have, as to_string()

 private:
  using Words = std::vector<std::uint64_t>;
  // Ranks of a set, [first, end): ascending, and none begins where another one ends.
  struct Part {
    std::uint32_t first, end;
  };
  using Parts = std::vector<Part>;
  struct Remembered {
    Set a = kEmpty, b = kEmpty, result = kEmpty;
  };

  static constexpr Set kKept = Set{1} << 63;
  static bool is_interval(Set set) { return set < kKept; }
  static std::uint32_t first(Set set) { return static_cast<std::uint32_t>(set >> 32); }
  static std::uint32_t count(Set set) { return static_cast<std::uint32_t>(set); }
  Set interval(std::uint32_t first, std::uint32_t count) const {
    return (count == ranks_ ? Set{0} : Set{first} << 32) | count;
  }

  // What is kept of a set: a word for each part where these are fewer than the words of a bit set.
  std::span<const std::uint64_t> words_of(Set set) const {
    return sets_[static_cast<std::size_t>(set & ~kKept)];
  }
  bool is_bits(std::span<const std::uint64_t> words) const { return words.size() == words_; }
  std::size_t size_of(Set set) const { return is_interval(set) ? 2 : words_of(set).size(); }
  Parts parts_of(Set set) const;
  void append_parts_of_bits(std::span<const std::uint64_t> bits, Parts& parts) const;
  void write_bits(Set set, Words& bits) const;
  static std::string text_of(const Parts& parts);

  Set rotated_part_by_part(Set set, const Rotation& rotation, Rank by);
  Set remembered(Set a, Set b, bool disjoint);
  Set computed(Set a, Set b, bool disjoint);
  Set set_of(const Parts& parts);
  Set set_of(const Words& bits);
  Set keep(std::span<const std::uint64_t> words);

  std::uint32_t ranks_;
  std::size_t words_;                                 // of a bit set
  std::vector<Words> chunks_;                         // words of all sets; a chunk never moves
  std::vector<std::span<const std::uint64_t>> sets_;  // by number, in chunks_
  std::vector<std::uint32_t> index_;                  // hash table of 1 + number of a set, 0: free
  std::vector<Remembered> sums_[2];                   // hash tables; by `disjoint`
  std::size_t sums_held_[2] = {0, 0};
  Words left_, right_;  // scratch
};

}  // namespace rankine
