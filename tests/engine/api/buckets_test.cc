// Bucket fusion gives what one all-reduce per tensor gives, whatever the tensors' sizes.
#include "engine/api/buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "engine/api/team.h"
#include "tests/engine/api/ranks.h"

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

// Each rank's tensors; what its call returned.
std::vector<Status> reduce_different(const std::vector<std::vector<std::size_t>>& sizes,
                                     std::size_t bucket_bytes) {
  const int ranks = static_cast<int>(sizes.size());
  Ranks all({.ranks = ranks});
  return all.run([&](Member& me) {
    std::vector<std::vector<float>> tensors;
    std::vector<std::span<float>> spans;
    for (const std::size_t n : sizes[static_cast<std::size_t>(me.rank())]) {
      tensors.emplace_back(n, 1.0F);
    }
    for (auto& tensor : tensors) spans.emplace_back(tensor);
    Buckets buckets(me, bucket_bytes);
    const Status status = buckets.all_reduce(std::span<const std::span<float>>(spans));
    for (const auto& tensor : tensors) {
      const auto untouched =
          std::count(tensor.begin(), tensor.end(), status.ok() ? float(ranks) : 1.0F);
      EXPECT_EQ(static_cast<std::size_t>(untouched), tensor.size());
    }
    return status;
  });
}

TEST(Buckets, OtherShapesOfTheSameSizeAreAMismatch) {
  using Sizes = std::vector<std::size_t>;
  // Packed into one bucket, alone in one, empty tensors, and a difference in the last of three.
  for (const auto& sizes : {std::vector<Sizes>{{3, 5}, {5, 3}},
                            {{3, 5}, {3, 5}, {8}},
                            {{3, 0, 5}, {3, 5, 0}},
                            {{9, 9, 2, 2}, {9, 9, 1, 3}}}) {
    for (const Status& status : reduce_different(sizes, 40)) {
      EXPECT_EQ(name_of(status.code()), name_of(Code::mismatch)) << status.text();
      EXPECT_NE(status.text().find("of tensors in buckets: a shape"), std::string::npos)
          << status.text();
    }
  }
  for (const Status& status : reduce_different({{3, 5, 9}, {3, 5, 9}}, 40)) {
    EXPECT_TRUE(status.ok()) << status.text();
  }
}

TEST(Buckets, ANullTensorIsRefusedBeforeAnythingMoves) {
  Ranks all({.ranks = 2});
  const auto results = all.run([](Member& me) {
    std::vector<float> fine(4, 1.0F);
    const std::vector<std::span<float>> tensors = {
        fine, std::span<float>(static_cast<float*>(nullptr), 3)};
    Buckets buckets(me, 16);  // the first tensor has a bucket of its own
    const Status status = buckets.all_reduce(std::span<const std::span<float>>(tensors));
    EXPECT_EQ(buckets.calls(), 0U);
    EXPECT_EQ(fine, std::vector<float>(4, 1.0F));
    EXPECT_TRUE(me.barrier().ok());
    return status;
  });
  for (const Status& status : results) {
    EXPECT_EQ(name_of(status.code()), name_of(Code::invalid_argument));
    EXPECT_NE(status.text().find("tensors[1] is null"), std::string::npos) << status.text();
  }
}

TEST(Buckets, NoMemoryForABucketIsAnErrorOnAllRanks) {
  for (const int victims : {1, 2}) {
    Ranks all({.ranks = 2});
    const auto results = all.run([&](Member& me) {
      std::vector<float> some(8, 1.0F);
      // Claims to be larger than any memory; its elements are never looked at.
      const bool victim = me.rank() < victims;
      const std::size_t size = victim ? std::size_t{1} << 60 : some.size();
      const std::vector<std::span<float>> tensors(2, std::span<float>(some.data(), size));
      Buckets buckets(me, std::numeric_limits<std::size_t>::max());
      return buckets.all_reduce(std::span<const std::span<float>>(tensors));
    });
    for (const Status& status : results) {
      EXPECT_EQ(name_of(status.code()), name_of(Code::out_of_memory)) << status.text();
      EXPECT_NE(status.text().find("buckets of rank"), std::string::npos) << status.text();
    }
  }
}

TEST(Buckets, NothingFitsIntoATinyBucket) { EXPECT_EQ(reduce_all(2, {1, 1, 1}, 1), 3U); }

// Tensors of these sizes, added one by one, twice over; returns how many all-reduces were made.
std::size_t stream_all(int ranks, const std::vector<std::size_t>& sizes, std::size_t bucket_bytes) {
  Ranks all({.ranks = ranks});
  std::size_t calls = 0;
  const auto results = all.run([&](Member& me) {
    Buckets buckets(me, bucket_bytes);
    for (int step = 0; step < 2; ++step) {
      std::vector<std::vector<std::int64_t>> tensors;
      for (std::size_t t = 0; t < sizes.size(); ++t) {
        tensors.emplace_back(sizes[t]);
        for (std::size_t i = 0; i < sizes[t]; ++i) tensors[t][i] = value(me.rank(), t, i);
      }
      for (auto& tensor : tensors) buckets.add(std::span(tensor)).throw_if_error();
      buckets.wait().throw_if_error();
      for (std::size_t t = 0; t < sizes.size(); ++t) {
        for (std::size_t i = 0; i < sizes[t]; ++i) {
          EXPECT_EQ(tensors[t][i], value(0, t, i) * (ranks * (ranks + 1) / 2))
              << "tensor " << t << ", element " << i;
        }
      }
    }
    if (me.rank() == 0) calls = buckets.calls();
    return Status();
  });
  for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
  return calls;
}

