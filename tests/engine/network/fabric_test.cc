#include "engine/network/fabric.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <vector>

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
      EXPECT_FALSE(regime.fabric.between.beta < regime.fabric.link.beta) << regime.name;
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
  const Fabric& mesh = find_regime("mesh")->fabric;
  EXPECT_EQ(wired_for(mesh, 16)->wiring.dims, (Dims{4, 4}));
  EXPECT_EQ(wired_for(mesh, 16)->ports, 4);
  EXPECT_EQ(wired_for(mesh, 8, {2, 4})->ports, 3) << "one link in the dimension of two ranks";
  EXPECT_EQ(wired_for(find_regime("hypercube")->fabric, 16)->ports, 4);
  EXPECT_EQ(wired_for(find_regime("hypercube")->fabric, 1)->ports, 1);
  EXPECT_EQ(wired_for(find_regime("fat_tree")->fabric, 20)->wiring.group, 8);
  EXPECT_EQ(wired_for(find_regime("fat_tree")->fabric, 20)->ports, 1);
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
  EXPECT_EQ(wired_for(find_regime("hypercube")->fabric, 12).status().text(),
            "ranks is 12; hypercube wiring needs a power of two");
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
            "dims is 2x2 and wiring is full; dims need torus or mesh wiring");
  EXPECT_EQ(text_of([](Fabric& f) { f.wiring = {.kind = ring, .dims = {4}}; }),
            "dims is 4 and wiring is ring; dims need torus or mesh wiring");
  EXPECT_EQ(text_of([](Fabric& f) { f.wiring.routing = Routing::one_way; }),
            "routing is one_way and wiring is full; allowed is minimal");
  EXPECT_EQ(text_of([](Fabric& f) {
              f.wiring.kind = torus;
              f.group = 4;
            }),
            "group is 4 and wiring is torus; groups need full, two_level or fat_tree wiring");
  EXPECT_EQ(text_of([](Fabric& f) { f.wiring.kind = two_level; }),
            "group is 0; two_level wiring needs 1 or more ranks per group");
  EXPECT_EQ(text_of([](Fabric& f) {
              f.wiring.kind = fat_tree;
              f.group = 4;
            }),
            "spines is 0; fat_tree wiring needs 1 to 512");
  EXPECT_EQ(text_of([](Fabric& f) { f.wiring = {.kind = mesh, .spines = 3}; }),
            "spines is 3 and wiring is mesh; spines need fat_tree wiring");
  EXPECT_EQ(text_of([](Fabric& f) { f.wiring = {.kind = mesh, .routing = Routing::one_way}; }),
            "routing is one_way and wiring is mesh; allowed is minimal");
  EXPECT_EQ(text_of([](Fabric& f) {
              f.wiring = {.kind = two_level, .group = 3};
              f.group = 4;
            }),
            "the wiring's group is 3; allowed are 0 and the fabric's, which is 4");
  EXPECT_EQ(text_of([](Fabric& f) {
              f.wiring.kind = ring;
              f.alu = true;
            }),
            "the network has ALU and wiring is ring; a switch that copies, reduces or permutes "
            "needs full wiring");
  EXPECT_EQ(text_of([](Fabric& f) {
              f.wiring.kind = ring;
              f.permute = true;
            }),
            "the network has permute and wiring is ring; a switch that copies, reduces or permutes "
            "needs full wiring");
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
  EXPECT_EQ(fabric.link_of_kind(fabric.kind_between(0, 7)), fabric.link);
  EXPECT_EQ(fabric.link_of_kind(fabric.kind_between(7, 8)), fabric.between);
  fabric.group = 0;
  EXPECT_EQ(fabric.link_of_kind(fabric.kind_between(7, 8)), fabric.link);
}

}  // namespace
}  // namespace rankine
