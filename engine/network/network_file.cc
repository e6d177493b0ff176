#include "engine/network/network_file.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "engine/base/json_text.h"
#include "engine/base/small_file.h"
#include "engine/base/units.h"

namespace rankine {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMembers =
    "name, preset, ports, alpha, bandwidth, beta, group, between, multicast, alu, alpha_switch, "
    "wiring, dims, routing, hop";
constexpr std::string_view kLinkMembers = "alpha, bandwidth, beta";

Status bad(const std::string& member, const Json& value, std::string_view allowed) {
  return invalid_argument(member + " is " + value.dump() + "; allowed are " + std::string(allowed));
}

Result<Rational> read_number(const std::string& member, const Json& value) {
  // Whole numbers keep all their digits; others are doubles.
  if (value.is_number_unsigned()) return Rational(Int128{value.get<std::uint64_t>()}, 1);
  if (value.is_number_integer()) return Rational(value.get<std::int64_t>());
  return shortest_decimal(member, value.get<double>());
}

Result<Rational> read_not_negative(const std::string& member, const Json& value,
                                   std::string_view allowed) {
  if (!value.is_number()) return bad(member, value, allowed);
  auto number = read_number(member, value);
  if (number.ok() && *number < 0) return bad(member, value, allowed);
  return number;
}

Result<Rational> read_time(const std::string& member, const Json& value) {
  constexpr std::string_view kAllowed = "times such as \"1.5us\", or seconds, not negative";
  if (value.is_string()) return parse_seconds(member, value.get<std::string>());
  return read_not_negative(member, value, kAllowed);
}

// Seconds per byte, from bytes per second.
Result<Rational> read_bandwidth(const std::string& member, const Json& value) {
  constexpr std::string_view kAllowed =
      "positive bandwidths such as \"100GB/s\", or bytes per second";
  if (value.is_string()) return parse_bandwidth(member, value.get<std::string>());
  if (!value.is_number()) return bad(member, value, kAllowed);
  auto number = read_number(member, value);
  if (!number.ok()) return number;
  if (!(Rational(0) < *number)) return bad(member, value, kAllowed);
  return Rational(1) / *number;
}

Result<Rational> read_beta(const std::string& member, const Json& value) {
  return read_not_negative(member, value, "seconds per byte, not negative (0: no limit)");
}

Status read_whole(const std::string& member, const Json& value, int lowest, int highest,
                  int& into) {
  const bool whole = value.is_number_integer();
  const auto number = whole ? value.get<std::int64_t>() : 0;
  if (!whole || number < lowest || number > highest) {
    return bad(member, value,
               "whole numbers from " + std::to_string(lowest) + " to " + std::to_string(highest));
  }
  into = static_cast<int>(number);
  return {};
}

Status read_flag(const std::string& member, const Json& value, bool& into) {
  if (!value.is_boolean()) return bad(member, value, "true and false");
  into = value.get<bool>();
  return {};
}

template <class T>
Status take(Result<T> value, T& into) {
  if (value.ok()) into = *value;
  return value.status();
}

// One of a few names.
template <class T>
Status read_name(const std::string& member, const Json& value, std::string_view allowed,
                 std::optional<T> (*parse)(std::string_view), T& into) {
  const auto found = value.is_string() ? parse(value.get<std::string>()) : std::nullopt;
  if (!found) return bad(member, value, allowed);
  into = *found;
  return {};
}

Status read_dims(const std::string& member, const Json& value, std::vector<int>& into) {
  if (!value.is_string()) return bad(member, value, "texts such as \"4x4\" and \"3x3x3\"");
  return take(parse_dims(member, value.get<std::string>()), into);
}

// A member of a link; `prefix` is "" or "between.". Nothing if it is none.
std::optional<Status> read_link_member(const std::string& prefix, const std::string& name,
                                       const Json& value, Link& link) {
  const std::string member = prefix + name;
  if (name == "alpha") return take(read_time(member, value), link.alpha);
  if (name == "bandwidth") return take(read_bandwidth(member, value), link.beta);
  if (name == "beta") return take(read_beta(member, value), link.beta);
  return std::nullopt;
}

Status read_link(const std::string& member, const Json& value, Link& link) {
  if (!value.is_object()) {
    return bad(member, value, "objects with the members " + std::string(kLinkMembers));
  }
  if (value.contains("bandwidth") && value.contains("beta")) {
    return invalid_argument(member + " has bandwidth and beta; one of them is allowed");
  }
  for (const auto& [name, part] : value.items()) {
    const auto status = read_link_member(member + ".", name, part, link);
    if (!status) {
      return invalid_argument(member + " has a member '" + name + "'; allowed are " +
                              std::string(kLinkMembers));
    }
    if (!status->ok()) return *status;
  }
  return {};
}

}  // namespace

