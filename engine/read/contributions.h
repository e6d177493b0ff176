// The verifier follows the state of ranks with these classes: ContributionPool has sets of ranks
// (the contributions in a partial sum), SumTrees and SumOrder the order of additions, and
// MailboxReplay the waits of ranks.
//
// ContributionPool represents a set as a number of eight bytes. Nearly every set that an algorithm
// makes is a cyclic interval of ranks: it is stored as such, and adding two neighbours costs a few
// instructions. The pool keeps any other set once, as its intervals, or as a bit set if that takes
// no more memory, and remembers sums. So a few intervals among 65,536 ranks take a few words, and a
// bit set would take a thousand. Each set has one representation, so equal sets are equal numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/numbers.h"
#include "engine/network/cells.h"

namespace rankine {

// Not thread-safe: a pool for each thread.
class ContributionPool {
 public:
  // 0: empty. Top bit clear: first << 32 | count, a cyclic interval; count == ranks has first == 0.
  // Top bit set: the number of a set that this pool keeps.
  using Set = std::uint64_t;
  static constexpr Set kEmpty = 0;
  static constexpr Set kOverlap = ~Set{0};  // no set: a result of sum()

  explicit ContributionPool(int ranks)
      : ranks_(static_cast<std::uint32_t>(ranks)),
        words_((static_cast<std::size_t>(ranks) + 63) / 64) {}

  Set of(Rank r) const { return interval(static_cast<std::uint32_t>(r), 1); }
  Set rotation_symmetric() const { return interval(0, ranks_); }
  // `count` neighbours, one or more.
  Set run(Rank first, int count) const {
    return interval(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count));
  }

  // The union of a and b, or kOverlap if they have a rank in common.
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

  // The union of a and b, overlapping or not.
  Set united(Set a, Set b) {
    if (a == b || b == kEmpty) return a;
    if (a == kEmpty) return b;
    return remembered(a, b, false);
  }

  // The ranks of a set, rotated.
  Set rotated(Set set, const Rotation& rotation, Rank by) {
    if (set == kEmpty || by == 0) return set;
    if (!is_interval(set) || rotation.dims().size() > 1)
      return rotated_part_by_part(set, rotation, by);
    return interval((first(set) + static_cast<std::uint32_t>(by)) % ranks_, count(set));
  }

  std::vector<Rank> members(Set set) const;  // ascending
  std::string to_string(Set set) const;      // "{0..3, 6}", "{}"
  std::string common(Set a, Set b) const;    // the ranks in both, as to_string()

 private:
  using Words = std::vector<std::uint64_t>;
  // Ranks [first, end) of a set: parts ascend and never touch.
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

  // The words kept for a set: one for each part if these are fewer than the words of a bit set.
  std::span<const std::uint64_t> words_of(Set set) const {
    return sets_[static_cast<std::size_t>(set & ~kKept)];
  }
  bool is_bits(std::span<const std::uint64_t> words) const { return words.size() == words_; }
  std::size_t size_of(Set set) const { return is_interval(set) ? 2 : words_of(set).size(); }
  Parts parts_of(Set set) const;
  void append_parts_of_bits(std::span<const std::uint64_t> bits, Parts& parts) const;
  void write_bits(Set set, Words& bits) const;
  static std::vector<Rank> ranks_of(const Parts& parts);

  Set rotated_part_by_part(Set set, const Rotation& rotation, Rank by);
  Set remembered(Set a, Set b, bool disjoint);
  Set computed(Set a, Set b, bool disjoint);
  Set set_of(const Parts& parts);
  Set set_of(const Words& bits);
  Set keep(std::span<const std::uint64_t> words);

  std::uint32_t ranks_;
  std::size_t words_;                                 // number of words of a bit set
  std::vector<Words> chunks_;                         // words of all sets; a chunk never moves
  std::vector<std::span<const std::uint64_t>> sets_;  // by number, in chunks_
  std::vector<std::uint32_t> index_;                  // hash table of 1 + number of a set, 0: free
  std::vector<Remembered> sums_[2];                   // hash tables; by `disjoint`
  std::size_t sums_held_[2] = {0, 0};
  Words left_, right_;  // scratch
};

// SumTrees represents how the sums of one rank that stands for all (rotation_symmetric.h) are added
// up: as trees of additions from that rank's view, so that two ranks' trees can be compared without
// writing them out.

// A tree, rotated by a rank. Numbers below 1: no tree.
struct RotatedTree {
  int tree = 0;
  Rank by = 0;
  auto operator<=>(const RotatedTree&) const = default;
};

