// The levels of order: the bits of every result must equal those of the loops in this file.
#include "engine/api/call.h"

#include "algorithms/catalogue.h"
#include "engine/api/epilogues.h"
#include "engine/api/network.h"
#include "engine/api/split.h"
#include "engine/api/team.h"
#include "engine/base/numbers.h"
#include "tests/engine/api/ranks.h"
#include "tests/testing.h"

namespace rankine {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kMostTokens = 64;
#else
constexpr std::size_t kMostTokens = 4096;
#endif

// Neighbouring ranks differ by orders of magnitude and in sign, so nearly every other order of
// additions gives other bits. No sum overflows in 8 bits.
float element(Rank rank, std::size_t i) {
  const std::uint64_t hash =
      (static_cast<std::uint64_t>(rank + 1) * 0x9e3779b97f4a7c15u + i) * 0xbf58476d1ce4e5b9u;
  const std::uint64_t other = (hash ^ hash >> 31) * 0x94d049bb133111ebu;
  const float mantissa = 1.0F + std::ldexp(static_cast<float>(hash >> 41), -23);
  return std::ldexp((other >> 59 & 1) != 0 ? mantissa : -mantissa,
                    static_cast<int>(other >> 61) - 4);
}

template <class T>
std::vector<T> input_of(Rank rank, std::size_t count) {
  std::vector<T> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(T(element(rank, i)));
  return out;
}

// The type in which floats of type T are added up.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
Wide<T> folded(ReduceOp op, Wide<T> a, Wide<T> b) {
  return op == ReduceOp::prod ? a * b : a + b;
}

template <class T>
std::vector<T> by_rank(ReduceOp op, int ranks, std::size_t count) {
  std::vector<T> out;
  for (std::size_t i = 0; i < count; ++i) {
    auto total = static_cast<Wide<T>>(T(element(0, i)));
    for (Rank r = 1; r < ranks; ++r) {
      total = folded<T>(op, total, static_cast<Wide<T>>(T(element(r, i))));
    }
    if (op == ReduceOp::avg) total /= static_cast<Wide<T>>(ranks);
    out.push_back(T(total));
  }
  return out;
}

// The node of the binary tree over `width` ranks from `first` on; ranks beyond `ranks` are left
// out.
template <class T>
T node(ReduceOp op, Rank first, int width, int ranks, std::size_t i) {
  if (width == 1) return T(element(first, i));
  const T low = node<T>(op, first, width / 2, ranks, i);
  if (first + width / 2 >= ranks) return low;
  const T high = node<T>(op, first + width / 2, width / 2, ranks, i);
  return T(folded<T>(op, static_cast<Wide<T>>(low), static_cast<Wide<T>>(high)));
}

template <class T>
std::vector<T> as_a_tree(ReduceOp op, int ranks, std::size_t count) {
  const auto width = static_cast<int>(std::bit_ceil(static_cast<unsigned>(ranks)));
  std::vector<T> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(node<T>(op, 0, width, ranks, i));
  return out;
}

template <class T>
bool same_bits(const T* a, const T* b, std::size_t count) {
  return std::memcmp(a, b, count * sizeof(T)) == 0;
}

// f succeeds on a team.
void on_team(int ranks, const std::function<void(Member&)>& f, std::optional<Order> order = {}) {
  expect_team_succeeds({.ranks = ranks, .timeout = std::chrono::minutes(4), .order = order}, f);
}

template <class T>
class OrderOf : public testing::Test {};
using Floats = testing::Types<float, double, Half, BFloat16, Float8E4M3, Float8E5M2>;
TYPED_TEST_SUITE(OrderOf, Floats);

constexpr std::size_t kCounts[] = {1, 67, 5003};
constexpr std::optional<Transport> kWays[] = {std::nullopt, Transport::direct, Transport::mailbox};

// Every reduction of a level, by every transport, in place and apart.
template <class T, class Expected>
void expect_bits(Order order, ReduceOp op, int ranks, const Expected& expected) {
  const auto team = Team::create({.ranks = ranks, .timeout = std::chrono::minutes(4)}).value();
  for (const std::size_t count : kCounts) {
    const std::vector<T> want = expected(op, ranks, count);
    for (const std::optional<Transport> transport : kWays) {
      for (const bool in_place : {false, true}) {
        const Status status = team->run([&](Member& me) {
          std::vector<T> in = input_of<T>(me.rank(), count), out(count);
          Call call{.in = in.data(),
                    .out = in_place ? in.data() : out.data(),
                    .count = count,
                    .type = data_type_of<T>,
                    .op = op,
                    .options = {.transport = transport, .order = order}};
          me.call(call).throw_if_error();
          EXPECT_TRUE(same_bits(static_cast<T*>(call.out), want.data(), count))
              << "N=" << ranks << " " << name_of(call.type) << " " << name_of(op) << " x " << count
              << (in_place ? " in place, " : ", ") << *me.plan_of(call);
          call.collective = Collective::reduce;
          call.root = ranks / 2;
          std::ranges::copy(input_of<T>(me.rank(), count), in.begin());
          me.call(call).throw_if_error();
          if (me.rank() == call.root) {
            EXPECT_TRUE(same_bits(static_cast<T*>(call.out), want.data(), count))
                << "reduce, N=" << ranks << " " << name_of(call.type) << " x " << count;
          }
          // A scan has a different number of contributions on every rank.
          if (order == Order::group_invariant || op == ReduceOp::avg) return;
          call.collective = Collective::scan;
          std::ranges::copy(input_of<T>(me.rank(), count), in.begin());
          me.call(call).throw_if_error();
          EXPECT_TRUE(same_bits(static_cast<T*>(call.out),
                                expected(op, me.rank() + 1, count).data(), count))
              << "scan, N=" << ranks << " " << name_of(call.type) << " x " << count;
        });
        ASSERT_TRUE(status.ok()) << status.text();
      }
    }
  }
}

TYPED_TEST(OrderOf, ByRankIsASerialLoop) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::prod}) {
      if (op == ReduceOp::prod && sizeof(TypeParam) == 1) continue;  // saturates
      expect_bits<TypeParam>(Order::by_rank, op, ranks, by_rank<TypeParam>);
    }
  }
}

