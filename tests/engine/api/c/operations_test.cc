// Operations that ranks create: functions and factors, alone and in groups, and what is refused.
#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/c/rankine.h"

namespace {

constexpr int kRanks = 4;

struct Affine {  // x -> a x + b; composition does not commute
  std::int64_t a, b;
  std::int32_t ranks;
};

int compose(const void* in, void* inout, std::size_t count, void* calls) {
  const auto* first = static_cast<const Affine*>(in);
  auto* second = static_cast<Affine*>(inout);
  for (std::size_t i = 0; i < count; ++i) {
    second[i].b += second[i].a * first[i].b;
    second[i].a *= first[i].a;
    second[i].ranks += first[i].ranks;
  }
  if (calls != nullptr) ++*static_cast<int*>(calls);
  return 0;
}
int refuse(const void*, void*, std::size_t, void*) { return 7; }

class Operations : public testing::Test {
 protected:
  Operations() { EXPECT_EQ(rkCommInitAll(comms, kRanks, nullptr), rkSuccess); }
  ~Operations() override {
    for (rkComm_t comm : comms) EXPECT_EQ(rkCommDestroy(comm), rkSuccess);
  }
  template <class Play>
  void on_each(const Play& play) {
    std::vector<std::thread> threads;
    for (int r = 0; r < kRanks; ++r) threads.emplace_back([&play, r, this] { play(r, comms[r]); });
    for (std::thread& thread : threads) thread.join();
  }
  rkComm_t comms[kRanks];
};

Affine expected() {
  Affine total{1, 0, 0};
  for (int r = 0; r < kRanks; ++r) total = {(r + 2) * total.a, (r + 2) * total.b + r, r + 1};
  return total;
}

TEST_F(Operations, AFunctionReducesInTheOrderOfTheRanks) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{3000}}) {
    on_each([count](int r, rkComm_t comm) {
      rkRedOp_t op = rkSum;
      int calls = 0;
      ASSERT_EQ(rkRedOpCreate(&op, compose, sizeof(Affine), 0, &calls, comm), rkSuccess);
      EXPECT_GE(static_cast<int>(op), static_cast<int>(rkNumOps));
      std::vector<Affine> x(count, Affine{r + 2, r, 1});
      ASSERT_EQ(rkAllReduce(x.data(), x.data(), count, rkOpaque, op, comm), rkSuccess)
          << rkGetLastError(nullptr);
      for (const Affine& one : x) {
        ASSERT_EQ(one.a, expected().a);
        ASSERT_EQ(one.b, expected().b);
        ASSERT_EQ(one.ranks, kRanks);
      }
      EXPECT_EQ(rkRedOpDestroy(op, comm), rkSuccess);
    });
  }
}

TEST_F(Operations, AGroupKeepsWhatItsCallsNeed) {
  std::vector<Affine> x;
  std::vector<double> y(kRanks, 1.0);
  for (int r = 0; r < kRanks; ++r) x.push_back({r + 2, r, 1});
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (int r = 0; r < kRanks; ++r) {
    rkRedOp_t op = rkSum, scaled = rkSum;
    const double factor = r + 1;
    const auto i = static_cast<std::size_t>(r);
    ASSERT_EQ(rkRedOpCreate(&op, compose, sizeof(Affine), 0, nullptr, comms[r]), rkSuccess);
    ASSERT_EQ(rkRedOpCreatePreMulSum(&scaled, &factor, rkFloat64, comms[r]), rkSuccess);
    EXPECT_NE(op, scaled);
    EXPECT_EQ(rkAllReduce(&x[i], &x[i], 1, rkOpaque, op, comms[r]), rkSuccess);
    EXPECT_EQ(rkAllReduce(&y[i], &y[i], 1, rkFloat64, scaled, comms[r]), rkSuccess);
    EXPECT_EQ(rkRedOpDestroy(op, comms[r]), rkSuccess);
    EXPECT_EQ(rkRedOpDestroy(scaled, comms[r]), rkSuccess);
  }
  ASSERT_EQ(rkGroupEnd(), rkSuccess) << rkGetLastError(nullptr);
  for (const Affine& one : x) EXPECT_EQ(one.b, expected().b);
  EXPECT_EQ(y, std::vector<double>(kRanks, 10.0));
}

