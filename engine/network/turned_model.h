// TurnedModel is the port model for schedules in which every rank does the same work round a ring.
// ByRank, its type of times, holds a number for each of N ranks as straight pieces over
// neighbouring ranks: with blocks of two sizes, times and weights change at a few ranks only, so a
// function over a million ranks has a handful of pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "algorithms/schedule/rotation_symmetric.h"
#include "engine/network/cells.h"
#include "engine/network/port_model.h"
#include "engine/network/prices.h"

namespace rankine {

// T: a signed whole number; values and the sum or difference of two values must not overflow it. A
// value type, for one thread.
template <class T>
class ByRank {
 public:
  struct Piece {
    int first;  // ends at the first rank of the next piece
    T value;    // at the first
    T slope;    // from rank to rank
  };

  ByRank() = default;
  ByRank(int ranks, T value) : ranks_(ranks), pieces_{{0, value, 0}} {}
  // Empty: fill it with append(), from rank 0 on.
  explicit ByRank(int ranks) : ranks_(ranks) { pieces_.reserve(8); }

  // Adds `count` ranks. A piece that continues the last one is joined to it.
  void append(int count, T value, T slope) {
    if (count <= 0) return;
    const int first = filled_;
    filled_ += count;
    if (count == 1) slope = 0;
    if (!pieces_.empty()) {
      Piece& last = pieces_.back();
      const int before = first - last.first;
      const T step = before == 1 ? value - last.value : last.slope;
      const bool continues = last.value + step * before == value;
      if (continues && (count == 1 || slope == step)) {
        last.slope = step;
        return;
      }
    }
    pieces_.push_back({first, value, slope});
  }

  int ranks() const { return ranks_; }
  std::size_t pieces() const { return pieces_.size(); }
  std::size_t bytes() const { return sizeof(*this) + pieces_.capacity() * sizeof(Piece); }

  // visit(first, count, value, slope) for each piece.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      visit(pieces_[i].first, end_of(i) - pieces_[i].first, pieces_[i].value, pieces_[i].slope);
    }
  }
  T greatest() const {
    T most = pieces_.front().value;
    for_each([&](int, int count, T value, T slope) {
      most = std::max({most, value, value + slope * (count - 1)});
    });
    return most;
  }

  // The function rotated: rank r gets the value of rank r + by, round the ring; 0 <= by < N.
  ByRank turned(int by) const {
    if (by == 0 || pieces_.size() == 1) {
      if (by == 0 || pieces_.front().slope == 0) return *this;
    }
    ByRank out(ranks_);
    const auto take = [&](int from, int to) {
      for_each([&](int first, int count, T value, T slope) {
        const int begin = std::max(first, from), end = std::min(first + count, to);
        out.append(end - begin, value + slope * (begin - first), slope);
      });
    };
    take(by, ranks_);
    take(0, by);
    return out;
  }

  // factor f + constant.
  ByRank scaled(T factor, T constant) const {
    ByRank out = *this;
    for (Piece& piece : out.pieces_) {
      piece.value = piece.value * factor + constant;
      piece.slope *= factor;
    }
    return out;
  }
  friend ByRank operator+(const ByRank& a, const ByRank& b) {
    ByRank out(a.ranks_);
    together(a, b,
             [&out](int count, T va, T sa, T vb, T sb) { out.append(count, va + vb, sa + sb); });
    return out;
  }
  // The greater, or the lesser, of both values at each rank.
  static ByRank greater(const ByRank& a, const ByRank& b) { return picked(a, b, true); }
  static ByRank lesser(const ByRank& a, const ByRank& b) { return picked(a, b, false); }

  bool operator==(const ByRank& other) const {
    bool same = true;
    together(*this, other, [&same](int count, T va, T sa, T vb, T sb) {
      same = same && va == vb && (count == 1 || sa == sb);
    });
    return same;
  }

 private:
  int end_of(std::size_t i) const { return i + 1 < pieces_.size() ? pieces_[i + 1].first : ranks_; }

  // visit(count, value and slope of a, of b) for stretches in which both are straight.
  template <class Visit>
  static void together(const ByRank& a, const ByRank& b, const Visit& visit) {
    std::size_t i = 0, j = 0;
    for (int at = 0; at < a.ranks_;) {
      const int end = std::min(a.end_of(i), b.end_of(j));
      const Piece &p = a.pieces_[i], &q = b.pieces_[j];
      visit(end - at, p.value + p.slope * (at - p.first), p.slope,
            q.value + q.slope * (at - q.first), q.slope);
      if (end == a.end_of(i)) ++i;
      if (end == b.end_of(j)) ++j;
      at = end;
    }
  }

  static ByRank picked(const ByRank& a, const ByRank& b, bool greater) {
    ByRank out(a.ranks_);
    together(a, b, [&](int count, T va, T sa, T vb, T sb) {
      // The function picked at the first rank, and for how many ranks it is picked.
      const bool a_first = greater ? va >= vb : va <= vb;
      const T lead = a_first == greater ? va - vb : vb - va;  // not negative
      const T change = a_first == greater ? sa - sb : sb - sa;
      int stays = count;
      if (change < 0 && lead + change * (count - 1) < 0)
        stays = static_cast<int>(lead / -change) + 1;
      out.append(stays, a_first ? va : vb, a_first ? sa : sb);
      const T other = a_first ? vb + sb * stays : va + sa * stays;
      out.append(count - stays, other, a_first ? sb : sa);
    });
    return out;
  }

  int ranks_ = 0, filled_ = 0;
  std::vector<Piece> pieces_;
};

