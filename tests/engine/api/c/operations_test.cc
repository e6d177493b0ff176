// C calls with created operations (functions and factors), with epilogues, and in groups; each part
// also tests the refused calls.

#include <complex>

#include "engine/api/c/rankine.h"
#include "engine/api/c/rankine.hpp"
#include "tests/engine/api/c/comms.h"
#include "tests/testing.h"

namespace {

using rankine::on_threads;
using rankine::testing_c::Comms;
using rankine::testing_c::expect_error;
using rankine::testing_c::expect_refused;
using rankine::testing_c::last_error;

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

Affine expected() {
  Affine total{1, 0, 0};
  for (int r = 0; r < kRanks; ++r) total = {(r + 2) * total.a, (r + 2) * total.b + r, r + 1};
  return total;
}

TEST(Operations, AFunctionReducesInTheOrderOfTheRanks) {
  Comms comms(kRanks);
  comms.each([](int r, rkComm_t comm) {
    rkRedOp_t op = rkSum;
    ASSERT_EQ(rkRedOpCreate(&op, compose, sizeof(Affine), 0, nullptr, comm), rkSuccess);
    EXPECT_GE(static_cast<int>(op), static_cast<int>(rkNumOps));
    for (const std::size_t count : {1U, 3000U}) {
      std::vector<Affine> x(count, Affine{r + 2, r, 1});
      ASSERT_EQ(rkAllReduce(x.data(), x.data(), count, rkOpaque, op, comm), rkSuccess)
          << last_error();
      for (const Affine& one : x) {
        ASSERT_EQ(one.a, expected().a);
        ASSERT_EQ(one.b, expected().b);
        ASSERT_EQ(one.ranks, kRanks);
      }
    }
    EXPECT_EQ(rkRedOpDestroy(op, comm), rkSuccess);
  });
}

TEST(Operations, ThatFailEndTheCallAndThatDifferAreAMismatch) {
  for (const bool differ : {false, true}) {
    Comms comms(kRanks);
    comms.each([differ](int r, rkComm_t comm) {
      rkRedOp_t op = rkSum;
      const rkRedFunction_t function = differ && r != 1 ? compose : refuse;
      ASSERT_EQ(rkRedOpCreate(&op, function, sizeof(Affine), 1, nullptr, comm), rkSuccess);
      Affine x{1, 1, 1};
      const rkResult_t result = rkAllReduce(&x, &x, 1, rkOpaque, op, comm);
      expect_error(result, differ ? rkMismatch : rkRemoteError,
                   differ ? "" : "the operation returned 7");
    });
  }
}

TEST(Operations, AGroupKeepsWhatItsCallsNeed) {
  Comms comms(kRanks);
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
  ASSERT_EQ(rkGroupEnd(), rkSuccess) << last_error();
  for (const Affine& one : x) EXPECT_EQ(one.b, expected().b);
  EXPECT_EQ(y, std::vector<double>(kRanks, 10.0));
}

TEST(Operations, FactorsAreEachRanksOwn) {
  Comms comms(kRanks);
  comms.each([](int r, rkComm_t comm) {
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
    expect_refused(rkAllReduce(x.data(), sum.data(), 100, rkFloat16, floats, comm), "type is f16");
  });
}

TEST(Operations, WrongOnesAreRefused) {
  Comms comms(2);
  rkComm_t comm = comms[0];
  rkRedOp_t op = rkSum;
  float factor = 2, x = 1;
  const std::string created = "allowed are operations that this rank has created";
  expect_refused(rkRedOpCreate(nullptr, compose, 8, 1, nullptr, comm), "op is NULL");
  expect_refused(rkRedOpCreate(&op, nullptr, 8, 1, nullptr, comm), "function is NULL");
  expect_refused(rkRedOpCreate(&op, compose, 0, 1, nullptr, comm), "elementBytes is 0");
  expect_refused(rkRedOpCreate(&op, compose, 4097, 1, nullptr, comm), "elementBytes is 4097");
  expect_refused(rkRedOpCreate(&op, compose, 8, 2, nullptr, comm), "commutative is 2");
  expect_refused(rkRedOpCreate(&op, compose, 8, 1, nullptr, nullptr), "comm is NULL");
  expect_refused(rkRedOpCreatePreMulSum(nullptr, &factor, rkFloat32, comm), "op is NULL");
  expect_refused(rkRedOpCreatePreMulSum(&op, nullptr, rkFloat32, comm), "factor is NULL");
  expect_refused(rkRedOpCreatePreMulSum(&op, &factor, rkBool, comm), "type is b8");
  expect_refused(rkRedOpCreatePreMulSum(&op, &factor, rkOpaque, comm), "type is 100");
  expect_refused(rkRedOpDestroy(rkSum, comm), "op is 0; " + created);
  expect_refused(rkAllReduce(&x, &x, 1, rkOpaque, rkSum, comm), "type is 100; allowed are 0 to 14");
  ASSERT_EQ(rkRedOpCreate(&op, compose, 8, 1, nullptr, comm), rkSuccess);
  expect_refused(rkAllReduce(&x, &x, 1, rkFloat32, op, comm), "type is");
  expect_refused(rkAllReduce(&x, &x, 1, rkOpaque, op, comms[1]), "that this rank has created");
  EXPECT_EQ(rkRedOpDestroy(op, comm), rkSuccess);
  expect_refused(rkRedOpDestroy(op, comm), "op is 8; " + created);
  expect_refused(rkAllReduce(&x, &x, 1, rkOpaque, op, comm), "that this rank has created");
}

// Epilogues from C: alone, in groups, in requests, from C++17, and refused calls.

constexpr int kEpilogueRanks = 3;
constexpr std::size_t kWidth = 24, kRows = 6, kCount = kWidth * kRows;

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
    EXPECT_EQ(rkEpilogueCreate(&epilogue, &steps), rkSuccess) << last_error();
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

TEST(Epilogues, GoOnWithTheRowsOfAResult) {
  Comms comms(kEpilogueRanks);
  comms.each([](int r, rkComm_t comm) {
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

TEST(Epilogues, InARequestOutliveTheirHandle) {
  Comms comms(kEpilogueRanks);
  comms.each([](int r, rkComm_t comm) {
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

TEST(Epilogues, AFunctionThatFailsEndsTheCall) {
  Comms comms(kEpilogueRanks);
  comms.each([](int r, rkComm_t comm) {
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
      expect_error(result, rkRemoteError, "the epilogue returned 9");
      EXPECT_EQ(rkEpilogueApply(failing, x.data(), kRows), rkRemoteError);
    }
    // The other ranks need no more data, and get the error in the next call at the latest.
    const rkResult_t next = rkBarrier(comm);
    EXPECT_EQ(next, rkRemoteError);
    EXPECT_EQ(rkEpilogueDestroy(failing), rkSuccess);
  });
}

// (The steps themselves are checked as in C++: RowEpilogue in tests/engine/api/epilogue_test.cc.)
TEST(Epilogues, AreRefusedByName) {
  Comms comms(1);
  rkEpilogue_t made = nullptr;
  float row[kWidth] = {};
  rkRowSteps_t good = RK_ROW_STEPS_INITIALIZER;
  good.type = good.outType = rkFloat32;
  good.rowElements = kWidth;
  good.out = row;
  expect_refused(rkEpilogueCreate(nullptr, &good), "epilogue is NULL");
  expect_refused(rkEpilogueCreate(&made, nullptr), "steps is NULL");
  const std::pair<void (*)(rkRowSteps_t&), const char*> wrong[] = {
      {[](rkRowSteps_t& s) { s.size = 8; }, "steps.size is 8"},
      {[](rkRowSteps_t& s) { s.type = rkInt32; }, "type is i32; allowed are f32"},
      {[](rkRowSteps_t& s) { s.type = static_cast<rkDataType_t>(-1); }, "type is -1"},
      {[](rkRowSteps_t& s) { s.norm = static_cast<rkNorm_t>(3); }, "norm is 3"},
      {[](rkRowSteps_t& s) { s.activation = static_cast<rkActivation_t>(4); }, "activation is 4"},
      {[](rkRowSteps_t& s) { s.rowElements = 0; }, "row_elements is 0"},
      {[](rkRowSteps_t& s) { s.out = nullptr; }, "out and residual are null"},
  };
  for (const auto& [spoil, words] : wrong) {
    rkRowSteps_t steps = good;
    spoil(steps);
    expect_refused(rkEpilogueCreate(&made, &steps), words);
  }
  expect_refused(rkEpilogueCreateFunction(&made, 0, nullptr, nullptr), "rowElements is 0");
  expect_refused(rkEpilogueCreateFunction(&made, 1, nullptr, nullptr), "function is NULL");
  expect_refused(rkEpilogueApply(nullptr, row, 1), "epilogue is NULL");
  EXPECT_EQ(made, nullptr);
  ASSERT_EQ(rkEpilogueCreate(&made, &good), rkSuccess);
  expect_refused(rkEpilogueApply(made, nullptr, 1), "rows is NULL");
  std::vector<double> x(kCount);
  const auto then = [&](std::size_t count, rkDataType_t type, rkEpilogue_t epilogue) {
    return rkAllReduceThen(x.data(), x.data(), count, type, rkSum, epilogue, comms[0]);
  };
  expect_refused(then(kCount, rkFloat64, made), "type is f64");
  expect_refused(then(kWidth + 1, rkFloat32, made), "whole rows");
  expect_refused(then(kWidth, rkFloat32, nullptr), "epilogue is NULL");
  // A handle of another kind is not an epilogue.
  expect_refused(rkEpilogueApply(reinterpret_cast<rkEpilogue_t>(comms[0]), row, 1),
                 "epilogue is no valid handle");
  expect_refused(rkBarrier(reinterpret_cast<rkComm_t>(made)), "comm is no valid handle");
  EXPECT_EQ(rkEpilogueDestroy(made), rkSuccess);
  EXPECT_EQ(rkEpilogueDestroy(nullptr), rkSuccess);
}

TEST(CxxEpilogues, AreOwners) {
  rk::Communicator team(2);
  on_threads(2, [&](int r) {
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

// Groups: one thread plays several ranks, and a rank makes several calls. A group with a refused
// call makes no call.

TEST(Group, OneThreadPlaysAllRanks) {
  Comms comms(kRanks);
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
    ASSERT_EQ(rkGroupEnd(), rkSuccess) << last_error();
    for (std::size_t r = 0; r < kRanks; ++r) {
      EXPECT_EQ(x[r], std::vector<float>(count, 6.0F));
      EXPECT_EQ(all[r], std::vector<float>(kRanks, 6.0F));  // in order: after the first
    }
  }
}

// A group copies the lists of its calls, and nested groups end with the outermost.
TEST(Group, KeepsItsListsUntilTheOutermostEnd) {
  Comms comms(kRanks);
  std::vector<std::vector<int>> in(kRanks, std::vector<int>(kRanks)), out = in, all = in;
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (std::size_t r = 0; r < kRanks; ++r) {
    std::vector<std::size_t> backwards, pairs(kRanks * kRanks, 1), counts(kRanks, 1);
    for (std::size_t q = 0; q < kRanks; ++q) {
      backwards.push_back((kRanks - 1 - q) * sizeof(int));
      in[r][q] = static_cast<int>(r * 10 + q);
    }
    ASSERT_EQ(rkGroupStart(), rkSuccess);
    EXPECT_EQ(rkAllToAllDisplaced(in[r].data(), backwards.data(), out[r].data(), nullptr,
                                  pairs.data(), rkInt32, comms[r]),
              rkSuccess);
    EXPECT_EQ(rkAllGatherCounts(in[r].data(), all[r].data(), counts.data(), rkInt32, comms[r]),
              rkSuccess);
    ASSERT_EQ(rkGroupEnd(), rkSuccess);
    for (auto* list : {&backwards, &pairs, &counts}) list->assign(list->size(), 1 << 30);
    EXPECT_EQ(all[r], std::vector<int>(kRanks));
  }
  ASSERT_EQ(rkGroupEnd(), rkSuccess) << last_error();
  for (std::size_t r = 0; r < kRanks; ++r) {
    for (std::size_t q = 0; q < kRanks; ++q) {
      EXPECT_EQ(out[r][q], static_cast<int>(q * 10 + kRanks - 1 - r));
      EXPECT_EQ(all[r][q], static_cast<int>(q * 10));
    }
  }
}

// The error is found when a call is added, or when the group ends; no call begins on any rank.
// Rank 1 makes the calls one by one. Fails if the group loses a call behind its array, or makes
// calls from the array behind others, or makes the calls of the former group again.
TEST(Group, MakesManyCallsOfTwoKindsInTheirOrder) {
  Comms comms(2);
  comms.each([](int rank, rkComm_t comm) {
    constexpr std::size_t kCalls = 40;
    const std::size_t counts[2] = {1, 1};
    for (int turn = 0; turn < 3; ++turn) {
      std::vector<std::vector<int>> x;
      for (std::size_t i = 0; i < kCalls; ++i) x.emplace_back(i + 2, 1);
      if (rank == 0) {
        EXPECT_EQ(rkGroupStart(), rkSuccess);
      }
      for (std::size_t i = 0; i < kCalls; ++i) {
        int* const y = x[i].data();
        EXPECT_EQ(turn == 1 && i % 7 == 3 ? rkAllGatherCounts(y + rank, y, counts, rkInt32, comm)
                                          : rkAllReduce(y, y, i + 2, rkInt32, rkSum, comm),
                  rkSuccess)
            << i << ": " << last_error();
      }
      if (rank == 0) {
        EXPECT_EQ(rkGroupEnd(), rkSuccess) << last_error();
      }
      for (std::size_t i = 0; i < kCalls; ++i) {
        EXPECT_EQ(x[i], std::vector<int>(i + 2, turn == 1 && i % 7 == 3 ? 1 : 2)) << i;
      }
    }
  });
}

TEST(Group, ARefusedCallKeepsAllFromBeingMade) {
  Comms comms(kRanks);
  std::vector<int> x(kRanks, 1);
  rkComm_t part = nullptr;
  const auto with = [&](const auto& add_last) {
    EXPECT_EQ(rkGroupStart(), rkSuccess);
    for (std::size_t r = 0; r + 1 < kRanks; ++r) {
      EXPECT_EQ(rkReduce(&x[r], &x[r], 1, rkInt32, rkSum, 0, comms[r]), rkSuccess);
    }
    add_last(&x[3], comms[3]);
    return rkGroupEnd();
  };
  expect_refused(with([](int* y, rkComm_t c) {
                   const auto type = static_cast<rkDataType_t>(77);
                   expect_refused(rkAllReduce(y, y, 1, type, rkSum, c), "type is 77");
                 }),
                 "rkGroupEnd: rkAllReduce: type is 77; allowed are 0 to 14");
  expect_refused(with([](int* y, rkComm_t c) {
                   EXPECT_EQ(rkReduce(y, y, 1, rkInt32, rkSum, 99, c), rkSuccess);
                 }),
                 "rkGroupEnd: rkReduce of rank 3: root is 99; allowed are 0 to 3");
  expect_refused(
      with([](int*, rkComm_t c) { expect_refused(rkCommSplit(c, 0, 0, nullptr), "part is NULL"); }),
      "rkGroupEnd: rkCommSplit: part is NULL");
  expect_refused(
      with([&](int*, rkComm_t c) { EXPECT_EQ(rkCommSplit(c, -2, 0, &part), rkSuccess); }),
      "rkGroupEnd: rkCommSplit of rank 3: color is -2; allowed are -1");
  EXPECT_EQ(part, nullptr);
  EXPECT_EQ(x, std::vector<int>(kRanks, 1));
  EXPECT_EQ(with([](int* y, rkComm_t c) {
              EXPECT_EQ(rkReduce(y, y, 1, rkInt32, rkSum, 0, c), rkSuccess);
            }),
            rkSuccess)
      << last_error();
  EXPECT_EQ(x[0], kRanks);
  expect_error(rkGroupEnd(), rkInvalidUsage, "no group is open; call rkGroupStart first");
  // A handle that is destroyed before the end.
  EXPECT_EQ(with([&](int*, rkComm_t) {
              EXPECT_EQ(rkCommDestroy(comms[0]), rkSuccess);
              comms[0] = nullptr;
            }),
            rkInvalidArgument);
}

TEST(Group, MessagesInAnyOrderDoNotDeadlock) {
  Comms comms(kRanks);
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
  ASSERT_EQ(rkGroupEnd(), rkSuccess) << last_error();
  for (std::size_t r = 0; r < kRanks; ++r) EXPECT_EQ(y[r], x[(r + 3) % kRanks]);
  int none = 0;
  expect_refused(rkSend(&none, 1, rkInt32, kRanks, comms[0]), "peer is 4; allowed are 0 to 3");
  expect_refused(rkRecv(nullptr, 1, rkInt32, 1, comms[0]), "rkRecv: data is NULL");
}

TEST(Group, HasMessageTellsWhoseMessageHasBegun) {
  Comms comms(kRanks);
  const auto has = [&](int peer) {
    int answer = -1;
    EXPECT_EQ(rkHasMessage(peer, comms[0], &answer), rkSuccess) << last_error();
    return answer;
  };
  const auto expect_only = [&](int sender) {
    for (int peer = 0; peer < kRanks; ++peer) EXPECT_EQ(has(peer), peer == sender ? 1 : 0) << peer;
  };
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{1} << 18}) {  // in slots, and read in place
    std::vector<int> x(count, 7), y(count);
    expect_only(-1);
    std::vector<int> z(count);
    rkRequest_t received[2] = {};
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(rkGroupStart(), rkSuccess);
      EXPECT_EQ(rkRecv(i == 0 ? y.data() : z.data(), count, rkInt32, 2, comms[0]), rkSuccess);
      ASSERT_EQ(rkGroupEndAsync(&received[i]), rkSuccess) << last_error();
    }
    expect_only(-1);
    std::atomic<int> sent{0};
    std::thread sender([&] {
      for (; sent < 3; ++sent) {
        EXPECT_EQ(rkSend(x.data(), count, rkInt32, 0, comms[2]), rkSuccess) << last_error();
      }
    });
    while (count == 1 && sent < 2) std::this_thread::yield();
    expect_only(-1);  // the receives in flight take them
    for (rkRequest_t one : received) {
      EXPECT_EQ(rkRequestWait(one), rkSuccess) << last_error();
      EXPECT_EQ(rkRequestFree(one), rkSuccess);
    }
    while (has(2) == 0) std::this_thread::yield();
    expect_only(2);
    EXPECT_EQ(rkRecv(y.data(), count, rkInt32, 2, comms[0]), rkSuccess) << last_error();
    sender.join();
    expect_only(-1);
    EXPECT_EQ(y, x);
  }
  int answer = -1;
  expect_refused(rkHasMessage(kRanks, comms[0], &answer), "peer is 4; allowed are 0 to 3");
  expect_refused(rkHasMessage(1, comms[0], nullptr), "rkHasMessage: has is NULL");
  EXPECT_EQ(rkCommFinalize(comms[1]), rkSuccess);
  expect_error(rkHasMessage(1, comms[0], &answer), rkRankLost, "rank 1 has left");
  EXPECT_EQ(has(2), 0);
  EXPECT_EQ(answer, -1);
}

// One thread splits the communicators of all ranks twice, with other calls before, between and
// after.
TEST(Group, RanksAreSplit) {
  Comms comms(kRanks);
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
  ASSERT_EQ(rkGroupEnd(), rkSuccess) << last_error();
  EXPECT_EQ(x, std::vector<int>(kRanks, kRanks));
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (std::size_t r = 0; r < kRanks; ++r) {
    EXPECT_EQ(none[r], nullptr);
    int rank = -1, ranks = 0;
    EXPECT_EQ(rkCommUserRank(half[r], &rank), rkSuccess) << last_error();
    EXPECT_EQ(rkCommCount(half[r], &ranks), rkSuccess);
    EXPECT_EQ(rank, static_cast<int>(r % 2));
    EXPECT_EQ(ranks, 2);
    EXPECT_EQ(rkCommUserRank(reversed[r], &rank), rkSuccess);
    EXPECT_EQ(rank, static_cast<int>(kRanks - 1 - r));
    x[r] = static_cast<int>(r);
    EXPECT_EQ(rkAllReduce(&x[r], &x[r], 1, rkInt32, rkSum, half[r]), rkSuccess);
    EXPECT_EQ(rkBcast(&y[r], 1, rkInt32, 0, reversed[r]), rkSuccess);
  }
  ASSERT_EQ(rkGroupEnd(), rkSuccess) << last_error();
  EXPECT_EQ(x, (std::vector<int>{1, 1, 5, 5}));
  for (std::size_t r = 0; r < kRanks; ++r) {
    EXPECT_EQ(rkCommDestroy(half[r]), rkSuccess);
    EXPECT_EQ(rkCommDestroy(reversed[r]), rkSuccess);
  }
}

}  // namespace
