// User operations with any element, by every permitted algorithm, in rank order if they do not
// commute, and with exceptions and mismatches. Factors (PreMulSum) and scans are tested too.

#include "algorithms/catalogue.h"
#include "engine/api/team.h"
#include "engine/run/kernels/types.h"
#include "tests/engine/api/ranks.h"
#include "tests/testing.h"

namespace rankine {
namespace {

// A 2 x 2 matrix modulo 2^32. It has 20 bytes, so a line holds no whole number of matrices.
// Products of matrices with odd determinants detect every change of order.
struct Matrix {
  std::array<std::uint32_t, 4> a;
  std::uint32_t ranks;  // number of factors

  bool operator==(const Matrix&) const = default;
};

Matrix product(const Matrix& x, const Matrix& y) {
  return {{x.a[0] * y.a[0] + x.a[1] * y.a[2], x.a[0] * y.a[1] + x.a[1] * y.a[3],
           x.a[2] * y.a[0] + x.a[3] * y.a[2], x.a[2] * y.a[1] + x.a[3] * y.a[3]},
          x.ranks + y.ranks};
}

const auto multiply = [](std::span<const Matrix> in, std::span<Matrix> inout) {
  ASSERT_EQ(reinterpret_cast<std::uintptr_t>(in.data()) % 64, 0U);
  for (std::size_t i = 0; i < inout.size(); ++i) inout[i] = product(in[i], inout[i]);
};

// Upper and lower triangular matrices alternate, so neighbours do not commute.
Matrix matrix(Rank r, std::size_t i) {
  const auto x =
      static_cast<std::uint32_t>(r) * 2654435761U + static_cast<std::uint32_t>(i) * 7 + 3;
  return {
      (r + static_cast<int>(i)) % 2 == 0 ? std::array{1U, x, 0U, 1U} : std::array{1U, 0U, x, 1U},
      1};
}

// The products of the first 1, 2, ... ranks in rank order, per element. They are computed once
// because every rank of every call needs some of them.
class Products {
 public:
  Products(int ranks, std::size_t count) : count_(count) {
    for (std::size_t i = 0; i < count; ++i) all_.push_back(matrix(0, i));
    for (Rank r = 1; r < ranks; ++r) {
      for (std::size_t i = 0; i < count; ++i) {
        all_.push_back(product(all_[all_.size() - count], matrix(r, i)));
      }
    }
  }
  const Matrix& of(int ranks, std::size_t i) const {
    return all_.at((static_cast<std::size_t>(ranks) - 1) * count_ + i);
  }

 private:
  std::size_t count_;
  std::vector<Matrix> all_;
};

struct Outcome {
  Status status;
  bool right = true;
};

// Makes one call on every rank; returns each rank's status, and whether every element is the
// product in rank order.
std::vector<Outcome> play(Team& team, Call call, bool in_place, const Products& products) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(team.ranks()));
  const auto n = static_cast<std::size_t>(team.ranks());
  team.run([&](Member& me) {
        const bool scatters = call.collective == Collective::reduce_scatter;
        const std::size_t count = call.count, all = scatters ? n * count : count;
        std::vector<Matrix> in(all), out(count);
        for (std::size_t i = 0; i < all; ++i) in[i] = matrix(me.rank(), i);
        const std::size_t first = scatters ? static_cast<std::size_t>(me.rank()) * count : 0;
        Call mine = call;
        mine.in = in.data();
        mine.out = in_place ? in.data() + first : out.data();
        Outcome& outcome = outcomes[static_cast<std::size_t>(me.rank())];
        outcome.status = me.call(mine);
        if (!outcome.status.ok()) return;
        if (call.collective == Collective::reduce && me.rank() != call.root) return;
        const CollectiveSpec goal{.collective = call.collective, .ranks = me.ranks()};
        const int heard = goal.contributors(me.rank(), 0).count;
        if (heard == 0) return;
        const auto* got = static_cast<const Matrix*>(mine.out);
        for (std::size_t i = 0; i < count; ++i) {
          outcome.right &= got[i] == products.of(heard, first + i);
        }
      })
      .throw_if_error();
  return outcomes;
}