// TurnedModel is the port model (port_model.h) of a schedule in which every rank does the same work
// round a ring; ranks' times differ because there are blocks of two sizes. Times are functions of
// the rank (ByRank): the model walks one rank's part and takes each of its messages for all ranks
// at once. The result equals that of taking all messages one by one.
//
// The messages that one message of the part stands for start at different senders and end at
// different receivers. So they have no port in common, and their order among themselves does not
// matter.

// Blocks of two sizes: the first `larger` of every `per_m` blocks have one byte more than the rest.
struct TwoSizes {
  std::int64_t small = 0;
  int per_m = 1, larger = 0;

  // nullopt if the blocks are different.
  static std::optional<TwoSizes> of(const Pricing& pricing, const CollectiveSpec& goal) {
    TwoSizes out;
    out.per_m = static_cast<int>(blocks_per_m(goal));
    if (out.per_m < 1 || goal.blocks % out.per_m != 0) return std::nullopt;
    const auto weight = [&pricing](Block b) { return pricing.weight(IndexList(b)); };
    out.small = weight(out.per_m - 1);
    while (out.larger < out.per_m && weight(out.larger) == out.small + 1) ++out.larger;
    for (Block b = 0; b < goal.blocks; ++b) {
      if (weight(b) != out.small + (b % out.per_m < out.larger ? 1 : 0)) return std::nullopt;
    }
    return out;
  }
  // The weight of the blocks before place x of a ring of per_m blocks; x from 0 to 2 per_m.
  std::int64_t before(std::int64_t x) const {
    const std::int64_t turns = x / per_m, rest = x % per_m;
    return x * small + turns * larger + std::min<std::int64_t>(rest, larger);
  }
};

template <class Tick>
class TurnedModel {
 public:
  using Times = ByRank<Tick>;
  static constexpr Tick kLatest = PortModel<Tick>::kLatest;

  // True if the rotation moves blocks in a way that this model supports.
  static bool knows(const Rotation& rotation, const TwoSizes& sizes) {
    return rotation.dims().size() == 1 && rotation.moves() != Moves::nothing &&
           sizes.per_m % rotation.ranks() == 0;
  }

  // Ports 0: unlimited. `all` must outlive the model.
  TurnedModel(const RotationSymmetric& all, const CollectiveSpec& goal, const TwoSizes& sizes,
              int ports, Sync sync)
      : rotation_(all.rotation()),
        ranks_(all.rotation().ranks()),
        share_(sizes.per_m / ranks_),
        sizes_(sizes),
        k_(static_cast<std::size_t>(ports)),
        by_rounds_(sync == Sync::rounds),
        planes_(all.part().planes),
        blocks_(all.part().blocks),
        zero_(ranks_, 0),
        begin_(zero_) {
    pool_.push_back(zero_);
    if (!by_rounds_) ready_.emplace(all.part(), goal, 1);
  }

  // A transfer of the part for all ranks, by sender: the distance to the receiver, the blocks in
  // the sender's and in the receiver's numbering, and the weight.
  struct Turned {
    int distance = 0;
    IndexList what, where;
    Times weight;
  };
  Turned turned(const Transfer& t) const {
    const Rank from = t.from.front(), to = t.to.front();
    Turned out{to >= from ? to - from : to - from + ranks_,
               rotation_.rotated(t.what.list, rotation_.back(from)),
               rotation_.rotated(t.where.list, rotation_.back(to)),
               {}};
    out.weight = weight_of(out.what);
    return out;
  }

  // In rounds, `before` is the time at which the round before ended, for all ranks.
  void begin_round(Tick before) {
    round_end_ = by_rounds_ ? before : 0;
    if (!by_rounds_) return;
    begin_ = Times(ranks_, before);
    send_.clear();
    receive_.clear();
  }

