// Pricing and RoundPrices say what transfers cost, exactly: times are integers (Ticks) in a unit in
// which every alpha and the time of every byte are whole. Congestion counts the load of shared
// links.
//
// The unit is chosen per question (fabric, size, blocks), so that no rounding ever happens; the
// last step turns ticks into seconds once. 128 bits hold hours at the finest units in use.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/rational.h"
#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/wiring.h"

namespace rankine {

// Checks the sizes in bytes of a collective's natural blocks (collective.h): their number, and the
// greatest allowed size. The error names the wrong one.
Status check_counts(Collective collective, int ranks, std::span<const std::uint64_t> counts);

// The cost of a message in ticks: alpha of its link, plus the weight of its blocks times the link's
// beta per unit of weight.
class Pricing {
 public:
  // The greatest cost of a message: it can be added to any time up to kMost without overflow.
  static constexpr Ticks kMost = Ticks{1} << 125;

  // `bytes` is M, the size of blocks_per_m() blocks together. Blocks get whole bytes, the first M
  // mod B one more; with `ideal` every block is exactly M / B. Errors: more than 2^52 bytes, and a
  // common unit or a greatest message beyond 128 bits.
  static Result<Pricing> make(const Fabric& fabric, const CollectiveSpec& goal, std::uint64_t bytes,
                              bool ideal);

  // As make(), for natural blocks (collective.h) with the given sizes in bytes, in order: each of
  // the S parts of a block gets whole bytes, the first ones one more. Errors: also check_counts().
  static Result<Pricing> of_counts(const Fabric& fabric, const CollectiveSpec& goal,
                                   std::span<const std::uint64_t> counts);

  // As make(), for blocks with the given sizes in bytes, in order.
  static Result<Pricing> of_blocks(const Fabric& fabric, std::span<const std::uint64_t> bytes);

  // The weight of a set of blocks; bytes times weight_per_byte().
  std::int64_t weight(const IndexList& blocks) const {
    std::int64_t total = 0;
    for (int i = 0; i < blocks.runs(); ++i) {
      const Run& run = blocks.run(i);
      total += run.stride == 1 ? upto_[static_cast<std::size_t>(run.first + run.count)] -
                                     upto_[static_cast<std::size_t>(run.first)]
                               : weight_of_strided(run);
    }
    return total;
  }
  // True if all blocks have equal weight.
  bool blocks_alike() const;
  std::int64_t weight_per_byte() const { return weight_per_byte_; }

  // Rates in ticks; betas are per unit of weight. If messages share links, betas are even, so that
  // half a message has a price. Otherwise every message crosses one link, and the alphas include
  // its hop.
  struct LinkRates {
    Ticks alpha = 0, beta = 0;
  };
  struct Rates {
    std::vector<LinkRates> links;  // by kind of link of the Fabric
    Ticks switch_alpha = 0, hop = 0, gamma = 0;
  };
  const Rates& rates() const { return rates_; }
  // The greatest cost of a transfer of this goal's blocks if messages share no links.
  Ticks most() const { return most_; }

  // The cost of a message over a private link; RoundPrices has the cost over shared links.
  Ticks message(const Fabric& fabric, Rank from, Rank to, std::int64_t weight) const {
    const LinkRates& rates = link(fabric, from, to);
    return rates.alpha + rates.beta * weight;
  }
  const LinkRates& link(const Fabric& fabric, Rank from, Rank to) const {
    return rates_.links[static_cast<std::size_t>(fabric.kind_between(from, to))];
  }
  // A multicast or ALU transfer: two hops and one passage of the data.
  Ticks through_switch(std::int64_t weight) const {
    return rates_.switch_alpha * 2 + rates_.links.front().beta * weight;
  }
  // The time in which a receiver adds the data of a transfer, or a rank adds blocks locally. A
  // switch adds without extra time.
  Ticks adding(const Transfer& t, std::int64_t weight) const {
    return t.kind == TransferKind::reduce && t.from.size() == 1 ? rates_.gamma * weight : 0;
  }

  // Rounded once, to the nearest double.
  double seconds(Ticks ticks) const { return nearest_double(ticks, per_second_); }
  Rational exact_seconds(Ticks ticks) const { return {ticks, per_second_}; }
  Ticks ticks_per_second() const { return per_second_; }

