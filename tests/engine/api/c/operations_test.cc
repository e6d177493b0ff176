// C calls with created operations (functions and factors), with epilogues, and in groups; each part
// also tests the refused calls.

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/c/rankine.h"
#include "engine/api/c/rankine.hpp"

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
    const float factor = static_cast<float>(r);  // a float also for 16-bit types
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
  says(rkRedOpDestroy(rkSum, comm), "op is 0; allowed are operations that this rank has created");
  says(rkAllReduce(&x, &x, 1, rkFloat32, static_cast<rkRedOp_t>(rkNumOps), comm),
       "op is 8; allowed are 0 to 7 and operations that this rank has created");
  says(rkAllReduce(&x, &x, 1, rkOpaque, rkSum, comm), "type is 100; allowed are 0 to 14");
  ASSERT_EQ(rkRedOpCreate(&op, compose, 8, 1, nullptr, comm), rkSuccess);
  says(rkAllReduce(&x, &x, 1, rkFloat32, op, comm), "it must be rkOpaque");
  says(rkAllReduce(&x, &x, 1, rkOpaque, op, comms[1]), "operations that this rank has created");
  EXPECT_EQ(rkRedOpDestroy(op, comm), rkSuccess);
  says(rkRedOpDestroy(op, comm), "op is 8; allowed are operations that this rank has created");
  says(rkAllReduce(&x, &x, 1, rkOpaque, op, comm), "operations that this rank has created");
}

}  // namespace

// Epilogues from C: alone, in groups, in requests, from C++17, and refused calls.

namespace {

constexpr int kEpilogueRanks = 3;
constexpr std::size_t kWidth = 24, kRows = 6, kCount = kWidth * kRows;

class Epilogues : public testing::Test {
 protected:
  Epilogues() { EXPECT_EQ(rkCommInitAll(comms, kEpilogueRanks, nullptr), rkSuccess); }
  ~Epilogues() override {
    for (rkComm_t comm : comms) EXPECT_EQ(rkCommDestroy(comm), rkSuccess);
  }
  template <class Play>
  void on_each(const Play& play) {
    std::vector<std::thread> threads;
    for (int r = 0; r < kEpilogueRanks; ++r)
      threads.emplace_back([&play, r, this] { play(r, comms[r]); });
    for (std::thread& thread : threads) thread.join();
  }
  rkComm_t comms[kEpilogueRanks];
};

std::vector<float> brought(int rank) {
  std::vector<float> x(kCount);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(static_cast<int>(i * 7 % 31) - 15 + rank);
  }
  return x;
}

// One rank's destinations, and the steps that write to them.
struct Norm {
  std::vector<float> residual, weight;
  std::vector<std::int8_t> out;
  std::vector<float> scales;
  rkEpilogue_t epilogue = nullptr;

  explicit Norm(std::size_t rows)
      : residual(rows * kWidth, 0.5F), weight(kWidth, 1.5F), out(rows * kWidth), scales(rows) {
    rkRowSteps_t steps = RK_ROW_STEPS_INITIALIZER;
    steps.type = rkFloat32;
    steps.rowElements = kWidth;
    steps.residual = residual.data();
    steps.norm = rkNormRms;
    steps.weight = weight.data();
    steps.epsilon = 1e-6F;
    steps.outType = rkInt8;
    steps.out = out.data();
    steps.scales = scales.data();
    EXPECT_EQ(rkEpilogueCreate(&epilogue, &steps), rkSuccess) << rkGetLastError(nullptr);
  }
  ~Norm() { EXPECT_EQ(rkEpilogueDestroy(epilogue), rkSuccess); }
  Norm(const Norm&) = delete;
  Norm& operator=(const Norm&) = delete;

