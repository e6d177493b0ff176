// The grammar in which transfers name ranks and blocks: ordered lists of indices, kept as runs.
//
//   block(r - k)          one block                      block(b, 1)   the same block on plane 1
//   blocks(f, n)          f, f+1, ... f+n-1              blocks(f, n, s)   with stride s
//   rank r                an int is a set of one         ranks_from(r + 1, p - 1)   everybody but r
//   a + b                 first a, then b
//
// Indices may run over either end: the schedule that a transfer belongs to takes them modulo its
// number of ranks or blocks (see Send in schedule.h), so files read like the papers' formulas.
// Order matters: the i-th index of `what` is delivered to the i-th index of `where`.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace rankine {

using Rank = int;
using Block = int;

// first, first + stride, ... (count of them)
struct Run {
  int first = 0;
  int count = 0;
  int stride = 1;
  bool operator==(const Run&) const = default;
};

// An ordered list of indices. Two runs are stored in place (a cyclic interval needs two), more
// spill to the heap: a ring at N = 4096 makes 33 million transfers and no allocation.
class IndexList {
 public:
  IndexList() = default;
  IndexList(int index) { append({index, 1, 1}); }  // NOLINT: a rank or a block is a list of one
  IndexList(Run run) { append(run); }              // NOLINT

  // Appends a run; extends the last one where the new one continues it.
  void append(Run run);
  void append(const IndexList& other) {
    for (int i = 0; i < other.runs(); ++i) append(other.run(i));
  }

  int runs() const { return runs_; }
  const Run& run(int i) const {
    return i < kInline ? inline_[static_cast<std::size_t>(i)]
                       : spilled_[static_cast<std::size_t>(i - kInline)];
  }
  int size() const;  // number of indices
  bool empty() const { return runs_ == 0; }
  int front() const { return run(0).first; }
  int operator[](int i) const;  // the i-th index; linear in the number of runs

  template <class Visit>
  void for_each(Visit visit) const {
    for (int i = 0; i < runs_; ++i) {
      const Run& part = run(i);
      for (int j = 0, index = part.first; j < part.count; ++j, index += part.stride) visit(index);
    }
  }
  std::vector<int> to_vector() const;

  // The same indices, each taken modulo n into [0, n).
  IndexList modulo(int n) const;

  // Equal as sequences of indices.
  bool operator==(const IndexList& other) const;

 private:
  static constexpr int kInline = 2;
  Run& last() {
    return runs_ <= kInline ? inline_[static_cast<std::size_t>(runs_ - 1)] : spilled_.back();
  }

  int runs_ = 0;
  std::array<Run, kInline> inline_{};
  std::vector<Run> spilled_;
};

using RankSet = IndexList;

// Blocks of one plane. Plane 0 is the vector that the collective is about; further planes are
// scratch vectors of the same shape, for algorithms that keep several partial sums of a block.
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

}  // namespace rankine
