// How much the messages of one round load the links that they share.
//
// Weights are those of Pricing. Loads are in half weights, because half of a message may go each
// way round a ring: a message of weight w that has a link for itself loads it with 2 w.
#pragma once

#include <algorithm>
#include <cstdint>
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
  explicit Congestion(Routes routes, bool one_for_all = false)
      : routes_(std::move(routes)),
        counted_(std::max(1, one_for_all ? routes_.degree() : routes_.links())),
        loads_(static_cast<std::size_t>(counted_), 0) {}

  const Routes& routes() const { return routes_; }

  // A new round, without messages.
  void clear() {
    std::fill(loads_.begin(), loads_.end(), 0);
    traffic_ = {};
  }

  // A message of the round. What a rank sends to itself crosses nothing and counts nowhere.
  void add(Rank from, Rank to, std::int64_t weight) {
    if (from == to) return;
    bool shares = false;
    routes_.for_each_link(from, to, [&](int link, int halves) {
      shares = true;
      Int128& load = loads_[static_cast<std::size_t>(link % counted_)];
      load += Int128{weight} * halves;
      traffic_.load = std::max(traffic_.load, load);
    });
    if (!shares) traffic_.load = std::max(traffic_.load, Int128{weight} * 2);
    traffic_.largest = std::max(traffic_.largest, weight);
    traffic_.hops = std::max(traffic_.hops, routes_.hops(from, to));
  }

  // visit(int link, Int128 load) for every shared link of a message that was added; where it shares
  // none, once with its own, which is -1.
  template <class Visit>
  void for_each_load(Rank from, Rank to, std::int64_t weight, const Visit& visit) const {
    bool shares = false;
    routes_.for_each_link(from, to, [&](int link, int) {
      shares = true;
      visit(link, loads_[static_cast<std::size_t>(link % counted_)]);
    });
    if (!shares) visit(-1, Int128{weight} * 2);
  }
  // The load of the busiest of them.
  Int128 busiest(Rank from, Rank to, std::int64_t weight) const {
    Int128 most = 0;
    for_each_load(from, to, weight, [&](int, Int128 load) { most = std::max(most, load); });
    return most;
  }

  // Of all that was added.
  const RoundTraffic& traffic() const { return traffic_; }

 private:
  Routes routes_;
  int counted_;                // links, or the ways of a torus, two per dimension: links are
                               // numbered rank by rank
  std::vector<Int128> loads_;  // by link or way
  RoundTraffic traffic_;
};

}  // namespace rankine
