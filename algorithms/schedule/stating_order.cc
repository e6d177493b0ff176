#include "algorithms/schedule/stating_order.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "algorithms/schedule/rotation_symmetric.h"

namespace rankine {
namespace {

constexpr int kNone = -1;

// The colours of edges at the ends of all ranks on one side. A rank has room for as many as it has
// edges: the leaves of a tree have one each, however many their parents have.
class Ends {
 public:
  // `end`: the side, as a member of Edge.
  Ends(int ranks, const std::vector<Edge>& edges, Rank Edge::*end)
      : rows_(static_cast<std::size_t>(ranks)), ends_(edges.size()) {
    for (const Edge& edge : edges) ++row(edge.*end).room;
    int first = 0;
    for (Row& row : rows_) {
      row.first = first;
      first += row.room;
      most_ = std::max(most_, row.room);
    }
  }
  int most() const { return most_; }  // edges of one rank

  int at(Rank r, int colour) const {
    const Row& row = rows_[static_cast<std::size_t>(r)];
    const auto there = place_of(row, colour);
    return there != end_of(row) && there->colour == colour ? there->edge : kNone;
  }
  int least_free(Rank r) const { return rows_[static_cast<std::size_t>(r)].least_free; }

  // paint() needs a free colour there; clear() makes it free again.
  void paint(Rank r, int colour, int edge) {
    Row& row = this->row(r);
    const auto there = ends_.begin() + (place_of(row, colour) - ends_.cbegin());
    std::move_backward(there, begin_of(row) + row.used, begin_of(row) + row.used + 1);
    *there = {colour, edge};
    ++row.used;
    while (at(r, row.least_free) != kNone) ++row.least_free;
  }
  void clear(Rank r, int colour) {
    Row& row = this->row(r);
    const auto there = ends_.begin() + (place_of(row, colour) - ends_.cbegin());
    std::move(there + 1, begin_of(row) + row.used, there);
    --row.used;
    row.least_free = std::min(row.least_free, colour);
  }

 private:
  struct End {
    int colour = kNone, edge = kNone;
  };
  struct Row {  // of a rank: by colour, rising
    int first = 0, room = 0, used = 0, least_free = 0;
  };

  Row& row(Rank r) { return rows_[static_cast<std::size_t>(r)]; }
  std::vector<End>::iterator begin_of(const Row& row) { return ends_.begin() + row.first; }
  std::vector<End>::const_iterator end_of(const Row& row) const {
    return ends_.begin() + row.first + row.used;
  }
  // The position of that colour, or its position if it were there.
  std::vector<End>::const_iterator place_of(const Row& row, int colour) const {
    return std::lower_bound(ends_.begin() + row.first, end_of(row), colour,
                            [](const End& end, int c) { return end.colour < c; });
  }

