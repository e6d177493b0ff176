// A training step's plan: published step times, and sums that must hold.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "engine/read/count.h"
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

// Parameters once there, gradients once back, as often as there are micro-batches; 3 P in all, but
// of the embedding, which stays from the forward pass to the backward one, 2.
TEST(Step, TrafficOfZeroIsAsStated) {
  const Model model = model_of("llama3_8b");
  Mapping mapping;
  mapping[Axis::dp] = 8;
  const double layers = static_cast<double>(model.layers * model.layer());
  const double embedding = 2 * static_cast<double>(model.embedding());  // of input and output
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
  EXPECT_NEAR(bytes(3), 3 * 2 * layers + 2 * 2 * embedding, 1e4);
}

// What the schedules of the planned collectives have a rank send along these axes, in a step.
double sent_along(const StepPlan& step, const std::vector<Axis>& axes) {
  double sum = 0;
  for (const PlannedCollective& c : step.collectives) sum += c.along == axes ? c.sent() : 0;
  return sum;
}

// 2 all-reduces of a layer each way, or as many all-gathers and reduce-scatters: the same bytes.
TEST(Step, TrafficOfTensorParallelismIsCounted) {
  const Model model = model_of("gpt_22b");
  Mapping mapping;
  mapping[Axis::tp] = 8;
  mapping.micro_batches = 3;
  const double activation = 2.0 * model.sequence * model.hidden;
  for (const bool split : {false, true}) {
    mapping.splits_norms = split;
    const StepPlan step = plan(model, mapping);
    EXPECT_DOUBLE_EQ(sent_along(step, {Axis::tp}), 3 * model.layers * 8 * 7.0 / 8 * activation);
  }
}

TEST(Step, TrafficOfZeroIsCounted) {
  const Model model = model_of("llama3_8b");
  Mapping mapping;
  mapping[Axis::dp] = 8;
  mapping.gradient_bytes = 2;
  const double layers = 2 * static_cast<double>(model.layers * model.layer());
  const double embedding = 2 * 2 * static_cast<double>(model.embedding());
  const double all = layers + embedding;
  const struct {
    int zero;
    double formula;
  } kCases[] = {{0, 2 * all}, {1, 2 * all}, {2, 2 * all}, {3, 3 * layers + 2 * embedding}};
  for (const auto& [zero, formula] : kCases) {
    mapping.zero = zero;
    const double sent = sent_along(plan(model, mapping), {Axis::sp, Axis::ep, Axis::dp});
    EXPECT_NEAR(sent, formula * 7 / 8, 1e-6 * formula) << zero;
  }
}

// A stage is sent activations and gradients once for each of its parts.
TEST(Step, TrafficOfThePipelineIsCounted) {
  const Model model = model_of("gpt_22b");
  Mapping mapping;
  mapping[Axis::pp] = 4;
  mapping.micro_batches = 8;
  const double activation = 2.0 * model.sequence * model.hidden;
  for (const int parts : {1, 2, 3}) {
    mapping.interleave = parts;
    EXPECT_DOUBLE_EQ(sent_along(plan(model, mapping), {Axis::pp}), 2 * 8 * parts * activation);
  }
  mapping.interleave = 1;
  mapping.order = PipelineOrder::zbv;
  EXPECT_DOUBLE_EQ(sent_along(plan(model, mapping), {Axis::pp}), 2 * (2 * 8 * activation));
}

// Dispatch and combine, forward and backward; of what is sent (Z - 1) / Z crosses.
TEST(Step, TrafficOfExpertsIsCounted) {
  const Model model = model_of("mixtral_8x7b");
  const double all = 2.0 * model.sequence * model.hidden, calls = 4.0 * model.layers;
  for (const int ranks : {2, 4, 8}) {
    Mapping mapping;
    mapping[Axis::ep] = ranks;
    const double z = ranks, crosses = (z - 1) / z;
    const auto per_token = [&] {
      return sent_along(plan(model, mapping), {Axis::ep}) / (calls * all);
    };
    EXPECT_NEAR(per_token(), 2 * crosses, 1e-6) << ranks;
    mapping.sends_once = true;
    // In units of the tokens of all Z ranks together: (Z - 1) / Z (1 - ((Z - 1) / Z)^k).
    EXPECT_NEAR(per_token() / z, crosses * (1 - crosses * crosses), 1e-6) << ranks;
    mapping.sends_once = false;
    mapping.capacity = 1.25;
    EXPECT_NEAR(per_token(), 2 * 1.25 * crosses, 1e-6) << ranks;
  }
}

// The slowest of all groups along an axis is what everybody waits for: of four groups of three in
// nodes of eight, one lies in two nodes.
TEST(Step, AGroupInTwoNodesIsPlannedAsSuch) {
  Mapping mapping;
  mapping[Axis::tp] = 3;
  mapping[Axis::dp] = 2;
  const auto time_of_tp = [&] {
    const StepPlan step = plan(model_of("gpt2"), mapping);
    EXPECT_EQ(step.collectives.front().along, std::vector{Axis::tp});
    return step.collectives.front().price.seconds;
  };
  const double inside = time_of_tp();
  mapping[Axis::dp] = 4;
  EXPECT_GT(time_of_tp(), 2 * inside);
}

TEST(Step, HiddenGradientsCostOnlyTheirLastBucket) {
  Mapping mapping;
  mapping[Axis::dp] = 8;
  const StepPlan step = plan(model_of("llama3_8b"), mapping);
  ASSERT_EQ(step.collectives.size(), 1u);
  const PlannedCollective& gradients = step.collectives.front();
  EXPECT_NEAR(gradients.exposed(), gradients.price.seconds, 1e-12);
}

// Without hops, and where the three passes take about as long, zbv has next to no bubble.
TEST(Step, OrdersWithWeightsApartWaitLess) {
  Mapping mapping;
  mapping[Axis::pp] = 4;
  mapping.micro_batches = 16;
  const auto bubble = [&](PipelineOrder order) {
    mapping.order = order;
    const StepPlan step = plan(model_of("gpt_22b"), mapping);
    return step.bubble() / step.seconds;
  };
  const double one_f_one_b = bubble(PipelineOrder::one_f_one_b);
  EXPECT_LT(bubble(PipelineOrder::zb1p), 0.7 * one_f_one_b);
  EXPECT_LT(bubble(PipelineOrder::zbv), 0.3 * one_f_one_b);
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
