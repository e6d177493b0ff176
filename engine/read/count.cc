#include "engine/read/count.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "algorithms/schedule/everyone.h"
#include "engine/network/meetings.h"

namespace rankine {
namespace {

bool includes(const RankSet& set, Rank r) {
  bool found = false;
  set.for_each([&](Rank other) { found = found || other == r; });
  return found;
}

// Whether the set has anybody but r.
bool has_others(const RankSet& set, Rank r) { return set.size() > (includes(set, r) ? 1 : 0); }

class Counter {
 public:
  // `one`: whose part stands for all; nullptr: none does.
  Counter(const Schedule& schedule, const Everyone* one)
      : schedule_(one != nullptr ? one->part() : schedule),
        one_(one),
        counted_(one != nullptr ? 1 : static_cast<std::size_t>(schedule.ranks)),
        meetings_(schedule.ranks),
        now_(counted_.size()) {}

  Counts run() {
    for (int k = 0; k < schedule_.rounds; ++k) {
      for_each_transfer(schedule_, k, [this](const Transfer& t) { add(t); });
      if (!touched_.empty()) ++counts_.rounds;
      end_round();
    }
    const std::vector<int> partners = meetings_.numbers().partners;
    for (std::size_t r = 0; r < counted_.size(); ++r) counted_[r].partners = partners[r];
    counts_.ranks = std::move(counted_);
    if (one_ != nullptr) counts_.ranks.resize(partners.size(), RankCounts{counts_.ranks.front()});
    for (const RankCounts& rank : counts_.ranks) {
      merge(counts_.busiest, rank, [](auto a, auto b) { return std::max(a, b); });
      merge(counts_.total, rank, [](auto a, auto b) { return a + b; });
    }
    return std::move(counts_);
  }

 private:
  struct Ports {
    int sends = 0, receives = 0;
  };

  std::size_t index_of(Rank r) const { return one_ != nullptr ? 0 : static_cast<std::size_t>(r); }
  RankCounts& of(Rank r) { return counted_[index_of(r)]; }
  Ports& now(Rank r) {
    Ports& ports = now_[index_of(r)];
    if (ports.sends == 0 && ports.receives == 0) touched_.push_back(index_of(r));
    return ports;
  }

  void add(const Transfer& t) {
    const std::int64_t blocks = t.what.list.size();
    if (blocks == 0) return;
    t.from.for_each([&](Rank from) {
      if (!has_others(t.to, from)) return;
      of(from).sent += blocks;
      ++of(from).messages_sent;
      ++now(from).sends;
    });
    t.to.for_each([&](Rank to) {
      if (includes(t.from, to)) of(to).local += blocks;
      if (t.act == Act::reduce) of(to).reduced += blocks;  // what was pushed here before, as well
      if (!has_others(t.from, to)) return;
      of(to).received += blocks;
      ++of(to).messages_received;
      ++now(to).receives;
    });
    t.from.for_each([&](Rank from) {
      t.to.for_each([&](Rank to) {
        if (from != to) meetings_.add(from, to, one_);
      });
    });
  }

  void end_round() {
    for (const std::size_t r : touched_) {
      Ports& ports = now_[r];
      counted_[r].send_ports = std::max(counted_[r].send_ports, ports.sends);
      counted_[r].receive_ports = std::max(counted_[r].receive_ports, ports.receives);
      ports = {};
    }
    touched_.clear();
  }

  template <class Operation>
  static void merge(RankCounts& into, const RankCounts& from, Operation operation) {
    into.sent = operation(into.sent, from.sent);
    into.received = operation(into.received, from.received);
    into.reduced = operation(into.reduced, from.reduced);
    into.messages_sent = operation(into.messages_sent, from.messages_sent);
    into.messages_received = operation(into.messages_received, from.messages_received);
    into.partners = operation(into.partners, from.partners);
    into.send_ports = operation(into.send_ports, from.send_ports);
    into.receive_ports = operation(into.receive_ports, from.receive_ports);
    into.local = operation(into.local, from.local);
  }

  const Schedule& schedule_;   // what is gone through: all of it, or the part
  const Everyone* const one_;  // whose part it is
  std::vector<RankCounts> counted_;
  Counts counts_;
  Meetings meetings_;
  std::vector<Ports> now_;            // of this round
  std::vector<std::size_t> touched_;  // ranks with messages in this round
};

}  // namespace

Counts count(const Schedule& schedule, bool one_for_all) {
  return Counter(schedule, one_for_all ? everyone_in(schedule) : nullptr).run();
}

}  // namespace rankine
