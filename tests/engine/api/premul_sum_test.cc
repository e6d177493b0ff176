// Sums in which every rank's input is multiplied by a factor of its own.
#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/kernels/types.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

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

// Small, so that every product and sum is a whole number that 8-bit floats hold.
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
    const int heard =
        Goal{.collective = collective, .ranks = me.ranks()}.heard_by(me.rank(), 0).count;
    if (heard == 0) break;
    for (Rank r = 0; r < heard; ++r) sum += factor(r) * input(r, first + i);
    const T want = number<T>(sum);
    if (std::memcmp(&to[i], &want, sizeof(T)) != 0) {
      return Status(Code::system, "element " + std::to_string(i) + " is wrong");
    }
  }
  if (!in_place && std::memcmp(in.data(), before.data(), in.size() * sizeof(T)) != 0) {
    return Status(Code::system, "the input has changed");
  }
  return {};
}

TEST(PreMulSum, OfEveryTypeOnEveryTransport) {
  for (const int ranks : {1, 2, 3, 5}) {
    Ranks all({.ranks = ranks, .timeout = std::chrono::minutes(2)});
    for (int t = 0; t < kDataTypes; ++t) {
      const auto type = static_cast<DataType>(t);
      if (type == DataType::b8) continue;
      with_element(type, [&]<class T>() {
        if constexpr (!std::is_same_v<T, Bool>) {
          for (const Collective collective :
               {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter,
                Collective::scan, Collective::exscan}) {
            for (const auto transport :
                 {std::optional<Transport>(), std::optional(Transport::direct),
                  std::optional(Transport::mailbox)}) {
              for (const std::size_t count : {0U, 1U, 77U, 5000U}) {
                const auto results = all.run([&](Member& me) {
                  return check<T>(me, collective, count != 77, transport, count);
                });
                for (const Status& one : results) {
                  ASSERT_TRUE(one.ok()) << name_of(collective) << " " << name_of(type) << " "
                                        << count << ": " << one.text();
                }
              }
            }
          }
        }
      });
    }
  }
}

// The product is rounded to the type once, and then the sum is.
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
  Ranks all({.ranks = 2});
  const float two = 2;
  const auto says = [&](const Call& given, std::string_view what) {
    const auto results = all.run([&](Member& me) {
      Call call = given;
      std::vector<float> x(4, 3.0F), y(4, 5.0F);
      call.in = x.data();
      if (call.count == 3) call.in = nullptr;
      call.out = call.count == 2 ? x.data() + 1 : y.data();
      call.factor = &two;
      const Status status = me.call(call);
      EXPECT_NE(status.text().find(what), std::string::npos) << status.text();
      EXPECT_EQ(x, std::vector<float>(4, 3.0F));
      EXPECT_EQ(y, std::vector<float>(4, 5.0F));
      return status;
    });
    for (const Status& one : results) EXPECT_EQ(one.code(), Code::invalid_argument);
  };
  says({.count = 4, .op = ReduceOp::max}, "factor is given to all_reduce max of f32");
  says({.count = 4, .type = DataType::b8}, "factor is given to all_reduce sum of b8");
  says({.collective = Collective::broadcast, .count = 4}, "factor is given to broadcast");
  says({.count = 3}, "in is null");
  says({.count = 2}, "overlap");
  says({.count = 4, .options = {.algorithm = "sorcery"}}, "sorcery");
}

}  // namespace
}  // namespace rankine
