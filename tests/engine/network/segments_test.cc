#include "engine/network/predict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/network/simulate.h"

namespace rankine {
namespace {

using enum Collective;

Fabric fabric_with(Rational alpha, Rational beta) {
  Fabric fabric;
  fabric.ports = 16;
  fabric.link = {alpha, beta};
  return fabric;
}

// T(P), term by term.
Rational pipelined_time(int l, int p, Rational alpha, Rational m_beta) {
  return Rational(l + p - 1) * (alpha + m_beta / Rational(p));
}

TEST(PipelineOptimum, NoOtherNumberIsBetter) {
  const Rational alpha(1, 1'000'000);
  for (const int l : {1, 2, 3, 7, 15, 62}) {
    for (const std::int64_t m : {0, 1, 1000, 65'536, 1'000'003, 4 << 20}) {
      const Rational m_beta(m, 100'000'000'000);
      constexpr int kMost = 400;
      const int best = pipeline_optimum(Rational(l - 1) * m_beta, alpha, kMost);
      for (int p = 1; p <= kMost; ++p) {
        EXPECT_FALSE(pipelined_time(l, p, alpha, m_beta) < pipelined_time(l, best, alpha, m_beta))
            << "L = " << l << ", M = " << m << ": " << p << " beats " << best;
      }
      const double continuous = std::sqrt((l - 1) * m_beta.to_double() / alpha.to_double());
      EXPECT_LE(std::fabs(best - std::clamp(continuous, 1.0, 400.0)), 1.0) << "L = " << l;
    }
  }
}

TEST(PipelineOptimum, DecidesTiesExactly) {
  // T(2) = T(3) where filling = 6 alpha: the smaller.
  EXPECT_EQ(pipeline_optimum(6, 1, 100), 2);
  EXPECT_EQ(pipeline_optimum(Rational(6'000'000'001, 1'000'000'000), 1, 100), 3);
  EXPECT_EQ(pipeline_optimum(0, 1, 100), 1);
  EXPECT_EQ(pipeline_optimum(0, 0, 100), 1);
  EXPECT_EQ(pipeline_optimum(1, 0, 100), 100);  // without alpha, as many as there may be
  EXPECT_EQ(pipeline_optimum(1'000'000, 1, 7), 7);
}

// What it says is the simulator's optimum too, where ports do not run out.
TEST(PipelineOptimum, AgreeWithTheSimulator) {
  const Fabric fabric = fabric_with(Rational(1, 1'000'000), Rational(1, 100'000'000'000));
  constexpr std::uint64_t kBytes = 3'000'001;
  const struct {
    Collective collective;
    const char* name;
  } kLines[] = {
      {broadcast, "chain"},        {Collective::reduce, "chain"}, {broadcast, "binary_tree"},
      {broadcast, "binomial_far"}, {broadcast, "double_tree"},    {broadcast, "two_tree"},
      {all_reduce, "chain"},       {all_reduce, "binary_tree"},   {all_reduce, "double_tree"},
      {all_reduce, "two_tree"},    {all_reduce, "hierarchical"},  {all_reduce, "ring_tree"}};
  for (const auto& [collective, name] : kLines) {
    const Algorithm& line = *find_algorithm(collective, name);
    Params params = line.only_taken({.ranks = 12, .group = 3});
    const auto best = pipeline_optimum(line, params, fabric, kBytes);
    ASSERT_TRUE(best.ok()) << name << ": " << best.status().text();
    EXPECT_GT(*best, 1) << name;
    const auto time = [&](int segments) {
      params.segments = segments;
      const Schedule schedule = line.make(params);
      const auto result = simulate(schedule, goal_of(line, params, schedule), fabric, kBytes,
                                   {.sync = Sync::rounds, .ideal_blocks = true});
      EXPECT_TRUE(result.ok());
      return Rational(result->end, result->ticks_per_second);
    };
    EXPECT_FALSE(time(*best + 1) < time(*best)) << name << ", P = " << *best;
    EXPECT_FALSE(time(*best - 1) < time(*best)) << name << ", P = " << *best;
  }
}

TEST(PipelineOptimum, AreOneWhereThereIsNothingToFill) {
  const Fabric fabric = fabric_with(Rational(1, 1'000'000), Rational(1, 100'000'000'000));
  const auto segments_of = [&](const char* name, int n, std::uint64_t bytes) {
    Params params;
    params.ranks = n;
    const auto best = pipeline_optimum(*find_algorithm(broadcast, name), params, fabric, bytes);
    EXPECT_TRUE(best.ok());
    return best.ok() ? *best : 0;
  };
  EXPECT_EQ(segments_of("linear", 8, 1 << 30), 1);  // takes no segments
  EXPECT_EQ(segments_of("chain", 1, 1 << 30), 1);
  EXPECT_EQ(segments_of("chain", 2, 1 << 30), 1);  // a single hop
  EXPECT_EQ(segments_of("chain", 8, 0), 1);
}

TEST(PipelineOptimum, StayWithinBytesAndCatalogue) {
  Fabric fabric = fabric_with(0, Rational(1, 1'000'000'000));
  Params params;
  params.ranks = 4;
  const Algorithm& line = *find_algorithm(broadcast, "chain");
  EXPECT_EQ(*pipeline_optimum(line, params, fabric, 100), 100);
  EXPECT_EQ(*pipeline_optimum(line, params, fabric, 1 << 30), kMostSegments);
  params.segments = kMostSegments;
  EXPECT_FALSE(line.refusal(params));
  params.segments = kMostSegments + 1;
  EXPECT_TRUE(line.refusal(params));
  params.ranks = 0;
  EXPECT_FALSE(pipeline_optimum(line, params, fabric, 100).ok());
}

double seconds_of(const Algorithm& line, Params params, const Fabric& fabric, std::uint64_t bytes,
                  int segments, const SimulateOptions& options = {}) {
  params.segments = segments;
  const Schedule schedule = line.make(params);
  const auto result = simulate(schedule, goal_of(line, params, schedule), fabric, bytes, options);
  EXPECT_TRUE(result.ok());
  return result->seconds;
}

// On two ports times of a chain rise and fall from one number to the next: 8 is better than its
// neighbours, and 12 is the best.
TEST(BestSegments, GoesBeyondWhatIsBetterThanItsNeighbours) {
  Fabric fabric = plain_regime().fabric;
  fabric.ports = 2;
  const Algorithm& line = *find_algorithm(broadcast, "chain");
  const Params params = line.only_taken({.ranks = 8});
  const std::uint64_t bytes = 1 << 20;
  const auto best = best_segments(line, params, fabric, bytes);
  ASSERT_TRUE(best.ok());
  for (int p = 1; p <= 64; ++p) {
    EXPECT_LE(seconds_of(line, params, fabric, bytes, *best),
              seconds_of(line, params, fabric, bytes, p))
        << *best << " and " << p;
  }
}

// Against every P there is. Time is not quite convex in P (blocks are whole bytes, the colours of
// trees go odd and even), so that a thousandth may be left on the table, and no more.
TEST(BestSegments, NoOtherNumberIsAThousandthBetter) {
  constexpr int kMost = 80;
  for (const int ports : {1, 2, 4}) {
    Fabric fabric = fabric_with(Rational(3, 2'000'000), Rational(1, 50'000'000'000));
    fabric.ports = ports;
    for (const auto& [collective, name] : {std::pair{broadcast, "chain"},
                                           {broadcast, "double_tree"},
                                           {all_reduce, "chain"},
                                           {all_reduce, "double_tree"},
                                           {all_reduce, "two_tree"},
                                           {all_reduce, "binary_tree"}}) {
      const Algorithm& line = *find_algorithm(collective, name);
      for (const std::uint64_t bytes : {64U, 100'003U, 1'000'003U}) {
        for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
          const Params params{.ranks = 8};
          const auto best = best_segments(line, params, fabric, bytes, {.sync = sync});
          ASSERT_TRUE(best.ok()) << best.status().text();
          const double found = seconds_of(line, params, fabric, bytes, *best, {.sync = sync});
          for (int p = 1; p <= std::min<int>(kMost, static_cast<int>(bytes)); ++p) {
            EXPECT_LE(found, 1.001 * seconds_of(line, params, fabric, bytes, p, {.sync = sync}))
                << name << ", " << ports << " ports, " << bytes << " B: P = " << *best << ", not "
                << p;
          }
        }
      }
    }
  }
}

// With one port the two trees wait for each other, which the closed form does not know.
TEST(BestSegments, KnowsThePorts) {
  const Algorithm& line = *find_algorithm(all_reduce, "double_tree");
  constexpr std::uint64_t kBytes = 64 << 20;
  Fabric one = fabric_with(Rational(1, 1'000'000), Rational(1, 100'000'000'000)), four = one;
  one.ports = 1;
  four.ports = 4;
  const Params params{.ranks = 8};
  EXPECT_EQ(*pipeline_optimum(line, params, one, kBytes),
            *pipeline_optimum(line, params, four, kBytes));
  const int with_one = *best_segments(line, params, one, kBytes);
  const int with_four = *best_segments(line, params, four, kBytes);
  EXPECT_LT(with_one, with_four);
  EXPECT_LT(seconds_of(line, params, one, kBytes, with_one),
            0.98 * seconds_of(line, params, one, kBytes, with_four));
}

TEST(BestSegments, IsBoundedAndCanBeEnded) {
  const Algorithm& line = *find_algorithm(broadcast, "chain");
  const Fabric fabric = fabric_with(0, Rational(1, 1'000'000'000));  // each segment more is better
  int asked = 0;
  const auto best = best_segments(line, {.ranks = 64}, fabric, 1 << 20, {}, [&] {
    ++asked;
    return Status();
  });
  ASSERT_TRUE(best.ok());
  EXPECT_LE(*best, kMostMessages / 64);
  EXPECT_LE(asked, 30);
  EXPECT_EQ(*best_segments(line, {.ranks = 8}, fabric, 0), 1);
  EXPECT_LE(*best_segments(line, {.ranks = 8}, fabric, 5), 5);
  EXPECT_EQ(*best_segments(*find_algorithm(broadcast, "linear"), {.ranks = 8}, fabric, 64), 1);
  EXPECT_FALSE(best_segments(line, {.ranks = 0}, fabric, 64).ok());
  const auto ended = best_segments(line, {.ranks = 8}, fabric, 1 << 20, {},
                                   [] { return Status(Code::timeout, "too late"); });
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.status().text(), "too late");
}

}  // namespace
}  // namespace rankine
