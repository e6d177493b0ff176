// The port model, once for all that tell time by it: the simulator, and the clocks on threads.
//
//   dataflow  messages are taken in the order the schedule states them; each starts at the earliest
//             time at which a send port of its sender and a receive port of its receiver are free
//             and what it carries has arrived. No backfilling: a port that waits for data waits.
//   rounds    a round starts when the last message of the round before has ended; within a round
//             the ports take messages in the order stated. What the papers' formulas mean.
//
// A message holds one port at either end from its start to its end; so does a multicast or ALU
// transfer at all who touch it, at once. A transfer of a rank to itself is local: it takes no
// ports, and no time but what adding up takes. What a transfer costs is the caller's to say
// (round_prices.h).
//
// Where the switch permutes, all messages of a round are one operation of it, and each port is set
// for that once: of the latencies of the messages that it carries in a round it pays the greatest,
// once. So each end of a message pays for its own port what of the latency that port has not paid
// in this round: the sender's from when the port is free and the data are there, the receiver's
// from when its port is free. When both are set the rest of the cost passes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/everyone.h"
#include "algorithms/schedule/schedule.h"
#include "engine/network/cells.h"
#include "engine/network/ticks.h"
#include "engine/network/timing.h"

namespace rankine {

// From one to one: on a wire, unless it is local. Not so multicasts and sums in a switch.
inline bool is_message(const Transfer& t) { return t.from.size() == 1 && t.to.size() == 1; }
inline bool is_local(const Transfer& t) { return is_message(t) && t.from.front() == t.to.front(); }

inline bool contains(const RankSet& set, Rank r) {
  bool found = false;
  set.for_each([&](Rank member) { found = found || member == r; });
  return found;
}

// Tick: 64 bits where all times fit, which is twice as fast, or 128. For one thread.
template <class Tick>
class PortModel {
 public:
  // A cost may be added to a time up to here without overflow.
  static constexpr Tick kLatest =
      sizeof(Tick) == 8 ? static_cast<Tick>(Tick{1} << 62) : static_cast<Tick>(Ticks{1} << 126);

  // Of all ranks, which come to the schedule at their times of `starts`, or all at 0 where it is
  // empty. Ports 0: any number of them, so that messages wait for data only; all start at 0 then.
  PortModel(const Schedule& schedule, const Goal& goal, int ports, Sync sync,
            std::span<const Tick> starts = {})
      : PortModel(schedule, goal, ports, sync, nullptr, 0, schedule.ranks, starts) {}
  // Of one: a clock of its own, which hears of other ranks' times from them.
  PortModel(const Schedule& schedule, const Goal& goal, int ports, Sync sync, Rank only,
            Tick start = 0)
      : PortModel(schedule, goal, ports, sync, nullptr, only, 1, std::span(&start, 1)) {}
  // Of one that stands for all, where everyone does the same: it is asked for one rank's part only.
  // All that a transfer of it stands for start at once, since they meet at no port; so after each
  // all ranks are as far as this one. `all` must outlive it.
  PortModel(const Everyone& all, const Goal& goal, int ports, Sync sync)
      : PortModel(all.part(), goal, ports, sync, &all.rotation(), 0, 1, {}) {}

  // By rounds: the one before ended then, of all ranks. Of a dataflow that makes no difference.
  void begin_round(Tick before) {
    std::fill(send_paid_.begin(), send_paid_.end(), 0);
    std::fill(receive_paid_.begin(), receive_paid_.end(), 0);
    begin_ = round_end_ = by_rounds() ? before : 0;
    if (!by_rounds()) return;
    std::fill(send_.begin(), send_.end(), before);
    std::fill(receive_.begin(), receive_.end(), before);
  }

