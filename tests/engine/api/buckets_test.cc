// Bucket fusion gives the same results as one all-reduce per tensor, for any tensor sizes. If
// buffers of ranks overlap where they may, calls work. (Forbidden overlaps are fault 32 of
// engine/faults.) Packed sums stay within their bound.

#include "engine/api/buckets.h"
#include "engine/api/quantised.h"
#include "engine/base/numbers.h"
#include "tests/engine/api/ranks.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using Sizes = std::vector<std::size_t>;

// Element i of tensor t at rank r.
std::int64_t value(Rank r, std::size_t t, std::size_t i) {
  return static_cast<std::int64_t>(1000 * t + 7 * i) * (r + 1);
}

// Reduces tensors of these sizes twice, all at once or one by one; returns rank 0's number of
// calls.
std::size_t calls_of(int ranks, const Sizes& sizes, std::size_t bucket_bytes, bool one_by_one) {
  std::size_t calls = 0;
  expect_ranks_succeed({.ranks = ranks}, [&](Member& me) {
    Buckets buckets(me, bucket_bytes);
    for (int step = 0; step < 2; ++step) {
      std::vector<std::vector<std::int64_t>> tensors;
      for (std::size_t t = 0; t < sizes.size(); ++t) {
        tensors.emplace_back(sizes[t]);
        for (std::size_t i = 0; i < sizes[t]; ++i) tensors[t][i] = value(me.rank(), t, i);
      }
      const std::vector<std::span<std::int64_t>> spans(tensors.begin(), tensors.end());
      if (one_by_one) {
        for (const auto tensor : spans) buckets.add(tensor).throw_if_error();
        buckets.wait().throw_if_error();
      } else {
        buckets.all_reduce(std::span<const std::span<std::int64_t>>(spans)).throw_if_error();
      }
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
  return calls;
}

TEST(Buckets, HoldTensorsUntilTheNextOneDoesNotFit) {
  struct Case {
    int ranks;
    Sizes sizes;
    std::size_t bytes, calls;
  };
  for (const auto& [ranks, sizes, bytes, calls] : {
           Case{3, {1, 2, 3, 5, 7}, 1000, 1}, Case{2, {4, 6, 7, 3, 3, 3}, 80, 3},
           Case{4, {2, 100, 2}, 80, 3},  // a tensor larger than a bucket goes alone
           Case{2, {100}, 8, 1}, Case{2, {1, 1, 1}, 1, 3}, Case{2, {}, 80, 0},
           Case{2, {0, 5, 0}, 80, 1},
           Case{2, Sizes(50, 9), 80, 50}  // more calls than may be in flight
       }) {
    EXPECT_EQ(calls_of(ranks, sizes, bytes, false), 2 * calls);
    EXPECT_EQ(calls_of(ranks, sizes, bytes, true), 2 * calls);
  }
}

// A consumer begins with the first tensors while later ones are under way.
TEST(Buckets, AreWaitedForInTheOrderOfTheirTensors) {
  for (const std::size_t together : {1, 2}) {  // tensors of a bucket
    std::latch used(1);
    expect_ranks_succeed({.ranks = 2}, [&](Member& me) {
      std::vector<std::vector<float>> blocks(2 * together, std::vector<float>(4, 1));
      Buckets buckets(me, together * 4 * sizeof(float));
      const auto add_bucket = [&](std::size_t first) {
        for (std::size_t i = first; i < first + together; ++i) {
          buckets.add(std::span(blocks[i])).throw_if_error();
        }
      };
      add_bucket(0);
      EXPECT_EQ(buckets.calls(), 1U) << "a full bucket starts at once";
      if (me.rank() == 0) {
        buckets.wait_for(together).throw_if_error();
        used.wait();
      }
      add_bucket(together);
      buckets.wait_for(together).throw_if_error();
      if (me.rank() == 1) used.count_down();
      return buckets.wait();
    });
  }
  for (const std::size_t bytes : {std::size_t{1}, 3 * sizeof(float), 4 * sizeof(float)}) {
    expect_ranks_succeed({.ranks = 2}, [bytes](Member& me) {
      Buckets buckets(me, bytes);
      for (int step = 0; step < 2; ++step) {
        std::vector<std::vector<float>> blocks(9);
        for (std::size_t i = 0; i < blocks.size(); ++i) {
          blocks[i].assign(i == 4 ? 5 : 1, static_cast<float>(i));
          if (i == 7 && me.rank() == 0) {
            buckets.add_unused(std::span(blocks[i])).throw_if_error();
          } else {
            buckets.add(std::span(blocks[i])).throw_if_error();
          }
        }
        expect_refused(buckets.wait_for(10), {"tensors is 10; allowed are up to 9"});
        const std::size_t calls = buckets.calls();
        for (const std::size_t n : {0, 1, 2, 6, 6, 8, 9}) {
          buckets.wait_for(n).throw_if_error();
          EXPECT_TRUE(n == 9 || buckets.calls() == calls)
              << "only the last tensor may be in a bucket";
          for (std::size_t i = 0; i < n; ++i) {
            EXPECT_EQ(blocks[i].back(), static_cast<float>(i == 7 ? i : 2 * i)) << n;
          }
        }
        buckets.wait().throw_if_error();
        expect_refused(buckets.wait_for(1), {"tensors is 1; allowed are up to 0"});
      }
      return Status();
    });
  }
}

// Rank r passes tensors of the sizes `sizes[r]`; returns the status of each rank's call.
std::vector<Status> reduce_different(const std::vector<Sizes>& sizes, bool one_by_one,
                                     std::size_t bytes_of_rank_1 = 40) {
  const int ranks = static_cast<int>(sizes.size());
  Ranks all({.ranks = ranks});
  return all.run([&](Member& me) {
    std::vector<std::vector<float>> tensors;
    for (const std::size_t n : sizes[static_cast<std::size_t>(me.rank())]) {
      tensors.emplace_back(n, 1.0F);
    }
    const std::vector<std::span<float>> spans(tensors.begin(), tensors.end());
    Buckets buckets(me, me.rank() == 1 ? bytes_of_rank_1 : 40);
    Status status;
    if (one_by_one) {
      for (const auto tensor : spans) static_cast<void>(buckets.add(tensor));
      status = buckets.wait();
      EXPECT_TRUE(buckets.wait().ok()) << "nothing is left";
    } else {
      status = buckets.all_reduce(std::span<const std::span<float>>(spans));
    }
    for (const auto& tensor : tensors) {
      if (one_by_one && !status.ok()) continue;  // full buckets have been sent before
      EXPECT_EQ(tensor, std::vector<float>(tensor.size(), status.ok() ? float(ranks) : 1.0F));
    }
    return status;
  });
}

TEST(Buckets, OtherShapesOfTheSameSizeAreAMismatch) {
  // Packed into one bucket, alone in a bucket, empty tensors, and a difference in the last tensors.
  for (const auto& sizes : {std::vector<Sizes>{{3, 5}, {5, 3}},
                            {{3, 5}, {3, 5}, {8}},
                            {{3, 0, 5}, {3, 5, 0}},
                            {{9, 9, 2, 2}, {9, 9, 1, 3}}}) {
    expect_all(reduce_different(sizes, false), Code::mismatch, {"tensors in buckets: a shape"});
  }
  expect_all(reduce_different({{3, 5}, {5, 3}}, true), Code::mismatch);
  for (const bool one_by_one : {false, true}) {
    expect_all(reduce_different({{3, 5}, {3, 5}}, one_by_one, 80), Code::mismatch);
  }
  expect_ok(reduce_different({{3, 5, 9}, {3, 5, 9}}, false));
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
      expect_words(status, {"buckets of rank"});
    }
  }
}

// Tensors of other types and operations take other buckets; an unused tensor brings zeros.
TEST(Buckets, HaveTensorsOfOneTypeAndOperation) {
  expect_ranks_succeed({.ranks = 3}, [](Member& me) {
    std::vector<float> sum(4, 1.0F), unused(3, 7.0F);
    std::vector<std::int32_t> whole(4, 2), most(4, me.rank());
    Buckets buckets(me);
    buckets.add(std::span(sum)).throw_if_error();
    if (me.rank() == 1) {
      buckets.add_unused(std::span(unused)).throw_if_error();
    } else {
      buckets.add(std::span(unused)).throw_if_error();
    }
    buckets.add(std::span(whole)).throw_if_error();
    buckets.add(std::span(most), ReduceOp::max).throw_if_error();
    buckets.wait().throw_if_error();
    EXPECT_EQ(sum, std::vector<float>(4, 3.0F));
    EXPECT_EQ(unused, std::vector<float>(3, 14.0F));
    EXPECT_EQ(most, std::vector<std::int32_t>(4, 2));
    EXPECT_EQ(whole, std::vector<std::int32_t>(4, 6));
    EXPECT_EQ(buckets.calls(), 3U);
    return Status();
  });
}

// A caller that fills more waits for the oldest.
TEST(Buckets, AreFewUnderWay) {
  expect_ranks_succeed({.ranks = 2}, [](Member& me) {
    std::vector<std::vector<float>> tensors(12, std::vector<float>(1, 1.0F));
    Buckets buckets(me, 2 * sizeof(float));
    for (auto& tensor : tensors) buckets.add(std::span(tensor)).throw_if_error();
    EXPECT_EQ(tensors[3].front(), 2.0F) << "four of six buckets may be under way";
    return buckets.wait();
  });
}

TEST(Buckets, RefuseATensorAndGoOn) {
  Ranks one({.ranks = 1});
  Member& me = *one.members()[0];
  Buckets buckets(me, 16);  // the first tensor fills a bucket alone
  std::vector<float> x(4, 1.0F);
  const std::span<float> fine(x), null(static_cast<float*>(nullptr), 3);
  const std::vector<std::span<float>> tensors = {fine, null};
  expect_refused(buckets.all_reduce(std::span<const std::span<float>>(tensors)),
                 {"tensors[1] is null"});
  EXPECT_EQ(buckets.calls(), 0U);
  EXPECT_TRUE(buckets.add(fine).ok());
  expect_refused(buckets.add(null), {"tensor is null; 3 elements are needed"});
  expect_refused(buckets.add(fine, ReduceOp::band), {"operation is band"});
  expect_refused(buckets.add(fine, static_cast<ReduceOp>(99)), {"operation is 99; allowed are 0"});
  expect_refused(buckets.add(std::span(x.data(), std::size_t{1} << 62)), {"count is "});
  expect_refused(buckets.add(fine, ReduceOp::sum, {.segments = -1}), {"segments is -1"});
  expect_refused(buckets.add_unused(fine, ReduceOp::max), {"op is max"});
  const Epilogue epilogue;
  expect_refused(buckets.add(fine, ReduceOp::sum, {.epilogue = &epilogue}), {"epilogue is given"});
  EXPECT_TRUE(buckets.wait().ok());
  EXPECT_EQ(buckets.calls(), 1U);
}

// Rank 1 leaves with a bucket that it has not started. Rank 0's wait ends with an error.
TEST(Buckets, ARankThatLeavesIsLost) {
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

// Overlaps of ranks' buffers.

constexpr int kRanks = 5;

TEST(Sharing, IsFoundInTheFirstCallAfterAQuestion) {
  std::vector<std::int32_t> out(4);
  std::vector<std::vector<std::int32_t>> in(kRanks, std::vector<std::int32_t>(4, 1));
  Ranks all({.ranks = kRanks, .tuned = false});
  expect_all(all.run([&](Member& me) {
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
  }),
             Code::mismatch, {"overlap; an out buffer must not overlap"});
}

// --- Allowed overlaps

// Makes the call of `call_of` three times and expects success.
template <class CallOf>
void expect_success(int ranks, const CallOf& call_of) {
  expect_ranks_succeed({.ranks = ranks, .tuned = false}, [&](Member& me) {
    for (int i = 0; i < 3; ++i) me.call(call_of(me.rank())).throw_if_error();
    return Status();
  });
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

// Sums of packed floats.

// Element i of rank r: blocks of 32 have magnitudes from 2^-9 to 2^9.
float quantised_value(Rank r, std::size_t i) {
  const std::uint64_t bits = splitmix((i * 64 + static_cast<std::uint64_t>(r)) * kSplitMixStep);
  const auto part = static_cast<float>(static_cast<std::int64_t>(bits) >> 11) * 0x1p-52F;
  return std::ldexp(part, static_cast<int>(i / 32 % 19) - 9);
}

// The largest errors of a call on such data, over the bounds of i8 and of the type that travels.
// All ranks get the bits of rank 0.
struct Errors {
  double over_own = 0, over_i8 = 0;
};
template <class T>
Errors errors_of(int ranks, std::size_t count, const QuantisedSum::Options& options) {
  std::vector<std::vector<T>> ins(static_cast<std::size_t>(ranks)), outs(ins.size());
  for (std::size_t r = 0; r < ins.size(); ++r) {
    for (std::size_t i = 0; i < count; ++i) {
      ins[r].push_back(T(quantised_value(static_cast<Rank>(r), i)));
    }
    outs[r].resize(count);
  }
  Errors errors;
  expect_ranks_succeed({.ranks = ranks}, [&](Member& me) {
    const auto r = static_cast<std::size_t>(me.rank());
    QuantisedSum sum(me, options);
    const Status status = sum.all_reduce(std::span<const T>(ins[r]), std::span(outs[r]));
    if (!status.ok() || me.rank() != 0) return status;
    for (std::size_t i = 0; i < count; ++i) {
      double exact = 0;
      std::vector<double> peaks(ins.size());
      for (std::size_t k = 0; k < ins.size(); ++k) {
        exact += static_cast<float>(ins[k][i]);
        const std::size_t first = i / options.block * options.block;
        for (std::size_t j = first; j < std::min(count, first + options.block); ++j) {
          peaks[k] = std::max<double>(peaks[k], std::abs(static_cast<float>(ins[k][j])));
        }
      }
      constexpr DataType kType = data_type_of<T>;
      const double error = std::abs(static_cast<float>(outs[0][i]) - exact);
      const auto over = [&](DataType as) {
        return error / QuantisedSum::largest_error(as, kType, peaks);
      };
      errors.over_own = std::max(errors.over_own, over(options.as));
      errors.over_i8 = std::max(errors.over_i8, over(DataType::i8));
    }
    return status;
  });
  for (const auto& out : outs) {
    EXPECT_TRUE(count == 0 || std::memcmp(out.data(), outs[0].data(), count * sizeof(T)) == 0);
  }
  return errors;
}

template <class T>
class QuantisedSums : public testing::Test {};
using Packable = testing::Types<float, Half, BFloat16>;
TYPED_TEST_SUITE(QuantisedSums, Packable);

TYPED_TEST(QuantisedSums, StayWithinTheirBoundWithEqualBits) {
  for (const DataType as : {DataType::i8, DataType::f8e4m3}) {
    for (const int ranks : {1, 2, 3, 5}) {
      for (const std::size_t count : std::vector<std::size_t>{0, 1, 31, 1000, 4099}) {
        for (const std::size_t block : std::vector<std::size_t>{1, 32, 100}) {
          const Errors errors = errors_of<TypeParam>(ranks, count, {.as = as, .block = block});
          EXPECT_LE(errors.over_own, 1)
              << name_of(as) << ", ranks " << ranks << ", count " << count << ", block " << block;
          if (count < 1000 || block == 1) continue;
          // The bound is no guess: errors come near it, and coarser bytes exceed the bound of i8.
          EXPECT_GE(errors.over_own, 0.2) << name_of(as) << ", ranks " << ranks;
          EXPECT_EQ(errors.over_i8 > 1, as == DataType::f8e4m3) << "ranks " << ranks;
        }
      }
    }
  }
}

// Two ranks with peaks of 1, then of 0. Mutations: a bound without the roundings of f32, or without
// the steps of f16 near zero.
TEST(QuantisedSum, BoundsTheErrorByStepsAndRoundings) {
  const double half = 0.5 / 127, sum = 2 * (1 + half);
  EXPECT_NEAR(QuantisedSum::largest_error(DataType::i8, DataType::f32, std::vector{1.0, 1.0}),
              half * (2 + sum) + 10 * 0x1p-24 * sum * (1 + half), 1e-12);
  EXPECT_GE(QuantisedSum::largest_error(DataType::i8, DataType::f16, std::vector{0.0, 0.0}),
            0x1p-25);
}

TEST(QuantisedSum, ABlockWithoutAFiniteScaleIsNaNOnAllRanks) {
  expect_ranks_succeed({.ranks = 3}, [](Member& me) {
    std::vector<float> data(64, 1);
    if (me.rank() == 1) data[20] = std::numeric_limits<float>::infinity();
    if (me.rank() == 2) data[40] = std::numeric_limits<float>::quiet_NaN();
    data[60] = std::numeric_limits<float>::max() / 2;  // three of them exceed f32
    QuantisedSum sum(me, {.block = 16});
    const Status status = sum.all_reduce(std::span<const float>(data), std::span(data));
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (i >= 16) {
        EXPECT_TRUE(std::isnan(data[i])) << i;
      } else {
        EXPECT_NEAR(data[i], 3, 1e-5) << i;
      }
    }
    return status;
  });
}

TEST(QuantisedSum, RefusesOtherArgumentsAndOtherOptionsOnARank) {
  expect_ranks_succeed({.ranks = 2}, [](Member& me) {
    std::vector<float> data(8), shorter(7);
    std::vector<std::uint8_t> bytes(8);
    const std::span<float> out(data);
    const auto text_of = [&](QuantisedSum::Options options, std::span<const float> in) {
      return QuantisedSum(me, options).all_reduce(in, out).text();
    };
    EXPECT_EQ(text_of({.as = DataType::u8}, out), "as is u8; allowed are i8 and f8e4m3");
    EXPECT_EQ(text_of({.block = 0}, out), "block is 0; allowed are 1 to 65536");
    EXPECT_EQ(text_of({}, shorter), "in has 7 elements, out has 8; allowed are equal lengths");
    QuantisedSum sum(me);
    EXPECT_EQ(sum.all_reduce(bytes.data(), 8, bytes.data(), 8, DataType::u8).text(),
              "type is u8; allowed are f32, f16 and bf16");
    EXPECT_EQ(sum.all_reduce(nullptr, 8, data.data(), 8, DataType::f32).text(),
              "in is null; 8 elements are needed");
    // Shares have equal bytes with both types.
    const DataType as = me.rank() == 0 ? DataType::i8 : DataType::f8e4m3;
    const Status status = QuantisedSum(me, {.as = as}).all_reduce(std::span<const float>(out), out);
    EXPECT_EQ(status.code(), Code::mismatch) << status.text();
    return Status();
  });
}

}  // namespace
}  // namespace rankine
