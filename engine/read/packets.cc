#include "engine/read/flow.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/network/prices.h"
#include "engine/read/carried_schedule.h"

namespace rankine {
namespace {

// The packet simulator's part of a message.
struct PacketLoad {
  std::uint64_t left = 0;          // packets that have not reached the receiver
  std::uint32_t up = 0, down = 0;  // its ways
};

template <class Tick>
class PacketSimulator : public MessagesInOrder<Tick, PacketLoad, PacketSimulator<Tick>> {
  using Order = MessagesInOrder<Tick, PacketLoad, PacketSimulator<Tick>>;
  friend Order;
  using Order::arrived;
  using Order::at;
  using Order::ends_at;
  using Order::fabric;
  using Order::node;
  using Order::now;
  using Order::pricing;
  using typename Order::Event;
  using typename Order::Id;
  using typename Order::Node;

 public:
  explicit PacketSimulator(const CarriedSchedule& of)
      : Order(of),
        ways_(of),
        rates_(of.pricing.rates()),
        hop_(of.fabric.wiring.shares_links() ? static_cast<Tick>(rates_.hop) : 0),
        mtu_(std::int64_t{kHalves} * of.fabric.mtu * of.pricing.weight_per_byte()),
        links_(static_cast<std::size_t>(ways_.links())) {
    ways_.for_each_odd_wire(
        [this](int link, int kind) { link_at(link).odd_beta = half_beta(kind); });
  }

  std::uint64_t packets() const { return packets_; }
  bool overflowed() const { return overflowed_; }

 private:
  static constexpr int kHalves = 2;  // packet sizes are in half weights, as the loads of Congestion
  static constexpr Tick kLatest = Tick{1} << (8 * sizeof(Tick) - 3);
  enum What : std::uint8_t { kJoins = 1, kArrives };

  // A reference to trains_[index]; `use` detects that the entry holds another train by now.
  struct Ref {
    std::uint32_t index = 0, use = 0;
  };
  static constexpr Ref kNone{};

  // Packets of one size that arrive at a link, or finally at their receiver, at equal intervals.
  struct Train {
    std::uint32_t use = 1;
    // its way, and the index of the next link on it; past the last one: the receiver
    std::uint32_t way = 0, at = 0;
    Tick first = 0, gap = 0;  // arrival of the first packet, and the interval between packets
    std::int64_t count = 0, size = 0;
    bool rest = false;  // true: the smaller last packet of a message
    // Set when the train has joined the link's queue, at the arrival of its first packet: the time
    // at which that packet is sent, the interval between leaving packets, and the train that they
    // become at the next link.
    bool joined = false;
    Tick start = 0, leaving = 0;
    Ref before{}, next{};
    std::uint32_t version = 0;  // number of its valid event
  };
  struct Way {
    Id node = 0;
    Tick beta = 0;  // per half weight
    bool down = false;
    std::vector<int> links{};
  };
  struct Queue {
    Tick free = 0;  // the time at which the last packet so far has been sent
    std::optional<Tick> odd_beta{};
    Ref last{};  // the train of that packet: only this train can have packets still to come
  };

  Queue& link_at(int link) { return links_[static_cast<std::size_t>(link)]; }
  Train* train(Ref ref) {
    Train& t = trains_[ref.index];
    return t.use == ref.use ? &t : nullptr;
  }
  Ref ref_of(const Train& t) const {
    return {static_cast<std::uint32_t>(&t - trains_.data()), t.use};
  }
  const Way& way_of(const Train& t) const { return ways_taken_[t.way]; }
  bool at_receiver(const Train& t) const { return t.at == way_of(t).links.size(); }
  Queue& queue_of(const Train& t) { return link_at(way_of(t).links[t.at]); }
  // The time in which the train's link sends one of its packets.
  Tick sending(const Train& t) {
    return queue_of(t).odd_beta.value_or(way_of(t).beta) * static_cast<Tick>(t.size);
  }
  Tick half_beta(int kind) const {
    return static_cast<Tick>(rates_.links[static_cast<std::size_t>(kind)].beta / kHalves);
  }

  // --- Functions that MessagesInOrder calls

  Tick adding(std::int64_t weight) const {
    return static_cast<Tick>(rates_.gamma) * static_cast<Tick>(weight);
  }
  Tick until() const { return now(); }
  void settle() {}

  void launch(Id id) {
    const Node& n = node(id);
    if (n.parties != nullptr) return pass(id, pricing().through_switch(n.weight));
    const int kind = fabric().kind_between(n.from, n.to);
    const Pricing::LinkRates& rates = rates_.links[static_cast<std::size_t>(kind)];
    ways_.find(n.from, n.to);
    if (ways_.up.empty()) {
      return pass(id, rates.alpha + ways_.hops(n.from, n.to) * Ticks{hop_} + rates.beta * n.weight);
    }
    if (!fits(rates.alpha, n, ways_.up.size() + ways_.down.size())) return;
    // An odd wire has a separate beta; this is the ordinary one.
    const Tick beta = half_beta(kind % 2), first = now() + static_cast<Tick>(rates.alpha);
    if (ways_.splits) {
      send(id, n.weight, beta, first, false);
      send(id, n.weight, beta, first, true);
    } else {
      send(id, kHalves * n.weight, beta, first, false);
    }
  }

