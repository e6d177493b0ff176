// Bucket fusion gives the same results as one all-reduce per tensor, for any tensor sizes. If
// buffers of ranks overlap, the call is a mismatch error.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/buckets.h"
#include "engine/api/team.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

// Element i of tensor t at rank r.
std::int64_t value(Rank r, std::size_t t, std::size_t i) {
  return static_cast<std::int64_t>(1000 * t + 7 * i) * (r + 1);
}

// Reduces tensors of these sizes among `ranks` ranks; returns rank 0's number of all-reduces.
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

// Rank r passes tensors of the sizes `sizes[r]`; returns the status of each rank's call.
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
  // The cases: packed into one bucket, alone in a bucket, empty tensors, and a difference in the
  // last of three tensors.
  for (const auto& sizes : {std::vector<Sizes>{{3, 5}, {5, 3}},
                            {{3, 5}, {3, 5}, {8}},
                            {{3, 0, 5}, {3, 5, 0}},
                            {{9, 9, 2, 2}, {9, 9, 1, 3}}}) {
    for (const Status& status : reduce_different(sizes, 40)) {
      EXPECT_EQ(name_of(status.code()), name_of(Code::mismatch)) << status.text();
      EXPECT_NE(status.text().find("tensors in buckets: a shape"), std::string::npos)
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
    Buckets buckets(me, 16);  // the first tensor fills a bucket alone
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
      // The victim's tensors claim to be larger than any memory; the call never reads their
      // elements.
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

// Adds tensors of these sizes one by one, in two rounds; returns the number of all-reduces.
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
  // The rounds need more calls than may be in flight.
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

// Rank 1 leaves with a bucket that it has not started. Rank 0's wait ends with an error.
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

// A forbidden overlap of ranks' buffers is an error on every transport, in the first call of a kind
// and in later calls. Allowed overlaps work.

namespace {

constexpr int kRanks = 5;

// In calls after the first, ranks store to the shared memory before they detect the overlap. The
// thread sanitizer forbids such stores.
#if defined(__SANITIZE_THREAD__)
constexpr bool kMayRace = false;
#else
constexpr bool kMayRace = true;
#endif

struct How {
  Collective collective = Collective::all_reduce;
  std::string_view algorithm = "";
  Transport transport = Transport::direct;
  std::size_t count = 4;
  bool met_before = false;  // by a good call of the same kind
};

void PrintTo(const How& how, std::ostream* out) {
  *out << name_of(how.collective) << " " << (how.algorithm.empty() ? "chosen" : how.algorithm)
       << ", " << name_of(how.transport) << ", count " << how.count
       << (how.met_before ? ", later" : ", first");
}

// Buffers of one rank, large enough for every collective of this file.
struct Own {
  std::vector<std::int32_t> in, out;
  explicit Own(std::size_t count) : in(count * kRanks, 1), out(count * kRanks, 0) {}
};

class Sharing : public testing::TestWithParam<How> {
 protected:
  // `change` edits each rank's call; all ranks make the edited call, after good calls if
  // How::met_before is set. Every failing rank must get the same mismatch text.
  template <class Change>
  std::vector<Status> call(const Change& change) {
    const How& how = GetParam();
    std::vector<Own> own(kRanks, Own(how.count));
    Ranks all({.ranks = kRanks, .timeout = std::chrono::milliseconds(60'000), .tuned = false});
    const auto results = all.run([&](Member& me) {
      Own& mine = own[static_cast<std::size_t>(me.rank())];
      Call call{.collective = how.collective,
                .in = mine.in.data(),
                .out = mine.out.data(),
                .count = how.count,
                .type = DataType::i32,
                .options = {.algorithm = how.algorithm, .transport = how.transport}};
      // Another rank may already be in the next call, and end the communicator, while this rank is
      // still in a good call.
      for (int i = how.met_before ? 2 : 0; i > 0; --i) {
        if (const Status status = me.call(call); !status.ok()) return status;
      }
      change(me.rank(), call, own);
      const Status status = me.call(call);
      if (status.ok() && wanted != 0) {
        const auto* const out = static_cast<const std::int32_t*>(call.out);
        for (std::size_t i = 0; i < how.count; ++i) EXPECT_EQ(out[i], wanted) << me.rank();
      }
      return status;
    });
    std::string text;
    for (const Status& status : results) {
      if (status.ok()) continue;
      EXPECT_EQ(name_of(status.code()), name_of(Code::mismatch)) << status.text();
      EXPECT_NE(status.text().find("overlap; an out buffer must not overlap"), std::string::npos)
          << status.text();
      if (text.empty()) text = status.text();
      EXPECT_EQ(status.text(), text);
    }
    EXPECT_EQ(name_of(all.communicator().health().code()), name_of(Code::mismatch));
    return results;
  }
  // In a first call all ranks must fail. In a later call the ranks of `later` must fail; ranks that
  // waited for them may fail.
  void expect_told(const std::vector<Status>& results, const std::vector<Rank>& later) {
    for (Rank r = 0; r < kRanks; ++r) {
      const bool surely =
          !GetParam().met_before || std::find(later.begin(), later.end(), r) != later.end();
      EXPECT_FALSE(surely && results[static_cast<std::size_t>(r)].ok()) << "rank " << r;
    }
  }

  std::int32_t wanted = 0;  // expected in the outputs of ranks that succeed; 0: any value
};

const std::vector<Rank> kAll = {0, 1, 2, 3, 4};

// In these collectives every rank needs data of every other rank.
class AllHearFromAll : public Sharing {};

TEST_P(AllHearFromAll, OneOutputForAll) {
  if (GetParam().met_before && !kMayRace) GTEST_SKIP();
  const auto results =
      call([](Rank, Call& call, std::vector<Own>& own) { call.out = own[0].out.data(); });
  expect_told(results, kAll);
}

TEST_P(AllHearFromAll, OneBufferInPlaceForAll) {
  if (GetParam().met_before && !kMayRace) GTEST_SKIP();
  const auto results = call([](Rank r, Call& call, std::vector<Own>& own) {
    // If the collective has one block per rank, each rank uses its block of the shared buffer.
    std::int32_t* const all = own[0].out.data();
    std::int32_t* const block = all + static_cast<std::size_t>(r) * call.count;
    call.in = call.collective == Collective::all_gather ? block : all;
    call.out = call.collective == Collective::reduce_scatter ? block : all;
  });
  // In a small reduce-scatter, rank 0's output starts at the address of all inputs. Rank 0 learns
  // of no overlapping output, but the other ranks learn of rank 0's output.
  expect_told(results, {1, 2, 3, 4});
}

INSTANTIATE_TEST_SUITE_P(
    Calls, AllHearFromAll, testing::ValuesIn([] {
      std::vector<How> all;
      for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter,
                                          Collective::all_gather, Collective::all_to_all}) {
        for (const bool met_before : {false, true}) {
          for (const Transport transport :
               {Transport::direct, Transport::mailbox, Transport::board}) {
            all.push_back({collective, "", transport, 4, met_before});
          }
          // Counts beyond the size of a slot: data move by address.
          all.push_back({collective, "", Transport::direct, 20'000, met_before});
          all.push_back({collective, "", Transport::mailbox, 20'000, met_before});
        }
      }
      for (const std::string_view algorithm : {"ring", "recursive_doubling", "double_tree"}) {
        for (const Transport transport : {Transport::direct, Transport::mailbox}) {
          all.push_back({Collective::all_reduce, algorithm, transport, 64, false});
          all.push_back({Collective::all_reduce, algorithm, transport, 64, true});
        }
      }
      return all;
    }()));

// Only ranks 1 and 3 share memory, and they exchange data with each other.
class TwoThatTalk : public Sharing {};

TEST_P(TwoThatTalk, OneOutput) {
  if (GetParam().met_before && !kMayRace) GTEST_SKIP();
  wanted = kRanks;
  const auto results = call([](Rank r, Call& call, std::vector<Own>& own) {
    if (r == 3) call.out = own[1].out.data();
  });
  expect_told(results, {1, 3});
}

TEST_P(TwoThatTalk, TheInputOfAnother) {
  if (GetParam().met_before && !kMayRace) GTEST_SKIP();
  // In a later call rank 3 may get its sum in the shared buffer before the other ranks have data of
  // rank 1. Before the other ranks get the error, they add up rank 3's values.
  if (!GetParam().met_before) wanted = kRanks;
  const auto results = call([](Rank r, Call& call, std::vector<Own>& own) {
    if (r == 3) call.out = own[1].in.data();
  });
  expect_told(results, {1});
}

INSTANTIATE_TEST_SUITE_P(
    Calls, TwoThatTalk,
    testing::Values(
        How{.transport = Transport::board}, How{.transport = Transport::mailbox},
        How{.transport = Transport::direct}, How{.count = 9'000},
        How{.transport = Transport::board, .met_before = true},
        How{.algorithm = "direct_one_shot", .transport = Transport::mailbox, .met_before = true},
        How{.algorithm = "direct_one_shot", .met_before = true},
        How{.algorithm = "direct_two_shot", .count = 9'000, .met_before = true}));

// Partial overlaps, also between ranks that exchange no data: the first call always detects them.
class AnyTwo : public Sharing {};

TEST_P(AnyTwo, InPart) {
  if (GetParam().met_before && !kMayRace) GTEST_SKIP();
  const auto results = call([](Rank r, Call& call, std::vector<Own>& own) {
    // One element of rank 2's output overlaps rank 0's output.
    if (r == 0) call.out = own[2].out.data() + call.count - 1;
    if (r == 2) call.out = own[2].out.data();
  });
  expect_told(results, {0, 2});
}

TEST_P(AnyTwo, InputInPart) {
  if (GetParam().met_before && !kMayRace) GTEST_SKIP();
  const auto results = call([](Rank r, Call& call, std::vector<Own>& own) {
    if (r == 0) call.out = own[2].in.data() + call.count - 1;
  });
  expect_told(results, {0, 2});
}

INSTANTIATE_TEST_SUITE_P(
    Calls, AnyTwo,
    testing::Values(How{.transport = Transport::board}, How{.transport = Transport::mailbox},
                    How{.transport = Transport::direct}, How{.count = 9'000},
                    How{.algorithm = "ring", .count = 40},
                    How{.algorithm = "ring", .transport = Transport::mailbox, .count = 40},
                    How{.algorithm = "direct_two_shot", .count = 9'000, .met_before = true}));

TEST(Sharing, IsFoundInTheFirstCallAfterAQuestion) {
  std::vector<std::int32_t> out(4);
  std::vector<std::vector<std::int32_t>> in(kRanks, std::vector<std::int32_t>(4, 1));
  Ranks all({.ranks = kRanks, .tuned = false});
  for (const Status& status : all.run([&](Member& me) {
         const Rank r = me.rank();
         // In a ring of five, 0 and 1, and 3 and 4 are neighbours, but 0 and 2 are not.
         std::vector<std::int32_t> mine(4);
         const Call call{.in = in[static_cast<std::size_t>(r)].data(),
                         .out = r == 0 || r == 2 ? out.data() : mine.data(),
                         .count = 4,
                         .type = DataType::i32,
                         .options = {.algorithm = "ring"}};
         EXPECT_TRUE(me.plan_of(call).ok());
         return me.call(call);
       })) {
    EXPECT_EQ(name_of(status.code()), name_of(Code::mismatch)) << status.text();
    EXPECT_NE(status.text().find("overlap"), std::string::npos) << status.text();
  }
}

// --- Allowed overlaps

// Makes the call of `call_of` three times and expects success.
template <class CallOf>
void expect_success(int ranks, const CallOf& call_of) {
  Ranks all({.ranks = ranks, .tuned = false});
  for (const Status& status : all.run([&](Member& me) {
         for (int i = 0; i < 3; ++i) me.call(call_of(me.rank())).throw_if_error();
         return Status();
       })) {
    EXPECT_TRUE(status.ok()) << status.text();
  }
}

TEST(NotSharing, OneInputForAll) {
  const std::vector<std::int32_t> in(300 * kRanks, 3);
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter,
                                      Collective::all_gather, Collective::all_to_all}) {
    for (const std::size_t count : {1, 300}) {
      for (const auto transport : {std::optional<Transport>(), std::optional(Transport::mailbox),
                                   std::optional(Transport::direct)}) {
        std::vector<std::vector<std::int32_t>> out(kRanks,
                                                   std::vector<std::int32_t>(count * kRanks));
        expect_success(kRanks, [&](Rank r) {
          return Call{.collective = collective,
                      .in = in.data(),
                      .out = out[static_cast<std::size_t>(r)].data(),
                      .count = count,
                      .type = DataType::i32,
                      .options = {.transport = transport}};
        });
        EXPECT_EQ(out[2][0], reduces(collective) ? 3 * kRanks : 3);
      }
    }
  }
}

TEST(NotSharing, OutputsSideBySide) {
  // Alternate elements of one line, and alternate blocks of one vector.
  for (const std::size_t count : {1, 5, 3'000}) {
    for (const auto transport : {std::optional<Transport>(), std::optional(Transport::mailbox),
                                 std::optional(Transport::direct)}) {
      std::vector<std::int32_t> both(2 * kRanks * count, 1);
      expect_success(kRanks, [&](Rank r) {
        const auto at = static_cast<std::size_t>(r) * 2 * count;
        return Call{.in = both.data() + at,
                    .out = both.data() + at + count,
                    .count = count,
                    .type = DataType::i32,
                    .options = {.transport = transport}};
      });
      EXPECT_EQ(both[count], kRanks);
    }
  }
}

TEST(NotSharing, BuffersThatACallDoesNotUse) {
  for (const std::size_t count : {1, 3'000}) {
    std::vector<std::int32_t> dummy(count * kRanks), result(count * kRanks), in(count * kRanks, 1);
    // On ranks without a result `out` may be any pointer, also another rank's input or output.
    for (const Collective collective : {Collective::reduce, Collective::gather}) {
      for (std::int32_t* const unused : {dummy.data(), in.data(), result.data()}) {
        expect_success(kRanks, [&](Rank r) {
          return Call{.collective = collective,
                      .in = in.data(),
                      .out = r == 1 ? result.data() : unused,
                      .count = count,
                      .type = DataType::i32,
                      .root = 1};
        });
      }
    }
    std::vector<std::vector<std::int32_t>> out(kRanks, std::vector<std::int32_t>(count));
    expect_success(kRanks, [&](Rank r) {
      return Call{.collective = Collective::scatter,
                  .in = r == 1 ? in.data() : out[1].data(),  // other ranks do not use it
                  .out = out[static_cast<std::size_t>(r)].data(),
                  .count = count,
                  .type = DataType::i32,
                  .root = 1};
    });
    // Ranks that neither send nor receive may pass any buffer.
    expect_success(kRanks, [&](Rank r) {
      auto* const data = r == 0 || r == 3 ? out[static_cast<std::size_t>(r)].data() : dummy.data();
      return Call{.collective = Collective::send_recv,
                  .in = data,
                  .out = data,
                  .count = count,
                  .type = DataType::i32,
                  .root = 0,
                  .peer = 3};
    });
  }
  // A count of 0 with one address for all buffers.
  std::int32_t word = 0;
  expect_success(kRanks, [&](Rank) {
    return Call{.in = &word, .out = &word, .count = 0, .type = DataType::i32};
  });
}

TEST(NotSharing, MemoryThatARankHasGivenBack) {
  // The root of a small broadcast has already returned when the last rank calls with the same
  // memory.
  std::vector<std::int32_t> memory(2, 7), others(2);
  Ranks all({.ranks = 2, .tuned = false});
  for (int i = 0; i < 3; ++i) {
    for (const Rank r : {0, 1}) {  // one after the other
      if (r == 1) std::fill(memory.begin(), memory.end(), 0);
      const Status status = all.members()[static_cast<std::size_t>(r)]->broadcast(
          std::span(memory), 0, {.transport = Transport::mailbox});
      EXPECT_TRUE(status.ok()) << status.text();
    }
    EXPECT_EQ(memory[1], 7);
  }
}

}  // namespace
}  // namespace rankine