TYPED_TEST(OrderOf, GroupInvariantIsABinaryTree) {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    expect_bits<TypeParam>(Order::group_invariant, ReduceOp::sum, ranks, as_a_tree<TypeParam>);
  }
}

template <class T>
class OnceOf : public testing::Test {};
using SmallFloats = testing::Types<Half, BFloat16, Float8E4M3, Float8E5M2>;
TYPED_TEST_SUITE(OnceOf, SmallFloats);

// Sums of element() are exact in f32 in any order. With one rounding to T the result has these
// bits; with more roundings it has others.
struct OnceCase {
  std::string algorithm;
  std::optional<Transport> transport;
  std::size_t count = 1;
  bool in_place = false;
};

// The expected results for `count` elements by the number of heard ranks, shared by all calls of a
// run.
template <class T>
class OnceResults {
 public:
  OnceResults(int ranks, std::size_t count) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
      for (int heard = 1; heard <= ranks; ++heard) {
        const bool is_last = heard == ranks;
        if (!is_last && op == ReduceOp::avg) continue;
        const std::size_t blocks = is_last ? static_cast<std::size_t>(ranks) : 1;
        of_[op == ReduceOp::avg].push_back(by_rank<T>(op, heard, blocks * count));
      }
    }
  }
  const T* of(ReduceOp op, int heard) const {
    return op == ReduceOp::avg ? of_[1].back().data()
                               : of_[0][static_cast<std::size_t>(heard - 1)].data();
  }

 private:
  std::vector<std::vector<T>> of_[2];
};

