// c_real in tables: written, read back and refused, and the choices that follow from made-up ones,
// worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/api/tuning/choose.h"
#include "engine/api/tuning/tuning.h"

namespace rankine {
namespace {

using enum Collective;
using testing::HasSubstr;

// A message of 1000 bytes takes 1 us of alpha and 1 us of bytes.
const CostModel kModel{.alpha = 1e-6, .beta = 1e-9, .gamma = 0};

MeasuredCReal among(int ranks, Collective collective, std::string_view name, CReal c_real) {
  return {collective, ranks, find_algorithm(collective, name), c_real};
}

TuningTable table(std::vector<MeasuredCReal> c_real, std::vector<TuningRow> rows = {}) {
  return {{}, "2026-11-22T16:04:04Z", kModel, std::move(rows), {}, std::move(c_real)};
}

Choice broadcast_among(int ranks, const TuningTable& by) {
  return choose(broadcast, ranks, 1000, Buffers::apart, &by, {});
}

double seconds_of(std::string_view name, int ranks, std::size_t bytes) {
  const auto fabric = machine_fabric(kModel);
  const auto one = predict_on_threads(*find_algorithm(broadcast, name), ranks, bytes, *fabric);
  EXPECT_TRUE(one.ok() && one->ok());
  return one->seconds;
}

TEST(MachineModel, IsANetworkOfOnePort) {
  EXPECT_DOUBLE_EQ(seconds_of("linear", 4, 1000), 3 * 2e-6);  // one after the other
  EXPECT_DOUBLE_EQ(seconds_of("binomial_near", 4, 1000), 2 * 2e-6);
  EXPECT_DOUBLE_EQ(seconds_of("binomial_near", 4, 0), 2 * 1e-6);
  CostModel adding = kModel;
  adding.gamma = 2.5e-10;
  const Algorithm& linear = *find_algorithm(Collective::reduce, "linear");
  const auto reduced = predict_on_threads(linear, 2, 1000, *machine_fabric(adding));
  EXPECT_DOUBLE_EQ(reduced->seconds, 2.25e-6);
}

TEST(MachineModel, RefusesWhatNoMachineCosts) {
  const auto refusal = [](const CostModel& model) {
    const auto fabric = machine_fabric(model);
    EXPECT_FALSE(fabric.ok());
    return fabric.status().text();
  };
  EXPECT_EQ(refusal({.alpha = -1e-7, .beta = 1e-9}),
            "model.alpha is -1e-07; allowed are numbers above 0 to 1");
  EXPECT_EQ(refusal({.alpha = 2, .beta = 1e-9}),
            "model.alpha is 2; allowed are numbers above 0 to 1");
  EXPECT_EQ(refusal({.alpha = 1e-7, .beta = 0}),
            "model.beta is 0; allowed are numbers above 0 to 1");
  EXPECT_EQ(refusal({.alpha = 1e-7, .beta = 1e-9, .gamma = -1e-12}),
            "model.gamma is -1e-12; allowed are numbers from 0 to 1");
  EXPECT_THAT(refusal({.alpha = std::nan(""), .beta = 1e-9}), HasSubstr("model.alpha is nan"));
}

TEST(CReal, ComesBackAsItWasWritten) {
  const TuningTable t = table({among(4, broadcast, "linear", {.latency = 0.3, .bandwidth = 1.7}),
                               among(2, all_reduce, "ring", {.latency = 1e-3, .bandwidth = 1e3})});
  const auto read = parse_tuning(to_json(t));
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->c_real(), t.c_real());
  ASSERT_EQ(read->c_real().size(), 2u);
  EXPECT_EQ(read->c_real()[0].collective, broadcast);  // in order
  std::string old = to_json(t);
  old.replace(old.find("\"c_real\""), 8, "\"others\"");
  const auto without = parse_tuning(old);  // as tables were
  ASSERT_TRUE(without.ok()) << without.status().text();
  EXPECT_TRUE(without->c_real().empty());
}

TEST(CReal, OfTwoForOneThingTheLastCounts) {
  const TuningTable t =
      table({among(4, broadcast, "linear", {1, 1}), among(4, broadcast, "linear", {2, 3})});
  ASSERT_EQ(t.c_real().size(), 1u);
  EXPECT_EQ(t.c_real()[0].c_real, (CReal{2, 3}));
}

TEST(CReal, WhatIsWrongIsNamedWithWhatIsAllowed) {
  const std::string good =
      to_json(table({among(2, broadcast, "binomial_near", {1, 1}),
                     among(4, broadcast, "linear", {.latency = 0.25, .bandwidth = 1.5})}));
  ASSERT_TRUE(parse_tuning(good).ok());
  const auto refusal = [&good](const std::string& part, const std::string& instead) {
    std::string text = good;
    const std::size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    const auto read = parse_tuning(text.replace(at, part.size(), instead));
    EXPECT_FALSE(read.ok()) << instead;
    return read.ok() ? "" : read.status().text();
  };
  const std::string allowed = "; allowed are numbers from 0.001 to 1000";
  EXPECT_EQ(refusal("\"latency\": 0.25", "\"latency\": -0.25"),
            "c_real 2: latency is -0.25" + allowed);
  EXPECT_EQ(refusal("\"latency\": 0.25", "\"latency\": 0"), "c_real 2: latency is 0" + allowed);
  EXPECT_EQ(refusal("\"bandwidth\": 1.5", "\"bandwidth\": 1000.5"),
            "c_real 2: bandwidth is 1000.5" + allowed);
  EXPECT_EQ(refusal("\"bandwidth\": 1.5", "\"bandwidth\": \"1.5\""),
            "c_real 2: bandwidth is \"1.5\"" + allowed);
  EXPECT_THAT(refusal("\"bandwidth\": 1.5", "\"b\": 1.5"), HasSubstr("'bandwidth' not found"));
  EXPECT_THAT(refusal("\"algorithm\": \"linear\"", "\"algorithm\": \"lineal\""),
              HasSubstr("c_real 2: algorithm is 'lineal'; broadcast has "));
  EXPECT_THAT(refusal("\"collective\": \"broadcast\"", "\"collective\": \"broad\""),
              HasSubstr("c_real 1: collective is 'broad'"));
  EXPECT_THAT(refusal("\"ranks\": 4", "\"ranks\": 0"), HasSubstr("c_real 2: "));
  EXPECT_EQ(refusal("\"alpha\": 1e-06", "\"alpha\": -1.0"),
            "model.alpha is -1; allowed are numbers above 0 to 1");
  std::string unused = to_json(table({}));
  const std::size_t at = unused.find("\"alpha\": 1e-06");
  EXPECT_TRUE(parse_tuning(unused.replace(at, 14, "\"alpha\": -1.0")).ok());  // nobody asks for it
}

TEST(CReal, TheNearestNumberOfRanksAnswers) {
  const TuningTable t =
      table({among(2, broadcast, "linear", {1, 1}), among(8, broadcast, "linear", {2, 2}),
             among(8, broadcast, "chain", {2, 2}), among(5, all_reduce, "ring", {3, 3})});
  const auto ranks_near = [&t](Collective collective, int ranks) {
    const auto found = t.c_real_near(collective, ranks);
    return found.empty() ? 0 : found.front().ranks;
  };
  EXPECT_EQ(ranks_near(broadcast, 1), 2);
  EXPECT_EQ(ranks_near(broadcast, 4), 2);  // as far from 8: the smaller one
  EXPECT_EQ(ranks_near(broadcast, 5), 8);
  EXPECT_EQ(ranks_near(broadcast, 1000), 8);
  EXPECT_EQ(ranks_near(all_reduce, 2), 5);
  EXPECT_EQ(ranks_near(all_gather, 2), 0);
  EXPECT_EQ(t.c_real_near(broadcast, 9).size(), 2u);
  EXPECT_EQ(t.c_real_near(broadcast, 2).size(), 1u);
}

// Linear takes 6 us by the model and binomial_near 4, half of both alphas; the default is linear.
TEST(ChooseByCReal, TheProductsDecide) {
  const auto name = [](CReal linear, CReal binomial) {
    return broadcast_among(4, table({among(4, broadcast, "linear", linear),
                                     among(4, broadcast, "binomial_near", binomial)}))
        .algorithm->name;
  };
  EXPECT_EQ(name({2, 4}, {1, 3}), "binomial_near");  // 6 x 3 against 4 x 2
  EXPECT_EQ(name({1, 1}, {1, 3}), "linear");         // 6 against 8
  EXPECT_EQ(name({1, 1}, {0.1, 1.9}),
            "binomial_near");  // 6 against 4: half the one, half the other
  EXPECT_EQ(name({1, 1}, {1.1, 1.1}), "binomial_near");  // 6 > 1.3 x 4.4
  EXPECT_EQ(name({1, 1}, {1.2, 1.2}), "linear");         // 6 < 1.3 x 4.8
}

TEST(ChooseByCReal, SaysWhatItWentBy) {
  const Choice choice = broadcast_among(4, table({among(4, broadcast, "linear", {2, 4}),
                                                  among(4, broadcast, "binomial_near", {1, 3})}));
  EXPECT_TRUE(choice.by_c_real);
  EXPECT_EQ(choice.row, nullptr);
  ASSERT_EQ(choice.by_model.size(), 2u);
  EXPECT_EQ(choice.by_model[0].algorithm->name, "binomial_near");
  EXPECT_DOUBLE_EQ(*choice.by_model[0].c_real, 2);
  EXPECT_DOUBLE_EQ(choice.by_model[0].expected(), 8e-6);
  EXPECT_DOUBLE_EQ(*choice.by_model[1].c_real, 3);
  EXPECT_DOUBLE_EQ(choice.by_model[1].expected(), 18e-6);
}

TEST(ChooseByCReal, WhatWasMeasuredItselfComesFirst) {
  const Algorithm* chain = find_algorithm(broadcast, "chain");
  const Choice choice = broadcast_among(
      4, table({among(4, broadcast, "linear", {9, 9}), among(4, broadcast, "chain", {9, 9}),
                among(4, broadcast, "binomial_near", {1, 1})},
               {{broadcast, 4, 1000, chain, 1}}));
  EXPECT_EQ(choice.algorithm, chain);
  EXPECT_TRUE(choice.by_model.empty());
}

TEST(ChooseByCReal, IsSilentWhereNothingCanBeCompared) {
  const std::vector<MeasuredCReal> both = {among(4, broadcast, "linear", {9, 9}),
                                           among(4, broadcast, "binomial_near", {1, 1})};
  EXPECT_EQ(broadcast_among(8, table(both)).algorithm->name, "binomial_near");
  EXPECT_EQ(broadcast_among(2, table(both)).algorithm->name, "binomial_near");
  const Choice far = broadcast_among(9, table(both));  // more than twice as many
  EXPECT_EQ(far.algorithm->name, "linear");
  EXPECT_TRUE(far.by_model.empty());
  const Choice alone = broadcast_among(4, table({among(4, broadcast, "binomial_near", {1, 1})}));
  EXPECT_EQ(alone.algorithm->name, "linear");  // which has no c_real
  EXPECT_EQ(alone.by_model.size(), 1u);
  EXPECT_FALSE(alone.by_c_real);
  // Of all-reduces in place nothing was measured.
  const TuningTable t = table({among(4, all_reduce, "direct_one_shot", {9, 9}),
                               among(4, all_reduce, "direct_two_shot", {9, 9}),
                               among(4, all_reduce, "ring", {0.01, 0.01})});
  EXPECT_EQ(choose(all_reduce, 4, 1000, Buffers::apart, &t, {}).algorithm->name, "ring");
  EXPECT_EQ(choose(all_reduce, 4, 1000, Buffers::in_place, &t, {}).algorithm->name,
            "direct_one_shot");
}

}  // namespace
}  // namespace rankine
