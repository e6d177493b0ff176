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
    {.name = "eta_alpha", .kind = Kind::factor,
     .help = "what contention makes of alpha: so many times as long; default: 1",
     .example = "1.25", .of_link = &Link::eta_alpha},
    {.name = "eta_beta", .kind = Kind::share,
     .help = "what contention leaves of the bandwidth; default: 1", .example = "0.8",
     .of_link = &Link::eta_beta},
    {.name = "gamma", .kind = Kind::time, .help = "per byte that a rank adds to what it has",
     .example = "\"5ps\"", .time = &Fabric::gamma},
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
    {.name = "permute", .kind = Kind::flag,
     .help = "the switch carries all messages of a round in one operation: a port pays alpha once",
     .example = "true", .flag = &Fabric::permute},
    {.name = "alpha_switch", .kind = Kind::time,
     .help = "per hop through the switch; what it copies or adds up takes two",
     .example = "\"150ns\"",
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
    {.name = "mtu", .kind = Kind::bytes,
     .help = "bytes of the largest packet, of the packet fidelity; default: 4096",
     .example = "\"8K\"", .least = 1, .most = Fabric::kMostMtu, .usual = Fabric::kUsualMtu,
     .whole = [](Fabric& f) -> int& { return f.mtu; }},
    {.name = "size", .kind = Kind::whole,
     .help = "places that the wiring and the groups are about; 0: as many as ranks",
     .example = "16", .most = Routes::kMostRanks,
     .whole = [](Fabric& f) -> int& { return f.size; }},
    {.name = "places", .kind = Kind::places,
     .help = "where each rank sits; default: rank r at place r", .example = "[0, 4, 8, 12]"},
    {.name = "odd", .kind = Kind::odd,
     .help = "what is not like the rest: everything at one place, or one link between two (on a "
             "grid one wire, which has no alpha)",
     .example = R"([{"at": 5, "bandwidth": "10GB/s"}, {"from": 0, "to": 1, "alpha": "9us"}])"},
};
// clang-format on

const OddMember kOddMembers[] = {
    {"at", &OddLink::at, "a place: all that is sent and received there"},
    {"from", &OddLink::from, "a place that sends, with `to`"},
    {"to", &OddLink::to, "the place that it sends to"},
};

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
      return "texts of one line";
    case Kind::preset:
      return regime_names();
    case Kind::whole:
      return "whole numbers from " + std::to_string(least) + " to " + std::to_string(most);
    case Kind::bytes:
      return "whole numbers from " + std::to_string(least) + " to " + std::to_string(most) +
             ", and texts such as \"4K\"";
    case Kind::flag:
      return "true and false";
    case Kind::time:
      return "times such as \"1.5us\", or " + numbers + ", not negative";
    case Kind::bandwidth:
      return "positive bandwidths such as \"100GB/s\", or " + numbers;
    case Kind::beta:
      return numbers + ", not negative (0: no limit)";
    case Kind::factor:
      return "numbers of 1 and more";
    case Kind::share:
      return "numbers above 0 and up to 1";
    case Kind::places:
      return "lists of places such as [0, 4, 8], each once";
    case Kind::odd:
      return "lists of objects with the members " + odd_member_names();
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

std::span<const OddMember> odd_members() { return kOddMembers; }

bool is_of_odd_links(const NetworkMember& row) {
  return row.of_link == &Link::alpha || row.of_link == &Link::beta;
}

std::string odd_member_names() {
  std::string names;
  for (const OddMember& one : kOddMembers) names += std::string(one.name) + ", ";
  return names + names_where(is_of_odd_links);
}

std::string link_member_names() {
  return names_where([](const NetworkMember& row) { return row.of_link != nullptr; });
}

}  // namespace rankine