  // Returns the end of the transfer, by sender. `cost` is by sender too.
  Times take(const Transfer& t, const Turned& way, const Times& cost) {
    Times start = data_ready(t.what.plane, way.what);
    const bool local = way.distance == 0;
    if (!local && k_ != 0) {
      start = Times::greater(start, free(send_));
      start = Times::greater(start, free(receive_).turned(way.distance));
    }
    Times end = start + cost;
    const Tick last = end.greatest();
    overflow_ = overflow_ || last > kLatest;
    work_ += 8 + start.pieces() + end.pieces() + cost.pieces();
    round_end_ = std::max(round_end_, last);
    Times arrives = end.turned(back(way.distance));
    if (!local && k_ != 0) {
      occupy(send_, end);
      occupy(receive_, arrives);
    }
    if (!by_rounds_ && !way.where.empty()) {
      ++heard_;
      const Id id = keep(std::move(arrives));
      for (int i = 0; i < way.where.runs(); ++i) {
        arrivals_.push_back({t.where.plane, way.where.run(i), id, t.kind == TransferKind::copy});
      }
    }
    return end;
  }

  // As in PortModel: arrivals count from the next round on.
  void end_round() {
    const bool alone = heard_ == 1;
    for (const Arrival& a : arrivals_) {
      if (!a.replaces || alone) continue;
      ready_->change(0, a.plane, a.blocks, [](Block, int, Id& ready) { ready = kThere; });
    }
    for (const Arrival& a : arrivals_) {
      ready_->change(0, a.plane, a.blocks, [&](Block, int, Id& ready) {
        ready = a.replaces && alone ? a.time : later(ready, a.time);
        ++work_;
      });
    }
    arrivals_.clear();
    heard_ = 0;
    end_ = std::max(end_, round_end_);
    if (kept_ > 2 * live_ + kFew) forget();
  }

  int back(int distance) const { return distance == 0 ? 0 : ranks_ - distance; }
  Tick round_end() const { return round_end_; }
  Tick end() const { return end_; }
  bool overflowed() const { return overflow_; }
  // The number of pieces and block values visited, and the bytes kept now.
  std::uint64_t work() const { return work_; }
  std::size_t bytes() const {
    return bytes_ + (ready_ ? ready_->held() * sizeof(Id) : 0) + arrivals_.size() * sizeof(Arrival);
  }

 private:
  using Id = std::uint32_t;  // index into the pool of times
  static constexpr Id kThere = 0;
  static constexpr std::size_t kFew = 4096;
  struct Arrival {
    int plane;
    Run blocks;
    Id time;
    bool replaces;
  };
  // The times at which used ports become free, the earliest first, for each rank.
  using Used = std::vector<Times>;

  Times free(const Used& used) const { return used.size() < k_ ? begin_ : used.front(); }
  void occupy(Used& used, const Times& end) {
    if (used.size() == k_) used.erase(used.begin());
    used.push_back(end);
    for (std::size_t i = used.size() - 1; i > 0; --i) {
      Times less = Times::lesser(used[i - 1], used[i]);
      work_ += less.pieces();
      if (less == used[i - 1]) break;
      used[i] = Times::greater(used[i - 1], used[i]);
      used[i - 1] = std::move(less);
    }
  }

  Times data_ready(int plane, const IndexList& list) {
    if (by_rounds_) return begin_;
    Id all = kThere, last = kThere;
    for (int i = 0; i < list.runs(); ++i) {
      ready_->read(0, plane, list.run(i), [&](Block, int, Id there) {
        ++work_;
        if (there == last) return;
        last = there;
        all = later(all, there);
      });
    }
    return pool_[all];
  }

  // The greater of two times at each rank.
  Id later(Id a, Id b) {
    if (a == b || b == kThere) return a;
    if (a == kThere) return b;
    if (a == joined_.a && b == joined_.b) return joined_.both;
    Times both = Times::greater(pool_[a], pool_[b]);
    work_ += 4 + both.pieces();
    const Id id = both == pool_[a] ? a : both == pool_[b] ? b : keep(std::move(both));
    joined_ = {a, b, id};
    return id;
  }
  Id keep(Times times) {
    ++kept_;
    bytes_ += times.bytes();
    if (unused_.empty()) {
      pool_.push_back(std::move(times));
      return static_cast<Id>(pool_.size() - 1);
    }
    const Id id = unused_.back();
    unused_.pop_back();
    pool_[id] = std::move(times);
    return id;
  }
  // Frees all times that no block has.
  void forget() {
    std::vector<bool> used(pool_.size(), false);
    used[kThere] = true;
    for (int plane = 0; plane < planes_; ++plane) {
      ready_->read(0, plane, {0, blocks_, 1}, [&](Block, int, Id id) {
        used[id] = true;
        ++work_;
      });
    }
    unused_.clear();
    live_ = bytes_ = 0;
    for (std::size_t id = 0; id < pool_.size(); ++id) {
      if (used[id]) {
        ++live_;
        bytes_ += pool_[id].bytes();
      } else {
        pool_[id] = Times();
        unused_.push_back(static_cast<Id>(id));
      }
    }
    kept_ = live_;
    joined_ = {};
  }

