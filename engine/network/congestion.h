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
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/rational.h"
#include "engine/network/wiring.h"

namespace rankine {

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

}  // namespace rankine
