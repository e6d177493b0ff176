// The C functions do the same as the C++ functions, and each mistake that only C permits has a
// named error.
#include "engine/api/c/rankine.h"

#include <sched.h>
#include <unistd.h>

#include <barrier>

#include "engine/api/version.h"
#include "tests/engine/api/c/comms.h"
#include "tests/engine/api/child_process.h"
#include "tests/testing.h"

namespace {

using rankine::on_threads;
using rankine::testing_c::Comms;
using rankine::testing_c::expect_all;
using rankine::testing_c::expect_error;
using rankine::testing_c::expect_refused;
using rankine::testing_c::last_error;
using rankine::testing_processes::run_in_child;

rkConfig_t untuned() {
  rkConfig_t config = RK_CONFIG_INITIALIZER;
  config.tuned = 0;
  return config;
}

constexpr int kRanks = 3;
using Numbers = std::vector<std::int32_t>;

TEST(C, VersionsAreOne) {
  int version = 0;
  ASSERT_EQ(rkGetVersion(&version), rkSuccess);
  EXPECT_EQ(version, RK_VERSION_CODE);
  EXPECT_EQ(
      std::to_string(RK_MAJOR) + "." + std::to_string(RK_MINOR) + "." + std::to_string(RK_PATCH),
      rankine::kVersion);
}

TEST(C, EveryCollectiveIsItsOwn) {
  Comms comms(kRanks);
  // The input of rank r is 100 r + i.
  const auto at = [](int rank, int i) { return 100 * rank + i; };
  expect_all(comms.run([&](int rank, rkComm_t comm) {
    Numbers in(kRanks), wide(kRanks * kRanks, -1), one(1, -1), out(kRanks, -1);
    std::iota(in.begin(), in.end(), 100 * rank);
    const int next = (rank + 1) % kRanks;

    EXPECT_EQ(rkAllReduce(in.data(), out.data(), kRanks, rkInt32, rkSum, comm), rkSuccess);
    EXPECT_EQ(out, (Numbers{300, 303, 306}));
    EXPECT_EQ(rkAllReduce(in.data(), out.data(), kRanks, rkInt32, rkMax, comm), rkSuccess);
    EXPECT_EQ(out, (Numbers{200, 201, 202}));
    EXPECT_EQ(rkAllReduce(in.data(), out.data(), kRanks, rkInt32, rkMin, comm), rkSuccess);
    EXPECT_EQ(out, (Numbers{0, 1, 2}));
    EXPECT_EQ(rkAllReduce(in.data(), out.data(), kRanks, rkInt32, rkAvg, comm), rkSuccess);
    EXPECT_EQ(out, (Numbers{100, 101, 102}));
    EXPECT_EQ(rkAllReduce(in.data(), out.data(), kRanks, rkInt32, rkProd, comm), rkSuccess);
    EXPECT_EQ(out, (Numbers{0, 101 * 201, 2 * 102 * 202}));
    EXPECT_EQ(rkAllReduce(in.data(), out.data(), kRanks, rkInt32, rkBitOr, comm), rkSuccess);
    EXPECT_EQ(out[1], 1 | 101 | 201);
    EXPECT_EQ(rkAllReduce(in.data(), out.data(), kRanks, rkInt32, rkBitAnd, comm), rkSuccess);
    EXPECT_EQ(out[1], 1 & 101 & 201);
    EXPECT_EQ(rkAllReduce(in.data(), out.data(), kRanks, rkInt32, rkBitXor, comm), rkSuccess);
    EXPECT_EQ(out[1], 1 ^ 101 ^ 201);

    out.assign(kRanks, -1);
    EXPECT_EQ(rkReduce(in.data(), out.data(), kRanks, rkInt32, rkSum, 1, comm), rkSuccess);
    EXPECT_EQ(out, rank == 1 ? (Numbers{300, 303, 306}) : Numbers(kRanks, -1));
    EXPECT_EQ(rkBroadcast(in.data(), out.data(), kRanks, rkInt32, 2, comm), rkSuccess);
    EXPECT_EQ(out, (Numbers{200, 201, 202}));
    Numbers data = in;
    EXPECT_EQ(rkBcast(data.data(), kRanks, rkInt32, 1, comm), rkSuccess);
    EXPECT_EQ(data, (Numbers{100, 101, 102}));

    EXPECT_EQ(rkAllGather(in.data(), wide.data(), kRanks, rkInt32, comm), rkSuccess);
    EXPECT_EQ(wide, (Numbers{0, 1, 2, 100, 101, 102, 200, 201, 202}));
    EXPECT_EQ(rkReduceScatter(in.data(), one.data(), 1, rkInt32, rkSum, comm), rkSuccess);
    EXPECT_EQ(one[0], 300 + 3 * rank);
    EXPECT_EQ(rkAllToAll(in.data(), out.data(), 1, rkInt32, comm), rkSuccess);
    EXPECT_EQ(out, (Numbers{at(0, rank), at(1, rank), at(2, rank)}));
    out.assign(kRanks, -1);
    EXPECT_EQ(rkGather(in.data() + 1, out.data(), 1, rkInt32, 2, comm), rkSuccess);
    EXPECT_EQ(out, rank == 2 ? (Numbers{1, 101, 201}) : Numbers(kRanks, -1));
    EXPECT_EQ(rkScatter(in.data(), one.data(), 1, rkInt32, 1, comm), rkSuccess);
    EXPECT_EQ(one[0], 100 + rank);
    out.assign(kRanks, -1);
    EXPECT_EQ(rkScan(in.data(), out.data(), kRanks, rkInt32, rkSum, comm), rkSuccess);
    EXPECT_EQ(out, rank == 0   ? (Numbers{0, 1, 2})
                   : rank == 1 ? (Numbers{100, 102, 104})
                               : (Numbers{300, 303, 306}));
    EXPECT_EQ(rkExscan(in.data(), rank == 0 ? nullptr : out.data(), kRanks, rkInt32, rkSum, comm),
              rkSuccess);
    EXPECT_EQ(out, rank == 2 ? (Numbers{100, 102, 104}) : (Numbers{0, 1, 2}));
    EXPECT_EQ(rkScan(in.data(), out.data(), kRanks, rkInt32, rkAvg, comm), rkInvalidArgument);
    EXPECT_EQ(rkBarrier(comm), rkSuccess);
    EXPECT_EQ(rkAllReduce(nullptr, nullptr, 0, rkInt32, rkSum, comm), rkSuccess) << last_error();
    return next >= 0 ? rkSuccess : rkInternalError;
  }),
             rkSuccess);
}

TEST(C, CountsMayDiffer) {
  Comms comms(kRanks);
  const std::size_t counts[kRanks] = {1, 0, 2};
  std::size_t pairs[kRanks * kRanks] = {};
  pairs[0 * kRanks + 2] = 2;  // from 0 to 2
  pairs[1 * kRanks + 0] = 1;
  expect_all(comms.run([&](int rank, rkComm_t comm) {
    const auto mine = counts[rank];
    Numbers in(3, 10 + rank), out(3, -1);
    EXPECT_EQ(rkAllGatherCounts(in.data(), out.data(), counts, rkInt32, comm), rkSuccess);
    EXPECT_EQ(out, (Numbers{10, 12, 12}));
    out.assign(3, -1);
    EXPECT_EQ(rkReduceScatterCounts(in.data(), out.data(), counts, rkInt32, rkSum, comm),
              rkSuccess);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(out[i], i < mine ? 33 : -1);
    out.assign(3, -1);
    EXPECT_EQ(rkGatherCounts(in.data(), out.data(), counts, rkInt32, 1, comm), rkSuccess);
    EXPECT_EQ(out, rank == 1 ? (Numbers{10, 12, 12}) : Numbers(3, -1));
    out.assign(3, -1);
    EXPECT_EQ(rkScatterCounts(in.data(), out.data(), counts, rkInt32, 1, comm), rkSuccess);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(out[i], i < mine ? 11 : -1);
    out.assign(3, -1);
    EXPECT_EQ(rkAllToAllCounts(in.data(), out.data(), pairs, rkInt32, comm), rkSuccess);
    EXPECT_EQ(out, rank == 2   ? (Numbers{10, 10, -1})
                   : rank == 0 ? (Numbers{11, -1, -1})
                               : Numbers(3, -1));
    // The ranks send from elements 2, 2 and 1 on, and receive at element 1.
    const std::size_t from[kRanks] = {8, 8, 4}, to[kRanks] = {4, 4, 4};
    in = {rank, rank + 10, rank + 20};
    out.assign(3, -1);
    EXPECT_EQ(rkAllToAllDisplaced(in.data(), from, out.data(), to, pairs, rkInt32, comm), rkSuccess)
        << last_error();
    EXPECT_EQ(out, rank == 2   ? (Numbers{-1, 10, 20})
                   : rank == 0 ? (Numbers{-1, 21, -1})
                               : Numbers(3, -1));
    EXPECT_EQ(rkAllToAllDisplaced(in.data(), from, out.data(), to, nullptr, rkInt32, comm),
              rkInvalidArgument);
    EXPECT_EQ(last_error(), "rkAllToAllDisplaced: counts is NULL");
    EXPECT_EQ(rkAllGatherCounts(in.data(), out.data(), nullptr, rkInt32, comm), rkInvalidArgument);
    EXPECT_EQ(last_error(), "rkAllGatherCounts: counts is NULL");
    return rkSuccess;
  }),
             rkSuccess);
}

TEST(C, TypesAreNcclsNumbers) {
  Comms comms(1);
  const std::size_t bytes[rkNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 1, 8, 16};
  for (int type = 0; type < rkNumTypes; ++type) {
    std::vector<unsigned char> in(16, 7), out(16, 0);
    ASSERT_EQ(
        rkAllReduce(in.data(), out.data(), 1, static_cast<rkDataType_t>(type), rkSum, comms[0]),
        rkSuccess);
    std::vector<unsigned char> expected(16, 0);
    std::fill_n(expected.begin(), bytes[type], static_cast<unsigned char>(7));
    EXPECT_EQ(out, expected) << type;
  }
}

// --- Refusals. The communicator goes on after each.

TEST(C, WhatOnlyCCanGetWrongIsNamed) {
  Comms comms(1);
  rkComm_t comm = comms[0];
  rkBuckets_t buckets = nullptr;
  std::int32_t x[4] = {1, 1, 1, 1}, y = 0;
  ASSERT_EQ(rkBucketsCreate(&buckets, 0, comm), rkSuccess);
  const auto type = [](int number) { return static_cast<rkDataType_t>(number); };
  const std::pair<rkResult_t (*)(rkComm_t), const char*> without_memory[] = {
      {[](rkComm_t) { return rkGetVersion(nullptr); }, "rkGetVersion: version is NULL"},
      {[](rkComm_t) { return rkGetUniqueId(nullptr); }, "rkGetUniqueId: id is NULL"},
      {[](rkComm_t) { return rkCommInitAll(nullptr, 1, nullptr); }, "rkCommInitAll: comms is NULL"},
      {[](rkComm_t c) { return rkCommCount(c, nullptr); }, "rkCommCount: ranks is NULL"},
      {[](rkComm_t c) { return rkCommUserRank(c, nullptr); }, "rkCommUserRank: rank is NULL"},
      {[](rkComm_t c) { return rkCommGetAsyncError(c, nullptr); },
       "rkCommGetAsyncError: result is NULL"},
      {[](rkComm_t c) { return rkMemAlloc(c, nullptr, 1); }, "rkMemAlloc: memory is NULL"},
      {[](rkComm_t c) { return rkCommFlightRecord(c, nullptr, 5, nullptr); },
       "rkCommFlightRecord: text is NULL"},
      {[](rkComm_t c) { return rkCommModelTime(c, nullptr); }, "rkCommModelTime: seconds is NULL"},
      {[](rkComm_t c) { return rkCommCompute(c, 1); }, "rkCommCompute: compute() is for modelled"},
      {[](rkComm_t c) { return rkBucketsCreate(nullptr, 0, c); },
       "rkBucketsCreate: buckets is NULL"},
  };
  for (const auto& [call, words] : without_memory) expect_refused(call(comm), words);
  expect_refused(rkCommCount(nullptr, &y), "rkCommCount: comm is NULL");
  expect_refused(rkMemFree(comm, x), "rkMemFree: memory ");
  expect_refused(rkAllReduce(x, &y, 1, rkInt32, rkSum, nullptr), "rkAllReduce: comm is NULL");
  expect_refused(rkAllReduce(x, &y, 1, type(15), rkSum, comm), "type is 15; allowed are 0 to 14");
  expect_refused(rkAllReduce(x, &y, 1, type(-1), rkSum, comm), "type is -1; allowed are 0 to 14");
  expect_refused(rkAllReduce(x, &y, 1, rkInt32, static_cast<rkRedOp_t>(8), comm),
                 "op is 8; allowed are 0 to 7 and operations that this rank has created");
  expect_refused(rkAllReduce(nullptr, &y, 1, rkInt32, rkSum, comm), "in is null; 4 bytes");
  expect_refused(rkAllReduce(x, &y, SIZE_MAX, rkInt32, rkSum, comm), "count is");
  expect_refused(rkBroadcast(x, &y, 1, rkInt32, 1, comm), "root is 1; allowed are 0 to 0");
  // Buckets.
  expect_refused(rkBucketsCreate(&buckets, 0, nullptr), "rkBucketsCreate: comm is NULL");
  expect_refused(rkBucketsAdd(nullptr, x, 4, rkInt32, rkSum), "rkBucketsAdd: buckets is NULL");
  expect_refused(rkBucketsAdd(buckets, nullptr, 4, rkInt32, rkSum), "tensor is null; 4 elements");
  expect_refused(rkBucketsAdd(buckets, x, 4, type(77), rkSum), "type is 77; allowed are 0 to 14");
  expect_refused(rkBucketsAddUnused(buckets, x, 4, rkInt32, rkMax), "op is max");
  expect_refused(rkBucketsAddUnused(buckets, x, SIZE_MAX / 2, rkInt32, rkSum), "");
  EXPECT_EQ(rkGroupStart(), rkSuccess);
  expect_error(rkBucketsAdd(buckets, x, 4, rkInt32, rkSum), rkInvalidUsage, "a group is open");
  EXPECT_EQ(rkGroupEnd(), rkSuccess);
  EXPECT_EQ(rkAllReduce(x, &y, 1, rkInt32, rkSum, comm), rkSuccess);
  EXPECT_EQ(y, 1);
  // The communicator is destroyed before the buckets.
  EXPECT_EQ(rkBucketsAdd(buckets, x, 4, rkInt32, rkSum), rkSuccess);
  EXPECT_EQ(rkCommDestroy(std::exchange(comms[0], nullptr)), rkSuccess);
  EXPECT_EQ(rkBucketsWait(buckets), rkInvalidArgument);
  EXPECT_EQ(rkBucketsDestroy(buckets), rkSuccess) << last_error();
  EXPECT_EQ(rkBucketsDestroy(buckets), rkInvalidArgument);
  EXPECT_STREQ(rkGetErrorString(rkMismatch), "ranks made different calls");
  EXPECT_STREQ(rkGetErrorString(static_cast<rkResult_t>(99)), "unknown result");
}

TEST(C, RanksThatDisagreeDoNotMeet) {
  rkUniqueId id, none{};
  ASSERT_EQ(rkGetUniqueId(&id), rkSuccess);
  rkComm_t first = nullptr, second = nullptr;
  rkConfig_t config = RK_CONFIG_INITIALIZER;
  config.timeoutMs = 12345;
  expect_refused(rkCommInitRank(&first, 2, none, 0), "id is invalid");
  expect_refused(rkCommInitRank(&first, 2, id, 2), "rank is 2; allowed are 0 to 1");
  expect_refused(rkCommInitRank(&first, 0, id, 0), "ranks is 0; allowed are 1 to 1024");
  expect_refused(rkCommInitRank(nullptr, 2, id, 0), "comm is NULL");
  ASSERT_EQ(rkCommInitRankConfig(&first, 2, id, 0, &config), rkSuccess);
  expect_refused(rkCommInitRankConfig(&second, 3, id, 1, &config), "ranks is 3");
  expect_refused(rkCommInitRank(&second, 2, id, 1), "config.timeoutMs differs");
  expect_refused(rkCommInitRankConfig(&second, 2, id, 0, &config),
                 "rank is 0, which has joined before");
  EXPECT_EQ(rkCommDestroy(first), rkSuccess);
  // A rank that comes late gets the data that rank 0 has sent, but no more.
  ASSERT_EQ(rkCommInitRankConfig(&second, 2, id, 1, &config), rkSuccess) << last_error();
  expect_error(rkBarrier(second), rkRankLost, "rank 0 has left after 0 calls");
  EXPECT_EQ(rkCommDestroy(second), rkSuccess);
}

TEST(C, ConfigsAreChecked) {
  rkComm_t comm = nullptr;
  static const int node = -7;
  const std::pair<void (*)(rkConfig_t&), const char*> wrong[] = {
      {[](rkConfig_t& c) { c.size = 0; }, "config.size is 0"},
      {[](rkConfig_t& c) { c.timeoutMs = -2; }, "timeoutMs is -2"},
      {[](rkConfig_t& c) { c.wait = "sleep"; }, "wait is 'sleep'; allowed are auto, spin"},
      {[](rkConfig_t& c) { c.network = "no_such"; }, "no_such"},
      {[](rkConfig_t& c) { c.levelCount = 1; }, "levels is NULL of 1 numbers"},
      {[](rkConfig_t& c) { c.levelCount = -1; }, "levels is NULL of -1 numbers"},
      {[](rkConfig_t& c) { c.tuned = 2; }, "config.tuned is 2; allowed are 0 and 1"},
      {[](rkConfig_t& c) { c.nodes = &node; }, "nodes[0] is -7; allowed are -1 (any) and more"},
      {[](rkConfig_t& c) { c.order = "tidy"; }, "order is 'tidy'; allowed are coherent"},
      {[](rkConfig_t& c) { c.placement = "everywhere"; }, "placement \"everywhere\" is unknown"},
      {[](rkConfig_t& c) { c.ports = -1; }, "ports is -1; allowed are 0 (no budget) and more"},
      {[](rkConfig_t& c) { c.progressCore = -2; }, "progressCore is -2; allowed are -1 (none)"},
      {[](rkConfig_t& c) { c.progressCore = 1'000'000; }, "progress_core is 1000000: "},
  };
  for (const auto& [spoil, words] : wrong) {
    rkConfig_t config = RK_CONFIG_INITIALIZER;
    spoil(config);
    expect_refused(rkCommInitAllConfig(&comm, 1, &config), words);
  }
  // The list of nodes is not read if the number of ranks is invalid.
  for (const int ranks : {0, -1, 2'000'000'000}) {
    expect_refused(rkCommInitAll(&comm, ranks, &node),
                   "ranks is " + std::to_string(ranks) + "; allowed are 1 to 1024");
  }
  EXPECT_EQ(comm, nullptr);
  rkConfig_t config = RK_CONFIG_INITIALIZER;
  config.wait = "park";
  config.timeoutMs = -1;
  config.planBytes = 1;
  Comms two(2, config);
  EXPECT_EQ(rkBarrier(two[0]), rkInvalidArgument);  // its plan needs more than a byte
}

TEST(C, CallOptionsAreCheckedAndUsed) {
  Comms comms(2, untuned());
  const std::pair<void (*)(rkCallOptions_t&), const char*> wrong[] = {
      {[](rkCallOptions_t& o) { o.size = 3; }, "options.size is 3"},
      {[](rkCallOptions_t& o) { o.transport = "pigeon"; },
       "transport is 'pigeon'; allowed are auto, direct, mailbox, board"},
      {[](rkCallOptions_t& o) { o.dimCount = 2; }, "dims"},
      {[](rkCallOptions_t& o) { o.sharedPayloads = 2; }, "options.sharedPayloads is 2"},
  };
  rkCallOptions_t options = RK_CALL_OPTIONS_INITIALIZER;
  for (const auto& [spoil, words] : wrong) {
    options = RK_CALL_OPTIONS_INITIALIZER;
    spoil(options);
    expect_refused(rkCommSetCallOptions(comms[0], &options), words);
  }
  options = RK_CALL_OPTIONS_INITIALIZER;
  options.algorithm = "no_such";
  float x = 1;
  ASSERT_EQ(rkCommSetCallOptions(comms[0], &options), rkSuccess);
  expect_refused(rkAllReduce(&x, &x, 1, rkFloat32, rkSum, comms[0]), "no_such");
  options.algorithm = "ring";
  comms.each([&](int, rkComm_t comm) {
    EXPECT_EQ(rkCommSetCallOptions(comm, &options), rkSuccess);
    float sum = 2;
    EXPECT_EQ(rkAllReduce(&sum, &sum, 1, rkFloat32, rkSum, comm), rkSuccess);
    EXPECT_EQ(sum, 4);
  });
  std::size_t needed = 0;
  ASSERT_EQ(rkCommFlightRecord(comms[0], nullptr, 0, &needed), rkSuccess);
  std::string record(needed, 'x');
  ASSERT_EQ(rkCommFlightRecord(comms[0], record.data(), needed, nullptr), rkSuccess);
  EXPECT_EQ(record.size(), std::strlen(record.c_str()) + 1);
  EXPECT_NE(record.find("\"algorithm\": \"ring\""), std::string::npos) << record;
  char few[5] = "....";
  ASSERT_EQ(rkCommFlightRecord(comms[0], few, sizeof few, &needed), rkSuccess);
  EXPECT_EQ(std::string(few), record.substr(0, 4));
  // Rank 1 does not come.
  options = RK_CALL_OPTIONS_INITIALIZER;
  options.timeoutMs = 20;
  ASSERT_EQ(rkCommSetCallOptions(comms[0], &options), rkSuccess);
  ASSERT_EQ(rkCommSetCallSite(comms[1], "mlp"), rkSuccess);
  expect_error(rkBarrier(comms[0]), rkTimeout, "rank 1 is in no collective, at call site mlp");
  rkResult_t health = rkSuccess;
  EXPECT_EQ(rkCommGetAsyncError(comms[1], &health), rkSuccess);
  EXPECT_EQ(health, rkTimeout);
}

TEST(C, MemoryIsZeroesUntilItIsGivenBack) {
  Comms comms(1);
  void *memory = nullptr, *first = nullptr;
  ASSERT_EQ(rkMemAlloc(comms[0], &memory, 100), rkSuccess);
  EXPECT_EQ(std::string(static_cast<char*>(memory), 100), std::string(100, '\0'));
  EXPECT_EQ(rkMemFree(comms[0], memory), rkSuccess);
  EXPECT_EQ(rkMemFree(comms[0], memory), rkInvalidArgument);
  EXPECT_EQ(rkMemFree(comms[0], nullptr), rkSuccess);
  ASSERT_EQ(rkMemAlloc(comms[0], &first, 0), rkSuccess);
  ASSERT_EQ(rkMemAlloc(comms[0], &memory, 0), rkSuccess);
  EXPECT_NE(first, memory);  // both are freed with the handle
  EXPECT_NE(rkMemAlloc(comms[0], &memory, SIZE_MAX), rkSuccess);
  EXPECT_NE(std::string(rkGetLastError(comms[0])).find("bytes is 1844674407370955"),
            std::string::npos);
  EXPECT_EQ(rkBarrier(comms[0]), rkSuccess);
}

TEST(C, PortsAreABudgetAndCounted) {
  rkConfig_t config = untuned();
  config.ports = 1;
  Comms comms(kRanks, config);
  int sent = -1;
  expect_refused(rkCommPortsInUse(comms[0], &sent, nullptr), "NULL");
  comms.each([](int, rkComm_t comm) {
    int most_sent = -1, most_received = -1;
    EXPECT_EQ(rkCommPortsInUse(comm, &most_sent, &most_received), rkSuccess);
    EXPECT_EQ(most_sent + most_received, 0);
    Numbers x(100, 1);
    EXPECT_EQ(rkAllReduce(x.data(), x.data(), 100, rkInt32, rkSum, comm), rkSuccess);
    EXPECT_EQ(x, Numbers(100, kRanks));
    EXPECT_EQ(rkCommPortsInUse(comm, &most_sent, &most_received), rkSuccess);
    EXPECT_EQ(most_sent, 1);
    EXPECT_EQ(most_received, 1);
  });
}

TEST(C, HandlesThatAreNoneAreNotFollowed) {
  const std::string none = "rkBarrier: comm is no valid handle, or has been destroyed";
  std::vector<rkComm_t> former;
  for (int i = 0; i < 100; ++i) {
    Comms comms(1);
    former.push_back(comms[0]);
  }
  Comms now(1);
  for (rkComm_t comm : former) {
    EXPECT_EQ(rkBarrier(comm), rkInvalidArgument);
    EXPECT_EQ(last_error(), none);
    EXPECT_EQ(rkCommDestroy(comm), rkInvalidArgument);
    EXPECT_EQ(rkCommAbort(comm), rkInvalidArgument);
  }
  int object = 0;
  for (const auto bits : {std::uintptr_t{1}, std::uintptr_t{0xffffffff}, ~std::uintptr_t{0},
                          reinterpret_cast<std::uintptr_t>(&object)}) {
    EXPECT_EQ(rkBarrier(reinterpret_cast<rkComm_t>(bits)), rkInvalidArgument);
    EXPECT_EQ(last_error(), none);
  }
  EXPECT_EQ(rkBarrier(now[0]), rkSuccess);
  EXPECT_EQ(rkCommDestroy(nullptr), rkSuccess);
  EXPECT_EQ(rkCommAbort(nullptr), rkSuccess);
}

TEST(C, RanksMeetUnderAnId) {
  rkUniqueId id;
  ASSERT_EQ(rkGetUniqueId(&id), rkSuccess);
  on_threads(kRanks, [&](int rank) {
    rkComm_t comm = nullptr;
    ASSERT_EQ(rkCommInitRank(&comm, kRanks, id, rank), rkSuccess) << last_error();
    int ranks = 0, self = -1;
    EXPECT_EQ(rkCommCount(comm, &ranks), rkSuccess);
    EXPECT_EQ(rkCommUserRank(comm, &self), rkSuccess);
    EXPECT_EQ(ranks, kRanks);
    EXPECT_EQ(self, rank);
    double x = rank;
    EXPECT_EQ(rkAllReduce(&x, &x, 1, rkFloat64, rkSum, comm), rkSuccess);
    EXPECT_EQ(x, 3);
    EXPECT_EQ(rkCommFinalize(comm), rkSuccess);
    expect_error(rkBarrier(comm), rkInvalidUsage, "rkBarrier: comm has been finalized");
    EXPECT_EQ(rkCommDestroy(comm), rkSuccess);
  });
  rkComm_t comm = nullptr;
  expect_refused(rkCommInitRank(&comm, kRanks, id, 0), "rkCommInitRank: id has been used");
  EXPECT_EQ(comm, nullptr);
}

TEST(C, AnIdOfAnotherProcessIsRefused) {
  rkUniqueId id;
  ASSERT_EQ(rkGetUniqueId(&id), rkSuccess);
  const std::string end = run_in_child([&] {
    rkComm_t comm = nullptr;
    const std::string text = "rkCommInitRank: id is of process " + std::to_string(getppid()) +
                             ", this is " + std::to_string(getpid());
    const bool is_refused = rkCommInitRank(&comm, 1, id, 0) == rkInvalidArgument;
    return is_refused && last_error().starts_with(text) ? 0 : 1;
  });
  EXPECT_EQ(end, "exit 0");
}

TEST(C, AForkedChildIsToldAndMayMakeItsOwn) {
  Comms comms(1);
  const std::string end = run_in_child([&] {
    int n = 0;
    bool right = rkBarrier(comms[0]) == rkForked && rkCommCount(comms[0], &n) == rkForked;
    right = right && rkCommDestroy(comms[0]) == rkSuccess &&
            rkCommDestroy(comms[0]) == rkInvalidArgument;
    rkComm_t own = nullptr;
    right = right && rkCommInitAll(&own, 1, nullptr) == rkSuccess && rkBarrier(own) == rkSuccess;
    right = right && own != comms[0] && rkCommDestroy(own) == rkSuccess;
    return right ? 0 : 1;
  });
  EXPECT_EQ(end, "exit 0");
  EXPECT_EQ(rkBarrier(comms[0]), rkSuccess);
}

TEST(C, ModelsHaveTimes) {
  rkConfig_t config = untuned();
  config.network = "scale_out";
  Comms comms(2, config);
  expect_all(comms.run([](int, rkComm_t comm) {
    float x = 1;
    double seconds = 0;
    EXPECT_EQ(rkCommCompute(comm, 0.5), rkSuccess);
    EXPECT_EQ(rkAllReduce(&x, &x, 1, rkFloat32, rkSum, comm), rkSuccess);
    EXPECT_EQ(rkCommModelTime(comm, &seconds), rkSuccess);
    EXPECT_GT(seconds, 0.5);
    return rkSuccess;
  }),
             rkSuccess);
}

TEST(C, AnAbortEndsACallOfAnotherThreadAndItsHandle) {
  Comms comms(2);
  std::thread caller([&] {
    EXPECT_EQ(rkBarrier(comms[0]), rkAborted);
    EXPECT_NE(last_error().find("rkCommAbort was called for rank 0"), std::string::npos)
        << last_error();
  });
  // Waits until the flight record says that the call waits.
  for (std::string record(1 << 16, 0); record.find("waits for rank 1") == std::string::npos;) {
    ASSERT_EQ(rkCommFlightRecord(comms[0], record.data(), record.size(), nullptr), rkSuccess);
  }
  EXPECT_EQ(rkBarrier(comms[0]), rkInvalidUsage);
  EXPECT_NE(last_error().find("comm is in a call of another thread"), std::string::npos);
  EXPECT_EQ(rkCommDestroy(comms[0]), rkInvalidUsage);
  EXPECT_EQ(rkCommAbort(comms[0]), rkSuccess);
  caller.join();
  EXPECT_EQ(rkBarrier(comms[0]), rkInvalidArgument);
  comms[0] = nullptr;
  EXPECT_EQ(rkBarrier(comms[1]), rkAborted);
}

TEST(C, SurvivorsGoOn) {
  Comms comms(3);
  EXPECT_EQ(rkCommDestroy(comms[1]), rkSuccess);
  comms[1] = nullptr;
  std::atomic<int> passed{0};
  const auto survive = [&](int rank) {
    rkComm_t comm = comms[rank], part = nullptr;
    EXPECT_EQ(rkBarrier(comm), rkRankLost);
    unsigned int all = 0;
    EXPECT_EQ(rkCommAgree(comm, ~(1U << rank), &all), rkSuccess);
    EXPECT_EQ(all, ~5U);
    ASSERT_EQ(rkCommShrink(comm, &part), rkSuccess) << last_error();
    int ranks = 0, self = -1;
    EXPECT_EQ(rkCommCount(part, &ranks), rkSuccess);
    EXPECT_EQ(rkCommUserRank(part, &self), rkSuccess);
    EXPECT_EQ(ranks, 2);
    EXPECT_EQ(self, rank / 2);
    EXPECT_EQ(rkBarrier(part), rkSuccess) << last_error();
    ++passed;
    while (passed.load() < 2) std::this_thread::yield();
    EXPECT_EQ(rank == 0 ? rkCommRevoke(part) : rkSuccess, rkSuccess);
    EXPECT_EQ(rkBarrier(part), rkAborted);
    EXPECT_NE(last_error().find("rank 0 has revoked the communicator"), std::string::npos);
    EXPECT_EQ(rkCommDestroy(part), rkSuccess);
  };
  std::thread other([&] { survive(2); });
  survive(0);
  other.join();
  EXPECT_EQ(rkCommShrink(comms[0], nullptr), rkInvalidArgument);
  EXPECT_EQ(rkCommAgree(comms[0], 1, nullptr), rkInvalidArgument);
}

// --- Ranks that end. The deadline is an hour away.

constexpr std::int64_t kHourMs = 3'600'000;

rkComm_t init(const rkUniqueId& id, int ranks, int rank) {
  rkConfig_t config = RK_CONFIG_INITIALIZER;
  config.timeoutMs = kHourMs;
  rkComm_t comm = nullptr;
  EXPECT_EQ(rkCommInitRankConfig(&comm, ranks, id, rank, &config), rkSuccess) << last_error();
  return comm;
}

// All ranks make a good call. Then the last rank runs end(comm) and its thread ends. The other
// ranks make a second call, which fails with `cause`.
void expect_lost(const std::function<void(rkComm_t)>& end, const std::string& cause) {
  rkUniqueId id;
  ASSERT_EQ(rkGetUniqueId(&id), rkSuccess);
  const std::string last = "rank " + std::to_string(kRanks - 1);
  rkComm_t comms[kRanks] = {};
  on_threads(kRanks, [&](int rank) {
    const rkComm_t comm = comms[rank] = init(id, kRanks, rank);
    EXPECT_EQ(rkBarrier(comm), rkSuccess) << last_error();
    if (rank == kRanks - 1) return end(comm);
    EXPECT_EQ(rkBarrier(comm), rkRankLost) << last_error();
    EXPECT_NE(last_error().find(last), std::string::npos) << last_error();
    EXPECT_NE(last_error().find(cause), std::string::npos) << last_error();
  });
  for (const rkComm_t comm : comms) EXPECT_EQ(rkCommDestroy(comm), rkSuccess) << last_error();
}

TEST(C, AFinalizedRankIsNotWaitedFor) {
  expect_lost([](rkComm_t comm) { EXPECT_EQ(rkCommFinalize(comm), rkSuccess); },
              "has left after 1 call");
}

TEST(C, ARankWhoseThreadHasEndedIsNotWaitedFor) {
  expect_lost([](rkComm_t) {}, "the thread that made the last one has ended");
}

TEST(C, RanksThatFinalizeEarlyTakeNoCallFromTheOthers) {
  constexpr std::size_t kTurns = 200;
  std::vector<rkUniqueId> ids(kTurns);
  for (rkUniqueId& id : ids) ASSERT_EQ(rkGetUniqueId(&id), rkSuccess);
  on_threads(kRanks, [&](int rank) {
    for (std::size_t turn = 0; turn < kTurns; ++turn) {
      const rkComm_t comm = init(ids[turn], kRanks, rank);
      const auto value = static_cast<std::int32_t>(turn);
      // The root returns from the broadcast before the other ranks do.
      Numbers x(turn % 2 == 0 ? 3 : 30'000, rank == 0 ? value : 0);
      EXPECT_EQ(rkBcast(x.data(), x.size(), rkInt32, 0, comm), rkSuccess) << last_error();
      const rkResult_t message = rank == 0   ? rkSend(x.data(), 2, rkInt32, 1, comm)
                                 : rank == 1 ? rkRecv(x.data(), 2, rkInt32, 0, comm)
                                             : rkSuccess;
      EXPECT_EQ(message, rkSuccess) << last_error();
      EXPECT_EQ(rkCommFinalize(comm), rkSuccess);
      EXPECT_EQ(x.back(), value);
      EXPECT_EQ(rkCommDestroy(comm), rkSuccess) << last_error();
    }
  });
}

TEST(C, AFinalizedRankFirstEndsWhatItHasStarted) {
  std::atomic<bool> finalized{false};
  rkUniqueId id;
  ASSERT_EQ(rkGetUniqueId(&id), rkSuccess);
  on_threads(2, [&](int rank) {
    const rkComm_t comm = init(id, 2, rank);
    Numbers x(10, 1);
    if (rank == 0) {
      while (!finalized.load()) std::this_thread::yield();
      EXPECT_EQ(rkAllReduce(x.data(), x.data(), x.size(), rkInt32, rkSum, comm), rkSuccess)
          << last_error();
      EXPECT_EQ(rkBarrier(comm), rkRankLost) << last_error();
    } else {
      rkRequest_t request = nullptr;
      EXPECT_EQ(rkGroupStart(), rkSuccess);
      EXPECT_EQ(rkAllReduce(x.data(), x.data(), x.size(), rkInt32, rkSum, comm), rkSuccess);
      EXPECT_EQ(rkGroupEndAsync(&request), rkSuccess) << last_error();
      EXPECT_EQ(rkCommFinalize(comm), rkSuccess);
      finalized.store(true);
      EXPECT_EQ(rkRequestWait(request), rkSuccess) << last_error();
      EXPECT_EQ(rkRequestFree(request), rkSuccess);
    }
    EXPECT_EQ(x[9], 2);
    EXPECT_EQ(rkCommDestroy(comm), rkSuccess);
  });
}

// Each step starts threads and joins them. The end of a thread means nothing for its rank, no
// matter how late the next thread starts. The main thread or a step's thread plays rank 0.
TEST(C, RanksMayBePlayedByThreadsStepByStep) {
  for (const bool main_plays : {true, false}) {
    Comms comms(2);
    const auto step = [&](int rank) {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(150));
      EXPECT_EQ(rkBarrier(comms[rank]), rkSuccess) << last_error();
    };
    for (int i = 0; i < 3; ++i) {
      std::thread other(step, 1);
      if (main_plays) {
        step(0);
      } else {
        std::thread(step, 0).join();
      }
      other.join();
    }
  }
}

TEST(C, ARankThatFailsTellsTheOthersWhy) {
  Comms comms(kRanks);
  const auto results = comms.run([](int rank, rkComm_t comm) {
    if (rank != 1) return rkBarrier(comm);
    EXPECT_EQ(rkCommFail(comm, nullptr), rkInvalidArgument);
    EXPECT_EQ(last_error(), "rkCommFail: why is NULL");
    EXPECT_EQ(rkCommFail(comm, "out of luck"), rkSuccess);
    const rkResult_t result = rkBarrier(comm);
    EXPECT_EQ(last_error(), "rkBarrier: rank 1 failed: out of luck");
    return result;
  });
  expect_all(results, rkRemoteError);
}

// --- Signal handlers

std::atomic<rkComm_t> ended_by_signal{nullptr};
std::atomic<int> signals_handled{0};

// Sends SIGUSR1 to the thread. The handler ends `comm`; the function returns after the handler.
void end_by_signal(rkComm_t comm, pthread_t thread) {
  ended_by_signal.store(comm);
  const int before = signals_handled.load();
  struct sigaction action {};
  action.sa_handler = [](int) {
    const int interrupted = errno;
    errno = EBADMSG;
    EXPECT_EQ(rkCommAbortFromSignal(ended_by_signal.load()), rkSuccess);
    EXPECT_EQ(errno, EBADMSG);
    errno = interrupted;
    signals_handled.fetch_add(1);
  };
  sigaction(SIGUSR1, &action, nullptr);
  pthread_kill(thread, SIGUSR1);
  while (signals_handled.load() == before) std::this_thread::yield();
}

// The signal interrupts the call itself, or malloc() and free(), which hold locks at that time.
TEST(C, ASignalHandlerEndsCallsWhateverItInterrupts) {
  for (int turn = 0; turn < 100; ++turn) {
    Comms comms(2);
    std::atomic<bool> over{false}, begun{false};
    std::thread allocating([&] {
      std::vector<std::unique_ptr<char[]>> all(64);
      for (std::size_t i = 0; !over.load(); i = i * 29 + 1) {
        all[i % all.size()].reset(new char[i % 5000 + 1]);
        begun.store(true);
      }
    });
    std::thread waiting([&] { EXPECT_EQ(rkBarrier(comms[0]), rkAborted) << last_error(); });
    while (!begun.load()) std::this_thread::yield();
    for (int i = 0; i < turn; ++i) std::this_thread::yield();
    end_by_signal(comms[0], (turn % 2 == 0 ? allocating : waiting).native_handle());
    over.store(true);
    waiting.join();
    allocating.join();
    EXPECT_EQ(rkBarrier(comms[1]), rkAborted);
  }
  for (const rkComm_t none : {rkComm_t{}, reinterpret_cast<rkComm_t>(0x123456789)}) {
    EXPECT_EQ(rkCommAbortFromSignal(none), rkInvalidArgument);
  }
}

// Signal handlers use handles while other threads destroy them.
TEST(C, AHandleIsDestroyedBesideASignalHandler) {
  std::atomic<bool> over{false};
  std::atomic<rkComm_t> comm{nullptr};
  std::thread looking([&] {
    while (!over.load()) rkCommAbortFromSignal(comm.load());
  });
  for (int turn = 0; turn < 1000; ++turn) {
    rkComm_t one[1];
    ASSERT_EQ(rkCommInitAll(one, 1, nullptr), rkSuccess);
    comm.store(one[0]);
    ASSERT_EQ(rkCommDestroy(one[0]), rkSuccess);
  }
  over.store(true);
  looking.join();
}

// --- Interrupts

thread_local int asked = 0;
int ask_and_interrupt() { return ++asked > 1 ? 1 : 0; }

TEST(C, AWaitingThreadCanBeInterrupted) {
  Comms comms(2);
  std::atomic<bool> ended{false};
  const auto results = comms.run([&](int rank, rkComm_t comm) {
    if (rank == 1) {
      while (!ended.load()) std::this_thread::yield();
      EXPECT_EQ(asked, 0);
      return rkBarrier(comm);
    }
    EXPECT_EQ(rkSetInterruptCheck(ask_and_interrupt), rkSuccess);
    const rkResult_t result = rkBarrier(comm);
    expect_error(result, rkAborted, "the wait was interrupted: rank 0 waits for rank 1");
    EXPECT_GE(asked, 2);
    EXPECT_EQ(rkSetInterruptCheck(nullptr), rkSuccess);
    ended.store(true);
    return result;
  });
  expect_all(results, rkAborted);
}

int count_asks() {
  ++asked;
  return 0;
}

// At least once when the wait begins, and once when it ends by its deadline. Finds a wait that asks
// only then.
TEST(C, AWaitingThreadIsAskedWhenItsWaitBegins) {
  Comms comms(2);
  std::atomic<bool> ended{false};
  const auto results = comms.run([&](int rank, rkComm_t comm) {
    EXPECT_EQ(rkBarrier(comm), rkSuccess);  // plans
    rkCallOptions_t options = RK_CALL_OPTIONS_INITIALIZER;
    options.timeoutMs = 10;
    EXPECT_EQ(rkCommSetCallOptions(comm, &options), rkSuccess);
    if (rank == 1) {
      while (!ended.load()) std::this_thread::yield();
      return rkBarrier(comm);
    }
    asked = 0;
    rkSetInterruptCheck(count_asks);
    const rkResult_t result = rkBarrier(comm);
    EXPECT_GE(asked, 2);
    rkSetInterruptCheck(nullptr);
    ended.store(true);
    return result;
  });
  expect_all(results, rkTimeout);
}

// --- Experts

// Three experts, which multiply by 1, 2 and 3; one row may arrive at each.
TEST(C, TokensGoToExpertsAndReturn) {
  Comms comms(kRanks);
  expect_all(comms.run([&](int rank, rkComm_t comm) {
    rkExperts_t experts = nullptr;
    EXPECT_EQ(rkExpertsCreate(&experts, kRanks, 2, 2, rkFloat32, rkFloat32, 1, comm), rkSuccess)
        << last_error();
    const float number = static_cast<float>(rank) + 1;
    const float token[2] = {number, 10 * number}, weights[2] = {0.5F, 4};
    // The first choice is alone at its expert; rank 0 comes first at the expert of the second.
    const std::int32_t indices[2] = {(rank + 1) % kRanks, rank == 0 ? -1 : 1};
    float rows[2] = {}, out[2] = {-1, -1};
    EXPECT_EQ(rkExpertsDispatch(experts, token, indices, 1, rows, 1), rkSuccess) << last_error();
    const std::size_t *counts = nullptr, *dropped = nullptr;
    std::size_t count = 0;
    EXPECT_EQ(rkExpertsGetCounts(experts, &counts, &count), rkSuccess);
    EXPECT_EQ(count, 1u);
    EXPECT_EQ(counts[0], 1u);
    const float from = static_cast<float>((rank + 2) % kRanks) + 1;
    EXPECT_EQ(rows[0], from);
    EXPECT_EQ(rows[1], 10 * from);
    EXPECT_EQ(rkExpertsGetDropped(experts, &dropped, &count), rkSuccess);
    EXPECT_EQ(count, rank == 0 ? 0u : 1u);
    if (rank != 0) {
      EXPECT_EQ(dropped[0], 1u);
    }
    for (float& x : rows) x *= static_cast<float>(rank) + 1;
    EXPECT_EQ(rkExpertsCombine(experts, rows, weights, out), rkSuccess) << last_error();
    EXPECT_EQ(out[1], 0.5F * token[1] * static_cast<float>((rank + 1) % kRanks + 1));
    expect_refused(rkExpertsCombine(experts, rows, weights, out),
                   "rkExpertsCombine: combine: no rows are out");
    expect_refused(rkExpertsDispatch(experts, token, nullptr, 1, rows, 1), "indices is NULL");
    expect_refused(rkExpertsGetCounts(experts, nullptr, &count), "counts is NULL");
    expect_refused(rkExpertsGetDropped(experts, &dropped, nullptr), "count is NULL");
    rkGroupStart();
    expect_error(rkExpertsDispatch(experts, token, indices, 1, rows, 1), rkInvalidUsage,
                 "a group is open; use experts outside of groups");
    rkGroupEnd();
    EXPECT_EQ(rkExpertsDestroy(experts), rkSuccess) << last_error();
    expect_refused(rkExpertsDestroy(experts), "experts is no valid handle");
    expect_refused(rkExpertsCreate(&experts, 4, 1, 2, rkFloat32, rkFloat32, 0, comm),
                   "experts is 4; allowed are multiples of 3");
    return rkExpertsDestroy(nullptr);
  }),
             rkSuccess);
}

// --- Active ranks

// Rank 2 comes when the others have gone on.
TEST(C, ActiveRanksGoOnWithoutALateRank) {
  Comms comms(kRanks);
  std::barrier gate(kRanks);
  expect_all(comms.run([&](int rank, rkComm_t comm) {
    rkActive_t active = nullptr;
    EXPECT_EQ(rkActiveCreate(&active, kHourMs * 1000, 64, comm), rkSuccess) << last_error();
    int self = -1, ranks = -1;
    EXPECT_EQ(rkActiveGetRank(active, &self, &ranks), rkSuccess);
    EXPECT_EQ(self, rank);
    EXPECT_EQ(ranks, kRanks);
    const int all[] = {0, 1, 2};
    std::vector<int> listed;
    const auto add_up = [&](int value) {
      const int* from = nullptr;
      std::size_t count = 0;
      int sum = -1;
      EXPECT_EQ(
          rkActiveCall(active, rkCollAllReduce, &value, &sum, 1, rkInt32, rkSum, 0, &from, &count),
          rkSuccess)
          << last_error();
      listed.assign(from, from + count);
      return sum;
    };
    EXPECT_EQ(rkActiveWaitFor(active, all, 2), rkSuccess) << last_error();
    if (rank == 2) gate.arrive_and_wait();
    EXPECT_EQ(add_up(rank + 1), rank == 2 ? -1 : 3);
    EXPECT_EQ(listed, rank == 2 ? std::vector<int>() : std::vector<int>({0, 1}));
    if (rank != 2) gate.arrive_and_wait();
    EXPECT_EQ(rkActiveWaitFor(active, all, 3), rkSuccess) << last_error();
    EXPECT_EQ(add_up(rank + 1), 6);
    EXPECT_EQ(listed, std::vector<int>({0, 1, 2}));
    gate.arrive_and_wait();
    const int* from = nullptr;
    std::size_t count = 0;
    const auto refuse = [&](int collective, rkDataType_t type, const std::string& words) {
      expect_refused(rkActiveCall(active, static_cast<rkCollective_t>(collective), all, &self, 1,
                                  type, rkSum, 0, &from, &count),
                     words);
    };
    refuse(10, rkInt32, "collective is 10; allowed are 0 to 9");
    refuse(rkCollScan, rkOpaque, "type is 100; allowed are 0 to 14");
    expect_refused(rkActiveWaitFor(active, nullptr, 1), "ranks is NULL");
    expect_refused(rkActiveWaitFor(active, &ranks, 1), "a rank is 3; allowed are 0 to 2");
    expect_refused(rkActiveGetRank(active, nullptr, &ranks), "rank is NULL");
    EXPECT_EQ(rkActiveDestroy(active), rkSuccess) << last_error();
    expect_refused(rkActiveDestroy(active), "active is no valid handle");
    expect_refused(rkActiveCreate(&active, -1, 64, comm), "wait is -1 us; allowed are 0 and more");
    return rkActiveDestroy(nullptr);
  }),
             rkSuccess);
}

// --- Quantised sums

TEST(C, QuantisedSumsStayWithinTheirBound) {
  Comms comms(kRanks);
  expect_all(comms.run([&](int rank, rkComm_t comm) {
    std::vector<float> x(1000), sum(1000);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>((i * 37 + 11 * static_cast<std::size_t>(rank)) % 101) - 50;
    }
    const std::vector<double> peaks(kRanks, 50);
    for (const rkDataType_t as : {rkInt8, rkFloat8e4m3}) {
      double bound = 0, error = 0;
      EXPECT_EQ(rkQuantisedError(rkFloat32, as, peaks.data(), kRanks, &bound), rkSuccess);
      EXPECT_EQ(rkAllReduceQuantised(x.data(), sum.data(), x.size(), rkFloat32, as, 0, comm),
                rkSuccess)
          << last_error();
      for (std::size_t i = 0; i < x.size(); ++i) {
        double exact = 0;
        for (std::size_t r = 0; r < kRanks; ++r) {
          exact += static_cast<double>((i * 37 + 11 * r) % 101) - 50;
        }
        error = std::max(error, std::abs(sum[i] - exact));
      }
      EXPECT_LE(error, bound);
      EXPECT_GT(error, bound / 10);
    }
    expect_refused(rkAllReduceQuantised(x.data(), x.data(), 1, rkFloat64, rkInt8, 0, comm),
                   "type is f64; allowed are f32, f16 and bf16");
    expect_refused(rkAllReduceQuantised(x.data(), x.data(), 1, rkFloat32, rkUint8, 0, comm),
                   "as is u8; allowed are i8 and f8e4m3");
    expect_refused(rkAllReduceQuantised(nullptr, x.data(), 1, rkFloat32, rkInt8, 0, comm),
                   "in is null");
    expect_refused(rkQuantisedError(rkFloat32, rkInt8, nullptr, 1, nullptr), "bound is NULL");
    rkGroupStart();
    expect_error(rkAllReduceQuantised(x.data(), x.data(), 1, rkFloat32, rkInt8, 0, comm),
                 rkInvalidUsage, "a group is open; make quantised sums outside of groups");
    rkGroupEnd();
    return rkSuccess;
  }),
             rkSuccess);
}

// --- Buckets

TEST(C, BucketsReduceManyTensorsInFewCalls) {
  Comms comms(kRanks);
  const auto results = comms.run([](int rank, rkComm_t comm) {
    rkBuckets_t buckets = nullptr;
    EXPECT_EQ(rkBucketsCreate(&buckets, 400, comm), rkSuccess) << last_error();
    std::vector<Numbers> tensors;
    for (std::size_t i = 0; i < 10; ++i) tensors.emplace_back(i == 7 ? 1000 : 30, rank + 1);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      // A tensor that a rank does not use counts as zeros.
      const bool unused = i == 4 && rank == 0;
      EXPECT_EQ((unused ? rkBucketsAddUnused : rkBucketsAdd)(buckets, tensors[i].data(),
                                                             tensors[i].size(), rkInt32, rkSum),
                rkSuccess)
          << last_error();
    }
    expect_error(rkBucketsDestroy(buckets), rkInvalidUsage, "buckets hold tensors");
    rkCallOptions_t options = RK_CALL_OPTIONS_INITIALIZER;  // for later tensors
    EXPECT_EQ(rkCommSetCallOptions(comm, &options), rkSuccess);
    EXPECT_EQ(rkBucketsFlush(buckets), rkSuccess) << last_error();
    EXPECT_EQ(rkBucketsWaitFor(buckets, 3), rkSuccess) << last_error();
    EXPECT_EQ(tensors[2][0], 6);
    EXPECT_EQ(rkBucketsWait(buckets), rkSuccess) << last_error();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      for (const std::int32_t x : tensors[i]) EXPECT_EQ(x, i == 4 ? 5 : 6) << i;
    }
    std::size_t calls = 0;
    EXPECT_EQ(rkBucketsGetCalls(buckets, &calls), rkSuccess);
    EXPECT_EQ(calls, 5u);  // calls with 3, 3, 1, 1 and 2 tensors
    void* both[] = {tensors[0].data(), tensors[1].data()};
    const std::size_t counts[] = {30, 30};
    EXPECT_EQ(rkBucketsAllReduce(buckets, 2, both, counts, rkInt32, rkMax), rkSuccess);
    EXPECT_EQ(tensors[1][29], 6);
    return rkBucketsDestroy(buckets);
  });
  expect_all(results, rkSuccess);
}