  // The epilogue must have done to `rows` the same as rkEpilogueApply(), and the result must be the
  // RMS norm.
  void expect_done(const std::vector<float>& rows) const {
    Norm again(scales.size());
    ASSERT_EQ(rkEpilogueApply(again.epilogue, rows.data(), scales.size()), rkSuccess);
    EXPECT_EQ(residual, again.residual);
    EXPECT_EQ(out, again.out);
    EXPECT_EQ(scales, again.scales);
    for (std::size_t row = 0; row < scales.size(); ++row) {
      double squares = 0;
      for (std::size_t i = 0; i < kWidth; ++i) {
        squares += std::pow(rows[row * kWidth + i] + 0.5, 2);
      }
      const double root = std::sqrt(squares / kWidth + 1e-6);
      for (std::size_t i = 0; i < kWidth; ++i) {
        const double x = (rows[row * kWidth + i] + 0.5) / root * 1.5;
        EXPECT_NEAR(out[row * kWidth + i] * scales[row], x, 0.51 * scales[row]);
      }
    }
  }
};

TEST_F(Epilogues, GoOnWithTheRowsOfAResult) {
  on_each([](int r, rkComm_t comm) {
    std::vector<float> x = brought(r), sum(kCount), plain(kCount);
    const Norm norm(kRows);
    ASSERT_EQ(rkAllReduceThen(x.data(), sum.data(), kCount, rkFloat32, rkSum, norm.epilogue, comm),
              rkSuccess)
        << rkGetLastError(comm);
    ASSERT_EQ(rkAllReduce(x.data(), plain.data(), kCount, rkFloat32, rkSum, comm), rkSuccess);
    EXPECT_EQ(sum, plain);
    norm.expect_done(sum);

    const Norm of_part(kRows / kEpilogueRanks);
    std::vector<float> part(kCount / kEpilogueRanks);
    ASSERT_EQ(rkReduceScatterThen(x.data(), part.data(), part.size(), rkFloat32, rkSum,
                                  of_part.epilogue, comm),
              rkSuccess);
    of_part.expect_done(part);

    const Norm of_all(kRows * kEpilogueRanks);
    std::vector<float> all(kCount * kEpilogueRanks);
    ASSERT_EQ(rkAllGatherThen(x.data(), all.data(), kCount, rkFloat32, of_all.epilogue, comm),
              rkSuccess);
    of_all.expect_done(all);
  });
}

TEST_F(Epilogues, InARequestOutliveTheirHandle) {
  on_each([](int r, rkComm_t comm) {
    std::vector<float> x = brought(r), sum(kCount);
    rkRequest_t request;
    std::size_t seen = 0;
    const auto count = [](const void*, std::size_t, std::size_t rows, void* total) {
      *static_cast<std::size_t*>(total) += rows;
      return 0;
    };
    rkEpilogue_t counting;
    ASSERT_EQ(rkEpilogueCreateFunction(&counting, kWidth, count, &seen), rkSuccess);
    ASSERT_EQ(rkGroupStart(), rkSuccess);
    ASSERT_EQ(rkAllReduceThen(x.data(), sum.data(), kCount, rkFloat32, rkSum, counting, comm),
              rkSuccess);
    ASSERT_EQ(rkGroupEndPrepare(&request), rkSuccess) << rkGetLastError(comm);
    ASSERT_EQ(rkEpilogueDestroy(counting), rkSuccess);
    EXPECT_EQ(rkEpilogueDestroy(counting), rkInvalidArgument);
    for (std::size_t round = 1; round <= 3; ++round) {
      ASSERT_EQ(rkRequestStart(request), rkSuccess);
      ASSERT_EQ(rkRequestWait(request), rkSuccess);
      EXPECT_EQ(seen, round * kRows);
    }
    EXPECT_EQ(rkRequestFree(request), rkSuccess);
  });
}

