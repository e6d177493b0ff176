// The figures' panels: who is there, what forms they take, where the fastest changes.
#include "engine/papers/figures.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rankine::reproduce {
namespace {

class Figures : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    profiles_ = new Profiles;
    panels_ = new std::vector<Panel>(panels(*profiles_));
  }
  static void TearDownTestSuite() {
    delete panels_;
    delete profiles_;
  }
  static const Panel& panel(std::string_view id) {
    for (const Panel& each : *panels_) {
      if (each.spec.id == id) return each;
    }
    throw std::logic_error("no panel " + std::string(id));
  }
  static Profiles* profiles_;
  static std::vector<Panel>* panels_;
};
Profiles* Figures::profiles_ = nullptr;
std::vector<Panel>* Figures::panels_ = nullptr;

TEST_F(Figures, HaveThePapersAlgorithms) {
  const auto names = [](const Panel& panel) {
    std::string text;
    for (const Curve& curve : panel.curves) text += std::string(curve.contender->name) + ",";
    return text;
  };
  EXPECT_EQ(names(panel("7b")), "Bucket,Recursive doubling,Swing,Bruck,Trivance,");
  EXPECT_EQ(names(panel("9")), "Bucket,Bruck,Trivance,");
  EXPECT_EQ(figure_sizes().front(), 32u);
  EXPECT_EQ(figure_sizes().back(), 128u << 20);
}

TEST_F(Figures, TimesAreWhatTheModelSays) {
  // Ring of 8, worked out by hand: Trivance (L) sends to 1 and 1, then to 2 and 3 links away, with
  // 1 and 3 vectors on the busiest link.
  const Panel& ring = panel("6a");
  const double m = 4096, beta = 1 / 100e9;
  EXPECT_NEAR(ring.time(ring.trivance(), Form::latency, m),
              2 * 1.5e-6 + (1 + 3) * 200e-9 + (1 + 3) * m * beta, 1e-15);
  // Bucket: 14 rounds of one link and half an eighth of the vector each way.
  EXPECT_NEAR(ring.time(*ring.find("Bucket"), m), 14 * (1.5e-6 + 200e-9 + m / 16 * beta), 1e-15);
  EXPECT_EQ(ring.gain(ring.trivance(), m), 0);
}

TEST_F(Figures, TheBetterFormIsTaken) {
  for (const Panel& each : *panels_) {
    for (const Curve& curve : each.curves) {
      if (curve.latency == nullptr) continue;
      for (const std::uint64_t size : figure_sizes()) {
        const auto m = static_cast<double>(size);
        EXPECT_LE(each.time(curve, m), each.time(curve, Form::latency, m));
        EXPECT_LE(each.time(curve, m), each.time(curve, Form::bandwidth, m));
      }
      const auto change = each.change_of_form(curve);
      ASSERT_TRUE(change.has_value()) << each.spec.id << " " << curve.contender->name;
      EXPECT_EQ(each.form(curve, *change / 1.001), Form::latency);
      EXPECT_EQ(each.form(curve, *change * 1.001), Form::bandwidth);
    }
  }
}

TEST_F(Figures, TheFastestChangesAtTheCrossovers) {
  for (const Panel& each : *panels_) {
    const Curve* leader = &each.fastest(32);
    for (const Crossover& crossover : crossovers(each)) {
      EXPECT_EQ(crossover.before, leader);
      const auto lead = [&](double m) {
        return each.time(*crossover.before, m) < each.time(*crossover.after, m);
      };
      EXPECT_TRUE(lead(crossover.bytes / 1.0001)) << each.spec.id;
      EXPECT_FALSE(lead(crossover.bytes * 1.0001)) << each.spec.id;
      leader = crossover.after;
    }
    EXPECT_EQ(&each.fastest(128 << 20), leader) << each.spec.id;
    for (const std::uint64_t size : figure_sizes()) {
      const auto m = static_cast<double>(size);
      for (const Curve& curve : each.curves) {
        EXPECT_LE(each.time(each.fastest(m), m), each.time(curve, m)) << each.spec.id;
      }
    }
  }
}

TEST_F(Figures, BandwidthMovesTheCurves) {
  // Under Eq. (1) four times the bandwidth is a quarter of the size, but for alpha.
  const Panel &slow = panel("8-200"), &fast = panel("8-800");
  for (const double m : {1024.0, 65536.0, 4194304.0}) {
    EXPECT_NEAR(slow.time(slow.trivance(), m), fast.time(fast.trivance(), 4 * m), 1e-15);
  }
  EXPECT_EQ(fast.time(fast.trivance(), 512), panel("7b").time(panel("7b").trivance(), 512));
}

}  // namespace
}  // namespace rankine::reproduce