  // Takes a transfer with all who touch it: when it ends. `once`: of the cost of a message the
  // latency, where the switch permutes; else 0.
  Tick take(const Transfer& t, Tick cost, Tick once = 0) {
    if (once != 0 && k_ != 0) return take_permuted(t, cost, once);
    if (is_message(t)) return take_message(t, t.from.front(), t.to.front(), cost);
    Tick start = begin_;
    t.from.for_each([&](Rank r) { start = std::max({start, data_ready(t, r), free(send_, r)}); });
    t.to.for_each([&](Rank r) { start = std::max(start, free(receive_, r)); });
    const Tick end = checked(start + cost);
    t.from.for_each([&](Rank r) { occupy(send_, r, end); });
    t.to.for_each([&](Rank r) {
      occupy(receive_, r, end);
      arrive(t, r, end);
    });
    return end;
  }

  // The ports that the next transfer of those ranks will take, counted from 0; -1 without a limit.
  int next_send_port(Rank r) const { return next_port(send_, r); }
  int next_receive_port(Rank r) const { return next_port(receive_, r); }

  // Of `once`, what the port that the next message of that rank takes has not paid in this round.
  Tick unpaid_send(Rank r, Tick once) const { return unpaid(send_, send_paid_, r, once); }
  Tick unpaid_receive(Rank r, Tick once) const { return unpaid(receive_, receive_paid_, r, once); }

  // take() for those who know of one rank only: when it could do its part, its port set; and that
  // the transfer ended then. From the latest of ready() it takes cost - once.
  Tick ready(const Transfer& t, Rank r, Tick once = 0) const {
    return able(t, r) + (once == 0             ? 0
                         : contains(t.from, r) ? unpaid_send(r, once)
                                               : unpaid_receive(r, once));
  }
  void ended(const Transfer& t, Rank r, Tick end, Tick once = 0) {
    const bool local = is_local(t);
    if (!local && contains(t.from, r)) {
      pay(send_, send_paid_, r, once);
      occupy(send_, r, end);
    }
    if (contains(t.to, r)) {
      if (!local) {
        pay(receive_, receive_paid_, r, once);
        occupy(receive_, r, end);
      }
      arrive(t, r, end);
    }
    round_end_ = std::max(round_end_, end);
  }

