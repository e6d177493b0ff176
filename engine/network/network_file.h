// Networks of users' own, as small JSON files.
//
//   {
//     "name": "two racks",             for reports; default: the file's name
//     "preset": "scale_out",           start from a preset; default: plain
//     "ports": 2,
//     "alpha": "1.5us",                or seconds: 1.5e-6
//     "bandwidth": "50GB/s",           or bytes per second: 5e10
//                                      or "beta", seconds per byte: 2e-11
//     "group": 8,                      ranks per group, with "between" for the links among groups
//     "between": {"alpha": "5us", "bandwidth": "25GB/s"},
//     "multicast": true,               what the switch can do
//     "alu": true,
//     "alpha_switch": "150ns",         what a hop through it takes
//     "wiring": "torus",               full, or links that messages share: ring, torus, two_level
//     "dims": "4x4",                   of a torus; default: those of the question
//     "routing": "minimal",            or one_way, of rings and tori
//     "hop": "200ns"                   per link that a message crosses
//   }
//
// All members are optional; any other is an error. A ring or torus whose ports the file does not
// give has one per link. Numbers are read by their shortest decimal text, exactly. Errors name the
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
