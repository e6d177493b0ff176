#include "engine/tools/regret.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace rankine::tools {
namespace {

using Rounds = std::vector<Context>;

TEST(Regret, IsTheTimeOverThatOfTheBest) {
  const Context times = {3, 2, kNotTimed, 4};
  EXPECT_DOUBLE_EQ(regret_in(times, 0), 1.5);
  EXPECT_DOUBLE_EQ(regret_in(times, 1), 1);
  EXPECT_EQ(regret_in(times, 2), kNotTimed);
  EXPECT_DOUBLE_EQ(regret_in(times, 3), 2);
}

TEST(Regret, LastsWhereMoreThanAQuarterOfTheRoundsSeesIt) {
  EXPECT_EQ(lasting_regret({}, 0), 1);
  EXPECT_EQ(lasting_regret({{9, 1}}, 0), 9);
  EXPECT_EQ(lasting_regret({{9, 1}, {2, 1}}, 0), 9);
  EXPECT_EQ(lasting_regret({{9, 1}, {2, 1}, {3, 1}}, 0), 3);
  EXPECT_EQ(lasting_regret({{9, 1}, {2, 1}, {3, 1}, {1, 1}}, 0), 3);
  EXPECT_EQ(lasting_regret({{9, 1}, {8, 1}, {3, 1}, {1, 1}, {2, 1}}, 0), 8);
  const std::vector<Context> eight = {{9, 1}, {8, 1}, {7, 1}, {1, 1},
                                      {2, 1}, {1, 1}, {1, 1}, {1, 1}};
  EXPECT_EQ(lasting_regret(eight, 0), 7);
}

// Contender 1 wins warm and 2 wins fresh, each by far; 3 is second in both, and is taken.
TEST(RobustChoice, MinimisesTheWorstOverProtocols) {
  const std::array<Rounds, 2> protocols = {Rounds(3, {4, 1.0, 5, 1.5}),
                                           Rounds(3, {4, 5, 1.0, 1.4})};
  const Choice choice = robust_choice(protocols, 4, 0);
  EXPECT_EQ(choice.contender, 3u);
  EXPECT_DOUBLE_EQ(choice.regret, 1.5);
}

// The same over rounds: cores that are near in some rounds and far in others.
TEST(RobustChoice, MinimisesTheWorstOverRounds) {
  const Context near = {4, 1.0, 5, 1.5}, far = {4, 5, 1.0, 1.4};
  const std::array<Rounds, 1> protocols = {Rounds{near, far, near, far, far}};
  EXPECT_EQ(robust_choice(protocols, 4, 0).contender, 3u);
}

TEST(RobustChoice, OneInterruptionDecidesNothing) {
  const std::array<Rounds, 1> protocols = {Rounds{{2, 1}, {2, 1}, {2, 50}, {2, 1}}};
  EXPECT_EQ(robust_choice(protocols, 2, 0).contender, 1u);
  // Nor is the default given up for one.
  const std::array<Rounds, 1> others = {Rounds{{1, 2}, {1, 2}, {50, 2}, {1, 2}}};
  EXPECT_EQ(robust_choice(others, 2, 0).contender, 0u);
}

TEST(RobustChoice, TheDefaultStaysWithinTheMargin) {
  const std::array<Rounds, 1> little = {Rounds(4, {1.09, 1})};
  EXPECT_EQ(robust_choice(little, 2, 0).contender, 0u);
  EXPECT_DOUBLE_EQ(robust_choice(little, 2, 0).regret, 1.09);
  EXPECT_EQ(robust_choice(little, 2, 0, 1.05).contender, 1u);
  const std::array<Rounds, 1> enough = {Rounds(4, {1.11, 1})};
  EXPECT_EQ(robust_choice(enough, 2, 0).contender, 1u);
}

// Twice in five rounds something hit the default; in the others nobody was better.
TEST(RobustChoice, NoiseOnTheDefaultIsNoReasonToLeaveIt) {
  const std::array<Rounds, 1> protocols = {Rounds{{1.3, 1}, {1, 1}, {1.3, 1}, {1, 1}, {1, 1}}};
  EXPECT_EQ(robust_choice(protocols, 2, 0).contender, 0u);
  EXPECT_DOUBLE_EQ(robust_choice(protocols, 2, 0).regret, 1.3);
}

TEST(RobustChoice, TooFewRoundsChangeNothing) {
  const std::array<Rounds, 2> protocols = {Rounds(4, {2, 1}), Rounds(kFewestRounds - 1, {2, 1})};
  EXPECT_EQ(robust_choice(protocols, 2, 0).contender, 0u);
}

TEST(RobustChoice, WhoDidNotRunIsNotTaken) {
  const std::array<Rounds, 1> protocols = {Rounds(3, {2, kNotTimed, 1.5})};
  EXPECT_EQ(robust_choice(protocols, 3, 0).contender, 2u);
}

TEST(MedianOver, LeavesAsideWhatDidNotRun) {
  const Context median =
      median_over({{1, kNotTimed, 5}, {3, kNotTimed, kNotTimed}, {2, kNotTimed, 7}});
  EXPECT_EQ(median, (Context{2, kNotTimed, 6}));
  EXPECT_TRUE(median_over({}).empty());
}

TEST(Summary, HasGeometricMeanAndMaximum) {
  const RegretSummary s = summarise_regrets({1, 4, 2, 4});
  EXPECT_EQ(s.samples, 4u);
  EXPECT_NEAR(s.geometric_mean, std::pow(32, 0.25), 1e-12);
  EXPECT_EQ(s.max, 4);
  EXPECT_EQ(s.worst, 1u);
  EXPECT_EQ(summarise_regrets({}).geometric_mean, 1);
}

}  // namespace
}  // namespace rankine::tools
