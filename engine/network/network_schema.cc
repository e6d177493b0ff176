#include "engine/network/network_schema.h"

#include <nlohmann/json.hpp>

#include "algorithms/torus.h"
#include "engine/base/units.h"
#include "engine/network/network_members.h"

namespace rankine {
namespace {

using Json = nlohmann::ordered_json;
using Kind = NetworkMember::Kind;

// As parse_seconds() and parse_bandwidth() read them.
constexpr const char* kTimePattern =
    R"(^\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?( *([hH]|[mM][iI][nN]|[mMuUnNpP]?[sS]))?$)";
constexpr const char* kBandwidthPattern =
    R"(^\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *([kKMGT]i?)?([bB](/s|ps)|bits?/s)$)";

// As parse_size() reads it, as far as the largest size that a member may have goes.
constexpr const char* kBytesPattern =
    R"(^([0-9]+\.?[0-9]*|\.[0-9]+)([eE]\+?[0-9]+)?( *([bB]|[kKmM]([bB]|[iI][bB]?)?))?$)";

std::string sizes_pattern() { return "^[0-9]+(x[0-9]+){0," + std::to_string(kMostDims - 1) + "}$"; }

const Json kPlace = {{"type", "integer"}, {"minimum", 0}, {"maximum", Routes::kMostRanks - 1}};

Json object_of(bool (*has)(const NetworkMember&));
Json odd_link();

// What a member may be.
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
                 {"description", "What 'rankine network FILE' checks, and --network takes."}};
  schema.update(object_of([](const NetworkMember&) { return true; }));
  return schema.dump(2) + "\n";
}

}  // namespace rankine
