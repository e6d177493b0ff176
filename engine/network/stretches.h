// A value for every number from 0 on, kept as stretches of neighbours that have the same one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace rankine {

// T: T{} is the value of all numbers at first, and == says whether two are alike. They lie in
// chunks of at most kMost: finding a stretch takes the logarithm of their number, and a change that
// makes or ends one moves those behind it in its chunk only, however many there are in all. For one
// thread.
template <class T, std::size_t kMost = 256>
class Stretches {
 public:
  std::size_t count() const { return std::max<std::size_t>(1, count_); }

  // visit(first, how many, value) for the stretches of [first, end), cut at its ends, in order.
  template <class Visit>
  void read(std::size_t first, std::size_t end, const Visit& visit) const {
    if (chunks_.empty()) return visit(first, end - first, T{});
    for (Place at = holding(first); first < end; at = behind(at)) {
      const std::size_t next = std::min(begin_of(behind(at), end), end);
      visit(first, next - first, chunks_[at.chunk][at.index].value);
      first = next;
    }
  }

  // The same with values that change(first, how many, T&) may change. `all`: there are so many
  // numbers.
  template <class Change>
  void change(std::size_t first, std::size_t end, std::size_t all, const Change& change) {
    if (chunks_.empty()) {
      chunks_.push_back({{0, T{}}});
      count_ = 1;
    }
    if (end < all) cut(end);
    const Place begin = cut(first);
    for (Place at = begin; begin_of(at, all) < end; at = behind(at)) {
      Stretch& stretch = chunks_[at.chunk][at.index];
      change(stretch.first, begin_of(behind(at), all) - stretch.first, stretch.value);
    }
    join(begin, end);
  }

  void clear() {
    std::vector<Chunk>().swap(chunks_);
    count_ = 0;
  }

 private:
  struct Stretch {
    std::size_t first;  // up to the next one's
    T value;
  };
  using Chunk = std::vector<Stretch>;  // never empty
  struct Place {
    std::size_t chunk, index;
  };

  Place behind(Place at) const {
    return at.index + 1 < chunks_[at.chunk].size() ? Place{at.chunk, at.index + 1}
                                                   : Place{at.chunk + 1, 0};
  }
  // Where that stretch begins; `none` behind the last one.
  std::size_t begin_of(Place at, std::size_t none) const {
    return at.chunk < chunks_.size() ? chunks_[at.chunk][at.index].first : none;
  }
  Place holding(std::size_t number) const {
    const auto chunk =
        std::upper_bound(chunks_.begin(), chunks_.end(), number,
                         [](std::size_t n, const Chunk& c) { return n < c.front().first; }) -
        1;
    const auto next = std::upper_bound(chunk->begin(), chunk->end(), number,
                                       [](std::size_t n, const Stretch& s) { return n < s.first; });
    return {static_cast<std::size_t>(chunk - chunks_.begin()),
            static_cast<std::size_t>(next - chunk->begin()) - 1};
  }
  // So that a stretch begins there: which one.
  Place cut(std::size_t number) {
    Place at = holding(number);
    Chunk& chunk = chunks_[at.chunk];
    if (chunk[at.index].first == number) return at;
    const T value = chunk[at.index].value;
    ++at.index;
    chunk.insert(chunk.begin() + static_cast<std::ptrdiff_t>(at.index), {number, value});
    ++count_;
    if (chunk.size() <= kMost) return at;
    const std::size_t half = chunk.size() / 2;
    Chunk later(chunk.begin() + static_cast<std::ptrdiff_t>(half), chunk.end());
    chunk.resize(half);
    chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(at.chunk + 1), std::move(later));
    return at.index < half ? at : Place{at.chunk + 1, at.index - half};
  }
  // Stretches from `at` to the one that begins at `end`: those that are like the one before end.
  void join(Place at, std::size_t end) {
    const T* before = at.index > 0   ? &chunks_[at.chunk][at.index - 1].value
                      : at.chunk > 0 ? &chunks_[at.chunk - 1].back().value
                                     : nullptr;
    while (begin_of(at, end + 1) <= end) {
      Chunk& chunk = chunks_[at.chunk];
      std::size_t kept = at.index, i = at.index;
      for (; i < chunk.size() && chunk[i].first <= end; ++i) {
        if (before != nullptr && chunk[i].value == *before) continue;
        if (kept != i) chunk[kept] = chunk[i];
        before = &chunk[kept++].value;
      }
      count_ -= i - kept;
      chunk.erase(chunk.begin() + static_cast<std::ptrdiff_t>(kept),
                  chunk.begin() + static_cast<std::ptrdiff_t>(i));
      if (chunk.empty()) {
        chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(at.chunk));
      } else if (kept < chunk.size()) {
        return;
      } else {
        ++at.chunk;
      }
      at.index = 0;
    }
  }

  std::vector<Chunk> chunks_;  // the first one begins at 0; none: all are T{}
  std::size_t count_ = 0;      // of stretches
};

}  // namespace rankine
