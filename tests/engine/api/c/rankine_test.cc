// The C functions do what their C++ counterparts do, and what only C can get wrong is a named
// error.
#include "engine/api/c/rankine.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/version.h"

namespace {

std::string last_error() { return rkGetLastError(nullptr); }

// All ranks of a communicator, each on a thread in run().
class Comms {
 public:
  explicit Comms(int ranks, const char* network = nullptr)
      : comms_(static_cast<std::size_t>(ranks)) {
    rkConfig_t config = RK_CONFIG_INITIALIZER;
    config.network = network;
    config.tuned = 0;
    EXPECT_EQ(rkCommInitAllConfig(comms_.data(), ranks, &config), rkSuccess) << last_error();
  }
  ~Comms() {
    for (rkComm_t comm : comms_) EXPECT_EQ(rkCommDestroy(comm), rkSuccess) << last_error();
  }
  rkComm_t& operator[](int rank) { return comms_[static_cast<std::size_t>(rank)]; }

  // What f returned, by rank.
  std::vector<rkResult_t> run(const std::function<rkResult_t(int, rkComm_t)>& f) {
    std::vector<rkResult_t> results(comms_.size());
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < comms_.size(); ++r) {
      threads.emplace_back([&, r] { results[r] = f(static_cast<int>(r), comms_[r]); });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }

