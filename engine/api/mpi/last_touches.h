// Which bytes of one memory were touched when: disjoint stretches, each with the round in which it
// was read or written last, and with the messages that are sent from it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <vector>

namespace rankine {

class LastTouches {
 public:
  struct Stretch {
    std::ptrdiff_t end = 0;
    int round = 0;
    std::vector<int> sent;  // parcels
  };

  // Calls visit(stretch) for what overlaps with these bytes and was ever touched.
  template <class Visit>
  void for_each(std::ptrdiff_t begin, std::size_t bytes, const Visit& visit) const {
    const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
    for (auto at = first_beyond(begin); at != stretches_.end() && at->first < end; ++at) {
      visit(at->second);
    }
  }
  // Calls change(stretch) for all of these bytes, which are touched in that round.
  template <class Change>
  void touch(std::ptrdiff_t begin, std::size_t bytes, int round, const Change& change) {
    if (bytes == 0) return;
    const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
    split(begin);
    split(end);
    while (begin < end) {
      auto at = stretches_.lower_bound(begin);
      if (at == stretches_.end() || at->first > begin) {
        const auto gap_ends = at == stretches_.end() ? end : std::min(end, at->first);
        at = stretches_.insert({begin, Stretch{gap_ends, round, {}}}).first;
      }
      at->second.round = round;
      change(at->second);
      begin = at->second.end;
    }
  }

 private:
  using Stretches = std::map<std::ptrdiff_t, Stretch>;  // by where they begin

  // The first that ends behind `place`.
  Stretches::const_iterator first_beyond(std::ptrdiff_t place) const {
    auto at = stretches_.upper_bound(place);
    if (at != stretches_.begin() && std::prev(at)->second.end > place) --at;
    return at;
  }
  void split(std::ptrdiff_t place) {
    const auto at = stretches_.lower_bound(place);
    if (at == stretches_.begin()) return;
    Stretch& before = std::prev(at)->second;
    if (before.end <= place) return;
    Stretch behind = before;
    before.end = place;
    stretches_.emplace_hint(at, place, std::move(behind));
  }

  Stretches stretches_;
};

}  // namespace rankine
