// read_network() and parse_network() read user-defined networks from small JSON files.
//
//   {
//     "preset": "scale_out",
//     "group": 8,
//     "between": {"alpha": "5us", "bandwidth": "25GB/s"}
//   }
//
// network_members.h has the table of all members with their allowed values, which `rankine network
// --help` prints; examples/ has files of several kinds.
//
// All members are optional; an unknown member is an error. If a file gives no ports for a grid, a
// rank has one port per link. Numbers are read by their shortest decimal text, exactly. Errors name
// the member, its value and the allowed values.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine {

// `name`: the network's name if the text has none.
Result<Fabric> parse_network(std::string_view json, std::string_view name);

// As parse_network(), from parsed JSON.
Result<Fabric> read_network(const nlohmann::json& object, std::string_view name);

// Reads one member other than "preset", for formats that mix network members with others. nullopt
// if networks have no such member.
std::optional<Status> read_network_member(const std::string& name, const nlohmann::json& value,
                                          Fabric& fabric);

// Returns the preset of that name, or else reads the file at that path. Errors name `argument`.
Result<Fabric> find_network(std::string_view argument, const std::string& preset_or_path);

}  // namespace rankine
