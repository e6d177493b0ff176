// What simulators have in common that carry the messages of a schedule over links which these
// share: the schedule with all that belongs to it, and the ways of its messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <queue>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/cells.h"
#include "engine/network/fabric.h"
#include "engine/network/port_model.h"
#include "engine/network/prices.h"
#include "engine/network/simulate.h"
#include "engine/network/wiring.h"
#include "engine/read/flow.h"

namespace rankine {

struct CarriedSchedule {
  const Schedule& schedule;
  const Goal& goal;
  const Fabric& fabric;  // as wired_for() gives it
  const Pricing& pricing;
  const Routes& routes;
  const SimulateOptions& options;
  const Alike* alike = nullptr;  // of a skeleton: whom its ranks stand for
};

// carry(const CarriedSchedule&), a Result of anything, for M of so many bytes. Errors:
// simulate()'s, a network that permutes, and carry's.
template <class Carry>
auto carried(const Schedule& schedule, const Goal& goal, const Fabric& fabric, std::uint64_t bytes,
             const SimulateOptions& options, const Alike* alike, const Carry& carry)
    -> decltype(carry(std::declval<const CarriedSchedule&>())) {
  const auto wired = wired_for(fabric, schedule.ranks);
  if (!wired.ok()) return wired.status();
  if (wired->permute) {
    return invalid_argument(
        "the network permutes, which fluid flows and packets have no meaning "
        "for; allowed is the fidelity eq1");
  }
  try {
    const auto pricing = pricing_of(*wired, goal, bytes, options);
    if (!pricing.ok()) return pricing.status();
    const auto routes = Routes::make(wired->wiring, wired->places_among(schedule.ranks));
    if (!routes.ok()) return routes.status();
    return carry({schedule, goal, *wired, *pricing, *routes, options, alike});
  } catch (const std::bad_alloc&) {
    return Status(Code::out_of_memory, "carrying the messages of " +
                                           std::to_string(schedule.ranks) + " ranks with " +
                                           std::to_string(schedule.places()) + " blocks each");
  }
}

// The same of a skeleton, on its torus with the fabric's links; blocks are exactly M / B bytes.
template <class Carry>
auto carried(const Skeleton& skeleton, Fabric fabric, std::uint64_t bytes, const Carry& carry)
    -> decltype(carry(std::declval<const CarriedSchedule&>())) {
  fabric.wiring = {
      .kind = WiringKind::torus, .dims = skeleton.dims, .routing = fabric.wiring.routing};
  return carried(skeleton.schedule(), skeleton.goal, fabric, bytes, {.ideal_blocks = true},
                 &skeleton.alike, carry);
}

// The ways of messages, as lists of shared links; of a skeleton, of those that stand for others.
// For one thread.
class Ways {
 public:
  explicit Ways(const CarriedSchedule& of) : of_(of) {}

  int links() const { return of_.alike == nullptr ? of_.routes.links() : of_.alike->links(); }
  int hops(Rank from, Rank to) const { return of_.routes.hops(place(from), place(to)); }
  bool shares_links(Rank from, Rank to) const {
    bool shares = false;
    of_.routes.for_each_link(place(from), place(to), [&shares](int, int) { shares = true; });
    return shares;
  }

  // The ways of a message that shares links, in order. Half of it takes the links that lead up,
  // half those that lead down, and both take those that nobody goes round. Where it does not split,
  // all of it takes `up`.
  void find(Rank from, Rank to) {
    up.clear();
    down.clear();
    splits = false;
    of_.routes.for_each_link(place(from), place(to), [this](int link, int halves) {
      splits |= halves == 1;
      const int known = of_.alike == nullptr ? link : of_.alike->class_of_link(link);
      if (halves == 2 || Routes::leads_up(link)) up.push_back(known);
      if (halves == 2 || !Routes::leads_up(link)) down.push_back(known);
    });
  }
  std::vector<int> up, down;
  bool splits = false;

  // visit(int link, int kind) for shared links that are odd, and which of Fabric's kinds they are.
  // Of several that speak of one the last visit counts.
  template <class Visit>
  void for_each_odd_wire(const Visit& visit) const {
    if (!of_.fabric.wiring.shares_links()) return;
    for (std::size_t i = of_.fabric.odd.size(); i-- > 0;) {
      const OddLink& odd = of_.fabric.odd[i];
      if (odd.is_place()) continue;
      of_.routes.for_each_link(odd.from, odd.to,
                               [&](int link, int) { visit(link, static_cast<int>(2 * (i + 1))); });
    }
  }

 private:
  int place(Rank r) const { return of_.fabric.place_of(r); }

