// The schema against the reader: what one takes and refuses of a single member, so does the other.
#include "engine/network/network_members.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/network/network_file.h"
#include "engine/network/network_members.h"

namespace rankine {
namespace {

using Json = nlohmann::json;

Json schema() { return Json::parse(network_schema()); }

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "number") return value.is_number();
  if (type == "integer") return value.is_number_integer();
  if (type == "boolean") return value.is_boolean();
  throw std::logic_error("no type that this test knows: " + type);
}

// The keywords that the schema has, as draft 2020-12 means them; any other is an error here.
bool satisfies(const Json& value, const Json& by);

bool satisfies_keyword(const Json& value, const std::string& keyword, const Json& by) {
  const Json& says = by[keyword];
  if (keyword == "type") return is_of_type(value, says);
  if (keyword == "enum") return std::find(says.begin(), says.end(), value) != says.end();
  if (keyword == "minimum") return !value.is_number() || value >= says;
  if (keyword == "maximum") return !value.is_number() || value <= says;
  if (keyword == "exclusiveMinimum") return !value.is_number() || value > says;
  if (keyword == "pattern") {
    return !value.is_string() ||
           std::regex_search(value.get<std::string>(), std::regex(says.get<std::string>()));
  }
  if (keyword == "items") {
    bool all = true;
    for (const Json& one : value.is_array() ? value : Json::array()) all &= satisfies(one, says);
    return all;
  }
  if (keyword == "uniqueItems") {
    return !value.is_array() || std::set<Json>(value.begin(), value.end()).size() == value.size();
  }
  if (keyword == "oneOf") {
    return std::count_if(says.begin(), says.end(),
                         [&](const Json& one) { return satisfies(value, one); }) == 1;
  }
  if (keyword == "anyOf") {
    bool any = false;
    for (const Json& one : says) any |= satisfies(value, one);
    return any;
  }
  if (keyword == "not") return !satisfies(value, says);
  if (keyword == "required") {
    bool all = true;
    for (const Json& name : says)
      all &= !value.is_object() || value.contains(name.get<std::string>());
    return all;
  }
  if (keyword == "properties") {
    bool all = true;
    for (const auto& [name, property] : says.items()) {
      all &= !value.is_object() || !value.contains(name) || satisfies(value[name], property);
    }
    return all;
  }
  if (keyword == "additionalProperties") {
    bool known = true;
    if (!value.is_object()) return true;
    for (const auto& [name, part] : value.items()) known &= by["properties"].contains(name);
    return known || says.get<bool>();
  }
  for (const char* word : {"$schema", "title", "description", "examples"}) {
    if (keyword == word) return true;
  }
  throw std::logic_error("no keyword that this test knows: " + keyword);
}

bool satisfies(const Json& value, const Json& by) {
  bool all = true;
  for (const auto& [keyword, says] : by.items()) all &= satisfies_keyword(value, keyword, by);
  return all;
}