template <class T>
void expect_once(Member& me, const OnceResults<T>& results, const OnceCase& test,
                 Collective collective, ReduceOp op) {
  const int ranks = me.ranks();
  const bool scatters = collective == Collective::reduce_scatter;
  const std::size_t whole = test.count * static_cast<std::size_t>(scatters ? ranks : 1);
  std::vector<T> in = input_of<T>(me.rank(), whole), apart(test.count);
  T* const out = !test.in_place ? apart.data()
                 : scatters     ? in.data() + test.count * static_cast<std::size_t>(me.rank())
                                : in.data();
  const Call call{.collective = collective,
                  .in = in.data(),
                  .out = out,
                  .count = test.count,
                  .type = data_type_of<T>,
                  .op = op,
                  .root = collective == Collective::reduce ? ranks / 2 : 0,
                  .options = {.algorithm = test.algorithm, .transport = test.transport}};
  const auto plan = me.plan_of(call);
  if (!plan.ok()) {  // a board is too small, or the algorithm refuses N
    EXPECT_TRUE(test.transport || !test.algorithm.empty()) << plan.status().text();
    return;
  }
  me.call(call).throw_if_error();
  if (collective == Collective::reduce && me.rank() != call.root) return;
  const int heard = collective == Collective::scan     ? me.rank() + 1
                    : collective == Collective::exscan ? me.rank()
                                                       : ranks;
  if (heard == 0) return;
  const T* want = results.of(op, heard);
  const std::size_t first = scatters ? test.count * static_cast<std::size_t>(me.rank()) : 0;
  EXPECT_TRUE(same_bits(out, want + first, test.count))
      << name_of(collective) << ", N=" << ranks << " " << name_of(call.type) << " " << name_of(op)
      << " x " << test.count << (test.in_place ? " in place, " : ", ") << *plan;
}

template <class T>
void expect_all_once(Member& me, const OnceResults<T>& results, const OnceCase& test) {
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter, Collective::scan,
        Collective::exscan}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
      if (op == ReduceOp::avg && is_prefix(collective)) continue;
      if (!test.algorithm.empty() && find_algorithm(collective, test.algorithm) == nullptr)
        continue;
      expect_once<T>(me, results, test, collective, op);
    }
  }
}

constexpr int kOnceRanks[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17};