  std::vector<Row> rows_;
  std::vector<End> ends_;
  int most_ = 0;
};

bool takes_two_ports(const Transfer& t) {
  return t.from.size() == 1 && t.to.size() == 1 && t.from.front() != t.to.front();
}

void state_coloured(int ranks, std::vector<Transfer>&& round, Send send) {
  if (!std::all_of(round.begin(), round.end(), takes_two_ports)) {
    for (Transfer& t : round) send.exactly(std::move(t));
    return;
  }
  // By length, falling, then by colour, then as stated.
  std::vector<std::tuple<int, int, std::size_t>> order;
  for (std::size_t i = 0; i < round.size(); ++i) {
    order.emplace_back(-round[i].what.list.size(), 0, i);
  }
  std::sort(order.begin(), order.end());
  for (std::size_t first = 0; first < order.size();) {
    std::vector<Edge> edges;
    std::size_t end = first;
    for (; end < order.size() && std::get<0>(order[end]) == std::get<0>(order[first]); ++end) {
      const Transfer& t = round[std::get<2>(order[end])];
      edges.push_back({t.from.front(), t.to.front()});
    }
    const std::vector<int> colours = edge_colours(ranks, edges);
    for (std::size_t i = first; i < end; ++i) std::get<1>(order[i]) = colours[i - first];
    first = end;
  }
  std::sort(order.begin(), order.end());
  for (const auto& [length, colour, i] : order) send.exactly(std::move(round[i]));
}

}  // namespace

std::vector<int> edge_colours(int ranks, const std::vector<Edge>& edges) {
  Ends sent(ranks, edges, &Edge::from), received(ranks, edges, &Edge::to);
  const int all = std::max(sent.most(), received.most());
  if (all <= 1) return std::vector<int>(edges.size(), 0);
  std::vector<int> colour(edges.size(), kNone);
  const auto paint = [&](int edge, int with) {
    colour[static_cast<std::size_t>(edge)] = with;
    sent.paint(edges[static_cast<std::size_t>(edge)].from, with, edge);
    received.paint(edges[static_cast<std::size_t>(edge)].to, with, edge);
  };
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const auto [from, to] = edges[i];
    const int at_sender = sent.least_free(from), at_receiver = received.least_free(to);
    int at_both = kNone;  // the least colour that is free at both
    for (int c = std::max(at_sender, at_receiver); c < all && at_both == kNone; ++c) {
      if (sent.at(from, c) == kNone && received.at(to, c) == kNone) at_both = c;
    }
    if (at_both == kNone) {
      // The edges of this path from the receiver have these two colours in turn. It never reaches
      // the sender, which it would enter by the colour that is free there; so the path can swap the
      // colours, and the sender's is then free at both ends.
      std::vector<int> path;
      int wanted = at_sender;
      bool by_receiver = true;
      for (Rank r = to;;) {
        const int edge = by_receiver ? received.at(r, wanted) : sent.at(r, wanted);
        if (edge == kNone) break;
        path.push_back(edge);
        const Edge& on = edges[static_cast<std::size_t>(edge)];
        r = by_receiver ? on.from : on.to;
        by_receiver = !by_receiver;
        wanted = wanted == at_sender ? at_receiver : at_sender;
      }
      for (const int edge : path) {
        const Edge& on = edges[static_cast<std::size_t>(edge)];
        sent.clear(on.from, colour[static_cast<std::size_t>(edge)]);
        received.clear(on.to, colour[static_cast<std::size_t>(edge)]);
      }
      for (const int edge : path) {
        const int old = colour[static_cast<std::size_t>(edge)];
        paint(edge, old == at_sender ? at_receiver : at_sender);
      }
      at_both = at_sender;
    }
    paint(static_cast<int>(i), at_both);
  }
  return colour;
}

Schedule coloured(Schedule a) {
  Schedule out = a;
  out.round = [a = std::move(a)](int k, Send send) {
    std::vector<Transfer> round;
    take_each_transfer(a, k, [&round](Transfer&& t) { round.push_back(std::move(t)); });
    state_coloured(a.ranks, std::move(round), send);
  };
  return out;
}

namespace {

using Time = std::int64_t;
using Times = std::vector<Time>;
using Round = std::vector<Transfer>;

// The number of times that clocks may take each message in a search among matchings; and any
// messages in one search among their parts, and in all of these.
constexpr int kOfEach = 6144;
constexpr int kSteps = 1 << 17, kAllSteps = 1 << 18;

// The cost of a message: alpha, and beta for every block.
struct Price {
  Time alpha, beta;
};
constexpr Price kPrices[] = {{0, 1}, {1, 1}, {1, 0}};

// True if the messages from i on, falling, fit into the remaining time of the ports.
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

// A lower bound of the least time: the total shared out, and for every j the j + 1 shortest of the
// first j k + 1, of which j + 1 share a port.
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

// A message as ports see it; in one rank's part that stands for all, all ranks are 0.
struct Message {
  Rank from, to;
  Time blocks;
};
using Part = std::vector<std::size_t>;  // transfers of the round; no rank appears twice

// The messages and blocks that an end of a rank has yet to carry in the round.
struct Left {
  Time messages = 0, blocks = 0;
};

// The times at which k ports of every rank become free at a price.
class Clock {
 public:
  Clock(int ranks, int k, Price price)
      : k_(k),
        price_(price),
        sends_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(k), 0),
        receives_(sends_) {}
  Time cost(Time blocks) const { return cost({1, blocks}); }
  int ports() const { return k_; }
  // Sets the time by which all messages must have ended.
  void must_end(Time limit) { limit_ = limit; }

  // Carries a message and returns its end.
  Time take(const Message& m) {
    return take(m, [](Time&) {});
  }
  // As take(); calls `note` with times before they change. Returns false if the message ends too
  // late, or if the remaining messages of its ends do not fit into the remaining time of their
  // ports.
  template <class Note>
  bool in_time(const Message& m, const Left& to_send, const Left& to_receive, const Note& note) {
    return take(m, note) <= limit_ && fits(sends_, m.from, to_send) &&
           fits(receives_, m.to, to_receive);
  }

