// A value for every number from 0 on, kept as stretches of neighbours that have the same one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace rankine {

// T: T{} is the value of all numbers at first, and == says whether two are alike. Finding a stretch
// takes the logarithm of their number, a change that makes or ends one takes as long as moving the
// stretches behind it. For one thread.
template <class T>
class Stretches {
 public:
  std::size_t count() const { return std::max<std::size_t>(1, stretches_.size()); }

  // visit(first, how many, value) for the stretches of [first, end), cut at its ends, in order.
  template <class Visit>
  void read(std::size_t first, std::size_t end, const Visit& visit) const {
    if (stretches_.empty()) return visit(first, end - first, T{});
    for (std::size_t i = holding(first); first < end; ++i) {
      const std::size_t next = i + 1 < stretches_.size() ? stretches_[i + 1].first : end;
      visit(first, std::min(next, end) - first, stretches_[i].value);
      first = next;
    }
  }

  // The same with values that change(first, how many, T&) may change. `all`: there are so many
  // numbers.
  template <class Change>
  void change(std::size_t first, std::size_t end, std::size_t all, const Change& change) {
    if (stretches_.empty()) stretches_.push_back({0, T{}});
    std::size_t i = holding(first);
    if (stretches_[i].first < first) i = split(i, first);
    std::size_t behind = i;
    while (behind < stretches_.size() && stretches_[behind].first < end) ++behind;
    if (end < all && (behind == stretches_.size() || stretches_[behind].first > end)) {
      split(behind - 1, end);
    }
    for (std::size_t j = i; j < behind; ++j) {
      const std::size_t next = j + 1 < stretches_.size() ? stretches_[j + 1].first : all;
      change(stretches_[j].first, next - stretches_[j].first, stretches_[j].value);
    }
    join(i, std::min(behind + 1, stretches_.size()));
  }

  void clear() { std::vector<Stretch>().swap(stretches_); }

 private:
  struct Stretch {
    std::size_t first;  // up to the next one's
    T value;
  };

  std::size_t holding(std::size_t number) const {
    const auto behind =
        std::upper_bound(stretches_.begin(), stretches_.end(), number,
                         [](std::size_t n, const Stretch& s) { return n < s.first; });
    return static_cast<std::size_t>(behind - stretches_.begin()) - 1;
  }
  // Ends stretch i before that number: the index of what begins there.
  std::size_t split(std::size_t i, std::size_t at) {
    const T value = stretches_[i].value;
    stretches_.insert(stretches_.begin() + static_cast<std::ptrdiff_t>(i + 1), {at, value});
    return i + 1;
  }
  // Stretches [first, end), and the one before them: neighbours that are alike become one.
  void join(std::size_t first, std::size_t end) {
    if (first == 0) first = 1;
    std::size_t kept = first;
    for (std::size_t i = first; i < end; ++i) {
      if (stretches_[i].value == stretches_[kept - 1].value) continue;
      if (kept != i) stretches_[kept] = stretches_[i];
      ++kept;
    }
    if (kept < end) {
      stretches_.erase(stretches_.begin() + static_cast<std::ptrdiff_t>(kept),
                       stretches_.begin() + static_cast<std::ptrdiff_t>(end));
    }
  }

  std::vector<Stretch> stretches_;  // the first one begins at 0; none: all are T{}
};

}  // namespace rankine
