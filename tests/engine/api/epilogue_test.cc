// Epilogues: each row is finished once, and only when it is final, by every algorithm, transport
// and way of calling. Nothing else about a call changes. Wrong epilogues are refused.
#include "engine/api/epilogues.h"

#include "algorithms/catalogue.h"
#include "engine/api/network.h"
#include "engine/api/split.h"
#include "engine/api/team.h"
#include "tests/budget.h"
#include "tests/engine/api/random_case.h"
#include "tests/engine/api/ranks.h"
#include "tests/testing.h"

namespace rankine {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kMostTokens = 64;
#else
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
  const Sample sample("epilogues", ranks <= 3 ? 3 : 9);
  const auto team = team_of(ranks);
  struct Size {
    std::size_t count, row_elements;
  };
  for (const Algorithm& entry : catalogue()) {
    Params params{.ranks = ranks};
    const bool takes =
        std::find(std::begin(kTakers), std::end(kTakers), entry.collective) != std::end(kTakers);
    if (!takes || entry.refusal(params)) continue;
    const Status status = team->run([&](Member& me) {
      auto number = static_cast<std::uint64_t>(32 * (&entry - catalogue().data()));
      for (const Size size : {Size{0, 7}, Size{105, 7}, Size{96, 96}, Size{6144, 512}}) {
        for (const std::optional<Transport> transport :
             {std::optional<Transport>(), std::optional(Transport::direct),
              std::optional(Transport::mailbox), std::optional(Transport::board)}) {
          for (const bool in_place : {false, true}) {
            if (!sample.has(number++)) continue;
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

// Counts of whole rows. In the last ones the owner of the data fetches nothing, so it stores a part
// of the data that other ranks would fetch: the receivers must finish rows that their own ops wrote
// only partly or not at all.
TEST_P(Epilogues, TakeCountsOfWholeRows) {
  const int ranks = GetParam();
  std::vector<std::size_t> counts, of_one(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) counts.push_back(static_cast<std::size_t>(r % 3) * 24);
  of_one.back() = 60'000;
  expect_team_succeeds({.ranks = ranks}, [&](Member& me) {
    for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather}) {
      const Call call{.collective = collective, .counts = counts};
      EXPECT_EQ(differs<float>(me, call, 12, false), "") << name_of(collective) << ", N=" << ranks;
      EXPECT_EQ(differs<double>(me, call, 24, true), "") << name_of(collective) << ", N=" << ranks;
    }
    const Call call{.collective = Collective::all_gather, .counts = of_one};
    for (const std::size_t row_elements : {100U, 20'000U}) {
      EXPECT_EQ(differs<float>(me, call, row_elements, false), "") << "N=" << ranks;
      EXPECT_EQ(differs<float>(me, call, row_elements, true), "") << "N=" << ranks;
    }
  });
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

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
INSTANTIATE_TEST_SUITE_P(Ranks, Epilogues, testing::Values(1, 3));
#else
INSTANTIATE_TEST_SUITE_P(Ranks, Epilogues, testing::Values(1, 2, 3, 4, 5, 8, 9));
#endif

// User operations, factors, started and prepared calls. (catalogue_sweep_test's Mixture has
// epilogues in requests and groups at random.)
TEST(Epilogue, GoesWithEveryKindOfCall) {
  expect_team_succeeds({.ranks = 3}, [](Member& me) {
    constexpr std::size_t kRows = 60, kRow = 700;
    const auto add = [](std::span<const std::uint32_t> in, std::span<std::uint32_t> inout) {
      for (std::size_t i = 0; i < inout.size(); ++i) inout[i] += in[i];
    };
    const TypedUserOp<std::uint32_t> sum = user_op<std::uint32_t>(add);
    std::vector<std::uint32_t> x(kRows * kRow);
    const auto check = [&](const auto& call) {
      std::fill(x.begin(), x.end(), static_cast<std::uint32_t>(me.rank() + 1));
      Witness witness(kRows, kRow, sizeof(x[0]));
      call(CallOptions{.epilogue = &witness.epilogue});
      EXPECT_TRUE(witness.saw_each_once());
      EXPECT_TRUE(witness.saw(x.data()));
      EXPECT_EQ(x.back(), 6U);
    };
    check([&](const CallOptions& o) { me.all_reduce(x, sum, o).throw_if_error(); });
    check([&](const CallOptions& o) {
      me.all_reduce(x, PreMulSum{std::uint32_t{1}}, o).throw_if_error();
    });
    check([&](const CallOptions& o) {
      // A started call copies the epilogue. Another call is started behind it.
      Epilogue mine = *o.epilogue;
      Request first = me.async().all_reduce(x, sum, {.epilogue = &mine}).value();
      mine = {};
      std::vector<float> other(5, 1.0F);
      me.async().all_reduce(other).value().wait().throw_if_error();
      first.wait().throw_if_error();
    });
    // A prepared request, started three times. A request without an epilogue finishes no rows.
    Witness witness(kRows, kRow, sizeof(x[0]));
    Request request = me.prepared().all_reduce(x, {.epilogue = &witness.epilogue}).value();
    Request without = me.prepared().all_reduce(x).value();
    for (int i = 1; i <= 3; ++i) {
      for (Request* one : {&request, &without}) {
        std::fill(x.begin(), x.end(), static_cast<std::uint32_t>(me.rank() + i));
        one->start().throw_if_error();
        one->wait().throw_if_error();
        EXPECT_TRUE(witness.saw(x.data()));
        EXPECT_TRUE(witness.saw_each(i));
      }
    }
  });
}

TEST(Epilogue, RunsOnModelledNetworks) {
  expect_team_succeeds(
      {.ranks = 4, .network = find_call_network("scale_out").value()}, [](Member& me) {
        EXPECT_EQ(differs<float>(me, {.count = 300}, 30, true), "");
        Witness witness(10, 30, sizeof(float));
        std::vector<float> x(300, 1.0F);
        me.async().all_reduce(x, {.epilogue = &witness.epilogue}).value().wait().throw_if_error();
        EXPECT_TRUE(witness.saw_each_once() && witness.saw(x.data()));
      });
}

// The row of a token, before and after the epilogue, has the same bits with any number of tokens
// and at any position, below and above every threshold of size.
TEST(Epilogue, LeavesRowsTheSameAmongAnyNumberOfTokens) {
  constexpr std::size_t kRow = 4096;
  for (const int ranks : {2, 3, 5, 8}) {
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

// (That the error reaches all ranks is fault 39 of engine/faults.)
TEST(Epilogue, ThatThrowsIsNamedWithItsRank) {
  Ranks ranks({.ranks = 3, .timeout = std::chrono::minutes(2)});
  expect_all(ranks.run([](Member& me) {
    std::vector<float> x(10'000, 1.0F);
    const auto throws = [&](std::span<const float>, std::size_t) {
      if (me.rank() == 1) throw std::runtime_error("no more");
    };
    const auto bad = epilogue<float>(1000, throws);
    const Status status = me.all_reduce(x, {.epilogue = &bad});
    // The other ranks may have returned before the epilogue throws.
    return status.ok() ? me.barrier() : status;
  }),
             Code::remote_error, {"the epilogue of rank 1 threw: no more"});
}

TEST(Epilogue, IsRefusedWhereItMakesNoSense) {
  Ranks ranks({.ranks = 2});
  Member& me = *ranks.members()[0];
  const auto nothing = [](const void*, std::size_t, std::size_t, void*) {};
  const auto good = [&] {
    const Epilogue threes{nothing, nullptr, 3};
    expect_ok(ranks.run([&](Member& rank) {
      std::vector<float> x(9, 1.0F);
      return rank.all_reduce(x, {.epilogue = &threes});
    }));
  };
  std::vector<float> in(100), out(100);
  const auto says = [&](Call call, const Epilogue& epilogue, const std::string& what) {
    call.options.epilogue = &epilogue;
    call.in = in.data();
    call.out = out.data();
    expect_refused(me.call(call), {what});
    expect_refused(me.plan_of(call).status(), {what});
    expect_refused(me.start(call).status(), {what});
  };
  const Epilogue threes{nothing, nullptr, 3}, empty{nothing, nullptr, 0};
  const std::size_t counts[] = {6, 4};
  good();
  says({.count = 10}, {nullptr, nullptr, 5}, "epilogue.finish is null");
  says({.count = 9}, {nullptr, nullptr, 3}, "epilogue.finish is null");  // like the good call
  says({.count = 10}, empty, "epilogue.row_elements is 0");
  says({.count = 10}, threes, "epilogue.row_elements is 3, count is 10; allowed are whole rows");
  says({.collective = Collective::reduce_scatter, .count = 10}, threes, "count is 10");
  says({.collective = Collective::all_gather, .count = 10}, threes, "the gathered total is 20");
  says({.collective = Collective::reduce_scatter, .counts = counts}, threes, "counts[1] is 4");
  says({.collective = Collective::all_gather, .counts = counts}, threes,
       "the gathered total is 10");
  for (const Collective other : {Collective::broadcast, Collective::reduce, Collective::all_to_all,
                                 Collective::gather, Collective::scatter}) {
    says({.collective = other, .count = 3}, threes,
         "epilogue is given to " + std::string(name_of(other)));
  }
  // Typed calls check sizes first, so these errors come first.
  const std::span<const float> data(in);
  expect_refused(me.with_counts(Collective::reduce_scatter, data.first(10), std::span(out).first(6),
                                counts, 0, ReduceOp::sum, {.epilogue = &empty}),
                 {"epilogue.row_elements is 0"});
  const std::size_t pairs[] = {1, 1, 1, 1}, places[] = {0, 4};
  expect_refused(me.all_to_all(data.first(2), std::span(out).first(2), pairs,
                               {.in = places, .out = places}, {.epilogue = &empty}),
                 {"epilogue is given to all_to_all"});
  expect_refused(me.barrier({.epilogue = &threes}), {"epilogue"});
  expect_refused(me.send(data.first(3), 1, {.epilogue = &threes}), {"epilogue"});
  good();
}

TEST(RowEpilogue, RefusesStepsThatMakeNoSense) {
  float row[8] = {}, scales[1];
  const RowSteps good{
      .type = DataType::f32, .row_elements = 8, .out_type = DataType::f32, .out = row};
  EXPECT_TRUE(RowEpilogue::make(good).ok());
  const auto says = [&](auto change, const std::string& what) {
    RowSteps steps = good;
    change(steps);
    expect_refused(RowEpilogue::make(steps).status(), {what});
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