  const CarriedSchedule of_;
};

// Which message of a schedule may start when, whatever carries it.
//
// A message may start when the data that it carries has arrived (dataflow) or the round before has
// ended (rounds), and a send port of its sender and a receive port of its receiver are free: taken
// in the order stated, no backfilling, as port_model.h has it. Then it is its carrier's, which says
// when it has ended; adding up (gamma) comes after that, before the ports are free. What ranks do
// for themselves is ordered likewise, and takes no port.
//
//   Time     seconds, or ticks
//   Carrier  derives from this, and has
//              void launch(Id)             what may start at now() does; finish(Id) or ends_at()
//              void happens(const Event&)  one of its own events, which it has made with at()
//              void settle()               all that happens now has
//              Time until()                events up to there are now: now(), or what rounding
//              makes
//                                          of it
//              Time adding(weight)         seconds or ticks that a receiver adds up
//            and `Load`, a part of each Node that is its own.
//
// For one thread.

template <class Time, class Load, class Carrier>
class MessagesInOrder {
 public:
  // Until nothing is left to happen. Errors: what the network cannot do.
  Status run() {
    for (;;) {
      // All that happens now: ends let others start, which may end at once in their turn.
      do {
        take_rounds();
      } while (handle_events() || begin_ready());
      if (!status_.ok()) return status_;
      if (nodes_.empty()) return {};
      carrier().settle();
      // Ports are claimed and data is waited for in one order, so there is always somebody first.
      if (events_.empty()) throw std::logic_error("messages of a schedule wait for each other");
      now_ = events_.top().time;
    }
  }

  Time end() const { return end_; }                      // of the last message
  std::vector<Time>& round_end() { return round_end_; }  // 0 of rounds without any
  std::uint64_t messages() const { return messages_; }

 protected:
  using Id = std::uint64_t;  // of a node, in the order stated; 0: none
  static constexpr std::uint32_t kNoEdge = 0;

  // The ranks of a multicast or ALU transfer.
  struct Parties {
    RankSet from, to;
  };
  // What waits for what: a message, or a join of several nodes, which takes no time.
  struct Node {
    int missing = 1;  // ports and nodes that it waits for, and that it is stated in full
    int round = -1;   // of a message; -1: a join
    Rank from = 0, to = 0;
    std::unique_ptr<Parties> parties{};  // in place of from and to
    std::int64_t weight = 0;             // see Pricing
    Time adding = 0;                     // that its receiver takes then
    Load load{};
    bool done = false;
    std::uint32_t waiting = kNoEdge;  // nodes that wait for this one
    Id last_waiting = 0;

    bool is_local() const { return parties == nullptr && from == to; }
  };
  struct Event {
    Time time = 0;
    std::uint64_t order = 0;  // among events of the same time
    std::uint8_t what = 0;    // 0: a message ends
    std::uint32_t version = 0;
    std::uint64_t who = 0;  // a node, or what the carrier likes
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  explicit MessagesInOrder(const CarriedSchedule& of)
      : of_(of),
        by_rounds_(of.options.sync == Sync::rounds && of.alike == nullptr),
        adds_(!(of.fabric.gamma == 0)),
        unlimited_(of.options.unlimited_ports),
        send_(static_cast<std::size_t>(ranks()), Ports{of.fabric.ports}),
        receive_(send_),
        ports_free_(2 * ranks()) {
    const auto rows = static_cast<std::size_t>(ranks());
    if (of.alike != nullptr) {
      sources_.emplace(one_block(of.schedule), of.goal, rows);
    } else if (!by_rounds_) {
      sources_.emplace(of.schedule, of.goal, rows);
    }
    round_end_.assign(static_cast<std::size_t>(of.schedule.rounds), 0);
  }

  Node& node(Id id) { return nodes_[static_cast<std::size_t>(id - first_)]; }
  Time now() const { return now_; }
  const Fabric& fabric() const { return of_.fabric; }
  const Pricing& pricing() const { return of_.pricing; }
  int ranks() const { return of_.alike == nullptr ? of_.schedule.ranks : of_.alike->classes(); }

  void at(Time time, std::uint8_t what, std::uint64_t who, std::uint32_t version,
          std::uint64_t order) {
    events_.push({time, order, what, version, who});
  }
  // The order in which things were made to happen.
  std::uint64_t next_order() { return ++order_; }
  // A message that then has ended.
  void ends_at(Time time, Id id) { at(time, 0, id, 0, next_order()); }

  // Nothing more is to happen.
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  // Its bytes are there; what its receiver adds up is still to come.
  void arrived(Id id) {
    const Time adding = node(id).adding;
    if (adding > 0) {
      ends_at(now_ + adding, id);
    } else {
      finish(id);
    }
  }

