// Requests in C: every kind of call, started and prepared, for one rank and for several ranks on
// one thread. Each mistake that only C permits has a named error. The adapters for DeepSpeed and
// SGLang are tested as well.

#include <rankine/adapters/deepspeed.h>
#include <rankine/adapters/sglang.h>

#include <barrier>
#include <condition_variable>

#include "engine/api/c/rankine.h"
#include "numa/topology.h"
#include "tests/engine/api/c/comms.h"
#include "tests/engine/api/child_process.h"
#include "tests/testing.h"

namespace {

using rankine::on_threads;
using rankine::testing_c::expect_error;
using rankine::testing_c::expect_refused;
using rankine::testing_c::last_error;
using rankine::testing_processes::run_in_child;

constexpr int kRanks = 3;
using Numbers = std::vector<std::int32_t>;

// The parameter: the ranks make progress, or a separate thread does.
class Requests : public testing::TestWithParam<bool> {
 protected:
  Requests() {
    rkConfig_t config = RK_CONFIG_INITIALIZER;
    config.timeoutMs = 60'000;
    if (GetParam()) config.progressCore = rankine::Topology::detect().cpus().front().os_index;
    EXPECT_EQ(rkCommInitAllConfig(comms, kRanks, &config), rkSuccess) << last_error();
  }
  ~Requests() override {
    for (rkComm_t comm : comms) EXPECT_EQ(rkCommDestroy(comm), rkSuccess);
  }

  void on_threads(const std::function<void(int, rkComm_t)>& f) {
    rankine::on_threads(kRanks, [&](int r) { f(r, comms[r]); });
  }
  // Returns a request of rank 0; the other ranks have not made the call.
  rkRequest_t unanswered() {
    EXPECT_EQ(rkGroupStart(), rkSuccess);
    EXPECT_EQ(rkAllReduce(x_, x_, 4, rkInt32, rkSum, comms[0]), rkSuccess);
    rkRequest_t request = nullptr;
    EXPECT_EQ(rkGroupEndAsync(&request), rkSuccess) << last_error();
    return request;
  }
  void answer() {
    ASSERT_EQ(rkGroupStart(), rkSuccess);
    for (int r = 1; r < kRanks; ++r) {
      ASSERT_EQ(rkAllReduce(y_[r], y_[r], 4, rkInt32, rkSum, comms[r]), rkSuccess);
    }
    ASSERT_EQ(rkGroupEndAsync(&answered_), rkSuccess) << last_error();
  }