// A sum adds its parts in the order of their lowest ranks (schedule.h), so the set of parts
// determines the additions, and the ranks of the parts determine their order. Not thread-safe.
class SumTrees {
 public:
  explicit SumTrees(const Rotation& rotation) : rotation_(rotation) {}

  // A rank's own contribution.
  RotatedTree of(Rank r) const { return {kLeaf, r}; }
  RotatedTree rotated(RotatedTree tree, Rank by) const {
    return {tree.tree, rotation_.rotated(tree.by, by)};
  }
  // The sum of two or more, in one addition.
  RotatedTree sum(std::vector<RotatedTree> parts);
  // True if both trees have equal additions. For trees that are not rotations of one tree the first
  // comparison takes time linear in their size.
  bool same(RotatedTree a, RotatedTree b);

 private:
  static constexpr int kLeaf = 1;
  const std::vector<RotatedTree>& parts_of(int tree) const {
    return parts_[static_cast<std::size_t>(tree - kLeaf - 1)];
  }
  Rank lowest(RotatedTree tree) const;
  // The parts of a tree, by the lowest rank of each.
  std::vector<std::pair<Rank, RotatedTree>> in_order(RotatedTree tree) const;

  const Rotation& rotation_;
  std::vector<std::vector<RotatedTree>> parts_;      // ascending
  std::map<std::vector<RotatedTree>, int> numbers_;  // number of a tree
  std::map<std::pair<RotatedTree, RotatedTree>, bool> compared_;
};

// SumOrder follows in which brackets and order the values of all places are added up (schedule.h
// defines the order within a round), so that ranks' results can be compared. The verifier uses it
// for all-reduces that must leave equal bits everywhere.

// How the value of a place was added up. All bits zero: an empty place.
struct Sum {
  // a hash of the tree of additions, in order; or the tree's number in SumTrees
  std::uint64_t tree;
  Rank lowest;  // the lowest rank in the sum; or the rank by which the tree is rotated
  bool operator==(const Sum&) const = default;
};

// Not thread-safe.
class SumOrder {
 public:
  // `one`: the rank with number 0 stands for all; nullptr: all ranks are followed.
  SumOrder(const Schedule& schedule, const CollectiveSpec& goal, const RotationSymmetric* one)
      : one_(one),
        blocks_(schedule.blocks),
        sums_(schedule, goal, one != nullptr ? 1 : static_cast<std::size_t>(schedule.ranks)) {
    if (one != nullptr) trees_.emplace(one->rotation());
  }

