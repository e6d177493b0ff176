#include "engine/read/flow.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <queue>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/network/ability.h"
#include "engine/network/cells.h"
#include "engine/network/ticks.h"
#include "engine/network/wiring.h"
#include "engine/read/max_min.h"

namespace rankine {
namespace {

// What waits for what, and for how long, as nodes: a message, or a join of several nodes, which
// takes no time. Numbered in the order stated.
class FlowSimulator {
 public:
  FlowSimulator(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
                const Pricing& pricing, const Routes& routes, const SimulateOptions& options)
      : schedule_(schedule),
        fabric_(fabric),
        pricing_(pricing),
        routes_(routes),
        by_rounds_(options.sync == Sync::rounds),
        unlimited_(options.unlimited_ports),
        rates_(rates_of_kinds()),
        gamma_(fabric.gamma.to_double() / static_cast<double>(pricing.weight_per_byte())),
        alpha_hop_(fabric.alpha_hop.to_double()),
        alpha_switch_(fabric.alpha_switch.to_double()),
        sharing_(routes.links()),
        send_(static_cast<std::size_t>(schedule.ranks), Ports{fabric.ports}),
        receive_(send_),
        ports_free_(2 * schedule.ranks) {
    set_odd_wires();
    if (!by_rounds_) sources_.emplace(schedule, goal, static_cast<std::size_t>(schedule.ranks));
    result_.round_end.assign(static_cast<std::size_t>(schedule.rounds), 0.0);
  }

  Result<FlowTimes> run() {
    for (;;) {
      // All that happens now: ends let others start, which may end at once in their turn.
      do {
        take_rounds();
      } while (handle_events() || begin_ready());
      if (!status_.ok()) return status_;
      if (nodes_.empty()) break;
      predict_ends();
      // Ports are claimed and data is waited for in one order, so there is always somebody first.
      if (events_.empty()) throw std::logic_error("messages of a schedule wait for each other");
      now_ = events_.top().time;
    }
    result_.seconds = end_;
    return std::move(result_);
  }

 private:
  using Id = std::uint64_t;  // of a node; 0: none
  static constexpr std::uint32_t kNoEdge = 0;
  static constexpr int kNoLink = -1;

  struct Rates {
    double alpha = 0, beta = 0;  // beta per unit of weight
  };
  // The ranks of a multicast or ALU transfer.
  struct Parties {
    RankSet from, to;
  };
  struct Node {
    int missing = 1;  // ports and nodes that it waits for, and that it is stated in full
    int round = -1;   // of a message; -1: a join
    Rank from = 0, to = 0;
    std::unique_ptr<Parties> parties{};  // in place of from and to
    double work = 0;                     // seconds that its bytes need on a link of their own
    double adding = 0;                   // seconds that its receiver adds up then
    int flows = 0;                       // still under way
    int own_link = kNoLink;              // which is all that an odd place lets through
    bool done = false;
    std::uint32_t waiting = kNoEdge;  // nodes that wait for this one
    Id last_waiting = 0;
  };
  struct Edge {
    Id node = 0;
    std::uint32_t next = kNoEdge;
  };
  // The ports of one rank in one direction. They are claimed in the order stated.
  struct Ports {
    int free = 1;
    std::deque<Id> claims{};
  };
  struct Flow {
    Id node = 0;
    double left = 0, rate = 0, since = 0;  // `left` was true at `since`
    std::uint32_t prediction = 0;          // which of its predicted ends holds
  };
  enum class Happens : std::uint8_t { message_ends, flows_start, flow_ends };
  struct Event {
    double time = 0;
    std::uint64_t order = 0;  // among events of the same time
    Happens what = Happens::message_ends;
    std::uint32_t prediction = 0;
    std::uint64_t who = 0;  // a node, or a flow
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  struct Arrival {
    Rank rank = 0;
    int plane = 0;
    Run blocks;
    Id node = 0;
    bool replaces = false;  // a copy: what was there before does not matter
  };