std::optional<Status> read_network_member(const std::string& name, const Json& value,
                                          Fabric& fabric) {
  if (name == "name") {
    if (!value.is_string()) return bad(name, value, "texts");
    fabric.name = value.get<std::string>();
    return Status();
  }
  if (name == "ports") return read_whole(name, value, 1, Fabric::kMostPorts, fabric.ports);
  if (name == "group") return read_whole(name, value, 0, 1 << 14, fabric.group);
  if (name == "between") return read_link(name, value, fabric.between);
  if (name == "multicast") return read_flag(name, value, fabric.multicast);
  if (name == "alu") return read_flag(name, value, fabric.alu);
  if (name == "alpha_switch") return take(read_time(name, value), fabric.alpha_switch);
  if (name == "wiring") {
    return read_name(name, value, "\"full\", \"ring\", \"torus\" and \"two_level\"", parse_wiring,
                     fabric.wiring.kind);
  }
  if (name == "dims") return read_dims(name, value, fabric.wiring.dims);
  if (name == "routing") {
    return read_name(name, value, "\"minimal\" and \"one_way\"", parse_routing,
                     fabric.wiring.routing);
  }
  if (name == "hop") return take(read_time(name, value), fabric.alpha_hop);
  return read_link_member("", name, value, fabric.link);
}

Result<Fabric> parse_network(std::string_view json, std::string_view name) {
  const auto read = read_json("the network", json);
  return read.ok() ? read_network(*read, name) : read.status();
}

Result<Fabric> read_network(const Json& root, std::string_view name) {
  if (!root.is_object()) {
    return invalid_argument("the network is " + std::string(root.type_name()) +
                            "; an object is needed");
  }
  Fabric fabric = plain_regime().fabric;
  if (root.contains("preset")) {
    const Json& preset = root["preset"];
    const Regime* regime = preset.is_string() ? find_regime(preset.get<std::string>()) : nullptr;
    if (regime == nullptr) return bad("preset", preset, regime_names());
    fabric = regime->fabric;
  }
  fabric.name = name;
  if (root.contains("bandwidth") && root.contains("beta")) {
    return invalid_argument("the network has bandwidth and beta; one of them is allowed");
  }
  for (const auto& [member, value] : root.items()) {
    if (member == "preset") continue;
    const auto status = read_network_member(member, value, fabric);
    if (!status) {
      return invalid_argument("the network has a member '" + member + "'; allowed are " +
                              std::string(kMembers));
    }
    if (!status->ok()) return *status;
  }
  if (root.contains("wiring") && !root.contains("ports")) open_ports(fabric);
  if (fabric.group > 0 && fabric.between.alpha == 0 && fabric.between.beta == 0) {
    return invalid_argument("group is " + std::to_string(fabric.group) +
                            " and between is missing; allowed are objects with the members " +
                            std::string(kLinkMembers));
  }
  Status status = check_fabric(fabric);
  if (!status.ok()) return status;
  return fabric;
}

Result<Fabric> find_network(std::string_view argument, const std::string& preset_or_path) {
  if (const Regime* regime = find_regime(preset_or_path)) return regime->fabric;
  const SmallFile file = read_small_file(preset_or_path, kMostJsonBytes);
  if (!file.ok()) {
    return invalid_argument(std::string(argument) + " is '" + preset_or_path +
                            "', which is no preset and no file that can be read (" + file.error +
                            "); presets are " + regime_names());
  }
  auto fabric = parse_network(file.text, preset_or_path);
  if (fabric.ok()) return fabric;
  return invalid_argument(std::string(argument) + " '" + preset_or_path +
                          "': " + fabric.status().text());
}

}  // namespace rankine
