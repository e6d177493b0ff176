#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/collective.h"
#include "engine/network/fabric.h"
#include "engine/network/prices.h"
#include "engine/network/simulate.h"

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

// The numbers of the sources.
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
  EXPECT_TRUE(text_of(fabric).starts_with("between.beta is -1/2"));
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
  // CallArguments members stay as given; filling in twice changes nothing.
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
  // Full wiring needs no members, and ignores dims.
  EXPECT_EQ(wired_for(plain_regime().fabric, 7, {2, 2})->ports, 1);
}

TEST(WiredFor, SaysWhatIsNeeded) {
  const Fabric& torus = find_regime("torus")->fabric;
  EXPECT_TRUE(wired_for(torus, 16, {3, 5}).status().text().starts_with("dims is 3x5"));
  Fabric said = torus;
  said.wiring.dims = {2, 8};
  EXPECT_TRUE(wired_for(said, 12).status().text().starts_with("dims is 2x8"));
  EXPECT_TRUE(
      wired_for(find_regime("hypercube")->fabric, 12).status().text().starts_with("ranks is 12"));
  said.link.alpha = Rational(-1);
  EXPECT_TRUE(wired_for(said, 16).status().text().starts_with("alpha is -1"));
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
            "group is 0; allowed with two_level wiring are 1 and more ranks per group");
  EXPECT_EQ(text_of([](Fabric& f) {
              f.wiring.kind = fat_tree;
              f.group = 4;
            }),
            "spines is 0; allowed with fat_tree wiring are 1 to 512");
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
            "hop is -1; allowed are 0 and more");
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

// Networks that differ by place or time: gamma, contention, odd links, and the places of ranks.
// Each result is compared with a time worked out by hand, or with an equivalent network.

