#include "engine/network/fabric.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "engine/network/network_file.h"

namespace rankine {
namespace {

TEST(Regimes, AreSoundNamedAndSourced) {
  std::set<std::string_view> names;
  for (const Regime& regime : regimes()) {
    EXPECT_TRUE(check_fabric(regime.fabric).ok()) << regime.name;
    EXPECT_EQ(regime.name, regime.fabric.name);
    EXPECT_TRUE(names.insert(regime.name).second) << regime.name;
    EXPECT_FALSE(regime.source.empty()) << regime.name;
    EXPECT_EQ(find_regime(regime.name), &regime);
    EXPECT_TRUE(Rational(0) < regime.fabric.link.alpha) << regime.name;
    EXPECT_TRUE(Rational(0) < regime.fabric.link.beta) << regime.name;
    if (regime.fabric.two_level()) {
      EXPECT_TRUE(regime.fabric.link.beta < regime.fabric.between.beta) << regime.name;
    }
    if (regime.fabric.alu || regime.fabric.multicast) {
      EXPECT_TRUE(Rational(0) < regime.fabric.alpha_switch) << regime.name;
    }
  }
  EXPECT_EQ(find_regime("ethernet"), nullptr);
  EXPECT_EQ(plain_regime().name, "plain");
}

// The sources' own numbers.
TEST(Regimes, SayWhatTheirSourcesSay) {
  const Fabric& up = find_regime("scale_up")->fabric;
  EXPECT_EQ(up.link.alpha.to_double(), 0.5e-6);
  EXPECT_EQ(1 / up.link.beta.to_double(), 900e9);
  const Fabric& out = find_regime("scale_out")->fabric;
  EXPECT_LE(1e-6, out.link.alpha.to_double());
  EXPECT_GE(2e-6, out.link.alpha.to_double());
  EXPECT_EQ(1 / out.link.beta.to_double(), 50e9);
  const Fabric& torus = find_regime("torus_link")->fabric;
  EXPECT_TRUE(torus.link.alpha == Rational(15 + 1 + 1, 10'000'000));
  EXPECT_EQ(8 / torus.link.beta.to_double(), 800e9);
  const Fabric& in_switch = find_regime("switch")->fabric;
  EXPECT_LE(100e-9, in_switch.alpha_switch.to_double());
  EXPECT_GE(200e-9, in_switch.alpha_switch.to_double());
  EXPECT_EQ(find_regime("two_level")->fabric.group, 8);
}

TEST(CheckFabric, NamesTheMember) {
  const auto text_of = [](const Fabric& fabric) { return check_fabric(fabric).text(); };
  Fabric fabric = plain_regime().fabric;
  fabric.ports = 0;
  EXPECT_EQ(text_of(fabric), "ports is 0; allowed are 1 to 16384");
  fabric = plain_regime().fabric;
  fabric.group = -2;
  EXPECT_EQ(text_of(fabric), "group is -2; allowed are 0 (none) and more");
  fabric = plain_regime().fabric;
  fabric.between.beta = Rational(-1, 2);
  EXPECT_EQ(text_of(fabric), "between.beta is -1/2; it may not be negative");
}

// Trivance, section 6: 1.5 us per step, 800 Gb/s, 100 ns of link and 100 ns of hop processing.
TEST(Regimes, ShareLinksAsTheirSourcesSay) {
  for (const char* name : {"ring", "torus"}) {
    const Fabric& fabric = find_regime(name)->fabric;
    EXPECT_TRUE(fabric.link.alpha == Rational(15, 10'000'000));
    EXPECT_EQ(8 / fabric.link.beta.to_double(), 800e9);
    EXPECT_TRUE(fabric.alpha_hop == Rational(2, 10'000'000));
    EXPECT_EQ(fabric.ports, 0);
    EXPECT_TRUE(fabric.link.alpha + fabric.alpha_hop ==
                find_regime("torus_link")->fabric.link.alpha);
  }
  const Fabric& shared = find_regime("two_level_shared")->fabric;
  const Fabric& own = find_regime("two_level")->fabric;
  EXPECT_EQ(shared.wiring.kind, WiringKind::two_level);
  EXPECT_EQ(shared.group, own.group);
  EXPECT_TRUE(shared.between.beta == own.between.beta && shared.link.beta == own.link.beta);
}

TEST(WiredFor, FillsInWhatIsOpen) {
  using Dims = std::vector<int>;
  const Fabric& torus = find_regime("torus")->fabric;
  EXPECT_EQ(wired_for(torus, 16)->wiring.dims, (Dims{4, 4}));
  EXPECT_EQ(wired_for(torus, 16)->ports, 4);
  EXPECT_EQ(wired_for(torus, 13)->wiring.dims, Dims{13});
  EXPECT_EQ(wired_for(torus, 13)->ports, 2);
  EXPECT_EQ(wired_for(torus, 27, {3, 3, 3})->wiring.dims, (Dims{3, 3, 3}));
  EXPECT_EQ(wired_for(torus, 27, {3, 3, 3})->ports, 6);
  EXPECT_EQ(wired_for(torus, 1)->ports, 2);
  EXPECT_EQ(wired_for(find_regime("ring")->fabric, 16, {4, 4})->ports, 2);
  // What is said stays said; once filled in, nothing changes.
  Fabric said = torus;
  said.ports = 1;
  said.wiring.dims = {2, 8};
  EXPECT_EQ(wired_for(said, 16, {4, 4})->wiring.dims, (Dims{2, 8}));
  EXPECT_EQ(wired_for(said, 16, {4, 4})->ports, 1);
  const Fabric once = *wired_for(torus, 12);
  EXPECT_EQ(wired_for(once, 12)->wiring.dims, once.wiring.dims);
  EXPECT_EQ(wired_for(find_regime("two_level_shared")->fabric, 20)->wiring.group, 8);
  // Full wiring needs nothing, and dims are none of its business.
  EXPECT_EQ(wired_for(plain_regime().fabric, 7, {2, 2})->ports, 1);
}

TEST(WiredFor, SaysWhatIsNeeded) {
  const Fabric& torus = find_regime("torus")->fabric;
  EXPECT_EQ(wired_for(torus, 16, {3, 5}).status().text(),
            "dims is 3x5; the sizes must multiply to the number of ranks, 16");
  Fabric said = torus;
  said.wiring.dims = {2, 8};
  EXPECT_EQ(wired_for(said, 12).status().text(),
            "dims is 2x8; the sizes must multiply to the number of ranks, 12");
  said.link.alpha = Rational(-1);
  EXPECT_EQ(wired_for(said, 16).status().text(), "alpha is -1; it may not be negative");
}

TEST(CheckFabric, RefusesWhatAnotherWiringHas) {
  const auto text_of = [](const auto& change) {
    Fabric fabric = plain_regime().fabric;
    change(fabric);
    return check_fabric(fabric).text();
  };
  using enum WiringKind;
  EXPECT_EQ(text_of([](Fabric& f) {
              f.wiring.dims = {2, 2};
            }),
            "dims is 2x2 and wiring is full; dims need torus wiring");
  EXPECT_EQ(text_of([](Fabric& f) { f.wiring = {.kind = ring, .dims = {4}}; }),
            "dims is 4 and wiring is ring; dims need torus wiring");
  EXPECT_EQ(text_of([](Fabric& f) { f.wiring.routing = Routing::one_way; }),
            "routing is one_way and wiring is full; allowed is minimal");
  EXPECT_EQ(text_of([](Fabric& f) {
              f.wiring.kind = torus;
              f.group = 4;
            }),
            "group is 4 and wiring is torus; groups need full or two_level wiring");
  EXPECT_EQ(text_of([](Fabric& f) { f.wiring.kind = two_level; }),
            "group is 0; two_level wiring needs 1 or more ranks per group");
  EXPECT_EQ(text_of([](Fabric& f) {
              f.wiring = {.kind = two_level, .group = 3};
              f.group = 4;
            }),
            "the wiring's group is 3; allowed are 0 and the fabric's, which is 4");
  EXPECT_EQ(text_of([](Fabric& f) {
              f.wiring.kind = ring;
              f.alu = true;
            }),
            "the network has ALU and wiring is ring; a switch that copies and reduces needs full "
            "wiring");
  EXPECT_EQ(text_of([](Fabric& f) { f.alpha_hop = Rational(-1); }),
            "hop is -1; it may not be negative");
  EXPECT_EQ(text_of([](Fabric& f) {
              f.wiring.kind = ring;
              f.ports = 0;
            }),
            "");
}

TEST(Fabric, KnowsWhoIsNear) {
  Fabric fabric = find_regime("two_level")->fabric;
  EXPECT_EQ(&fabric.between_ranks(0, 7), &fabric.link);
  EXPECT_EQ(&fabric.between_ranks(7, 8), &fabric.between);
  fabric.group = 0;
  EXPECT_EQ(&fabric.between_ranks(7, 8), &fabric.link);
}

TEST(NetworkFile, ReadsAllMembers) {
  const auto fabric = parse_network(R"({
    "name": "two racks", "ports": 2, "alpha": "1.5us", "bandwidth": "50GB/s",
    "group": 8, "between": {"alpha": 5e-6, "beta": 4e-11},
    "multicast": true, "alu": true, "alpha_switch": "150ns"})",
                                    "x");
  ASSERT_TRUE(fabric.ok()) << fabric.status().text();
  EXPECT_EQ(fabric->name, "two racks");
  EXPECT_EQ(fabric->ports, 2);
  EXPECT_TRUE(fabric->link.alpha == Rational(3, 2'000'000));
  EXPECT_TRUE(fabric->link.beta == Rational(1, 50'000'000'000));
  EXPECT_EQ(fabric->group, 8);
  EXPECT_TRUE(fabric->between.alpha == Rational(5, 1'000'000));
  EXPECT_TRUE(fabric->between.beta == Rational(4, 100'000'000'000));
  EXPECT_TRUE(fabric->multicast && fabric->alu);
  EXPECT_TRUE(fabric->alpha_switch == Rational(150, 1'000'000'000));
}

TEST(NetworkFile, StartsFromAPreset) {
  const auto fabric = parse_network(R"({"preset": "scale_out", "ports": 4})", "mine.json");
  ASSERT_TRUE(fabric.ok()) << fabric.status().text();
  EXPECT_EQ(fabric->name, "mine.json");
  EXPECT_EQ(fabric->ports, 4);
  EXPECT_TRUE(fabric->link.alpha == find_regime("scale_out")->fabric.link.alpha);
  const auto numbers = parse_network(R"({"alpha": 1e-6, "bandwidth": 1e11})", "x");
  ASSERT_TRUE(numbers.ok());
  EXPECT_TRUE(numbers->link.alpha == plain_regime().fabric.link.alpha);
  EXPECT_TRUE(numbers->link.beta == plain_regime().fabric.link.beta);
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
  EXPECT_EQ(parse_network(R"({"preset": "two_level", "wiring": "two_level"})", "x")->wiring.kind,
            WiringKind::two_level);
}

TEST(NetworkFile, NamesMemberValueAndWhatIsAllowed) {
  const struct {
    const char* json;
    const char* error;  // a part of it
  } kCases[] = {
      {R"({"ports": 0})", "ports is 0; allowed are whole numbers from 1"},
      {R"({"ports": 1.5})", "ports is 1.5; allowed are whole numbers from 1"},
      {R"({"ports": 18446744073709551615})", "ports is 18446744073709551615; allowed"},
      {R"({"ports": "two"})", "ports is \"two\"; allowed are whole numbers"},
      {R"({"alpha": "1 parsec"})", "alpha is '1 parsec'; allowed are times such as 1.5us"},
      {R"({"alpha": -1e-6})", "alpha is -1e-06; allowed are times"},
      {R"({"alpha": null})", "alpha is null; allowed are times"},
      {R"({"bandwidth": 0})", "bandwidth is 0; allowed are positive bandwidths"},
      {R"({"bandwidth": "-3GB/s"})", "bandwidth is '-3GB/s'; allowed are positive bandwidths"},
      {R"({"bandwidth": "3GB"})", "bandwidth is '3GB'; allowed are positive bandwidths"},
      {R"({"beta": -1})", "beta is -1; allowed are seconds per byte"},
      {R"({"beta": "1"})", "beta is \"1\"; allowed are seconds per byte"},
      {R"({"beta": 1e-11, "bandwidth": 1e11})", "bandwidth and beta; one of them is allowed"},
      {R"({"between": {"latency": 1}})", "between has a member 'latency'; allowed are alpha"},
      {R"({"between": {"alpha": "1x"}})", "between.alpha is '1x'; allowed are times"},
      {R"({"between": 3})", "between is 3; allowed are objects"},
      {R"({"group": 4})", "group is 4 and between is missing"},
      {R"({"multicast": 1})", "multicast is 1; allowed are true and false"},
      {R"({"latency": 1})", "the network has a member 'latency'; allowed are name, preset, ports"},
      {R"({"wiring": "star"})",
       "wiring is \"star\"; allowed are \"full\", \"ring\", \"torus\" and \"two_level\""},
      {R"({"wiring": 1})", "wiring is 1; allowed are \"full\""},
      {R"({"wiring": "torus", "dims": "4*4"})", "dims is '4*4'; allowed are up to 14 sizes"},
      {R"({"wiring": "torus", "dims": [4, 4]})", "dims is [4,4]; allowed are texts such as"},
      {R"({"wiring": "ring", "dims": "4"})", "dims is 4 and wiring is ring"},
      {R"({"wiring": "ring", "routing": "x"})", "routing is \"x\"; allowed are \"minimal\" and"},
      {R"({"wiring": "ring", "hop": -1})", "hop is -1; allowed are times"},
      {R"({"wiring": "ring", "alu": true})", "needs full wiring"},
      {R"({"preset": "scaleup"})", "preset is \"scaleup\"; allowed are plain, scale_up"},
      {R"([1])", "the network is array; an object is needed"},
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
  const auto preset = find_network("--network", "nvl72");
  ASSERT_TRUE(preset.ok());
  EXPECT_EQ(preset->name, "nvl72");

  const std::string path = ::testing::TempDir() + "/network.json";
  std::ofstream(path) << R"({"ports": 3})";
  const auto file = find_network("--network", path);
  ASSERT_TRUE(file.ok()) << file.status().text();
  EXPECT_EQ(file->ports, 3);
  std::ofstream(path) << R"({"ports": -3})";
  const auto bad = find_network("--network", path);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.status().text().find("--network '" + path + "': ports is -3"), std::string::npos)
      << bad.status().text();
  std::remove(path.c_str());

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

}  // namespace
}  // namespace rankine
