#include "algorithms/schedule/in_time.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "algorithms/schedule/everyone.h"

namespace rankine {
namespace {

using Time = std::int64_t;
using Times = std::vector<Time>;
using Round = std::vector<Transfer>;

constexpr int kSteps = 4096;  // of one search
constexpr Time kAlphas[] = {0, 1};

// Whether the messages from i on, falling, fit into what is left of every port.
bool fit(const Times& falling, std::size_t i, Times& left) {
  if (i == falling.size()) return true;
  std::set<Time> tried;
  for (Time& port : left) {
    if (port < falling[i] || !tried.insert(port).second) continue;
    port -= falling[i];
    if (fit(falling, i + 1, left)) return true;
    port += falling[i];
  }
  return false;
}

// Not more than the least: the total shared out, and for every j the j + 1 shortest of the first
// j k + 1, of which j + 1 share a port.
Time at_least(const Times& falling, int k) {
  const Time total = std::accumulate(falling.begin(), falling.end(), Time{0});
  Time least = (total + k - 1) / k;
  const auto ports = static_cast<std::size_t>(k);
  for (std::size_t j = 0; j * ports < falling.size(); ++j) {
    Time together = 0;
    for (std::size_t i = j * ports - j; i <= j * ports; ++i) together += falling[i];
    least = std::max(least, together);
  }
  return least;
}

// A message as ports see it; of everyone's part all ranks are 0.
struct Message {
  Rank from, to;
  Time blocks;
};
using Matching = std::vector<std::size_t>;  // which transfers of the round

// When k ports of every rank are free, if a message costs alpha more than its blocks.
class Clock {
 public:
  Clock(int ranks, int k, Time alpha)
      : k_(k),
        alpha_(alpha),
        sends_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(k), 0),
        receives_(sends_) {}
  // When it is carried. `note` hears of the two times before they change.
  template <class Note>
  Time take(const Message& m, const Note& note) {
    Time& out = *earliest(sends_, m.from);
    Time& in = *earliest(receives_, m.to);
    note(out);
    note(in);
    return out = in = std::max(out, in) + alpha_ + m.blocks;
  }
  int ports() const { return k_; }
  Time alpha() const { return alpha_; }

 private:
  Times::iterator earliest(Times& ports, Rank r) const {
    const auto first = ports.begin() + std::ptrdiff_t{r} * k_;
    return std::min_element(first, first + k_);
  }
  int k_;
  Time alpha_;
  Times sends_, receives_;
};

// One round.
class Order {
 public:
  Order(int ranks, bool of_one, const Round& round) : ranks_(of_one ? 1 : ranks) {
    std::set<Rank> senders, receivers;
    for (std::size_t i = 0; i < round.size(); ++i) {
      const Rank from = round[i].from.front(), to = round[i].to.front();
      const Time blocks = round[i].what.list.size();
      const bool on_ports = from != to;  // local work takes none
      messages_.push_back(on_ports
                              ? std::optional<Message>({of_one ? 0 : from, of_one ? 0 : to, blocks})
                              : std::nullopt);
      if (matchings_.empty() || of_one ||
          (on_ports && (senders.count(from) + receivers.count(to) > 0))) {
        matchings_.emplace_back();
        senders.clear();
        receivers.clear();
      }
      matchings_.back().push_back(i);
      if (on_ports) {
        senders.insert(from);
        receivers.insert(to);
      }
    }
  }

  // The transfers in an order that does.
  std::vector<std::size_t> found() {
    std::vector<std::size_t> stated(messages_.size());
    std::iota(stated.begin(), stated.end(), std::size_t{0});
    if (!find_limits()) return stated;
    std::vector<std::size_t> out;
    std::vector<bool> taken(matchings_.size(), false);
    clocks_ = clocks();
    return search(taken, out) ? out : stated;
  }

 private:
  std::vector<Clock> clocks() const {
    std::vector<Clock> out;
    for (int k = 1; k < most_; ++k) {
      for (const Time alpha : kAlphas) out.emplace_back(ranks_, k, alpha);
    }
    return out;
  }

