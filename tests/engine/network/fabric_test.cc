#include "engine/network/fabric.h"
#include "algorithms/catalogue.h"
#include "algorithms/schedule/collective.h"
#include "engine/network/prices.h"
#include "engine/network/simulate.h"
#include "tests/testing.h"

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

TEST(WiredFor, FillsInWhatIsOpen) {
  using Dims = std::vector<int>;
  const struct {
    const char* preset;
    int ranks;
    Dims given, dims;
    int ports;
  } cases[] = {
      {"torus", 16, {}, {4, 4}, 4},
      {"torus", 13, {}, {13}, 2},
      {"torus", 27, {3, 3, 3}, {3, 3, 3}, 6},
      {"torus", 1, {}, {1}, 2},
      {"ring", 16, {4, 4}, {}, 2},
      {"mesh", 16, {}, {4, 4}, 4},
      {"mesh", 8, {2, 4}, {2, 4}, 3},  // one link in the dimension of two ranks
      {"hypercube", 16, {}, {}, 4},
      {"hypercube", 1, {}, {}, 1},
      {"fat_tree", 20, {}, {}, 1},
      {"plain", 7, {2, 2}, {}, 1},  // full wiring ignores dims
  };
  for (const auto& c : cases) {
    const auto fabric = wired_for(find_regime(c.preset)->fabric, c.ranks, c.given).value();
    EXPECT_EQ(fabric.wiring.dims, c.dims) << c.preset << c.ranks;
    EXPECT_EQ(fabric.ports, c.ports) << c.preset << c.ranks;
    EXPECT_EQ(*wired_for(fabric, c.ranks), fabric) << "filling in twice changes nothing";
  }
  EXPECT_EQ(wired_for(find_regime("two_level_shared")->fabric, 20)->wiring.group, 8);
  EXPECT_EQ(wired_for(find_regime("fat_tree")->fabric, 20)->wiring.group, 8);
  Fabric said = find_regime("torus")->fabric;  // members stay as given
  said.ports = 1;
  said.wiring.dims = {2, 8};
  EXPECT_EQ(wired_for(said, 16, {4, 4})->wiring.dims, (Dims{2, 8}));
  EXPECT_EQ(wired_for(said, 16, {4, 4})->ports, 1);
}

TEST(Fabric, IsRefusedWithMemberValueAndWhatIsAllowed) {
  using enum WiringKind;
  const Rational second(1), less(-1);
  struct Spoiled {
    const char* text;
    std::function<void(Fabric&)> spoil;
  };
  const auto odd = [](OddLink link, WiringKind kind = full) {
    return [=](Fabric& f) {
      f.wiring.kind = kind;
      f.odd = {link};
    };
  };
  const auto wiring = [](Wiring given, int group = 0) {
    return [=](Fabric& f) {
      f.wiring = given;
      f.group = group;
    };
  };
  // clang-format off
  const Spoiled cases[] = {
      {"ports is 0", [](Fabric& f) { f.ports = 0; }},
      {"group is -2", [](Fabric& f) { f.group = -2; }},
      {"between.beta is -1/2", [](Fabric& f) { f.between.beta = Rational(-1, 2); }},
      {"alpha is -1", [=](Fabric& f) { f.link.alpha = less; }},
      {"hop is -1", [=](Fabric& f) { f.alpha_hop = less; }},
      {"gamma is -1", [=](Fabric& f) { f.gamma = less; }},
      {"eta_alpha is 1/2", [](Fabric& f) { f.link.eta_alpha = Rational(1, 2); }},
      {"between.eta_beta is 0", [](Fabric& f) { f.between.eta_beta = Rational(0); }},
      {"size is 3", [](Fabric& f) { f.size = 3; }},
      {"places has 2 entries", [](Fabric& f) { f.places = {0, 1}; }},
      {"places has 2", [](Fabric& f) { f.places = {0, 1, 2, 2}; }},
      {"the network has an odd place 4", odd({.at = 4, .alpha = second})},
      {"odd has a link with from 1, to 1", odd({.from = 1, .to = 1, .alpha = second})},
      {"odd place 1 has neither alpha nor bandwidth", odd({.at = 1})},
      {"the network has an odd link from 0 to 2 and wiring is ring",
       odd({.from = 0, .to = 2, .beta = second}, ring)},
      {"the network has an odd link from 0 to 1 with alpha",
       odd({.from = 0, .to = 1, .alpha = second}, ring)},
      {"dims is 2x2 and wiring is full", wiring({.dims = {2, 2}})},
      {"dims is 4 and wiring is ring", wiring({.kind = ring, .dims = {4}})},
      {"dims is 3x5", wiring({.kind = torus, .dims = {3, 5}})},
      {"routing is one_way and wiring is full", wiring({.routing = Routing::one_way})},
      {"routing is one_way and wiring is mesh", wiring({.kind = mesh, .routing = Routing::one_way})},
      {"group is 4 and wiring is torus", wiring({.kind = torus}, 4)},
      {"group is 0", wiring({.kind = two_level})},
      {"spines is 0", wiring({.kind = fat_tree}, 4)},
      {"spines is 3 and wiring is mesh", wiring({.kind = mesh, .spines = 3})},
      {"the wiring's group is 3", wiring({.kind = two_level, .group = 3}, 4)},
      {"the network has ALU and wiring is ring",
       [](Fabric& f) { f.wiring.kind = ring; f.alu = true; }},
      {"the network has permute and wiring is ring",
       [](Fabric& f) { f.wiring.kind = ring; f.permute = true; }},
      {"", [](Fabric& f) { f.wiring.kind = ring; f.ports = 0; }},
  };
  // clang-format on
  for (const Spoiled& c : cases) {
    Fabric fabric = plain_regime().fabric;
    c.spoil(fabric);
    const Status refused = wired_for(fabric, 4).status();
    EXPECT_EQ(refused.ok(), *c.text == 0) << refused.text();
    EXPECT_TRUE(refused.text().starts_with(c.text)) << refused.text();
  }
  EXPECT_TRUE(
      wired_for(find_regime("hypercube")->fabric, 12).status().text().starts_with("ranks is 12"));
}