class UserOps : public testing::TestWithParam<int> {};

// Every algorithm of the catalogue either multiplies in rank order or is refused; no correct
// algorithm is refused.
TEST_P(UserOps, MultiplyInTheOrderOfRanks) {
  const int ranks = GetParam();
  auto team = Team::create({.ranks = ranks, .timeout = std::chrono::minutes(4)}).value();
  TypedUserOp<Matrix> ordered = user_op<Matrix>(multiply, Commutes::no);
  TypedUserOp<Matrix> any = user_op<Matrix>(multiply, Commutes::yes);
  constexpr std::size_t kCount = 331;
  const Products products(ranks, static_cast<std::size_t>(ranks) * kCount);
  int in_order = 0, refused = 0;
  for (const Algorithm& entry : catalogue()) {
    Params params{.ranks = ranks};
    if (!reduces(entry.collective) || entry.refusal(params)) continue;
    for (const Rank root : {0, ranks / 2}) {
      if (root != 0 && entry.collective != Collective::reduce) continue;
      Call call{.collective = entry.collective,
                .count = kCount,
                .type = DataType::raw,
                .op = ReduceOp::user,
                .root = root,
                .user_op = &ordered.op,
                .options = {.algorithm = entry.name}};
      for (const bool in_place : {false, true}) {
        const std::string name = std::string(name_of(entry.collective)) + " " +
                                 std::string(entry.name) + " root " + std::to_string(root) +
                                 (in_place ? " in place" : " apart");
        call.user_op = &ordered.op;
        bool all_right = true, all_refused = true;
        for (const Outcome& one : play(*team, call, in_place, products)) {
          const bool no = one.status.code() == Code::invalid_argument &&
                          one.status.text().find("in rank order") != std::string::npos;
          ASSERT_TRUE(one.status.ok() || no) << name << ": " << one.status.text();
          all_refused &= no;
          all_right &= one.status.ok() && one.right;
        }
        ASSERT_NE(all_right, all_refused) << name;
        ++(all_right ? in_order : refused);
        if (!all_refused) continue;
        // The refusal is right: with a commutative operation some rank gets a product in another
        // order.
        call.user_op = &any.op;
        bool right = true;
        for (const Outcome& one : play(*team, call, in_place, products)) {
          ASSERT_TRUE(one.status.ok()) << name << ": " << one.status.text();
          right &= one.right;
        }
        EXPECT_FALSE(right) << name << " is refused, and would have been right";
      }
    }
  }
  EXPECT_GT(in_order, 0);
  if (ranks > 2) {
    EXPECT_GT(refused, 0);
  }
}

// A call without an algorithm gets a permitted algorithm, on every transport and with every length.
TEST_P(UserOps, AreGivenAnAlgorithmThatMay) {
  const int ranks = GetParam();
  auto team = Team::create({.ranks = ranks, .timeout = std::chrono::minutes(4)}).value();
  const TypedUserOp<Matrix> op = user_op<Matrix>(multiply, Commutes::no);
  constexpr std::size_t kMost = 1000;
  const Products products(ranks, static_cast<std::size_t>(ranks) * kMost);
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter, Collective::scan,
        Collective::exscan}) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{3}, kMost}) {
      for (const std::optional<Transport> transport :
           {std::optional<Transport>(), std::optional(Transport::direct),
            std::optional(Transport::mailbox)}) {
        const Call call{.collective = collective,
                        .count = count,
                        .type = DataType::raw,
                        .op = ReduceOp::user,
                        .root = ranks - 1,
                        .user_op = &op.op,
                        .options = {.transport = transport}};
        for (const Outcome& one : play(*team, call, count % 2 == 0, products)) {
          ASSERT_TRUE(one.status.ok()) << one.status.text();
          ASSERT_TRUE(one.right) << name_of(collective) << " of " << count;
        }
      }
    }
  }
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
INSTANTIATE_TEST_SUITE_P(Ranks, UserOps, testing::Values(1, 2, 3, 5, 9));
#else
INSTANTIATE_TEST_SUITE_P(Ranks, UserOps, testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33));
#endif