  std::vector<Rates> rates_of_kinds() const {
    std::vector<Rates> all;
    for (int kind = 0; kind < fabric_.link_kinds(); ++kind) {
      const Link link = fabric_.link_of_kind(kind);
      all.push_back(
          {link.latency().to_double(),
           link.per_byte().to_double() / static_cast<double>(pricing_.weight_per_byte())});
    }
    return all;
  }
  // Kinds come in pairs, of which the first two are those of links that are not odd.
  const Rates& like_the_rest(int kind) const { return rates_[static_cast<std::size_t>(kind % 2)]; }
  // What passes there, in parts of what passes a link that is like the rest.
  double part(int kind) const {
    constexpr double kAnything = 1e18;
    const double beta = rates_[static_cast<std::size_t>(kind)].beta;
    return beta > 0 ? like_the_rest(kind).beta / beta : kAnything;
  }
  void set_odd_wires() {
    if (!fabric_.wiring.shares_links()) return;
    // Of several that speak of a wire the first one counts.
    for (std::size_t i = fabric_.odd.size(); i-- > 0;) {
      const OddLink& odd = fabric_.odd[i];
      if (odd.is_place()) continue;
      routes_.for_each_link(odd.from, odd.to, [&](int link, int) {
        sharing_.set_capacity(link, part(static_cast<int>(2 * (i + 1))));
      });
    }
  }
  int kind_of(const Node& n) const { return fabric_.kind_between(n.from, n.to); }
  bool shares_links(const Node& n) const {
    bool shares = false;
    for_each_link(n, [&shares](int, int) { shares = true; });
    return shares;
  }
  template <class Visit>
  void for_each_link(const Node& n, const Visit& visit) const {
    routes_.for_each_link(fabric_.place_of(n.from), fabric_.place_of(n.to), visit);
  }

  // --- The schedule

  // Dataflow looks ahead as long as there is a free port that nobody has claimed, or for ever where
  // ranks add up what they have, which needs no port; with rounds, the next one begins when nothing
  // of the one before is left.
  void take_rounds() {
    while (status_.ok() && next_round_ < schedule_.rounds &&
           (by_rounds_ ? nodes_.empty() : unlimited_ || gamma_ > 0 || ports_free_ > 0)) {
      take_round();
    }
  }

  void take_round() {
    const int k = next_round_++;
    for_each_transfer(schedule_, k, [this, k](const Transfer& t) { take(t, k); });
    settle_arrivals();
  }

  void take(const Transfer& t, int k) {
    if (t.from.empty() || t.to.empty()) return;
    const bool wide = t.from.size() > 1 || t.to.size() > 1;
    if (wide) {
      Status able = check_ability(t, fabric_);
      if (!able.ok()) {
        if (status_.ok()) status_ = std::move(able);
        return;
      }
    }
    const bool is_own = !wide && t.from.front() == t.to.front();
    const auto weight = static_cast<double>(pricing_.weight(t.what.list));
    const double adding = t.act == Act::reduce && t.from.size() == 1 ? gamma_ * weight : 0;
    if (is_own && adding == 0) {
      if (!by_rounds_) arrive(t, t.to.front(), local(t));
      return;
    }
    const Id id = add_node();
    Node& made = node(id);
    made.round = k;
    made.from = t.from.front();
    made.to = t.to.front();
    made.adding = adding;
    if (is_own) {
      for_each_source(t, made.from, [&](Id source) { wait_for(source, id); });
      arrive(t, made.to, id);
      resolve(id);
      return;
    }
    // Where links are shared, seconds are those of one that is like the rest.
    const int kind = wide ? 0 : kind_of(made);
    const bool shares = !wide && shares_links(made);
    const Rates& rates = shares ? like_the_rest(kind) : rates_[static_cast<std::size_t>(kind)];
    made.work = rates.beta * weight;
    if (wide) made.parties = std::make_unique<Parties>(Parties{t.from, t.to});
    t.from.for_each([&](Rank r) {
      claim(send_, r, id);
      for_each_source(t, r, [&](Id source) { wait_for(source, id); });
    });
    t.to.for_each([&](Rank r) {
      claim(receive_, r, id);
      arrive(t, r, id);
    });
    ++result_.messages;
    resolve(id);
  }

  // Local work takes no time: what arrives is as old as what it is made from.
  Id local(const Transfer& t) {
    Id all = 0;
    for_each_source(t, t.from.front(), [&](Id source) { all = both(all, source); });
    return all;
  }