 private:
  std::int64_t weight_of_strided(const Run& run) const;
  // Sets the unit and the rates; needs the weights.
  Status settle(const Fabric& fabric);

  std::vector<std::int64_t> upto_;  // weight of the blocks before each block
  std::int64_t weight_per_byte_ = 1;
  Ticks per_second_ = 1;
  Ticks most_ = 0;
  Rates rates_;
};

// How much the messages of one round load the links that they share.
//
// Weights are those of Pricing. Loads are in half weights, because half of a message may go each
// way round a ring: a message of weight w on a private link loads it with 2 w.
//
// Messages that wait for each other at a port do not meet on a link. So a leaf's link to a spine,
// which all ranks of the leaf share, carries at once at most the largest messages of each sender,
// as many as it has ports, and at most those of each receiver. A rank that sends several messages
// over that link through one port then pays for the whole link once, not once per message. On a
// grid ports are wires, and a message meets all other messages of its round: Eq. (1) as stated.

struct RoundTraffic {
  Int128 load = 0;           // half weights that the busiest link carries
  std::int64_t largest = 0;  // weight of the largest message
  int hops = 0;              // links that the longest route crosses

  // The number of equally large messages on the busiest link: c_k of Trivance's Eq. (1). 0 without
  // messages.
  double congestion() const { return largest == 0 ? 0 : nearest_double(load, Int128{largest} * 2); }
};

// Collects the messages of a round, then returns the loads of their links. The time per message is
// one addition per link crossed. For one thread.
class Congestion {
 public:
  // With `one_for_all`, the messages added are those of one rank, which stands for all ranks round
  // the rings of a torus (rotation_symmetric.h): the rank's load on one link appears on every link
  // of that direction, shifted by rank, so all links of a direction carry equal load. `ports` is
  // the number per rank and direction; 0: unlimited.
  explicit Congestion(Routes routes, bool one_for_all = false, int ports = 0)
      : routes_(std::move(routes)),
        ports_(routes_.has_leaves() ? static_cast<std::size_t>(ports) : 0),
        counted_(std::max(1, one_for_all ? routes_.degree() : routes_.links())),
        loads_(static_cast<std::size_t>(counted_), 0) {}

  const Routes& routes() const { return routes_; }

  // Begins a new round, without messages.
  void clear() {
    std::fill(loads_.begin(), loads_.end(), 0);
    traffic_ = {};
    crossings_.clear();
  }

  // Adds a message of the round. A message from a rank to itself crosses no link and is not
  // counted.
  void add(Rank from, Rank to, std::int64_t weight) {
    if (from == to) return;
    bool shares = false;
    routes_.for_each_link(from, to, [&](int link, int halves) {
      shares = true;
      Int128& load = loads_[counted(link)];
      load += Int128{weight} * halves;
      traffic_.load = std::max(traffic_.load, load);
      if (ports_ > 0) crossings_.push_back({link, from, to, weight});
    });
    if (!shares) traffic_.load = std::max(traffic_.load, Int128{weight} * 2);
    traffic_.largest = std::max(traffic_.largest, weight);
    traffic_.hops = std::max(traffic_.hops, routes_.hops(from, to));
  }

  // Call after the last message of the round: removes the loads of messages that wait at ports.
  void settle() {
    if (ports_ == 0) return;
    const std::vector<Int128> of_senders = at_once(&Crossing::from);
    const std::vector<Int128> of_receivers = at_once(&Crossing::to);
    for (std::size_t link = 0; link < loads_.size(); ++link) {
      loads_[link] = std::min(of_senders[link], of_receivers[link]);
    }
  }

  // Calls visit(int link, Int128 load) for every shared link of a message that was added; a message
  // without shared links is visited once with link -1 and its own load.
  template <class Visit>
  void for_each_load(Rank from, Rank to, std::int64_t weight, const Visit& visit) const {
    bool shares = false;
    routes_.for_each_link(from, to, [&](int link, int) {
      shares = true;
      visit(link, loads_[counted(link)]);
    });
    if (!shares) visit(-1, Int128{weight} * 2);
  }
  // The load of the busiest of these links.
  Int128 busiest(Rank from, Rank to, std::int64_t weight) const {
    Int128 most = 0;
    for_each_load(from, to, weight, [&](int, Int128 load) { most = std::max(most, load); });
    return most;
  }

