#include "engine/base/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace rankine {
namespace {

struct Entry {
  int number = 7;
  void* place = nullptr;
};

bool is_zero(const Entry& entry) { return entry.number == 0 && entry.place == nullptr; }

TEST(ZeroedPages, WhatNobodyHasMadeIsZero) {
  for (const std::size_t count : {std::size_t{3}, std::size_t{100'000}}) {
    const ZeroedVector<Entry> table(count);
    EXPECT_TRUE(std::all_of(table.begin(), table.end(), is_zero)) << count;
  }
}

TEST(ZeroedPages, TakeMemoryWhereTheyAreWritten) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  ZeroedVector<Entry> table(1000 * page / sizeof(Entry));
  EXPECT_EQ(taken_bytes(table), 0U);
  table[table.size() / 2].number = 1;
  table[table.size() - 1].number = 2;
  EXPECT_EQ(taken_bytes(table), 2 * page);
  ZeroedVector<Entry> moved = std::move(table);
  EXPECT_EQ(taken_bytes(moved), 2 * page);
  EXPECT_EQ(moved[moved.size() / 2].number, 1);
  const ZeroedVector<Entry> small(3);
  EXPECT_EQ(taken_bytes(small), 3 * sizeof(Entry));
}

TEST(ZeroedPages, GrownATableHasWhatItHad) {
  ZeroedVector<Entry> table;
  for (int i = 0; i < 10'000; ++i) table.push_back({.number = i});
  table.resize(20'000);
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ(table[static_cast<std::size_t>(i)].number, i);
  ZeroedVector<Entry> fresh(5000);
  EXPECT_TRUE(is_zero(fresh[4999]));
}

}  // namespace
}  // namespace rankine