  // The weights by sender, of blocks in rank 0's numbering: the blocks of rank s lie s shares
  // further on. For a run of neighbours the function is straight between the ranks at which an end
  // of the run meets a change of size.
  Times weight_of(const IndexList& list) const {
    changes_.clear();
    const std::int64_t per_m = sizes_.per_m;
    const auto neighbours = [&](std::int64_t first, std::int64_t count) {
      const auto at = [&](int s) {
        const std::int64_t x = (first + std::int64_t{s} * share_) % per_m;
        return sizes_.before(x + count) - sizes_.before(x);
      };
      // The ranks before and at which an end of the run passes a change of size.
      int places[10] = {0};
      int n = 1;
      for (const std::int64_t end : {first, first + count}) {
        for (const std::int64_t change : {std::int64_t{0}, std::int64_t{sizes_.larger}}) {
          const std::int64_t x = (change + 2 * per_m - end) % per_m;
          const int s = static_cast<int>(x / share_);
          for (const int place : {s, s + 1}) {
            if (place > 0 && place < ranks_) places[n++] = place;
          }
        }
      }
      std::sort(places, places + n);
      n = static_cast<int>(std::unique(places, places + n) - places);
      std::int64_t offset = 0, slope = 0;
      for (int i = 0; i < n; ++i) {
        const int end = i + 1 < n ? places[i + 1] : ranks_;
        const std::int64_t value = at(places[i]);
        const std::int64_t grows = end - places[i] > 1 ? at(places[i] + 1) - value : 0;
        const std::int64_t begins = value - grows * places[i];
        changes_.push_back({places[i], begins - offset, grows - slope});
        offset = begins;
        slope = grows;
      }
    };
    for (int i = 0; i < list.runs(); ++i) {
      const Run& run = list.run(i);
      if (run.stride != 1) {
        for (int j = 0; j < run.count; ++j) {
          neighbours((std::int64_t{run.first} + std::int64_t{j} * run.stride) % per_m, 1);
        }
        continue;
      }
      // Blocks of rank pairs: sizes repeat for each source, every per_m blocks.
      for (std::int64_t b = run.first, end = b + run.count; b < end;) {
        const std::int64_t place = b % per_m, count = std::min(end - b, per_m - place);
        neighbours(place, count);
        b += count;
      }
    }
    std::sort(changes_.begin(), changes_.end(),
              [](const Change& a, const Change& b) { return a.rank < b.rank; });
    work_ += changes_.size();
    Times out(ranks_);
    std::int64_t offset = 0, slope = 0;
    for (std::size_t i = 0; i < changes_.size();) {
      const int rank = changes_[i].rank;
      for (; i < changes_.size() && changes_[i].rank == rank; ++i) {
        offset += changes_[i].offset;
        slope += changes_[i].slope;
      }
      const int end = i < changes_.size() ? changes_[i].rank : ranks_;
      out.append(end - rank, static_cast<Tick>(offset + slope * rank), static_cast<Tick>(slope));
    }
    return changes_.empty() ? zero_ : out;
  }

  struct Change {
    int rank;
    std::int64_t offset, slope;  // added to both from that rank on
  };

  const Rotation& rotation_;
  const int ranks_, share_;  // blocks of M per rank
  const TwoSizes sizes_;
  const std::size_t k_;
  const bool by_rounds_;
  const int planes_, blocks_;
  const Times zero_;
  Times begin_;  // the time at which unused ports become free
  Used send_, receive_;
  std::optional<CellTable<Id>> ready_;  // by block in the rank's numbering; dataflow only
  std::vector<Times> pool_;
  std::vector<Id> unused_;
  std::size_t kept_ = 0, live_ = 0, bytes_ = 0;
  struct {
    Id a = 0, b = 0, both = 0;
  } joined_;  // the last result of later()
  std::vector<Arrival> arrivals_;
  int heard_ = 0;
  mutable std::vector<Change> changes_;
  mutable std::uint64_t work_ = 0;
  Tick round_end_ = 0, end_ = 0;
  bool overflow_ = false;
};

}  // namespace rankine
