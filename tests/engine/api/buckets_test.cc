// Bucket fusion gives what one all-reduce per tensor gives, whatever the tensors' sizes.
#include "engine/api/buckets.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "engine/api/team.h"

namespace rankine {
namespace {

// Element i of tensor t at rank r.
std::int64_t value(Rank r, std::size_t t, std::size_t i) {
  return static_cast<std::int64_t>(1000 * t + 7 * i) * (r + 1);
}

// Reduces tensors of these sizes among `ranks` ranks; returns how many all-reduces rank 0 made.
std::size_t reduce_all(int ranks, const std::vector<std::size_t>& sizes, std::size_t bucket_bytes) {
  auto team = Team::create({.ranks = ranks});
  EXPECT_TRUE(team.ok()) << team.status().text();
  std::size_t calls = 0;
  const Status status = (*team)->run([&](Member& me) {
    std::vector<std::vector<std::int64_t>> tensors;
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      tensors.emplace_back(sizes[t]);
      for (std::size_t i = 0; i < sizes[t]; ++i) tensors[t][i] = value(me.rank(), t, i);
    }
    std::vector<std::span<std::int64_t>> spans(tensors.begin(), tensors.end());
    Buckets buckets(me, bucket_bytes);
    buckets.all_reduce(std::span<const std::span<std::int64_t>>(spans)).throw_if_error();
    const std::int64_t all = ranks * (ranks + 1) / 2;  // sum of r + 1
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      for (std::size_t i = 0; i < sizes[t]; ++i) {
        ASSERT_EQ(tensors[t][i], value(0, t, i) * all) << "tensor " << t << ", element " << i;
      }
    }
    if (me.rank() == 0) calls = buckets.calls();
  });
  EXPECT_TRUE(status.ok()) << status.text();
  return calls;
}

TEST(Buckets, SmallTensorsShareOneCall) { EXPECT_EQ(reduce_all(3, {1, 2, 3, 5, 7}, 1000), 1U); }

TEST(Buckets, AFullBucketIsSentBeforeTheNextTensor) {
  // 10 elements fit: {4, 6}, {7}, {3, 3, 3}.
  EXPECT_EQ(reduce_all(2, {4, 6, 7, 3, 3, 3}, 80), 3U);
}

TEST(Buckets, ATensorLargerThanABucketGoesAlone) {
  EXPECT_EQ(reduce_all(4, {2, 100, 2}, 80), 3U);
  EXPECT_EQ(reduce_all(2, {100}, 8), 1U);
}

TEST(Buckets, EmptyTensorsAndNoTensors) {
  EXPECT_EQ(reduce_all(2, {}, 80), 0U);
  EXPECT_EQ(reduce_all(2, {0, 5, 0}, 80), 1U);
}

TEST(Buckets, NothingFitsIntoATinyBucket) { EXPECT_EQ(reduce_all(2, {1, 1, 1}, 1), 3U); }

}  // namespace
}  // namespace rankine
