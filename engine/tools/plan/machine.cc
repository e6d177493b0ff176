#include "engine/tools/plan/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/json_text.h"
#include "engine/network/network_file.h"
#include "engine/tools/text.h"

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

// Four constants were fitted, together, to the eight step times of Korthikanti et al. (2022): the
// part of 312 Tflop/s that products reach (0.75), the memory's bandwidth (of 2.04 TB/s), a pass's
// overhead, and the links inside a node (of 300 GB/s). What lies between nodes is the data sheet's.
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

struct Member {
  std::string_view name;
  double Machine::*number;
};
constexpr Member kMembers[] = {{"flops", &Machine::flops},
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
  if (!object->is_object()) return invalid_argument("the machine must be a JSON object");
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
    const auto member = std::find_if(std::begin(kMembers), std::end(kMembers),
                                     [&key = key](const Member& one) { return one.name == key; });
    if (member == std::end(kMembers)) {
      std::vector<std::string_view> allowed = {"preset", "network"};
      for (const Member& one : kMembers) allowed.push_back(one.name);
      return unknown_name("member", key, allowed);
    }
    if (!value.is_number()) {
      return invalid_argument(fmt::format("{} is {}; it must be a number", key, value.dump()));
    }
    machine.*member->number = value.get<double>();
  }
  for (const Member& member : kMembers) {
    const double value = machine.*member.number;
    const bool may_be_zero = member.number == &Machine::pass_seconds;
    if (!(value > 0) && !(may_be_zero && value == 0)) {
      return invalid_argument(fmt::format("{} is {}; it must be {}", member.name, value,
                                          may_be_zero ? "0 or more" : "positive"));
    }
  }
  return machine;
}

Result<Machine> find_machine(std::string_view argument, const std::string& name_or_path) {
  if (const KnownMachine* found = find_known_machine(name_or_path)) return found->machine;
  const SmallFile file = read_small_file(name_or_path, kMostJsonBytes);
  if (!file.ok()) {
    return invalid_argument(
        fmt::format("{} is '{}', which is no machine known here and no file that can be read ({}); "
                    "machines are a100, h100 and here",
                    argument, name_or_path, file.error));
  }
  auto machine = parse_machine(file.text, name_or_path);
  if (machine.ok()) return machine;
  return invalid_argument(
      fmt::format("{} '{}': {}", argument, name_or_path, machine.status().text()));
}

}  // namespace rankine::tools
