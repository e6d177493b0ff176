// Epilogues: each row is finished once, and only when it is final, by every algorithm, transport
// and way of calling. Nothing else about a call changes. Wrong epilogues are refused.
#include "engine/api/epilogues.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/network.h"
#include "engine/api/split.h"
#include "engine/api/team.h"
#include "tests/engine/api/random_case.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kMostRanks = 3;
constexpr std::size_t kMostTokens = 64;
#else
constexpr int kMostRanks = 9;
constexpr std::size_t kMostTokens = 4096;
#endif

constexpr Collective kTakers[] = {Collective::all_reduce, Collective::reduce_scatter,
                                  Collective::all_gather};

// Sums of these values round, so every other order of additions gives other bits.
float element(Rank rank, std::size_t i) {
  const auto n = static_cast<std::uint32_t>((i + 1) * 2654435761U ^
                                            static_cast<std::size_t>(rank + 1) * 40503U);
  return (static_cast<float>(n % 20011) - 10005.0F) * (n % 3 == 0 ? 1.0F : 1e-3F);
}

// One rank's buffers of a call, filled anew for every call.
template <class T>
struct Buffers {
  std::vector<T> memory;
  Call call;
  std::size_t outputs = 0;  // elements

  // The buffers have the sizes of call.counts, or call.count if there are no counts.
  Buffers(const Member& me, Call proto, bool in_place) : call(proto) {
    const auto n = static_cast<std::size_t>(me.ranks()), r = static_cast<std::size_t>(me.rank());
    std::size_t all = n * proto.count, before = r * proto.count, own = proto.count;
    if (!proto.counts.empty()) {
      const auto begin = proto.counts.begin();
      const auto mine = begin + static_cast<std::ptrdiff_t>(r);
      own = *mine;
      before = std::accumulate(begin, mine, std::size_t{0});
      all = std::accumulate(begin, proto.counts.end(), std::size_t{0});
    }
    const bool gathers = proto.collective == Collective::all_gather;
    const bool scatters = proto.collective == Collective::reduce_scatter;
    const std::size_t inputs = scatters ? all : own;
    outputs = gathers ? all : own;
    memory.assign(inputs + outputs, T(-12345.0F));
    T* in = memory.data();
    T* out = memory.data() + inputs;
    if (in_place && gathers) in = out + before;
    if (in_place && scatters) out = in + before;
    if (in_place && !gathers && !scatters) in = out;
    for (std::size_t i = 0; i < inputs; ++i) in[i] = T(element(me.rank(), i));
    call.in = in;
    call.out = out;
    call.type = data_type_of<T>;
  }
  std::vector<std::byte> result() const {
    const auto* out = static_cast<const std::byte*>(call.out);
    return {out, out + outputs * sizeof(T)};
  }
};

// Makes the call with and without an epilogue; returns the difference, or an empty string.
template <class T>
std::string differs(Member& me, const Call& proto, std::size_t row_elements, bool in_place) {
  Buffers<T> plain(me, proto, in_place);
  const Status unfused = me.call(plain.call);
  Buffers<T> fused(me, proto, in_place);
  Witness witness(fused.outputs / row_elements, row_elements, sizeof(T));
  fused.call.options.epilogue = &witness.epilogue;
  const Status status = me.call(fused.call);
  // A transport or an algorithm that refuses the call must refuse it both times.
  if (status.code() != unfused.code()) return status.text() + " / " + unfused.text();
  if (!status.ok()) {
    return status.code() == Code::invalid_argument ? "" : status.text();
  }
  if (fused.result() != plain.result()) return "other bits than without";
  if (!witness.saw_each_once()) return "a row is finished never, or twice";
  if (!witness.saw(fused.call.out)) return "a row is finished before it is final";
  return {};
}

std::unique_ptr<Team> team_of(int ranks) {
  auto team = Team::create({.ranks = ranks, .timeout = std::chrono::minutes(4)});
  team.status().throw_if_error();
  return std::move(*team);
}

