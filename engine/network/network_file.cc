#include "engine/network/network_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/json_text.h"
#include "engine/base/status.h"
#include "engine/base/units.h"
#include "engine/network/network_members.h"

namespace rankine {
namespace {

using Json = nlohmann::json;

using Kind = NetworkMember::Kind;

const NetworkMember* find_member(std::string_view name) {
  for (const NetworkMember& row : network_members()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// "; did you mean 'torus'?", for presets and members.
template <class Row>
std::string meant(std::string_view name, std::span<const Row> rows) {
  std::vector<std::string_view> names;
  for (const Row& row : rows) names.push_back(row.name);
  return did_you_mean(name, names);
}

Status bad(const std::string& member, const Json& value, std::string_view allowed) {
  return invalid_argument(member + " is " + value.dump() + "; allowed are " + std::string(allowed));
}

Result<Rational> read_number(const std::string& member, const Json& value) {
  // Whole numbers keep all their digits; others are doubles.
  if (value.is_number_unsigned()) return Rational(Int128{value.get<std::uint64_t>()}, 1);
  if (value.is_number_integer()) return Rational(value.get<std::int64_t>());
  return shortest_decimal(member, value.get<double>());
}

// In seconds; a bandwidth or beta in seconds per byte.
Result<Rational> read_rational(const NetworkMember& row, const std::string& member,
                               const Json& value) {
  if (value.is_string() && row.kind == Kind::time) {
    return parse_seconds(member, value.get<std::string>());
  }
  if (value.is_string() && row.kind == Kind::bandwidth) {
    return parse_bandwidth(member, value.get<std::string>());
  }
  if (!value.is_number()) return bad(member, value, row.allowed());
  auto number = read_number(member, value);
  if (!number.ok()) return number;
  const bool inverse = row.kind == Kind::bandwidth;
  const bool allowed = row.kind == Kind::factor  ? !(*number < 1)
                       : row.kind == Kind::share ? Rational(0) < *number && !(Rational(1) < *number)
                       : inverse ? !(*number * Rational(kLongestSeconds) < Rational(1)) &&
                                       !(Rational(kGreatestBandwidth) < *number)
                                 : !(*number < 0) && !(Rational(kLongestSeconds) < *number);
  if (!allowed) return bad(member, value, row.allowed());
  return inverse ? Rational(1) / *number : *number;
}

template <class T>
Status take(Result<T> value, T& into) {
  if (value.ok()) into = *value;
  return value.status();
}

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }

// Reads one of a few names.
template <class T>
Status read_name(const NetworkMember& row, const Json& value,
                 std::optional<T> (*parse)(std::string_view), T& into) {
  const auto found = value.is_string() ? parse(value.get<std::string>()) : std::nullopt;
  if (!found) return bad(std::string(row.name), value, row.allowed());
  into = *found;
  return {};
}

Status read_whole(const NetworkMember& row, const Json& value, Fabric& fabric) {
  const bool whole = value.is_number_integer();
  const auto number = whole ? value.get<std::int64_t>() : 0;
  if (!whole || number < row.least || number > row.most) {
    return bad(std::string(row.name), value, row.allowed());
  }
  row.whole(fabric) = static_cast<int>(number);
  return {};
}

// Reads a size such as "4K", or a whole number.
Status read_bytes(const NetworkMember& row, const Json& value, Fabric& fabric) {
  if (!value.is_string()) return read_whole(row, value, fabric);
  const auto bytes = parse_size(row.name, value.get<std::string>());
  if (!bytes.ok()) return bytes.status();
  if (*bytes < static_cast<std::size_t>(row.least) || *bytes > static_cast<std::size_t>(row.most)) {
    return bad(std::string(row.name), value, row.allowed());
  }
  row.whole(fabric) = static_cast<int>(*bytes);
  return {};
}

Status one_of_bandwidth_and_beta(std::string_view owner, const Json& object) {
  if (!object.contains("bandwidth") || !object.contains("beta")) return {};
  return invalid_argument(std::string(owner) + " has bandwidth and beta; one of them is allowed");
}

Status read_link(const NetworkMember& row, const Json& value, Link& link) {
  const std::string owner(row.name);
  if (!value.is_object()) return bad(owner, value, row.allowed());
  if (Status status = one_of_bandwidth_and_beta(owner, value); !status.ok()) return status;
  for (const auto& [name, part] : value.items()) {
    const NetworkMember* found = find_member(name);
    if (found == nullptr || found->of_link == nullptr) {
      return invalid_argument(owner + " has a member '" + name + "'; allowed are " +
                              link_member_names());
    }
    const std::string member = owner + "." + name;
    Status status = take(read_rational(*found, member, part), link.*found->of_link);
    if (!status.ok()) return status;
  }
  return {};
}

std::optional<int> read_place(const Json& value) {
  const bool whole = value.is_number_integer();
  const auto place = whole ? value.get<std::int64_t>() : -1;
  if (place < 0 || place >= Routes::kMostRanks) return std::nullopt;
  return static_cast<int>(place);
}

Status read_places(const NetworkMember& row, const Json& value, std::vector<int>& places) {
  places.clear();
  for (const Json& one : value.is_array() ? value : Json::array({nullptr})) {
    const auto place = read_place(one);
    const bool again = place && std::find(places.begin(), places.end(), *place) != places.end();
    if (!place || again) return bad(std::string(row.name), value, row.allowed());
    places.push_back(*place);
  }
  return {};
}

Status read_odd_link(const NetworkMember& row, const Json& value, OddLink& odd) {
  const std::string owner(row.name);
  if (!value.is_object()) return bad(owner, value, row.allowed());
  if (Status status = one_of_bandwidth_and_beta("an odd link", value); !status.ok()) return status;
  for (const auto& [name, part] : value.items()) {
    const auto where =
        std::find_if(odd_members().begin(), odd_members().end(),
                     [&name = name](const OddMember& one) { return one.name == name; });
    if (where != odd_members().end()) {
      const auto place = read_place(part);
      if (!place) {
        return bad(owner + "." + name, part,
                   "places from 0 to " + std::to_string(Routes::kMostRanks - 1));
      }
      odd.*where->place = *place;
      continue;
    }
    const NetworkMember* found = find_member(name);
    if (found == nullptr || !is_of_odd_links(*found)) {
      return invalid_argument(owner + " has a member '" + name + "'; allowed are " +
                              odd_member_names());
    }
    auto number = read_rational(*found, owner + "." + name, part);
    if (!number.ok()) return number.status();
    (found->of_link == &Link::alpha ? odd.alpha : odd.beta) = *number;
  }
  return {};
}

Status read_odd_links(const NetworkMember& row, const Json& value, std::vector<OddLink>& odd) {
  if (!value.is_array()) return bad(std::string(row.name), value, row.allowed());
  odd.clear();
  for (const Json& one : value) {
    Status status = read_odd_link(row, one, odd.emplace_back());
    if (!status.ok()) return status;
  }
  return {};
}

Status read_member(const NetworkMember& row, const Json& value, Fabric& fabric) {
  const std::string name(row.name);
  switch (row.kind) {
    case Kind::text:
      if (!value.is_string()) return bad(name, value, row.allowed());
      fabric.name = value.get<std::string>();
      // Reports are lines, some of them on terminals.
      if (std::any_of(fabric.name.begin(), fabric.name.end(), is_control)) {
        return bad(name, value, row.allowed());
      }
      return {};
    case Kind::preset: {
      const std::string wanted = value.is_string() ? value.get<std::string>() : "";
      const Regime* regime = find_regime(wanted);
      if (regime == nullptr) return bad(name, value, row.allowed() + meant(wanted, regimes()));
      fabric = regime->fabric;
      return {};
    }
    case Kind::whole:
      return read_whole(row, value, fabric);
    case Kind::bytes:
      return read_bytes(row, value, fabric);
    case Kind::flag:
      if (!value.is_boolean()) return bad(name, value, row.allowed());
      fabric.*row.flag = value.get<bool>();
      return {};
    case Kind::time:
    case Kind::bandwidth:
    case Kind::beta:
    case Kind::factor:
    case Kind::share:
      return take(read_rational(row, name, value),
                  row.of_link != nullptr ? fabric.link.*row.of_link : fabric.*row.time);
    case Kind::link:
      return read_link(row, value, fabric.between);
    case Kind::wiring:
      return read_name(row, value, parse_wiring, fabric.wiring.kind);
    case Kind::sizes:
      if (!value.is_string()) return bad(name, value, row.allowed());
      return take(parse_dims(name, value.get<std::string>()), fabric.wiring.dims);
    case Kind::routing:
      return read_name(row, value, parse_routing, fabric.wiring.routing);
    case Kind::places:
      return read_places(row, value, fabric.places);
    case Kind::odd:
      return read_odd_links(row, value, fabric.odd);
  }
  return {};
}

}  // namespace

std::optional<Status> read_network_member(const std::string& name, const Json& value,
                                          Fabric& fabric) {
  const NetworkMember* row = find_member(name);
  if (row == nullptr || row->kind == Kind::preset) return std::nullopt;
  return read_member(*row, value, fabric);
}

Result<Fabric> parse_network(std::string_view json, std::string_view name) {
  const auto read = read_json("the network", json);
  return read.ok() ? read_network(*read, name) : read.status();
}

Result<Fabric> read_network(const Json& root, std::string_view name) {
  if (!root.is_object()) {
    return invalid_argument("the network is " + std::string(root.type_name()) +
                            "; allowed are objects");
  }
  Fabric fabric = plain_regime().fabric;
  if (root.contains("preset")) {
    Status status = read_member(*find_member("preset"), root["preset"], fabric);
    if (!status.ok()) return status;
  }
  fabric.name = name;
  if (Status status = one_of_bandwidth_and_beta("the network", root); !status.ok()) return status;
  for (const auto& [member, value] : root.items()) {
    if (member == "preset") continue;
    const auto status = read_network_member(member, value, fabric);
    if (!status) {
      return invalid_argument("the network has a member '" + member + "'; allowed are " +
                              network_member_names() + meant(member, network_members()));
    }
    if (!status->ok()) return *status;
  }
  if (root.contains("wiring") && !root.contains("ports")) open_ports(fabric);
  if (fabric.group > 0 && fabric.between.alpha == 0 && fabric.between.beta == 0) {
    return invalid_argument("group is " + std::to_string(fabric.group) +
                            " and between is missing; allowed are objects with the members " +
                            link_member_names());
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
                            "); presets are " + regime_names() + meant(preset_or_path, regimes()));
  }
  auto fabric = parse_network(file.text, preset_or_path);
  if (fabric.ok()) return fabric;
  return invalid_argument(std::string(argument) + " '" + preset_or_path +
                          "': " + fabric.status().text());
}

}  // namespace rankine
