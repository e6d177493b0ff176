#include "engine/tools/test_data.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "engine/run/kernels/reduce.h"

namespace rankine::tools {
namespace {

struct Scene {
  Goal goal;
  Layout layout;
};

Scene make_scene(Collective collective, int ranks, std::size_t count, DataType type) {
  Scene scene;
  scene.goal = {collective, ranks, natural_blocks(collective, ranks), ranks / 2, ranks - 1};
  const std::vector<std::size_t> counts(static_cast<std::size_t>(scene.goal.blocks), count);
  scene.layout = make_layout(scene.goal, counts, size_of(type), Borders::plain);
  return scene;
}

using Bytes = std::vector<std::byte>;

Bytes input_of(const Scene& scene, const TestData& data, Rank r) {
  Bytes bytes(input_bytes(scene.layout, scene.goal, r) + 1);
  data.fill(scene.goal, scene.layout, r, bytes.data());
  return bytes;
}

// The claim that makes an exact check possible: whatever the order and however often rounded in
// between, the engine's own kernels give the expected period.
TEST(TestData, IsExactInAnyOrderOfReduction) {
  std::mt19937 random(7);
  constexpr std::size_t kCount = 3 * TestData::kPeriod + 17;
  for (const int ranks : {1, 2, 3, 7, 64, 130, 300}) {
    for (int t = 0; t < kDataTypes; ++t) {
      for (int o = 0; o < kReduceOps; ++o) {
        const auto type = static_cast<DataType>(t);
        const auto op = static_cast<ReduceOp>(o);
        if (!supports(type, op)) continue;
        const Scene scene = make_scene(Collective::all_reduce, ranks, kCount, type);
        const TestData data(Collective::all_reduce, ranks, type, op, 5);
        std::vector<Bytes> parts;
        for (Rank r = 0; r < ranks; ++r) parts.push_back(input_of(scene, data, r));
        const ReduceKernel reduce = find_reduce(type, op);
        while (parts.size() > 1) {  // any two at a time, each time rounded
          std::shuffle(parts.begin(), parts.end(), random);
          Bytes last = std::move(parts.back());
          parts.pop_back();
          const void* sources[] = {parts.back().data(), last.data()};
          reduce(parts.back().data(), sources, 2, kCount, 0);
        }
        Bytes& result = parts.front();
        if (op == ReduceOp::avg) {
          const void* source = result.data();
          reduce(result.data(), &source, 1, kCount, ranks);
        }
        EXPECT_EQ(data.count_wrong(scene.goal, scene.layout, 0, result.data()), 0)
            << ranks << " ranks, " << name_of(type) << " " << name_of(op);
      }
    }
  }
}

TEST(TestData, SeesAMissingOrDoubledRank) {
  constexpr std::size_t kCount = 2000;
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16, DataType::i8}) {
    for (const int ranks : {2, 5, 64, 300}) {
      const Scene scene = make_scene(Collective::all_reduce, ranks, kCount, type);
      const TestData data(Collective::all_reduce, ranks, type, ReduceOp::sum, 0);
      const ReduceKernel reduce = find_reduce(type, ReduceOp::sum);
      for (const int copies : {0, 2}) {  // of the last rank's contribution
        Bytes sum = input_of(scene, data, 0);
        for (Rank r = 1; r < ranks; ++r) {
          const Bytes mine = input_of(scene, data, r);
          const void* sources[] = {sum.data(), mine.data()};
          for (int i = r == ranks - 1 ? copies : 1; i > 0; --i) {
            reduce(sum.data(), sources, 2, kCount, 0);
          }
        }
        EXPECT_GT(data.count_wrong(scene.goal, scene.layout, 0, sum.data()), 0)
            << ranks << " ranks, " << name_of(type) << ", " << copies << " copies";
      }
    }
  }
}

TEST(TestData, CountsEachWrongElement) {
  const Scene scene = make_scene(Collective::broadcast, 3, 1000, DataType::i32);
  const TestData data(Collective::broadcast, 3, DataType::i32, ReduceOp::sum, 0);
  Bytes bytes = input_of(scene, data, scene.goal.root);
  EXPECT_EQ(data.count_wrong(scene.goal, scene.layout, 0, bytes.data()), 0);
  bytes[0] ^= std::byte{1};
  bytes[3] ^= std::byte{1};  // the same element
  bytes[4 * 999] ^= std::byte{0x80};
  EXPECT_EQ(data.count_wrong(scene.goal, scene.layout, 0, bytes.data()), 2);
}

TEST(TestData, SeesBlocksThatLandInAnotherPlace) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{64}, std::size_t{4096}}) {
    const Scene scene = make_scene(Collective::all_gather, 4, count, DataType::i32);
    const TestData data(Collective::all_gather, 4, DataType::i32, ReduceOp::sum, 0);
    const std::size_t block = count * sizeof(std::int32_t);
    Bytes all;
    for (Rank r = 0; r < 4; ++r) {
      const Bytes mine = input_of(scene, data, r);
      all.insert(all.end(), mine.begin(), mine.end() - 1);
    }
    ASSERT_EQ(data.count_wrong(scene.goal, scene.layout, 2, all.data()), 0);
    std::swap_ranges(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(block),
                     all.begin() + static_cast<std::ptrdiff_t>(2 * block));
    EXPECT_GE(data.count_wrong(scene.goal, scene.layout, 2, all.data()),
              static_cast<std::int64_t>(count));
  }
}

TEST(TestData, DiffersBySeed) {
  const Scene scene = make_scene(Collective::all_reduce, 2, 100, DataType::f32);
  const TestData first(Collective::all_reduce, 2, DataType::f32, ReduceOp::sum, 0);
  const TestData second(Collective::all_reduce, 2, DataType::f32, ReduceOp::sum, 1);
  EXPECT_NE(input_of(scene, first, 0), input_of(scene, second, 0));
  EXPECT_NE(input_of(scene, first, 0), input_of(scene, first, 1));
}

}  // namespace
}  // namespace rankine::tools
