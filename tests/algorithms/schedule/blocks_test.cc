#include "algorithms/schedule/blocks.h"

#include <gtest/gtest.h>

#include <random>

namespace rankine {
namespace {

using Part = rankine::Run;  // testing::Test has a Run of its own

using Indices = std::vector<int>;

IndexList list_of(const Indices& indices) {
  IndexList out;
  for (int i : indices) out.append(Part{i, 1, 1});
  return out;
}

TEST(IndexList, IsEmptyAtFirst) {
  const IndexList list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.size(), 0);
  EXPECT_EQ(list.to_vector(), Indices{});
}

TEST(IndexList, KeepsItsOrder) {
  EXPECT_EQ(list_of({5, 1, 3}).to_vector(), (Indices{5, 1, 3}));
  EXPECT_EQ((IndexList(Part{3, 2, 1}) + IndexList(0)).to_vector(), (Indices{3, 4, 0}));
  EXPECT_FALSE(list_of({1, 2}) == list_of({2, 1}));
}

TEST(IndexList, RunsMayHaveAnyStride) {
  EXPECT_EQ(IndexList(Part{1, 3, 4}).to_vector(), (Indices{1, 5, 9}));
  EXPECT_EQ(IndexList(Part{4, 3, -2}).to_vector(), (Indices{4, 2, 0}));
  EXPECT_EQ(IndexList(Part{4, 3, 0}).to_vector(), (Indices{4, 4, 4}));
}

TEST(IndexList, NeighboursBecomeOneRun) {
  EXPECT_EQ(list_of({4, 5, 6, 7}).runs(), 1);
  EXPECT_EQ(list_of({4, 5, 7}).runs(), 2);
  IndexList strided(Part{0, 2, 3});
  strided.append(Part{6, 2, 3});
  EXPECT_EQ(strided.runs(), 1);
  strided.append(Part{12, 1, 1});
  EXPECT_EQ(strided.runs(), 1);
  strided.append(Part{13, 1, 1});
  EXPECT_EQ(strided.to_vector(), (Indices{0, 3, 6, 9, 12, 13}));
}

TEST(IndexList, EmptyRunsLeaveNoTrace) {
  IndexList list(Part{7, 0, 1});
  EXPECT_TRUE(list.empty());
  list.append(Part{1, -1, 1});
  EXPECT_TRUE(list.empty());
}

TEST(IndexList, ManyRunsSpillAndStayInOrder) {
  Indices indices;
  for (int i = 0; i < 20; ++i) indices.push_back(i % 2 == 0 ? i * 10 : 1000 - i);
  const IndexList list = list_of(indices);
  EXPECT_EQ(list.runs(), 20);
  EXPECT_EQ(list.to_vector(), indices);
  EXPECT_EQ(list[13], indices[13]);
  EXPECT_EQ(list.front(), 0);
}

TEST(IndexList, EqualAsSequencesWhateverTheRuns) {
  IndexList one_by_one(Part{0, 1, 1});
  one_by_one.append(Part{2, 1, 1});
  one_by_one.append(Part{4, 1, 1});
  EXPECT_EQ(one_by_one, IndexList(Part{0, 3, 2}));
}

TEST(IndexList, ModuloTakesIndicesOverEitherEnd) {
  EXPECT_EQ(IndexList(-1).modulo(4).to_vector(), (Indices{3}));
  EXPECT_EQ(IndexList(9).modulo(4).to_vector(), (Indices{1}));
  EXPECT_EQ(IndexList(Part{2, 4, 1}).modulo(4).to_vector(), (Indices{2, 3, 0, 1}));
  EXPECT_EQ(IndexList(Part{-1, 3, 1}).modulo(4).to_vector(), (Indices{3, 0, 1}));
  EXPECT_EQ(IndexList(Part{-9, 3, 1}).modulo(4).to_vector(), (Indices{3, 0, 1}));
  EXPECT_EQ(IndexList(Part{0, 3, 3}).modulo(4).to_vector(), (Indices{0, 3, 2}));
  EXPECT_EQ(IndexList(Part{0, 6, 1}).modulo(4).to_vector(), (Indices{0, 1, 2, 3, 0, 1}));
}

TEST(IndexList, ACyclicIntervalNeedsNoMoreThanTwoRuns) {
  for (int first = -8; first <= 8; ++first) {
    for (int count = 1; count <= 8; ++count) {
      EXPECT_LE(IndexList(Part{first, count, 1}).modulo(8).runs(), 2) << first << " " << count;
    }
  }
}

// Appending, size, [] and modulo against plain vectors.
TEST(IndexList, BehavesAsAVectorOfIndices) {
  std::mt19937 random(1);
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  for (int repeat = 0; repeat < 3000; ++repeat) {
    IndexList list;
    Indices plain;
    for (int runs = below(6); runs > 0; --runs) {
      const Part run{below(40) - 20, below(5), below(7) - 3};
      list.append(run);
      for (int i = 0; i < run.count; ++i) plain.push_back(run.first + i * run.stride);
    }
    ASSERT_EQ(list.to_vector(), plain);
    ASSERT_EQ(list.size(), static_cast<int>(plain.size()));
    ASSERT_EQ(list.empty(), plain.empty());
    const int n = 1 + below(12);
    Indices wrapped;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      ASSERT_EQ(list[static_cast<int>(i)], plain[i]);
      wrapped.push_back((plain[i] % n + n) % n);
    }
    ASSERT_EQ(list.modulo(n).to_vector(), wrapped) << "modulo " << n;
    ASSERT_EQ(list, list_of(plain));
  }
}

TEST(Grammar, NamesBlocksAndRanks) {
  EXPECT_EQ(block(3).list.to_vector(), (Indices{3}));
  EXPECT_EQ(block(3).plane, 0);
  EXPECT_EQ(block(3, 1).plane, 1);
  EXPECT_EQ(blocks(2, 3).list.to_vector(), (Indices{2, 3, 4}));
  EXPECT_EQ(blocks(2, 3, 5).list.to_vector(), (Indices{2, 7, 12}));
  EXPECT_EQ(ranks_from(1, 3).to_vector(), (Indices{1, 2, 3}));
  EXPECT_EQ((block(5) + blocks(1, 2)).list.to_vector(), (Indices{5, 1, 2}));
  EXPECT_FALSE(block(3) == block(3, 1));
}

}  // namespace
}  // namespace rankine
