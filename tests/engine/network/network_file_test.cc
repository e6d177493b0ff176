// Networks in files: valid networks, the errors for invalid ones, and reading back of written
// files.

#include <nlohmann/json.hpp>

#include <regex>

#include "engine/network/network_file.h"
#include "engine/network/network_members.h"
#include "tests/testing.h"

namespace rankine {
namespace {

TEST(NetworkFile, ReadsAllMembers) {
  const auto fabric = parse_network(R"({
    "name": "two racks", "ports": 2, "alpha": "1.5us", "bandwidth": "50GB/s",
    "group": 8, "between": {"alpha": 5e-6, "beta": 4e-11},
    "multicast": true, "alu": true, "permute": true, "alpha_switch": "150ns"})",
                                    "x")
                          .value();
  EXPECT_EQ(fabric.name, "two racks");
  EXPECT_EQ(fabric.ports, 2);
  EXPECT_TRUE(fabric.link.alpha == Rational(3, 2'000'000));
  EXPECT_TRUE(fabric.link.beta == Rational(1, 50'000'000'000));
  EXPECT_EQ(fabric.group, 8);
  EXPECT_TRUE(fabric.between.alpha == Rational(5, 1'000'000));
  EXPECT_TRUE(fabric.between.beta == Rational(4, 100'000'000'000));
  EXPECT_TRUE(fabric.multicast && fabric.alu && fabric.permute);
  EXPECT_TRUE(fabric.alpha_switch == Rational(150, 1'000'000'000));
}

TEST(NetworkFile, StartsFromAPreset) {
  const auto fabric = parse_network(R"({"preset": "scale_out", "ports": 4})", "mine.json").value();
  EXPECT_EQ(fabric.name, "mine.json");
  EXPECT_EQ(fabric.ports, 4);
  EXPECT_TRUE(fabric.link.alpha == find_regime("scale_out")->fabric.link.alpha);
  const auto numbers = parse_network(R"({"alpha": 1e-6, "bandwidth": 1e11})", "x").value();
  EXPECT_TRUE(numbers.link.alpha == plain_regime().fabric.link.alpha);
  EXPECT_TRUE(numbers.link.beta == plain_regime().fabric.link.beta);
}

TEST(NetworkFile, ReadsWirings) {
  const auto torus = parse_network(
      R"({"wiring": "torus", "dims": "2x3", "routing": "one_way", "hop": "200ns"})", "x");
  ASSERT_TRUE(torus.ok()) << torus.status().text();
  EXPECT_EQ(torus->wiring.kind, WiringKind::torus);
  EXPECT_EQ(torus->wiring.dims, (std::vector<int>{2, 3}));
  EXPECT_EQ(torus->wiring.routing, Routing::one_way);
  EXPECT_TRUE(torus->alpha_hop == Rational(2, 10'000'000));
  EXPECT_EQ(torus->ports, 0) << "as many as links";
  EXPECT_EQ(parse_network(R"({"wiring": "ring", "ports": 1})", "x")->ports, 1);
  EXPECT_EQ(parse_network(R"({"preset": "ring"})", "x")->ports, 0);
  EXPECT_EQ(parse_network(R"({"wiring": "hypercube"})", "x")->ports, 0);
  const auto tree =
      parse_network(R"({"preset": "two_level", "wiring": "fat_tree", "spines": 4})", "x").value();
  EXPECT_EQ(tree.wiring.spines, 4);
  EXPECT_EQ(tree.ports, 1);
  EXPECT_EQ(parse_network(R"({"preset": "two_level", "wiring": "two_level"})", "x")->wiring.kind,
            WiringKind::two_level);
}

TEST(NetworkFile, NamesMemberValueAndWhatIsAllowed) {
  const struct {
    const char* json;
    const char* error;  // a part of it
  } kCases[] = {
      {R"({"beta": 1e-11, "bandwidth": 1e11})", "bandwidth and beta; one of them is allowed"},
      {R"({"between": {"latency": 1}})", "between has a member 'latency'; allowed are alpha"},
      {R"({"between": {"alpha": "1x"}})", "between.alpha is '1x'; allowed are times"},
      {R"({"between": 3})", "between is 3; allowed are objects"},
      {R"({"group": 4})", "group is 4 and between is missing"},
      {R"({"latency": 1})", "the network has a member 'latency'; allowed are name, preset, ports"},
      {R"({"wiring": "star"})",
       "wiring is \"star\"; allowed are \"full\", \"ring\", \"torus\", \"mesh\", \"hypercube\", "
       "\"two_level\" and \"fat_tree\""},
      {R"({"wiring": "torus", "dims": "4*4"})", "dims is '4*4'; allowed are up to 14 sizes"},
      {R"({"wiring": "ring", "dims": "4"})", "dims is 4 and wiring is ring"},
      {R"({"wiring": "ring", "alu": true})", "needs full wiring"},
      {R"({"wiring": "torus", "permute": true})", "has permute and wiring is torus"},
      {R"({"wiring": "fat_tree", "spines": 2})", "group is 0; "},
      {R"({"preset": "two_level", "wiring": "fat_tree"})", "spines is 0; "},
      {R"({"spines": 2})", "spines is 2 and wiring is full; spines need fat_tree wiring"},
      {R"({"wiring": "mesh", "routing": "one_way"})", "routing is one_way and wiring is mesh"},
      {R"({"preset": "scaleup"})", "preset is \"scaleup\"; allowed are plain, scale_up"},
      {R"({"odd": [5]})", "odd is 5; allowed are "},
      {R"({"odd": [{"at": -1, "alpha": 1}]})",
       "odd.at is -1; allowed are places from 0 to 1048575"},
      {R"({"odd": [{"at": 1, "ports": 1}]})", "odd has a member 'ports'; "},
      {R"({"odd": [{"at": 1, "alpha": "soon"}]})", "odd.alpha is 'soon'"},
      {R"({"odd": [{"at": 1, "beta": 0, "bandwidth": 1}]})",
       "an odd link has bandwidth and beta; "},
      {R"({"odd": [{"from": 1, "alpha": 1}]})", "odd has a link with from 1; "},
      {R"({"odd": [{"alpha": 1}]})", "odd has a link with no place; "},
      {R"({"odd": [{"at": 1}]})", "odd place 1 has neither alpha nor bandwidth; "},
      {R"([1])", "the network is array; "},
      {R"({"ports": )", "the network is not JSON"},
  };
  for (const auto& one : kCases) {
    const auto fabric = parse_network(one.json, "x");
    ASSERT_FALSE(fabric.ok()) << one.json;
    EXPECT_NE(fabric.status().text().find(one.error), std::string::npos)
        << one.json << ": " << fabric.status().text();
  }
}

TEST(NetworkFile, IsFoundByNameOrPath) {
  const auto preset = find_network("--network", "nvl72").value();
  EXPECT_EQ(preset.name, "nvl72");

  const std::string path = ::testing::TempDir() + "/network.json";
  std::ofstream(path) << R"({"ports": 3})";
  const auto file = find_network("--network", path).value();
  EXPECT_EQ(file.ports, 3);
  std::ofstream(path) << R"({"ports": -3})";
  const auto bad = find_network("--network", path);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.status().text().find("--network '" + path + "': ports is -3"), std::string::npos)
      << bad.status().text();
  std::remove(path.c_str());

  const auto near = [](const std::string& name) {
    return find_network("--network", name).status().text();
  };
  EXPECT_NE(near("scale-out").find("; did you mean 'scale_out'?"), std::string::npos);
  EXPECT_EQ(near("/no/such/file").find("did you mean"), std::string::npos);
  const auto refused = [](const std::string& json) {
    return parse_network(json, "x").status().text();
  };
  EXPECT_NE(refused(R"({"preset": "tours"})").find("did you mean 'torus'?"), std::string::npos);
  EXPECT_NE(refused(R"({"bandwith": 1})").find("did you mean 'bandwidth'?"), std::string::npos);
  EXPECT_EQ(refused("{\"name\": \"a\\u001b[2J\"}"),
            "name is \"a\\u001b[2J\"; allowed are texts of one line");

  const auto nothing = find_network("--network", "/no/such/file");
  ASSERT_FALSE(nothing.ok());
  EXPECT_NE(nothing.status().text().find("no preset and no file"), std::string::npos);
  EXPECT_NE(nothing.status().text().find("scale_up"), std::string::npos);
  EXPECT_FALSE(find_network("--network", "/").ok());
}

TEST(NetworkFile, IsReadInBounds) {
  const auto deep = parse_network(std::string(200'000, '['), "x");
  EXPECT_EQ(deep.status().text(), "the network nests 200000 levels deep; allowed are up to 64");
  const auto deep_member = parse_network(
      "{\"name\": " + std::string(200'000, '[') + std::string(200'000, ']') + "}", "x");
  EXPECT_EQ(deep_member.status().code(), Code::invalid_argument);
}

// --- The table of members

using Json = nlohmann::json;
using Kind = NetworkMember::Kind;

// A network in which the member has an effect.
Json network_with(const NetworkMember& row) {
  Json network = Json::object();
  if (row.name == "group") network["between"] = {{"alpha", "5us"}};
  if (row.name == "between") network["preset"] = "two_level";
  if (row.name == "dims" || row.name == "routing") network["wiring"] = "torus";
  if (row.name == "spines") network["preset"] = "fat_tree";
  network[std::string(row.name)] = Json::parse(row.example);
  return network;
}

TEST(NetworkMembers, ExamplesAreReadAndMakeADifference) {
  for (const NetworkMember& row : network_members()) {
    const Json with = network_with(row);
    Json without = with;
    without.erase(std::string(row.name));
    const auto changed = read_network(with, "x"), before = read_network(without, "x");
    ASSERT_TRUE(changed.ok()) << with << ": " << changed.status().text();
    ASSERT_TRUE(before.ok()) << without << ": " << before.status().text();
    EXPECT_NE(*changed, *before) << with;
  }
}

// Values that the kind of the member forbids.
std::vector<Json> refused_values(const NetworkMember& row) {
  switch (row.kind) {
    case Kind::text:
      return {1, nullptr, Json::array()};
    case Kind::preset:
      return {"ethernet", 1};
    case Kind::whole:
      return {row.least - 1, row.most + 1, 1.5, "1", nullptr, true};
    case Kind::bytes:
      return {row.least - 1, row.most + 1, 1.5, "32M", "0", nullptr, true};
    case Kind::flag:
      return {0, "true", nullptr};
    case Kind::time:
      return {-1e-9, nullptr, true};
    case Kind::bandwidth:
      return {0, -1, nullptr};
    case Kind::beta:
      return {-1e-12, "1e-11", nullptr};
    case Kind::factor:
      return {0.99, 0, "2", nullptr};
    case Kind::share:
      return {0, -0.5, 1.01, "0.5", nullptr};
    case Kind::places:
      return {0, "0,4", Json::array({-1}), Json::array({1, 2, 1}), Json::array({1.5}), nullptr};
    case Kind::odd:
      return {5, Json::object(), nullptr};
    case Kind::link:
      return {1, "1us", Json::array()};
    case Kind::wiring:
    case Kind::routing:
      return {"star", 1, nullptr};
    case Kind::sizes:
      return {4, Json::array({4, 4})};
  }
  return {};
}

TEST(NetworkMembers, RefusalsNameMemberValueAndWhatIsAllowed) {
  for (const NetworkMember& row : network_members()) {
    const std::string name(row.name);
    const auto values = refused_values(row);
    EXPECT_FALSE(values.empty()) << name;
    for (const Json& value : values) {
      const auto fabric = read_network({{name, value}}, "x");
      EXPECT_EQ(fabric.status().text(),
                name + " is " + value.dump() + "; allowed are " + row.allowed());
      if (row.of_link == nullptr) continue;
      const auto between = read_network({{"between", {{name, value}}}}, "x");
      EXPECT_EQ(between.status().text(),
                "between." + name + " is " + value.dump() + "; allowed are " + row.allowed());
    }
  }
}

TEST(OddLinks, AreReadWithWhereTheyAre) {
  const auto fabric =
      parse_network(
          R"({"odd": [{"at": 5, "bandwidth": "10GB/s"}, {"from": 0, "to": 3, "alpha": "9us"}]})",
          "x")
          .value();
  EXPECT_EQ(fabric.odd,
            (std::vector<OddLink>{{.at = 5, .beta = Rational(1, 10'000'000'000)},
                                  {.from = 0, .to = 3, .alpha = Rational(9, 1'000'000)}}));
}

// --- Writing

TEST(WriteNetwork, IsReadAgain) {
  std::vector<Fabric> fabrics;
  for (const Regime& regime : regimes()) fabrics.push_back(regime.fabric);
  for (const NetworkMember& row : network_members()) {
    fabrics.push_back(*read_network(network_with(row), "x"));
  }
  for (const char* text :
       {R"({"alpha": 0, "beta": 0})", R"({"alpha": 123456.789, "beta": 3e-11})",
        R"({"alpha": "0.0001ps", "bandwidth": "3.5Gib/s"})", R"({"bandwidth": 0.125})",
        R"({"preset": "torus", "ports": 1, "dims": "3x3", "routing": "one_way"})",
        R"({"group": 2, "between": {"alpha": "1us", "beta": 7e-12}})"}) {
    const auto fabric = parse_network(text, "x");
    ASSERT_TRUE(fabric.ok()) << text << fabric.status().text();
    fabrics.push_back(*fabric);
  }
  for (const Fabric& fabric : fabrics) {
    const auto text = write_network(fabric);
    ASSERT_TRUE(text.ok()) << fabric.name << ": " << text.status().text();
    const auto again = parse_network(*text, "other");
    ASSERT_TRUE(again.ok()) << *text << again.status().text();
    EXPECT_EQ(*again, fabric) << *text;
  }
}

TEST(WriteNetwork, SaysWhatPeopleWouldWrite) {
  EXPECT_EQ(*write_network(find_regime("two_level_shared")->fabric), R"({
  "name": "two_level_shared",
  "ports": 1,
  "alpha": "500ns",
  "bandwidth": "450GB/s",
  "group": 8,
  "between": {
    "alpha": "1.5us",
    "bandwidth": "50GB/s"
  },
  "wiring": "two_level"
}
)");
}

TEST(WriteNetwork, RefusesWhatNoFileCanSay) {
  Fabric fabric = plain_regime().fabric;
  fabric.link.alpha = Rational(1, 3);
  EXPECT_EQ(write_network(fabric).status().text().find("alpha is 1/3; "), 0U);
  fabric = find_regime("two_level")->fabric;
  fabric.between.beta = Rational(3, 7);
  EXPECT_EQ(write_network(fabric).status().text().find("between.beta is 3/7; "), 0U);
}

// The schema and the reader accept equal values of each single member.

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

// Checks the keywords of the schema, as draft 2020-12 defines them; throws for any other keyword.
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

// Single members, independent of others: alpha, bandwidth and beta in both places.
TEST(NetworkSchema, AgreesWithTheReader) {
  const std::vector<std::pair<std::string, std::vector<Json>>> kValues = {
      {"name", {"two racks", "", 1, nullptr}},
      {"preset", {"plain", "fat_tree", "ethernet", 3}},
      {"ports", {1, 16384, 0, 16385, -1, 1.5, "2", true}},
      {"alpha", {0,       1e-6,     "1.5us", "1.5", "3 min", " 2MS ", "+1ps",  ".5s",   "5.s",
                 "1e-6",  "1E+2ns", "0s",    -1,    "-1s",   "us",    "1.5xs", "1..5s", "",
                 "1 s s", "1min3",  "2h",    "2 H", "2hs",   1e9,     2e9,     nullptr, true}},
      {"bandwidth",
       {1,          1e11,     "100GB/s", "800Gb/s", "1.5TiB/s", "3 kB/s", "7KB/s", "2b/s",
        "1e3B/s",   ".5MB/s", 0,         -1,        "100GB",    "gB/s",   "3gB/s", "-1B/s",
        "1Bs",      "",       "1kb/S",   "800Gbps", "3Bps",     "3ps",    false,   "100 Gbit/s",
        "8 bits/s", "3bit",   1e18,      1e19,      1e-8,       1e-10}},
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

// Members that are valid only together with others.
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

// --- The files of examples/, which lies below the directory in which Bazel starts a test.

TEST(Examples, AreReadForSomeNumberOfRanks) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("engine/network/examples")) {
    const auto fabric = find_network("network", entry.path().string()).value();
    EXPECT_NE(fabric.name, entry.path().string()) << "an example has a name";
    std::ifstream file(entry.path());
    EXPECT_TRUE(satisfies(Json::parse(file), schema())) << entry.path();
    const auto wired = wired_for(fabric, 64);
    EXPECT_TRUE(wired.ok()) << entry.path() << ": " << wired.status().text();
    ++files;
  }
  EXPECT_GE(files, 5U);
}

}  // namespace
}  // namespace rankine
