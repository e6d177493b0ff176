#include "engine/tools/plan/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "engine/read/count.h"

namespace rankine::tools {
namespace {

using Group = std::vector<Rank>;

// What a group's times depend on. Where only the two levels of a network tell its places apart,
// that is who of the group lies in one node with whom.
Group shape_of(const Fabric& network, const Group& group) {
  if (network.wiring.shares_links() || !network.odd.empty()) return group;
  Group shape;
  std::map<int, int> nodes;  // numbered in the order of ranks
  for (const Rank rank : group) {
    const int node = network.two_level() ? network.place_of(rank) / network.group : 0;
    shape.push_back(nodes.emplace(node, static_cast<int>(nodes.size())).first->second);
  }
  return shape;
}

// One group of each shape.
std::vector<Group> unlike(const Fabric& network, const std::vector<Group>& groups) {
  std::set<Group> known;
  std::vector<Group> found;
  for (const Group& group : groups) {
    if (known.insert(shape_of(network, group)).second) found.push_back(group);
  }
  return found;
}

// From each rank along pp to the next.
std::vector<Group> hops_of(const std::vector<Group>& groups) {
  std::vector<Group> hops;
  for (const Group& group : groups) {
    for (std::size_t i = 0; i + 1 < group.size(); ++i) hops.push_back({group[i], group[i + 1]});
  }
  return hops;
}

}  // namespace

Result<Price> Prices::of(Collective collective, const std::vector<Group>& groups, double bytes) {
  const bool to_next = collective == Collective::send_recv;
  const std::size_t blocks = to_next ? 1 : groups.front().size();
  const std::uint64_t whole =
      static_cast<std::uint64_t>(std::ceil(bytes / static_cast<double>(blocks))) * blocks;
  if (groups.front().size() < 2 || whole == 0) {
    return Price{.bytes = whole, .group = groups.front()};
  }
  const auto key = std::tuple(collective, groups.front(), whole);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  auto price =
      cheapest(collective, unlike(machine_.network, to_next ? hops_of(groups) : groups), whole);
  if (!price.ok()) return price;
  for (const Group& group : groups) {
    if (!to_next) break;
    const auto sender = std::find(group.begin(), group.end(), price->group.front());
    if (sender != group.end()) price->sender = static_cast<int>(sender - group.begin());
  }
  known_.emplace(key, *price);
  return price;
}

Result<Price> Prices::cheapest(Collective collective, const std::vector<Group>& groups,
                               std::uint64_t bytes) const {
  std::optional<Price> best;
  std::string refusal;
  for (const Algorithm& line : catalogue()) {
    if (line.collective != collective || !menu_.has(line)) continue;
    auto one = slowest(line, groups, bytes, 0);
    if (one.ok() && groups.size() > 1 && line.takes("segments")) {
      one = slowest(line, groups, bytes, one->params.segments);
    }
    if (!one.ok()) {
      refusal = one.status().text();
    } else if (!best || one->seconds < best->seconds) {
      best = std::move(*one);
    }
  }
  if (!best) {
    return invalid_argument(fmt::format("no {} of menu {} runs among {} ranks: {}",
                                        name_of(collective), menu_.name, groups.front().size(),
                                        refusal.empty() ? "it has none" : refusal));
  }
  const Schedule schedule = best->algorithm->make(best->params);
  const auto blocks =
      static_cast<std::uint64_t>(blocks_per_m(goal_of(*best->algorithm, best->params, schedule)));
  if (bytes % blocks != 0) {
    const std::uint64_t whole = (bytes / blocks + 1) * blocks;
    auto padded = slowest(*best->algorithm, groups, whole, best->params.segments);
    if (!padded.ok()) return padded;
    best = std::move(*padded);
  }
  best->sent = best->bytes / blocks * static_cast<std::uint64_t>(count(schedule).busiest.sent);
  return *best;
}

Result<Price> Prices::slowest(const Algorithm& line, const std::vector<Group>& groups,
                              std::uint64_t bytes, int segments) const {
  Params params;
  params.ranks = static_cast<int>(groups.front().size());
  params.segments = segments;
  if (line.collective == Collective::send_recv) params.peer = 1;
  Price price;
  for (const Group& group : groups) {
    Fabric fabric = machine_.network;
    fabric.places = group;
    fabric.size = std::max(ranks_, fabric.size);
    const auto one = predict_one(line, line.only_taken(params), bytes, fabric);
    if (!one.ok()) return one.status();
    if (!one->ok()) return invalid_argument(one->refusal);
    if (price.algorithm != nullptr && one->seconds <= price.seconds) continue;
    price = {.seconds = one->seconds,
             .ranks = params.ranks,
             .bytes = bytes,
             .algorithm = one->algorithm,
             .params = one->params,
             .group = group};
  }
  return price;
}

}  // namespace rankine::tools