TEST_F(Operations, FactorsAreEachRanksOwn) {
  on_each([](int r, rkComm_t comm) {
    rkRedOp_t floats = rkSum, complexes = rkSum;
    const float factor = static_cast<float>(r);  // of a 16-bit type, a float
    const std::complex<double> turn(0, 1);
    ASSERT_EQ(rkRedOpCreatePreMulSum(&floats, &factor, rkBfloat16, comm), rkSuccess);
    ASSERT_EQ(rkRedOpCreatePreMulSum(&complexes, &turn, rkComplex128, comm), rkSuccess);
    std::vector<std::uint16_t> x(100, 0x3f80), sum(100);  // 1.0
    std::complex<double> z(1, 0);
    ASSERT_EQ(rkAllReduce(x.data(), sum.data(), 100, rkBfloat16, floats, comm), rkSuccess);
    EXPECT_EQ(sum, std::vector<std::uint16_t>(100, 0x40c0));  // 6.0
    ASSERT_EQ(rkAllReduce(&z, &z, 1, rkComplex128, complexes, comm), rkSuccess);
    EXPECT_EQ(z, std::complex<double>(0, kRanks));
    EXPECT_EQ(rkAllReduce(x.data(), sum.data(), 100, rkFloat16, floats, comm), rkInvalidArgument);
    EXPECT_NE(std::string(rkGetLastError(nullptr)).find("type is f16"), std::string::npos);
  });
}

TEST_F(Operations, OneThatFailsEndsTheCallOnAllThatNeedIt) {
  on_each([](int, rkComm_t comm) {
    rkRedOp_t op = rkSum;
    ASSERT_EQ(rkRedOpCreate(&op, refuse, 8, 1, nullptr, comm), rkSuccess);
    double x = 1;
    EXPECT_EQ(rkAllReduce(&x, &x, 1, rkOpaque, op, comm), rkRemoteError);
    EXPECT_NE(std::string(rkGetLastError(nullptr)).find("the operation returned 7"),
              std::string::npos)
        << rkGetLastError(nullptr);
  });
}

TEST_F(Operations, RanksThatUseDifferentFunctionsAreTold) {
  on_each([](int r, rkComm_t comm) {
    rkRedOp_t op = rkSum;
    const rkRedFunction_t function = r == 1 ? refuse : compose;
    ASSERT_EQ(rkRedOpCreate(&op, function, sizeof(Affine), 1, nullptr, comm), rkSuccess);
    Affine x{1, 1, 1};
    EXPECT_EQ(rkAllReduce(&x, &x, 1, rkOpaque, op, comm), rkMismatch);
  });
}

TEST_F(Operations, WrongOnesAreRefused) {
  rkComm_t comm = comms[0];
  rkRedOp_t op = rkSum;
  float factor = 2, x = 1;
  const auto says = [](rkResult_t result, const std::string& text) {
    EXPECT_EQ(result, rkInvalidArgument);
    EXPECT_NE(std::string(rkGetLastError(nullptr)).find(text), std::string::npos)
        << rkGetLastError(nullptr);
  };
  says(rkRedOpCreate(nullptr, compose, 8, 1, nullptr, comm), "op is NULL");
  says(rkRedOpCreate(&op, nullptr, 8, 1, nullptr, comm), "function is NULL");
  says(rkRedOpCreate(&op, compose, 0, 1, nullptr, comm), "elementBytes is 0");
  says(rkRedOpCreate(&op, compose, 4097, 1, nullptr, comm), "elementBytes is 4097");
  says(rkRedOpCreate(&op, compose, 8, 2, nullptr, comm), "commutative is 2");
  says(rkRedOpCreate(&op, compose, 8, 1, nullptr, nullptr), "comm is NULL");
  says(rkRedOpCreatePreMulSum(nullptr, &factor, rkFloat32, comm), "op is NULL");
  says(rkRedOpCreatePreMulSum(&op, nullptr, rkFloat32, comm), "factor is NULL");
  says(rkRedOpCreatePreMulSum(&op, &factor, rkBool, comm), "type is b8");
  says(rkRedOpCreatePreMulSum(&op, &factor, rkOpaque, comm), "type is 100");
  says(rkRedOpDestroy(rkSum, comm), "op is 0, which is no operation");
  says(rkAllReduce(&x, &x, 1, rkFloat32, static_cast<rkRedOp_t>(rkNumOps), comm),
       "op is 8; allowed are 0 to 7 and what this rank has created");
  says(rkAllReduce(&x, &x, 1, rkOpaque, rkSum, comm), "type is 100; allowed are 0 to 14");
  ASSERT_EQ(rkRedOpCreate(&op, compose, 8, 1, nullptr, comm), rkSuccess);
  says(rkAllReduce(&x, &x, 1, rkFloat32, op, comm), "it must be rkOpaque");
  says(rkAllReduce(&x, &x, 1, rkOpaque, op, comms[1]), "what this rank has created");
  EXPECT_EQ(rkRedOpDestroy(op, comm), rkSuccess);
  says(rkRedOpDestroy(op, comm), "no operation");
  says(rkAllReduce(&x, &x, 1, rkOpaque, op, comm), "what this rank has created");
}

}  // namespace
