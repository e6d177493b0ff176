// What simulators have in common that carry the messages of a schedule over links which these
// share: the schedule with all that belongs to it, and the ways of its messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"
#include "engine/network/ticks.h"
#include "engine/network/wiring.h"
#include "engine/read/skeleton.h"

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

}  // namespace rankine