// The program is built with the first version of the header. The library must not touch members
// beyond that version.
TEST(C, ProgramsOfTheFirstHeaderGoOn) {
  rkConfig_t config = RK_CONFIG_INITIALIZER;
  config.size = offsetof(rkConfig_t, order);
  config.order = "there is no such member";
  config.progressCore = -7;
  config.placement = "nor this one";
  config.ports = -7;
  rkComm_t comm = nullptr;
  ASSERT_EQ(rkCommInitAllConfig(&comm, 1, &config), rkSuccess) << last_error();
  const char* order = nullptr;
  EXPECT_EQ(rkCommGetOrder(comm, &order), rkSuccess);
  EXPECT_STREQ(order, "");
  rkCallOptions_t options = RK_CALL_OPTIONS_INITIALIZER;
  options.size = offsetof(rkCallOptions_t, order);
  options.order = "there is no such member";
  EXPECT_EQ(rkCommSetCallOptions(comm, &options), rkSuccess) << last_error();
  for (const std::size_t size : {offsetof(rkCallOptions_t, order) - 1, sizeof options + 8}) {
    options.size = size;
    EXPECT_EQ(rkCommSetCallOptions(comm, &options), rkInvalidArgument);
    EXPECT_EQ(last_error().find("rkCommSetCallOptions: options.size is "), 0u) << last_error();
  }
  EXPECT_EQ(rkCommDestroy(comm), rkSuccess);
}