  // Sets a rank's own contribution, before the first round.
  void begin_with(Rank r, const Run& run) {
    const Sum own = trees_ ? sum_of(trees_->of(r))
                           : Sum{mixed(~std::uint64_t{0}, static_cast<std::uint64_t>(r)), r};
    sums_.change(static_cast<std::size_t>(r), 0, run, [&own](Block, int, Sum& sum) { sum = own; });
  }
  // visit(first block, how many, sum) for neighbouring blocks, in order, a stretch of equal sums at
  // once.
  template <class Visit>
  void read(std::size_t rank, int plane, const Run& run, const Visit& visit) const {
    sums_.read(rank, plane, run, visit);
  }
  // With one rank for all: the sum from the receiver's view, for which the sender is `sender`.
  Sum rotated(const Sum& sum, Rank sender) const {
    return sum_of(trees_->rotated(tree_of(sum), sender));
  }
  // Records an arrival of the round at each of these blocks.
  void arrives(std::size_t rank, int plane, const Run& run, const Sum& sum, bool is_copy) {
    arrived_.push_back({rank, plane, run.first, run.count, sum, is_copy});
  }
  // Applies the round's arrivals to the sums, all at once: a place adds its own sum and all
  // arrivals, in the order that schedule.h defines.
  void end_round() {
    sort();
    if (split_at_boundaries()) sort();
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
  // With one rank for all: compares its sums with those of the next rank along each dimension;
  // equality there extends to all ranks. Returns the first next rank and block that differ.
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
  // An arrival at neighbouring blocks of a rank, all with one sum.
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
  // Cuts arrivals so that any two cover equal places or disjoint ones. Returns true if any was cut.
  bool split_at_boundaries() {
    using End = std::tuple<std::size_t, int, Block>;
    const auto overlap = [](const Arrival& a, const Arrival& b) {
      return a.rank == b.rank && a.plane == b.plane && b.first < a.end() && !a.same_places(b);
    };
    if (std::adjacent_find(arrived_.begin(), arrived_.end(), overlap) == arrived_.end()) {
      return false;
    }
    std::vector<End> ends;
    for (const Arrival& arrival : arrived_) {
      ends.emplace_back(arrival.rank, arrival.plane, arrival.first);
      ends.emplace_back(arrival.rank, arrival.plane, arrival.end());
    }
    std::sort(ends.begin(), ends.end());
    std::vector<Arrival> cut;
    for (Arrival rest : arrived_) {
      const End place(rest.rank, rest.plane, rest.first);
      auto end = std::upper_bound(ends.begin(), ends.end(), place);
      while (std::get<2>(*end) < rest.end()) {  // the arrival's end is among them
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
    bool own = there.tree != 0;  // not added yet
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

  const RotationSymmetric* const one_;
  const int blocks_;
  CellTable<Sum> sums_;
  std::optional<SumTrees> trees_;  // set if one rank stands for all
  std::vector<Arrival> arrived_;   // in this round
};

// MailboxReplay checks for deadlocks of ranks that send through bounded mailboxes.
//
// Every ordered pair of ranks has a mailbox of a fixed capacity. A sender waits while it is full, a
// receiver while it is empty, and each rank executes its actions in sequence. That is a Kahn
// network: the progress of each rank is independent of scheduling, so replaying one order decides
// for all.
//
// The replay takes a round at a time. If a round does not complete, the remaining ranks wait for
// each other in a circle (every send has its receive in that round), and no later round frees them;
// if it completes, all mailboxes are empty again.

// The order in which a rank executes its messages of one round.
enum class MessageOrder : unsigned char {
  sub_rounds,      // the j-th message of a pair in this round belongs to sub-round j / capacity; in
                   // every sub-round all sends in the order stated, then all receives
  sends_first,     // all sends in the order stated, then all receives
  receives_first,  // all receives in the order stated, then all sends
  statement,       // sends and receives mixed, as stated
};

// Not thread-safe. Time and memory are linear in the messages of a round.
class MailboxReplay {
 public:
  // capacity: messages that a mailbox holds, at least 1.
  MailboxReplay(int ranks, int capacity, MessageOrder order);
  // For one rank that stands for all, if every rank does the same work (rotation_symmetric.h) at
  // one time. Not for the order `statement`, in which the ranks differ: the rank stated first sends
  // before it receives.
  MailboxReplay(const RotationSymmetric& all, int capacity, MessageOrder order);

  // The next message of the round, in the order stated; from != to.
  void add(Rank from, Rank to) {
    if (rotation_ != nullptr) to = rotation_->rotated(to, rotation_->back(from));
    messages_.push_back({rotation_ != nullptr ? 0 : from, to, 0, 0});
  }

  struct Circle {
    Rank rank;         // the lowest rank in the circle
    std::string text;  // "rank 0 waits to send to 1 (8 messages unread), rank 1 waits ..."
  };

  // Replays the messages added since the last call. After a circle the replay cannot be continued.
  std::optional<Circle> end_round();

 private:
  struct Message {
    Rank from, to;
    std::uint32_t mailbox;
    std::uint32_t sub_round;
  };
  struct Mailbox {
    Rank from, to;
    std::uint32_t stated = 0;  // messages of this round
    std::uint32_t unread = 0;
    bool sender_waits = false, receiver_waits = false;
  };
  struct Action {
    std::uint32_t mailbox;
    bool is_send;
  };
  struct Program {
    std::vector<Action> actions;
    std::size_t next = 0;
  };

  std::uint32_t mailbox_of(Rank from, Rank to);
  void sort_into_sub_rounds(std::uint32_t sub_rounds);
  void write_programs();
  void push(Rank rank, std::uint32_t mailbox, bool is_send);
  void run(Rank rank);
  std::optional<Circle> circle() const;

  // The rank that executes the actions of r: rank 0 if one rank stands for all.
  Rank doer(Rank r) const { return rotation_ != nullptr ? 0 : r; }

  std::uint64_t ranks_;
  const Rotation* rotation_ = nullptr;  // set if one rank stands for all
  std::uint32_t capacity_;
  MessageOrder order_;
  std::vector<Message> messages_, sorted_;
  std::vector<std::uint32_t> sub_round_ends_;
  std::vector<Mailbox> mailboxes_;    // of this round's pairs
  std::vector<std::uint32_t> table_;  // hash table of 1 + index into mailboxes_, 0: free
  std::vector<Program> programs_;     // one per rank
  std::vector<Rank> busy_;            // ranks with a program
  std::vector<Rank> ready_;           // ranks that may have something to do
};

}  // namespace rankine
