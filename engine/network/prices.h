// Exact time: integers in a unit in which every alpha and every byte is a whole number.
//
// A unit is chosen per question (fabric, size, blocks), so that no rounding ever happens; the last
// step turns ticks into seconds once. 128 bits hold hours at the finest units in use.
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

// Whether these are the bytes of a collective's natural blocks (collective.h): the error says how
// many there are, or which is too large.
Status check_counts(Collective collective, int ranks, std::span<const std::uint64_t> counts);

// What a message costs, in ticks: alpha of its link, plus the weight of its blocks times the link's
// beta per unit of weight.
class Pricing {
 public:
  // No message costs more, so that one can be added to any time up to this without overflow.
  static constexpr Ticks kMost = Ticks{1} << 125;

  // `bytes` is M (blocks_per_m() of the goal's blocks make it up). Blocks get whole bytes, the
  // first M mod B one more; with `ideal` every block is exactly M / B. Errors: more than 2^52
  // bytes, and times whose common unit or whose greatest message leave 128 bits.
  static Result<Pricing> make(const Fabric& fabric, const Goal& goal, std::uint64_t bytes,
                              bool ideal);

  // The same of natural blocks of so many bytes each (collective.h), in order: each of their S
  // parts gets whole bytes, the first ones one more. Errors: also check_counts().
  static Result<Pricing> of_counts(const Fabric& fabric, const Goal& goal,
                                   std::span<const std::uint64_t> counts);

  // Of blocks of so many bytes each, in order.
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
  // Whether all blocks weigh the same.
  bool blocks_alike() const;
  std::int64_t weight_per_byte() const { return weight_per_byte_; }

  // In ticks; the betas per unit of weight. Where messages share links, betas are even, so that
  // half a message has a price. Where they do not, every one crosses one link, whose hop the alphas
  // have.
  struct LinkRates {
    Ticks alpha = 0, beta = 0;
  };
  struct Rates {
    std::vector<LinkRates> links;  // by Fabric's kinds of links
    Ticks switch_alpha = 0, hop = 0, gamma = 0;
  };
  const Rates& rates() const { return rates_; }
  // No transfer of this goal's blocks costs more where messages share no links.
  Ticks most() const { return most_; }

  // Of links that messages do not share; RoundPrices has the others.
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
  // What it takes a receiver to add what a transfer brings, or a rank to add blocks of its own. A
  // switch adds up on the way.
  Ticks adding(const Transfer& t, std::int64_t weight) const {
    return t.act == Act::reduce && t.from.size() == 1 ? rates_.gamma * weight : 0;
  }

  // Rounded once, to the nearest double.
  double seconds(Ticks ticks) const { return nearest_double(ticks, per_second_); }
  Rational exact_seconds(Ticks ticks) const { return {ticks, per_second_}; }
  Ticks ticks_per_second() const { return per_second_; }

 private:
  std::int64_t weight_of_strided(const Run& run) const;
  // The unit and the rates, once the weights are there.
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
// way round a ring: a message of weight w that has a link for itself loads it with 2 w.
//
// Messages that wait for each other at a port do not meet on a link. So a leaf's link to a spine,
// which all ranks of the leaf share, has at once no more than the largest messages over it of each
// sender, as many as it has ports, and no more than those of each receiver. A rank that has several
// messages over it on one port then pays for the whole link once, not once per message. On a grid
// ports are wires, and a message meets all of its round: Eq. (1) as it is stated.

struct RoundTraffic {
  Int128 load = 0;           // half weights that the busiest link carries
  std::int64_t largest = 0;  // weight of the largest message
  int hops = 0;              // links that the longest route crosses

  // Equally large messages on the busiest link: c_k of Trivance's Eq. (1). 0 without messages.
  double congestion() const { return largest == 0 ? 0 : nearest_double(load, Int128{largest} * 2); }
};

// Collects the messages of a round, then says how busy their links are. Each message costs as many
// additions as it crosses links. For one thread.
class Congestion {
 public:
  // Of all messages; or of one rank's, which stands for all round the rings of a torus
  // (everyone.h): what it sends along one link it sends along each, one link further on as each
  // rank, so all of a way carry the same.
  // `ports` of every rank, each way; 0: as many as anybody wants.
  explicit Congestion(Routes routes, bool one_for_all = false, int ports = 0)
      : routes_(std::move(routes)),
        ports_(routes_.has_leaves() ? static_cast<std::size_t>(ports) : 0),
        counted_(std::max(1, one_for_all ? routes_.degree() : routes_.links())),
        loads_(static_cast<std::size_t>(counted_), 0) {}

  const Routes& routes() const { return routes_; }

  // A new round, without messages.
  void clear() {
    std::fill(loads_.begin(), loads_.end(), 0);
    traffic_ = {};
    crossings_.clear();
  }

  // A message of the round. What a rank sends to itself crosses nothing and counts nowhere.
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

