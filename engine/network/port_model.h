// PortModel computes the times of a schedule's transfers by the port model, for the simulator and
// for the clocks on threads.
//
//   dataflow  messages are taken in the order the schedule states them; each starts at the earliest
//             time at which a send port of its sender and a receive port of its receiver are free
//             and its data have arrived. No backfilling: a port that waits for data waits.
//   rounds    a round starts when the last message of the round before has ended; within a round
//             the ports take messages in the order stated. The papers' formulas assume this.
//
// A message holds one port at either end from its start to its end; a multicast or ALU transfer
// holds a port at every rank that takes part, at once. A transfer of a rank to itself is local: it
// takes no ports, and no time but that of additions. The caller passes the cost of a transfer
// (prices.h).
//
// If the switch permutes, all messages of a round are one operation of it, and each port is set
// once for that operation: in a round, a port pays the greatest latency of its messages, once. So
// each end of a message pays, for its port, the part of the latency that the port has not paid in
// this round: the sender from the moment when its port is free and its data are there, the receiver
// from the moment when its port is free. When both ports are set, the rest of the cost passes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/schedule/schedule.h"
#include "engine/network/cells.h"
#include "engine/network/fabric.h"
#include "engine/network/prices.h"

namespace rankine {

// From one rank to one rank: on a wire, unless it is local. Multicasts and sums in a switch are no
// messages.
inline bool is_message(const Transfer& t) { return t.from.size() == 1 && t.to.size() == 1; }
inline bool is_local(const Transfer& t) { return is_message(t) && t.from.front() == t.to.front(); }

inline bool contains(const RankSet& set, Rank r) {
  bool found = false;
  set.for_each([&](Rank member) { found = found || member == r; });
  return found;
}

// The times at which the ports of each rank become free, in one direction. A message takes the port
// that is free first; in a tie, the port with the least number. So the ports that a rank has not
// used yet are its last ones and alike, and only used ports are stored: time grows with the
// logarithm of the used ports of a rank, and memory with their number, whatever the number of ports
// is.
template <class Tick>
class FreePorts {
 public:
  // k ports for each rank; 0: unlimited.
  FreePorts(std::size_t ranks, std::size_t k)
      : k_(k), unused_(k == 0 ? 0 : ranks, 0), used_(k > 1 ? ranks : 0) {}

  // Makes all ports of one rank, or of all ranks, free at `when`.
  void reset(std::size_t rank, Tick when) {
    if (k_ == 0) return;
    unused_[rank] = when;
    if (k_ > 1) used_[rank].clear();
  }
  void reset(Tick when) {
    std::fill(unused_.begin(), unused_.end(), when);
    for (std::vector<Used>& used : used_) used.clear();
  }
  // Begins a round, in which no port has paid a latency yet.
  void begin_round() { ++round_; }

  // The port that the next message takes (-1 if ports are unlimited), and the time at which it is
  // free.
  int next(std::size_t rank) const {
    if (k_ <= 1) return static_cast<int>(k_) - 1;
    return takes_unused(rank) ? static_cast<int>(used_[rank].size()) : used_[rank].front().port;
  }
  Tick free(std::size_t rank) const {
    if (k_ == 0) return 0;
    if (k_ == 1 || takes_unused(rank)) return unused_[rank];
    return used_[rank].front().free;
  }
  // The next message holds its port until `end`, which is not before free().
  void occupy(std::size_t rank, Tick end) {
    if (k_ == 0) return;
    if (k_ == 1) {
      unused_[rank] = end;
      return;
    }
    std::vector<Used>& used = used_[rank];
    if (takes_unused(rank)) {
      used.push_back({end, static_cast<int>(used.size())});
      std::push_heap(used.begin(), used.end(), std::greater<>());
      return;
    }
    sink(used, {end, used.front().port});
  }

  // The part of `once` that the next port has not paid in this round; pay() records the payment.
  Tick unpaid(std::size_t rank, Tick once) const {
    if (k_ == 0 || paid_.empty()) return once;
    const auto port = static_cast<std::size_t>(next(rank));
    if (port >= paid_[rank].size() || paid_[rank][port].round != round_) return once;
    return std::max<Tick>(0, once - paid_[rank][port].once);
  }
  void pay(std::size_t rank, Tick once) {
    if (k_ == 0 || once == 0) return;
    if (paid_.empty()) paid_.resize(unused_.size());
    const auto port = static_cast<std::size_t>(next(rank));
    if (port >= paid_[rank].size()) paid_[rank].resize(port + 1);
    Paid& paid = paid_[rank][port];
    paid = {paid.round == round_ ? std::max(paid.once, once) : once, round_};
  }

