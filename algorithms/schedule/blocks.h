// IndexList names the ranks or blocks of a transfer as an ordered list of indices, stored as runs;
// BlockSet adds the plane, and Abilities says what a network's switch can do.
//
//   block(r - k)          one block                      block(b, 1)   that block on plane 1
//   blocks(f, n)          f, f+1, ... f+n-1              blocks(f, n, s)   with stride s
//   rank r                an int is a set of one         ranks_from(r + 1, p - 1)   all but r
//   a + b                 first a, then b
//
// Indices may run over either end: the schedule of a transfer takes them modulo its number of ranks
// or blocks (see Send in schedule.h), so files read like the papers' formulas. Order matters: the
// i-th index of `what` is delivered to the i-th index of `where`.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rankine {

using Rank = int;
using Block = int;

// A set of ranks, ascending, as text: "{0..3, 6}", "{}".
std::string text_of_set(std::span<const Rank> ranks);

// The i-th element: ranks, blocks and rounds are counted in ints.
template <class List>
constexpr auto at(List&& list, int i) -> decltype(list[static_cast<std::size_t>(i)]) {
  return list[static_cast<std::size_t>(i)];
}

// Modulo n, into [0, n).
constexpr int wrapped(int index, int n) {
  if (index >= 0 && index < n) return index;
  const int rest = index % n;
  return rest < 0 ? rest + n : rest;
}

// first, first + stride, ... (count of them)
struct Run {
  int first = 0;
  int count = 0;
  int stride = 1;
  bool operator==(const Run&) const = default;
};

// An ordered list of indices. Two runs are stored in place (a cyclic interval needs two), more
// spill to the heap: a ring at N = 4096 makes 33 million transfers and no allocation. Lists are
// copied and moved a few times on the way from a transfer to its reader; without a spill that costs
// 40 bytes and one comparison.
class IndexList {
 public:
  IndexList() = default;
  IndexList(int index) : runs_(1) { inline_[0] = {index, 1, 1}; }  // NOLINT: an index is a list
  IndexList(Run run) { append(run); }                              // NOLINT
  IndexList(const IndexList& other) : runs_(other.runs_), inline_(other.inline_) {
    if (other.spilled_ != nullptr) copy_spilled(other);
  }
  IndexList(IndexList&& other) noexcept
      : spilled_(other.spilled_), runs_(other.runs_), inline_(other.inline_) {
    other.spilled_ = nullptr;
    other.runs_ = 0;
  }
  IndexList& operator=(IndexList other) noexcept {
    swap(other);
    return *this;
  }
  ~IndexList() {
    if (spilled_ != nullptr) delete[] spilled_;
  }
  void swap(IndexList& other) noexcept {
    std::swap(spilled_, other.spilled_);
    std::swap(runs_, other.runs_);
    std::swap(inline_, other.inline_);
  }

  // Appends a run; if it continues the last one, extends the last one.
  void append(Run run);
  void append(const IndexList& other) {
    for (int i = 0; i < other.runs(); ++i) append(other.run(i));
  }

  int runs() const { return runs_; }
  const Run& run(int i) const {
    return i < kInline ? inline_[static_cast<std::size_t>(i)] : spilled_[i - kInline];
  }
  int size() const {  // number of indices
    int total = 0;
    for (int i = 0; i < runs_; ++i) total += run(i).count;
    return total;
  }
  bool empty() const { return runs_ == 0; }
  int front() const { return inline_[0].first; }
  int operator[](int i) const;  // the i-th index; linear in the number of runs

  template <class Visit>
  void for_each(Visit visit) const {
    for (int i = 0; i < runs_; ++i) {
      const Run& part = run(i);
      for (int j = 0, index = part.first; j < part.count; ++j, index += part.stride) visit(index);
    }
  }
  std::vector<int> to_vector() const;

  // The list with each index taken modulo n into [0, n).
  IndexList modulo(int n) const {
    if (runs_ == 1 && inline_[0].count == 1) return IndexList(wrapped(inline_[0].first, n));
    return all_modulo(n);
  }

  // Equal as sequences of indices.
  bool operator==(const IndexList& other) const;

 private:
  static constexpr int kInline = 2;
  Run& last() {
    return runs_ <= kInline ? inline_[static_cast<std::size_t>(runs_ - 1)]
                            : spilled_[runs_ - 1 - kInline];
  }
  void spill(Run run);
  void copy_spilled(const IndexList& other);
  IndexList all_modulo(int n) const;

  // Runs after the first kInline, in room for a power of two (see spill()).
  Run* spilled_ = nullptr;
  int runs_ = 0;
  std::array<Run, kInline> inline_{};
};

using RankSet = IndexList;

// Blocks of one plane. Plane 0 is the vector of the collective; further planes are scratch vectors
// of that shape, for algorithms that keep several partial sums of a block.
struct BlockSet {
  IndexList list;
  int plane = 0;
  bool operator==(const BlockSet&) const = default;
};

inline BlockSet block(Block b, int plane = 0) { return {IndexList(b), plane}; }
inline BlockSet blocks(Block first, int count, int stride = 1, int plane = 0) {
  return {IndexList(Run{first, count, stride}), plane};
}
inline RankSet ranks_from(Rank first, int count, int stride = 1) {
  return IndexList(Run{first, count, stride});
}
inline IndexList operator+(IndexList a, const IndexList& b) {
  a.append(b);
  return a;
}
inline BlockSet operator+(BlockSet a, const BlockSet& b) {
  a.list.append(b.list);
  return a;
}

// The abilities of a network's switch, beyond carrying a message from one rank to another.
struct Abilities {
  bool multicast = false;  // one -> many
  bool alu = false;        // many -> one, added up on the way
  // all one -> one transfers of a round at once; no schedule requires it, so there is nothing to
  // lower
  bool permute = false;
};

}  // namespace rankine