  // A round reads what was there when it began, so its arrivals count from the next one on.
  void end_round() {
    // What a copy replaces must be gone before anything in its place counts: where a rank hears
    // once in a round both are one change.
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

  // When the last message of the round ended that was ended last; and the last one of all, or the
  // last rank started.
  Tick round_end() const { return round_end_; }
  Tick end() const { return end_; }
  // What following the data takes: values of cells, and of stretches of them, that were read or
  // changed so far; how often stretches were looked for; and bytes of all that is noted at this
  // moment.
  std::uint64_t values() const { return values_; }
  std::uint64_t searches() const { return searches_; }
  std::size_t bytes() const {
    return (ready_ ? ready_->held() * sizeof(Tick) : 0) + arrivals_.size() * sizeof(Arrival);
  }
  // Times left the type: none of them means anything.
  bool overflowed() const { return overflow_; }

 private:
  struct Arrival {
    std::size_t rank;
    int plane;
    Run blocks;
    Tick time;
    bool replaces;  // a copy: what was there before does not matter
  };
  using Ports = std::vector<Tick>;  // by rank: when each is free again. k is small

  // What a rank brings is there when it starts, and its ports are free then: nothing of it moves
  // before, and the ports alone say so.
  PortModel(const Schedule& schedule, const Goal& goal, int ports, Sync sync,
            const Rotation* rotation, Rank first, int count, std::span<const Tick> starts)
      : sync_(sync),
        rotation_(rotation),
        first_(first),
        k_(static_cast<std::size_t>(ports)),
        send_(static_cast<std::size_t>(count) * k_, 0) {
    for (std::size_t r = 0; r < starts.size(); ++r) {
      std::fill_n(send_.begin() + static_cast<std::ptrdiff_t>(r * k_), k_, starts[r]);
      end_ = std::max(end_, starts[r]);
    }
    receive_ = send_;
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

  // When a rank could do its part, its port set.
  Tick able(const Transfer& t, Rank r) const {
    Tick when = begin_;
    const bool local = is_local(t);
    if (contains(t.from, r)) {
      when = std::max(when, data_ready(t, r));
      if (!local) when = std::max(when, free(send_, r));
    }
    if (!local && contains(t.to, r)) when = std::max(when, free(receive_, r));
    return when;
  }

  std::size_t index_of(Rank r) const {
    return rotation_ != nullptr ? 0 : static_cast<std::size_t>(r - first_);
  }
  // visit(Run) for the blocks of a list as a rank's own cells number them.
  template <class Visit>
  void for_each_run(const IndexList& list, Rank r, const Visit& visit) const {
    if (rotation_ == nullptr) [[likely]] {
      for (int i = 0; i < list.runs(); ++i) visit(list.run(i));
      return;
    }
    const IndexList own = rotation_->rotated(list, rotation_->back(r));
    for (int i = 0; i < own.runs(); ++i) visit(own.run(i));
  }
  std::size_t earliest(const Ports& ports, Rank r) const {
    const std::size_t first = index_of(r) * k_;
    if (k_ == 1) return first;
    const auto begin = ports.begin() + static_cast<std::ptrdiff_t>(first);
    const auto least = std::min_element(begin, begin + static_cast<std::ptrdiff_t>(k_));
    return static_cast<std::size_t>(least - ports.begin());
  }
  int next_port(const Ports& ports, Rank r) const {
    return k_ == 0 ? -1 : static_cast<int>(earliest(ports, r) - index_of(r) * k_);
  }
  Tick free(const Ports& ports, Rank r) const { return k_ == 0 ? 0 : ports[earliest(ports, r)]; }
  void occupy(Ports& ports, Rank r, Tick end) {
    if (k_ != 0) ports[earliest(ports, r)] = end;
  }
  Tick unpaid(const Ports& ports, const Ports& paid, Rank r, Tick once) const {
    if (k_ == 0 || paid.empty()) return once;
    return std::max<Tick>(0, once - paid[earliest(ports, r)]);
  }
  // Before the port is occupied.
  void pay(const Ports& ports, Ports& paid, Rank r, Tick once) {
    if (k_ == 0 || once == 0) return;
    if (paid.empty()) paid.assign(ports.size(), 0);
    Tick& so_far = paid[earliest(ports, r)];
    so_far = std::max(so_far, once);
  }

  Tick take_permuted(const Transfer& t, Tick cost, Tick once) {
    const Rank from = t.from.front(), to = t.to.front();
    const Tick start = std::max(ready(t, from, once), ready(t, to, once));
    const Tick end = checked(start + (cost - once));
    pay(send_, send_paid_, from, once);
    pay(receive_, receive_paid_, to, once);
    occupy(send_, from, end);
    occupy(receive_, to, end);
    arrive(t, to, end);
    return end;
  }

  // The same of most transfers, faster.
  Tick take_message(const Transfer& t, Rank from, Rank to, Tick cost) {
    Tick end = data_ready(t, from);
    if (from != to && k_ != 0) {
      Tick& out = send_[earliest(send_, from)];
      Tick& in = receive_[earliest(receive_, to)];
      end = out = in = checked(std::max({end, out, in}) + cost);
    } else {
      end = checked(end + cost);
    }
    arrive(t, to, end);
    return end;
  }

  // In rounds everything of the rounds before is there.
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
      arrivals_.push_back({index_of(to), t.where.plane, run, end, t.act == Act::copy});
    });
  }
  // Of those that are wanted(arrival).
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
  const Rotation* const rotation_;  // where one rank stands for all
  const Rank first_;                // of those that it knows of
  const std::size_t k_;
  Ports send_, receive_;
  // By port: the latency that it has paid in the round at hand; empty: no port has any.
  Ports send_paid_, receive_paid_;
  // When what lies in a cell arrived; 0 where it was there from the start. Dataflow only.
  std::optional<CellTable<Tick>> ready_;
  std::vector<Arrival> arrivals_;  // of the round at hand
  std::vector<int> heard_;         // by rank: transfers that they belong to
  mutable std::uint64_t values_ = 0, searches_ = 0;
  Tick begin_ = 0, round_end_ = 0, end_ = 0;
  bool overflow_ = false;
};

}  // namespace rankine