 private:
  Time cost(const Left& left) const {
    return price_.alpha * left.messages + price_.beta * left.blocks;
  }
  template <class Ports>
  auto first(Ports& ports, Rank r) const {
    return ports.begin() + std::ptrdiff_t{r} * k_;
  }
  Time& earliest(Times& ports, Rank r) const {
    return *std::min_element(first(ports, r), first(ports, r) + k_);
  }
  bool fits(const Times& ports, Rank r, const Left& left) const {
    return std::accumulate(first(ports, r), first(ports, r) + k_, cost(left)) <= k_ * limit_;
  }
  template <class Note>
  Time take(const Message& m, const Note& note) {
    Time &out = earliest(sends_, m.from), &in = earliest(receives_, m.to);
    note(out);
    note(in);
    return out = in = std::max(out, in) + cost(m.blocks);
  }
  int k_;
  Price price_;
  Time limit_ = 0;
  Times sends_, receives_;
};

// Finds the order of one round.
class Order {
 public:
  Order(int ranks, bool of_one, const Round& round) : ranks_(of_one ? 1 : ranks) {
    // By rank: the number of matchings when it last sent, or received.
    std::vector<std::size_t> senders(static_cast<std::size_t>(ranks_), 0), receivers = senders;
    for (std::size_t i = 0; i < round.size(); ++i) {
      // local work takes no ports
      const bool on_ports = round[i].from.front() != round[i].to.front();
      const Rank from = of_one ? 0 : round[i].from.front(), to = of_one ? 0 : round[i].to.front();
      const Time blocks = round[i].what.list.size();
      messages_.push_back(on_ports ? std::optional<Message>({from, to, blocks}) : std::nullopt);
      std::size_t &sent = at(senders, from), &received = at(receivers, to);
      const std::size_t now = matchings_.size();
      if (now == 0 || of_one || (on_ports && (sent == now || received == now))) {
        matchings_.emplace_back();
      }
      matchings_.back().push_back(i);
      if (on_ports) sent = received = matchings_.size();
    }
  }

  // An order of the transfers that is in time.
  std::vector<std::size_t> found() {
    std::vector<std::size_t> out(messages_.size());
    std::iota(out.begin(), out.end(), std::size_t{0});
    // If no rank sends or receives twice, all begin at once.
    if (matchings_.size() <= 1 || !find_limits()) return out;
    if (search(matchings_, needs_, kOfEach * static_cast<int>(messages_.size()))) return order();
    int left = kAllSteps;
    const auto finer = [&](const std::vector<Part>& parts, const Times& limits) {
      const bool does = search(parts, limits, std::min(left, kSteps));
      left -= steps_;
      return does;
    };
    const std::vector<Part> by_length = split(Split::by_length), by_load = split(Split::by_load);
    if (finer(by_length, needs_) || finer(by_load, needs_)) return order();
    // As late as stated by one clock, and by no other: on the most ports, if possible.
    for (std::size_t c = needs_.size(); c-- > 0 && left > 0;) {
      Times limits = needs_;
      limits[c] = stated_[c];
      if (limits != needs_ && limits != stated_ && finer(by_load, limits)) return order();
    }
    return out;
  }

 private:
  std::vector<Clock> clocks() const {
    std::vector<Clock> out;
    for (int k = 1; k < most_; ++k) {
      for (const Price price : kPrices) out.emplace_back(ranks_, k, price);
    }
    return out;
  }

