// Skeletons: which ranks are alike, and that one of them stands for the others to the last tick.
#include "engine/read/flow.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/torus.h"
#include "engine/read/flow.h"
#include "tests/engine/read/listed.h"

namespace rankine {
namespace {

using Lines = std::vector<Alike::Line>;

struct Made {
  Schedule schedule;
  Goal goal;
};
Made made(const std::string& name, const std::vector<int>& dims) {
  Params params;
  params.ranks = 1;
  for (const int size : dims) params.ranks *= size;
  params.dims = dims;
  const Algorithm* line = find_algorithm(Collective::all_reduce, name);
  EXPECT_NE(line, nullptr) << name;
  Schedule schedule = line->make(line->only_taken(params));
  const Goal goal = goal_of(*line, params, schedule);
  return {std::move(schedule), goal};
}

SentByRound all_messages(const Schedule& schedule) {
  SentByRound all;
  for (const auto& round : list_of(schedule)) {
    auto& messages = all.emplace_back();
    for (const Transfer& t : round) {
      if (t.from.front() == t.to.front()) continue;
      messages.push_back({t.from.front(), t.to.front(), t.what.list.size()});
    }
  }
  return all;
}

// Everybody for himself.
Skeleton unabridged(const Made& of, const std::vector<int>& dims) {
  Lines lines;
  for (const int size : dims) lines.push_back({size, false});
  return {dims, Alike(dims, lines), of.goal, all_messages(of.schedule)};
}

Lines lines_of(const std::string& name, const std::vector<int>& dims) {
  const Made of = made(name, dims);
  return skeleton_of(all_messages(of.schedule), of.goal, dims).alike.lines();
}

TEST(Alike, IsWhoDoesTheSameTurned) {
  const Alike::Line same{}, mirrored{2, true};
  EXPECT_EQ(lines_of("trivance_powers", {9}), Lines{same});
  EXPECT_EQ(lines_of("bucket", {3, 4}), (Lines{same, same}));
  EXPECT_EQ(lines_of("bruck_ternary_latency", {8, 8}), (Lines{same, same}));
  // Of even and odd ranks one does in one collective what the other does in its mirror image.
  EXPECT_EQ(lines_of("swing", {8}), Lines{same});
  EXPECT_EQ(lines_of("swing_latency", {8, 16}), (Lines{mirrored, mirrored}));
  EXPECT_EQ(lines_of("torus_doubling_latency", {16}), (Lines{{8, true}}));
  EXPECT_EQ(lines_of("torus_doubling", {16, 8}), (Lines{{8, false}, {4, false}}));
  // Nobody is like another one.
  const Schedule odd = listed(6, 1, {{transfer(0, 1, block(0), reduce)}});
  EXPECT_EQ(skeleton_of(all_messages(odd), {.ranks = 6, .blocks = 1}, {6}).alike.lines(),
            (Lines{{6, false}}));
}

TEST(Alike, NumbersClassesAndTheirLinks) {
  const Alike swing({4, 6}, {{2, true}, {2, true}});
  EXPECT_EQ(swing.classes(), 1);
  EXPECT_EQ(swing.links(), 4);
  // 1 = (0, 1) is turned along the second dimension only, where its links change places.
  for (const auto& [link, expected] : {std::pair{4, 0}, {5, 1}, {6, 3}, {7, 2}}) {
    EXPECT_EQ(swing.class_of_link(link), expected);
  }
  const Alike halves({8}, {{4, false}});
  EXPECT_EQ(halves.classes(), 4);
  EXPECT_EQ(halves.class_of(6), 2);
  EXPECT_TRUE(halves.stands_for_others(3));
  EXPECT_FALSE(halves.stands_for_others(4));
  EXPECT_EQ(halves.class_of_link(2 * 6 + 1), 2 * 2 + 1);
}

TEST(Skeleton, OfOnesPartIsThatOfAll) {
  for (const std::vector<int>& dims : {std::vector<int>{9}, {4, 3}, {3, 3, 3}}) {
    for (const char* name : {"trivance_powers", "bucket", "bruck_ternary", "trivance_latency"}) {
      const Made of = made(name, dims);
      const auto of_part = skeleton_of(of.schedule, of.goal, dims);
      ASSERT_TRUE(of_part.ok()) << of_part.status().text();
      const Skeleton of_all = skeleton_of(all_messages(of.schedule), of.goal, dims);
      EXPECT_EQ(of_part->alike.lines(), of_all.alike.lines()) << name;
      EXPECT_EQ(of_part->messages, of_all.messages) << name;
    }
  }
}

// Messages that go along several dimensions.
TEST(Skeleton, OfOnesPartIsThatOfAllOnCrosses) {
  for (const std::vector<int>& dims : {std::vector<int>{5, 5}, {7, 7, 7}}) {
    const Made of = made("trivance_cross", dims);
    const auto of_part = skeleton_of(of.schedule, of.goal, dims);
    ASSERT_TRUE(of_part.ok()) << of_part.status().text();
    const Skeleton of_all = skeleton_of(all_messages(of.schedule), of.goal, dims);
    EXPECT_EQ(of_part->alike.lines(), of_all.alike.lines());
    EXPECT_EQ(of_part->messages, of_all.messages);
  }
}

TEST(Skeleton, OfOneIsAllToTheLastTick) {
  const Fabric& network = find_regime("torus")->fabric;
  int compared = 0;
  for (const std::vector<int>& dims :
       {std::vector<int>{8}, {16}, {9}, {4, 8}, {8, 8}, {3, 5}, {4, 4, 4}, {3, 3, 3}}) {
    for (const char* name :
         {"bucket", "torus_doubling", "torus_doubling_latency", "swing", "swing_latency",
          "bruck_ternary", "bruck_ternary_latency", "trivance_powers", "trivance_latency"}) {
      const Made of = made(name, dims);
      const auto abridged = skeleton_of(of.schedule, of.goal, dims);
      ASSERT_TRUE(abridged.ok());
      const Skeleton all = unabridged(of, dims);
      for (const std::uint64_t bytes : {32, 100'000, 10'000'000}) {
        const std::string what =
            std::string(name) + " on " + dims_text(dims) + ", " + std::to_string(bytes) + " B";
        const auto one = simulate_packets(*abridged, network, bytes);
        const auto every = simulate_packets(all, network, bytes);
        ASSERT_TRUE(one.ok() && every.ok()) << what;
        EXPECT_TRUE(one->end == every->end)
            << what << ": " << one->seconds << ", " << every->seconds;
        EXPECT_TRUE(one->round_end == every->round_end) << what;
        const auto flow = simulate_flow(*abridged, network, bytes);
        const auto flows = simulate_flow(all, network, bytes);
        ASSERT_TRUE(flow.ok() && flows.ok()) << what;
        EXPECT_NEAR(flow->seconds, flows->seconds, 1e-9 * flows->seconds) << what;
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 8 * 9 * 3);
}

// Of an algorithm that has one message a round and way, what a message waits for is what its rank
// got: with the blocks it is the same.
TEST(Skeleton, WaitsAsBlocksDo) {
  const Fabric& network = find_regime("torus")->fabric;
  for (const char* name : {"swing_latency", "torus_doubling_latency", "trivance_latency"}) {
    for (const std::vector<int>& dims : {std::vector<int>{16}, {8, 8}}) {
      const Made of = made(name, dims);
      Fabric fabric = network;
      fabric.wiring.dims = dims;
      for (const std::uint64_t bytes : {32, 1'000'000}) {
        const auto skeleton =
            simulate_packets(*skeleton_of(of.schedule, of.goal, dims), fabric, bytes);
        const auto whole =
            simulate_packets(of.schedule, of.goal, fabric, bytes, {.ideal_blocks = true});
        ASSERT_TRUE(skeleton.ok() && whole.ok());
        EXPECT_EQ(skeleton->seconds, whole->seconds) << name << ", " << bytes;
      }
    }
  }
}

TEST(Errors, NameWhatIsWrong) {
  const Schedule multicast = listed(3, 1, {{transfer(0, ranks_from(1, 2), block(0), copy)}});
  const Goal goal{.ranks = 3, .blocks = 1};
  const auto wide = skeleton_of(multicast, goal, {3});
  ASSERT_FALSE(wide.ok());
  EXPECT_NE(wide.status().text().find("multicast"), std::string::npos);
  const auto torn = skeleton_of(multicast, goal, {2, 2});
  ASSERT_FALSE(torn.ok());
  EXPECT_NE(torn.status().text().find("2x2"), std::string::npos) << torn.status().text();
}

}  // namespace
}  // namespace rankine
