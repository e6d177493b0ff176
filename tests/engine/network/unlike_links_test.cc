// What is not the same everywhere or always: adding takes time, contention, odd links and places,
// and where ranks sit. Each against a time worked out by hand, or a network that says the same in
// another way.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"

namespace rankine {
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
  const Algorithm& line = *find_algorithm(collective, algorithm);
  Params params;
  params.ranks = ranks;
  const Schedule schedule = line.make(params);
  const auto result =
      simulate(schedule, goal_of(line, params, schedule), fabric, kM, {.sync = sync});
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? Rational(result->end, result->ticks_per_second) : Rational(-1);
}

std::string text(const Rational& time) { return time.to_string(); }

// T = (p-1) alpha + (p-1)/p m (beta + gamma) of a ring; ceil(log2 p) alpha and the same bytes of a
// circulant graph (Traff, section 2.1): what is sent is added up where it arrives.
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

// In every round of a ring the slowest link decides.
TEST(OddLinks, HoldUpARing) {
  Fabric fabric = plain();
  fabric.odd = {{.from = 2, .to = 3, .beta = kBeta * Rational(10)}};
  EXPECT_EQ(text(time_of(Collective::all_gather, "ring", 4, fabric)),
            text(Rational(3) * (kAlpha + Rational(kM / 4) * kBeta * Rational(10))));
  fabric.odd = {{.from = 3, .to = 2, .beta = kBeta * Rational(10)}};  // nobody goes that way
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

// On a ring the message from 0 to 2 of 5 crosses the odd wire from 1 to 2; the one from 0 to 4 does
// not.
TEST(OddLinks, AreWiresWhereMessagesShareLinks) {
  Fabric fabric = plain();
  fabric.wiring.kind = WiringKind::ring;
  fabric.ports = 1;
  fabric.odd = {{.from = 1, .to = 2, .beta = kBeta * Rational(3)}};
  const auto sent_to = [&](Rank to) {
    const Algorithm& line = *find_algorithm(Collective::send_recv, "direct");
    Params params;
    params.ranks = 5;
    params.peer = to;
    const Schedule schedule = line.make(params);
    const auto result = simulate(schedule, goal_of(line, params, schedule), fabric, kM);
    EXPECT_TRUE(result.ok()) << result.status().text();
    return text(Rational(result->end, result->ticks_per_second));
  };
  EXPECT_EQ(sent_to(2), text(kAlpha + Rational(kM) * kBeta * Rational(3)));
  EXPECT_EQ(sent_to(4), text(kAlpha + Rational(kM) * kBeta));
}

// Four ranks on a network of two groups of four: side by side, or two and two.
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
            "gamma is -1; it may not be negative");
  EXPECT_EQ(refusal([](Fabric& f) { f.link.eta_alpha = Rational(1, 2); }),
            "eta_alpha is 1/2; allowed are 1 and more");
  EXPECT_EQ(refusal([](Fabric& f) { f.between.eta_beta = Rational(0); }),
            "between.eta_beta is 0; allowed are numbers above 0 and up to 1");
  EXPECT_EQ(refusal([](Fabric& f) { f.size = 3; }), "size is 3; 4 ranks need as many places");
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
}  // namespace rankine
