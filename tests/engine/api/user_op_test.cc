// Operations of the user's: any element, by every algorithm that may, in the order of the ranks
// where they do not commute, and what becomes of those that throw or disagree.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/team.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kMostRanks = 9;
#else
constexpr int kMostRanks = 33;
#endif

// Two by two, modulo 2^32; 20 bytes, so that lines hold no whole number of them. Products of such
// as have odd determinants tell every change of order.
struct Matrix {
  std::array<std::uint32_t, 4> a;
  std::uint32_t ranks;  // how many were multiplied

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

// Upper and lower triangles in turn: neighbours do not commute.
Matrix matrix(Rank r, std::size_t i) {
  const auto x =
      static_cast<std::uint32_t>(r) * 2654435761U + static_cast<std::uint32_t>(i) * 7 + 3;
  return {
      (r + static_cast<int>(i)) % 2 == 0 ? std::array{1U, x, 0U, 1U} : std::array{1U, 0U, x, 1U},
      1};
}

// What the first 1, 2, ... of so many ranks come to in their order, element by element. Worked out
// once: every rank of every call needs some of it.
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

// One call on every rank: what it returned, and whether every element is the product in the order
// of the ranks.
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
        const Goal goal{.collective = call.collective, .ranks = me.ranks()};
        const int heard = goal.heard_by(me.rank(), 0).count;
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

// Every line of the catalogue: it either multiplies in the order of the ranks or is refused, and
// none is refused that would have done it.
TEST_P(UserOps, MultiplyInTheOrderOfRanks) {
  const int ranks = GetParam();
  auto team = Team::create({.ranks = ranks, .timeout = std::chrono::minutes(4)});
  ASSERT_TRUE(team.ok()) << team.status().text();
  TypedUserOp<Matrix> ordered = user_op<Matrix>(multiply, Commutes::no);
  TypedUserOp<Matrix> any = user_op<Matrix>(multiply, Commutes::yes);
  constexpr std::size_t kCount = 331;
  const Products products(ranks, static_cast<std::size_t>(ranks) * kCount);
  int in_order = 0, refused = 0;
  for (const Algorithm& line : catalogue()) {
    Params params;
    params.ranks = ranks;
    if (!reduces(line.collective) || line.refusal(params)) continue;
    for (const Rank root : {0, ranks / 2}) {
      if (root != 0 && line.collective != Collective::reduce) continue;
      Call call{.collective = line.collective,
                .count = kCount,
                .type = DataType::raw,
                .op = ReduceOp::user,
                .root = root,
                .user_op = &ordered.op,
                .options = {.algorithm = line.name}};
      for (const bool in_place : {false, true}) {
        const std::string name = std::string(name_of(line.collective)) + " " +
                                 std::string(line.name) + " root " + std::to_string(root) +
                                 (in_place ? " in place" : " apart");
        call.user_op = &ordered.op;
        bool all_right = true, all_refused = true;
        for (const Outcome& one : play(**team, call, in_place, products)) {
          const bool no = one.status.code() == Code::invalid_argument &&
                          one.status.text().find("in their order") != std::string::npos;
          ASSERT_TRUE(one.status.ok() || no) << name << ": " << one.status.text();
          all_refused &= no;
          all_right &= one.status.ok() && one.right;
        }
        ASSERT_NE(all_right, all_refused) << name;
        ++(all_right ? in_order : refused);
        if (!all_refused) continue;
        // The reader is right about it: the product has another order at some rank.
        call.user_op = &any.op;
        bool right = true;
        for (const Outcome& one : play(**team, call, in_place, products)) {
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

// What names no algorithm gets one that may, on every transport, of every length.
TEST_P(UserOps, AreGivenAnAlgorithmThatMay) {
  const int ranks = GetParam();
  auto team = Team::create({.ranks = ranks, .timeout = std::chrono::minutes(4)});
  ASSERT_TRUE(team.ok()) << team.status().text();
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
        for (const Outcome& one : play(**team, call, count % 2 == 0, products)) {
          ASSERT_TRUE(one.status.ok()) << one.status.text();
          ASSERT_TRUE(one.right) << name_of(collective) << " of " << count;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, UserOps, testing::Range(1, kMostRanks + 1));

TEST(UserOp, ThatThrowsEndsTheCallForAllWhoNeedIt) {
  for (const Rank odd : {0, 2}) {
    for (const Transport transport : {Transport::direct, Transport::mailbox}) {
      Ranks ranks({.ranks = 4, .timeout = std::chrono::minutes(2)});
      struct Context {
        bool throws;
      };
      const auto apply = [](const void* in, void* inout, std::size_t count, void* context) {
        if (static_cast<const Context*>(context)->throws) throw std::runtime_error("no more");
        for (std::size_t i = 0; i < count; ++i) {
          static_cast<int*>(inout)[i] += static_cast<const int*>(in)[i];
        }
      };
      const auto results = ranks.run([&](Member& me) {
        Context context{me.rank() == odd};
        const UserOp op{apply, &context, sizeof(int), true};
        std::vector<int> data(10'000, 1);
        // In two shots everybody needs what everybody adds up.
        return me.call({.in = data.data(),
                        .out = data.data(),
                        .count = data.size(),
                        .type = DataType::raw,
                        .op = ReduceOp::user,
                        .user_op = &op,
                        .options = {.algorithm = "direct_two_shot", .transport = transport}});
      });
      for (const Status& one : results) {
        EXPECT_EQ(one.code(), Code::remote_error) << one.text();
        EXPECT_EQ(one.text(), "the operation of rank " + std::to_string(odd) + " threw: no more");
      }
      const auto later = ranks.run([](Member& me) { return me.barrier(); });
      for (const Status& one : later) EXPECT_EQ(one.code(), Code::remote_error);
    }
  }
}

TEST(UserOp, MustBeTheSameOnAllRanks) {
  const auto add = [](const void*, void*, std::size_t, void*) {};
  const auto other = [](const void* in, void*, std::size_t count, void*) {
    if (count == 0 && in == nullptr) throw 1;
  };
  const UserOp base{add, nullptr, 8, true};
  const UserOp others[] = {{other, nullptr, 8, true}, {add, nullptr, 4, true}};
  for (const UserOp& odd : others) {
    Ranks ranks({.ranks = 3, .timeout = std::chrono::minutes(2)});
    const auto results = ranks.run([&](Member& me) {
      std::vector<std::byte> data(800);
      return me.call({.in = data.data(),
                      .out = data.data(),
                      .count = 100,
                      .type = DataType::raw,
                      .op = ReduceOp::user,
                      .user_op = me.rank() == 1 ? &odd : &base});
    });
    for (const Status& one : results) EXPECT_EQ(one.code(), Code::mismatch) << one.text();
  }
}

TEST(UserOp, RefusesWhatMakesNoSense) {
  Ranks ranks({.ranks = 2});
  const auto nothing = [](const void*, void*, std::size_t, void*) {};
  const auto says = [&](Call call, UserOp op, bool has_op, std::string_view what) {
    call.user_op = has_op ? &op : nullptr;
    call.count = 1;
    const auto results = ranks.run([&](Member& me) {
      int word = 0;
      Call mine = call;
      mine.in = mine.out = &word;
      return me.call(mine);
    });
    for (const Status& one : results) {
      EXPECT_EQ(one.code(), Code::invalid_argument);
      EXPECT_NE(one.text().find(what), std::string::npos) << one.text();
    }
  };
  const UserOp op{nothing, nullptr, 4, true};
  const Call call{.type = DataType::raw, .op = ReduceOp::user};
  says(call, op, false, "operation is user, and user_op is null");
  says({.type = DataType::i32, .op = ReduceOp::user}, op, false,
       "operation is user, and user_op is null");
  says({.type = DataType::i32, .op = ReduceOp::user}, op, true, "must be raw and user");
  says({.type = DataType::raw}, op, true, "must be raw and user");
  says(call, {nullptr, nullptr, 4, true}, true, "user_op.apply is null");
  says(call, {nothing, nullptr, 0, true}, true, "user_op.element_bytes is 0");
  says(call, {nothing, nullptr, kMostElementBytes + 1, true}, true,
       "user_op.element_bytes is 4097");
  says(call, {nothing, nullptr, 5000, true}, true,
       "user_op.element_bytes is 5000; allowed are 1 to 4096");
  says({.collective = Collective::broadcast, .type = DataType::raw, .op = ReduceOp::user}, op, true,
       "broadcast reduces nothing");
  // Also where a call of the same kind has been made, and no refusal is remembered.
  const auto good = [&](Member& me) {
    int word = 0;
    Call mine = call;
    mine.in = mine.out = &word;
    mine.count = 1;
    mine.user_op = &op;
    return me.call(mine);
  };
  for (const Status& one : ranks.run(good)) EXPECT_TRUE(one.ok()) << one.text();
  says(call, {nullptr, nullptr, 4, true}, true, "user_op.apply is null");
  for (const Status& one : ranks.run(good)) EXPECT_TRUE(one.ok()) << one.text();
}

// Elements of one byte, of the largest size, and more of them than a piece holds.
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

}  // namespace
}  // namespace rankine