  void happens(const Event& event) {
    Train* t =
        train({static_cast<std::uint32_t>(event.who), static_cast<std::uint32_t>(event.who >> 32)});
    if (t == nullptr || t->version != event.version) return;
    if (t->count == 0) return forget(*t);
    if (event.what == kJoins) return join(ref_of(*t));
    const Way& way = way_of(*t);
    const Id id = way.node;
    PacketLoad& load = node(id).load;
    load.left -= static_cast<std::uint64_t>(t->count);
    forget(*t);
    if (load.left > 0) return;
    unused_ways_.push_back(load.up);
    if (load.down != load.up) unused_ways_.push_back(load.down);
    arrived(id);
  }

  // --- Messages

  // Ends a message that crosses no shared link.
  void pass(Id id, Ticks cost) {
    if (fits(cost, node(id), 0)) ends_at(now() + static_cast<Tick>(cost) + node(id).adding, id);
  }

  // No time is later than the sum of the costs of all messages, stored on every link.
  bool fits(Ticks cost, const Node& n, std::size_t links) {
    Ticks dearest = 0;
    for (const auto& rates : rates_.links) dearest = std::max(dearest, rates.beta);
    const Ticks each = Ticks{hop_} + dearest * n.weight;
    const Ticks left = Ticks{kLatest} - total_ - cost - n.adding;
    if (left >= 0 && (links == 0 || each <= left / static_cast<Ticks>(links))) {
      total_ += cost + n.adding + static_cast<Ticks>(links) * each;
      return true;
    }
    overflowed_ = true;
    this->fail(beyond_128_bits());
    return false;
  }

  void send(Id id, std::int64_t weight, Tick beta, Tick first, bool down) {
    const std::uint32_t way = take_way();
    ways_taken_[way].node = id;
    ways_taken_[way].beta = beta;
    ways_taken_[way].down = down;
    ways_taken_[way].links.swap(down ? ways_.down : ways_.up);
    PacketLoad& load = node(id).load;
    load.down = way;
    if (!down) load.up = way;
    const std::int64_t whole = weight / mtu_, rest = weight % mtu_;
    if (whole > 0) set_out(way, first, whole, mtu_, false);
    if (rest > 0 || whole == 0) set_out(way, first, 1, rest, true);
  }

  void set_out(std::uint32_t way, Tick first, std::int64_t count, std::int64_t size, bool rest) {
    Train& t = new_train();
    t.way = way;
    t.at = 0;
    t.first = first;
    t.gap = 0;
    t.count = count;
    t.size = size;
    t.rest = rest;
    const auto packets = static_cast<std::uint64_t>(count);
    node(ways_taken_[way].node).load.left += packets;
    packets_ += packets;
    expect(t);
  }

  std::uint32_t take_way() {
    if (unused_ways_.empty()) {
      unused_ways_.push_back(static_cast<std::uint32_t>(ways_taken_.size()));
      ways_taken_.emplace_back();
    }
    const std::uint32_t way = unused_ways_.back();
    unused_ways_.pop_back();
    return way;
  }

  // --- Trains

  // May move the other trains in memory.
  Train& new_train() {
    if (unused_trains_.empty()) {
      unused_trains_.push_back(static_cast<std::uint32_t>(trains_.size()));
      trains_.emplace_back();
    }
    Train& t = trains_[unused_trains_.back()];
    unused_trains_.pop_back();
    t.joined = false;
    t.before = t.next = kNone;
    t.version = 0;
    return t;
  }
  void forget(Train& t) {
    ++t.use;
    unused_trains_.push_back(static_cast<std::uint32_t>(&t - trains_.data()));
  }

  // The order in which packets that arrive at one time are taken.
  std::uint64_t order_of(const Train& t) const {
    constexpr std::uint64_t kFarthest = (std::uint64_t{1} << 20) - 1;
    const Way& way = way_of(t);
    return (kFarthest - t.at) << 44 | way.node << 2 | (way.down ? 2U : 0U) | (t.rest ? 1U : 0U);
  }
  // Schedules the train's next event: its first packet joins a queue, or its last one is at the
  // receiver.
  void expect(const Train& t) {
    const bool arrives = at_receiver(t);
    const Ref ref = ref_of(t);
    at(arrives ? t.first + static_cast<Tick>(t.count - 1) * t.gap : t.first,
       arrives ? kArrives : kJoins, std::uint64_t{ref.use} << 32 | ref.index, t.version,
       order_of(t));
  }