  // What every clock's busiest port needs; false where the order stated does.
  bool find_limits() {
    std::map<std::pair<Rank, bool>, Times> of_ends;
    for (const auto& m : messages_) {
      if (!m) continue;
      of_ends[{m->from, true}].push_back(m->blocks);
      of_ends[{m->to, false}].push_back(m->blocks);
    }
    std::set<Times> different;
    for (auto& [end, lengths] : of_ends) {
      most_ = std::max(most_, static_cast<int>(lengths.size()));
      std::sort(lengths.rbegin(), lengths.rend());
      different.insert(lengths);
    }
    bool late = false;
    for (Clock& clock : clocks()) {
      Time took = 0;
      for (const auto& m : messages_) {
        if (m) took = std::max(took, clock.take(*m, [](Time&) {}));
      }
      const auto needed = [&](const auto& of_lengths) {
        Time most = 0;
        for (Times lengths : different) {
          for (Time& length : lengths) length += clock.alpha();
          most = std::max(most, of_lengths(lengths, clock.ports()));
        }
        return most;
      };
      limits_.push_back(took == needed(at_least) ? took : needed(least_time));
      late = late || took > limits_.back();
    }
    return late;
  }

  // Appends the matchings that are not taken.
  bool search(std::vector<bool>& taken, std::vector<std::size_t>& out) {
    if (out.size() == messages_.size()) return true;
    const std::size_t before = changes_.size();
    for (std::size_t i = 0; i < matchings_.size(); ++i) {
      if (taken[i]) continue;
      if (++steps_ > kSteps) return false;
      if (take(matchings_[i])) {
        taken[i] = true;
        out.insert(out.end(), matchings_[i].begin(), matchings_[i].end());
        if (search(taken, out)) return true;
        out.resize(out.size() - matchings_[i].size());
        taken[i] = false;
      }
      take_back(before);
    }
    return false;
  }

  // False where one is late then.
  bool take(const Matching& matching) {
    const auto note = [this](Time& time) { changes_.emplace_back(&time, time); };
    for (std::size_t c = 0; c < clocks_.size(); ++c) {
      for (const std::size_t i : matching) {
        if (messages_[i] && clocks_[c].take(*messages_[i], note) > limits_[c]) return false;
      }
    }
    return true;
  }
  // All changes but the first so many.
  void take_back(std::size_t all_but) {
    for (; changes_.size() > all_but; changes_.pop_back()) {
      *changes_.back().first = changes_.back().second;
    }
  }

  const int ranks_;
  int most_ = 0;  // messages at one end of a rank
  int steps_ = 0;
  std::vector<std::optional<Message>> messages_;
  std::vector<Matching> matchings_;
  Times limits_;
  std::vector<Clock> clocks_;                      // of the search
  std::vector<std::pair<Time*, Time>> changes_{};  // of their times, with what they were
};

bool is_one_to_one(const Transfer& t) { return t.from.size() == 1 && t.to.size() == 1; }

// of_one: it is one rank's part, of which each transfer is one of every rank.
Schedule in_time(Schedule a, bool of_one) {
  Schedule out = a;
  out.round = [a = std::move(a), of_one](int k, Send send) {
    Round round;
    take_each_transfer(a, k, [&round](Transfer&& t) { round.push_back(std::move(t)); });
    if (!std::all_of(round.begin(), round.end(), is_one_to_one)) {
      for (Transfer& t : round) send.exactly(std::move(t));
      return;
    }
    for (const std::size_t i : Order(a.ranks, of_one, round).found()) {
      send.exactly(std::move(round[i]));
    }
  };
  return out;
}

}  // namespace

std::int64_t least_time(const Times& falling, int ports) {
  for (Time t = at_least(falling, ports);; ++t) {
    Times left(static_cast<std::size_t>(ports), t);
    if (fit(falling, 0, left)) return t;
  }
}

Schedule in_time(Schedule a) {
  const Everyone* all = everyone_in(a);
  if (all == nullptr) return in_time(std::move(a), false);
  Schedule out = a;
  out.round = Everyone(in_time(all->part(), true), all->rotation());
  return out;
}

}  // namespace rankine
