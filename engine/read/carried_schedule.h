// The simulators that carry messages over shared links (flow.h) share this header: CarriedSchedule
// is the schedule with its network and prices, Ways the routes of its messages, and MessagesInOrder
// the order in which messages may start.
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
  const CollectiveSpec& goal;
  const Fabric& fabric;  // from wired_for()
  const Pricing& pricing;
  const Routes& routes;
  const SimulateOptions& options;
  const Alike* alike = nullptr;  // the classes of a skeleton's ranks; nullptr: a whole schedule
};

// Calls carry(const CarriedSchedule&), which returns a Result of any type, for M of `bytes` bytes.
// Errors: those of simulate() and of carry, and a network that permutes.
template <class Carry>
auto carried(const Schedule& schedule, const CollectiveSpec& goal, const Fabric& fabric,
             std::uint64_t bytes, const SimulateOptions& options, const Alike* alike,
             const Carry& carry) -> decltype(carry(std::declval<const CarriedSchedule&>())) {
  const auto wired = wired_for(fabric, schedule.ranks);
  if (!wired.ok()) return wired.status();
  if (wired->permute) {
    return invalid_argument(
        "the network permutes; the fidelities flow and packet cannot model "
        "that; allowed is the fidelity eq1");
  }
  try {
    const auto pricing = pricing_of(*wired, goal, bytes, options);
    if (!pricing.ok()) return pricing.status();
    const auto routes = Routes::make(wired->wiring, wired->places_among(schedule.ranks));
    if (!routes.ok()) return routes.status();
    return carry({schedule, goal, *wired, *pricing, *routes, options, alike});
  } catch (const std::bad_alloc&) {
    return Status(Code::out_of_memory, "no memory to carry the messages of " +
                                           std::to_string(schedule.ranks) + " ranks with " +
                                           std::to_string(schedule.slots()) + " blocks each");
  }
}

// As above for a skeleton, on its torus with the fabric's links; blocks are exactly M / B bytes.
template <class Carry>
auto carried(const Skeleton& skeleton, Fabric fabric, std::uint64_t bytes, const Carry& carry)
    -> decltype(carry(std::declval<const CarriedSchedule&>())) {
  fabric.wiring = {
      .kind = WiringKind::torus, .dims = skeleton.dims, .routing = fabric.wiring.routing};
  return carried(skeleton.schedule(), skeleton.goal, fabric, bytes, {.ideal_blocks = true},
                 &skeleton.alike, carry);
}

// The routes of messages as lists of shared links; for a skeleton, the links that stand for others.
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

  // Sets `up`, `down` and `splits` to the route of a message that shares links, in order. If it
  // splits, half of it takes the links that lead up, half the links that lead down, and both halves
  // take the links of dimensions without a tie. Otherwise the whole message takes `up`.
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

  // visit(int link, int kind) for shared links that are odd, with their kind of Fabric. If several
  // odd links match one link, the last visit counts.
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

// Decides which message of a schedule may start at which time, for any carrier of messages.
//
// A message may start when its data have arrived (dataflow) or the round before has ended (rounds),
// and a send port of its sender and a receive port of its receiver are free: taken in the order
// stated, without backfilling, as in port_model.h. Then the carrier has the message and reports its
// end; the receiver adds the data (gamma) after that, before the ports become free. Local work of
// ranks is ordered in that way too, and takes no port.
//
//   Time     seconds, or ticks
//   Carrier  derives from this class, and has
//              void launch(Id)             starts a message now(); finish(Id) or ends_at() follows
//              void happens(const Event&)  handles one of the carrier's events, made with at()
//              void settle()               called after all events of now()
//              Time until()                events up to this time count as now: now() plus rounding
//              Time adding(weight)         the time in which a receiver adds this weight
//            and `Load`, the carrier's part of each Node.
//
// For one thread.
template <class Time, class Load, class Carrier>
class MessagesInOrder {
 public:
  // Runs until no event is left. Errors: transfers that the network cannot do.
  Status run() {
    for (;;) {
      // All events of now(): ends let other messages start, which may end at once.
      do {
        take_rounds();
      } while (handle_events() || begin_ready());
      if (!status_.ok()) return status_;
      if (nodes_.empty()) return {};
      carrier().settle();
      // Ports are claimed and data is waited for in one order, so some message can always go on.
      if (events_.empty()) throw std::logic_error("messages of a schedule wait for each other");
      now_ = events_.top().time;
    }
  }

