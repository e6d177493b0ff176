// Networks of users' own, as small JSON files.
//
//   {
//     "preset": "scale_out",
//     "group": 8,
//     "between": {"alpha": "5us", "bandwidth": "25GB/s"}
//   }
//
// network_members.h has the table of all members with what is allowed, which `rankine network
// --help` prints; examples/ has files of several kinds.
//
// All members are optional; any other is an error. A grid whose ports the file does not give has
// one per link of a rank. Numbers are read by their shortest decimal text, exactly. Errors name the
// member, its value and what is allowed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine {

// `name`: what the network is called where the text does not say.
Result<Fabric> parse_network(std::string_view json, std::string_view name);

// The same, read as JSON already.
Result<Fabric> read_network(const nlohmann::json& object, std::string_view name);

// One member other than "preset", for formats that have them among others. Nothing where a network
// has no such member.
std::optional<Status> read_network_member(const std::string& name, const nlohmann::json& value,
                                          Fabric& fabric);

// The preset of that name, or else the file of that path. `argument` is named in errors.
Result<Fabric> find_network(std::string_view argument, const std::string& preset_or_path);

}  // namespace rankine
