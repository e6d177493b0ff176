#include "engine/network/cells.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "engine/network/cells.h"
#include "engine/network/simulate.h"

namespace rankine {
namespace {

TEST(Stretches, AreCutAndJoined) {
  Stretches<int> numbers;
  const auto set = [&](std::size_t first, std::size_t end, int value) {
    numbers.change(first, end, 100, [value](std::size_t, std::size_t, int& v) { v = value; });
  };
  EXPECT_EQ(numbers.count(), 1u);
  set(10, 20, 5);
  EXPECT_EQ(numbers.count(), 3u);
  set(20, 30, 5);
  EXPECT_EQ(numbers.count(), 3u);
  set(15, 16, 7);
  EXPECT_EQ(numbers.count(), 5u);
  set(0, 100, 7);
  EXPECT_EQ(numbers.count(), 1u);
  set(50, 100, 0);
  set(0, 50, 0);
  EXPECT_EQ(numbers.count(), 1u);
}

// The same as a plain list, whatever is done, in one chunk or in many.
template <class Numbers>
void expect_like_a_plain_list() {
  std::mt19937 random(5);
  constexpr std::size_t kAll = 60;
  Numbers numbers;
  std::vector<int> plain(kAll, 0);
  for (int i = 0; i < 5000; ++i) {
    const std::size_t first = random() % kAll, end = first + 1 + random() % (kAll - first);
    const int most = static_cast<int>(random() % 4);
    numbers.change(first, end, kAll, [&](std::size_t at, std::size_t alike, int& value) {
      for (std::size_t j = at; j < at + alike; ++j) EXPECT_EQ(plain[j], value);
      value = std::max(value - 1, most);
    });
    for (std::size_t j = first; j < end; ++j) plain[j] = std::max(plain[j] - 1, most);
    std::size_t next = 0, stretches = 0;
    numbers.read(0, kAll, [&](std::size_t at, std::size_t alike, int value) {
      ASSERT_EQ(at, next);
      for (std::size_t j = at; j < at + alike; ++j) ASSERT_EQ(plain[j], value);
      next += alike;
      ++stretches;
    });
    ASSERT_EQ(next, kAll);
    ASSERT_EQ(stretches, numbers.count());
  }
}

TEST(Stretches, LikeAPlainList) {
  expect_like_a_plain_list<Stretches<int>>();
  expect_like_a_plain_list<Stretches<int, 2>>();
  expect_like_a_plain_list<Stretches<int, 5>>();
}

// Too many cells for one table: rows of stretches, of which one becomes a table of its own.
TEST(CellTable, LikeAPlainOneWhereCellsAreMany) {
  constexpr int kRanks = 3, kBlocks = 1 << 23;
  const Schedule schedule{kRanks, kBlocks, 0, {}, {}, 2};
  CellTable<std::int64_t> cells(schedule, {Collective::all_gather, kRanks, kBlocks}, kRanks);
  EXPECT_EQ(cells.held(), std::size_t{kRanks});
  cells.change(1, 1, {5, kBlocks - 5, 1}, [](Block first, int count, std::int64_t& value) {
    EXPECT_EQ(first, 5);
    EXPECT_EQ(count, kBlocks - 5);
    value = 9;
  });
  EXPECT_EQ(cells.held(), std::size_t{kRanks} + 1);
  EXPECT_EQ(cells.at(1, 1, 4), 0);
  EXPECT_EQ(cells.at(1, 1, 5), 9);
  EXPECT_EQ(cells.at(1, 0, 5), 0);
  EXPECT_EQ(cells.at(2, 1, 5), 0);
  cells.change(0, 0, {1, 3, 4}, [](Block, int count, std::int64_t& value) {
    EXPECT_EQ(count, 1);
    value = 3;
  });
  EXPECT_EQ(cells.at(0, 0, 9), 3);
  EXPECT_EQ(cells.at(0, 0, 8), 0);
}

TEST(CellTable, ARowOfManyStretchesBecomesATable) {
  constexpr int kRanks = 1 << 14, kBlocks = 2048;
  const Schedule schedule{kRanks, kBlocks, 0, {}};
  CellTable<std::int64_t> cells(schedule, {Collective::all_gather, kRanks, kBlocks}, kRanks);
  for (Block b = 0; b < kBlocks; b += 2) {
    cells.change(7, 0, {b, 1, 1}, [b](Block, int, std::int64_t& value) { value = b + 1; });
  }
  EXPECT_EQ(cells.held(), std::size_t{kRanks} - 1 + kBlocks);
  for (Block b = 0; b < kBlocks; ++b) EXPECT_EQ(cells.at(7, 0, b), b % 2 == 0 ? b + 1 : 0);
  EXPECT_EQ(cells.at(6, 0, 0), 0);
}

TEST(Meetings, FewAndMany) {
  constexpr int kRanks = 1000;
  Meetings meetings(kRanks);
  for (int again = 0; again < 3; ++again) {
    for (Rank r = 1; r < kRanks; ++r) meetings.add(0, r, nullptr);
    meetings.add(5, 0, nullptr);
    meetings.add(5, 6, nullptr);
  }
  const Meetings::Numbers met = meetings.numbers();
  EXPECT_EQ(met.targets[0], kRanks - 1);
  EXPECT_EQ(met.sources[0], 1);
  EXPECT_EQ(met.partners[0], kRanks - 1);
  EXPECT_EQ(met.partners[5], 2);
  EXPECT_EQ(met.targets[5], 2);
  EXPECT_EQ(met.sources[6], 2);
  EXPECT_EQ(met.partners[6], 2);
}

}  // namespace
}  // namespace rankine
