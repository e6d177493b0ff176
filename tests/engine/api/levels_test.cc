// What a communicator knows of the machine reaches the algorithms that ask for it.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/run/interpret.h"

namespace rankine {
namespace {

// Rounds are announced to every rank.
class Rounds : public RoundObserver {
 public:
  bool before_round(int) noexcept override {
    ++count;
    return true;
  }
  int count = 0;
};

// Rounds of an all-reduce, or -1 where it failed or gave a wrong sum.
int rounds_of(std::span<const int> levels, const CallOptions& options, int ranks = 8) {
  auto communicator = Communicator::create({.ranks = ranks, .levels = levels});
  EXPECT_TRUE(communicator.ok()) << communicator.status().text();
  std::vector<Rounds> rounds(static_cast<std::size_t>(ranks));
  std::vector<int> sums(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (Rank r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      auto member = (*communicator)->join(r);
      const std::int32_t in = 1 << r;
      std::int32_t out = 0;
      const Status status = (*member)->call({.collective = Collective::all_reduce,
                                             .in = &in,
                                             .out = &out,
                                             .count = 1,
                                             .type = DataType::i32,
                                             .options = options},
                                            rounds[static_cast<std::size_t>(r)]);
      sums[static_cast<std::size_t>(r)] = status.ok() ? out : -1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int sum : sums) {
    if (sum != (1 << ranks) - 1) return -1;
  }
  return rounds.front().count;
}

TEST(Levels, TheCommunicatorsAreUsedWhereTheCallNamesNone) {
  constexpr int kMachine[] = {2, 4}, kOther[] = {4};
  const CallOptions tree{.algorithm = "level_tree"};
  EXPECT_EQ(rounds_of({}, tree), 4);  // the default: groups of 2
  EXPECT_EQ(rounds_of(kMachine, tree), 6);
  EXPECT_EQ(rounds_of(kMachine, {.algorithm = "level_tree", .levels = kOther}), 4);
}

TEST(Levels, TheOutermostIsTheGroup) {
  constexpr int kMachine[] = {2, 6}, kUneven[] = {4};
  EXPECT_EQ(rounds_of({}, {.algorithm = "hierarchical"}, 12), 10);  // 4 groups of 3: 2 + 6 + 2
  EXPECT_EQ(rounds_of(kMachine, {.algorithm = "hierarchical"}, 12), 12);  // 2 of 6: 5 + 2 + 5
  EXPECT_EQ(rounds_of(kMachine, {.algorithm = "hierarchical", .group = 3}, 12), 10);
  // Groups of 4 are nothing that ring_2d takes at 6 ranks: its own default, 2, is left.
  EXPECT_EQ(rounds_of(kUneven, {.algorithm = "ring_2d"}, 6), 6);
}

TEST(Levels, ThatAreNoneAreRefused) {
  constexpr int kTooLarge[] = {2, 16}, kNoMultiple[] = {2, 3};
  for (const std::span<const int> levels : {std::span<const int>(kTooLarge), {kNoMultiple}}) {
    const auto communicator = Communicator::create({.ranks = 8, .levels = levels});
    ASSERT_FALSE(communicator.ok());
    EXPECT_EQ(communicator.status().code(), Code::invalid_argument);
    EXPECT_NE(communicator.status().text().find("allowed are sizes of groups from 1 to 8"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace rankine
