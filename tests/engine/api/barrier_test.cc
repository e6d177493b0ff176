// Barriers that tell what all have said.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

struct Note {
  std::int32_t rank;
  std::array<char, 12> text;
  bool operator==(const Note&) const = default;
};

class Barriers : public testing::TestWithParam<int> {};

TEST_P(Barriers, HoldEverybodyAndTellWhatAllSaid) {
  const int ranks = GetParam();
  Ranks all({.ranks = ranks, .timeout = std::chrono::minutes(2)});
  std::atomic<int> arrivals{0}, early{0};
  const auto results = all.run([&](Member& me) -> Status {
    for (int round = 1; round <= 50; ++round) {
      arrivals.fetch_add(1, std::memory_order_relaxed);
      const auto most = me.barrier(me.rank() * round, ReduceOp::max);
      if (!most.ok()) return most.status();
      if (arrivals.load(std::memory_order_relaxed) < (2 * round - 1) * ranks) early.fetch_add(1);
      EXPECT_EQ(*most, (ranks - 1) * round);
      arrivals.fetch_add(1, std::memory_order_relaxed);
      const Note mine{me.rank() + round, {"a note"}};
      std::vector<Note> notes(static_cast<std::size_t>(ranks));
      if (Status status = me.barrier(mine, notes); !status.ok()) return status;
      if (arrivals.load(std::memory_order_relaxed) < 2 * round * ranks) early.fetch_add(1);
      for (Rank r = 0; r < ranks; ++r) {
        EXPECT_EQ(notes[static_cast<std::size_t>(r)], (Note{r + round, {"a note"}}));
      }
    }
    return {};
  });
  for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(early.load(), 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Barriers, testing::Values(1, 2, 3, 5, 9));

TEST(Barrier, SaysWhatIsWrong) {
  Ranks all({.ranks = 2, .timeout = std::chrono::minutes(2)});
  const auto results = all.run([](Member& me) -> Status {
    std::vector<double> three(3);
    EXPECT_EQ(me.barrier(1.0, three).text(),
              "out has 24 elements; the other argument and 2 ranks ask for 16");
    EXPECT_EQ(me.barrier(1.5, ReduceOp::bxor).status().code(), Code::invalid_argument);
    const auto average = me.barrier(me.rank() + 1.0, ReduceOp::avg);
    EXPECT_EQ(average.value(), 1.5);
    return {};
  });
  for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
}

TEST(Barrier, EndsByItsDeadline) {
  Ranks all({.ranks = 3, .timeout = std::chrono::minutes(2)});
  const auto results = all.run([](Member& me) -> Status {
    if (me.rank() == 1) return {};
    return me.barrier(1, ReduceOp::sum, {.timeout = std::chrono::milliseconds(100)}).status();
  });
  EXPECT_EQ(results[0].code(), Code::timeout) << results[0].text();
  EXPECT_EQ(results[2].code(), Code::timeout) << results[2].text();
}

}  // namespace
}  // namespace rankine