// Networks that differ by place or time: gamma, contention, odd links, and the places of ranks.
// Each result is compared with a time worked out by hand, or with an equivalent network.

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
  Params params{.ranks = ranks};
  const Schedule schedule = entry.make(params);
  const auto result =
      simulate(schedule, goal_of(entry, params, schedule), fabric, kM, {.sync = sync});
  EXPECT_TRUE(result.ok()) << result.status().text();
  return result.ok() ? Rational(result->end, result->ticks_per_second) : Rational(-1);
}

std::string text(const Rational& time) { return time.to_string(); }

TEST(Contention, IsALongerAlphaAndLessOfTheBandwidth) {
  Fabric contended = plain(), slower = plain();
  contended.link.eta_alpha = Rational(5, 4);
  contended.link.eta_beta = Rational(3, 4);
  slower.link = {kAlpha * Rational(5, 4), kBeta * Rational(4, 3)};
  const Rational both = time_of(Collective::all_reduce, "ring", 5, contended);
  EXPECT_EQ(text(both), text(time_of(Collective::all_reduce, "ring", 5, slower)));
  EXPECT_NE(text(both), text(time_of(Collective::all_reduce, "ring", 5, plain())));
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

// Loads, compared with a table of all links filled by hand; and prices, compared with the formula
// of fabric.h.

Routes routes_of(const Wiring& wiring, int ranks) {
  const auto routes = Routes::make(wiring, ranks);
  EXPECT_TRUE(routes.ok()) << routes.status().text();
  return *routes;
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

TEST(Congestion, HoldsTheLargestWeights) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Congestion congestion(routes_of({.kind = WiringKind::two_level, .group = 3}, 6));
  for (Rank r = 0; r < 3; ++r) congestion.add(r, r + 3, kMost);
  EXPECT_TRUE(congestion.busiest(0, 3, kMost) == Int128{kMost} * 6);
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

TEST(RoundPrices, SayWhereTimesDoNotFit) {
  Fabric fabric;
  fabric.link = {0, Rational((Int128{1} << 62) - 1, (Int128{1} << 61) - 1)};
  fabric.wiring.kind = WiringKind::ring;
  const CollectiveSpec goal{Collective::all_reduce, 64, 1};
  const auto pricing = Pricing::make(fabric, goal, std::uint64_t{1} << 52, false).value();
  auto prices = RoundPrices::make(fabric, pricing, 64).value();
  const auto priced = [&](int copies) {
    prices.begin_round({64, 1, 1,
                        [copies](int, Send send) {
                          for (int i = 0; i < copies; ++i) send(0, 1, block(0), copy);
                        }},
                       0);
    return prices.message(0, 1, std::int64_t{1} << 52).has_value();
  };
  EXPECT_TRUE(priced(1));
  EXPECT_FALSE(priced(1 << 13));
}

CollectiveSpec all_reduce(int ranks, int blocks) { return {Collective::all_reduce, ranks, blocks}; }

Fabric fabric_with(Rational alpha, Rational beta) {
  Fabric fabric;
  fabric.link = {alpha, beta};
  return fabric;
}

TEST(Pricing, CountsMForAllToAllPerRank) {
  CollectiveSpec goal{Collective::all_to_all, 3, 9};
  const auto pricing = Pricing::make(fabric_with(1, 1), goal, 10, false).value();
  // Each rank's send buffer is 10 bytes in 3 blocks: 4 3 3.
  EXPECT_EQ(pricing.weight(blocks(0, 3).list), 10);
  EXPECT_EQ(pricing.weight(blocks(3, 3).list), 10);
  EXPECT_EQ(pricing.weight(IndexList(3)), 4);
  EXPECT_EQ(pricing.weight(IndexList(5)), 3);
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