TEST_F(Epilogues, AFunctionThatFailsEndsTheCall) {
  on_each([](int r, rkComm_t comm) {
    std::vector<float> x = brought(r);
    const auto fail = [](const void*, std::size_t, std::size_t, void* context) {
      return context == nullptr ? 0 : 9;
    };
    rkEpilogue_t failing;
    int any = 0;
    ASSERT_EQ(rkEpilogueCreateFunction(&failing, kWidth, fail, r == 1 ? &any : nullptr), rkSuccess);
    const rkResult_t result =
        rkAllReduceThen(x.data(), x.data(), kCount, rkFloat32, rkSum, failing, comm);
    if (r == 1) {
      EXPECT_EQ(result, rkRemoteError);
      EXPECT_NE(std::string(rkGetLastError(comm)).find("the epilogue returned 9"),
                std::string::npos)
          << rkGetLastError(comm);
      EXPECT_EQ(rkEpilogueApply(failing, x.data(), kRows), rkRemoteError);
    }
    // The other ranks need no more data, and get the error in the next call at the latest.
    const rkResult_t next = rkBarrier(comm);
    EXPECT_EQ(next, rkRemoteError);
    EXPECT_EQ(rkEpilogueDestroy(failing), rkSuccess);
  });
}

void says(rkResult_t result, const char* text) {
  EXPECT_TRUE(result == rkInvalidArgument || result == rkInvalidUsage) << result;
  EXPECT_NE(std::string(rkGetLastError(nullptr)).find(text), std::string::npos)
      << rkGetLastError(nullptr);
}

TEST_F(Epilogues, AreRefusedByName) {
  rkEpilogue_t made = nullptr;
  float row[kWidth] = {};
  rkRowSteps_t steps = RK_ROW_STEPS_INITIALIZER;
  const auto with = [&](const auto& change) {
    rkRowSteps_t other = steps;
    other.type = other.outType = rkFloat32;
    other.rowElements = kWidth;
    other.out = row;
    change(other);
    return rkEpilogueCreate(&made, &other);
  };
  const auto nothing = [](rkRowSteps_t&) {};
  says(rkEpilogueCreate(nullptr, &steps), "epilogue is NULL");
  says(rkEpilogueCreate(&made, nullptr), "steps is NULL");
  says(with([](rkRowSteps_t& s) { s.size = 8; }), "steps.size is 8");
  says(with([](rkRowSteps_t& s) { s.type = rkInt32; }), "type is i32; allowed are f32");
  says(with([](rkRowSteps_t& s) { s.type = static_cast<rkDataType_t>(-1); }), "type is -1");
  says(with([](rkRowSteps_t& s) { s.norm = static_cast<rkNorm_t>(3); }), "norm is 3");
  says(with([](rkRowSteps_t& s) { s.activation = static_cast<rkActivation_t>(4); }),
       "activation is 4");
  says(with([](rkRowSteps_t& s) { s.rowElements = 0; }), "row_elements is 0");
  says(with([](rkRowSteps_t& s) { s.outType = rkInt8; }), "need scales");
  says(with([](rkRowSteps_t& s) { s.out = nullptr; }), "out and residual are null");
  says(rkEpilogueCreateFunction(&made, 0, nullptr, nullptr), "rowElements is 0");
  says(rkEpilogueCreateFunction(&made, 1, nullptr, nullptr), "function is NULL");
  says(rkEpilogueApply(nullptr, row, 1), "epilogue is NULL");
  EXPECT_EQ(made, nullptr);

  ASSERT_EQ(with(nothing), rkSuccess);
  says(rkEpilogueApply(made, nullptr, 1), "rows is NULL");
  std::vector<double> x(kCount);
  says(rkAllReduceThen(x.data(), x.data(), kCount, rkFloat64, rkSum, made, comms[0]),
       "type is f64; the rows of the epilogue are f32");
  says(rkAllReduceThen(x.data(), x.data(), kWidth + 1, rkFloat32, rkSum, made, comms[0]),
       "whole rows");
  says(rkAllReduceThen(x.data(), x.data(), kWidth, rkFloat32, rkSum, nullptr, comms[0]),
       "epilogue is NULL");
  // A handle of another kind is not an epilogue.
  says(rkEpilogueApply(reinterpret_cast<rkEpilogue_t>(comms[0]), row, 1),
       "epilogue is no valid handle");
  says(rkBarrier(reinterpret_cast<rkComm_t>(made)), "comm is no valid handle");
  EXPECT_EQ(rkEpilogueDestroy(made), rkSuccess);
  EXPECT_EQ(rkEpilogueDestroy(nullptr), rkSuccess);
}