  rkComm_t comms[kRanks];
  std::int32_t x_[4] = {1, 1, 1, 1}, y_[kRanks][4] = {};
  rkRequest_t answered_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(ByProgressThread, Requests, testing::Bool());

// The input of rank r is 100 r + i.
struct Buffers {
  explicit Buffers(int rank)
      : in(kRanks),
        sum(kRanks),
        most(kRanks),
        bcast(kRanks),
        gathered(kRanks * kRanks),
        one(1),
        turned(kRanks),
        at_root(kRanks),
        part(1),
        uneven(kRanks),
        message(kRanks),
        scaled(1) {
    std::iota(in.begin(), in.end(), 100 * rank);
  }
  Numbers in, sum, most, bcast, gathered, one, turned, at_root, part, uneven, message, scaled;
};

void call_all(int rank, rkComm_t comm, Buffers& b) {
  const std::size_t counts[kRanks] = {1, 1, 1};
  const int right = (rank + 1) % kRanks, left = (rank + kRanks - 1) % kRanks;
  EXPECT_EQ(rkAllReduce(b.in.data(), b.sum.data(), kRanks, rkInt32, rkSum, comm), rkSuccess);
  EXPECT_EQ(rkReduce(b.in.data(), b.most.data(), kRanks, rkInt32, rkMax, 1, comm), rkSuccess);
  EXPECT_EQ(rkBroadcast(b.in.data(), b.bcast.data(), kRanks, rkInt32, 2, comm), rkSuccess);
  EXPECT_EQ(rkAllGather(b.in.data(), b.gathered.data(), kRanks, rkInt32, comm), rkSuccess);
  EXPECT_EQ(rkReduceScatter(b.in.data(), b.one.data(), 1, rkInt32, rkSum, comm), rkSuccess);
  EXPECT_EQ(rkAllToAll(b.in.data(), b.turned.data(), 1, rkInt32, comm), rkSuccess);
  EXPECT_EQ(rkGather(b.in.data(), b.at_root.data(), 1, rkInt32, 0, comm), rkSuccess);
  EXPECT_EQ(rkScatter(b.in.data(), b.part.data(), 1, rkInt32, 1, comm), rkSuccess);
  EXPECT_EQ(rkAllGatherCounts(b.in.data(), b.uneven.data(), counts, rkInt32, comm), rkSuccess);
  EXPECT_EQ(rkSend(b.in.data(), kRanks, rkInt32, right, comm), rkSuccess);
  EXPECT_EQ(rkRecv(b.message.data(), kRanks, rkInt32, left, comm), rkSuccess);
  EXPECT_EQ(rkBarrier(comm), rkSuccess);
  const std::int32_t factor = rank + 1;
  rkRedOp_t op;
  EXPECT_EQ(rkRedOpCreatePreMulSum(&op, &factor, rkInt32, comm), rkSuccess);
  EXPECT_EQ(rkAllReduce(b.in.data(), b.scaled.data(), 1, rkInt32, op, comm), rkSuccess);
  EXPECT_EQ(rkRedOpDestroy(op, comm), rkSuccess);  // the request keeps its operation alive
}

void expect_right(int rank, const Buffers& b) {
  EXPECT_EQ(b.sum, (Numbers{300, 303, 306}));
  EXPECT_EQ(b.most, rank == 1 ? (Numbers{200, 201, 202}) : Numbers(kRanks));
  EXPECT_EQ(b.bcast, (Numbers{200, 201, 202}));
  EXPECT_EQ(b.gathered, (Numbers{0, 1, 2, 100, 101, 102, 200, 201, 202}));
  EXPECT_EQ(b.one[0], 300 + 3 * rank);
  EXPECT_EQ(b.turned, (Numbers{rank, 100 + rank, 200 + rank}));
  EXPECT_EQ(b.at_root, rank == 0 ? (Numbers{0, 100, 200}) : Numbers(kRanks));
  EXPECT_EQ(b.part[0], 100 + rank);
  EXPECT_EQ(b.uneven, (Numbers{0, 100, 200}));
  EXPECT_EQ(b.message[0], 100 * ((rank + kRanks - 1) % kRanks));
  EXPECT_EQ(b.scaled[0], 100 * 2 + 200 * 3);
}

TEST_P(Requests, StandForEveryCallStartedOrPrepared) {
  on_threads([](int rank, rkComm_t comm) {
    Buffers b(rank);
    const Buffers fresh(rank);
    rkRequest_t started = nullptr;
    ASSERT_EQ(rkGroupStart(), rkSuccess);
    call_all(rank, comm, b);
    ASSERT_EQ(rkGroupEndAsync(&started), rkSuccess) << last_error();
    for (int over = 0; over == 0;) {
      ASSERT_EQ(rkCommProgress(comm), rkSuccess);
      ASSERT_EQ(rkRequestTest(started, &over), rkSuccess) << last_error();
    }
    expect_right(rank, b);
    EXPECT_EQ(rkRequestWait(started), rkSuccess) << last_error();
    EXPECT_EQ(rkRequestFree(started), rkSuccess) << last_error();
    b = fresh;
    ASSERT_EQ(rkGroupStart(), rkSuccess);
    call_all(rank, comm, b);
    rkRequest_t request = nullptr;
    ASSERT_EQ(rkGroupEndPrepare(&request), rkSuccess) << last_error();
    EXPECT_EQ(b.sum, fresh.sum);  // no call yet
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(rkRequestStart(request), rkSuccess) << last_error();
      ASSERT_EQ(rkRequestWait(request), rkSuccess) << last_error();
      expect_right(rank, b);
      b = fresh;  // vectors of equal size: their addresses stay
    }
    EXPECT_EQ(rkRequestFree(request), rkSuccess);
  });
}

TEST_P(Requests, OfSeveralRanksThatOneThreadPlays) {
  // One request for all ranks, and one request per rank with one wait for all.
  for (const std::size_t each : {std::size_t{kRanks}, std::size_t{1}}) {
    std::vector<std::vector<std::int32_t>> x(kRanks, std::vector<std::int32_t>(50'000, 1));
    std::vector<rkRequest_t> requests;
    for (std::size_t first = 0; first < kRanks; first += each) {
      ASSERT_EQ(rkGroupStart(), rkSuccess);
      for (std::size_t r = first; r < first + each; ++r) {
        ASSERT_EQ(rkAllReduce(x[r].data(), x[r].data(), x[r].size(), rkInt32, rkSum, comms[r]),
                  rkSuccess);
      }
      requests.push_back(nullptr);
      ASSERT_EQ(rkGroupEndAsync(&requests.back()), rkSuccess) << last_error();
    }
    if (each == kRanks) {
      int over = 0;
      EXPECT_EQ(rkRequestWaitFor(requests[0], 60'000, &over), rkSuccess) << last_error();
      EXPECT_EQ(over, 1);
    } else {
      EXPECT_EQ(rkRequestWaitAll(requests.size(), requests.data()), rkSuccess) << last_error();
    }
    for (const auto& mine : x) EXPECT_EQ(mine, std::vector<std::int32_t>(50'000, kRanks));
    for (rkRequest_t request : requests) EXPECT_EQ(rkRequestFree(request), rkSuccess);
  }
}

TEST_P(Requests, SplitRanks) {
  rkComm_t parts[kRanks];
  rkRequest_t request = nullptr;
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (int r = 0; r < kRanks; ++r) {
    ASSERT_EQ(rkCommSplit(comms[r], 0, -r, &parts[r]), rkSuccess);
  }
  ASSERT_EQ(rkGroupEndAsync(&request), rkSuccess);
  ASSERT_EQ(rkRequestWait(request), rkSuccess) << last_error();
  for (int r = 0; r < kRanks; ++r) {
    int rank = -1;
    EXPECT_EQ(rkCommUserRank(parts[r], &rank), rkSuccess) << last_error();
    EXPECT_EQ(rank, kRanks - 1 - r);
    EXPECT_EQ(rkCommDestroy(parts[r]), rkSuccess);
  }
  expect_error(rkRequestStart(request), rkInvalidUsage, "rkCommSplit");
  EXPECT_EQ(rkRequestFree(request), rkSuccess);
  // A part that cannot be made has its reason.
  rkRequest_t another = nullptr;
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (int r = 0; r < kRanks; ++r) ASSERT_EQ(rkCommSplit(comms[r], 0, r, &parts[r]), rkSuccess);
  ASSERT_EQ(rkGroupEndAsync(&another), rkSuccess);
  for (int over = 0; over == 0;) {
    ASSERT_EQ(rkRequestTest(another, &over), rkSuccess) << last_error();
  }
  ASSERT_EQ(rkCommAbort(comms[2]), rkSuccess);
  comms[2] = nullptr;
  expect_error(rkRequestWait(another), rkAborted, "rkCommSplit of rank 0: rkCommAbort was called");
  for (rkComm_t part : parts) EXPECT_EQ(part, nullptr);
  EXPECT_EQ(rkRequestFree(another), rkSuccess);
}

TEST_P(Requests, RefuseWhatTheyCannotDo) {
  int over = -1;
  const char* orders = nullptr;
  // Handles that are not requests.
  const auto none = reinterpret_cast<rkRequest_t>(comms[0]);
  const std::pair<rkRequest_t, const char*> wrong[] = {
      {nullptr, "request is NULL"}, {none, "request is no valid handle, or has been freed"}};
  for (const auto& [request, text] : wrong) {
    expect_refused(rkRequestStart(request), text);
    expect_refused(rkRequestTest(request, &over), text);
    expect_refused(rkRequestWait(request), text);
    expect_refused(rkRequestWaitFor(request, 1, &over), text);
    expect_refused(rkRequestGetOrders(request, &orders), text);
    expect_refused(rkRequestWaitAll(1, &request), std::string("requests[0]: ") + text);
  }
  EXPECT_EQ(rkRequestFree(nullptr), rkSuccess);
  EXPECT_EQ(rkRequestFree(none), rkInvalidArgument);
  EXPECT_EQ(rkRequestWaitAll(0, nullptr), rkSuccess);
  EXPECT_EQ(rkRequestWaitAll(1, nullptr), rkInvalidArgument);
  EXPECT_EQ(rkCommProgress(nullptr), rkInvalidArgument);

  // Groups.
  rkRequest_t request = nullptr;
  expect_error(rkGroupEndAsync(&request), rkInvalidUsage, "no group is open");
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  EXPECT_EQ(rkGroupEndPrepare(nullptr), rkInvalidArgument);
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  EXPECT_EQ(rkGroupEndPrepare(&request), rkInvalidUsage);
  EXPECT_EQ(rkGroupEnd(), rkSuccess);                 // both groups are still open
  EXPECT_EQ(rkGroupEndPrepare(&request), rkSuccess);  // an empty group
  EXPECT_EQ(rkRequestStart(request), rkSuccess);
  EXPECT_EQ(rkRequestWait(request), rkSuccess);
  EXPECT_EQ(rkRequestFree(request), rkSuccess);
  request = nullptr;
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  ASSERT_EQ(rkBcast(x_, 4, rkInt32, 9, comms[0]), rkSuccess);
  expect_refused(rkGroupEndAsync(&request), "rkBcast of rank 0: root is 9; allowed are 0 to 2");
  EXPECT_EQ(request, nullptr);

  // A request in flight, and a request that is not.
  request = unanswered();
  EXPECT_EQ(rkRequestTest(request, nullptr), rkInvalidArgument);
  EXPECT_EQ(rkRequestWaitFor(request, 1, nullptr), rkInvalidArgument);
  expect_refused(rkRequestWaitFor(request, -1, &over), "milliseconds is -1");
  EXPECT_EQ(rkRequestWaitFor(request, 1, &over), rkSuccess);
  EXPECT_EQ(over, 0);
  EXPECT_EQ(rkRequestTest(request, &over), rkSuccess);
  EXPECT_EQ(over, 0);
  expect_error(rkRequestStart(request), rkInvalidUsage, "request has been started");
  expect_error(rkRequestFree(request), rkInvalidUsage, "rkAllReduce of rank 0 is under way");
  const rkRequest_t twice[] = {request, request};
  expect_refused(rkRequestWaitAll(2, twice), "requests[1] is ");
  answer();
  const rkRequest_t both[] = {request, answered_};
  EXPECT_EQ(rkRequestWaitAll(2, both), rkSuccess) << last_error();
  expect_error(rkRequestWait(request), rkInvalidUsage, "request is not under way");
  EXPECT_EQ(rkRequestTest(request, &over), rkInvalidUsage);
  EXPECT_EQ(rkRequestWaitAll(2, both), rkInvalidUsage);
  EXPECT_EQ(rkRequestFree(answered_), rkSuccess);
  EXPECT_EQ(rkRequestFree(answered_), rkInvalidArgument);

  // After the end of its rank.
  ASSERT_EQ(rkCommFinalize(comms[0]), rkSuccess);
  expect_error(rkRequestStart(request), rkInvalidUsage, "comm has been finalized");
  ASSERT_EQ(rkCommDestroy(comms[0]), rkSuccess);
  comms[0] = nullptr;
  expect_refused(rkRequestStart(request), "rkAllReduce of rank 0: the member");
  EXPECT_EQ(rkRequestFree(request), rkSuccess);
}

// An abort of another rank, or of the request's own rank, which frees the handle; before the wait,
// or while a thread waits.
TEST_P(Requests, AreToldWhyTheirRankHasEnded) {
  const rkRequest_t request = unanswered();
  std::thread waits([&] {
    expect_error(rkRequestWait(request), rkAborted,
                 "rkAllReduce of rank 0: rkCommAbort was called for rank 0");
  });
  std::thread([&] { EXPECT_EQ(rkCommAbort(comms[0]), rkSuccess); }).join();
  waits.join();
  int rank = 0;
  EXPECT_EQ(rkCommUserRank(comms[0], &rank), rkInvalidArgument);
  comms[0] = nullptr;
  EXPECT_EQ(rkRequestFree(request), rkSuccess);
  expect_error(rkBarrier(comms[1]), rkAborted, "rkCommAbort was called for rank 0");
}

// The wait returns after the handle has ended, not while it ends; the sanitizers verify this.
TEST_P(Requests, WhoseRankIsBeingAbortedWaitForItsEnd) {
  const rkRequest_t request = unanswered();
  std::thread aborts([&] { EXPECT_EQ(rkCommAbort(comms[0]), rkSuccess); });
  int rank = 0;
  while (rkCommUserRank(comms[0], &rank) == rkSuccess) std::this_thread::yield();
  EXPECT_EQ(rkRequestWait(request), rkAborted);
  aborts.join();
  comms[0] = nullptr;
  EXPECT_EQ(rkRequestFree(request), rkSuccess);
}

// A rank's buffers belong to the caller again after the rank has ended, even if this thread plays
// other ranks of the same call.
TEST_P(Requests, OfOtherRanksLeaveTheBuffersOfOneThatHasEnded) {
  std::vector<Numbers> x(kRanks, Numbers(100'000, 1));
  rkRequest_t requests[kRanks];
  for (int r = 0; r < kRanks; ++r) {
    ASSERT_EQ(rkGroupStart(), rkSuccess);
    ASSERT_EQ(rkAllReduce(x[r].data(), x[r].data(), x[r].size(), rkInt32, rkSum, comms[r]),
              rkSuccess);
    ASSERT_EQ(rkGroupEndAsync(&requests[r]), rkSuccess) << last_error();
  }
  ASSERT_EQ(rkCommDestroy(comms[0]), rkSuccess);
  comms[0] = nullptr;
  x[0].assign(x[0].size(), -1000);
  for (int r = 1; r < kRanks; ++r) {
    const rkResult_t result = rkRequestWait(requests[r]);
    // A progress thread may have ended the call earlier.
    EXPECT_TRUE(result == rkAborted || result == rkSuccess) << last_error();
    const auto [least, most] = std::minmax_element(x[r].begin(), x[r].end());
    EXPECT_GE(*least, 1);
    EXPECT_LE(*most, kRanks);
  }
  for (rkRequest_t request : requests) rkRequestFree(request);
}

// One thread may start a request and another may wait for it, even if the first thread has ended.
TEST_P(Requests, OutliveTheThreadThatHasStartedThem) {
  std::vector<Numbers> x(kRanks, Numbers(100'000, 1));
  const auto add_up = [&](int r) {
    return rkAllReduce(x[r].data(), x[r].data(), x[r].size(), rkInt32, rkSum, comms[r]);
  };
  rkRequest_t request = nullptr;
  std::thread([&] {
    ASSERT_EQ(rkGroupStart(), rkSuccess);
    ASSERT_EQ(add_up(0), rkSuccess);
    ASSERT_EQ(rkGroupEndAsync(&request), rkSuccess) << last_error();
  }).join();
  rankine::on_threads(
      kRanks - 1, [&](int r) { EXPECT_EQ(add_up(r + 1), rkSuccess) << last_error(); },
      [&] {
        // Gives the other ranks time to check whether rank 0's thread lives.
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        EXPECT_EQ(rkRequestWait(request), rkSuccess) << last_error();
      });
  for (const Numbers& mine : x) EXPECT_EQ(mine, Numbers(100'000, kRanks));
  EXPECT_EQ(rkRequestFree(request), rkSuccess);
}

// The rank's buffers belong to the caller after rkCommDestroy() returns, even if another thread
// reads the rank's flight record.
TEST_P(Requests, EndWithTheirRankThoughItIsLookedAt) {
  const rkRequest_t request = unanswered();
  std::atomic<bool> looks{false};
  std::thread watches([&, comm = comms[0]] {
    while (rkCommFlightRecord(comm, nullptr, 0, nullptr) == rkSuccess) looks.store(true);
  });
  while (!looks.load()) std::this_thread::yield();
  ASSERT_EQ(rkCommDestroy(comms[0]), rkSuccess);
  comms[0] = nullptr;
  rkResult_t result = rkSuccess;
  EXPECT_EQ(rkCommGetAsyncError(comms[1], &result), rkSuccess);
  EXPECT_EQ(result, rkAborted);
  watches.join();
  expect_error(rkRequestWait(request), rkAborted, "destroyed while ");
  EXPECT_EQ(rkRequestFree(request), rkSuccess);
}

// The memory of a rank is freed with the rank, after the rank's calls in flight, because the other
// rank reads the memory.
TEST_P(Requests, EndBeforeTheMemoryOfTheirRankGoes) {
  constexpr std::size_t kMany = 1 << 20;
  for (int attempt = 0; attempt < 4; ++attempt) {
    rkComm_t two[2];
    rkConfig_t config = RK_CONFIG_INITIALIZER;
    if (GetParam()) config.progressCore = rankine::Topology::detect().cpus().front().os_index;
    ASSERT_EQ(rkCommInitAllConfig(two, 2, &config), rkSuccess) << last_error();
    void* memory = nullptr;
    ASSERT_EQ(rkMemAlloc(two[0], &memory, kMany * sizeof(std::int32_t)), rkSuccess);
    std::atomic<bool> comes{false};
    std::thread other([&] {
      Numbers y(kMany, 1);
      comes.store(true);
      const rkResult_t result = rkAllReduce(y.data(), y.data(), kMany, rkInt32, rkSum, two[1]);
      EXPECT_TRUE(result == rkSuccess || result == rkAborted || result == rkRankLost)
          << last_error();
    });
    while (!comes.load()) std::this_thread::yield();
    rkRequest_t request = nullptr;
    ASSERT_EQ(rkGroupStart(), rkSuccess);
    ASSERT_EQ(rkAllReduce(memory, memory, kMany, rkInt32, rkSum, two[0]), rkSuccess);
    ASSERT_EQ(rkGroupEndAsync(&request), rkSuccess) << last_error();
    for (int i = 0; i < attempt; ++i) EXPECT_EQ(rkCommProgress(two[0]), rkSuccess);
    EXPECT_EQ(rkCommDestroy(two[0]), rkSuccess);
    other.join();
    EXPECT_EQ(rkCommDestroy(two[1]), rkSuccess);
    rkRequestWait(request);
    EXPECT_EQ(rkRequestFree(request), rkSuccess);
  }
}

TEST_P(Requests, OfARankThatAnotherThreadUsesAreRefused) {
  const rkRequest_t request = unanswered();
  std::latch waits(1);
  std::thread other([&] {
    waits.count_down();
    rkResult_t result = rkInvalidUsage;  // while the main thread probes
    while (result == rkInvalidUsage) result = rkRequestWait(request);
    EXPECT_EQ(result, rkSuccess) << last_error();
  });
  waits.wait();
  // Waits until the other thread is in the call. It holds the rank a little earlier than the
  // request.
  int over = 0;
  while (rkRequestTest(request, &over) == rkSuccess ||
         last_error().find("request is in a call") == std::string::npos) {
    std::this_thread::yield();
  }
  EXPECT_EQ(rkCommProgress(comms[0]), rkInvalidUsage);
  EXPECT_EQ(last_error(),
            "rkCommProgress: comm is in a call of another thread; a rank's handle is used by one "
            "thread at a time");
  EXPECT_EQ(rkRequestFree(request), rkInvalidUsage);
  EXPECT_EQ(last_error(),
            "rkRequestFree: request is in a call of another thread; it is used by one thread at a "
            "time");
  answer();
  other.join();
  EXPECT_EQ(rkRequestWait(answered_), rkSuccess);
  EXPECT_EQ(rkRequestFree(answered_), rkSuccess);
  EXPECT_EQ(rkRequestFree(request), rkSuccess);
}

// From its second start on, a request of one call takes a short way. Fails if that way does not see
// that the request was freed and its slot has another one, is under way or not, belongs to the
// parent of this process, or that its rank was finalized; or if it loses that a started call, which
// is over at once, was or was not waited for.
TEST(PreparedRequest, IsRefusedOnItsShortWayAsOnTheOther) {
  std::int32_t x[4] = {1, 1, 1, 1};
  const auto prepared = [&](rkComm_t comm) {
    rkRequest_t request = nullptr;
    EXPECT_EQ(rkGroupStart(), rkSuccess);
    EXPECT_EQ(rkAllReduce(x, x, 4, rkInt32, rkSum, comm), rkSuccess);
    EXPECT_EQ(rkGroupEndPrepare(&request), rkSuccess) << last_error();
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(rkRequestStart(request), rkSuccess) << last_error();
      expect_error(rkRequestStart(request), rkInvalidUsage, "request has been started");
      EXPECT_EQ(rkRequestWait(request), rkSuccess) << last_error();
      expect_error(rkRequestWait(request), rkInvalidUsage, "request is not under way");
    }
    return request;
  };
  rankine::testing_c::Comms comms(1);
  const rkRequest_t freed = prepared(comms[0]);
  EXPECT_EQ(rkRequestFree(freed), rkSuccess);
  const rkRequest_t next = prepared(comms[0]);
  EXPECT_EQ(rkRequestStart(next), rkSuccess);
  expect_refused(rkRequestStart(freed), "request is no valid handle");
  expect_refused(rkRequestWait(freed), "request is no valid handle");
  EXPECT_EQ(rkRequestWait(next), rkSuccess);
  EXPECT_EQ(rkRequestStart(next), rkSuccess);
  std::thread([&] { EXPECT_EQ(rkRequestWait(next), rkSuccess) << last_error(); }).join();
  expect_error(rkRequestWait(next), rkInvalidUsage, "request is not under way");
  EXPECT_EQ(rkRequestStart(next), rkSuccess);
  int over = 0;
  EXPECT_EQ(rkRequestTest(next, &over), rkSuccess);
  EXPECT_EQ(over, 1);
  EXPECT_EQ(rkRequestWaitAll(1, &next), rkSuccess);
  expect_error(rkRequestWait(next), rkInvalidUsage, "request is not under way");
  const rkCallOptions_t options = RK_CALL_OPTIONS_INITIALIZER;
  for (const rkCallOptions_t* given : {&options, static_cast<const rkCallOptions_t*>(nullptr)}) {
    EXPECT_EQ(rkCommSetCallOptions(comms[0], given), rkSuccess);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(rkRequestStart(next), rkSuccess) << last_error();
      EXPECT_EQ(rkRequestWait(next), rkSuccess) << last_error();
      EXPECT_EQ(rkAllReduce(x, x, 4, rkInt32, rkSum, comms[0]), rkSuccess) << last_error();
    }
  }
  EXPECT_EQ(rkRequestStart(next), rkSuccess);
  const std::string end = run_in_child([&] {
    int failed = rkRequestWait(next) == rkForked ? 0 : 16;
    failed |= rkRequestStart(next) == rkForked ? 0 : 1;
    failed |= rkAllReduce(x, x, 4, rkInt32, rkSum, comms[0]) == rkForked ? 0 : 2;
    rkGroupStart();
    failed |= rkAllReduce(x, x, 4, rkInt32, rkSum, comms[0]) == rkForked ? 0 : 4;
    failed |= rkGroupEnd() == rkForked ? 0 : 8;
    return failed;
  });
  EXPECT_EQ(end, "exit 0");
  EXPECT_EQ(rkRequestWait(next), rkSuccess) << last_error();
  EXPECT_EQ(rkCommFinalize(comms[0]), rkSuccess);
  expect_error(rkRequestStart(next), rkInvalidUsage, "comm has been finalized");
  EXPECT_EQ(rkRequestFree(next), rkSuccess);
}

TEST_P(Requests, AreTheParentsInAForkedChild) {
  const rkRequest_t request = unanswered();
  const std::string end = run_in_child([&] {
    int over = 0, failed = 0;
    failed |= rkRequestWait(request) == rkForked ? 0 : 1;
    failed |= rkRequestTest(request, &over) == rkForked ? 0 : 2;
    failed |= rkCommProgress(comms[0]) == rkForked ? 0 : 4;
    failed |= rkRequestFree(request) == rkSuccess ? 0 : 8;
    failed |= rkCommDestroy(comms[0]) == rkSuccess ? 0 : 16;
    return failed;
  });
  EXPECT_EQ(end, "exit 0");
  answer();
  EXPECT_EQ(rkRequestWait(request), rkSuccess) << last_error();
  EXPECT_EQ(rkRequestWait(answered_), rkSuccess) << last_error();
  EXPECT_EQ(rkRequestFree(answered_), rkSuccess);
  EXPECT_EQ(rkRequestFree(request), rkSuccess);
}

// The adapters for DeepSpeed and SGLang, called as their Python code calls them: every rank
// initialises with a store and a rank number, and then reduces and gathers tensors. A tensor is a
// pointer, a count and a type number.

constexpr int kHalf = 5, kFloat = 6, kDouble = 7, kBfloat16 = 15;  // at::ScalarType
constexpr int kSum = 0, kMax = 3;                                  // c10d::ReduceOp

// A store like torch's HashStore, in one process and shared by its threads.
class Store {
 public:
  explicit Store(bool works = true) : works_(works) { store_ = {this, set, get, add, wait}; }
  const rankine_store* get() const { return &store_; }

 private:
  static Store& of(void* context) { return *static_cast<Store*>(context); }
  static int set(void* context, const char* key, const void* value, size_t size) {
    Store& s = of(context);
    if (!s.works_) return 1;
    const std::lock_guard lock(s.mutex_);
    s.values_[key].assign(static_cast<const char*>(value), size);
    s.changed_.notify_all();
    return 0;
  }
  static int get(void* context, const char* key, void* value, size_t size) {
    Store& s = of(context);
    const std::lock_guard lock(s.mutex_);
    const std::string& found = s.values_[key];
    if (found.size() != size) return 1;
    std::memcpy(value, found.data(), size);
    return 0;
  }
  static int64_t add(void* context, const char* key, int64_t amount) {
    Store& s = of(context);
    const std::lock_guard lock(s.mutex_);
    return s.sums_[key] += amount;
  }
  static int wait(void* context, const char* key) {
    Store& s = of(context);
    if (!s.works_) return 1;
    std::unique_lock lock(s.mutex_);
    s.changed_.wait(lock, [&] { return s.values_.count(key) == 1; });
    return 0;
  }

  rankine_store store_;
  bool works_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::map<std::string, int64_t> sums_;
};

class Inference : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Inference, testing::Values(1, 2, 3, 8));

TEST_P(Inference, DeepSpeedReducesInPlace) {
  Store store;
  const int ranks = GetParam();
  for (int again = 0; again < 2; ++again) {  // they meet and part twice
    on_threads(ranks, [&](int rank) {
      ASSERT_EQ(rankine_deepspeed_initialize(store.get(), ranks, rank), 0)
          << rkGetLastError(nullptr);
      EXPECT_EQ(rankine_deepspeed_initialize(store.get(), ranks, rank), 0);  // does nothing
      for (const std::size_t n :
           {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{100'003}}) {
        std::vector<float> x(n, 1);
        EXPECT_EQ(rankine_deepspeed_all_reduce(x.data(), n, kFloat, kSum), 0);
        EXPECT_EQ(x, std::vector<float>(n, static_cast<float>(ranks)));
        std::vector<std::uint16_t> b(n, 0x3F80), h(n, 0x3C00);  // 1.0 in each type
        EXPECT_EQ(rankine_deepspeed_all_reduce(b.data(), n, kBfloat16, kSum), 0);
        EXPECT_EQ(rankine_deepspeed_all_reduce(h.data(), n, kHalf, kSum), 0);
        const std::map<int, std::uint16_t> bf16 = {
            {1, 0x3F80}, {2, 0x4000}, {3, 0x4040}, {8, 0x4100}};
        const std::map<int, std::uint16_t> f16 = {
            {1, 0x3C00}, {2, 0x4000}, {3, 0x4200}, {8, 0x4800}};
        EXPECT_EQ(b, std::vector<std::uint16_t>(n, bf16.at(ranks)));
        EXPECT_EQ(h, std::vector<std::uint16_t>(n, f16.at(ranks)));
      }
      rankine_deepspeed_finalize();
    });
  }
}

TEST_P(Inference, DeepSpeedIsToldWhatCannotBeDone) {
  Store store;
  on_threads(GetParam(), [&](int rank) {
    std::vector<double> x(4, 1);
    EXPECT_EQ(rankine_deepspeed_all_reduce(x.data(), 4, kFloat, kSum), -1);  // not initialised
    ASSERT_EQ(rankine_deepspeed_initialize(store.get(), GetParam(), rank), 0);
    EXPECT_EQ(rankine_deepspeed_all_reduce(x.data(), 4, kDouble, kSum), -1);
    EXPECT_EQ(rankine_deepspeed_all_reduce(x.data(), 4, kFloat, kMax), -1);
    EXPECT_EQ(rankine_deepspeed_all_reduce(nullptr, 4, kFloat, kSum), -1);
    EXPECT_EQ(x, std::vector<double>(4, 1));
    // No rank leaves before all ranks have reduced.
    EXPECT_EQ(rankine_deepspeed_all_reduce(x.data(), 8, kFloat, kSum), 0);
    rankine_deepspeed_finalize();
  });
}

TEST_P(Inference, SglangReducesAndGathersAlongEveryDimension) {
  Store store;
  const int ranks = GetParam();
  on_threads(ranks, [&](int rank) {
    ASSERT_EQ(rankine_sglang_initialize(store.get(), ranks, rank), 0) << rkGetLastError(nullptr);
    std::vector<float> x(5000, 2);
    EXPECT_EQ(rankine_sglang_allreduce(x.data(), x.size(), kFloat, kSum), 0);
    EXPECT_EQ(x, std::vector<float>(5000, 2.0F * static_cast<float>(ranks)));
    EXPECT_EQ(rankine_sglang_allreduce(x.data(), x.size(), kDouble, kSum), -1);
    EXPECT_EQ(rankine_sglang_allreduce(x.data(), x.size(), kFloat, kMax), -1);

    // Rank r has 1000 r + 100 i + 10 j + k at (i, j, k).
    const int64_t sizes[] = {2, 3, 4};
    const auto value = [](std::size_t r, std::size_t i, std::size_t j, std::size_t k) {
      return static_cast<float>(1000 * r + 100 * i + 10 * j + k);
    };
    std::vector<float> mine;
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        for (std::size_t k = 0; k < 4; ++k) {
          mine.push_back(value(static_cast<std::size_t>(rank), i, j, k));
        }
      }
    }
    const auto n = static_cast<std::size_t>(ranks);
    for (const int64_t dim : {0, 1, 2, -1}) {
      const int64_t along = dim < 0 ? dim + 3 : dim;
      std::vector<float> wanted, out(n * mine.size());
      for (std::size_t i = 0; i < (along == 0 ? 2 * n : 2); ++i) {
        for (std::size_t j = 0; j < (along == 1 ? 3 * n : 3); ++j) {
          for (std::size_t k = 0; k < (along == 2 ? 4 * n : 4); ++k) {
            const std::size_t r = along == 0 ? i / 2 : along == 1 ? j / 3 : k / 4;
            wanted.push_back(value(r, i % 2, j % 3, k % 4));
          }
        }
      }
      EXPECT_EQ(rankine_sglang_allgather(mine.data(), out.data(), sizes, 3, dim, sizeof(float)), 0)
          << rkGetLastError(nullptr);
      EXPECT_EQ(out, wanted) << "along " << dim;
    }
    const int64_t nothing[] = {2, 0, 4};
    EXPECT_EQ(rankine_sglang_allgather(nullptr, nullptr, nothing, 3, 2, sizeof(float)), 0);
    for (const int64_t dim : {3, -4}) {
      EXPECT_EQ(rankine_sglang_allgather(mine.data(), mine.data(), sizes, 3, dim, 4), -1);
    }
    EXPECT_EQ(rankine_sglang_allgather(nullptr, mine.data(), sizes, 3, 0, 4), -1);
    rankine_sglang_finalize();
    EXPECT_EQ(rankine_sglang_allreduce(x.data(), x.size(), kFloat, kSum), -1);
  });
}

// The end of a communicator is returned as an error, not as -1 (which asks the caller to use
// another backend).
TEST(InferenceErrors, AreResults) {
  Store store;
  std::barrier both(2);
  on_threads(2, [&](int rank) {
    const int met = rankine_sglang_initialize(store.get(), 2, rank);
    both.arrive_and_wait();  // a rank that leaves too early is lost to a rank that still meets
    ASSERT_EQ(met, 0);
    if (rank == 1) return rankine_sglang_finalize();
    std::vector<float> x(5000, 2);
    EXPECT_EQ(rankine_sglang_allreduce(x.data(), x.size(), kFloat, kSum), rkRankLost);
    rankine_sglang_finalize();
  });
}

TEST(Meeting, NeedsAStoreThatWorksAndRanksThatAre) {
  rkComm_t comm = nullptr;
  Store store;
  EXPECT_EQ(rankine_store_meet(nullptr, "x", 1, 0, &comm), rkInvalidArgument);
  EXPECT_EQ(rankine_store_meet(store.get(), nullptr, 1, 0, &comm), rkInvalidArgument);
  EXPECT_EQ(rankine_store_meet(store.get(), std::string(65, 'x').c_str(), 1, 0, &comm),
            rkInvalidArgument);
  EXPECT_EQ(rankine_store_meet(store.get(), "x", 0, 0, &comm), rkInvalidArgument);
  EXPECT_EQ(rankine_store_meet(store.get(), "x", 2, 2, &comm), rkInvalidArgument);
  Store broken(false);
  EXPECT_EQ(rankine_store_meet(broken.get(), "x", 2, 0, &comm), rkSystemError);
  EXPECT_EQ(rankine_store_meet(broken.get(), "x", 2, 1, &comm), rkSystemError);
  EXPECT_EQ(comm, nullptr);
}

}  // namespace