// A call's order takes precedence over the communicator's order. A difference between
// ranks' orders is a mismatch.
TEST(C, OrdersAreAskedForAndReadBack) {
  rkConfig_t config = RK_CONFIG_INITIALIZER;
  rkComm_t comms[2];
  config.order = "size_invariant";
  ASSERT_EQ(rkCommInitAllConfig(comms, 2, &config), rkSuccess) << last_error();
  const char* order = nullptr;
  EXPECT_EQ(rkCommGetOrder(comms[0], nullptr), rkInvalidArgument);
  EXPECT_EQ(rkCommGetOrder(comms[0], &order), rkSuccess);
  EXPECT_STREQ(order, "size_invariant");
  float x[2] = {1, 1};
  const auto add_up = [&] {
    EXPECT_EQ(rkGroupStart(), rkSuccess);
    for (int r = 0; r < 2; ++r) {
      EXPECT_EQ(rkAllReduce(&x[r], &x[r], 1, rkFloat32, rkSum, comms[r]), rkSuccess);
    }
    return rkGroupEnd();
  };
  EXPECT_EQ(add_up(), rkSuccess) << last_error();
  rkCallOptions_t options = RK_CALL_OPTIONS_INITIALIZER;
  options.order = "group_invariant";
  ASSERT_EQ(rkCommSetCallOptions(comms[0], &options), rkSuccess);
  EXPECT_EQ(add_up(), rkMismatch);
  for (rkComm_t comm : comms) EXPECT_EQ(rkCommDestroy(comm), rkSuccess);
}