// (That the error reaches all ranks is fault 38 of engine/faults.)
TEST(UserOp, ThatThrowsIsNamedWithItsRank) {
  Ranks ranks({.ranks = 3, .timeout = std::chrono::minutes(2)});
  const auto apply = [](const void*, void*, std::size_t, void* throws) {
    if (throws != nullptr) throw std::runtime_error("no more");
  };
  expect_all(ranks.run([&](Member& me) {
    std::vector<int> data(10'000, 1);
    int any = 0;
    const UserOp op{apply, me.rank() == 2 ? &any : nullptr, sizeof(int), true};
    // In direct_two_shot every rank needs the sums of every rank.
    return me.call({.in = data.data(),
                    .out = data.data(),
                    .count = data.size(),
                    .type = DataType::raw,
                    .op = ReduceOp::user,
                    .user_op = &op,
                    .options = {.algorithm = "direct_two_shot"}});
  }),
             Code::remote_error, {"the operation of rank 2 threw: no more"});
}

TEST(UserOp, RefusesWhatMakesNoSense) {
  Ranks ranks({.ranks = 2});
  const auto nothing = [](const void*, void*, std::size_t, void*) {};
  const auto says = [&](Call call, UserOp op, bool has_op, const std::string& what) {
    call.user_op = has_op ? &op : nullptr;
    call.count = 1;
    for (const Status& one : ranks.run([&](Member& me) {
           int word = 0;
           Call mine = call;
           mine.in = mine.out = &word;
           return me.call(mine);
         })) {
      expect_refused(one, {what});
    }
  };
  const UserOp op{nothing, nullptr, 4, true};
  const Call call{.type = DataType::raw, .op = ReduceOp::user};
  says(call, op, false, "user_op is null, operation is user");
  says({.type = DataType::i32, .op = ReduceOp::user}, op, false,
       "user_op is null, operation is user");
  says({.type = DataType::i32, .op = ReduceOp::user}, op, true, "user_op is given, type is");
  says({.type = DataType::raw}, op, true, "user_op is given, type is");
  says(call, {nullptr, nullptr, 4, true}, true, "user_op.apply is null");
  says(call, {nothing, nullptr, 0, true}, true, "user_op.element_bytes is 0");
  says(call, {nothing, nullptr, 5000, true}, true,
       "user_op.element_bytes is 5000; allowed are 1 to 4096");
  says({.collective = Collective::broadcast, .type = DataType::raw, .op = ReduceOp::user}, op, true,
       "user_op is given");
  // The refusal also applies after a good call of the same kind, and it is not remembered.
  const auto good = [&](Member& me) {
    int word = 0;
    Call mine = call;
    mine.in = mine.out = &word;
    mine.count = 1;
    mine.user_op = &op;
    return me.call(mine);
  };
  expect_ok(ranks.run(good));
  says(call, {nullptr, nullptr, 4, true}, true, "user_op.apply is null");
  expect_ok(ranks.run(good));
}

// Elements of one byte, of the largest size, and larger than a piece.
TEST(UserOp, TakesElementsOfAnySize) {
  for (const std::size_t bytes : {1U, 3U, 24U, 4096U}) {
    Ranks ranks({.ranks = 3});
    const auto results = ranks.run([&](Member& me) {
      std::size_t size = bytes;
      const UserOp op{[](const void* in, void* inout, std::size_t count, void* context) {
                        const std::size_t n = count * *static_cast<const std::size_t*>(context);
                        for (std::size_t i = 0; i < n; ++i) {
                          static_cast<unsigned char*>(inout)[i] ^=
                              static_cast<const unsigned char*>(in)[i];
                        }
                      },
                      &size, bytes, true};
      const std::size_t count = 100'000 / bytes;
      std::vector<unsigned char> data(count * bytes);
      const auto value = [](Rank r, std::size_t i) {
        return static_cast<unsigned char>(static_cast<std::size_t>(r) * 31 + i * 7);
      };
      for (std::size_t i = 0; i < data.size(); ++i) data[i] = value(me.rank(), i);
      Status status = me.call({.in = data.data(),
                               .out = data.data(),
                               .count = count,
                               .type = DataType::raw,
                               .op = ReduceOp::user,
                               .user_op = &op});
      for (std::size_t i = 0; i < data.size(); ++i) {
        if (data[i] != (value(0, i) ^ value(1, i) ^ value(2, i))) {
          return Status(Code::system, "byte " + std::to_string(i));
        }
      }
      return status;
    });
    for (const Status& one : results) EXPECT_TRUE(one.ok()) << bytes << ": " << one.text();
  }
}

// Sums in which each rank's input is multiplied by the rank's factor.

template <class T>
T number(int value) {
  if constexpr (SmallFloat<T>) {
    return T(static_cast<float>(value));
  } else if constexpr (Complex<T>) {
    return T(static_cast<typename T::value_type>(value));
  } else {
    return static_cast<T>(value);
  }
}

// Small values, so that 8-bit floats hold every product and sum exactly.
int input(Rank r, std::size_t i) { return static_cast<int>((static_cast<std::size_t>(r) + i) % 2); }
int factor(Rank r) { return r % 3; }

template <class T>
Status check(Member& me, Collective collective, bool in_place, std::optional<Transport> transport,
             std::size_t count) {
  const auto n = static_cast<std::size_t>(me.ranks());
  const bool scatters = collective == Collective::reduce_scatter;
  const std::size_t first = scatters ? static_cast<std::size_t>(me.rank()) * count : 0;
  std::vector<T> in(scatters ? n * count : count), out(count);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = number<T>(input(me.rank(), i));
  const std::vector<T> before = in;
  const auto mine = number<typename Reduction<T>::Factor>(factor(me.rank()));
  T* to = in_place ? in.data() + first : out.data();
  Status status = me.call({.collective = collective,
                           .in = in.data(),
                           .out = to,
                           .count = count,
                           .type = data_type_of<T>,
                           .root = me.ranks() - 1,
                           .factor = &mine,
                           .options = {.transport = transport}});
  if (!status.ok()) return status;
  const bool has = collective != Collective::reduce || me.rank() == me.ranks() - 1;
  for (std::size_t i = 0; has && i < count; ++i) {
    int sum = 0;
    const int heard = CollectiveSpec{.collective = collective, .ranks = me.ranks()}
                          .contributors(me.rank(), 0)
                          .count;
    if (heard == 0) break;
    for (Rank r = 0; r < heard; ++r) sum += factor(r) * input(r, first + i);
    const T want = number<T>(sum);
    if (std::memcmp(&to[i], &want, sizeof(T)) != 0) {
      return Status(Code::system, std::string(name_of(collective)) + " " +
                                      std::string(name_of(data_type_of<T>)) + ", " +
                                      std::to_string(count) + ": element " + std::to_string(i));
    }
  }
  if (!in_place && std::memcmp(in.data(), before.data(), in.size() * sizeof(T)) != 0) {
    return Status(Code::system, "the input has changed");
  }
  return {};
}

TEST(PreMulSum, OfEveryTypeOnEveryTransport) {
  for (const int ranks : {1, 2, 5}) {
    expect_ranks_succeed({.ranks = ranks, .timeout = std::chrono::minutes(2)}, [](Member& me) {
      Status status;
      for (int t = 0; t < kDataTypes; ++t) {
        with_element(static_cast<DataType>(t), [&]<class T>() {
          if constexpr (!std::is_same_v<T, Bool>) {
            for (const Collective collective :
                 {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter,
                  Collective::scan, Collective::exscan}) {
              for (const auto transport :
                   {std::optional<Transport>(), std::optional(Transport::direct),
                    std::optional(Transport::mailbox)}) {
                for (const std::size_t count : {0U, 1U, 77U, 5000U}) {
                  if (!status.ok()) return;
                  status = check<T>(me, collective, count != 77, transport, count);
                }
              }
            }
          }
        });
      }
      return status;
    });
  }
}

// The product is rounded to the type once, and then the sum is rounded once.
TEST(PreMulSum, RoundsTheProduct) {
  Ranks all({.ranks = 2});
  const auto results = all.run([](Member& me) {
    std::vector<BFloat16> x(5, BFloat16(1.0F));
    const float third = 1.0F / 3;
    Status status = me.all_reduce(x, PreMulSum{third});
    const BFloat16 product(third), sum(2 * static_cast<float>(product));
    return x[4].bits == sum.bits ? status : Status(Code::system, "other bits");
  });
  for (const Status& one : results) EXPECT_TRUE(one.ok()) << one.text();
}

TEST(PreMulSum, RefusesWhatIsNoSumAndLeavesBuffersAlone) {
  Ranks one({.ranks = 1});
  Member& me = *one.members()[0];
  const float two = 2;
  const auto says = [&](Call call, const std::string& what) {
    std::vector<float> x(4, 3.0F), y(4, 5.0F);
    call.in = call.count == 3 ? nullptr : x.data();
    call.out = call.count == 2 ? x.data() + 1 : y.data();
    call.factor = &two;
    expect_refused(me.call(call), {what});
    EXPECT_EQ(x, std::vector<float>(4, 3.0F));
    EXPECT_EQ(y, std::vector<float>(4, 5.0F));
  };
  says({.count = 4, .op = ReduceOp::max}, "factor is given to all_reduce max of f32");
  says({.count = 4, .type = DataType::b8}, "factor is given to all_reduce sum of b8");
  says({.collective = Collective::broadcast, .count = 4}, "factor is given to broadcast");
  says({.count = 3}, "in is null");
  says({.count = 2}, "overlap");
  says({.count = 4, .options = {.algorithm = "sorcery"}}, "sorcery");
}

// Scans from the user's view. catalogue_sweep_test runs every algorithm, UserOps above tests the
// order of operations that do not commute, and order_test tests the levels of order.

using Elements = std::vector<std::int64_t>;

constexpr std::int64_t kLeft = -77;  // the content of outputs that no rank writes
constexpr std::optional<Transport> kWays[] = {std::nullopt, Transport::direct, Transport::mailbox,
                                              Transport::board};

std::int64_t value(Rank r, std::size_t i) {
  return (r + 1) * 1'000'003 + static_cast<std::int64_t>(i) * 7;
}

Elements input_of(Rank r, std::size_t count) {
  Elements in(count);
  for (std::size_t i = 0; i < count; ++i) in[i] = value(r, i);
  return in;
}

// Returns the sum over the first `heard` ranks, or `otherwise` if `heard` is 0.
Elements sum_of(int heard, std::size_t count, const Elements& otherwise) {
  if (heard == 0) return otherwise;
  Elements out(count);
  for (Rank r = 0; r < heard; ++r) {
    for (std::size_t i = 0; i < count; ++i) out[i] += value(r, i);
  }
  return out;
}

// Some ranks may call in place and others apart.
TEST(Scans, EveryLineOnEveryTransportInPlaceOnSomeRanks) {
  for (const int ranks : {2, 3, 5, 8}) {
    expect_ranks_succeed({.ranks = ranks, .timeout = std::chrono::minutes(2)}, [](Member& me) {
      for (const Algorithm& entry : catalogue()) {
        if (!is_prefix(entry.collective)) continue;
        for (const auto transport : kWays) {
          for (const std::size_t count : {1U, 57U, 6000U}) {
            if (transport == Transport::board && count > 57) continue;  // more than boards hold
            for (const int odd : {0, 1}) {                              // these ranks call in place
              const bool in_place = me.rank() % 2 == odd;
              Elements in = input_of(me.rank(), count), apart(count, kLeft);
              const Elements before = in;
              Elements& out = in_place ? in : apart;
              const Status status =
                  me.call({.collective = entry.collective,
                           .in = in.data(),
                           .out = out.data(),
                           .count = count,
                           .type = DataType::i64,
                           .options = {.algorithm = entry.name, .transport = transport}});
              if (!status.ok()) return status;
              const int heard = entry.collective == Collective::exscan ? me.rank() : me.rank() + 1;
              const Elements left = in_place ? before : Elements(count, kLeft);
              EXPECT_EQ(out, sum_of(heard, count, left))
                  << name_of(entry.collective) << " " << entry.name << ", rank " << me.rank();
              EXPECT_TRUE(in_place || in == before) << entry.name;
            }
          }
        }
      }
      return Status();
    });
  }
}

TEST(Scans, TypedCallsStartedAndPreparedOnes) {
  expect_team_succeeds({.ranks = 3}, [](Member& me) {
    constexpr std::size_t kCount = 33;
    const Elements in = input_of(me.rank(), kCount), left(kCount, kLeft);
    const Elements upto = sum_of(me.rank() + 1, kCount, left),
                   before = sum_of(me.rank(), kCount, left);
    Elements out = left, data = in;
    me.scan(in, out).throw_if_error();
    EXPECT_EQ(out, upto);
    me.scan(data).throw_if_error();
    EXPECT_EQ(data, upto);
    out = left;
    me.exscan(in, out, ReduceOp::sum).throw_if_error();
    EXPECT_EQ(out, before);
    Request prepared = me.prepared().scan(in, out).value();
    prepared.start().throw_if_error();
    prepared.wait().throw_if_error();
    EXPECT_EQ(out, upto);
    data = in;
    me.async().exscan(data).value().wait().throw_if_error();
    EXPECT_EQ(data, me.rank() == 0 ? in : before);
  });
}

// Rank 0 of an exclusive scan needs no output buffer; other ranks need one.
TEST(Exscan, LeavesRankZeroWithoutAResult) {
  expect_ranks_succeed({.ranks = 3}, [](Member& me) -> Status {
    const Elements in = input_of(me.rank(), 4);
    Elements out(me.rank() == 0 ? 0 : 4);
    if (Status status = me.exscan(in, out); !status.ok()) return status;
    EXPECT_EQ(out, me.rank() == 0 ? Elements() : sum_of(me.rank(), 4, {}));
    Elements short_one(3);
    expect_refused(me.exscan(in, short_one), {"out has 3 elements"});
    const Status none = me.call(
        {.collective = Collective::exscan, .in = in.data(), .count = 4, .type = DataType::i64});
    if (me.rank() == 0) return none;
    EXPECT_EQ(none.text(), "out is null; 32 bytes are needed");
    return {};
  });
}

TEST(Scan, RefusesByName) {
  expect_ranks_succeed({.ranks = 5}, [](Member& me) -> Status {
    std::vector<float> data(4, 1.0F);
    const std::span<float> both(data);
    expect_refused(me.scan(both, ReduceOp::avg), {"operation is avg", "scan"});
    expect_refused(me.async().exscan(both, ReduceOp::avg).status(), {"operation is avg"});
    expect_refused(me.scan(both, ReduceOp::sum, {.order = Order::group_invariant}),
                   {"order is group_invariant", "scan among 5 ranks"});
    expect_refused(me.scan(both, ReduceOp::sum, {.algorithm = "chain", .order = Order::by_rank}),
                   {"chain"});
    expect_refused(me.scan(both, ReduceOp::sum, {.algorithm = "ring"}), {"scan has direct, chain"});
    Call call{.collective = Collective::scan, .count = 4};
    expect_refused(me.call(call), {"in is null; 16 bytes"});
    call.in = data.data();
    call.out = data.data() + 1;
    call.count = 2;
    expect_refused(me.call(call), {"overlap"});
    return me.scan(both);  // the communicator still works
  });
}

}  // namespace
}  // namespace rankine