TEST(CxxEpilogues, AreOwners) {
  rk::Communicator team(2);
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&team, r] {
      std::vector<float> x(kCount, static_cast<float>(r + 1)), out(kCount);
      rkRowSteps_t steps = rk::default_row_steps();
      steps.type = steps.outType = rkFloat32;
      steps.rowElements = kWidth;
      steps.activation = rkActivationRelu;
      steps.out = out.data();
      rk::Epilogue relu(steps);
      team[r].all_reduce(x, relu);
      EXPECT_EQ(out, x);
      EXPECT_EQ(x[0], 3);
      relu = rk::Epilogue(kWidth, [](const void*, std::size_t, std::size_t, void*) { return 0; });
      std::vector<float> half(kCount / 2), both(kCount * 2);
      steps.type = rkInt8;
      EXPECT_THROW(rk::Epilogue{steps}, rk::Error);
      team[r].reduce_scatter(x, half, relu, rkMax);
      team[r].all_gather(x, both, relu);
      EXPECT_EQ(both.back(), 3);
      relu.apply(x.data(), kRows);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

// Groups: one thread plays several ranks, and a rank makes several calls. A group with a refused
// call makes no call.

namespace {

class Group : public testing::Test {
 protected:
  Group() {
    EXPECT_EQ(rkCommInitAll(comms, kRanks, nullptr), rkSuccess) << rkGetLastError(nullptr);
  }
  ~Group() override {
    for (rkComm_t comm : comms) EXPECT_EQ(rkCommDestroy(comm), rkSuccess);
  }
  rkComm_t comms[kRanks];
};

TEST_F(Group, OneThreadPlaysAllRanks) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20}) {
    std::vector<std::vector<float>> x(kRanks, std::vector<float>(count, 1.5F));
    std::vector<std::vector<float>> all(kRanks, std::vector<float>(kRanks));
    ASSERT_EQ(rkGroupStart(), rkSuccess);
    for (std::size_t r = 0; r < kRanks; ++r) {
      EXPECT_EQ(rkAllReduce(x[r].data(), x[r].data(), count, rkFloat32, rkSum, comms[r]),
                rkSuccess);
      EXPECT_EQ(x[r][0], 1.5F);  // not before the group ends
    }
    for (std::size_t r = 0; r < kRanks; ++r) {
      EXPECT_EQ(rkBarrier(comms[r]), rkSuccess);
      EXPECT_EQ(rkAllGather(&x[r][count - 1], all[r].data(), 1, rkFloat32, comms[r]), rkSuccess);
    }
    ASSERT_EQ(rkGroupEnd(), rkSuccess) << rkGetLastError(nullptr);
    for (std::size_t r = 0; r < kRanks; ++r) {
      EXPECT_EQ(x[r], std::vector<float>(count, 6.0F));
      EXPECT_EQ(all[r], std::vector<float>(kRanks, 6.0F));  // in order: after the first
    }
  }
}

// A group copies the lists, so the caller may change them before the group ends.
TEST_F(Group, KeepsDisplacements) {
  std::vector<std::vector<int>> in(kRanks, std::vector<int>(kRanks)), out = in;
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (std::size_t r = 0; r < kRanks; ++r) {
    std::vector<std::size_t> backwards, counts(kRanks * kRanks, 1);
    for (std::size_t q = 0; q < kRanks; ++q) {
      backwards.push_back((kRanks - 1 - q) * sizeof(int));
      in[r][q] = static_cast<int>(r * 10 + q);
    }
    EXPECT_EQ(rkAllToAllDisplaced(in[r].data(), backwards.data(), out[r].data(), nullptr,
                                  counts.data(), rkInt32, comms[r]),
              rkSuccess);
    backwards.assign(kRanks, 1000);
    counts.assign(kRanks * kRanks, 1000);
  }
  ASSERT_EQ(rkGroupEnd(), rkSuccess) << rkGetLastError(nullptr);
  for (std::size_t r = 0; r < kRanks; ++r) {
    for (std::size_t q = 0; q < kRanks; ++q) {
      EXPECT_EQ(out[r][q], static_cast<int>(q * 10 + kRanks - 1 - r));
    }
  }
}

