#include "engine/tools/scaling.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "engine/base/units.h"
#include "engine/network/simulate.h"

namespace rankine::tools {
namespace {

QuestionArguments asked(const std::string& algorithms, int ranks) {
  QuestionArguments arguments;
  arguments.algorithm.collective = Collective::all_reduce;
  arguments.algorithm.algorithms = algorithms;
  arguments.algorithm.begin.ranks = ranks;
  arguments.bytes = 1'000'000;
  return arguments;
}

Result<Scaling> scaled(const std::string& algorithms, int from, int to) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  return scale(asked(algorithms, from), to, kMostScaledSteps, console);
}

TEST(Scaling, DoublesTheRanksUpToTheLastOne) {
  const auto scaling = scaled("ring,recursive_doubling", 16, 100);
  ASSERT_TRUE(scaling.ok()) << scaling.status().text();
  EXPECT_EQ(scaling->ranks, (std::vector<int>{16, 32, 64, 100}));
  ASSERT_EQ(scaling->curves.size(), 2u);
  EXPECT_EQ(scaling->curves[0].algorithm, "ring");
  ASSERT_EQ(scaling->curves[0].seconds.size(), 4u);
  for (const auto& [n, seconds] : scaling->curves[0].seconds) {
    // 2 (N - 1) (alpha + beta M / N), of 1 us and 100 GB/s.
    EXPECT_NEAR(seconds, 2 * (n - 1) * (1e-6 + 1e-5 / n), 1e-15) << n;
  }
  EXPECT_TRUE(scaling->notes.empty());
}

TEST(Scaling, ToAMillionRanks) {
  const auto scaling = scaled("ring", 16, 1'000'000);
  ASSERT_TRUE(scaling.ok()) << scaling.status().text();
  EXPECT_EQ(scaling->curves[0].seconds.size(), 17u);
  EXPECT_EQ(scaling->curves[0].seconds.back().first, 1'000'000);
}

TEST(Scaling, WhatCannotBeAnsweredIsLeftOutWithItsReason) {
  QuestionArguments arguments = asked("ring_2d,ring_tree", 16);
  arguments.algorithm.begin.group = 8;
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  const auto scaling = scale(arguments, 25, kMostScaledSteps, console);
  ASSERT_TRUE(scaling.ok()) << scaling.status().text();
  ASSERT_EQ(scaling->curves.size(), 2u);
  EXPECT_EQ(scaling->curves[0].seconds.size(), 1u);
  EXPECT_EQ(scaling->curves[1].seconds.size(), 1u);
  ASSERT_EQ(scaling->notes.size(), 2u);
  EXPECT_NE(scaling->notes[0].find("ring_2d among 25 ranks is left out: "), std::string::npos)
      << scaling->notes[0];
}

// Recursive doubling on a ring of links among N ranks: for each rank its notes, and the bytes of
// its cell and of what arrives there in a round; in each round one message, of which a value is
// read and one is changed; and the links to partners 1, 2, 4 ... N / 2 away.
TEST(Scaling, ACurveEndsBeforeWhatTakesTooManySteps) {
  QuestionArguments arguments = asked("recursive_doubling", 16);
  arguments.network.network = "ring";
  constexpr std::uint64_t kOfRound = steps::kOfRank + steps::kOfTransfer + 2 * steps::kOfValue;
  constexpr std::uint64_t kOf128 =
      128 * (steps::kOfNote + steps::kOfByte * (8 + 40) + 7 * kOfRound + steps::kOfLink * 127);
  const auto most_ranks = [&](std::uint64_t most_steps) {
    std::ostringstream out, err;
    Console console{.out = out, .err = err};
    const auto scaling = scale(arguments, 1 << 20, most_steps, console);
    EXPECT_TRUE(scaling.ok()) << scaling.status().text();
    if (!scaling.ok()) return 0;
    return scaling->curves.back().seconds.back().first;
  };
  EXPECT_EQ(most_ranks(kOf128), 128);
  EXPECT_EQ(most_ranks(kOf128 - 1), 64);
}

// What grows fourfold is not begun to be left off; what is known before says so at once.
TEST(Scaling, SaysHowManyStepsAreWanted) {
  QuestionArguments arguments = asked("swing", 16);
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  auto scaling = scale(arguments, 1024, std::uint64_t{1} << 25, console);
  ASSERT_TRUE(scaling.ok()) << scaling.status().text();
  EXPECT_EQ(scaling->curves[0].seconds.back().first, 128);
  EXPECT_NE(scaling->notes[0].find("swing among 256 ranks and more is left out: as they have grown "
                                   "that takes some "),
            std::string::npos)
      << scaling->notes[0];
  EXPECT_NE(scaling->notes[0].find(" steps; --most-steps allows 32M"), std::string::npos);

  // Of 4,096 ranks in 8,190 rounds of a chain two steps each, before there is a message.
  arguments.algorithm.algorithms = "chain";
  arguments.algorithm.begin.ranks = 4096;
  scaling = scale(arguments, 5000, std::uint64_t{1} << 26, console);
  EXPECT_EQ(scaling.status().text(),
            "chain among 4096 ranks and more is left out: that takes 65M steps or more; "
            "--most-steps allows 64M");
}

TEST(Scaling, SaysWhereACurveEnds) {
  QuestionArguments arguments = asked("recursive_doubling", 16);
  arguments.network.network = "ring";
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  const auto scaling = scale(arguments, 1 << 20, std::uint64_t{1} << 16, console);
  ASSERT_TRUE(scaling.ok()) << scaling.status().text();
  EXPECT_EQ(scaling->notes,
            (std::vector<std::string>{
                "recursive_doubling among 64 ranks and more is left out: that takes 102K steps or "
                "more; --most-steps allows 64K"}));
  EXPECT_EQ(out.str() + err.str(), "");
}

TEST(Scaling, WrongRanges) {
  EXPECT_EQ(scaled("ring", 16, 16).status().text(),
            "--ranks-to is 16; allowed are more than the 16 ranks of --ranks");
  EXPECT_NE(scaled("rnig", 16, 32).status().text().find("did you mean 'ring'?"), std::string::npos);
}

TEST(Scaling, TextJsonAndPicture) {
  const auto scaling = scaled("ring,recursive_doubling", 4, 8);
  ASSERT_TRUE(scaling.ok());
  const std::string text = to_text(table_of(*scaling));
  EXPECT_EQ(text.substr(0, 6), "ranks ");
  EXPECT_NE(text.find(format_duration(scaling->curves[0].seconds[1].second)), std::string::npos);
  EXPECT_NE(json_of(*scaling).find(R"({"algorithm":"ring","ranks":4,"time":)"), std::string::npos);
  const std::string svg = svg_of(*scaling, "all_reduce");
  EXPECT_NE(svg.find(">ranks</text>"), std::string::npos);
  EXPECT_NE(svg.find(">recursive_doubling</text>"), std::string::npos);
}

}  // namespace
}  // namespace rankine::tools
