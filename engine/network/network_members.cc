#include "engine/network/network_members.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

#include "algorithms/torus.h"
#include "engine/base/units.h"

namespace rankine {
namespace {

using Json = nlohmann::ordered_json;
using Kind = NetworkMember::Kind;

// clang-format off
const NetworkMember kMembers[] = {
    {.name = "name", .help = "for reports; default: the file's name", .example = "\"two racks\""},
    {.name = "preset", .kind = Kind::preset,
     .help = "the network that the other members change; default: plain",
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
    {.name = "beta", .kind = Kind::beta, .help = "instead of a bandwidth", .example = "2e-11",
     .of_link = &Link::beta},
    {.name = "eta_alpha", .kind = Kind::factor,
     .help = "the factor of alpha under contention; default: 1",
     .example = "1.25", .of_link = &Link::eta_alpha},
    {.name = "eta_beta", .kind = Kind::share,
     .help = "the fraction of the bandwidth left under contention; default: 1", .example = "0.8",
     .of_link = &Link::eta_beta},
    {.name = "gamma", .kind = Kind::time, .help = "per byte that a rank adds to its data",
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
     .help = "per hop through the switch; a copy or a sum takes two",
     .example = "\"150ns\"",
     .time = &Fabric::alpha_switch},
    {.name = "wiring", .kind = Kind::wiring,
     .help = "full: a link between any two ranks; or links that messages share",
     .example = "\"torus\""},
    {.name = "dims", .kind = Kind::sizes,
     .help = "of torus and mesh wiring; default: those of the request, or two nearly equal ones",
     .example = "\"4x4\""},
    {.name = "spines", .kind = Kind::whole,
     .help = "of fat_tree wiring: switches above the groups, each with a link to every group",
     .example = "4", .least = 1, .most = Wiring::kMostSpines,
     .whole = [](Fabric& f) -> int& { return f.wiring.spines; }},
    {.name = "routing", .kind = Kind::routing,
     .help = "of ring and torus wiring: both ways round if they are equally long, or always up",
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
     .help = "exceptions: all messages at one place, or one link between two (on a "
             "grid one wire, which has no alpha)",
     .example = R"([{"at": 5, "bandwidth": "10GB/s"}, {"from": 0, "to": 1, "alpha": "9us"}])"},
};
// clang-format on

const OddMember kOddMembers[] = {
    {"at", &OddLink::at, "a place: all messages from and to it"},
    {"from", &OddLink::from, "a place that sends, with `to`"},
    {"to", &OddLink::to, "the place that receives, with `from`"},
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

std::string names_if(const auto& holds) {
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
  return names_if([](const NetworkMember&) { return true; });
}

std::span<const OddMember> odd_members() { return kOddMembers; }

bool is_of_odd_links(const NetworkMember& row) {
  return row.of_link == &Link::alpha || row.of_link == &Link::beta;
}

std::string odd_member_names() {
  std::string names;
  for (const OddMember& one : kOddMembers) names += std::string(one.name) + ", ";
  return names + names_if(is_of_odd_links);
}

std::string link_member_names() {
  return names_if([](const NetworkMember& row) { return row.of_link != nullptr; });
}

namespace {

// The texts that parse_seconds() and parse_bandwidth() accept.
constexpr const char* kTimePattern =
    R"(^\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?( *([hH]|[mM][iI][nN]|[mMuUnNpP]?[sS]))?$)";
constexpr const char* kBandwidthPattern =
    R"(^\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *([kKMGT]i?)?([bB](/s|ps)|bits?/s)$)";

// The texts that parse_size() accepts, up to the largest size of a member.
constexpr const char* kBytesPattern =
    R"(^([0-9]+\.?[0-9]*|\.[0-9]+)([eE]\+?[0-9]+)?( *([bB]|[kKmM]([bB]|[iI][bB]?)?))?$)";

std::string sizes_pattern() { return "^[0-9]+(x[0-9]+){0," + std::to_string(kMostDims - 1) + "}$"; }

const Json kPlace = {{"type", "integer"}, {"minimum", 0}, {"maximum", Routes::kMostRanks - 1}};

Json object_of(bool (*has)(const NetworkMember&));
Json odd_link();

// The schema of a member's values.
Json values_of(const NetworkMember& row) {
  const Json not_negative = {{"type", "number"}, {"minimum", 0}, {"maximum", kLongestSeconds}};
  const auto text = [](const std::string& pattern) {
    return Json{{"type", "string"}, {"pattern", pattern}};
  };
  switch (row.kind) {
    case Kind::text:
      return {{"type", "string"}};
    case Kind::preset: {
      Json names = Json::array();
      for (const Regime& regime : regimes()) names.push_back(regime.name);
      return {{"enum", names}};
    }
    case Kind::whole:
      return {{"type", "integer"}, {"minimum", row.least}, {"maximum", row.most}};
    case Kind::bytes:
      return {{"anyOf",
               Json::array({{{"type", "integer"}, {"minimum", row.least}, {"maximum", row.most}},
                            text(kBytesPattern)})}};
    case Kind::flag:
      return {{"type", "boolean"}};
    case Kind::time:
      return {{"anyOf", Json::array({not_negative, text(kTimePattern)})}};
    case Kind::bandwidth:
      return {{"anyOf", Json::array({{{"type", "number"},
                                      {"minimum", 1.0 / kLongestSeconds},
                                      {"maximum", kGreatestBandwidth}},
                                     text(kBandwidthPattern)})}};
    case Kind::beta:
      return not_negative;
    case Kind::factor:
      return {{"type", "number"}, {"minimum", 1}};
    case Kind::share:
      return {{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", 1}};
    case Kind::places:
      return {{"type", "array"}, {"items", kPlace}, {"uniqueItems", true}};
    case Kind::odd:
      return {{"type", "array"}, {"items", odd_link()}};
    case Kind::link:
      return object_of([](const NetworkMember& each) { return each.of_link != nullptr; });
    case Kind::wiring:
      return {{"enum", wiring_names()}};
    case Kind::sizes:
      return text(sizes_pattern());
    case Kind::routing:
      return {{"enum", routing_names()}};
  }
  return {};
}

Json object_of(bool (*has)(const NetworkMember&)) {
  Json properties = Json::object();
  for (const NetworkMember& row : network_members()) {
    if (!has(row)) continue;
    const std::string unit(row.unit());
    Json property = {
        {"description", std::string(row.help) + (unit.empty() ? "" : "; numbers are " + unit)},
        {"examples", Json::array({Json::parse(row.example)})}};
    property.update(values_of(row));
    properties[std::string(row.name)] = std::move(property);
  }
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"additionalProperties", false},
          {"not", {{"required", {"bandwidth", "beta"}}}}};
}

Json odd_link() {
  Json out = object_of(is_of_odd_links);
  for (const OddMember& one : odd_members()) {
    out["properties"][std::string(one.name)] = {{"description", one.help}};
    out["properties"][std::string(one.name)].update(kPlace);
  }
  const auto with = [](std::initializer_list<const char*> names) {
    return Json{{"required", Json(names)}};
  };
  const Json either = {{"anyOf", Json::array({with({"from"}), with({"to"})})}};
  out["oneOf"] = Json::array({Json{{"required", {"at"}}, {"not", either}},
                              Json{{"required", {"from", "to"}}, {"not", with({"at"})}}});
  out["anyOf"] = Json::array({with({"alpha"}), with({"bandwidth"}), with({"beta"})});
  return out;
}

}  // namespace

std::string network_schema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "A network of Rankine"},
                 {"description", "Checked by 'rankine network FILE' and read by --network."}};
  schema.update(object_of([](const NetworkMember&) { return true; }));
  return schema.dump(2) + "\n";
}

namespace {

// All digits of a number >= 0; nullopt without a finite decimal text of moderate length.
std::optional<std::string> decimals(Rational value) {
  Int128 rest = value.bottom();
  int twos = 0, fives = 0;
  for (; rest % 2 == 0; rest /= 2) ++twos;
  for (; rest % 5 == 0; rest /= 5) ++fives;
  if (rest != 1) return std::nullopt;
  const int places = std::max(twos, fives);
  try {
    for (int i = 0; i < places; ++i) value = value * Rational(10);
  } catch (const std::overflow_error&) {
    return std::nullopt;
  }
  std::string text = to_text(value.top());
  if (places == 0) return text;
  const auto after = static_cast<std::size_t>(places);
  if (text.size() <= after) text.insert(0, after + 1 - text.size(), '0');
  return text.insert(text.size() - after, ".");
}

struct Unit {
  const char* name;
  Rational value;
};
const Unit kTimes[] = {{"s", 1},
                       {"ms", Rational(1, 1'000)},
                       {"us", Rational(1, 1'000'000)},
                       {"ns", Rational(1, 1'000'000'000)},
                       {"ps", Rational(1, 1'000'000'000'000)}};
const Unit kBandwidths[] = {{"TB/s", 1'000'000'000'000},
                            {"GB/s", 1'000'000'000},
                            {"MB/s", 1'000'000},
                            {"kB/s", 1'000},
                            {"B/s", 1}};

// The value in the largest unit that gives a number >= 1 (units are in falling order); "" without
// such a text.
std::string in_units(Rational value, std::span<const Unit> units) {
  std::size_t i = 0;
  while (i + 1 < units.size() && value < units[i].value) ++i;
  const auto text = decimals(value / units[i].value);
  return text ? *text + units[i].name : "";
}

std::string time_text(Rational seconds) {
  const std::string text = seconds == 0 ? "0s" : in_units(seconds, kTimes);
  const auto read = parse_seconds("", text);
  return read.ok() && *read == seconds ? text : "";
}

std::string bandwidth_text(Rational beta) {
  if (beta == 0) return "";
  const std::string text = in_units(Rational(1) / beta, kBandwidths);
  const auto read = parse_bandwidth("", text);
  return read.ok() && *read == beta ? text : "";
}

class Writer {
 public:
  explicit Writer(const Fabric& fabric) : fabric_(fabric) {}

  Result<std::string> file() {
    Json file = Json::object();
    for (const NetworkMember& row : network_members()) {
      Json value = value_of(row);
      if (!value.is_null()) file[std::string(row.name)] = std::move(value);
    }
    if (!status_.ok()) return status_;
    // A name may be a path, which may be invalid UTF-8.
    return file.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  // Null: the member is at its default and left out.
  Json value_of(const NetworkMember& row) {
    const Wiring& wiring = fabric_.wiring;
    if (row.of_link != nullptr) return part_of(fabric_.link, row, "");
    switch (row.kind) {
      case Kind::text:
        return fabric_.name;
      case Kind::whole:
      case Kind::bytes: {
        const int number = row.whole(fabric_);
        return number == row.usual ? Json() : Json(number);
      }
      case Kind::flag:
        return fabric_.*row.flag ? Json(true) : Json();
      case Kind::time:
        return fabric_.*row.time == 0 ? Json() : time(fabric_.*row.time, row, "");
      case Kind::link:
        return fabric_.group > 0 ? link(row) : Json();
      case Kind::wiring:
        return wiring.shares_links() ? Json(name_of(wiring.kind)) : Json();
      case Kind::sizes:
        return wiring.dims.empty() ? Json() : Json(dims_text(wiring.dims));
      case Kind::routing:
        return wiring.routing == Routing::minimal ? Json() : Json(name_of(wiring.routing));
      case Kind::places:
        return fabric_.places.empty() ? Json() : Json(fabric_.places);
      case Kind::odd:
        return fabric_.odd.empty() ? Json() : odd_links();
      case Kind::preset:
      case Kind::bandwidth:
      case Kind::beta:
      case Kind::factor:
      case Kind::share:
        break;  // a preset leaves no trace; the others are members of links
    }
    return {};
  }

  Json link(const NetworkMember& owner) {
    Json out = Json::object();
    for (const NetworkMember& row : network_members()) {
      if (row.of_link == nullptr) continue;
      Json value = part_of(fabric_.between, row, std::string(owner.name) + ".");
      if (!value.is_null()) out[std::string(row.name)] = std::move(value);
    }
    return out;
  }

  Json odd_links() {
    Json out = Json::array();
    for (const OddLink& odd : fabric_.odd) {
      Json& one = out.emplace_back(Json::object());
      for (const OddMember& where : odd_members()) {
        if (odd.*where.place >= 0) one[std::string(where.name)] = odd.*where.place;
      }
      const Link link{odd.alpha.value_or(0), odd.beta.value_or(0)};
      for (const NetworkMember& row : network_members()) {
        if (!is_of_odd_links(row)) continue;
        if (!(row.of_link == &Link::alpha ? odd.alpha : odd.beta)) continue;
        Json value = part_of(link, row, "odd.");
        if (!value.is_null()) one[std::string(row.name)] = std::move(value);
      }
    }
    return out;
  }

  // A bandwidth if that is exact, else beta.
  Json part_of(const Link& link, const NetworkMember& row, const std::string& owner) {
    const Rational value = link.*row.of_link;
    if (row.kind == Kind::time) return time(value, row, owner);
    const bool factor = row.kind == Kind::factor || row.kind == Kind::share;
    if (factor) return value == 1 ? Json() : number(value, row, owner);
    const std::string bandwidth = bandwidth_text(link.beta);
    if (row.kind == Kind::bandwidth) return bandwidth.empty() ? Json() : Json(bandwidth);
    if (!bandwidth.empty()) return {};
    return number(value, row, owner);
  }

  Json number(Rational value, const NetworkMember& row, const std::string& owner) {
    const double nearest = value.to_double();
    const auto read = shortest_decimal("", nearest);
    if (!read.ok() || *read != value) return refuse(value, row, owner);
    return nearest;
  }

  Json time(Rational value, const NetworkMember& row, const std::string& owner) {
    const std::string text = time_text(value);
    return text.empty() ? refuse(value, row, owner) : Json(text);
  }

  Json refuse(Rational value, const NetworkMember& row, const std::string& owner) {
    status_ = invalid_argument(owner + std::string(row.name) + " is " + value.to_string() +
                               "; allowed in a file are numbers of up to 36 decimals, and for "
                               "beta the numbers of a double");
    return {};
  }

  Fabric fabric_;
  Status status_;
};

}  // namespace

Result<std::string> write_network(const Fabric& fabric) { return Writer(fabric).file(); }

}  // namespace rankine