  // The nodes that `what` at rank r comes from, unless they are done.
  template <class Visit>
  void for_each_source(const Transfer& t, Rank r, const Visit& visit) {
    if (by_rounds_) return;
    for (int i = 0; i < t.what.list.runs(); ++i) {
      sources_->read(static_cast<std::size_t>(r), t.what.plane, t.what.list.run(i),
                     [&](Block, int, Id source) {
                       if (under_way(source)) visit(source);
                     });
    }
  }

  void arrive(const Transfer& t, Rank to, Id id) {
    if (by_rounds_) return;
    for (int i = 0; i < t.where.list.runs(); ++i) {
      arrivals_.push_back({to, t.where.plane, t.where.list.run(i), id, t.act == Act::copy});
    }
  }

  // A round reads what was there when it began, so its arrivals count from the next one on.
  void settle_arrivals() {
    const auto for_each = [this](const auto& visit) {
      for (const Arrival& a : arrivals_) {
        sources_->change(static_cast<std::size_t>(a.rank), a.plane, a.blocks,
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

  Node& node(Id id) { return nodes_[static_cast<std::size_t>(id - first_)]; }
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
    Ports& ports = side[static_cast<std::size_t>(r)];
    if (ports.free == 0) {
      ports.claims.push_back(id);
      ++node(id).missing;
    } else if (--ports.free == 0) {
      --ports_free_;
    }
  }

  void release(std::vector<Ports>& side, Rank r) {
    if (unlimited_) return;
    Ports& ports = side[static_cast<std::size_t>(r)];
    if (!ports.claims.empty()) {
      const Id next = ports.claims.front();
      ports.claims.pop_front();
      resolve(next);
    } else if (++ports.free == 1) {
      ++ports_free_;
    }
  }

  // --- Time

  void at(double time, Happens what, std::uint64_t who, std::uint32_t prediction = 0) {
    events_.push({time, ++order_, what, prediction, who});
  }

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
    } else if (n.parties != nullptr) {
      at(now_ + 2 * alpha_switch_ + n.work + n.adding, Happens::message_ends, id);
    } else if (n.from == n.to) {
      at(now_ + n.adding, Happens::message_ends, id);
    } else {
      const double flowing =
          now_ + rates_[static_cast<std::size_t>(kind_of(n))].alpha +
          routes_.hops(fabric_.place_of(n.from), fabric_.place_of(n.to)) * alpha_hop_;
      if (n.work > 0 && shares_links(n)) {
        at(flowing, Happens::flows_start, id);
      } else {
        at(flowing + n.work + n.adding, Happens::message_ends, id);
      }
    }
  }

  // Takes all that happens now, and what rounding alone keeps from it. Whether there was anything.
  bool handle_events() {
    constexpr double kRounding = 1e-12;
    const double until = now_ * (1 + kRounding);
    bool any = false;
    while (!events_.empty() && events_.top().time <= until) {
      const Event event = events_.top();
      events_.pop();
      any = true;
      switch (event.what) {
        case Happens::message_ends:
          finish(event.who);
          break;
        case Happens::flows_start:
          start_flows(event.who);
          break;
        case Happens::flow_ends:
          end_flow(static_cast<int>(event.who), event.prediction);
          break;
      }
    }
    return any;
  }

  // Half of the message takes the links that lead up, half those that lead down, and both take
  // those that nobody goes round. Where there is one way only, the halves are one flow.
  void start_flows(Id id) {
    up_.clear();
    down_.clear();
    bool splits = false;
    Node& n = node(id);
    if (const int kind = kind_of(n); kind >= 2 && part(kind) < 1) {
      n.own_link = own_link(part(kind));
      up_.push_back(n.own_link);
      down_.push_back(n.own_link);
    }
    for_each_link(n, [&](int link, int halves) {
      splits |= halves == 1;
      if (halves == 2 || Routes::leads_up(link)) up_.push_back(link);
      if (halves == 2 || !Routes::leads_up(link)) down_.push_back(link);
    });
    if (splits) {
      start_flow(id, n.work / 2, 1, up_);
      start_flow(id, n.work / 2, 1, down_);
    } else {
      start_flow(id, n.work, 2, up_);
    }
  }

  void start_flow(Id id, double work, int halves, const std::vector<int>& links) {
    const auto f = static_cast<std::size_t>(sharing_.start(halves, links));
    if (f >= flows_.size()) flows_.resize(f + 1);
    const std::uint32_t prediction = flows_[f].prediction;
    flows_[f] = {id, work, 0, now_, prediction};
    ++node(id).flows;
  }

  void end_flow(int f, std::uint32_t prediction) {
    Flow& flow = flows_[static_cast<std::size_t>(f)];
    if (flow.prediction != prediction) return;
    ++flow.prediction;
    sharing_.stop(f);
    Node& n = node(flow.node);
    if (--n.flows > 0) return;
    if (n.own_link != kNoLink) unused_links_.push_back(n.own_link);
    if (n.adding > 0) {
      at(now_ + n.adding, Happens::message_ends, flow.node);
    } else {
      finish(flow.node);
    }
  }

  // A link that no other message takes.
  int own_link(double capacity) {
    if (unused_links_.empty()) unused_links_.push_back(sharing_.add_link());
    const int link = unused_links_.back();
    unused_links_.pop_back();
    sharing_.set_capacity(link, capacity);
    return link;
  }

  void predict_ends() {
    for (const int f : sharing_.settle()) {
      Flow& flow = flows_[static_cast<std::size_t>(f)];
      flow.left = std::max(0.0, flow.left - flow.rate * (now_ - flow.since));
      flow.since = now_;
      flow.rate = sharing_.rate(f);
      at(now_ + flow.left / flow.rate, Happens::flow_ends, static_cast<std::uint64_t>(f),
         ++flow.prediction);
    }
  }

  void finish(Id id) {
    Node& n = node(id);
    n.done = true;
    if (n.round >= 0) {
      end_ = std::max(end_, now_);
      double& round_end = result_.round_end[static_cast<std::size_t>(n.round)];
      round_end = std::max(round_end, now_);
      if (n.parties == nullptr) {
        if (n.from != n.to) {
          release(send_, n.from);
          release(receive_, n.to);
        }
      } else {
        n.parties->from.for_each([this](Rank r) { release(send_, r); });
        n.parties->to.for_each([this](Rank r) { release(receive_, r); });
        n.parties.reset();
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

  const Schedule& schedule_;
  const Fabric& fabric_;
  const Pricing& pricing_;
  const Routes& routes_;
  const bool by_rounds_, unlimited_;
  const std::vector<Rates> rates_;  // by Fabric's kinds of links
  const double gamma_;              // per unit of weight
  const double alpha_hop_, alpha_switch_;

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

  MaxMin sharing_;
  std::vector<Flow> flows_;        // by their numbers in sharing_
  std::vector<int> up_, down_;     // links of a message that begins to flow
  std::vector<int> unused_links_;  // of those that are one message's
  std::vector<Ports> send_, receive_;
  int ports_free_;  // ranks and directions that have a port which nobody has claimed

  double now_ = 0, end_ = 0;
  std::uint64_t order_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Status status_;
  FlowTimes result_;
};

}  // namespace

std::string_view name_of(Fidelity fidelity) { return fidelity == Fidelity::eq1 ? "eq1" : "flow"; }

std::optional<Fidelity> parse_fidelity(std::string_view text) {
  for (const Fidelity fidelity : {Fidelity::eq1, Fidelity::flow}) {
    if (name_of(fidelity) == text) return fidelity;
  }
  return std::nullopt;
}

Result<FlowTimes> simulate_flow(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
                                std::uint64_t bytes, const SimulateOptions& options) {
  const auto wired = wired_for(fabric, schedule.ranks);
  if (!wired.ok()) return wired.status();
  try {
    const auto pricing = pricing_of(*wired, goal, bytes, options);
    if (!pricing.ok()) return pricing.status();
    if (!wired->odd.empty() && wired->wiring.shares_links() && wired->link.beta == 0) {
      return invalid_argument(
          "the network has beta 0 and odd links, of which the flow fidelity knows parts of the "
          "rest's bandwidth; allowed is eq1");
    }
    const auto routes = Routes::make(wired->wiring, wired->places_among(schedule.ranks));
    if (!routes.ok()) return routes.status();
    return FlowSimulator(schedule, goal, *wired, *pricing, *routes, options).run();
  } catch (const std::bad_alloc&) {
    return Status(Code::out_of_memory, "simulating the flows of " + std::to_string(schedule.ranks) +
                                           " ranks with " + std::to_string(schedule.places()) +
                                           " blocks each");
  }
}

}  // namespace rankine