 private:
  struct Used {
    Tick free;
    int port;
    auto operator<=>(const Used&) const = default;
  };
  struct Paid {
    Tick once = 0;
    int round = 0;
  };

  bool takes_unused(std::size_t rank) const {
    const std::vector<Used>& used = used_[rank];
    return used.empty() || (used.size() < k_ && unused_[rank] < used.front().free);
  }
  // Replaces the least element by `what` and restores the heap.
  static void sink(std::vector<Used>& heap, const Used& what) {
    std::size_t at = 0;
    for (std::size_t child = 1; child < heap.size(); child = 2 * at + 1) {
      if (child + 1 < heap.size() && heap[child + 1] < heap[child]) ++child;
      if (!(heap[child] < what)) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = what;
  }

  std::size_t k_;
  // by rank: the time at which unused ports are free; with one port, at which it is free
  std::vector<Tick> unused_;
  std::vector<std::vector<Used>> used_;  // by rank: a heap, the first port to be free at the front
  // By rank and port: the greatest latency paid in a round; empty: no port has ever paid one.
  std::vector<std::vector<Paid>> paid_;
  int round_ = 1;
};

// Tick: 64 bits if all times fit, which is twice as fast, or 128. For one thread.
template <class Tick>
class PortModel {
 public:
  // A cost may be added to a time up to here without overflow.
  static constexpr Tick kLatest =
      sizeof(Tick) == 8 ? static_cast<Tick>(Tick{1} << 62) : static_cast<Tick>(Ticks{1} << 126);

  // For all ranks, which begin the schedule at their times in `starts`, or at 0 if it is empty.
  // Ports 0: unlimited, so that messages wait for data only; then all ranks start at 0.
  PortModel(const Schedule& schedule, const CollectiveSpec& goal, int ports, Sync sync,
            std::span<const Tick> starts = {})
      : PortModel(schedule, goal, ports, sync, nullptr, 0, schedule.ranks, starts) {}
  // For one rank: it learns the times of other ranks by ended().
  PortModel(const Schedule& schedule, const CollectiveSpec& goal, int ports, Sync sync, Rank only,
            Tick start = 0)
      : PortModel(schedule, goal, ports, sync, nullptr, only, 1, std::span(&start, 1)) {}
  // For one rank that stands for all, if every rank does the same work: the model takes one rank's
  // part only. The transfers that one transfer stands for start at once, since they meet at no
  // port; so after each, all ranks are as far as this one. `all` must outlive the model.
  PortModel(const RotationSymmetric& all, const CollectiveSpec& goal, int ports, Sync sync)
      : PortModel(all.part(), goal, ports, sync, &all.rotation(), 0, 1, {}) {}

  // In rounds, `before` is the time at which the round before ended, for all ranks. Dataflow
  // ignores it.
  void begin_round(Tick before) {
    send_.begin_round();
    receive_.begin_round();
    begin_ = round_end_ = by_rounds() ? before : 0;
    if (!by_rounds()) return;
    send_.reset(before);
    receive_.reset(before);
  }

  // Takes a transfer for all ranks that take part and returns its end. `once` is the latency in the
  // cost of a message if the switch permutes; otherwise 0.
  Tick take(const Transfer& t, Tick cost, Tick once = 0) {
    if (once != 0 && k_ != 0) return take_permuted(t, cost, once);
    if (is_message(t)) return take_message(t, t.from.front(), t.to.front(), cost);
    Tick start = begin_;
    t.from.for_each([&](Rank r) {
      start = std::max({start, data_ready(t, r), send_.free(index_of(r))});
    });
    t.to.for_each([&](Rank r) { start = std::max(start, receive_.free(index_of(r))); });
    const Tick end = checked(start + cost);
    t.from.for_each([&](Rank r) { send_.occupy(index_of(r), end); });
    t.to.for_each([&](Rank r) {
      receive_.occupy(index_of(r), end);
      arrive(t, r, end);
    });
    return end;
  }

