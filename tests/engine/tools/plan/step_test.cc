// A training step's plan: published step times, and sums that must hold.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "engine/read/menu.h"
#include "engine/tools/plan/step.h"

namespace rankine::tools {
namespace {

Model model_of(std::string_view name) { return find_published_model(name)->model; }
Machine a100() { return find_known_machine("a100")->machine; }

StepPlan plan(const Model& model, const Mapping& mapping) {
  const Machine machine = a100();
  Prices prices(machine, mapping.ranks(), *find_menu("nccl"));
  auto result = plan_step(model, mapping, machine, prices);
  EXPECT_TRUE(result.ok()) << result.status().text();
  return std::move(*result);
}

struct Published {
  std::string_view model;
  int pp, interleave, micro_batch, micro_batches;
  double full, split;  // seconds: full recompute; split norms and selective recompute
};
// Korthikanti et al., 2022, table 5; tp is 8.
constexpr Published kPublished[] = {
    {"gpt_22b", 1, 1, 4, 1, 1.42, 1.10},
    {"gpt_175b", 8, 3, 1, 64, 18.13, 13.75},
    {"gpt_530b", 35, 3, 1, 280, 49.05, 37.83},
    {"gpt_1t", 64, 1, 1, 512, 94.42, 71.49},
};

TEST(Step, TimesAreNearThePublishedOnes) {
  double sum = 0;
  for (const Published& row : kPublished) {
    for (const bool split : {false, true}) {
      Mapping mapping;
      mapping[Axis::tp] = 8;
      mapping[Axis::pp] = row.pp;
      mapping.interleave = row.interleave;
      mapping.micro_batch = row.micro_batch;
      mapping.micro_batches = row.micro_batches;
      mapping.splits_norms = split;
      mapping.recompute = split ? Recompute::selective : Recompute::full;
      const StepPlan step = plan(model_of(row.model), mapping);
      const double published = split ? row.split : row.full;
      const double off = step.seconds / published - 1;
      EXPECT_LT(std::abs(off), 0.0887) << row.model;  // Calculon's worst
      sum += std::abs(off);
    }
  }
  EXPECT_LT(sum / 8, 0.0365);  // Calculon's mean
}

// Every part of a mapping at once, in several shapes.
std::vector<std::pair<Model, Mapping>> shapes() {
  std::vector<std::pair<Model, Mapping>> all;
  for (const int zero : {0, 1, 2, 3}) {
    for (const bool mixture : {false, true}) {
      Mapping mapping;
      mapping[Axis::tp] = 2;
      mapping[Axis::sp] = 2;
      mapping[Axis::ep] = mixture ? 4 : 1;
      mapping[Axis::dp] = 2;
      mapping[Axis::pp] = 2;
      mapping.micro_batches = 8;
      mapping.splits_norms = zero % 2 == 0;
      mapping.zero = zero;
      all.emplace_back(model_of(mixture ? "mixtral_8x7b" : "llama3_8b"), mapping);
    }
  }
  return all;
}

TEST(Step, WhatIsExposedAndWhatIsHiddenIsAllCommunication) {
  for (const auto& [model, mapping] : shapes()) {
    const StepPlan step = plan(model, mapping);
    EXPECT_FALSE(step.collectives.empty());
    for (const PlannedCollective& c : step.collectives) {
      EXPECT_GE(c.hidden, 0) << c.what;
      EXPECT_GE(c.exposed(), -1e-12) << c.what;
      EXPECT_GT(c.price.seconds, 0) << c.what;
    }
    EXPECT_NEAR(step.exposed() + step.hidden(), step.communicating(), 1e-12);
    // A stage that waits for nobody has no bubble, one of two has.
    EXPECT_GT(step.bubble(), 0);
    EXPECT_NEAR(step.computing() + step.exposed() + step.bubble(), step.seconds, 1e-9);
  }
}

// Parameters once there, gradients once back, as often as there are micro-batches; 3 P in all.
TEST(Step, TrafficOfZeroIsAsStated) {
  const Model model = model_of("llama3_8b");
  Mapping mapping;
  mapping[Axis::dp] = 8;
  const double layers = static_cast<double>(model.layers * model.layer());
  const double embedding = static_cast<double>(model.embedding());
  const auto bytes = [&](int zero) {
    mapping.zero = zero;
    mapping.gradient_bytes = 2;
    double sum = 0;
    for (const PlannedCollective& c : plan(model, mapping).collectives) {
      // An all-reduce moves what a reduce-scatter and an all-gather do.
      sum += c.bytes() * (c.collective == Collective::all_reduce ? 2 : 1);
    }
    return sum;
  };
  const double p = 2 * (layers + embedding);
  // Buckets are whole bytes.
  EXPECT_NEAR(bytes(0), 2 * p, 1e4);
  EXPECT_NEAR(bytes(1), 2 * p, 1e4);
  EXPECT_NEAR(bytes(3), 3 * 2 * layers, 1e4);
}

TEST(Step, HiddenGradientsCostOnlyTheirLastBucket) {
  Mapping mapping;
  mapping[Axis::dp] = 8;
  const StepPlan step = plan(model_of("llama3_8b"), mapping);
  ASSERT_EQ(step.collectives.size(), 1u);
  const PlannedCollective& gradients = step.collectives.front();
  EXPECT_NEAR(gradients.exposed(), gradients.price.seconds, 1e-12);
}

TEST(Step, OfOneRankHasNoCollective) {
  const StepPlan step = plan(model_of("llama3_8b"), Mapping{});
  EXPECT_TRUE(step.collectives.empty());
  EXPECT_NEAR(step.seconds, step.computing(), 1e-9);
}

TEST(Step, BadMappingsAreRefused) {
  const Machine machine = a100();
  Mapping mapping;
  mapping[Axis::tp] = 7;
  Prices prices(machine, 7, *find_menu("nccl"));
  EXPECT_EQ(plan_step(model_of("llama3_8b"), mapping, machine, prices).status().text(),
            "tp is 7; it must divide heads, which is 32: the nearest are 4 or 8");
}

}  // namespace
}  // namespace rankine::tools