  // All messages of the round have been added: what waits at ports meets no more.
  void settle() {
    if (ports_ == 0) return;
    const std::vector<Int128> of_senders = at_once(&Crossing::from);
    const std::vector<Int128> of_receivers = at_once(&Crossing::to);
    for (std::size_t link = 0; link < loads_.size(); ++link) {
      loads_[link] = std::min(of_senders[link], of_receivers[link]);
    }
  }

  // visit(int link, Int128 load) for every shared link of a message that was added; where it shares
  // none, once with its own, which is -1.
  template <class Visit>
  void for_each_load(Rank from, Rank to, std::int64_t weight, const Visit& visit) const {
    bool shares = false;
    routes_.for_each_link(from, to, [&](int link, int) {
      shares = true;
      visit(link, loads_[counted(link)]);
    });
    if (!shares) visit(-1, Int128{weight} * 2);
  }
  // The load of the busiest of them.
  Int128 busiest(Rank from, Rank to, std::int64_t weight) const {
    Int128 most = 0;
    for_each_load(from, to, weight, [&](int, Int128 load) { most = std::max(most, load); });
    return most;
  }

  // Of all that was added, whatever waits for what.
  const RoundTraffic& traffic() const { return traffic_; }

 private:
  // Long ways have many links, and dividing takes longer than all else of one.
  std::size_t counted(int link) const {
    return static_cast<std::size_t>(link < counted_ ? link : link % counted_);
  }

  struct Crossing {
    int link;
    Rank from, to;
    std::int64_t weight;
  };

  // By link: the sum, over the ranks at that end of its messages, of as many of the largest as a
  // rank has ports.
  std::vector<Int128> at_once(Rank Crossing::*end) {
    std::sort(crossings_.begin(), crossings_.end(), [end](const Crossing& a, const Crossing& b) {
      return std::tuple(a.link, a.*end, b.weight) < std::tuple(b.link, b.*end, a.weight);
    });
    std::vector<Int128> loads(loads_.size(), 0);
    std::size_t before = 0;  // of the same rank over the same link
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
  std::size_t ports_;          // 0: they do not matter
  int counted_;                // links, or the ways of a torus, two per dimension: links are
                               // numbered rank by rank
  std::vector<Int128> loads_;  // by link or way
  RoundTraffic traffic_;
  std::vector<Crossing> crossings_;  // of the round, where ports matter
};

// What messages cost on a network where those of one round share links: Pricing and Congestion
// together. One definition for the simulator, the clocks on threads and the choice of segments; on
// a network whose messages share nothing it is Pricing::message().

// For one thread. `fabric` (as wired_for() gives it) and `pricing` (of the same fabric) must
// outlive it.
class RoundPrices {
 public:
  // `one_for_all`: the rounds are one rank's part, turned round the rings of the fabric where these
  // share links. Errors: those of Routes::make().
  static Result<RoundPrices> make(const Fabric& fabric, const Pricing& pricing, int ranks,
                                  bool one_for_all = false);

  // To be called before anything else about round k of a schedule: collects its messages. Nothing
  // to do where they share no links. `crosses` is told how many links each message crosses, before
  // they are gone through; what it throws leaves the round half begun, for nobody to ask about.
  void begin_round(const Schedule& schedule, int k,
                   const std::function<void(int links)>& crosses = {});

  // Of the round begun, from a rank to another one: alpha and hops, whatever the size; and all of
  // it, of a message that belongs to the round. Nothing where that is more than Pricing::kMost.
  Ticks latency(Rank from, Rank to) const;
  std::optional<Ticks> message(Rank from, Rank to, std::int64_t weight) const;
  // What any transfer of it costs, of so much weight: a local one what it adds up.
  std::optional<Ticks> price(const Transfer& t, std::int64_t weight) const;
  // What of that a port pays once a round, of all its messages the greatest: the latency, where the
  // switch permutes and the transfer is a message. Else 0.
  Ticks once(const Transfer& t) const;

  bool shares_links() const { return fabric_->wiring.shares_links(); }
  // Of the round begun; empty where messages share no links.
  const RoundTraffic& traffic() const { return congestion_.traffic(); }

 private:
  RoundPrices(const Fabric& fabric, const Pricing& pricing, Routes routes, bool one_for_all);

  const Fabric* fabric_;
  const Pricing* pricing_;
  Congestion congestion_;
  // Of shared links that are odd: seconds per byte by link, in ticks as Pricing has them; 0: as
  // others. Empty where there is none.
  std::vector<Ticks> odd_beta_;
};

// What is wrong where message() gives nothing.
Status beyond_128_bits();

// Whether a network can do what a transfer asks for.

// One -> many needs multicast, many -> one an ALU; the error says which is missing.
Status check_ability(const Transfer& transfer, const Fabric& fabric);

}  // namespace rankine
