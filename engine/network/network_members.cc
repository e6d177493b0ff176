#include "engine/network/network_members.h"

namespace rankine {
namespace {

using Kind = NetworkMember::Kind;

// clang-format off
const NetworkMember kMembers[] = {
    {.name = "name", .help = "for reports; default: the file's name", .example = "\"two racks\""},
    {.name = "preset", .kind = Kind::preset, .help = "what the others change; default: plain",
     .example = "\"scale_out\""},
    {.name = "ports", .kind = Kind::whole,
     .help = "messages that a rank sends, and receives, at once; default with a wiring that is a "
             "grid: one per link of a rank",
     .example = "2", .least = 1, .most = Fabric::kMostPorts,
     .whole = [](Fabric& f) -> int& { return f.ports; }},
    {.name = "alpha", .kind = Kind::time, .help = "per message", .example = "\"1.5us\"",
     .of_link = &Link::alpha},
    {.name = "bandwidth", .kind = Kind::bandwidth, .help = "per link and direction",
     .example = "\"50GB/s\"", .of_link = &Link::beta},
    {.name = "beta", .kind = Kind::beta, .help = "in place of a bandwidth", .example = "2e-11",
     .of_link = &Link::beta},
    {.name = "group", .kind = Kind::whole,
     .help = "ranks per group (node, leaf), with `between` for the links among groups; 0: one group",
     .example = "8", .most = Routes::kMostRanks,
     .whole = [](Fabric& f) -> int& { return f.group; }},
    {.name = "between", .kind = Kind::link, .help = "the links among groups",
     .example = R"({"alpha": "5us", "bandwidth": "25GB/s"})"},
    {.name = "multicast", .kind = Kind::flag, .help = "the switch can copy a message to many",
     .example = "true", .flag = &Fabric::multicast},
    {.name = "alu", .kind = Kind::flag, .help = "the switch can add messages up",
     .example = "true", .flag = &Fabric::alu},
    {.name = "alpha_switch", .kind = Kind::time,
     .help = "per hop through the switch; such a transfer takes two", .example = "\"150ns\"",
     .time = &Fabric::alpha_switch},
    {.name = "wiring", .kind = Kind::wiring,
     .help = "full: a link between any two ranks; or links that messages share",
     .example = "\"torus\""},
    {.name = "dims", .kind = Kind::sizes,
     .help = "of torus and mesh wiring; default: those that are asked for, or two nearly equal ones",
     .example = "\"4x4\""},
    {.name = "spines", .kind = Kind::whole,
     .help = "of fat_tree wiring: switches above the groups, each with a link to every group",
     .example = "4", .least = 1, .most = Wiring::kMostSpines,
     .whole = [](Fabric& f) -> int& { return f.wiring.spines; }},
    {.name = "routing", .kind = Kind::routing,
     .help = "of ring and torus wiring: both ways round where they are as long, or up always",
     .example = "\"one_way\""},
    {.name = "hop", .kind = Kind::time,
     .help = "per link that a message crosses, with the processing at its end",
     .example = "\"200ns\"", .time = &Fabric::alpha_hop},
};
// clang-format on

// "\"full\", \"ring\" and \"torus\""
std::string quoted(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : " and ";
    text += '"' + std::string(names[i]) + '"';
  }
  return text;
}

std::string names_where(const auto& holds) {
  std::string names;
  for (const NetworkMember& row : kMembers) {
    if (!holds(row)) continue;
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

}  // namespace

std::string_view NetworkMember::unit() const {
  switch (kind) {
    case Kind::time:
      return "seconds";
    case Kind::bandwidth:
      return "bytes per second";
    case Kind::beta:
      return "seconds per byte";
    default:
      return {};
  }
}

std::string NetworkMember::allowed() const {
  const std::string numbers(unit());
  switch (kind) {
    case Kind::text:
      return "texts";
    case Kind::preset:
      return regime_names();
    case Kind::whole:
      return "whole numbers from " + std::to_string(least) + " to " + std::to_string(most);
    case Kind::flag:
      return "true and false";
    case Kind::time:
      return "times such as \"1.5us\", or " + numbers + ", not negative";
    case Kind::bandwidth:
      return "positive bandwidths such as \"100GB/s\", or " + numbers;
    case Kind::beta:
      return numbers + ", not negative (0: no limit)";
    case Kind::link:
      return "objects with the members " + link_member_names();
    case Kind::wiring:
      return quoted(wiring_names());
    case Kind::sizes:
      return "texts such as \"4x4\" and \"3x3x3\"";
    case Kind::routing:
      return quoted(routing_names());
  }
  return {};
}

std::span<const NetworkMember> network_members() { return kMembers; }

std::string network_member_names() {
  return names_where([](const NetworkMember&) { return true; });
}

std::string link_member_names() {
  return names_where([](const NetworkMember& row) { return row.of_link != nullptr; });
}

}  // namespace rankine
