// Who sends to whom in a schedule: how many distinct ranks each has to do with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "algorithms/schedule/everyone.h"

namespace rankine {

// Each rank has a list of those it sends to; where that gets long a bit for every rank is smaller.
// So memory grows with the pairs that meet, and is never more than a bit for each that could. For
// one thread.
class Meetings {
 public:
  explicit Meetings(int ranks) : ranks_(static_cast<std::size_t>(ranks)), of_(ranks_) {}

  std::size_t ranks() const { return ranks_; }

  // A message, as often as there is one; from != to. One that stands for all (`one`; nullptr: it is
  // a message of its own) sends as far as its sender does and hears from as far, as rank 0 then,
  // whose numbers are everybody's.
  void add(Rank from, Rank to, const Everyone* one) {
    if (one == nullptr) return add(from, to);
    const Rank target = one->rotation().rotated(to, one->rotation().back(from));
    add(0, target);
    add(one->rotation().back(target), 0);
  }

  // By rank, of all that was added: distinct ranks that it sends to; that it receives from; either.
  struct Numbers {
    std::vector<int> targets, sources, partners;
  };
  Numbers numbers() {
    for (Targets& targets : of_) sort(targets.list);
    Numbers out{std::vector<int>(ranks_), std::vector<int>(ranks_), std::vector<int>(ranks_)};
    for (Rank a = 0; a < static_cast<Rank>(ranks_); ++a) {
      for_each_target(a, [&](Rank b) {
        ++out.targets[static_cast<std::size_t>(a)];
        ++out.sources[static_cast<std::size_t>(b)];
        ++out.partners[static_cast<std::size_t>(a)];
        if (!sends(b, a)) ++out.partners[static_cast<std::size_t>(b)];
      });
    }
    return out;
  }

 private:
  static constexpr std::size_t kBitsPerRank = 8 * sizeof(Rank);
  static constexpr std::size_t kShort = 16;
  struct Targets {
    std::vector<Rank> list;  // ascending up to where it was last sorted
    std::vector<bool> bits;  // in its place, where there are many
    std::size_t look_at = kShort;
    Rank last = -1;  // rings meet the same one in each round
  };

  void add(Rank from, Rank to) {
    Targets& targets = of_[static_cast<std::size_t>(from)];
    if (to == targets.last) return;
    targets.last = to;
    if (!targets.bits.empty()) {
      targets.bits[static_cast<std::size_t>(to)] = true;
      return;
    }
    targets.list.push_back(to);
    if (targets.list.size() < targets.look_at) return;
    sort(targets.list);
    targets.look_at = std::max(kShort, 2 * targets.list.size());
    if (targets.list.size() * kBitsPerRank <= ranks_) return;
    targets.bits.resize(ranks_);
    for (const Rank r : targets.list) targets.bits[static_cast<std::size_t>(r)] = true;
    std::vector<Rank>().swap(targets.list);
  }

  static void sort(std::vector<Rank>& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  bool sends(Rank from, Rank to) const {
    const Targets& targets = of_[static_cast<std::size_t>(from)];
    if (!targets.bits.empty()) return targets.bits[static_cast<std::size_t>(to)];
    return std::binary_search(targets.list.begin(), targets.list.end(), to);
  }
  template <class Visit>
  void for_each_target(Rank from, const Visit& visit) const {
    const Targets& targets = of_[static_cast<std::size_t>(from)];
    for (const Rank to : targets.list) visit(to);
    for (std::size_t to = 0; to < targets.bits.size(); ++to) {
      if (targets.bits[to]) visit(static_cast<Rank>(to));
    }
  }

  std::size_t ranks_;
  std::vector<Targets> of_;
};

}  // namespace rankine