namespace {

const Rational kAlpha(7, 3'000'000), kBeta(1, 11'000'000'000);
constexpr std::uint64_t kM = 960;

Fabric plain(int ports = 1) {
  Fabric fabric;
  fabric.ports = ports;
  fabric.link = {kAlpha, kBeta};
  return fabric;
}

Rational time_of(Collective collective, const char* algorithm, int ranks, const Fabric& fabric,
                 Sync sync = Sync::rounds) {
  const Algorithm& entry = *find_algorithm(collective, algorithm);
  Params params;
  params.ranks = ranks;
  const Schedule schedule = entry.make(params);
  const auto result =
      simulate(schedule, goal_of(entry, params, schedule), fabric, kM, {.sync = sync});
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? Rational(result->end, result->ticks_per_second) : Rational(-1);
}

std::string text(const Rational& time) { return time.to_string(); }

// T = (p-1) alpha + (p-1)/p m (beta + gamma) for a ring; ceil(log2 p) alpha and an equal number of
// bytes for a circulant graph (Traff, section 2.1). The receiver pays gamma for the bytes that it
// adds up.
TEST(Gamma, IsPaidForWhatIsAddedUp) {
  Fabric fabric = plain();
  fabric.gamma = Rational(1, 3'000'000'000);
  for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
    const Rational bytes(3 * kM / 4);
    EXPECT_EQ(text(time_of(Collective::reduce_scatter, "ring", 4, fabric, sync)),
              text(Rational(3) * kAlpha + bytes * (kBeta + fabric.gamma)));
    EXPECT_EQ(text(time_of(Collective::reduce_scatter, "circulant", 4, fabric, sync)),
              text(Rational(2) * kAlpha + bytes * (kBeta + fabric.gamma)));
    EXPECT_EQ(text(time_of(Collective::all_gather, "ring", 4, fabric, sync)),
              text(Rational(3) * kAlpha + bytes * kBeta))
        << "copies are not added up";
  }
}

TEST(Contention, IsALongerAlphaAndLessOfTheBandwidth) {
  Fabric contended = plain(), slower = plain();
  contended.link.eta_alpha = Rational(5, 4);
  contended.link.eta_beta = Rational(3, 4);
  slower.link = {kAlpha * Rational(5, 4), kBeta * Rational(4, 3)};
  const Rational both = time_of(Collective::all_reduce, "ring", 5, contended);
  EXPECT_EQ(text(both), text(time_of(Collective::all_reduce, "ring", 5, slower)));
  EXPECT_NE(text(both), text(time_of(Collective::all_reduce, "ring", 5, plain())));
}

// The slowest link determines the time of every round of a ring.
TEST(OddLinks, HoldUpARing) {
  Fabric fabric = plain();
  fabric.odd = {{.from = 2, .to = 3, .beta = kBeta * Rational(10)}};
  EXPECT_EQ(text(time_of(Collective::all_gather, "ring", 4, fabric)),
            text(Rational(3) * (kAlpha + Rational(kM / 4) * kBeta * Rational(10))));
  fabric.odd = {{.from = 3, .to = 2, .beta = kBeta * Rational(10)}};  // an unused link
  EXPECT_EQ(text(time_of(Collective::all_gather, "ring", 4, fabric)),
            text(time_of(Collective::all_gather, "ring", 4, plain())));
}

TEST(OddLinks, AreAllThoseOfAPlaceAndTheFirstCounts) {
  Fabric fabric = plain();
  fabric.odd = {{.from = 0, .to = 1, .alpha = Rational(1)}, {.at = 1, .alpha = Rational(2)}};
  EXPECT_EQ(text(time_of(Collective::broadcast, "linear", 2, fabric)),
            text(Rational(1) + Rational(kM) * kBeta));
  std::swap(fabric.odd[0], fabric.odd[1]);
  EXPECT_EQ(text(time_of(Collective::broadcast, "linear", 2, fabric)),
            text(Rational(2) + Rational(kM) * kBeta));
}

// On a ring of 5 the message from 0 to 2 crosses the odd wire from 1 to 2; the message from 0 to 4
// does not.
TEST(OddLinks, AreWiresWhereMessagesShareLinks) {
  Fabric fabric = plain();
  fabric.wiring.kind = WiringKind::ring;
  fabric.ports = 1;
  fabric.odd = {{.from = 1, .to = 2, .beta = kBeta * Rational(3)}};
  const auto sent_to = [&](Rank to) {
    const Algorithm& entry = *find_algorithm(Collective::send_recv, "direct");
    Params params;
    params.ranks = 5;
    params.peer = to;
    const Schedule schedule = entry.make(params);
    const auto result = simulate(schedule, goal_of(entry, params, schedule), fabric, kM);
    EXPECT_TRUE(result.ok()) << result.status().text();
    return text(Rational(result->end, result->ticks_per_second));
  };
  EXPECT_EQ(sent_to(2), text(kAlpha + Rational(kM) * kBeta * Rational(3)));
  EXPECT_EQ(sent_to(4), text(kAlpha + Rational(kM) * kBeta));
}

// Four ranks on a network of two groups of four: all in one group, or two in each.
TEST(Places, DecideWhichLinksMessagesTake) {
  Fabric fabric = plain();
  fabric.group = 4;
  fabric.between = {kAlpha * Rational(9), kBeta * Rational(9)};
  fabric.size = 8;
  fabric.places = {4, 5, 6, 7};
  EXPECT_EQ(text(time_of(Collective::all_gather, "ring", 4, fabric)),
            text(time_of(Collective::all_gather, "ring", 4, plain())));
  fabric.places = {0, 7, 1, 6};
  EXPECT_EQ(text(time_of(Collective::all_gather, "ring", 4, fabric)),
            text(Rational(9) * time_of(Collective::all_gather, "ring", 4, plain())));
}

TEST(Places, AreOnAGridToo) {
  Fabric fabric = plain();
  fabric.wiring = {.kind = WiringKind::torus, .dims = {3, 4}};
  fabric.alpha_hop = Rational(1, 5'000'000);
  fabric.size = 12;
  fabric.places = {0, 6};  // one row and two columns on
  EXPECT_EQ(text(time_of(Collective::broadcast, "linear", 2, fabric)),
            text(kAlpha + Rational(3) * fabric.alpha_hop + Rational(kM) * kBeta));
}

TEST(UnlikeNetworks, AreRefusedWithMemberValueAndWhatIsAllowed) {
  const auto refusal = [](const auto& spoil, int ranks = 4) {
    Fabric fabric = plain();
    spoil(fabric);
    return wired_for(fabric, ranks).status().text();
  };
  EXPECT_EQ(refusal([](Fabric& f) { f.gamma = Rational(-1); }),
            "gamma is -1; allowed are 0 and more");
  EXPECT_EQ(refusal([](Fabric& f) { f.link.eta_alpha = Rational(1, 2); }),
            "eta_alpha is 1/2; allowed are 1 and more");
  EXPECT_EQ(refusal([](Fabric& f) { f.between.eta_beta = Rational(0); }),
            "between.eta_beta is 0; allowed are numbers above 0 and up to 1");
  EXPECT_EQ(refusal([](Fabric& f) { f.size = 3; }),
            "size is 3; allowed for 4 ranks are 4 and more");
  EXPECT_EQ(refusal([](Fabric& f) {
              f.places = {0, 1};
            }),
            "places has 2 entries; allowed are none and 4, one per rank");
  EXPECT_EQ(refusal([](Fabric& f) {
              f.places = {0, 1, 2, 2};
            }),
            "places has 2; allowed are 0 to 3, each once");
  EXPECT_EQ(refusal([](Fabric& f) { f.odd = {{.at = 4, .alpha = Rational(1)}}; }),
            "the network has an odd place 4; its places are 0 to 3");
  EXPECT_EQ(refusal([](Fabric& f) { f.odd = {{.from = 1, .to = 1, .alpha = Rational(1)}}; }),
            "odd has a link with from 1, to 1; allowed are at, or from and to that differ");
  EXPECT_EQ(refusal([](Fabric& f) { f.odd = {{.at = 1}}; }),
            "odd place 1 has neither alpha nor bandwidth; it needs one of them");
  const auto on_a_ring = [&](const OddLink& odd) {
    return refusal([&](Fabric& f) {
      f.wiring.kind = WiringKind::ring;
      f.odd = {odd};
    });
  };
  EXPECT_EQ(on_a_ring({.from = 0, .to = 2, .beta = Rational(1)}),
            "the network has an odd link from 0 to 2 and wiring is ring; allowed are neighbours on "
            "a grid");
  EXPECT_EQ(on_a_ring({.from = 0, .to = 1, .alpha = Rational(1)}),
            "the network has an odd link from 0 to 1 with alpha; a wire that messages share has a "
            "beta only");
}

}  // namespace

// Loads, compared with a table of all links filled by hand; and prices, compared with the formula
// of fabric.h.

namespace {

Routes routes_of(const Wiring& wiring, int ranks) {
  const auto routes = Routes::make(wiring, ranks);
  EXPECT_TRUE(routes.ok()) << routes.status().text();
  return *routes;
}

// Every rank sends to distance d: d messages on every link. At the far end of an even ring half of
// each message goes each way.
TEST(Congestion, CountsShiftsOnARing) {
  constexpr std::int64_t kWeight = 7;
  for (const int n : {2, 3, 4, 7, 8, 9}) {
    Congestion congestion(routes_of({.kind = WiringKind::ring}, n));
    for (int d = 1; d < n; ++d) {
      congestion.clear();
      for (Rank r = 0; r < n; ++r) congestion.add(r, (r + d) % n, kWeight);
      const int distance = std::min(d, n - d);
      const Int128 load = 2 * d == n ? Int128{kWeight} * d : Int128{kWeight} * 2 * distance;
      for (Rank r = 0; r < n; ++r) {
        EXPECT_TRUE(congestion.busiest(r, (r + d) % n, kWeight) == load) << n << " " << d;
      }
      EXPECT_TRUE(congestion.traffic().load == load);
      EXPECT_EQ(congestion.traffic().largest, kWeight);
      EXPECT_EQ(congestion.traffic().hops, distance);
      EXPECT_EQ(congestion.traffic().congestion(), 2 * d == n ? d / 2.0 : distance);
    }
  }
}

TEST(Congestion, OneWayHasNoShortcut) {
  Congestion congestion(routes_of({.kind = WiringKind::ring, .routing = Routing::one_way}, 5));
  for (Rank r = 0; r < 5; ++r) congestion.add(r, (r + 4) % 5, 1);
  EXPECT_TRUE(congestion.busiest(0, 4, 1) == 8);
  EXPECT_EQ(congestion.traffic().hops, 4);
}

// Messages of different sizes: a message's congestion comes from the busiest link on its route, not
// from the busiest link of the round.
TEST(Congestion, IsThatOfTheMessagesOwnLinks) {
  Congestion congestion(routes_of({.kind = WiringKind::ring}, 9));
  congestion.add(0, 3, 10);   // links 0-1 1-2 2-3
  congestion.add(2, 4, 5);    //           2-3 3-4
  congestion.add(3, 4, 1);    //               3-4
  congestion.add(6, 7, 4);    // alone
  congestion.add(1, 0, 3);    // the other direction
  congestion.add(5, 5, 100);  // to itself
  EXPECT_TRUE(congestion.busiest(0, 3, 10) == 2 * 15);
  EXPECT_TRUE(congestion.busiest(2, 4, 5) == 2 * 15);
  EXPECT_TRUE(congestion.busiest(3, 4, 1) == 2 * 6);
  EXPECT_TRUE(congestion.busiest(6, 7, 4) == 2 * 4);
  EXPECT_TRUE(congestion.busiest(1, 0, 3) == 2 * 3);
  EXPECT_EQ(congestion.traffic().congestion(), 1.5);
  EXPECT_EQ(congestion.traffic().largest, 10);
  congestion.clear();
  EXPECT_EQ(congestion.traffic().congestion(), 0);
  congestion.add(0, 3, 10);
  EXPECT_TRUE(congestion.busiest(0, 3, 10) == 2 * 10);
}

// 3 x 4, all ranks send to rank 0, which is (0, 0). Messages cross the first dimension first, so
// each column gathers in row 0, and all messages arrive over row 0.
TEST(Congestion, FollowsTheOrderOfDimensions) {
  Congestion congestion(routes_of({.kind = WiringKind::torus, .dims = {3, 4}}, 12));
  for (Rank r = 1; r < 12; ++r) congestion.add(r, 0, 2);
  // Column 0: (1, 0) and (2, 0) each arrive by a link that no other message takes.
  EXPECT_TRUE(congestion.busiest(4, 0, 2) == 4);
  EXPECT_TRUE(congestion.busiest(8, 0, 2) == 4);
  // From (0, 1) into (0, 0): column 1's three messages, and half of each of column 2's three.
  EXPECT_TRUE(congestion.busiest(1, 0, 2) == 2 * 2 * 3 + 2 * 3);
  EXPECT_TRUE(congestion.busiest(5, 0, 2) == 18);
  EXPECT_TRUE(congestion.busiest(2, 0, 2) == 18);
}

TEST(Congestion, OfTwoLevelsIsThatOfTheUplinks) {
  Congestion congestion(routes_of({.kind = WiringKind::two_level, .group = 4}, 12));
  congestion.add(0, 4, 10);
  congestion.add(1, 5, 10);
  congestion.add(2, 8, 10);  // group 0 sends 30; group 1 gets 20, group 2 gets 10
  congestion.add(4, 8, 1);   // group 2: 11
  congestion.add(0, 3, 99);  // inside
  EXPECT_TRUE(congestion.busiest(0, 4, 10) == 60);
  EXPECT_TRUE(congestion.busiest(2, 8, 10) == 60);
  EXPECT_TRUE(congestion.busiest(4, 8, 1) == 22);
  EXPECT_TRUE(congestion.busiest(0, 3, 99) == 198);
}

TEST(Congestion, HoldsTheLargestWeights) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Congestion congestion(routes_of({.kind = WiringKind::two_level, .group = 3}, 6));
  for (Rank r = 0; r < 3; ++r) congestion.add(r, r + 3, kMost);
  EXPECT_TRUE(congestion.busiest(0, 3, kMost) == Int128{kMost} * 6);
}

// alpha + hops * hop + beta * load, to the last tick, halves included.
TEST(RoundPrices, AreEquationOneOfTrivance) {
  Fabric fabric;
  fabric.link = {Rational(3, 2'000'000), Rational(1, 7'000'000'000)};
  fabric.alpha_hop = Rational(1, 3'000'000);
  fabric.wiring.kind = WiringKind::ring;
  fabric.ports = 2;
  constexpr int kRanks = 6;
  constexpr std::uint64_t kBytes = 1001;  // odd: a half of it is not a whole byte
  for (int d = 1; d < kRanks; ++d) {
    const Schedule shift{kRanks, 1, 1, [d](int, Send send) {
                           for (Rank r : ranks(kRanks)) send(r, r + d, block(0), copy);
                         }};
    const CollectiveSpec goal{Collective::all_reduce, kRanks, 1};
    for (const bool ideal : {false, true}) {
      const auto pricing = Pricing::make(fabric, goal, kBytes, ideal);
      ASSERT_TRUE(pricing.ok());
      auto prices = RoundPrices::make(fabric, *pricing, kRanks);
      ASSERT_TRUE(prices.ok());
      prices->begin_round(shift, 0);
      const auto price = prices->message(2, (2 + d) % kRanks, pricing->weight(IndexList(0)));
      ASSERT_TRUE(price);
      const int hops = std::min(d, kRanks - d);
      const Rational load = 2 * d == kRanks ? Rational(d, 2) : Rational(hops);
      const Rational latency = fabric.link.alpha + Rational(hops) * fabric.alpha_hop;
      EXPECT_TRUE(pricing->exact_seconds(*price) ==
                  latency + fabric.link.beta * Rational(kBytes) * load)
          << d;
      EXPECT_TRUE(pricing->exact_seconds(prices->latency(2, (2 + d) % kRanks)) == latency);
    }
  }
}

// Four leaves of two; every rank sends one message to each other leaf. On one port a rank pays for
// its leaf's link once for all messages; on three ports the messages are in flight together.
TEST(RoundPrices, ChargeAPortForALeafsLinkOnce) {
  constexpr int kRanks = 8, kGroup = 2, kOthers = 3;
  constexpr std::uint64_t kBytes = 1000;
  const Schedule crossing{kRanks, 1, 1, [](int, Send send) {
                            for (int i = 1; i <= kOthers; ++i) {
                              for (Rank r : ranks(kRanks)) {
                                send(r, (r + i * kGroup) % kRanks, block(0), copy);
                              }
                            }
                          }};
  const CollectiveSpec goal{Collective::all_reduce, kRanks, 1};
  Fabric fabric;
  fabric.link = fabric.between = {Rational(1, 1000), Rational(1, 7'000'000)};
  fabric.wiring = {.kind = WiringKind::two_level, .group = kGroup};
  fabric.group = kGroup;
  const auto price = [&](const Schedule& schedule, Rank from, Rank to) {
    const auto pricing = Pricing::make(fabric, goal, kBytes, false);
    EXPECT_TRUE(pricing.ok());
    auto prices = RoundPrices::make(fabric, *pricing, kRanks);
    EXPECT_TRUE(prices.ok());
    prices->begin_round(schedule, 0);
    const auto ticks = prices->message(from, to, pricing->weight(IndexList(0)));
    EXPECT_TRUE(ticks);
    EXPECT_TRUE(prices->traffic().load == pricing->weight(IndexList(0)) * 2 * kGroup * kOthers);
    return pricing->exact_seconds(*ticks);
  };
  const auto passage = [&](int messages) {
    return fabric.between.alpha + fabric.between.beta * Rational(kBytes) * Rational(messages);
  };
  for (const int ports : {1, 2, 3, 4}) {
    fabric.ports = ports;
    EXPECT_TRUE(price(crossing, 3, 0) == passage(kGroup * std::min(ports, kOthers))) << ports;
  }
  // Six ranks send to one, which receives one message at a time.
  const Schedule inward{kRanks, 1, 1, [](int, Send send) {
                          for (Rank r = kGroup; r < kRanks; ++r) send(r, 0, block(0), copy);
                        }};
  fabric.ports = 1;
  EXPECT_TRUE(price(inward, 3, 0) == passage(1));
  fabric.ports = 6;
  EXPECT_TRUE(price(inward, 3, 0) == passage(6));
}

// The messages of a rank wait at its port, so only the largest of them counts on the leaf's link.
TEST(Congestion, OfWhatWaitsAtAPortIsTheLargest) {
  Congestion congestion(routes_of({.kind = WiringKind::two_level, .group = 4}, 8), false, 1);
  congestion.add(0, 4, 10);
  congestion.add(0, 5, 30);
  congestion.add(1, 6, 5);
  congestion.add(2, 6, 7);
  congestion.settle();
  // Senders: 30 + 5 + 7; receivers: 10 + 30 + 7.
  EXPECT_TRUE(congestion.busiest(0, 4, 10) == 2 * 42);
  EXPECT_TRUE(congestion.traffic().load == 2 * 52);
  congestion.clear();
  congestion.add(0, 4, 10);
  congestion.settle();
  EXPECT_TRUE(congestion.busiest(0, 4, 10) == 20);
}

TEST(RoundPrices, WithoutSharedLinksAreOneHopAndNothingElse) {
  Fabric fabric;
  fabric.link = {Rational(1, 1000), Rational(1, 7)};
  fabric.alpha_hop = Rational(1, 11);
  const CollectiveSpec goal{Collective::all_reduce, 4, 1};
  const auto pricing = Pricing::make(fabric, goal, 10, false);
  ASSERT_TRUE(pricing.ok());
  const auto prices = RoundPrices::make(fabric, *pricing, 4);
  ASSERT_TRUE(prices.ok());
  EXPECT_FALSE(prices->shares_links());
  const auto price = prices->message(0, 3, 10);
  ASSERT_TRUE(price);
  EXPECT_TRUE(pricing->exact_seconds(*price) ==
              Rational(1, 1000) + Rational(1, 11) + Rational(10, 7));
}

TEST(RoundPrices, SayWhereTimesDoNotFit) {
  Fabric fabric;
  fabric.link = {0, Rational((Int128{1} << 62) - 1, (Int128{1} << 61) - 1)};
  fabric.wiring.kind = WiringKind::ring;
  const CollectiveSpec goal{Collective::all_reduce, 64, 1};
  const auto pricing = Pricing::make(fabric, goal, std::uint64_t{1} << 52, false);
  ASSERT_TRUE(pricing.ok()) << pricing.status().text();
  auto prices = RoundPrices::make(fabric, *pricing, 64);
  ASSERT_TRUE(prices.ok());
  const auto priced = [&](int copies) {
    prices->begin_round({64, 1, 1,
                         [copies](int, Send send) {
                           for (int i = 0; i < copies; ++i) send(0, 1, block(0), copy);
                         }},
                        0);
    return prices->message(0, 1, std::int64_t{1} << 52).has_value();
  };
  EXPECT_TRUE(priced(1));
  EXPECT_FALSE(priced(1 << 13));
}

}  // namespace

namespace {

CollectiveSpec all_reduce(int ranks, int blocks) { return {Collective::all_reduce, ranks, blocks}; }

Fabric fabric_with(Rational alpha, Rational beta) {
  Fabric fabric;
  fabric.link = {alpha, beta};
  return fabric;
}

TEST(Pricing, ChargesEveryMessageExactly) {
  const Rational alpha(1, 3'000'000), beta(1, 7'000'000'000);
  const Fabric fabric = fabric_with(alpha, beta);
  const auto pricing = Pricing::make(fabric, all_reduce(4, 4), 1003, false);
  ASSERT_TRUE(pricing.ok());
  // 1003 bytes in 4 blocks: 251 251 251 250.
  EXPECT_EQ(pricing->weight(IndexList(0)), 251);
  EXPECT_EQ(pricing->weight(IndexList(3)), 250);
  EXPECT_EQ(pricing->weight(blocks(0, 4).list), 1003);
  EXPECT_EQ(pricing->weight(blocks(1, 2, 2).list), 501);
  for (const std::int64_t bytes : {0, 1, 250, 1003}) {
    const Rational expected = alpha + beta * Rational(bytes);
    EXPECT_TRUE(pricing->exact_seconds(pricing->message(fabric, 0, 1, bytes)) == expected) << bytes;
  }
}

TEST(Pricing, GivesIdealBlocksTheirFractions) {
  const Fabric fabric = fabric_with(0, Rational(1, 1'000'000'000));
  const auto pricing = Pricing::make(fabric, all_reduce(3, 3), 1000, true);
  ASSERT_TRUE(pricing.ok());
  EXPECT_TRUE(Rational(pricing->weight(IndexList(1)), pricing->weight_per_byte()) ==
              Rational(1000, 3));
  const Ticks third = pricing->message(fabric, 0, 1, pricing->weight(IndexList(0)));
  EXPECT_TRUE(pricing->exact_seconds(third) == Rational(1, 3'000'000));
}

TEST(Pricing, CountsMForAllToAllPerRank) {
  CollectiveSpec goal{Collective::all_to_all, 3, 9};
  const auto pricing = Pricing::make(fabric_with(1, 1), goal, 10, false);
  ASSERT_TRUE(pricing.ok());
  // Each rank's send buffer is 10 bytes in 3 blocks: 4 3 3.
  EXPECT_EQ(pricing->weight(blocks(0, 3).list), 10);
  EXPECT_EQ(pricing->weight(blocks(3, 3).list), 10);
  EXPECT_EQ(pricing->weight(IndexList(3)), 4);
  EXPECT_EQ(pricing->weight(IndexList(5)), 3);
}

TEST(Pricing, DistinguishesNearAndFar) {
  Fabric fabric = fabric_with(Rational(1, 2), Rational(1, 3));
  fabric.group = 2;
  fabric.between = {Rational(1, 5), Rational(1, 7)};
  fabric.alpha_switch = Rational(1, 11);
  const auto pricing = Pricing::make(fabric, all_reduce(4, 1), 6, false);
  ASSERT_TRUE(pricing.ok());
  EXPECT_TRUE(pricing->exact_seconds(pricing->message(fabric, 0, 1, 6)) == Rational(5, 2));
  EXPECT_TRUE(pricing->exact_seconds(pricing->message(fabric, 1, 2, 6)) ==
              Rational(1, 5) + Rational(6, 7));
  EXPECT_TRUE(pricing->exact_seconds(pricing->through_switch(6)) == Rational(2, 11) + Rational(2));
  EXPECT_TRUE(pricing->through_switch(6) <= pricing->most());
  EXPECT_TRUE(pricing->message(fabric, 1, 2, 6) <= pricing->most());
}

// Half a message has a price on shared links. On private links alpha includes the hop.
TEST(Pricing, KnowsHalvesAndHops) {
  Fabric fabric = fabric_with(Rational(1, 2), Rational(1, 3));
  fabric.alpha_hop = Rational(1, 5);
  for (const WiringKind kind : {WiringKind::full, WiringKind::ring}) {
    fabric.wiring.kind = kind;
    const auto pricing = Pricing::make(fabric, all_reduce(4, 1), 6, false);
    ASSERT_TRUE(pricing.ok());
    const bool ring = kind == WiringKind::ring;
    EXPECT_TRUE(pricing->exact_seconds(pricing->rates().hop) == Rational(1, 5));
    EXPECT_TRUE(pricing->exact_seconds(pricing->message(fabric, 0, 1, 0)) ==
                (ring ? Rational(1, 2) : Rational(7, 10)));
    if (ring) {
      EXPECT_EQ(pricing->link(fabric, 0, 1).beta % 2, 0);
    }
  }
}

TEST(Pricing, RoundsOnce) {
  const Fabric fabric = fabric_with(Rational(1, 3), 0);
  const auto pricing = Pricing::make(fabric, all_reduce(2, 1), 8, false);
  ASSERT_TRUE(pricing.ok());
  EXPECT_EQ(pricing->seconds(pricing->message(fabric, 0, 1, 8) * 7), 7.0 / 3.0);
}

// Decimals of 17 digits, such as 1/(900 GB/s), fit, with room for hours.
TEST(Pricing, HoldsLongDecimals) {
  const Fabric fabric =
      fabric_with(Rational(12345678901234567, Int128{1'000'000'000'000} * 10'000'000'000),
                  Rational(11111111111111112, Int128{100'000'000'000'000} * 100'000'000'000'000));
  for (const bool ideal : {false, true}) {
    const auto pricing = Pricing::make(fabric, all_reduce(64, 64), 1'000'000'007, ideal);
    ASSERT_TRUE(pricing.ok()) << pricing.status().text();
    const std::int64_t weight = pricing->weight(blocks(0, 64).list);
    EXPECT_EQ(weight, 1'000'000'007 * pricing->weight_per_byte());
    EXPECT_TRUE(pricing->exact_seconds(pricing->message(fabric, 0, 1, weight)) ==
                fabric.link.alpha + fabric.link.beta * Rational(1'000'000'007));
  }
}

TEST(Pricing, RefusesWhatItCannotHold) {
  const auto text_of = [](const Fabric& fabric, int blocks, std::uint64_t bytes, bool ideal) {
    const auto pricing = Pricing::make(fabric, all_reduce(2, blocks), bytes, ideal);
    EXPECT_FALSE(pricing.ok());
    return pricing.status().text();
  };
  EXPECT_NE(text_of(fabric_with(1, 1), 1, (std::uint64_t{1} << 52) + 1, false)
                .find("allowed are 0 to 4503599627370496"),
            std::string::npos);
  const Int128 prime = (Int128{1} << 61) - 1, larger = (Int128{1} << 89) - 1;
  EXPECT_NE(text_of(fabric_with(Rational(1, prime), Rational(1, larger)), 1, 1 << 20, false)
                .find("128 bits"),
            std::string::npos);
  EXPECT_NE(text_of(fabric_with(1, 1), 1 << 14, (std::uint64_t{1} << 52) - 1, true).find("63 bits"),
            std::string::npos);
}

}  // namespace
}  // namespace rankine
