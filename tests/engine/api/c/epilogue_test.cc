// Epilogues from C: alone, in groups, in requests, from C++17, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/c/rankine.h"
#include "engine/api/c/rankine.hpp"

namespace {

constexpr int kRanks = 3;
constexpr std::size_t kWidth = 24, kRows = 6, kCount = kWidth * kRows;

class Epilogues : public testing::Test {
 protected:
  Epilogues() { EXPECT_EQ(rkCommInitAll(comms, kRanks, nullptr), rkSuccess); }
  ~Epilogues() override {
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

std::vector<float> brought(int rank) {
  std::vector<float> x(kCount);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(static_cast<int>(i * 7 % 31) - 15 + rank);
  }
  return x;
}

// One rank's places, and the steps that write to them.
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

  // That it did to `rows` what the pass by itself does, and that this is the norm.
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

    const Norm of_part(kRows / kRanks);
    std::vector<float> part(kCount / kRanks);
    ASSERT_EQ(rkReduceScatterThen(x.data(), part.data(), part.size(), rkFloat32, rkSum,
                                  of_part.epilogue, comm),
              rkSuccess);
    of_part.expect_done(part);

    const Norm of_all(kRows * kRanks);
    std::vector<float> all(kCount * kRanks);
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
    // Others have all they need, or hear of it in the next call at the latest.
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
  // A handle of another kind is none of these.
  says(rkEpilogueApply(reinterpret_cast<rkEpilogue_t>(comms[0]), row, 1), "epilogue is none");
  says(rkBarrier(reinterpret_cast<rkComm_t>(made)), "comm is no communicator's handle");
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