TEST_F(Group, NestedGroupsEndWithTheOutermost) {
  std::vector<int> x(kRanks, 1);
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (std::size_t r = 0; r < kRanks; ++r) {
    ASSERT_EQ(rkGroupStart(), rkSuccess);
    ASSERT_EQ(rkAllReduce(&x[r], &x[r], 1, rkInt32, rkSum, comms[r]), rkSuccess);
    ASSERT_EQ(rkGroupEnd(), rkSuccess);
    EXPECT_EQ(x[r], 1);
  }
  ASSERT_EQ(rkGroupEnd(), rkSuccess);
  EXPECT_EQ(x, std::vector<int>(kRanks, kRanks));
}

TEST_F(Group, ThreadsMayPlaySeveralRanksEach) {
  std::vector<int> x(kRanks, 1);
  const auto play = [&](std::size_t first) {
    for (int again = 0; again < 100; ++again) {
      ASSERT_EQ(rkGroupStart(), rkSuccess);
      for (std::size_t r = first; r < first + 2; ++r) {
        ASSERT_EQ(rkAllReduce(&x[r], &x[r], 1, rkInt32, rkMax, comms[r]), rkSuccess);
      }
      ASSERT_EQ(rkGroupEnd(), rkSuccess) << rkGetLastError(nullptr);
      for (std::size_t r = first; r < first + 2; ++r) ++x[r];
    }
  };
  std::thread other(play, 2);
  play(0);
  other.join();
  EXPECT_EQ(x, std::vector<int>(kRanks, 101));
}

TEST_F(Group, CountsAreCopied) {
  std::vector<int> in(kRanks, 7);
  std::vector<std::vector<int>> out(kRanks, std::vector<int>(kRanks));
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (std::size_t r = 0; r < kRanks; ++r) {
    std::size_t counts[kRanks] = {1, 1, 1, 1};
    ASSERT_EQ(rkAllGatherCounts(&in[r], out[r].data(), counts, rkInt32, comms[r]), rkSuccess);
    for (std::size_t& count : counts) count = 1 << 30;
  }
  ASSERT_EQ(rkGroupEnd(), rkSuccess) << rkGetLastError(nullptr);
  for (const auto& one : out) EXPECT_EQ(one, std::vector<int>(kRanks, 7));
}

TEST_F(Group, ARefusedCallKeepsAllFromBeingMade) {
  std::vector<int> x(kRanks, 1);
  const auto add = [&](std::size_t r, int root) {
    return rkReduce(&x[r], &x[r], 1, rkInt32, rkSum, root, comms[r]);
  };
  // The error is found when the call is added.
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (std::size_t r = 0; r + 1 < kRanks; ++r) ASSERT_EQ(add(r, 0), rkSuccess);
  ASSERT_EQ(rkAllReduce(&x[3], &x[3], 1, static_cast<rkDataType_t>(77), rkSum, comms[3]),
            rkInvalidArgument);
  EXPECT_EQ(rkGroupEnd(), rkInvalidArgument);
  EXPECT_STREQ(rkGetLastError(nullptr), "rkGroupEnd: rkAllReduce: type is 77; allowed are 0 to 14");
  // The error is found when the group ends.
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (std::size_t r = 0; r < kRanks; ++r) ASSERT_EQ(add(r, r < 3 ? 0 : 99), rkSuccess);
  EXPECT_EQ(rkGroupEnd(), rkInvalidArgument);
  EXPECT_STREQ(rkGetLastError(nullptr),
               "rkGroupEnd: rkReduce of rank 3: root is 99; allowed are 0 to 3");
  // No call has begun on any rank.
  EXPECT_EQ(x, std::vector<int>(kRanks, 1));
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (std::size_t r = 0; r < kRanks; ++r) ASSERT_EQ(add(r, 0), rkSuccess);
  ASSERT_EQ(rkGroupEnd(), rkSuccess) << rkGetLastError(nullptr);
  EXPECT_EQ(x[0], kRanks);
}

