// In which brackets and order the values of all places are added up (schedule.h says in which order
// a round adds), so that ranks' results can be compared: what the verifier keeps beside sets of
// contributions where an all-reduce is to leave the same bits everywhere.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/everyone.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/splitmix.h"
#include "engine/network/cells.h"
#include "engine/read/sum_trees.h"

namespace rankine {

// How the value of a place was added up. All bits zero: nothing is there.
struct Sum {
  std::uint64_t tree;  // a hash of the tree of additions, in order; or its number in SumTrees
  Rank lowest;         // that is in it; or by which rank the tree is turned
  bool operator==(const Sum&) const = default;
};

// Not thread-safe.
class SumOrder {
 public:
  // `one`: whose part stands for all, and has number 0; nullptr: none does.
  SumOrder(const Schedule& schedule, const Goal& goal, const Everyone* one)
      : one_(one),
        blocks_(schedule.blocks),
        sums_(schedule, goal, one != nullptr ? 1 : static_cast<std::size_t>(schedule.ranks)) {
    if (one != nullptr) trees_.emplace(one->rotation());
  }

  // A rank's own contribution is there at first.
  void begin_with(Rank r, const Run& run) {
    const Sum own = trees_ ? sum_of(trees_->of(r))
                           : Sum{mixed(~std::uint64_t{0}, static_cast<std::uint64_t>(r)), r};
    sums_.change(static_cast<std::size_t>(r), 0, run, [&own](Block, int, Sum& sum) { sum = own; });
  }
  // visit(first block, how many, sum) of neighbouring blocks, in order, as many at once as are
  // alike.
  template <class Visit>
  void read(std::size_t rank, int plane, const Run& run, const Visit& visit) const {
    sums_.read(rank, plane, run, visit);
  }
  // Where one stands for all: as a receiver sees it, to whom the sender is `sender`.
  Sum rotated(const Sum& sum, Rank sender) const {
    return sum_of(trees_->rotated(tree_of(sum), sender));
  }
  // In this round, at each of these blocks.
  void arrives(std::size_t rank, int plane, const Run& run, const Sum& sum, bool is_copy) {
    arrived_.push_back({rank, plane, run.first, run.count, sum, is_copy});
  }
  // What the round's arrivals make of the sums, all at once: a place adds what is there and all
  // that it receives, in the language's order.
  void end_round() {
    sort();
    if (cut_where_others_end()) sort();
    for (std::size_t begin = 0, end; begin < arrived_.size(); begin = end) {
      const Arrival& first = arrived_[begin];
      end = begin;
      while (end < arrived_.size() && arrived_[end].same_places(first)) ++end;
      const std::span<const Arrival> all(&first, end - begin);
      sums_.change(
          first.rank, first.plane, {first.first, first.count, 1}, [&](Block, int, Sum& there) {
            const bool adds = !first.is_copy && (there.tree != 0 || all.size() > 1);
            there = !adds ? first.sum : trees_ ? added_tree(there, all) : added(there, all);
          });
    }
    arrived_.clear();
  }

  // The first of these blocks that rank `r` adds up in another way than rank 0.
  std::optional<Block> difference(Rank r, Block first, int count) const {
    std::optional<Block> found;
    read(static_cast<std::size_t>(r), 0, {first, count, 1}, [&](Block b, int n, const Sum& sum) {
      read(0, 0, {b, n, 1}, [&](Block at, int, const Sum& first_rank) {
        if (!found && sum.tree != first_rank.tree) found = at;
      });
    });
    return found;
  }
  // One that stands for all adds up as its next one does along each dimension, and so all do; or
  // the rank and the block that do not.
  std::optional<std::pair<Rank, Block>> difference_to_next() {
    const Rotation& rotation = one_->rotation();
    for (Rank next = 1, d = static_cast<int>(rotation.dims().size()); d-- > 0;) {
      const int size = rotation.dims()[static_cast<std::size_t>(d)];
      for (Block b = 0; size > 1 && b < blocks_; ++b) {
        const Block at_next = rotation.rotated(IndexList(b), rotation.back(next)).front();
        const RotatedTree here = tree_of(sums_.at(0, 0, b));
        const RotatedTree there = tree_of(rotated(sums_.at(0, 0, at_next), next));
        if (!trees_->same(here, there)) return std::pair(next, b);
      }
      next *= size;
    }
    return std::nullopt;
  }

