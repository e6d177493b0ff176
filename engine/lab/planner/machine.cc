#include "engine/lab/planner/machine.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/json_text.h"
#include "engine/cli/text.h"
#include "engine/network/network_file.h"
#include "engine/read/count.h"

namespace rankine::tools {
namespace {

Fabric nodes_of_eight(std::string name, Link inside, Link between) {
  Fabric fabric;
  fabric.name = std::move(name);
  fabric.group = 8;
  fabric.link = inside;
  fabric.between = between;
  return fabric;
}

// Four constants were fitted together to the eight step times of Korthikanti et al. (2022): the
// part of 312 Tflop/s that products reach (0.75), the memory's bandwidth (of 2.04 TB/s), a pass's
// overhead, and the bandwidth of the links inside a node (of 300 GB/s). The figures for links
// between nodes are the data sheet's.
const KnownMachine kKnown[] = {
    {{.name = "a100",
      .flops = 312e12 * 0.754,
      .memory_bandwidth = 1.4736e12,
      .pass_seconds = 5.55e-5,
      .memory_bytes = 80.0 * (1 << 30),
      .network =
          nodes_of_eight("a100 nodes", {Rational(38, 10'000'000), Rational(1, 221'000'000'000)},
                         {Rational(5, 1'000'000), Rational(1, 25'000'000'000)})},
     "80 GB, eight to a node; fitted to the step times of Korthikanti et al., 2022"},
    {{.name = "h100",
      .flops = 989e12 * 0.6,
      .memory_bandwidth = 3.35e12 * 0.72,
      .pass_seconds = 4e-5,
      .memory_bytes = 80.0 * (1 << 30),
      .network =
          nodes_of_eight("h100 nodes", {Rational(3, 1'000'000), Rational(1, 370'000'000'000)},
                         {Rational(5, 1'000'000), Rational(1, 50'000'000'000)})},
     "80 GB, eight to a node; data sheet times the parts that are common, not fitted"},
};

struct MachineMember {
  std::string_view name;
  double Machine::*number;
};
constexpr MachineMember kMachineMembers[] = {{"flops", &Machine::flops},
                                             {"memory_bandwidth", &Machine::memory_bandwidth},
                                             {"pass_seconds", &Machine::pass_seconds},
                                             {"memory_bytes", &Machine::memory_bytes}};

Result<Fabric> network_member(const nlohmann::json& value) {
  if (value.is_string()) return find_network("network", value.get<std::string>());
  return read_network(value, "custom");
}

}  // namespace

std::span<const KnownMachine> known_machines() { return kKnown; }

const KnownMachine* find_known_machine(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kKnown), std::end(kKnown),
                   [name](const KnownMachine& one) { return one.machine.name == name; });
  return found == std::end(kKnown) ? nullptr : found;
}

Result<Machine> parse_machine(std::string_view json, std::string_view name) {
  const auto object = read_json("the machine", json);
  if (!object.ok()) return object.status();
  if (!object->is_object())
    return invalid_argument("the machine is no JSON object; allowed are objects");
  Machine machine;
  if (const auto preset = object->find("preset"); preset != object->end()) {
    const KnownMachine* found =
        preset->is_string() ? find_known_machine(preset->get<std::string>()) : nullptr;
    if (found == nullptr) {
      return invalid_argument(fmt::format("preset is {}; allowed are a100, h100", preset->dump()));
    }
    machine = found->machine;
  }
  machine.name = name;
  for (const auto& [key, value] : object->items()) {
    if (key == "preset") continue;
    if (key == "network") {
      auto network = network_member(value);
      if (!network.ok()) return network.status();
      machine.network = std::move(*network);
      continue;
    }
    const auto member =
        std::find_if(std::begin(kMachineMembers), std::end(kMachineMembers),
                     [&key = key](const MachineMember& one) { return one.name == key; });
    if (member == std::end(kMachineMembers)) {
      std::vector<std::string_view> allowed = {"preset", "network"};
      for (const MachineMember& one : kMachineMembers) allowed.push_back(one.name);
      return unknown_name("member", key, allowed);
    }
    if (!value.is_number()) {
      return invalid_argument(fmt::format("{} is {}; allowed are numbers", key, value.dump()));
    }
    machine.*member->number = value.get<double>();
  }
  for (const MachineMember& member : kMachineMembers) {
    const double value = machine.*member.number;
    const bool may_be_zero = member.number == &Machine::pass_seconds;
    if (!(value > 0) && !(may_be_zero && value == 0)) {
      return invalid_argument(fmt::format("{} is {}; allowed are numbers {}", member.name, value,
                                          may_be_zero ? "from 0" : "above 0"));
    }
  }
  return machine;
}

Result<Machine> find_machine(std::string_view argument, const std::string& name_or_path) {
  if (const KnownMachine* found = find_known_machine(name_or_path)) return found->machine;
  const SmallFile file = read_small_file(name_or_path, kMostJsonBytes);
  if (!file.ok()) {
    return invalid_argument(
        fmt::format("{} is '{}', which is neither a known machine nor a readable file ({}); "
                    "machines are a100, h100 and here",
                    argument, name_or_path, file.error));
  }
  auto machine = parse_machine(file.text, name_or_path);
  if (machine.ok()) return machine;
  return invalid_argument(
      fmt::format("{} '{}': {}", argument, name_or_path, machine.status().text()));
}

namespace {

using Group = std::vector<Rank>;

// A key that is equal for groups with equal times. If places differ only by the network's two
// levels, the key has the node of each rank, numbered by first appearance; otherwise it is the
// group itself.
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

// The pairs of neighbouring ranks along pp.
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
  for (const Algorithm& entry : catalogue()) {
    if (entry.collective != collective || !menu_.has(entry)) continue;
    auto one = slowest(entry, groups, bytes, 0);
    if (one.ok() && groups.size() > 1 && entry.takes("segments")) {
      one = slowest(entry, groups, bytes, one->params.segments);
    }
    if (!one.ok()) {
      refusal = one.status().text();
    } else if (!best || one->seconds < best->seconds) {
      best = std::move(*one);
    }
  }
  if (!best) {
    return invalid_argument(fmt::format(
        "no {} of menu {} runs among {} ranks: {}", name_of(collective), menu_.name,
        groups.front().size(), refusal.empty() ? "the menu has no such algorithm" : refusal));
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

Result<Price> Prices::slowest(const Algorithm& entry, const std::vector<Group>& groups,
                              std::uint64_t bytes, int segments) const {
  Params params;
  params.ranks = static_cast<int>(groups.front().size());
  params.segments = segments;
  if (entry.collective == Collective::send_recv) params.peer = 1;
  Price price;
  for (const Group& group : groups) {
    Fabric fabric = machine_.network;
    fabric.places = group;
    fabric.size = std::max(ranks_, fabric.size);
    const auto one = predict_one(entry, entry.only_taken(params), bytes, fabric);
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
