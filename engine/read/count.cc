#include "engine/read/count.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace rankine {
namespace {

constexpr std::size_t kSmallestTable = 64;

// A set of pairs of ranks that is only ever added to.
class PairSet {
 public:
  // Whether the pair is new.
  bool insert(Rank a, Rank b) {
    if (a > b) std::swap(a, b);
    const std::uint64_t pair =
        1 + (static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint64_t>(b));
    if (2 * (held_ + 1) > table_.size()) grow();
    std::uint64_t& slot = table_[find(table_, pair)];
    if (slot == pair) return false;
    slot = pair;
    ++held_;
    return true;
  }

 private:
  static std::size_t find(const std::vector<std::uint64_t>& table, std::uint64_t pair) {
    std::size_t i = ((pair * 0x9e3779b97f4a7c15ULL) >> 24) & (table.size() - 1);
    while (table[i] != 0 && table[i] != pair) i = (i + 1) & (table.size() - 1);
    return i;
  }
  void grow() {
    std::vector<std::uint64_t> larger(std::max(kSmallestTable, 2 * table_.size()), 0);
    for (const std::uint64_t pair : table_) {
      if (pair != 0) larger[find(larger, pair)] = pair;
    }
    table_.swap(larger);
  }

  std::vector<std::uint64_t> table_;  // hash table, 0: free
  std::size_t held_ = 0;
};

bool contains(const RankSet& set, Rank r) {
  bool found = false;
  set.for_each([&](Rank other) { found = found || other == r; });
  return found;
}

// Whether the set has anybody but r.
bool has_others(const RankSet& set, Rank r) { return set.size() > (contains(set, r) ? 1 : 0); }

class Counter {
 public:
  explicit Counter(const Schedule& schedule) : schedule_(schedule) {
    counts_.ranks.resize(static_cast<std::size_t>(schedule.ranks));
    now_.resize(counts_.ranks.size());
  }

  Counts run() {
    for (int k = 0; k < schedule_.rounds; ++k) {
      for_each_transfer(schedule_, k, [this](const Transfer& t) { add(t); });
      if (!touched_.empty()) ++counts_.rounds;
      end_round();
    }
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

  RankCounts& of(Rank r) { return counts_.ranks[static_cast<std::size_t>(r)]; }
  Ports& now(Rank r) {
    Ports& ports = now_[static_cast<std::size_t>(r)];
    if (ports.sends == 0 && ports.receives == 0) touched_.push_back(r);
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
      if (contains(t.from, to)) of(to).local += blocks;
      if (t.act == Act::reduce) of(to).reduced += blocks;  // what was pushed here before, as well
      if (!has_others(t.from, to)) return;
      of(to).received += blocks;
      ++of(to).messages_received;
      ++now(to).receives;
    });
    t.from.for_each([&](Rank from) {
      t.to.for_each([&](Rank to) {
        if (from == to || !pairs_.insert(from, to)) return;
        ++of(from).partners;
        ++of(to).partners;
      });
    });
  }

  void end_round() {
    for (const Rank r : touched_) {
      Ports& ports = now_[static_cast<std::size_t>(r)];
      of(r).send_ports = std::max(of(r).send_ports, ports.sends);
      of(r).receive_ports = std::max(of(r).receive_ports, ports.receives);
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

  const Schedule& schedule_;
  Counts counts_;
  PairSet pairs_;
  std::vector<Ports> now_;     // of this round
  std::vector<Rank> touched_;  // ranks with messages in this round
};

}  // namespace

Counts count(const Schedule& schedule) { return Counter(schedule).run(); }

}  // namespace rankine