TEST(StreamedBuckets, AreThoseOfAllTensorsAtOnce) {
  EXPECT_EQ(stream_all(3, {1, 2, 3, 5, 7}, 1000), 2U * 1);
  EXPECT_EQ(stream_all(2, {4, 6, 7, 3, 3, 3}, 80), 2U * 3);
  EXPECT_EQ(stream_all(4, {2, 100, 2}, 80), 2U * 3);
  EXPECT_EQ(stream_all(2, {0, 5, 0}, 80), 2U * 1);
  EXPECT_EQ(stream_all(2, {}, 80), 0U);
  // More than may be under way.
  EXPECT_EQ(stream_all(2, std::vector<std::size_t>(50, 9), 80), 2U * 50);
}

TEST(StreamedBuckets, ATensorThatIsNotUsedBringsZeros) {
  Ranks all({.ranks = 3});
  const auto results = all.run([](Member& me) {
    std::vector<float> first(5, 1.0F), second(3, 7.0F);
    Buckets buckets(me);
    buckets.add(std::span(first)).throw_if_error();
    if (me.rank() == 1) {
      buckets.add_unused(std::span(second)).throw_if_error();
    } else {
      buckets.add(std::span(second)).throw_if_error();
    }
    buckets.wait().throw_if_error();
    EXPECT_EQ(first, std::vector<float>(5, 3.0F));
    EXPECT_EQ(second, std::vector<float>(3, 14.0F));
    EXPECT_EQ(buckets.calls(), 1U);
    return buckets.add_unused(std::span(second), ReduceOp::max);
  });
  for (const Status& status : results) {
    EXPECT_EQ(status.text(), "op is max; a tensor that is not used brings zeros, for sum and avg");
  }
}

TEST(StreamedBuckets, AnotherTypeOrOperationIsAnotherBucket) {
  Ranks all({.ranks = 2});
  const auto results = all.run([](Member& me) {
    std::vector<float> sum(4, 1.0F), most(4, static_cast<float>(me.rank()));
    std::vector<std::int32_t> whole(4, 2);
    Buckets buckets(me);
    buckets.add(std::span(sum)).throw_if_error();
    buckets.add(std::span(most), ReduceOp::max).throw_if_error();
    buckets.add(std::span(whole)).throw_if_error();
    buckets.wait().throw_if_error();
    EXPECT_EQ(sum, std::vector<float>(4, 2.0F));
    EXPECT_EQ(most, std::vector<float>(4, 1.0F));
    EXPECT_EQ(whole, std::vector<std::int32_t>(4, 4));
    EXPECT_EQ(buckets.calls(), 3U);
    return Status();
  });
  for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
}

TEST(StreamedBuckets, OtherShapesAreAMismatch) {
  Ranks all({.ranks = 2});
  const auto results = all.run([](Member& me) {
    std::vector<float> a(me.rank() == 0 ? 3 : 5, 1.0F), b(me.rank() == 0 ? 5 : 3, 1.0F);
    Buckets buckets(me);
    buckets.add(std::span(a)).throw_if_error();
    buckets.add(std::span(b)).throw_if_error();
    const Status status = buckets.wait();
    EXPECT_EQ(a.front(), 1.0F);
    EXPECT_TRUE(buckets.wait().ok()) << "nothing is left";
    return status;
  });
  for (const Status& status : results) {
    EXPECT_EQ(name_of(status.code()), name_of(Code::mismatch)) << status.text();
  }
}

TEST(StreamedBuckets, ANullTensorIsRefusedAndTheOthersGoOn) {
  Ranks all({.ranks = 2});
  const auto results = all.run([](Member& me) {
    std::vector<float> fine(4, 1.0F);
    Buckets buckets(me);
    buckets.add(std::span(fine)).throw_if_error();
    const Status status = buckets.add(std::span<float>(static_cast<float*>(nullptr), 3));
    buckets.wait().throw_if_error();
    EXPECT_EQ(fine, std::vector<float>(4, 2.0F));
    return status;
  });
  for (const Status& status : results) {
    EXPECT_EQ(status.text(), "tensor is null; 3 elements are needed");
  }
}

// A rank that leaves with a bucket that it has not started ends the others' wait.
TEST(StreamedBuckets, WhatIsWrongIsToldWhereItIsAdded) {
  Ranks one({.ranks = 1});
  Member& me = *one.members()[0];
  Buckets buckets(me);
  std::vector<float> x(4, 1.0F);
  ASSERT_TRUE(buckets.add(std::span(x)).ok());
  EXPECT_NE(buckets.add(std::span(x), ReduceOp::band).text().find("operation is band"),
            std::string::npos);
  EXPECT_EQ(buckets.add(std::span(x), static_cast<ReduceOp>(99)).text(),
            "operation is 99; allowed are 0 to " + std::to_string(kReduceOps - 1));
  EXPECT_NE(buckets.add(std::span(x.data(), std::size_t{1} << 62)).text().find("count is "),
            std::string::npos);
  EXPECT_NE(
      buckets.add(std::span(x), ReduceOp::sum, {.segments = -1}).text().find("segments is -1"),
      std::string::npos);
  EXPECT_TRUE(buckets.wait().ok());
  EXPECT_EQ(buckets.calls(), 1U);
}

TEST(StreamedBuckets, ARankThatLeavesIsLost) {
  Ranks all({.ranks = 2, .timeout = std::chrono::seconds(60)});
  const auto results = all.run([&](Member& me) {
    std::vector<float> some(4, 1.0F);
    {
      Buckets buckets(me);
      buckets.add(std::span(some)).throw_if_error();
      if (me.rank() == 0) return buckets.wait();
    }
    all.drop(1);
    return Status();
  });
  EXPECT_EQ(name_of(results[0].code()), name_of(Code::rank_lost)) << results[0].text();
}

}  // namespace
}  // namespace rankine