  Time end() const { return end_; }                      // the end of the last message
  std::vector<Time>& round_end() { return round_end_; }  // 0 for rounds without messages
  std::uint64_t messages() const { return messages_; }

 protected:
  using Id = std::uint64_t;  // number of a node, in the order stated; 0: none
  static constexpr std::uint32_t kNoEdge = 0;

  // The ranks of a multicast or ALU transfer.
  struct Parties {
    RankSet from, to;
  };
  // A node of the dependency graph: a message, or a join of several nodes, which takes no time.
  struct Node {
    int missing = 1;  // ports and nodes it waits for, plus 1 until it is stated in full
    int round = -1;   // round of a message; -1: a join
    Rank from = 0, to = 0;
    std::unique_ptr<Parties> parties{};  // replaces from and to
    std::int64_t weight = 0;             // see Pricing
    Time adding = 0;                     // the receiver's time for adding
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
    std::uint64_t who = 0;  // a node, or a number of the carrier
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
  // The sequence number for a new event.
  std::uint64_t next_order() { return ++order_; }
  // Schedules the end of a message.
  void ends_at(Time time, Id id) { at(time, 0, id, 0, next_order()); }

  // Records the first error, which ends run().
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  // Call when the bytes of a message have arrived; the receiver's adding follows.
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
    bool replaces = false;  // a copy: earlier arrivals in the cell no longer matter
  };

  Carrier& carrier() { return static_cast<Carrier&>(*this); }
  std::size_t index_of(Rank r) const {
    return static_cast<std::size_t>(of_.alike == nullptr ? r : of_.alike->class_of(r));
  }

  // --- The schedule

  // Dataflow looks ahead while any port is free and unclaimed, or without limit if ranks add blocks
  // locally, which needs no port; rounds begin the next round when no node of the round before is
  // left.
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
    const bool adds = t.kind == TransferKind::reduce && t.from.size() == 1;
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

  // Local work takes no time: its arrival is as old as its sources.
  Id local(const Transfer& t) {
    Id all = 0;
    for_each_source(t, t.from.front(), [&](Id source) { all = both(all, source); });
    return all;
  }

  // Ranks of a skeleton wait for all earlier messages to them, so one block stands for any.
  static Schedule one_block(const Schedule& schedule) {
    return {.ranks = schedule.ranks, .blocks = 1, .rounds = 0, .round = {}};
  }
  Run waited_for(const Run& run) const { return of_.alike == nullptr ? run : Run{0, 1, 1}; }

  // The nodes that `what` at rank r comes from, except done ones.
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
      arrivals_.push_back({index_of(to), t.where.plane, waited_for(t.where.list.run(i)), id,
                           t.kind == TransferKind::copy});
    }
  }

  // A round reads the data from before it began, so its arrivals count from the next round on.
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

  // The node that is done when both are.
  Id both(Id a, Id b) {
    if (!under_way(a) || a == b) return b;
    if (!under_way(b)) return a;
    // A message's blocks mostly have a common past, so the last join is often needed again.
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

  // Removes one reason to wait.
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

  // Returns true if any node was ready.
  bool begin_ready() {
    if (ready_.empty()) return false;
    while (!ready_.empty()) {
      // Joins among these nodes add to ready_.
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

  // Returns true if there was an event.
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
  std::optional<CellTable<Id>> sources_;  // the node that each cell waits for; dataflow only
  std::vector<Arrival> arrivals_;         // arrivals of the round being taken

  std::deque<Node> nodes_;  // all earlier nodes are done
  Id first_ = 1;            // the number of nodes_.front()
  std::vector<Edge> edges_{1};
  std::uint32_t unused_edge_ = kNoEdge;
  struct {
    Id a = 0, b = 0, both = 0;
  } joined_;  // the latest join
  std::vector<Id> ready_, beginning_;
  std::vector<Ports> send_, receive_;
  int ports_free_;  // pairs of a rank and a direction with an unclaimed free port

  Time now_ = 0, end_ = 0;
  std::uint64_t order_ = 0, messages_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Status status_;
  std::vector<Time> round_end_;
};

}  // namespace rankine
