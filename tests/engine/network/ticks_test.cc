#include "engine/network/prices.h"

#include <gtest/gtest.h>

#include <string>

namespace rankine {
namespace {

Goal all_reduce(int ranks, int blocks) { return {Collective::all_reduce, ranks, blocks}; }

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
  Goal goal{Collective::all_to_all, 3, 9};
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

// Half a message has a price where links are shared; the hop of a link of one's own is in alpha.
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

// Doubles of 17 digits, such as 1/(900 GB/s), fit with room for hours.
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