 private:
  struct Edge {
    Id node = 0;
    std::uint32_t next = kNoEdge;
  };
  // The ports of one rank in one direction. They are claimed in the order stated.
  struct Ports {
    int free = 1;
    std::deque<Id> claims{};
  };
  struct Arrival {
    std::size_t rank = 0;
    int plane = 0;
    Run blocks;
    Id node = 0;
    bool replaces = false;  // a copy: what was there before does not matter
  };

  Carrier& carrier() { return static_cast<Carrier&>(*this); }
  std::size_t index_of(Rank r) const {
    return static_cast<std::size_t>(of_.alike == nullptr ? r : of_.alike->class_of(r));
  }

  // --- The schedule

  // Dataflow looks ahead as long as there is a free port that nobody has claimed, or for ever where
  // ranks add up what they have, which needs no port; with rounds, the next one begins when nothing
  // of the one before is left.
  void take_rounds() {
    while (status_.ok() && next_round_ < of_.schedule.rounds &&
           (by_rounds_ ? nodes_.empty() : unlimited_ || adds_ || ports_free_ > 0)) {
      take_round();
    }
  }

  void take_round() {
    const int k = next_round_++;
    for_each_transfer(of_.schedule, k, [this, k](const Transfer& t) { take(t, k); });
    settle_arrivals();
  }

  void take(const Transfer& t, int k) {
    if (t.from.empty() || t.to.empty()) return;
    const bool wide = !is_message(t);
    if (wide) {
      Status able = check_ability(t, of_.fabric);
      if (!able.ok()) return fail(std::move(able));
    }
    const std::int64_t weight = of_.pricing.weight(t.what.list);
    const bool own = rankine::is_local(t);
    const bool adds = t.act == Act::reduce && t.from.size() == 1;
    const Time adding = adds ? carrier().adding(weight) : 0;
    if (own && adding == 0) {
      if (!by_rounds_) arrive(t, t.to.front(), local(t));
      return;
    }
    const Id id = add_node();
    Node& made = node(id);
    made.round = k;
    made.from = t.from.front();
    made.to = t.to.front();
    made.weight = weight;
    made.adding = adding;
    if (own) {
      for_each_source(t, made.from, [&](Id source) { wait_for(source, id); });
      arrive(t, made.to, id);
      resolve(id);
      return;
    }
    if (wide) made.parties = std::make_unique<Parties>(Parties{t.from, t.to});
    t.from.for_each([&](Rank r) {
      claim(send_, r, id);
      for_each_source(t, r, [&](Id source) { wait_for(source, id); });
    });
    t.to.for_each([&](Rank r) {
      claim(receive_, r, id);
      arrive(t, r, id);
    });
    ++messages_;
    resolve(id);
  }

  // Local work takes no time: what arrives is as old as what it is made from.
  Id local(const Transfer& t) {
    Id all = 0;
    for_each_source(t, t.from.front(), [&](Id source) { all = both(all, source); });
    return all;
  }

  // Ranks of a skeleton wait for all that was sent to them, so that one block stands for any.
  static Schedule one_block(const Schedule& schedule) {
    return {.ranks = schedule.ranks, .blocks = 1, .rounds = 0, .round = {}};
  }
  Run waited_for(const Run& run) const { return of_.alike == nullptr ? run : Run{0, 1, 1}; }

  // The nodes that `what` at rank r comes from, unless they are done.
  template <class Visit>
  void for_each_source(const Transfer& t, Rank r, const Visit& visit) {
    if (by_rounds_) return;
    for (int i = 0; i < t.what.list.runs(); ++i) {
      sources_->read(index_of(r), t.what.plane, waited_for(t.what.list.run(i)),
                     [&](Block, int, Id source) {
                       if (under_way(source)) visit(source);
                     });
    }
  }

  void arrive(const Transfer& t, Rank to, Id id) {
    if (by_rounds_) return;
    for (int i = 0; i < t.where.list.runs(); ++i) {
      arrivals_.push_back(
          {index_of(to), t.where.plane, waited_for(t.where.list.run(i)), id, t.act == Act::copy});
    }
  }

  // A round reads what was there when it began, so its arrivals count from the next one on.
  void settle_arrivals() {
    const auto for_each = [this](const auto& visit) {
      for (const Arrival& a : arrivals_) {
        sources_->change(a.rank, a.plane, a.blocks,
                         [&](Block, int, Id& source) { visit(a, source); });
      }
    };
    for_each([](const Arrival& a, Id& source) {
      if (a.replaces) source = 0;
    });
    for_each([this](const Arrival& a, Id& source) { source = both(source, a.node); });
    arrivals_.clear();
  }

  // --- Nodes

  bool under_way(Id id) { return id >= first_ && !node(id).done; }