class Epilogues : public testing::TestWithParam<int> {};

// Every algorithm of the catalogue, every transport, in place and apart.
TEST_P(Epilogues, FinishEachRowOnceWhenItIsFinal) {
  const int ranks = GetParam();
  const auto team = team_of(ranks);
  struct Size {
    std::size_t count, row_elements;
  };
  for (const Algorithm& entry : catalogue()) {
    Params params;
    params.ranks = ranks;
    const bool takes =
        std::find(std::begin(kTakers), std::end(kTakers), entry.collective) != std::end(kTakers);
    if (!takes || entry.refusal(params)) continue;
    const Status status = team->run([&](Member& me) {
      for (const Size size : {Size{0, 7}, Size{105, 7}, Size{96, 96}, Size{6144, 512}}) {
        for (const std::optional<Transport> transport :
             {std::optional<Transport>(), std::optional(Transport::direct),
              std::optional(Transport::mailbox), std::optional(Transport::board)}) {
          for (const bool in_place : {false, true}) {
            const Call call{.collective = entry.collective,
                            .count = size.count,
                            .options = {.algorithm = entry.name, .transport = transport}};
            ASSERT_EQ(differs<float>(me, call, size.row_elements, in_place), "")
                << name_of(entry.collective) << " " << entry.name << ", N=" << ranks << ", "
                << size.count << " in rows of " << size.row_elements << ", transport "
                << (transport ? name_of(*transport) : "any") << (in_place ? ", in place" : "");
          }
        }
      }
    });
    ASSERT_TRUE(status.ok()) << entry.name << ": " << status.text();
    if (HasFatalFailure()) return;
  }
}

// The engine's default algorithm with small and large vectors and late ranks: borders of parts
// inside rows, pieces of large ops, and rows larger than a piece.
TEST_P(Epilogues, WaitForRanksThatAreLate) {
  const int ranks = GetParam();
  const auto team = team_of(ranks);
  struct Size {
    std::size_t rows, row_elements;
  };
  const Status status = team->run([&](Member& me) {
    int turn = 0;
    for (const Collective collective : kTakers) {
      for (const Size size : {Size{1, 4096}, Size{3, 4096}, Size{131, 1000}, Size{37, 4096},
                              Size{2, 50'000}, Size{100'000, 1}}) {
        for (const bool in_place : {false, true}) {
          if (++turn % ranks == me.rank()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
          const Call call{.collective = collective, .count = size.rows * size.row_elements};
          ASSERT_EQ(differs<BFloat16>(me, call, size.row_elements, in_place), "")
              << name_of(collective) << ", N=" << ranks << ", " << size.rows << " rows of "
              << size.row_elements << (in_place ? ", in place" : "");
        }
      }
    }
  });
  ASSERT_TRUE(status.ok()) << status.text();
}

TEST_P(Epilogues, TakeCountsOfWholeRows) {
  const int ranks = GetParam();
  const auto team = team_of(ranks);
  std::vector<std::size_t> counts;
  for (int r = 0; r < ranks; ++r) counts.push_back(static_cast<std::size_t>(r % 3) * 24);
  const Status status = team->run([&](Member& me) {
    for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather}) {
      const Call call{.collective = collective, .counts = counts};
      EXPECT_EQ(differs<float>(me, call, 12, false), "") << name_of(collective) << ", N=" << ranks;
      EXPECT_EQ(differs<double>(me, call, 24, true), "") << name_of(collective) << ", N=" << ranks;
    }
  });
  ASSERT_TRUE(status.ok()) << status.text();
}