// The CPUs of this thread.
std::vector<int> cpus_here() {
  cpu_set_t mask;
  std::vector<int> cpus;
  EXPECT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
  }
  return cpus;
}

// The first call of each rank on its thread pins the thread, and reports the CPU.
TEST(C, ThreadsOfAllRanksArePinnedUnlessToldOtherwise) {
  const std::vector<int> all = cpus_here();
  const int anywhere = all.size() == 1 ? all.front() : -1;
  const int nodes[] = {-1, -1};
  for (const char* placement : {static_cast<const char*>(nullptr), "scatter", "none", "nodes"}) {
    const bool is_pinned = placement == nullptr || placement == std::string("scatter");
    rkConfig_t config = RK_CONFIG_INITIALIZER;
    if (placement != nullptr && placement == std::string("nodes")) {
      config.nodes = nodes;
    } else {
      config.placement = placement;
    }
    rkComm_t comms[2];
    ASSERT_EQ(rkCommInitAllConfig(comms, 2, &config), rkSuccess) << last_error();
    int cpus[2] = {-2, -2};
    on_threads(2, [&](int r) {
      if (r == 1) {
        EXPECT_EQ(rkCommPinThread(comms[r]), rkSuccess) << last_error();
      }
      EXPECT_EQ(rkBarrier(comms[r]), rkSuccess) << last_error();
      EXPECT_EQ(rkCommCpu(comms[r], &cpus[r]), rkSuccess) << last_error();
      if (is_pinned) {
        EXPECT_EQ(cpus_here(), std::vector<int>{cpus[r]});
      } else {
        EXPECT_EQ(cpus_here(), all);
        EXPECT_EQ(cpus[r], anywhere);
      }
    });
    if (is_pinned && all.size() > 1) {
      EXPECT_NE(cpus[0], cpus[1]);
    }
    for (rkComm_t comm : comms) EXPECT_EQ(rkCommDestroy(comm), rkSuccess);
  }
}

}  // namespace