TEST_F(Group, AHandleThatIsDestroyedBeforeTheEndIsRefused) {
  int x = 1;
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  ASSERT_EQ(rkAllReduce(&x, &x, 1, rkInt32, rkSum, comms[0]), rkSuccess);
  ASSERT_EQ(rkCommDestroy(comms[0]), rkSuccess);
  comms[0] = nullptr;
  EXPECT_EQ(rkGroupEnd(), rkInvalidArgument);
}

TEST_F(Group, MessagesInAnyOrderDoNotDeadlock) {
  // The message is so large that the send waits for the receive.
  constexpr std::size_t kSent = 1 << 18;
  std::vector<std::vector<int>> x(kRanks), y(kRanks, std::vector<int>(kSent));
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (std::size_t r = 0; r < kRanks; ++r) {
    x[r].assign(kSent, static_cast<int>(r));
    const int to = static_cast<int>((r + 1) % kRanks), from = static_cast<int>((r + 3) % kRanks);
    ASSERT_EQ(rkSend(x[r].data(), kSent, rkInt32, to, comms[r]), rkSuccess);
    ASSERT_EQ(rkRecv(y[r].data(), kSent, rkInt32, from, comms[r]), rkSuccess);
  }
  ASSERT_EQ(rkGroupEnd(), rkSuccess) << rkGetLastError(nullptr);
  for (std::size_t r = 0; r < kRanks; ++r) EXPECT_EQ(y[r], x[(r + 3) % kRanks]);
  int none = 0;
  EXPECT_EQ(rkSend(&none, 1, rkInt32, kRanks, comms[0]), rkInvalidArgument);
  EXPECT_STREQ(rkGetLastError(nullptr), "rkSend: peer is 4; allowed are 0 to 3");
  EXPECT_EQ(rkRecv(nullptr, 1, rkInt32, 1, comms[0]), rkInvalidArgument);
  EXPECT_STREQ(rkGetLastError(nullptr), "rkRecv: data is NULL");
}

// One thread splits the communicators of all ranks twice, with other calls before, between and
// after.
TEST_F(Group, RanksAreSplit) {
  std::vector<rkComm_t> half(kRanks), none(kRanks, comms[0]), reversed(kRanks);
  std::vector<int> x(kRanks, 1), y(kRanks, 1);
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (std::size_t r = 0; r < kRanks; ++r) {
    const int rank = static_cast<int>(r);
    ASSERT_EQ(rkAllReduce(&x[r], &x[r], 1, rkInt32, rkSum, comms[r]), rkSuccess);
    ASSERT_EQ(rkCommSplit(comms[r], rank / 2, 0, &half[r]), rkSuccess);
    ASSERT_EQ(rkCommSplit(comms[r], RK_SPLIT_NOCOLOR, 0, &none[r]), rkSuccess);
    ASSERT_EQ(rkCommSplit(comms[r], 7, -rank, &reversed[r]), rkSuccess);
    ASSERT_EQ(rkAllReduce(&y[r], &y[r], 1, rkInt32, rkMax, comms[r]), rkSuccess);
    EXPECT_EQ(half[r], nullptr);  // not before the group ends
  }
  ASSERT_EQ(rkGroupEnd(), rkSuccess) << rkGetLastError(nullptr);
  EXPECT_EQ(x, std::vector<int>(kRanks, kRanks));
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (std::size_t r = 0; r < kRanks; ++r) {
    EXPECT_EQ(none[r], nullptr);
    int rank = -1, ranks = 0;
    EXPECT_EQ(rkCommUserRank(half[r], &rank), rkSuccess) << rkGetLastError(nullptr);
    EXPECT_EQ(rkCommCount(half[r], &ranks), rkSuccess);
    EXPECT_EQ(rank, static_cast<int>(r % 2));
    EXPECT_EQ(ranks, 2);
    EXPECT_EQ(rkCommUserRank(reversed[r], &rank), rkSuccess);
    EXPECT_EQ(rank, static_cast<int>(kRanks - 1 - r));
    x[r] = static_cast<int>(r);
    EXPECT_EQ(rkAllReduce(&x[r], &x[r], 1, rkInt32, rkSum, half[r]), rkSuccess);
    EXPECT_EQ(rkBcast(&y[r], 1, rkInt32, 0, reversed[r]), rkSuccess);
  }
  ASSERT_EQ(rkGroupEnd(), rkSuccess) << rkGetLastError(nullptr);
  EXPECT_EQ(x, (std::vector<int>{1, 1, 5, 5}));
  for (std::size_t r = 0; r < kRanks; ++r) {
    EXPECT_EQ(rkCommDestroy(half[r]), rkSuccess);
    EXPECT_EQ(rkCommDestroy(reversed[r]), rkSuccess);
  }
}