  // Sets the limit of every clock to the time that its busiest port needs; false if the stated
  // order meets all limits.
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
    for (Clock& clock : clocks()) {
      Time took = 0;
      for (const auto& m : messages_) {
        if (m) took = std::max(took, clock.take(*m));
      }
      const auto needed = [&](const auto& of_lengths) {
        Time most = 0;
        for (Times lengths : different) {
          for (Time& length : lengths) length = clock.cost(length);
          most = std::max(most, of_lengths(lengths, clock.ports()));
        }
        return most;
      };
      stated_.push_back(took);
      needs_.push_back(took == needed(at_least) ? took : needed(least_time));
    }
    return stated_ != needs_;
  }

  // Splits matchings into messages of one length; by load, also by the senders' blocks in the
  // round.
  enum class Split { by_length, by_load };
  std::vector<Part> split(Split how) const {
    std::map<Rank, Time> load;
    for (const auto& m : messages_) {
      if (m && how == Split::by_load) load[m->from] += m->blocks;
    }
    std::vector<Part> out;
    for (const Part& matching : matchings_) {
      std::map<std::pair<Time, Time>, Part, std::greater<>> parts;
      for (const std::size_t i : matching) {
        const Message m = messages_[i].value_or(Message{0, 0, 0});
        parts[{m.blocks, load[m.from]}].push_back(i);
      }
      for (auto& [of, part] : parts) out.push_back(std::move(part));
    }
    return out;
  }

  bool search(const std::vector<Part>& parts, const Times& limits, int most_steps) {
    parts_ = &parts;
    taken_.clear();
    is_taken_.assign(parts.size(), false);
    clocks_ = clocks();
    changes_.clear();
    for (std::size_t c = 0; c < clocks_.size(); ++c) clocks_[c].must_end(limits[c]);
    to_send_.assign(static_cast<std::size_t>(ranks_), {});
    to_receive_ = to_send_;
    for (const Part& part : parts) leave(part, 1);
    steps_ = 0;
    most_steps_ = most_steps;
    meet_.assign(parts.size(), std::vector<bool>(parts.size()));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) meet_[j][i] = meet(parts[j], parts[i]);
    }
    return search();
  }

  // Takes the parts that are not taken yet. Two parts that follow one another and do not meet at a
  // port are tried only in the order stated, since their order makes no difference.
  bool search() {
    if (taken_.size() == parts_->size()) return true;
    const std::size_t before = changes_.size();
    for (std::size_t i = 0; i < parts_->size(); ++i) {
      if (is_taken_[i]) continue;
      if (!taken_.empty() && i < taken_.back() && !meet_[i][taken_.back()]) continue;
      if (steps_ > most_steps_) return false;
      leave((*parts_)[i], -1);
      if (take((*parts_)[i])) {
        is_taken_[i] = true;
        taken_.push_back(i);
        if (search()) return true;
        taken_.pop_back();
        is_taken_[i] = false;
      }
      take_back(before);
      leave((*parts_)[i], 1);
    }
    return false;
  }
  // Adds these messages to the ends' remaining ones (sign 1), or removes them (-1).
  void leave(const Part& part, Time sign) {
    for (const std::size_t i : part) {
      if (!messages_[i]) continue;
      for (Left* left : {&to_send(*messages_[i]), &to_receive(*messages_[i])}) {
        left->messages += sign;
        left->blocks += sign * messages_[i]->blocks;
      }
    }
  }
  Left& to_send(const Message& m) { return to_send_[static_cast<std::size_t>(m.from)]; }
  Left& to_receive(const Message& m) { return to_receive_[static_cast<std::size_t>(m.to)]; }

  std::vector<std::size_t> order() const {
    std::vector<std::size_t> out;
    for (const std::size_t i : taken_) {
      out.insert(out.end(), (*parts_)[i].begin(), (*parts_)[i].end());
    }
    return out;
  }

  bool meet(const Part& a, const Part& b) const {
    return std::any_of(a.begin(), a.end(), [&](std::size_t i) {
      return std::any_of(b.begin(), b.end(), [&](std::size_t j) {
        const auto &x = messages_[i], &y = messages_[j];
        return x && y && (x->from == y->from || x->to == y->to);
      });
    });
  }

  // Returns false if a message is late then.
  bool take(const Part& part) {
    const auto note = [this](Time& time) { changes_.emplace_back(&time, time); };
    for (Clock& clock : clocks_) {
      for (const std::size_t i : part) {
        ++steps_;
        if (!messages_[i]) continue;
        const Message& m = *messages_[i];
        if (!clock.in_time(m, to_send(m), to_receive(m), note)) return false;
      }
    }
    return true;
  }
  // Undoes all changes but the first `all_but`.
  void take_back(std::size_t all_but) {
    for (; changes_.size() > all_but; changes_.pop_back()) {
      *changes_.back().first = changes_.back().second;
    }
  }

  const int ranks_;
  int most_ = 0;  // messages at one end of a rank
  std::vector<std::optional<Message>> messages_;
  std::vector<Part> matchings_;
  Times stated_, needs_;  // by clock
  // State of a search:
  const std::vector<Part>* parts_ = nullptr;
  std::vector<std::size_t> taken_;  // in this order
  std::vector<bool> is_taken_;
  std::vector<Left> to_send_, to_receive_;  // by rank
  std::vector<Clock> clocks_;
  std::vector<std::pair<Time*, Time>> changes_;  // changed times, with their values before
  // by pair of parts, the earlier first: they meet at a port
  std::vector<std::vector<bool>> meet_;
  int steps_ = 0, most_steps_ = 0;
};

bool is_one_to_one(const Transfer& t) { return t.from.size() == 1 && t.to.size() == 1; }

// of_one: `a` is one rank's part; each transfer stands for one of every rank.
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
  const RotationSymmetric* all = symmetry_of(a);
  if (all == nullptr) return in_time(std::move(a), false);
  Schedule out = a;
  out.round = RotationSymmetric(in_time(all->part(), true), all->rotation());
  return out;
}

}  // namespace rankine
