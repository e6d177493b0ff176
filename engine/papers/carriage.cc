#include "engine/papers/carriage.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/network/wiring.h"
#include "engine/read/flow.h"
#include "engine/read/packets.h"

namespace rankine::reproduce {
namespace {

Fabric fabric_of(int gigabits) {
  Fabric fabric = find_regime("torus")->fabric;
  fabric.link.beta = Rational(1, Int128{gigabits} * 125'000'000);
  return fabric;
}

Routes routes_of(const Skeleton& skeleton) {
  return *Routes::make({.kind = WiringKind::torus, .dims = skeleton.dims}, skeleton.goal.ranks);
}

double busiest_load(const Skeleton& skeleton) {
  const Routes routes = routes_of(skeleton);
  std::vector<double> loads(static_cast<std::size_t>(skeleton.alike.links()), 0);
  for (const auto& round : skeleton.messages) {
    for (const Sent& m : round) {
      routes.for_each_link(m.from, m.to, [&](int link, int halves) {
        loads[static_cast<std::size_t>(skeleton.alike.class_of_link(link))] += m.blocks * halves;
      });
    }
  }
  return *std::max_element(loads.begin(), loads.end()) / 2 / blocks_per_m(skeleton.goal);
}

// Every message as if it was alone.
double unhindered(const Skeleton& skeleton, const Fabric& fabric, double bytes) {
  const Routes routes = routes_of(skeleton);
  const double alpha = fabric.link.alpha.to_double(), hop = fabric.alpha_hop.to_double(),
               block = fabric.link.beta.to_double() * bytes / blocks_per_m(skeleton.goal);
  std::vector<double> ready(static_cast<std::size_t>(skeleton.alike.classes()), 0), next = ready;
  for (const auto& round : skeleton.messages) {
    for (const Sent& m : round) {
      // Of a message that goes both ways each half may take half as long.
      const double end = ready[static_cast<std::size_t>(skeleton.alike.class_of(m.from))] + alpha +
                         routes.hops(m.from, m.to) * hop + m.blocks * block / 2;
      double& there = next[static_cast<std::size_t>(skeleton.alike.class_of(m.to))];
      there = std::max(there, end);
    }
    ready = next;
  }
  return *std::max_element(ready.begin(), ready.end());
}

}  // namespace

double Carriage::at_least(const Profile& profile, int gigabits, double bytes) {
  const auto known = known_.find({&profile, gigabits, std::round(bytes)});
  if (known != known_.end()) return known->second;
  const Skeleton& skeleton = profiles_.skeleton_of(profile);
  auto load = loads_.find(&profile);
  if (load == loads_.end()) load = loads_.emplace(&profile, busiest_load(skeleton)).first;
  const Fabric fabric = fabric_of(gigabits);
  constexpr double kRounding = 1 - 1e-9;
  return kRounding * std::max(load->second * std::round(bytes) * fabric.link.beta.to_double(),
                              unhindered(skeleton, fabric, std::round(bytes)));
}

double Carriage::seconds(const Profile& profile, int gigabits, double bytes) {
  const Key key{&profile, gigabits, std::round(bytes)};
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  const Skeleton& skeleton = profiles_.skeleton_of(profile);
  const Fabric fabric = fabric_of(gigabits);
  const auto whole = static_cast<std::uint64_t>(std::llround(bytes));
  const auto taken = [](const auto& times) {
    if (!times.ok()) throw std::runtime_error(std::string(times.status().text()));
    return times->seconds;
  };
  const double seconds = fidelity_ == Fidelity::flow
                             ? taken(simulate_flow(skeleton, fabric, whole))
                             : taken(simulate_packets(skeleton, fabric, whole));
  known_.emplace(key, seconds);
  return seconds;
}

}  // namespace rankine::reproduce