TEST(NetworkSchema, HasEveryMemberOfTheTable) {
  const Json all = schema();
  EXPECT_EQ(all["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(all["properties"].size(), network_members().size());
  std::size_t of_links = 0;
  for (const NetworkMember& row : network_members()) {
    const std::string name(row.name);
    ASSERT_TRUE(all["properties"].contains(name)) << name;
    const Json& property = all["properties"][name];
    const std::string description = property["description"];
    EXPECT_TRUE(description.starts_with(row.help)) << description;
    EXPECT_TRUE(description.ends_with(row.unit())) << description;
    for (const Json& example : property["examples"]) {
      EXPECT_TRUE(satisfies(Json{{name, example}}, all)) << name << " " << example;
    }
    if (row.of_link == nullptr) continue;
    ++of_links;
    EXPECT_TRUE(all["properties"]["between"]["properties"].contains(name)) << name;
  }
  EXPECT_EQ(all["properties"]["between"]["properties"].size(), of_links);
}

// Single members, so that nothing depends on others: alpha, bandwidth and beta in both places.
TEST(NetworkSchema, AgreesWithTheReader) {
  const std::vector<std::pair<std::string, std::vector<Json>>> kValues = {
      {"name", {"two racks", "", 1, nullptr}},
      {"preset", {"plain", "fat_tree", "ethernet", 3}},
      {"ports", {1, 16384, 0, 16385, -1, 1.5, "2", true}},
      {"alpha", {0,       1e-6,     "1.5us", "1.5", "3 min", " 2MS ", "+1ps",  ".5s",   "5.s",
                 "1e-6",  "1E+2ns", "0s",    -1,    "-1s",   "us",    "1.5xs", "1..5s", "",
                 "1 s s", "1min3",  "2h",    "2 H", "2hs",   1e9,     2e9,    nullptr, true}},
      {"bandwidth",
       {1,        1e11,     "100GB/s", "800Gb/s", "1.5TiB/s", "3 kB/s", "7KB/s", "2b/s",
        "1e3B/s", ".5MB/s", 0,         -1,        "100GB",    "gB/s",   "3gB/s", "-1B/s",
        "1Bs",    "",       "1kb/S",   "800Gbps", "3Bps",     "3ps",    false,   "100 Gbit/s",
        "8 bits/s", "3bit", 1e18,   1e19,      1e-8,       1e-10}},
      {"beta", {0, 1e-11, -1e-11, "1e-11"}},
      {"multicast", {true, false, 0, "true"}},
      {"permute", {true, false, 1, "true"}},
      {"alpha_switch", {"150ns", -1}},
      {"hop", {"200ns", "far"}},
      {"latency", {1}},
      {"eta_alpha", {1, 1.5, 0.5, "2"}},
      {"eta_beta", {1, 0.5, 0, 1.5, -1}},
      {"gamma", {0, "5ps", -1}},
      {"mtu",
       {1,    4096, 1 << 24, 0,   (1 << 24) + 1, 1.5,  "4K",   " 1.5 KiB ", "1500", "16mb",  ".5Ki",
        "8b", "",   "4X",    "K", "4KX",         "-4", "4Kbi", "1e3",       "1e",   "1E+2k", true}},
      {"size", {0, 16, -1}},
      {"places", {Json::array(), {0, 4}, {4, 4}, {-1}, 3}},
      {"odd",
       {Json::array(), Json::parse(R"([{"at": 5, "alpha": 1}])"),
        Json::parse(R"([{"from": 0, "to": 1, "beta": 1}])"), Json::parse(R"([{"alpha": 1}])"),
        Json::parse(R"([{"at": 5}])"), Json::parse(R"([{"at": 5, "to": 1, "alpha": 1}])"),
        Json::parse(R"([{"from": 5, "alpha": 1}])"), 1}},
  };
  const Json all = schema();
  for (const auto& [name, values] : kValues) {
    for (const Json& value : values) {
      std::vector<Json> networks = {{{name, value}}};
      if (name == "alpha" || name == "bandwidth" || name == "beta") {
        networks.push_back({{"between", {{name, value}}}});
      }
      for (const Json& network : networks) {
        const auto fabric = read_network(network, "x");
        EXPECT_EQ(satisfies(network, all), fabric.ok()) << network << fabric.status().text();
      }
    }
  }
}

// What other members have a say in, with these.
TEST(NetworkSchema, AgreesWithTheReaderOfWirings) {
  const Json all = schema();
  const auto expect_agreement = [&all](const Json& network) {
    const auto fabric = read_network(network, "x");
    EXPECT_EQ(satisfies(network, all), fabric.ok()) << network << fabric.status().text();
  };
  for (const char* dims : {"4x4", "16", "3x3x3", "4x", "x4", "", "4*4", "-1x2", "4X4",
                           "2x2x2x2x2x2x2x2x2x2x2x2x2x2", "2x2x2x2x2x2x2x2x2x2x2x2x2x2x2"}) {
    for (const char* kind : {"torus", "mesh"}) {
      expect_agreement({{"wiring", kind}, {"dims", dims}});
    }
  }
  for (const char* name : {"ring", "torus", "mesh", "hypercube", "star", ""}) {
    expect_agreement({{"wiring", name}});
  }
  for (const char* name : {"minimal", "one_way", "adaptive"}) {
    expect_agreement({{"wiring", "ring"}, {"routing", name}});
  }
  for (const Json& spines : {Json(1), Json(512), Json(0), Json(513), Json("4")}) {
    expect_agreement({{"preset", "fat_tree"}, {"spines", spines}});
  }
  for (const Json& group : {Json(1), Json(1 << 20), Json((1 << 20) + 1), Json(-1), Json(2.5)}) {
    expect_agreement({{"preset", "two_level"}, {"group", group}});
  }
  expect_agreement({{"bandwidth", 1}, {"beta", 1}});
  expect_agreement({{"between", {{"bandwidth", 1}, {"beta", 1}}}});
  expect_agreement({{"between", {{"ports", 1}}}});
  expect_agreement(Json::array());
}

TEST(NetworkSchema, IsSatisfiedByTheExamples) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("engine/network/examples")) {
    std::ifstream file(entry.path());
    EXPECT_TRUE(satisfies(Json::parse(file), schema())) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 5U);
}

}  // namespace
}  // namespace rankine