// The owner of the data fetches nothing, so it stores a part of the data that other ranks would
// fetch. The receivers must finish rows that their own ops wrote only partly or not at all.
TEST_P(Epilogues, FinishWhatOthersStoreUnasked) {
  const int ranks = GetParam();
  const auto team = team_of(ranks);
  std::vector<std::size_t> counts(static_cast<std::size_t>(ranks));
  counts.back() = 60'000;
  const Status status = team->run([&](Member& me) {
    for (const std::size_t row_elements : {100U, 20'000U}) {
      for (const bool in_place : {false, true}) {
        const Call call{.collective = Collective::all_gather, .counts = counts};
        EXPECT_EQ(differs<float>(me, call, row_elements, in_place), "") << "N=" << ranks;
      }
    }
  });
  ASSERT_TRUE(status.ok()) << status.text();
}

// Types, operations and levels of order.
TEST_P(Epilogues, KeepBits) {
  const int ranks = GetParam();
  const auto team = team_of(ranks);
  const Status status = team->run([&](Member& me) {
    const auto expect_same = [&](auto zero, ReduceOp op, std::optional<Order> order) {
      for (const std::size_t rows : {2U, 9U, 700U}) {
        const Call call{.count = rows * 33, .op = op, .options = {.order = order}};
        EXPECT_EQ(differs<decltype(zero)>(me, call, 33, rows % 2 == 0), "")
            << name_of(data_type_of<decltype(zero)>) << " " << name_of(op) << ", N=" << ranks;
      }
    };
    expect_same(double{}, ReduceOp::avg, std::nullopt);
    expect_same(Half(0.0F), ReduceOp::avg, std::nullopt);
    expect_same(float{}, ReduceOp::max, std::nullopt);
    expect_same(std::int32_t{}, ReduceOp::sum, std::nullopt);
    expect_same(BFloat16(0.0F), ReduceOp::avg, Order::by_rank);
    for (const Order order : {Order::coherent, Order::repeatable, Order::by_rank,
                              Order::size_invariant, Order::group_invariant}) {
      expect_same(BFloat16(0.0F), ReduceOp::sum, order);
      expect_same(float{}, ReduceOp::sum, order);
    }
  });
  ASSERT_TRUE(status.ok()) << status.text();
}

// User operations and factors, in blocking, started and prepared calls.
TEST_P(Epilogues, GoWithEveryKindOfCall) {
  const int ranks = GetParam();
  const auto team = team_of(ranks);
  const Status status = team->run([&](Member& me) {
    constexpr std::size_t kRows = 60, kRow = 700;
    const auto add = [](std::span<const std::uint32_t> in, std::span<std::uint32_t> inout) {
      for (std::size_t i = 0; i < inout.size(); ++i) inout[i] += in[i];
    };
    const TypedUserOp<std::uint32_t> sum = user_op<std::uint32_t>(add);
    const auto total = static_cast<std::uint32_t>(ranks * (ranks + 1) / 2);
    std::vector<std::uint32_t> x(kRows * kRow);
    const auto check = [&](const auto& call) {
      std::fill(x.begin(), x.end(), static_cast<std::uint32_t>(me.rank() + 1));
      Witness witness(kRows, kRow, sizeof(x[0]));
      call(CallOptions{.epilogue = &witness.epilogue});
      EXPECT_TRUE(witness.saw_each_once());
      EXPECT_TRUE(witness.saw(x.data()));
      EXPECT_EQ(x.back(), total);
    };
    check([&](const CallOptions& o) { me.all_reduce(x, sum, o).throw_if_error(); });
    check([&](const CallOptions& o) { me.all_reduce(x, o).throw_if_error(); });
    check([&](const CallOptions& o) {
      me.all_reduce(x, PreMulSum{std::uint32_t{1}}, o).throw_if_error();
    });
    check([&](const CallOptions& o) {
      // A started call copies the epilogue. Another call is started behind it.
      Epilogue mine = *o.epilogue;
      CallOptions options = o;
      options.epilogue = &mine;
      Request first = me.async().all_reduce(x, sum, options).value();
      mine = {};
      std::vector<float> other(5, 1.0F);
      Request second = me.async().all_reduce(other).value();
      second.wait().throw_if_error();
      first.wait().throw_if_error();
    });
    // A prepared request with an epilogue, started three times. A request without an epilogue
    // finishes no rows.
    Witness witness(kRows, kRow, sizeof(x[0]));
    Request request = me.prepared().all_reduce(x, {.epilogue = &witness.epilogue}).value();
    Request without = me.prepared().all_reduce(x).value();
    for (int i = 1; i <= 3; ++i) {
      std::fill(x.begin(), x.end(), static_cast<std::uint32_t>(me.rank() + i));
      request.start().throw_if_error();
      request.wait().throw_if_error();
      EXPECT_TRUE(witness.saw(x.data()));
      EXPECT_TRUE(witness.saw_each(i));
      without.start().throw_if_error();
      without.wait().throw_if_error();
      EXPECT_TRUE(witness.saw_each(i));
    }
    // Planned while another call is in flight.
    Witness late(7, 11, sizeof(float));
    std::vector<float> y(77, 1.0F);
    request.start().throw_if_error();
    Request behind = me.async().all_reduce(y, {.epilogue = &late.epilogue}).value();
    behind.wait().throw_if_error();
    request.wait().throw_if_error();
    EXPECT_TRUE(late.saw_each_once());
    EXPECT_TRUE(late.saw(y.data()));
  });
  ASSERT_TRUE(status.ok()) << status.text();
}

INSTANTIATE_TEST_SUITE_P(Ranks, Epilogues, testing::Range(1, kMostRanks + 1));

// Splits along two axes at once, each with its epilogue.
TEST(Epilogue, IsSafeBesideOtherGroups) {
  const auto team = team_of(4);
  const Status status = team->run([&](Member& me) {
    const auto rows = me.split(me.rank() / 2, me.rank()).value();
    const auto columns = me.split(me.rank() % 2, me.rank()).value();
    constexpr std::size_t kRow = 512, kRows = 64;
    std::vector<float> a(kRow * kRows), b(kRow * kRows);
    for (int turn = 0; turn < 20; ++turn) {
      std::fill(a.begin(), a.end(), static_cast<float>(me.rank() + turn));
      std::fill(b.begin(), b.end(), static_cast<float>(me.rank() - turn));
      Witness in_rows(kRows, kRow, sizeof(float)), in_columns(kRows, kRow, sizeof(float));
      const Epilogue &one = in_rows.epilogue, &other = in_columns.epilogue;
      const auto start = [&](Member& group, std::vector<float>& x, const Epilogue& epilogue) {
        return group.async().all_reduce(x, {.epilogue = &epilogue}).value();
      };
      std::vector<Request> requests;
      if (me.rank() % 2 == 0) {
        requests.push_back(start(*rows, a, one));
        requests.push_back(start(*columns, b, other));
      } else {
        requests.push_back(start(*columns, b, other));
        requests.push_back(start(*rows, a, one));
      }
      wait_all(requests).throw_if_error();
      EXPECT_TRUE(in_rows.saw_each_once() && in_rows.saw(a.data()));
      EXPECT_TRUE(in_columns.saw_each_once() && in_columns.saw(b.data()));
      EXPECT_EQ(a[0], static_cast<float>(me.rank() / 2 * 4 + 1 + 2 * turn));
    }
    me.barrier().throw_if_error();
  });
  ASSERT_TRUE(status.ok()) << status.text();
}

TEST(Epilogue, RunsOnModelledNetworks) {
  const auto network = find_call_network("scale_out");
  ASSERT_TRUE(network.ok()) << network.status().text();
  Ranks ranks({.ranks = 4, .timeout = std::chrono::minutes(2), .network = *network});
  const auto results = ranks.run([&](Member& me) -> Status {
    const Call call{.count = 300};
    const std::string wrong = differs<float>(me, call, 30, true);
    if (!wrong.empty()) return Status(Code::system, wrong);
    Witness witness(10, 30, sizeof(float));
    std::vector<float> x(300, 1.0F);
    Request request = me.async().all_reduce(x, {.epilogue = &witness.epilogue}).value();
    request.wait().throw_if_error();
    return witness.saw_each_once() && witness.saw(x.data()) ? Status() : Status(Code::system, "");
  });
  for (const Status& one : results) EXPECT_TRUE(one.ok()) << one.text();
}

// The row of a token, before and after the epilogue, has the same bits with any number of tokens
// and at any position, below and above every threshold of size.
TEST(Epilogue, LeavesRowsTheSameAmongAnyNumberOfTokens) {
  constexpr std::size_t kRow = 4096;
  for (const int ranks : {2, 3, 4, 5, 6, 7, 8}) {
    const auto team = team_of(ranks);
    std::vector<std::size_t> many = {1, 2, 3, 7, 33, 130};
    if (ranks == 2 || ranks == 8) many.push_back(kMostTokens / static_cast<std::size_t>(ranks) * 2);
    const Status status = team->run([&](Member& me) {
      std::vector<BFloat16> token, gain, stream, sum, normed;
      for (std::size_t i = 0; i < kRow; ++i) {
        token.push_back(BFloat16(element(me.rank(), i)));
        gain.push_back(BFloat16(element(1, i) * 1e-4F));
        stream.push_back(BFloat16(element(2, i)));
      }
      std::vector<BFloat16> want_sum, want_normed;
      for (const std::size_t tokens : many) {
        std::vector<BFloat16> x, residual;
        for (std::size_t t = 0; t < tokens; ++t) {
          x.insert(x.end(), token.begin(), token.end());
          residual.insert(residual.end(), stream.begin(), stream.end());
        }
        normed.resize(x.size());
        const std::vector<BFloat16> in = x, residual_before = residual;
        const RowEpilogue norm = RowEpilogue::make({.row_elements = kRow,
                                                    .residual = residual.data(),
                                                    .norm = Norm::rms,
                                                    .weight = gain.data(),
                                                    .out = normed.data()})
                                     .value();
        const CallOptions options{.order = Order::group_invariant, .epilogue = &norm};
        me.all_reduce(x, options).throw_if_error();
        if (tokens == 1) {
          want_sum = x;
          want_normed = normed;
        }
        const auto rows_are = [&](const std::vector<BFloat16>& rows,
                                  const std::vector<BFloat16>& row) {
          for (std::size_t t = 0; t < tokens; ++t) {
            if (std::memcmp(&rows[t * kRow], row.data(), kRow * sizeof(BFloat16)) != 0)
              return false;
          }
          return true;
        };
        ASSERT_TRUE(rows_are(x, want_sum)) << tokens << " tokens, N=" << ranks;
        ASSERT_TRUE(rows_are(normed, want_normed)) << tokens << " tokens, N=" << ranks;
        // A call without an epilogue, and then apply(), give the same bits.
        x = in;
        residual = residual_before;
        me.all_reduce(x, {.order = Order::group_invariant}).throw_if_error();
        apply(norm, x.data(), tokens);
        ASSERT_TRUE(rows_are(x, want_sum) && rows_are(normed, want_normed));
      }
    });
    ASSERT_TRUE(status.ok()) << status.text();
  }
}

TEST(Epilogue, TakesFunctions) {
  const auto team = team_of(2);
  const Status status = team->run([](Member& me) {
    std::vector<float> x(40, 1.0F), doubled(40);
    const auto twice = [&](std::span<const float> rows, std::size_t first) {
      for (std::size_t i = 0; i < rows.size(); ++i) doubled[first * 10 + i] = 2 * rows[i];
    };
    const auto doubling = epilogue<float>(10, twice);
    me.all_reduce(x, {.epilogue = &doubling}).throw_if_error();
    EXPECT_EQ(doubled, std::vector<float>(40, 4.0F));
    std::vector<float> out(20);
    me.reduce_scatter(x, out, {.epilogue = &doubling}).throw_if_error();
    EXPECT_EQ(doubled[19], 8.0F);
    me.all_gather(out, x, {.epilogue = &doubling}).throw_if_error();
    EXPECT_EQ(doubled, std::vector<float>(40, 8.0F));
  });
  ASSERT_TRUE(status.ok()) << status.text();
}

// An epilogue throws at some row: the error names the rank and the exception, and no rank's next
// call succeeds.
TEST(Epilogue, ThatThrowsEndsTheCallOfItsRank) {
  for (const std::size_t at : {0U, 3U, 9U}) {
    for (const Transport transport : {Transport::direct, Transport::mailbox}) {
      Ranks ranks({.ranks = 3, .timeout = std::chrono::minutes(2)});
      const auto results = ranks.run([&](Member& me) {
        std::vector<float> x(10'000, 1.0F);
        const auto throws = [&](std::span<const float> rows, std::size_t first) {
          if (me.rank() == 1 && first <= at && at < first + rows.size() / 1000) {
            throw std::runtime_error("no more");
          }
        };
        const auto bad = epilogue<float>(1000, throws);
        Status status = me.all_reduce(x, {.transport = transport, .epilogue = &bad});
        // The other ranks may have returned before the epilogue throws.
        return status.ok() ? me.barrier() : status;
      });
      for (const Status& one : results) {
        EXPECT_EQ(one.code(), Code::remote_error) << one.text();
        EXPECT_EQ(one.text(), "the epilogue of rank 1 threw: no more");
      }
    }
  }
}

TEST(Epilogue, MustBeOfTheSameRowsOnAllRanks) {
  const auto nothing = [](const void*, std::size_t, std::size_t, void*) {};
  const Epilogue tens{nothing, nullptr, 10}, fives{nothing, nullptr, 5};
  for (const Epilogue* odd : {&fives, static_cast<const Epilogue*>(nullptr)}) {
    for (const std::size_t count : {10U, 1000U, 100'000U}) {
      Ranks ranks({.ranks = 3, .timeout = std::chrono::minutes(2)});
      const auto results = ranks.run([&](Member& me) {
        std::vector<float> x(count);
        return me.all_reduce(x, {.epilogue = me.rank() == 1 ? odd : &tens});
      });
      for (const Status& one : results) {
        EXPECT_EQ(one.code(), Code::mismatch) << one.text();
        EXPECT_NE(one.text().find("the rows of an epilogue"), std::string::npos) << one.text();
      }
    }
  }
}

TEST(Epilogue, IsRefusedWhereItMakesNoSense) {
  Ranks ranks({.ranks = 2});
  const auto nothing = [](const void*, std::size_t, std::size_t, void*) {};
  const auto says = [&](Call call, const Epilogue& epilogue, std::string_view what) {
    call.options.epilogue = &epilogue;
    const auto results = ranks.run([&](Member& me) {
      std::vector<float> in(100), out(100);
      Call mine = call;
      mine.in = in.data();
      mine.out = out.data();
      Status status = me.call(mine);
      // plan_of() and start() return the same error.
      EXPECT_EQ(me.plan_of(mine).status().text(), status.text());
      EXPECT_EQ(me.start(mine).status().text(), status.text());
      return status;
    });
    for (const Status& one : results) {
      EXPECT_EQ(one.code(), Code::invalid_argument);
      EXPECT_NE(one.text().find(what), std::string::npos) << one.text();
    }
  };
  const Epilogue threes{nothing, nullptr, 3};
  says({.count = 10}, {nullptr, nullptr, 5}, "epilogue.finish is null");
  says({.count = 10}, {nothing, nullptr, 0}, "epilogue.row_elements is 0");
  says({.count = 10}, threes, "epilogue.row_elements is 3, count is 10; allowed are whole rows");
  says({.collective = Collective::reduce_scatter, .count = 10}, threes, "count is 10");
  says({.collective = Collective::all_gather, .count = 10}, threes, "the gathered total is 20");
  const std::size_t counts[] = {6, 4};
  says({.collective = Collective::reduce_scatter, .counts = counts}, threes, "counts[1] is 4");
  says({.collective = Collective::all_gather, .counts = counts}, threes,
       "the gathered total is 10");
  // Typed calls check sizes first, so this error comes first.
  const Epilogue empty{nothing, nullptr, 0};
  const auto typed = ranks.run([&](Member& me) {
    std::vector<float> in(10), out(10);
    return me.with_counts(Collective::reduce_scatter, std::span<const float>(in),
                          std::span<float>(out), counts, 0, ReduceOp::sum, {.epilogue = &empty});
  });
  for (const Status& one : typed) {
    EXPECT_EQ(one.text(), "epilogue.row_elements is 0; allowed are 1 and more");
  }
  const std::size_t pairs[] = {1, 1, 1, 1}, places[] = {0, 4};
  const auto displaced = ranks.run([&](Member& me) {
    std::vector<float> in(2), out(2);
    return me.all_to_all(std::span<const float>(in), std::span<float>(out), pairs,
                         {.in = places, .out = places}, {.epilogue = &empty});
  });
  for (const Status& one : displaced) {
    EXPECT_NE(one.text().find("epilogue is given to all_to_all"), std::string::npos) << one.text();
  }
  for (const Collective other : {Collective::broadcast, Collective::reduce, Collective::all_to_all,
                                 Collective::gather, Collective::scatter}) {
    says({.collective = other, .count = 3}, threes,
         "epilogue is given to " + std::string(name_of(other)));
  }
  const auto messages = ranks.run([&](Member& me) {
    std::vector<float> x(3);
    EXPECT_EQ(me.barrier({.epilogue = &threes}).code(), Code::invalid_argument);
    return me.rank() == 0 ? me.send(x, 1, {.epilogue = &threes})
                          : me.recv(x, 0, {.epilogue = &threes});
  });
  for (const Status& one : messages) EXPECT_EQ(one.code(), Code::invalid_argument) << one.text();
  // The communicator still works, and a repeated call is checked too.
  const auto good = [&](Member& me) {
    std::vector<float> x(9, 1.0F);
    return me.all_reduce(x, {.epilogue = &threes});
  };
  for (const Status& one : ranks.run(good)) EXPECT_TRUE(one.ok()) << one.text();
  says({.count = 9}, {nullptr, nullptr, 3}, "epilogue.finish is null");
  for (const Status& one : ranks.run(good)) EXPECT_TRUE(one.ok()) << one.text();
}

TEST(RowEpilogue, RefusesStepsThatMakeNoSense) {
  float row[8] = {}, scales[1];
  const RowSteps good{
      .type = DataType::f32, .row_elements = 8, .out_type = DataType::f32, .out = row};
  EXPECT_TRUE(RowEpilogue::make(good).ok());
  const auto says = [&](auto change, std::string_view what) {
    RowSteps steps = good;
    change(steps);
    const Status status = RowEpilogue::make(steps).status();
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_NE(status.text().find(what), std::string::npos) << status.text();
  };
  says([](RowSteps& s) { s.type = DataType::i32; }, "type is i32; allowed are f32, f16 and bf16");
  says([](RowSteps& s) { s.out_type = DataType::f8e5m2; }, "out_type is f8e5m2");
  says([](RowSteps& s) { s.norm = static_cast<Norm>(9); }, "norm is 9");
  says([](RowSteps& s) { s.activation = static_cast<Activation>(7); }, "activation is 7");
  says([](RowSteps& s) { s.row_elements = 0; }, "row_elements is 0");
  says([](RowSteps& s) { s.row_elements = SIZE_MAX; }, "row_elements is 18446744073709551615");
  says([](RowSteps& s) { s.epsilon = -1; }, "epsilon is -1");
  says([&](RowSteps& s) { s.weight = row; }, "weight is given, norm is none");
  says([&](RowSteps& s) { s.norm = Norm::rms, s.shift = row; }, "shift is given");
  says([](RowSteps& s) { s.out = nullptr; }, "out and residual are null");
  says([&](RowSteps& s) { s.out = nullptr, s.residual = row, s.norm = Norm::rms; },
       "norm is given");
  says([&](RowSteps& s) { s.scales = scales; }, "scales are given");
  says([](RowSteps& s) { s.out_type = DataType::i8; }, "scales is null");
}

}  // namespace
}  // namespace rankine