 private:
  // At neighbouring blocks of a rank, which all get the same.
  struct Arrival {
    std::size_t rank;
    int plane;
    Block first;
    int count;
    Sum sum;
    bool is_copy;

    Block end() const { return first + count; }
    bool same_places(const Arrival& other) const {
      return rank == other.rank && plane == other.plane && first == other.first &&
             count == other.count;
    }
  };

  void sort() {
    std::stable_sort(arrived_.begin(), arrived_.end(), [](const Arrival& a, const Arrival& b) {
      return std::tie(a.rank, a.plane, a.first, a.count, a.sum.lowest) <
             std::tie(b.rank, b.plane, b.first, b.count, b.sum.lowest);
    });
  }
  // So that of any two arrivals all places are the same, or none. Whether that changed anything.
  bool cut_where_others_end() {
    using Place = std::tuple<std::size_t, int, Block>;
    const auto overlap = [](const Arrival& a, const Arrival& b) {
      return a.rank == b.rank && a.plane == b.plane && b.first < a.end() && !a.same_places(b);
    };
    if (std::adjacent_find(arrived_.begin(), arrived_.end(), overlap) == arrived_.end()) {
      return false;
    }
    std::vector<Place> ends;
    for (const Arrival& arrival : arrived_) {
      ends.emplace_back(arrival.rank, arrival.plane, arrival.first);
      ends.emplace_back(arrival.rank, arrival.plane, arrival.end());
    }
    std::sort(ends.begin(), ends.end());
    std::vector<Arrival> cut;
    for (Arrival rest : arrived_) {
      const Place place(rest.rank, rest.plane, rest.first);
      auto end = std::upper_bound(ends.begin(), ends.end(), place);
      while (std::get<2>(*end) < rest.end()) {  // its own end is among them
        Arrival part = rest;
        part.count = std::get<2>(*end) - rest.first;
        rest.first += part.count;
        rest.count -= part.count;
        if (part.count > 0) cut.push_back(part);
        ++end;
      }
      cut.push_back(rest);
    }
    arrived_ = std::move(cut);
    return true;
  }
  static Sum added(const Sum& there, std::span<const Arrival> arrived) {
    bool own = there.tree != 0;  // is still to be added
    std::uint64_t tree = 2;
    for (const Arrival& arrival : arrived) {
      if (own && there.lowest < arrival.sum.lowest) {
        tree = mixed(tree, there.tree);
        own = false;
      }
      tree = mixed(tree, arrival.sum.tree);
    }
    if (own) tree = mixed(tree, there.tree);
    const Rank lowest = arrived.front().sum.lowest;
    return {tree, there.tree != 0 ? std::min(there.lowest, lowest) : lowest};
  }
  Sum added_tree(const Sum& there, std::span<const Arrival> arrived) {
    std::vector<RotatedTree> parts;
    if (there.tree != 0) parts.push_back(tree_of(there));
    for (const Arrival& arrival : arrived) parts.push_back(tree_of(arrival.sum));
    return sum_of(trees_->sum(std::move(parts)));
  }
  static RotatedTree tree_of(const Sum& sum) { return {static_cast<int>(sum.tree), sum.lowest}; }
  static Sum sum_of(RotatedTree tree) { return {static_cast<std::uint64_t>(tree.tree), tree.by}; }

  const Everyone* const one_;
  const int blocks_;
  CellTable<Sum> sums_;
  std::optional<SumTrees> trees_;  // where one stands for all
  std::vector<Arrival> arrived_;   // in this round
};

}  // namespace rankine
