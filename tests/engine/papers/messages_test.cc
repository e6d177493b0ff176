// Single messages, as traces print them, of schedules that are small enough to be worked out by
// hand.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/papers/runs.h"

namespace rankine::claims {
namespace {

std::string value(std::string_view run, std::string_view quantity, std::vector<Value> arguments) {
  Runs runs;
  const auto found =
      runs.quantity(read_runs(run, "bytes=800; alpha=1; beta=0"), {}, quantity, arguments);
  return found ? to_string(*found) : "nothing";
}

TEST(Messages, BinomialBroadcastGoesNearFirst) {
  const char* run = "broadcast binomial_near; ranks=4";
  EXPECT_EQ(value(run, "sends", {1, 0, 1}), "800");
  EXPECT_EQ(value(run, "sends", {2, 0, 2}), "800");
  EXPECT_EQ(value(run, "sends", {2, 1, 3}), "800");
  EXPECT_EQ(value(run, "sends", {1, 1, 3}), "0");
  EXPECT_EQ(value(run, "sends", {3, 1}), "0");
  EXPECT_EQ(value(run, "sent_by", {0}), "1600");
  EXPECT_EQ(value(run, "sent_in", {2}), "800");
  EXPECT_EQ(value(run, "sent_in", {3}), "0");
  EXPECT_EQ(value(run, "first_round", {1}), "2");
  EXPECT_EQ(value(run, "last_round", {0}), "2");
  EXPECT_EQ(value(run, "first_round", {3}), "0");
}

TEST(Messages, HalvingHalves) {
  const char* run = "reduce_scatter recursive_halving; ranks=8";
  EXPECT_EQ(value(run, "sent_in", {1}), "400");
  EXPECT_EQ(value(run, "sent_in", {2}), "200");
  EXPECT_EQ(value(run, "largest", {}), "400");
}

TEST(Messages, OnOnePathAntipodesLoadTheLinksTwice) {
  // 1 + 2 + 4 links one after the other; half of the last step each way makes it 1 + 2 + 2.
  EXPECT_EQ(value("all_reduce recursive_doubling; ranks=8", "one_path_delay", {}), "7");
  EXPECT_EQ(value("all_reduce recursive_doubling; ranks=8", "ring_load", {}), "5");
  EXPECT_EQ(value("all_reduce torus_doubling_latency; ranks=16; dims=4x4; wiring=torus",
                  "one_path_delay", {}),
            "12");
}

TEST(Messages, QuantitiesHaveTheirArguments) {
  EXPECT_EQ(value("all_reduce ring; ranks=4", "sends", {1}), "nothing");
  EXPECT_EQ(value("all_reduce ring; ranks=4", "sent_by", {1, 2}), "nothing");
  EXPECT_EQ(value("all_reduce ring; ranks=4", "rounds", {1}), "nothing");
  EXPECT_THROW(value("all_reduce ring; ranks=4", "sent_by", {Value(1) / 2}), std::logic_error);
}

}  // namespace
}  // namespace rankine::claims