TYPED_TEST(OnceOf, EveryDefaultRoundsOnce) {
  for (const int ranks : kOnceRanks) {
    const auto team = Team::create({.ranks = ranks, .timeout = std::chrono::minutes(4)}).value();
    for (const std::size_t count : {1, 67, 5003, 100'003}) {
      if (ranks > 5 && count > 5003) continue;
      const OnceResults<TypeParam> results(ranks, count);
      const Status status = team->run([&](Member& me) {
        expect_all_once<TypeParam>(me, results, {"", {}, count, count != 5003});
        if (count != 67) return;
        for (const Transport transport :
             {Transport::direct, Transport::mailbox, Transport::board}) {
          expect_all_once<TypeParam>(me, results, {"", transport, count, false});
        }
      });
      ASSERT_TRUE(status.ok()) << status.text();
    }
  }
}

TYPED_TEST(OnceOf, EveryDefaultOnANetworkRoundsOnce) {
  for (const char* name : {"scale_out", "two_level"}) {
    const auto network = find_call_network(name);
    ASSERT_TRUE(network.ok()) << network.status().text();
    for (const int ranks : {2, 3, 5, 8, 9}) {
      auto team =
          Team::create({.ranks = ranks, .timeout = std::chrono::minutes(4), .network = *network})
              .value();
      for (const std::size_t count : {1, 67, 5003}) {
        const OnceResults<TypeParam> results(ranks, count);
        const Status status = team->run([&](Member& me) {
          expect_all_once<TypeParam>(me, results, {"", {}, count, count == 67});
        });
        ASSERT_TRUE(status.ok()) << status.text();
      }
    }
  }
}

TYPED_TEST(OnceOf, EveryNamedAlgorithmRoundsOnce) {
  constexpr std::size_t kCount = 67;
  for (const int ranks : {3, 4, 6, 9}) {
    const OnceResults<TypeParam> results(ranks, kCount);
    on_team(ranks, [&](Member& me) {
      std::vector<std::string_view> done;
      for (const Algorithm& entry : catalogue()) {
        if (std::find(done.begin(), done.end(), entry.name) != done.end()) continue;
        done.push_back(entry.name);
        for (const Transport transport : {Transport::direct, Transport::mailbox}) {
          expect_all_once<TypeParam>(
              me, results,
              {std::string(entry.name), transport, kCount, transport == Transport::direct});
        }
      }
    });
  }
}

// A mean is at most the largest input, even if the sum overflows the type.
TYPED_TEST(OnceOf, AveragesNearTheLargestNumberAreFinite) {
  if (std::is_same_v<TypeParam, BFloat16>) return;  // its sums overflow f32 too
  const float largest = std::is_same_v<TypeParam, Half>         ? 65504
                        : std::is_same_v<TypeParam, Float8E4M3> ? 448
                                                                : 57344;
  for (const int ranks : {3, 8, 9}) {
    on_team(ranks, [&](Member& me) {
      for (const Algorithm& entry : catalogue()) {
        for (const std::size_t count : {5, 503}) {
          if (entry.collective != Collective::all_reduce) continue;
          std::vector<TypeParam> x(count, TypeParam(largest));
          const Call call{.in = x.data(),
                          .out = x.data(),
                          .count = count,
                          .type = data_type_of<TypeParam>,
                          .op = ReduceOp::avg,
                          .options = {.algorithm = entry.name}};
          if (!me.plan_of(call).ok()) continue;
          me.call(call).throw_if_error();
          for (const TypeParam& one : x) {
            ASSERT_EQ(static_cast<float>(one), largest) << entry.name << ", N=" << ranks;
          }
        }
      }
    });
  }
}

// The text of a plan with sums in f32 says "in f32".
TEST(Order, SaysWhatMovesInF32) {
  on_team(4, [](Member& me) {
    std::vector<BFloat16> x(4096, BFloat16(1.0F));
    const auto plan = [&](std::string_view algorithm, std::optional<Order> order) {
      return *me.plan_of({.in = x.data(),
                          .out = x.data(),
                          .count = x.size(),
                          .type = DataType::bf16,
                          .options = {.algorithm = algorithm, .order = order}});
    };
    EXPECT_NE(plan("ring", {}).find("in f32"), std::string::npos);
    EXPECT_EQ(plan("direct_two_shot", {}).find("in f32"), std::string::npos);
    // A group_invariant tree rounds each node.
    EXPECT_EQ(plan("recursive_doubling", Order::group_invariant).find("in f32"), std::string::npos);
  });
}

// The data tell the levels apart.
TEST(Order, OtherBracketsHaveOtherBits) {
  EXPECT_FALSE(same_bits(by_rank<BFloat16>(ReduceOp::sum, 4, 67).data(),
                         as_a_tree<BFloat16>(ReduceOp::sum, 4, 67).data(), 67));
  EXPECT_FALSE(same_bits(by_rank<float>(ReduceOp::sum, 4, 67).data(),
                         as_a_tree<float>(ReduceOp::sum, 4, 67).data(), 67));
}

// Eight contributions on 8, 4, 2 ranks and 1 rank, and six on 6, 3, 2 ranks and 1 rank.
TEST(Order, GroupInvariantSumsDoNotKnowHowManyRanksThereAre) {
  constexpr std::size_t kCount = 1031;
  for (const int contributions : {8, 6}) {
    const auto want = as_a_tree<BFloat16>(ReduceOp::sum, contributions, kCount);
    for (int each = 1; each <= contributions; each *= 2) {
      const int ranks = (contributions + each - 1) / each;
      on_team(
          ranks,
          [&](Member& me) {
            std::vector<std::vector<BFloat16>> own;
            std::vector<const void*> srcs;
            for (int c = me.rank() * each; c < std::min(contributions, (me.rank() + 1) * each);
                 ++c) {
              own.push_back(input_of<BFloat16>(c, kCount));
            }
            for (const auto& one : own) srcs.push_back(one.data());
            // The result overwrites a source, like in programs without spare memory.
            reduce_group(DataType::bf16, ReduceOp::sum, srcs, own.front().data(), kCount)
                .throw_if_error();
            me.all_reduce(std::span(own.front())).throw_if_error();
            EXPECT_TRUE(same_bits(own.front().data(), want.data(), kCount))
                << contributions << " contributions, " << ranks << " ranks";
          },
          Order::group_invariant);
    }
  }
}

// Eight leaves of each of kRows rows on 1, 2, 4 and 8 ranks: the bits of a row are golden, whatever
// the transport, the number of rows in the call, in place or apart, with an epilogue or without.
TEST(Order, TpInvariantSumsHaveTheGoldenBits) {
  constexpr std::size_t kRows = 67, kRow = 96;
  const auto want = as_a_tree<float>(ReduceOp::sum, kTpLeaves, kRows * kRow);
  std::uint64_t hash = 0;
  for (const float x : want) hash = mixed(hash, std::bit_cast<std::uint32_t>(x));
  EXPECT_EQ(hash, 0x4699f2e445890e1fu);
  for (const int ranks : {1, 2, 4, 8}) {
    const int each = kTpLeaves / ranks;
    on_team(ranks, [&](Member& me) {
      std::vector<std::vector<float>> leaves;
      std::vector<const void*> srcs;
      for (int i = 0; i < each; ++i) {
        leaves.push_back(input_of<float>(me.rank() * each + i, kRows * kRow));
      }
      for (const auto& leaf : leaves) srcs.push_back(leaf.data());
      std::vector<float> sums(kRows * kRow);
      reduce_group(DataType::f32, ReduceOp::sum, srcs, sums.data(), sums.size()).throw_if_error();
      for (const std::optional<Transport> transport : kWays) {
        for (const std::size_t rows : {std::size_t{1}, std::size_t{3}, kRows}) {
          for (const bool in_place : {false, true}) {
            for (const bool finishes : {false, true}) {
              std::vector<float> in = sums, apart(in.size());
              std::vector<BFloat16> rounded(rows * kRow);
              const std::span<const float> given = std::span(in).last(rows * kRow);
              const std::span<float> out =
                  (in_place ? std::span(in) : std::span(apart)).last(rows * kRow);
              const auto round = RowEpilogue::make({.type = DataType::f32,
                                                    .row_elements = kRow,
                                                    .out_type = DataType::bf16,
                                                    .out = rounded.data()})
                                     .value();
              me.all_reduce(given, out,
                            {.transport = transport,
                             .order = Order::tp_invariant,
                             .epilogue = finishes ? &round : nullptr})
                  .throw_if_error();
              const float* const expected = want.data() + (kRows - rows) * kRow;
              EXPECT_TRUE(same_bits(out.data(), expected, out.size()))
                  << "N=" << ranks << ", " << rows << " rows" << (in_place ? " in place" : "")
                  << (finishes ? ", epilogue" : "");
              for (std::size_t i = 0; finishes && i < rounded.size(); ++i) {
                ASSERT_EQ(rounded[i].bits, BFloat16(expected[i]).bits);
              }
            }
          }
        }
      }
    });
  }
}

// Rows of 4096 bf16 of a few kinds, like a server's tokens. A row's bits depend only on its kind,
// for any number of rows and any position. The numbers of tokens are powers of two and their
// successors, so they lie on both sides of every threshold in bytes (costs.h).
void expect_rows(Order order, int ranks, std::size_t most) {
  constexpr std::size_t kRow = 4096, kKinds = 5;
  std::vector<std::vector<BFloat16>> want(kKinds);
  std::vector<std::size_t> tokens;
  for (std::size_t n = 1; n <= most; n *= 2) {
    tokens.push_back(n);
    if (n > 2 && n < most) tokens.push_back(n + 1);
  }
  on_team(
      ranks,
      [&](Member& me) {
        const auto kinds = input_of<BFloat16>(me.rank(), kRow * kKinds);
        std::vector<BFloat16> in(most * kRow), out(most * kRow);
        // A part of a row, too: a single element has the same bits alone and in a row.
        std::vector<BFloat16> first(kRow * kKinds), alone(1);
        for (std::size_t k = 0; k < kKinds; ++k) {
          me.all_reduce(std::span<const BFloat16>(kinds).subspan(k * kRow, kRow),
                        std::span(first).subspan(k * kRow, kRow))
              .throw_if_error();
        }
        me.all_reduce(std::span<const BFloat16>(kinds).subspan(kRow + 5, 1), std::span(alone))
            .throw_if_error();
        EXPECT_EQ(alone[0].bits, first[kRow + 5].bits);
        for (const std::size_t n : tokens) {
          for (const bool in_place : {false, true}) {
            for (std::size_t t = 0; t < n; ++t) {
              std::memcpy(in.data() + t * kRow, kinds.data() + (t + n) % kKinds * kRow, 2 * kRow);
            }
            const std::span<BFloat16> rows = std::span(in_place ? in : out).first(n * kRow);
            me.all_reduce(std::span<const BFloat16>(in).first(n * kRow), rows).throw_if_error();
            std::size_t other = 0;
            for (std::size_t t = 0; t < n; ++t) {
              other +=
                  same_bits(rows.data() + t * kRow, first.data() + (t + n) % kKinds * kRow, kRow)
                      ? 0
                      : 1;
            }
            EXPECT_EQ(other, 0u) << name_of(order) << ", N=" << ranks << ", " << n << " tokens"
                                 << (in_place ? " in place" : "");
          }
        }
      },
      order);
}

TEST(Order, RowsDoNotKnowHowManyTheyAre) {
  expect_rows(Order::size_invariant, 2, kMostTokens);
  for (const int ranks : {3, 5, 8}) {
    expect_rows(Order::size_invariant, ranks, kMostTokens / 32);
  }
  for (const int ranks : {2, 4, 5, 8}) {
    expect_rows(Order::group_invariant, ranks, kMostTokens / 64);
  }
}

// The block of a reduce-scatter equals the block of the loop or the tree, too.
TEST(Order, ReduceScatterHasTheBitsOfTheWholeSum) {
  constexpr std::size_t kEach = 2077;
  for (const int ranks : {3, 4, 8}) {
    const std::size_t all = static_cast<std::size_t>(ranks) * kEach;
    for (const Order order : {Order::by_rank, Order::group_invariant}) {
      const auto want = order == Order::by_rank ? by_rank<BFloat16>(ReduceOp::sum, ranks, all)
                                                : as_a_tree<BFloat16>(ReduceOp::sum, ranks, all);
      on_team(
          ranks,
          [&](Member& me) {
            const auto in = input_of<BFloat16>(me.rank(), all);
            std::vector<BFloat16> out(kEach);
            me.reduce_scatter(std::span(in), std::span(out)).throw_if_error();
            const auto at = static_cast<std::size_t>(me.rank()) * kEach;
            EXPECT_TRUE(same_bits(out.data(), want.data() + at, kEach))
                << name_of(order) << ", N=" << ranks;
          },
          order);
    }
  }
}

TEST(Order, WhatCannotBeHadIsRefusedByName) {
  struct Refused {
    int ranks;
    Call call;
    std::vector<std::string> words;
  };
  const auto asked = [](Order order, std::string_view algorithm = {}) {
    return CallOptions{.algorithm = algorithm, .order = order};
  };
  for (const auto& [ranks, refused, words] : std::vector<Refused>{
           {4,
            {.options = asked(Order::by_rank, "ring")},
            {"order is by_rank, algorithm is ring", "4 ranks"}},
           {4,
            {.options = asked(Order::group_invariant, "ring")},
            {"order is group_invariant, algorithm is ring", "4 ranks"}},
           {5,
            {.collective = Collective::scan, .options = asked(Order::group_invariant)},
            {"order is group_invariant; no algorithm of scan among 5 ranks"}},
           {2,
            {.op = ReduceOp::avg, .options = asked(Order::group_invariant)},
            {"order is group_invariant, operation is avg"}},
           {2,
            {.op = ReduceOp::avg, .options = asked(Order::tp_invariant)},
            {"order is tp_invariant, operation is avg", "ask for a sum, and divide it"}},
           {3,
            {.options = asked(Order::tp_invariant)},
            {"order is tp_invariant, ranks are 3; allowed are 1, 2, 4 and 8: split the ranks"}},
           {16, {.options = asked(Order::tp_invariant)}, {"ranks are 16; allowed are 1, 2, 4"}},
           {4,
            {.type = DataType::bf16, .options = asked(Order::tp_invariant)},
            {"order is tp_invariant, type is bf16; allowed are f32 and f64", "pass them as f32"}},
           {4,
            {.options = asked(Order::tp_invariant, "ring")},
            {"order is tp_invariant, algorithm is ring", "4 ranks"}},
           {8,
            {.options = asked(Order::coherent, "swing_latency")},
            {"order is coherent, algorithm is swing_latency"}},
           {2, {.options = asked(static_cast<Order>(9))}, {"order is 9; allowed are 0 to 5"}}}) {
    Ranks all({.ranks = ranks});
    std::vector<std::byte> in(1 << 12), out(1 << 12);
    Call call = refused;
    call.in = in.data();
    call.out = out.data();
    call.count = 16;
    expect_all(all.run([&](Member& me) { return me.call(call); }), Code::invalid_argument, words);
  }
}

// Values beyond the levels and transports, after calls with plan keys that such a value could be
// confused with.
TEST(Order, WhatIsNoLevelIsNotTakenForAnother) {
  on_team(2, [&](Member& me) {
    std::vector<float> x(16), y(16);
    const auto code = [&](const CallOptions& options, bool in_place) {
      float* out = in_place ? x.data() : y.data();
      return me.call({.in = x.data(), .out = out, .count = 16, .options = options}).code();
    };
    for (const bool in_place : {false, true}) {
      EXPECT_EQ(code({}, in_place), Code::ok);
      for (int i = 0; i < kOrders; ++i) {
        EXPECT_EQ(code({.order = static_cast<Order>(i)}, in_place), Code::ok);
      }
    }
    for (int i = kOrders; i < 256; ++i) {
      EXPECT_EQ(code({.order = static_cast<Order>(i)}, false), Code::invalid_argument) << i;
    }
    for (int i = kTransports; i < 256; ++i) {
      EXPECT_EQ(code({.transport = static_cast<Transport>(i)}, false), Code::invalid_argument) << i;
    }
  });
}

// Integers are exact: every plan keeps every level, also the ring's plan.
TEST(Order, WhatDoesNotRoundKeepsEveryLevel) {
  on_team(4, [&](Member& me) {
    std::vector<int> x(100, me.rank());
    for (int i = 0; i < kOrders; ++i) {
      const Call call{.in = x.data(),
                      .out = x.data(),
                      .count = x.size(),
                      .type = DataType::i32,
                      .options = {.algorithm = "ring", .order = static_cast<Order>(i)}};
      me.call(call).throw_if_error();
      EXPECT_EQ(to_string(me.orders_of(call).value()),
                "coherent, repeatable, by_rank, size_invariant, group_invariant, tp_invariant");
    }
  });
}

TEST(Order, CanBeReadBack) {
  on_team(4, [&](Member& me) {
    std::vector<float> x(4), y(4);
    Call call{.in = x.data(), .out = y.data(), .count = 4};
    const auto levels = [&](std::string_view algorithm, std::optional<Order> order) {
      call.options = {.algorithm = algorithm, .order = order};
      return to_string(me.orders_of(call).value());
    };
    EXPECT_EQ(levels("", {}), "coherent, by_rank");
    EXPECT_EQ(levels("ring", {}), "coherent");
    EXPECT_EQ(levels("ring", Order::repeatable), "coherent, repeatable");
    EXPECT_EQ(levels("recursive_doubling", {}), "coherent, group_invariant");
    EXPECT_EQ(levels("", Order::by_rank), "coherent, repeatable, by_rank, size_invariant");
    EXPECT_EQ(levels("", Order::tp_invariant),
              "coherent, repeatable, size_invariant, group_invariant, tp_invariant");
    EXPECT_EQ(levels("", Order::group_invariant), levels("", Order::tp_invariant));
    call.type = DataType::bf16;
    EXPECT_EQ(levels("", Order::group_invariant),
              "coherent, repeatable, size_invariant, group_invariant");
    EXPECT_EQ(me.plan_of(call).value(), "direct_one_shot, board transport, order group_invariant");
    call.options = {};
    EXPECT_EQ(me.plan_of(call).value().find("order"), std::string::npos);
  });
}

// Measured costs decide for calls without an order, but not for calls with Order::repeatable.
TEST(Order, RepeatableCallsForgetTheCosts) {
  Costs odd;
  odd.direct_max_ranks = 2;  // above this number: trees and leaders
  const auto plans = [](const Costs& costs, std::optional<Order> order) {
    std::string text;
    const std::vector<int> levels = {2, 4};
    Ranks ranks({.ranks = 4, .levels = levels, .tuned = false, .costs = costs});
    for (const std::size_t count : {2u, 300u, 5000u, 300'000u}) {
      const Call call{.in = &text, .out = &text + 1, .count = count, .options = {.order = order}};
      const std::string plan = ranks.members()[0]->plan_of(call).value();
      text += plan.substr(0, plan.find(',')) + " ";
    }
    return text;
  };
  EXPECT_NE(plans(odd, {}), plans({}, {}));
  EXPECT_EQ(plans(odd, Order::repeatable), plans({}, Order::repeatable));
}

// Started calls, planned while others are in flight, and calls of a split.
TEST(Order, HoldsForStartedCallsAndForGroups) {
  constexpr int kRanks = 4;
  constexpr std::size_t kCount = 20'011;
  const auto want = as_a_tree<float>(ReduceOp::sum, kRanks, kCount);
  on_team(
      kRanks,
      [&](Member& me) {
        const auto in = input_of<float>(me.rank(), kCount);
        std::vector<float> a(kCount), b(kCount), c(kCount);
        auto first = me.async().all_reduce(std::span(in), std::span(a)).value();
        auto second = me.async()
                          .all_reduce(std::span(in), std::span(b), ReduceOp::sum,
                                      {.transport = Transport::direct})
                          .value();
        first.wait().throw_if_error();
        second.wait().throw_if_error();
        auto all = me.split(0, me.rank()).value();
        all->all_reduce(std::span(in), std::span(c)).throw_if_error();
        for (const auto* got : {&a, &b, &c}) {
          EXPECT_TRUE(same_bits(got->data(), want.data(), kCount));
        }
      },
      Order::group_invariant);
}

TEST(Order, ReduceGroupRefusesWhatItCannotAddUp) {
  float x = 1;
  const void* srcs[] = {&x, nullptr};
  const auto says = [&](DataType type, ReduceOp op, std::size_t n, void* dst,
                        const std::string& words) {
    expect_refused(reduce_group(type, op, std::span(srcs).first(n), dst, 1), {words});
  };
  says(DataType::f32, ReduceOp::sum, 0, &x, "srcs is empty");
  says(DataType::f32, ReduceOp::avg, 1, &x, "operation is avg");
  says(DataType::f32, ReduceOp::bor, 1, &x, "operation is bor on type f32");
  says(static_cast<DataType>(77), ReduceOp::sum, 1, &x, "type is 77; allowed are 0 to");
  says(DataType::f32, static_cast<ReduceOp>(77), 1, &x, "operation is 77; allowed are 0 to");
  says(DataType::f32, ReduceOp::sum, 2, &x, "dst or one of srcs is null");
  says(DataType::f32, ReduceOp::sum, 1, nullptr, "dst or one of srcs is null");
  EXPECT_TRUE(reduce_group(DataType::f32, ReduceOp::sum, std::span(srcs), nullptr, 0).ok());
}

}  // namespace
}  // namespace rankine