  // The ports that the next transfer of a rank will take, counted from 0; -1 if unlimited.
  int next_send_port(Rank r) const { return send_.next(index_of(r)); }
  int next_receive_port(Rank r) const { return receive_.next(index_of(r)); }

  // The part of `once` that the port of the rank's next message has not paid in this round.
  Tick unpaid_send(Rank r, Tick once) const { return send_.unpaid(index_of(r), once); }
  Tick unpaid_receive(Rank r, Tick once) const { return receive_.unpaid(index_of(r), once); }

  // take() in two parts, for callers that know one rank only. ready(): the time at which the rank
  // could do its part, its port set. ended(): records the end of the transfer. The transfer takes
  // cost - once from the latest ready() of its ranks.
  Tick ready(const Transfer& t, Rank r, Tick once = 0) const {
    return able(t, r) + (once == 0             ? 0
                         : contains(t.from, r) ? unpaid_send(r, once)
                                               : unpaid_receive(r, once));
  }
  void ended(const Transfer& t, Rank r, Tick end, Tick once = 0) {
    const bool local = is_local(t);
    if (!local && contains(t.from, r)) {
      send_.pay(index_of(r), once);
      send_.occupy(index_of(r), end);
    }
    if (contains(t.to, r)) {
      if (!local) {
        receive_.pay(index_of(r), once);
        receive_.occupy(index_of(r), end);
      }
      arrive(t, r, end);
    }
    round_end_ = std::max(round_end_, end);
  }

  // Ends a round. A round reads the data from before it began, so its arrivals count from the next
  // round on.
  void end_round() {
    // A copy must remove the old arrival before any new one counts; if a rank receives once in the
    // round, one change does both.
    const auto alone = [this](const Arrival& a) { return heard_[a.rank] == 1; };
    for_each_arrival([&](const Arrival& a) { return a.replaces && !alone(a); },
                     [](const Arrival&, Tick& ready) { ready = 0; });
    for_each_arrival([](const Arrival&) { return true; },
                     [&](const Arrival& a, Tick& ready) {
                       ready = a.replaces && alone(a) ? a.time : std::max(ready, a.time);
                     });
    for (const Arrival& a : arrivals_) heard_[a.rank] = 0;
    arrivals_.clear();
    end_ = std::max(end_, round_end_);
  }

  // The end of the last message of the last round ended; and the end of all messages, at least the
  // latest start of a rank.
  Tick round_end() const { return round_end_; }
  Tick end() const { return end_; }
  // The work of following the data: values of cells and stretches read or changed, searches for
  // stretches, and the bytes of all notes now.
  std::uint64_t values() const { return values_; }
  std::uint64_t searches() const { return searches_; }
  std::size_t bytes() const {
    return (ready_ ? ready_->held() * sizeof(Tick) : 0) + arrivals_.size() * sizeof(Arrival);
  }
  // True if a time exceeded the type: then no time is valid.
  bool overflowed() const { return overflow_; }

 private:
  struct Arrival {
    std::size_t rank;
    int plane;
    Run blocks;
    Tick time;
    bool replaces;  // a copy: earlier arrivals in the cell no longer matter
  };

  // A rank's own data are there at its start time, and its ports become free then. No data leave
  // before, so the ports alone express the start.
  PortModel(const Schedule& schedule, const CollectiveSpec& goal, int ports, Sync sync,
            const Rotation* rotation, Rank first, int count, std::span<const Tick> starts)
      : sync_(sync),
        rotation_(rotation),
        first_(first),
        k_(static_cast<std::size_t>(ports)),
        send_(static_cast<std::size_t>(count), k_),
        receive_(send_) {
    for (std::size_t r = 0; r < starts.size(); ++r) {
      send_.reset(r, starts[r]);
      receive_.reset(r, starts[r]);
      end_ = std::max(end_, starts[r]);
    }
    if (by_rounds()) return;
    ready_.emplace(schedule, goal, static_cast<std::size_t>(count));
    heard_.resize(static_cast<std::size_t>(count), 0);
  }

  bool by_rounds() const { return sync_ == Sync::rounds; }
  Tick checked(Tick end) {
    if (end <= kLatest) [[likely]]
      return end;
    overflow_ = true;
    return kLatest;
  }

