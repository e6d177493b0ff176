#include "engine/read/flow.h"

#include <algorithm>
#include <utility>

#include "engine/read/carried_schedule.h"
#include "engine/read/max_min.h"
#include "engine/read/message_order.h"

namespace rankine {
namespace {

constexpr int kNoLink = -1;

// What is a flow's own of a message.
struct FlowLoad {
  double work = 0;         // seconds that its bytes need on a link of their own
  int flows = 0;           // still under way
  int own_link = kNoLink;  // which is all that an odd place lets through
};

class FlowSimulator : public MessagesInOrder<double, FlowLoad, FlowSimulator> {
  using Order = MessagesInOrder<double, FlowLoad, FlowSimulator>;
  friend Order;

 public:
  explicit FlowSimulator(const CarriedSchedule& of)
      : Order(of),
        ways_(of),
        rates_(rates_of_kinds()),
        gamma_(of.fabric.gamma.to_double() / static_cast<double>(of.pricing.weight_per_byte())),
        alpha_hop_(of.fabric.alpha_hop.to_double()),
        alpha_switch_(of.fabric.alpha_switch.to_double()),
        sharing_(ways_.links()) {
    set_odd_wires();
  }

 private:
  enum What : std::uint8_t { kFlowsStart = 1, kFlowEnds };

  struct Rates {
    double alpha = 0, beta = 0;  // beta per unit of weight
  };
  struct Flow {
    Id node = 0;
    double left = 0, rate = 0, since = 0;  // `left` was true at `since`
    std::uint32_t prediction = 0;          // which of its predicted ends holds
  };

  std::vector<Rates> rates_of_kinds() const {
    std::vector<Rates> all;
    for (int kind = 0; kind < fabric().link_kinds(); ++kind) {
      const Link link = fabric().link_of_kind(kind);
      all.push_back(
          {link.latency().to_double(),
           link.per_byte().to_double() / static_cast<double>(pricing().weight_per_byte())});
    }
    return all;
  }
  const Rates& rates_of(int kind) const { return rates_[static_cast<std::size_t>(kind)]; }
  // Kinds come in pairs, of which the first two are those of links that are not odd.
  const Rates& like_the_rest(int kind) const { return rates_of(kind % 2); }
  // What passes there, in parts of what passes a link that is like the rest.
  double part(int kind) const {
    constexpr double kAnything = 1e18;
    const double beta = rates_of(kind).beta;
    return beta > 0 ? like_the_rest(kind).beta / beta : kAnything;
  }
  void set_odd_wires() {
    ways_.for_each_odd_wire(
        [this](int link, int kind) { sharing_.set_capacity(link, part(kind)); });
  }
  int kind_of(const Node& n) const { return fabric().kind_between(n.from, n.to); }

  // --- What MessagesInOrder asks

  double adding(std::int64_t weight) const { return gamma_ * static_cast<double>(weight); }

  void launch(Id id) {
    Node& n = node(id);
    const auto weight = static_cast<double>(n.weight);
    if (n.parties != nullptr) {
      return ends_at(now() + 2 * alpha_switch_ + rates_of(0).beta * weight + n.adding, id);
    }
    // Where links are shared, seconds are those of one that is like the rest.
    const int kind = kind_of(n);
    const bool shares = ways_.shares_links(n.from, n.to);
    n.load.work = (shares ? like_the_rest(kind) : rates_of(kind)).beta * weight;
    const double flowing = now() + rates_of(kind).alpha + ways_.hops(n.from, n.to) * alpha_hop_;
    if (n.load.work > 0 && shares) {
      at(flowing, kFlowsStart, id, 0, next_order());
    } else {
      ends_at(flowing + n.load.work + n.adding, id);
    }
  }

  // What rounding alone keeps from now is now.
  double until() const {
    constexpr double kRounding = 1e-12;
    return now() * (1 + kRounding);
  }

  void happens(const Event& event) {
    if (event.what == kFlowsStart) {
      start_flows(event.who);
    } else {
      end_flow(static_cast<int>(event.who), event.version);
    }
  }

  void settle() {
    for (const int f : sharing_.settle()) {
      Flow& flow = flows_[static_cast<std::size_t>(f)];
      flow.left = std::max(0.0, flow.left - flow.rate * (now() - flow.since));
      flow.since = now();
      flow.rate = sharing_.rate(f);
      at(now() + flow.left / flow.rate, kFlowEnds, static_cast<std::uint64_t>(f), ++flow.prediction,
         next_order());
    }
  }

  // --- Flows

  void start_flows(Id id) {
    Node& n = node(id);
    ways_.find(n.from, n.to);
    if (const int kind = kind_of(n); kind >= 2 && part(kind) < 1) {
      n.load.own_link = own_link(part(kind));
      for (auto* way : {&ways_.up, &ways_.down}) way->push_back(n.load.own_link);
    }
    if (ways_.splits) {
      start_flow(id, n.load.work / 2, 1, ways_.up);
      start_flow(id, n.load.work / 2, 1, ways_.down);
    } else {
      start_flow(id, n.load.work, 2, ways_.up);
    }
  }

  void start_flow(Id id, double work, int halves, const std::vector<int>& links) {
    const auto f = static_cast<std::size_t>(sharing_.start(halves, links));
    if (f >= flows_.size()) flows_.resize(f + 1);
    const std::uint32_t prediction = flows_[f].prediction;
    flows_[f] = {id, work, 0, now(), prediction};
    ++node(id).load.flows;
  }

  void end_flow(int f, std::uint32_t prediction) {
    Flow& flow = flows_[static_cast<std::size_t>(f)];
    if (flow.prediction != prediction) return;
    ++flow.prediction;
    sharing_.stop(f);
    Node& n = node(flow.node);
    if (--n.load.flows > 0) return;
    if (n.load.own_link != kNoLink) unused_links_.push_back(n.load.own_link);
    arrived(flow.node);
  }

  // A link that no other message takes.
  int own_link(double capacity) {
    if (unused_links_.empty()) unused_links_.push_back(sharing_.add_link());
    const int link = unused_links_.back();
    unused_links_.pop_back();
    sharing_.set_capacity(link, capacity);
    return link;
  }

  Ways ways_;
  const std::vector<Rates> rates_;  // by Fabric's kinds of links
  const double gamma_;              // per unit of weight
  const double alpha_hop_, alpha_switch_;

  MaxMin sharing_;
  std::vector<Flow> flows_;        // by their numbers in sharing_
  std::vector<int> unused_links_;  // of those that are one message's
};

Result<FlowTimes> flown(const CarriedSchedule& of) {
  if (!of.fabric.odd.empty() && of.fabric.wiring.shares_links() && of.fabric.link.beta == 0) {
    return invalid_argument(
        "the network has beta 0 and odd links, of which the flow fidelity knows parts of the "
        "rest's bandwidth; allowed is eq1");
  }
  FlowSimulator simulator(of);
  if (Status status = simulator.run(); !status.ok()) return status;
  return FlowTimes{simulator.end(), std::move(simulator.round_end()), simulator.messages()};
}

}  // namespace

Result<FlowTimes> simulate_flow(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
                                std::uint64_t bytes, const SimulateOptions& options) {
  return carried(schedule, goal, fabric, bytes, options, nullptr, flown);
}

Result<FlowTimes> simulate_flow(const Skeleton& skeleton, const Fabric& fabric,
                                std::uint64_t bytes) {
  return carried(skeleton, fabric, bytes, flown);
}

}  // namespace rankine
