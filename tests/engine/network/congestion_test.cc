// Loads against a table of all links that is filled by hand, and prices against fabric.h's formula.
#include "engine/network/prices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/network/prices.h"

namespace rankine {
namespace {

Routes routes_of(const Wiring& wiring, int ranks) {
  const auto routes = Routes::make(wiring, ranks);
  EXPECT_TRUE(routes.ok()) << routes.status().text();
  return *routes;
}

// Everybody to distance d: d messages on every link; at the far end of an even ring half of them
// each way.
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

// Messages of unlike sizes: each has the busiest of its own links, not of the round.
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

// 3 x 4, everything to one rank: 0 is (0, 0). The first dimension is crossed first, so columns fill
// up along row 0's neighbours and all come in over row 0.
TEST(Congestion, FollowsTheOrderOfDimensions) {
  Congestion congestion(routes_of({.kind = WiringKind::torus, .dims = {3, 4}}, 12));
  for (Rank r = 1; r < 12; ++r) congestion.add(r, 0, 2);
  // Column 0: (1, 0) and (2, 0) arrive by a link each, which nobody else takes.
  EXPECT_TRUE(congestion.busiest(4, 0, 2) == 4);
  EXPECT_TRUE(congestion.busiest(8, 0, 2) == 4);
  // Into (0, 0) from (0, 1): column 1's three messages whole, and half of column 2's three.
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
  constexpr std::uint64_t kBytes = 1001;  // odd: a half of it is no whole byte
  for (int d = 1; d < kRanks; ++d) {
    const Schedule shift{kRanks, 1, 1, [d](int, Send send) {
                           for (Rank r : ranks(kRanks)) send(r, r + d, block(0), copy);
                         }};
    const Goal goal{Collective::all_reduce, kRanks, 1};
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

// Four leaves of two, and everybody sends one message to each other leaf. On one port a rank pays
// for its leaf's link once, all messages together; on three ports they are on their way at once.
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
  const Goal goal{Collective::all_reduce, kRanks, 1};
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

// Of messages of several sizes a rank's largest count.
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
  const Goal goal{Collective::all_reduce, 4, 1};
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
  const Goal goal{Collective::all_reduce, 64, 1};
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
}  // namespace rankine