  // The time at which a rank could do its part; the time to set its port is not included.
  Tick able(const Transfer& t, Rank r) const {
    Tick when = begin_;
    const bool local = is_local(t);
    if (contains(t.from, r)) {
      when = std::max(when, data_ready(t, r));
      if (!local) when = std::max(when, send_.free(index_of(r)));
    }
    if (!local && contains(t.to, r)) when = std::max(when, receive_.free(index_of(r)));
    return when;
  }

  std::size_t index_of(Rank r) const {
    return rotation_ != nullptr ? 0 : static_cast<std::size_t>(r - first_);
  }
  // visit(Run) for the blocks of a list in the numbering of the rank's own cells.
  template <class Visit>
  void for_each_run(const IndexList& list, Rank r, const Visit& visit) const {
    if (rotation_ == nullptr) [[likely]] {
      for (int i = 0; i < list.runs(); ++i) visit(list.run(i));
      return;
    }
    const IndexList own = rotation_->rotated(list, rotation_->back(r));
    for (int i = 0; i < own.runs(); ++i) visit(own.run(i));
  }

  Tick take_permuted(const Transfer& t, Tick cost, Tick once) {
    const Rank from = t.from.front(), to = t.to.front();
    const Tick start = std::max(ready(t, from, once), ready(t, to, once));
    const Tick end = checked(start + (cost - once));
    send_.pay(index_of(from), once);
    receive_.pay(index_of(to), once);
    send_.occupy(index_of(from), end);
    receive_.occupy(index_of(to), end);
    arrive(t, to, end);
    return end;
  }

  // A faster take() for messages, which are most transfers.
  Tick take_message(const Transfer& t, Rank from, Rank to, Tick cost) {
    Tick end = data_ready(t, from);
    if (from != to && k_ != 0) {
      const std::size_t out = index_of(from), in = index_of(to);
      end = checked(std::max({end, send_.free(out), receive_.free(in)}) + cost);
      send_.occupy(out, end);
      receive_.occupy(in, end);
    } else {
      end = checked(end + cost);
    }
    arrive(t, to, end);
    return end;
  }

  // In rounds, all data of the rounds before are there.
  Tick data_ready(const Transfer& t, Rank r) const {
    if (by_rounds()) return begin_;
    Tick ready = 0;
    for_each_run(t.what.list, r, [&](const Run& run) {
      searches_ += ready_->in_stretches() ? 1 : 0;
      ready_->read(index_of(r), t.what.plane, run, [&](Block, int, Tick there) {
        ready = std::max(ready, there);
        ++values_;
      });
    });
    return ready;
  }
  void arrive(const Transfer& t, Rank to, Tick end) {
    round_end_ = std::max(round_end_, end);
    if (by_rounds() || t.where.list.empty()) return;
    ++heard_[index_of(to)];
    for_each_run(t.where.list, to, [&](const Run& run) {
      arrivals_.push_back({index_of(to), t.where.plane, run, end, t.kind == TransferKind::copy});
    });
  }
  // Visits the arrivals for which wanted(arrival) is true.
  template <class Wanted, class Visit>
  void for_each_arrival(const Wanted& wanted, const Visit& visit) {
    constexpr std::size_t kAhead = 16;
    for (std::size_t i = 0; i < arrivals_.size(); ++i) {
      if (i + kAhead < arrivals_.size()) {
        const Arrival& later = arrivals_[i + kAhead];
        ready_->will_need(later.rank, later.plane, later.blocks.first);
      }
      const Arrival& a = arrivals_[i];
      if (!wanted(a)) continue;
      searches_ += ready_->in_stretches() ? 1 : 0;
      ready_->change(a.rank, a.plane, a.blocks, [&](Block, int, Tick& ready) {
        visit(a, ready);
        ++values_;
      });
    }
  }

  const Sync sync_;
  const Rotation* const rotation_;  // set if one rank stands for all
  const Rank first_;                // the first rank that the model knows
  const std::size_t k_;
  FreePorts<Tick> send_, receive_;
  // The arrival time of each cell's data; 0 if there from the start. Dataflow only.
  std::optional<CellTable<Tick>> ready_;
  std::vector<Arrival> arrivals_;  // in this round
  std::vector<int> heard_;         // by rank: transfers that its arrivals belong to
  mutable std::uint64_t values_ = 0, searches_ = 0;
  Tick begin_ = 0, round_end_ = 0, end_ = 0;
  bool overflow_ = false;
};

}  // namespace rankine