 private:
  std::vector<rkComm_t> comms_;
};

void expect_all(const std::vector<rkResult_t>& results, rkResult_t expected) {
  for (std::size_t r = 0; r < results.size(); ++r) EXPECT_EQ(results[r], expected) << "rank " << r;
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
  // Rank r brings 100 r + i.
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
    // From element 2 or 1 on, to element 1.
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

TEST(C, WhatOnlyCCanGetWrongIsNamed) {
  Comms comms(1);
  rkComm_t comm = comms[0];
  std::int32_t x = 1, y = 0;
  const auto refused = [&](rkResult_t result, const std::string& text) {
    EXPECT_EQ(result, rkInvalidArgument) << text;
    EXPECT_EQ(last_error(), text);
  };
  refused(rkGetVersion(nullptr), "rkGetVersion: version is NULL");
  refused(rkGetUniqueId(nullptr), "rkGetUniqueId: id is NULL");
  refused(rkCommInitAll(nullptr, 1, nullptr), "rkCommInitAll: comms is NULL");
  refused(rkCommCount(nullptr, &x), "rkCommCount: comm is NULL");
  refused(rkCommCount(comm, nullptr), "rkCommCount: ranks is NULL");
  refused(rkCommUserRank(comm, nullptr), "rkCommUserRank: rank is NULL");
  refused(rkCommGetAsyncError(comm, nullptr), "rkCommGetAsyncError: result is NULL");
  refused(rkAllReduce(&x, &y, 1, rkInt32, rkSum, nullptr), "rkAllReduce: comm is NULL");
  refused(rkAllReduce(&x, &y, 1, static_cast<rkDataType_t>(15), rkSum, comm),
          "rkAllReduce: type is 15; allowed are 0 to 14");
  refused(rkAllReduce(&x, &y, 1, static_cast<rkDataType_t>(-1), rkSum, comm),
          "rkAllReduce: type is -1; allowed are 0 to 14");
  refused(rkAllReduce(&x, &y, 1, rkInt32, static_cast<rkRedOp_t>(8), comm),
          "rkAllReduce: op is 8; allowed are 0 to 7 and what this rank has created");
  refused(rkAllReduce(nullptr, &y, 1, rkInt32, rkSum, comm),
          "rkAllReduce: in is null; 4 bytes are needed");
  refused(rkBroadcast(&x, &y, 1, rkInt32, 1, comm), "rkBroadcast: root is 1; allowed are 0 to 0");
  refused(rkMemAlloc(comm, nullptr, 1), "rkMemAlloc: memory is NULL");
  refused(rkMemFree(comm, &x),
          "rkMemFree: memory is not what rkMemAlloc gave to this rank, or was given back");
  refused(rkCommFlightRecord(comm, nullptr, 5, nullptr),
          "rkCommFlightRecord: text is NULL; 5 bytes are to be written");
  refused(rkCommModelTime(comm, nullptr), "rkCommModelTime: seconds is NULL");
  refused(rkCommCompute(comm, 1),
          "rkCommCompute: compute() is for modelled networks; this communicator has none");
  EXPECT_EQ(rkAllReduce(&x, &y, 1, rkInt32, rkSum, comm), rkSuccess);  // it goes on
  EXPECT_EQ(y, 1);
  EXPECT_EQ(rkAllReduce(&x, &y, std::numeric_limits<std::size_t>::max(), rkInt32, rkSum, comm),
            rkInvalidArgument);
}

TEST(C, HandlesThatAreNoneAreNotFollowed) {
  const std::string none =
      "rkBarrier: comm is no communicator's handle, or one that has been destroyed";
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
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
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
      EXPECT_EQ(rkBarrier(comm), rkInvalidUsage);
      EXPECT_EQ(last_error(), "rkBarrier: comm has been finalized");
      EXPECT_EQ(rkCommDestroy(comm), rkSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
  rkComm_t comm = nullptr;
  EXPECT_EQ(rkCommInitRank(&comm, kRanks, id, 0), rkInvalidArgument);
  EXPECT_EQ(
      last_error(),
      "rkCommInitRank: id has been used, all its ranks have come; an id is for one communicator");
  EXPECT_EQ(comm, nullptr);
}

TEST(C, RanksThatDisagreeDoNotMeet) {
  rkUniqueId id, none{};
  ASSERT_EQ(rkGetUniqueId(&id), rkSuccess);
  rkComm_t first = nullptr, second = nullptr;
  rkConfig_t config = RK_CONFIG_INITIALIZER;
  config.timeoutMs = 12345;
  const auto refused = [&](rkResult_t result, const std::string& text) {
    EXPECT_EQ(result, rkInvalidArgument) << text;
    EXPECT_EQ(last_error(), text);
  };
  refused(rkCommInitRank(&first, 2, none, 0),
          "rkCommInitRank: id is none; rkGetUniqueId() makes them");
  refused(rkCommInitRank(&first, 2, id, 2), "rkCommInitRank: rank is 2; allowed are 0 to 1");
  refused(rkCommInitRank(&first, 0, id, 0), "rkCommInitRank: ranks is 0; allowed are 1 to 1024");
  refused(rkCommInitRank(nullptr, 2, id, 0), "rkCommInitRank: comm is NULL");
  ASSERT_EQ(rkCommInitRankConfig(&first, 2, id, 0, &config), rkSuccess);
  refused(rkCommInitRankConfig(&second, 3, id, 1, &config),
          "rkCommInitRankConfig: ranks is 3; the first rank of this id gave 2");
  refused(rkCommInitRank(&second, 2, id, 1),
          "rkCommInitRank: config.timeoutMs is not what the first rank of this id gave");
  refused(rkCommInitRankConfig(&second, 2, id, 0, &config),
          "rkCommInitRankConfig: rank is 0, which has joined before; a rank joins once");
  EXPECT_EQ(rkCommDestroy(first), rkSuccess);
  EXPECT_EQ(rkCommInitRankConfig(&second, 2, id, 1, &config), rkRankLost);
  EXPECT_EQ(last_error(), "rkCommInitRankConfig: all ranks that had come under this id have left");
}

TEST(C, AnIdOfAnotherProcessIsRefused) {
  rkUniqueId id;
  ASSERT_EQ(rkGetUniqueId(&id), rkSuccess);
  const pid_t child = fork();
  if (child == 0) {
    rkComm_t comm = nullptr;
    const std::string text = "rkCommInitRank: id is of process " + std::to_string(getppid()) +
                             ", this is " + std::to_string(getpid()) +
                             "; ranks are threads of the process that made the id, but for one of "
                             "rkGetUniqueIdOfProcesses()";
    _exit(rkCommInitRank(&comm, 1, id, 0) == rkInvalidArgument && last_error() == text ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(C, AForkedChildIsToldAndMayMakeItsOwn) {
  Comms comms(1);
  const pid_t child = fork();
  if (child == 0) {
    int n = 0;
    bool right = rkBarrier(comms[0]) == rkForked && rkCommCount(comms[0], &n) == rkForked;
    right = right && rkCommDestroy(comms[0]) == rkSuccess &&
            rkCommDestroy(comms[0]) == rkInvalidArgument;
    rkComm_t own = nullptr;
    right = right && rkCommInitAll(&own, 1, nullptr) == rkSuccess && rkBarrier(own) == rkSuccess;
    right = right && own != comms[0] && rkCommDestroy(own) == rkSuccess;
    _exit(right ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(rkBarrier(comms[0]), rkSuccess);
}

TEST(C, ConfigsAreChecked) {
  rkComm_t comm = nullptr;
  const auto refused = [&](const std::function<void(rkConfig_t&)>& spoil, const std::string& text) {
    rkConfig_t config = RK_CONFIG_INITIALIZER;
    spoil(config);
    EXPECT_EQ(rkCommInitAllConfig(&comm, 1, &config), rkInvalidArgument) << text;
    EXPECT_NE(last_error().find(text), std::string::npos) << last_error();
  };
  refused([](rkConfig_t& c) { c.size = 0; }, "config.size is 0; this library knows ");
  refused([](rkConfig_t& c) { c.timeoutMs = -2; }, "timeoutMs is -2");
  refused([](rkConfig_t& c) { c.wait = "sleep"; },
          "wait is 'sleep'; allowed are auto, spin, yield, park");
  refused([](rkConfig_t& c) { c.network = "no_such"; }, "no_such");
  refused([](rkConfig_t& c) { c.levelCount = 1; }, "levels is NULL of 1 numbers");
  refused([](rkConfig_t& c) { c.levelCount = -1; }, "levels is NULL of -1 numbers");
  refused([](rkConfig_t& c) { c.tuned = 2; }, "config.tuned is 2; allowed are 0 and 1");
  const int node = -7;
  refused([&](rkConfig_t& c) { c.nodes = &node; }, "nodes[0] is -7; allowed are -1 (any) and more");
  // A list is not followed for ranks that there cannot be.
  for (const int ranks : {0, -1, 2'000'000'000}) {
    EXPECT_EQ(rkCommInitAll(&comm, ranks, &node), rkInvalidArgument);
    EXPECT_EQ(last_error(),
              "rkCommInitAll: ranks is " + std::to_string(ranks) + "; allowed are 1 to 1024");
  }
  EXPECT_EQ(comm, nullptr);
  rkConfig_t config = RK_CONFIG_INITIALIZER;
  config.wait = "park";
  config.timeoutMs = -1;
  config.planBytes = 1;
  rkComm_t two[2];
  ASSERT_EQ(rkCommInitAllConfig(two, 2, &config), rkSuccess) << last_error();
  EXPECT_EQ(rkBarrier(two[0]), rkInvalidArgument);  // its plan needs more than a byte
  for (rkComm_t one : two) EXPECT_EQ(rkCommDestroy(one), rkSuccess);
}

TEST(C, CallOptionsNameTheAlgorithmAndEndCalls) {
  Comms comms(2);
  rkCallOptions_t options = RK_CALL_OPTIONS_INITIALIZER;
  options.algorithm = "no_such";
  float x = 1;
  ASSERT_EQ(rkCommSetCallOptions(comms[0], &options), rkSuccess);
  EXPECT_EQ(rkAllReduce(&x, &x, 1, rkFloat32, rkSum, comms[0]), rkInvalidArgument);
  EXPECT_NE(last_error().find("no_such"), std::string::npos);
  options.algorithm = "ring";
  expect_all(comms.run([&](int, rkComm_t comm) {
    EXPECT_EQ(rkCommSetCallOptions(comm, &options), rkSuccess);
    float sum = 2;
    const rkResult_t result = rkAllReduce(&sum, &sum, 1, rkFloat32, rkSum, comm);
    EXPECT_EQ(sum, 4);
    return result;
  }),
             rkSuccess);
  std::size_t needed = 0;
  ASSERT_EQ(rkCommFlightRecord(comms[0], nullptr, 0, &needed), rkSuccess);
  std::string record(needed, 'x');
  ASSERT_EQ(rkCommFlightRecord(comms[0], record.data(), needed, nullptr), rkSuccess);
  EXPECT_EQ(record.size(), std::strlen(record.c_str()) + 1);
  EXPECT_NE(record.find("\"algorithm\": \"ring\""), std::string::npos) << record;
  char few[5] = "....";
  ASSERT_EQ(rkCommFlightRecord(comms[0], few, sizeof few, &needed), rkSuccess);
  EXPECT_EQ(std::string(few), record.substr(0, 4));

  options.size = 3;
  EXPECT_EQ(rkCommSetCallOptions(comms[0], &options), rkInvalidArgument);
  options = RK_CALL_OPTIONS_INITIALIZER;
  options.transport = "pigeon";
  EXPECT_EQ(rkCommSetCallOptions(comms[0], &options), rkInvalidArgument);
  EXPECT_EQ(
      last_error(),
      "rkCommSetCallOptions: transport is 'pigeon'; allowed are auto, direct, mailbox, board");
  options = RK_CALL_OPTIONS_INITIALIZER;
  options.dimCount = 2;
  EXPECT_EQ(rkCommSetCallOptions(comms[0], &options), rkInvalidArgument);
  options = RK_CALL_OPTIONS_INITIALIZER;
  options.sharedPayloads = 2;
  EXPECT_EQ(rkCommSetCallOptions(comms[0], &options), rkInvalidArgument);
  EXPECT_EQ(last_error(), "rkCommSetCallOptions: options.sharedPayloads is 2; allowed are 0 and 1");

  // Rank 1 does not come.
  options = RK_CALL_OPTIONS_INITIALIZER;
  options.timeoutMs = 20;
  ASSERT_EQ(rkCommSetCallOptions(comms[0], &options), rkSuccess);
  EXPECT_EQ(rkBarrier(comms[0]), rkTimeout);
  EXPECT_NE(last_error().find("rank 1 is in no collective"), std::string::npos) << last_error();
  rkResult_t health = rkSuccess;
  EXPECT_EQ(rkCommGetAsyncError(comms[1], &health), rkSuccess);
  EXPECT_EQ(health, rkTimeout);
  ASSERT_EQ(rkCommSetCallOptions(comms[0], nullptr), rkSuccess);
  EXPECT_EQ(rkBarrier(comms[0]), rkTimeout);
}

TEST(C, MemoryIsZeroesUntilItIsGivenBack) {
  Comms comms(1);
  void* memory = nullptr;
  ASSERT_EQ(rkMemAlloc(comms[0], &memory, 100), rkSuccess);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(static_cast<char*>(memory)[i], 0);
  EXPECT_EQ(rkMemFree(comms[0], memory), rkSuccess);
  EXPECT_EQ(rkMemFree(comms[0], memory), rkInvalidArgument);
  EXPECT_EQ(rkMemFree(comms[0], nullptr), rkSuccess);
  void* first = nullptr;
  ASSERT_EQ(rkMemAlloc(comms[0], &first, 0), rkSuccess);
  ASSERT_EQ(rkMemAlloc(comms[0], &memory, 0), rkSuccess);
  EXPECT_NE(first, memory);  // and they go with the handle
  EXPECT_NE(rkMemAlloc(comms[0], &memory, std::numeric_limits<std::size_t>::max()), rkSuccess);
  EXPECT_EQ(rkBarrier(comms[0]), rkSuccess);
}

TEST(C, ModelsHaveTimes) {
  Comms comms(2, "scale_out");
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
  // Until the call waits, as its record says.
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

TEST(C, ResultsHaveTexts) {
  EXPECT_STREQ(rkGetErrorString(rkSuccess), "no error");
  EXPECT_STREQ(rkGetErrorString(rkMismatch), "ranks called different things");
  for (int i = -2; i < 20; ++i) EXPECT_NE(rkGetErrorString(static_cast<rkResult_t>(i)), nullptr);
  EXPECT_STREQ(rkGetErrorString(static_cast<rkResult_t>(99)), "unknown result");
}

// As built against the header before it grew: what such a program does not know of is left alone.
TEST(C, ProgramsOfTheFirstHeaderGoOn) {
  rkConfig_t config = RK_CONFIG_INITIALIZER;
  config.size = offsetof(rkConfig_t, order);
  config.order = "there is no such member";
  config.progressCore = -7;
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

// The level is the call's, else the communicator's; ranks that ask for others are told.
TEST(C, OrdersAreAskedForAndReadBack) {
  rkConfig_t config = RK_CONFIG_INITIALIZER;
  config.order = "tidy";
  rkComm_t comms[2];
  EXPECT_EQ(rkCommInitAllConfig(comms, 2, &config), rkInvalidArgument);
  EXPECT_NE(last_error().find("order is 'tidy'; allowed are coherent"), std::string::npos);
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

}  // namespace