  Id add_node() {
    nodes_.emplace_back();
    return first_ + nodes_.size() - 1;
  }

  // What is done when both are.
  Id both(Id a, Id b) {
    if (!under_way(a) || a == b) return b;
    if (!under_way(b)) return a;
    // A message's blocks mostly have their past in common.
    if (a == joined_.a && b == joined_.b) return joined_.both;
    const Id id = add_node();
    wait_for(a, id);
    wait_for(b, id);
    resolve(id);
    joined_ = {a, b, id};
    return id;
  }

  void wait_for(Id source, Id id) {
    Node& awaited = node(source);
    if (awaited.last_waiting == id) return;
    awaited.last_waiting = id;
    ++node(id).missing;
    std::uint32_t edge = unused_edge_;
    if (edge == kNoEdge) {
      edge = static_cast<std::uint32_t>(edges_.size());
      edges_.emplace_back();
    } else {
      unused_edge_ = edges_[edge].next;
    }
    edges_[edge] = {id, awaited.waiting};
    awaited.waiting = edge;
  }

  // One thing less that the node waits for.
  void resolve(Id id) {
    if (--node(id).missing == 0) ready_.push_back(id);
  }

  void claim(std::vector<Ports>& side, Rank r, Id id) {
    if (unlimited_) return;
    Ports& ports = side[index_of(r)];
    if (ports.free == 0) {
      ports.claims.push_back(id);
      ++node(id).missing;
    } else if (--ports.free == 0) {
      --ports_free_;
    }
  }

  void release(std::vector<Ports>& side, Rank r) {
    if (unlimited_) return;
    Ports& ports = side[index_of(r)];
    if (!ports.claims.empty()) {
      const Id next = ports.claims.front();
      ports.claims.pop_front();
      resolve(next);
    } else if (++ports.free == 1) {
      ++ports_free_;
    }
  }

  // --- Time

  // Whether any node was ready.
  bool begin_ready() {
    if (ready_.empty()) return false;
    while (!ready_.empty()) {
      // Those that are joins add to ready_.
      beginning_.swap(ready_);
      for (const Id id : beginning_) begin(id);
      beginning_.clear();
    }
    return true;
  }

  void begin(Id id) {
    const Node& n = node(id);
    if (n.round < 0) {
      finish(id);
    } else if (n.is_local()) {
      ends_at(now_ + n.adding, id);
    } else {
      carrier().launch(id);
    }
  }

  // Whether anything happened.
  bool handle_events() {
    const Time until = carrier().until();
    bool any = false;
    while (!events_.empty() && !(events_.top().time > until)) {
      const Event event = events_.top();
      events_.pop();
      any = true;
      if (event.what == 0) {
        finish(event.who);
      } else {
        carrier().happens(event);
      }
    }
    return any;
  }

  void finish(Id id) {
    Node& n = node(id);
    n.done = true;
    if (n.round >= 0) {
      if (end_ < now_) end_ = now_;
      Time& round_end = round_end_[static_cast<std::size_t>(n.round)];
      if (round_end < now_) round_end = now_;
      if (n.parties != nullptr) {
        n.parties->from.for_each([this](Rank r) { release(send_, r); });
        n.parties->to.for_each([this](Rank r) { release(receive_, r); });
        n.parties.reset();
      } else if (n.from != n.to) {
        release(send_, n.from);
        release(receive_, n.to);
      }
    }
    for (std::uint32_t e = n.waiting; e != kNoEdge;) {
      Edge& edge = edges_[e];
      resolve(edge.node);
      const std::uint32_t next = edge.next;
      edge.next = unused_edge_;
      unused_edge_ = e;
      e = next;
    }
    while (!nodes_.empty() && nodes_.front().done) {
      nodes_.pop_front();
      ++first_;
    }
  }

  const CarriedSchedule of_;
  const bool by_rounds_, adds_, unlimited_;

  int next_round_ = 0;
  std::optional<CellTable<Id>> sources_;  // what each cell waits for; dataflow only
  std::vector<Arrival> arrivals_;         // of the round that is being taken

  std::deque<Node> nodes_;  // all before are done
  Id first_ = 1;            // the number of nodes_.front()
  std::vector<Edge> edges_{1};
  std::uint32_t unused_edge_ = kNoEdge;
  struct {
    Id a = 0, b = 0, both = 0;
  } joined_;  // the latest join
  std::vector<Id> ready_, beginning_;
  std::vector<Ports> send_, receive_;
  int ports_free_;  // ranks and directions that have a port which nobody has claimed

  Time now_ = 0, end_ = 0;
  std::uint64_t order_ = 0, messages_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Status status_;
  std::vector<Time> round_end_;
};

}  // namespace rankine