  // The traffic of all messages added, regardless of waits at ports.
  const RoundTraffic& traffic() const { return traffic_; }

 private:
  // Avoids the division in most calls: long routes have many links, and the division would take
  // most of the time per link.
  std::size_t counted(int link) const {
    return static_cast<std::size_t>(link < counted_ ? link : link % counted_);
  }

  struct Crossing {
    int link;
    Rank from, to;
    std::int64_t weight;
  };

  // By link: for each rank at end `end` of the link's messages, the sum of its largest messages, as
  // many as a rank has ports; added over these ranks.
  std::vector<Int128> at_once(Rank Crossing::*end) {
    std::sort(crossings_.begin(), crossings_.end(), [end](const Crossing& a, const Crossing& b) {
      return std::tuple(a.link, a.*end, b.weight) < std::tuple(b.link, b.*end, a.weight);
    });
    std::vector<Int128> loads(loads_.size(), 0);
    std::size_t before = 0;  // earlier messages of that rank over that link
    for (std::size_t i = 0; i < crossings_.size(); ++i) {
      const Crossing& c = crossings_[i];
      const bool same =
          i > 0 && crossings_[i - 1].link == c.link && crossings_[i - 1].*end == c.*end;
      before = same ? before + 1 : 0;
      if (before < ports_) loads[static_cast<std::size_t>(c.link)] += Int128{c.weight} * 2;
    }
    return loads;
  }

  Routes routes_;
  std::size_t ports_;  // 0: ports do not matter
  // links, or the directions of a torus (two per dimension): links are numbered rank by rank
  int counted_;
  std::vector<Int128> loads_;  // by link or direction
  RoundTraffic traffic_;
  std::vector<Crossing> crossings_;  // crossings in this round, if ports matter
};

// RoundPrices is the cost of messages on a network with shared links: Pricing and Congestion
// together. The simulator, the clocks on threads and the choice of segments all use it; without
// shared links it equals Pricing::message().
//
// For one thread. `fabric` (returned by wired_for()) and `pricing` (of that fabric) must outlive
// it.
class RoundPrices {
 public:
  // `one_for_all`: the rounds contain one rank's part, which is rotated round the rings of a fabric
  // with shared links. Errors: those of Routes::make().
  static Result<RoundPrices> make(const Fabric& fabric, const Pricing& pricing, int ranks,
                                  bool one_for_all = false);

  // Collects the messages of round k of a schedule; call it before the other members. Does nothing
  // without shared links. Calls `crosses` with each message's number of links before visiting them;
  // if `crosses` throws, the round is incomplete and the prices must not be used.
  void begin_round(const Schedule& schedule, int k,
                   const std::function<void(int links)>& crosses = {});

  // For a message of the round, between two different ranks: alpha and hops, independent of the
  // size; and the whole cost, nullopt if it is more than Pricing::kMost.
  Ticks latency(Rank from, Rank to) const;
  std::optional<Ticks> message(Rank from, Rank to, std::int64_t weight) const;
  // The cost of any transfer of the round with the given weight; a local one costs the time of its
  // additions.
  std::optional<Ticks> price(const Transfer& t, std::int64_t weight) const;
  // The part of the cost that a port pays once a round, for the greatest of its messages: the
  // latency if the switch permutes and the transfer is a message. Otherwise 0.
  Ticks once(const Transfer& t) const;

  bool shares_links() const { return fabric_->wiring.shares_links(); }
  // The traffic of the current round; empty without shared links.
  const RoundTraffic& traffic() const { return congestion_.traffic(); }

 private:
  RoundPrices(const Fabric& fabric, const Pricing& pricing, Routes routes, bool one_for_all);

  const Fabric* fabric_;
  const Pricing* pricing_;
  Congestion congestion_;
  // The beta of odd shared links, by link, in ticks per unit of weight as in Pricing; 0: an
  // ordinary link. Empty without odd links.
  std::vector<Ticks> odd_beta_;
};

// The error for a message() without a value.
Status beyond_128_bits();

// Checks that a network has the ability that a transfer needs: one -> many needs multicast, many ->
// one an ALU. The error names the missing one.
Status check_ability(const Transfer& transfer, const Fabric& fabric);

}  // namespace rankine