  // The first packet has arrived. The train's later packets are entered in the queue with it, as if
  // no other packet came between; a packet that does removes them again (make_room()).
  void join(Ref ref) {
    make_room(ref);
    Queue& queue = queue_of(*train(ref));
    const Tick each = sending(*train(ref));
    const Train& came = *train(ref);
    if (came.gap > each && queue.free > came.first) {
      // The train arrives more slowly than it leaves: only this number of packets must wait.
      const Tick waiting = (queue.free - came.first + came.gap - each - 1) / (came.gap - each);
      if (waiting < static_cast<Tick>(came.count)) split(ref, static_cast<std::int64_t>(waiting));
    }
    Train& onward = new_train();
    Train& t = *train(ref);
    const bool waits = queue.free > t.first;
    t.joined = true;
    t.start = waits ? queue.free : t.first;
    t.leaving = waits || t.gap < each ? each : t.gap;
    queue.free = last_sent(t);
    if (Train* previous = train(queue.last)) forget(*previous);
    queue.last = ref;
    onward.way = t.way;
    onward.at = t.at + 1;
    onward.first = t.start + each + hop_;
    onward.gap = t.leaving;
    onward.count = t.count;
    onward.size = t.size;
    onward.rest = t.rest;
    onward.before = ref;
    t.next = ref_of(onward);
    expect(onward);
  }
  Tick last_sent(const Train& t) {
    return t.start + static_cast<Tick>(t.count - 1) * t.leaving + sending(t);
  }

  // Removes the packets from the queue that arrive after the train that has come.
  void make_room(Ref ref) {
    const Ref last = queue_of(*train(ref)).last;
    Train* before = train(last);
    if (before == nullptr || before->gap == 0) return;
    const bool goes_first = order_of(*before) < order_of(*train(ref));
    const Tick come = now() - before->first;  // time since the arrival of its first packet
    const auto kept = static_cast<std::int64_t>(come / before->gap) +
                      (come % before->gap > 0 || goes_first ? 1 : 0);
    if (std::max<std::int64_t>(kept, 1) < before->count)
      split(last, std::max<std::int64_t>(kept, 1));
  }

  // Keeps the first `count` packets; the others become a separate train, which is still to come.
  void split(Ref ref, std::int64_t count) {
    Train& others = new_train();
    Train& t = *train(ref);
    const std::int64_t gone = t.count - count;
    others.way = t.way;
    others.at = t.at;
    others.first = t.first + static_cast<Tick>(count) * t.gap;
    others.gap = t.gap;
    others.count = gone;
    others.size = t.size;
    others.rest = t.rest;
    others.before = t.before;
    if (Train* before = train(t.before)) before->next = ref_of(others);
    take_back(t, gone);
    expect(others);
  }

  // Removes `gone` packets from the end of the train, and from the trains that it became further
  // on.
  void take_back(Train& t, std::int64_t gone) {
    t.count -= gone;
    if (t.joined) {
      queue_of(t).free = last_sent(t);
      take_back(*train(t.next), gone);
    } else if (at_receiver(t) && t.count > 0) {
      ++t.version;
      expect(t);
    }
  }

  Ways ways_;
  const Pricing::Rates& rates_;
  const Tick hop_;
  const std::int64_t mtu_;  // half weights
  std::vector<Queue> links_;
  std::vector<Train> trains_;
  std::vector<Way> ways_taken_;
  std::vector<std::uint32_t> unused_trains_, unused_ways_;
  std::uint64_t packets_ = 0;
  Ticks total_ = 0;
  bool overflowed_ = false;
};

// nullopt if the times do not fit into Tick.
template <class Tick>
std::optional<Result<PacketTimes>> packets_in(const CarriedSchedule& of) {
  PacketSimulator<Tick> simulator(of);
  Status status = simulator.run();
  if (simulator.overflowed()) return std::nullopt;
  if (!status.ok()) return Result<PacketTimes>(std::move(status));
  PacketTimes out{.end = simulator.end(),
                  .round_end = {simulator.round_end().begin(), simulator.round_end().end()},
                  .ticks_per_second = of.pricing.ticks_per_second(),
                  .seconds = of.pricing.seconds(simulator.end()),
                  .messages = simulator.messages(),
                  .packets = simulator.packets()};
  return Result<PacketTimes>(std::move(out));
}

Result<PacketTimes> sent(const CarriedSchedule& of) {
  if (of.fabric.wiring.shares_links()) {
    for (const OddLink& odd : of.fabric.odd) {
      if (!odd.is_place()) continue;
      return invalid_argument("the network has an odd place " + std::to_string(odd.at) +
                              " and links that messages share; packets support odd wires only; "
                              "allowed are eq1 and flow");
    }
  }
  auto result = packets_in<std::int64_t>(of);
  if (!result) result = packets_in<Ticks>(of);
  if (!result) return beyond_128_bits();
  return std::move(*result);
}

}  // namespace

Result<PacketTimes> simulate_packets(const Schedule& schedule, const CollectiveSpec& goal,
                                     const Fabric& fabric, std::uint64_t bytes,
                                     const SimulateOptions& options) {
  return carried(schedule, goal, fabric, bytes, options, nullptr, sent);
}

Result<PacketTimes> simulate_packets(const Skeleton& skeleton, const Fabric& fabric,
                                     std::uint64_t bytes) {
  return carried(skeleton, fabric, bytes, sent);
}

}  // namespace rankine