TEST_F(Group, ASplitThatIsRefusedKeepsAllFromBeingMade) {
  rkComm_t part = nullptr;
  int x = 1;
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  ASSERT_EQ(rkAllReduce(&x, &x, 1, rkInt32, rkSum, comms[0]), rkSuccess);
  EXPECT_EQ(rkCommSplit(comms[0], 0, 0, nullptr), rkInvalidArgument);
  EXPECT_EQ(rkGroupEnd(), rkInvalidArgument);
  EXPECT_STREQ(rkGetLastError(nullptr), "rkGroupEnd: rkCommSplit: part is NULL");
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  ASSERT_EQ(rkCommSplit(comms[0], -2, 0, &part), rkSuccess);
  EXPECT_EQ(rkGroupEnd(), rkInvalidArgument);
  EXPECT_STREQ(rkGetLastError(nullptr),
               "rkGroupEnd: rkCommSplit of rank 0: color is -2; allowed are -1 (in no group) and "
               "more");
  EXPECT_EQ(part, nullptr);
}

TEST_F(Group, RanksSplitOnThreadsOfTheirOwn) {
  rkComm_t none = nullptr;
  EXPECT_EQ(rkCommSplit(comms[0], 0, 0, nullptr), rkInvalidArgument);
  EXPECT_EQ(rkCommSplit(comms[0], -2, 0, &none), rkInvalidArgument);
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      // Ranks 0 and 2 swap their order, rank 1 joins no part, and rank 3 is alone.
      const int color = r == 1 ? RK_SPLIT_NOCOLOR : r % 2;
      rkComm_t part = comms[0];
      ASSERT_EQ(rkCommSplit(comms[r], color, -r, &part), rkSuccess) << rkGetLastError(nullptr);
      if (r == 1) {
        EXPECT_EQ(part, nullptr);
        return;
      }
      int ranks = 0, rank = -1, sum = r;
      EXPECT_EQ(rkCommCount(part, &ranks), rkSuccess);
      EXPECT_EQ(rkCommUserRank(part, &rank), rkSuccess);
      EXPECT_EQ(ranks, r == 3 ? 1 : 2);
      EXPECT_EQ(rank, r == 0 ? 1 : 0);
      EXPECT_EQ(rkAllReduce(&sum, &sum, 1, rkInt32, rkSum, part), rkSuccess);
      EXPECT_EQ(sum, r == 3 ? 3 : 2);
      EXPECT_EQ(rkCommDestroy(part), rkSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Group, RanksThatCallDifferentThingsAreTold) {
  std::vector<int> x(kRanks, 1);
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (std::size_t r = 0; r < kRanks; ++r) {
    ASSERT_EQ(rkAllReduce(&x[r], &x[r], 1, rkInt32, r == 2 ? rkMax : rkSum, comms[r]), rkSuccess);
  }
  EXPECT_EQ(rkGroupEnd(), rkMismatch) << rkGetLastError(nullptr);
}

TEST(GroupEnd, NeedsAStart) {
  EXPECT_EQ(rkGroupEnd(), rkInvalidUsage);
  EXPECT_STREQ(rkGetLastError(nullptr), "rkGroupEnd: no group is open; call rkGroupStart first");
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  EXPECT_EQ(rkGroupEnd(), rkSuccess);  // an empty group
}

}  // namespace
