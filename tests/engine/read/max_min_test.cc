// Max-min shares: cases worked out by hand, and the property that defines them on random traffic.
#include "engine/read/flow.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace rankine {
namespace {

using Links = std::vector<int>;

std::vector<int> sorted(std::span<const int> flows) {
  std::vector<int> out(flows.begin(), flows.end());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(MaxMin, OneLinkIsSharedEqually) {
  MaxMin sharing(1);
  const int a = sharing.start(1, Links{0});
  EXPECT_EQ(sorted(sharing.settle()), (std::vector<int>{a}));
  EXPECT_EQ(sharing.rate(a), 1);
  const int b = sharing.start(1, Links{0}), c = sharing.start(1, Links{0});
  EXPECT_EQ(sorted(sharing.settle()), (std::vector<int>{a, b, c}));
  for (const int f : {a, b, c}) EXPECT_DOUBLE_EQ(sharing.rate(f), 1.0 / 3);
  sharing.stop(b);
  EXPECT_EQ(sorted(sharing.settle()), (std::vector<int>{a, c}));
  EXPECT_DOUBLE_EQ(sharing.rate(a), 0.5);
}

TEST(MaxMin, WeightsAreShares) {
  MaxMin sharing(1);
  const int half = sharing.start(1, Links{0}), whole = sharing.start(2, Links{0});
  sharing.settle();
  EXPECT_DOUBLE_EQ(sharing.rate(half), 1.0 / 3);
  EXPECT_DOUBLE_EQ(sharing.rate(whole), 2.0 / 3);
}

// One flow along a line of links, and one on each: everybody gets a half.
TEST(MaxMin, ParkingLot) {
  MaxMin sharing(3);
  const int along = sharing.start(1, Links{0, 1, 2});
  Links each;
  for (int l = 0; l < 3; ++l) each.push_back(sharing.start(1, Links{l}));
  sharing.settle();
  EXPECT_DOUBLE_EQ(sharing.rate(along), 0.5);
  for (const int f : each) EXPECT_DOUBLE_EQ(sharing.rate(f), 0.5);
}

// Link 0 has four flows, link 1 two, one of which is held back by link 0: the other takes what is
// left, 3/4, and is held back by link 2 no more than that.
TEST(MaxMin, WhatOneLinkHoldsBackAnotherGives) {
  MaxMin sharing(3);
  const int both = sharing.start(1, Links{0, 1});
  Links first;
  for (int i = 0; i < 3; ++i) first.push_back(sharing.start(1, Links{0}));
  const int second = sharing.start(1, Links{1, 2});
  const int third = sharing.start(1, Links{2});
  sharing.settle();
  EXPECT_DOUBLE_EQ(sharing.rate(both), 0.25);
  for (const int f : first) EXPECT_DOUBLE_EQ(sharing.rate(f), 0.25);
  EXPECT_DOUBLE_EQ(sharing.rate(second), 0.5);
  EXPECT_DOUBLE_EQ(sharing.rate(third), 0.5);
  sharing.stop(third);
  EXPECT_EQ(sorted(sharing.settle()), (std::vector<int>{second}));
  EXPECT_DOUBLE_EQ(sharing.rate(second), 0.75);
}

// Levels of several heights: a third on the busiest link, what is left on its neighbour, all of a
// link for who is alone.
TEST(MaxMin, FillsLinkByLink) {
  MaxMin sharing(4);
  const int f1 = sharing.start(1, Links{0, 1}), f2 = sharing.start(1, Links{1});
  const int f3 = sharing.start(1, Links{1, 2}), f4 = sharing.start(1, Links{2});
  const int f5 = sharing.start(1, Links{3});
  sharing.settle();
  for (const int f : {f1, f2, f3}) EXPECT_DOUBLE_EQ(sharing.rate(f), 1.0 / 3);
  EXPECT_DOUBLE_EQ(sharing.rate(f4), 2.0 / 3);
  EXPECT_DOUBLE_EQ(sharing.rate(f5), 1);
}

TEST(MaxMin, LooksOnlyAtWhatAChangeAffects) {
  MaxMin sharing(4);
  const int a = sharing.start(1, Links{0, 1}), b = sharing.start(1, Links{2, 3});
  sharing.settle();
  EXPECT_TRUE(sharing.settle().empty());
  const int c = sharing.start(1, Links{3});
  EXPECT_EQ(sorted(sharing.settle()), (std::vector<int>{b, c}));
  EXPECT_EQ(sharing.rate(a), 1);
}

struct Crossing {
  int weight = 1;
  Links links{};
};

// Every link passes at most 1; every flow has a full link on which nobody has a higher level.
void expect_fair(const MaxMin& sharing, const std::map<int, Crossing>& flows, int links) {
  constexpr double kRounding = 1e-9;
  std::vector<double> load(static_cast<std::size_t>(links), 0), highest(load);
  const auto at = [](auto& values, int l) -> auto& { return values[static_cast<std::size_t>(l)]; };
  for (const auto& [f, crossing] : flows) {
    RC_ASSERT(sharing.rate(f) > 0);
    for (const int l : crossing.links) {
      at(load, l) += sharing.rate(f);
      at(highest, l) = std::max(at(highest, l), sharing.rate(f) / crossing.weight);
    }
  }
  for (const double passed : load) RC_ASSERT(passed <= 1 + kRounding);
  for (const auto& [f, crossing] : flows) {
    const double level = sharing.rate(f) / crossing.weight;
    const bool has_bottleneck =
        std::any_of(crossing.links.begin(), crossing.links.end(), [&](int l) {
          return at(load, l) >= 1 - kRounding && at(highest, l) <= level * (1 + kRounding);
        });
    RC_ASSERT(has_bottleneck);
  }
}

TEST(MaxMin, EveryFlowHasABottleneckWhateverComesAndGoes) {
  const bool holds = rc::check([] {
    const int links = *rc::gen::inRange(1, 12);
    MaxMin sharing(links);
    std::map<int, Crossing> flows;
    std::map<int, double> rates;
    const int turns = *rc::gen::inRange(1, 30);
    for (int turn = 0; turn < turns; ++turn) {
      for (int n = *rc::gen::inRange(0, 6); n > 0; --n) {
        const int drawn = *rc::gen::inRange(1, 1 << links);
        Crossing crossing{*rc::gen::inRange(1, 3), {}};
        for (int l = 0; l < links; ++l) {
          if ((drawn >> l & 1) != 0) crossing.links.push_back(l);
        }
        flows[sharing.start(crossing.weight, crossing.links)] = crossing;
      }
      for (int n = *rc::gen::inRange(0, 5); n > 0 && !flows.empty(); --n) {
        const auto chosen =
            std::next(flows.begin(), *rc::gen::inRange(0, static_cast<int>(flows.size())));
        sharing.stop(chosen->first);
        rates.erase(chosen->first);
        flows.erase(chosen);
      }
      const auto settled = sharing.settle();
      const std::set<int> changed(settled.begin(), settled.end());
      RC_ASSERT(changed.size() == settled.size());
      // Whose rate has changed is told, and nobody else's changes.
      for (const auto& [f, crossing] : flows) {
        const bool same = rates.contains(f) && rates[f] == sharing.rate(f);
        RC_ASSERT(changed.contains(f) || same);
        rates[f] = sharing.rate(f);
      }
      expect_fair(sharing, flows, links);
    }
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace rankine
