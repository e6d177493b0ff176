// Ranks of C that are processes: they meet under ids, and are told what keeps them from it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/c/rankine.h"
#include "tests/engine/api/spawned.h"

namespace {

using rankine::testing_processes::Spawned;

std::string last_error() { return rkGetLastError(nullptr); }

// play(rank) in a child for each rank: what they return, all of which shall be 0.
void in_processes(int ranks, const std::function<int(int)>& play) {
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; ++r) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(play(r));
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int end = 0;
    ASSERT_EQ(waitpid(child, &end, 0), child);
    EXPECT_TRUE(WIFEXITED(end));
    EXPECT_EQ(WEXITSTATUS(end), 0);
  }
}

TEST(CProcesses, RunTheExampleInC) {
  Spawned program({"tests/engine/api/c/processes"}, {});
  EXPECT_EQ(program.finish(), "every element: 10\n");
}

// Calls of every kind, a message and a part among them.
int play_all(const rkUniqueId& id, int ranks, int rank) {
  rkComm_t comm = RK_COMM_NULL, part = RK_COMM_NULL;
  if (rkCommInitRank(&comm, ranks, id, rank) != rkSuccess) return 1;
  int n = 0, self = -1;
  if (rkCommCount(comm, &n) != rkSuccess || rkCommUserRank(comm, &self) != rkSuccess) return 2;
  if (n != ranks || self != rank) return 3;
  std::vector<int> mine(1000, rank), theirs(1000);
  rkGroupStart();
  rkSend(mine.data(), mine.size(), rkInt32, (rank + 1) % ranks, comm);
  rkRecv(theirs.data(), theirs.size(), rkInt32, (rank + ranks - 1) % ranks, comm);
  if (rkGroupEnd() != rkSuccess) return 4;
  if (theirs != std::vector<int>(1000, (rank + ranks - 1) % ranks)) return 5;
  if (rkCommSplit(comm, rank % 2, 0, &part) != rkSuccess) return 6;
  int sum = 1;
  if (rkAllReduce(&sum, &sum, 1, rkInt32, rkSum, part) != rkSuccess) return 7;
  if (sum != (ranks + 1 - rank % 2) / 2) return 8;
  if (rkCommDestroy(part) != rkSuccess || rkBarrier(comm) != rkSuccess) return 9;
  return rkCommDestroy(comm) == rkSuccess ? 0 : 10;
}

TEST(CProcesses, MeetUnderAnIdThatOneOfThemHasMade) {
  rkUniqueId id, other;
  ASSERT_EQ(rkGetUniqueIdOfProcesses(&id), rkSuccess);
  ASSERT_EQ(rkGetUniqueIdOfProcesses(&other), rkSuccess);
  EXPECT_NE(std::memcmp(&id, &other, sizeof id), 0);
  in_processes(3, [&](int rank) { return play_all(id, 3, rank); });
}

TEST(CProcesses, MeetUnderANameAgainAndAgain) {
  const std::string name = "c_test." + std::to_string(std::random_device()());
  for (const int ranks : {2, 3}) {
    in_processes(ranks, [&](int rank) {
      rkUniqueId id;
      if (rkGetUniqueIdByName(&id, name.c_str()) != rkSuccess) return 20;
      return play_all(id, ranks, rank);
    });
  }
}

// Two processes of two ranks each, by one thread or by two.
int play_two(const rkUniqueId& id, int process) {
  rkComm_t comms[2], parts[2];
  const int ranks[2] = {process, 3 - process};
  rkGroupStart();
  for (int i = 0; i < 2; ++i) {
    if (rkCommInitRank(&comms[i], 4, id, ranks[i]) != rkSuccess) return 1;
    if (comms[i] != RK_COMM_NULL) return 2;
  }
  rkRequest_t request;
  if (rkGroupEndAsync(&request) != rkInvalidUsage) return 3;
  if (rkGroupEnd() != rkSuccess) return 4;
  int sums[2] = {1, 10};
  rkGroupStart();
  for (int i = 0; i < 2; ++i) rkAllReduce(&sums[i], &sums[i], 1, rkInt32, rkSum, comms[i]);
  if (rkGroupEnd() != rkSuccess || sums[0] != 22 || sums[1] != 22) return 5;
  // Each is with the other process in one part: those of one thread find theirs in any order.
  rkGroupStart();
  for (int i = 0; i < 2; ++i) rkCommSplit(comms[i], ranks[i] / 2, 0, &parts[i]);
  if (rkGroupEnd() != rkSuccess) return 6;
  int of_threads[2] = {0, 0};
  const auto add_up = [&](int i) {
    int sum = ranks[i];
    for (int k = 0; k < 100; ++k) {
      sum = ranks[i];
      if (rkAllReduce(&sum, &sum, 1, rkInt32, rkSum, parts[i]) != rkSuccess) return;
      if (rkBarrier(comms[i]) != rkSuccess) return;
    }
    of_threads[i] = sum;
  };
  std::thread other(add_up, 1);
  add_up(0);
  other.join();
  for (int i = 0; i < 2; ++i) {
    if (of_threads[i] != (ranks[i] < 2 ? 1 : 5)) return 7;
    if (rkCommDestroy(parts[i]) != rkSuccess || rkCommDestroy(comms[i]) != rkSuccess) return 8;
  }
  return 0;
}

TEST(CProcesses, MayPlaySeveralRanksEach) {
  rkUniqueId id;
  ASSERT_EQ(rkGetUniqueIdOfProcesses(&id), rkSuccess);
  in_processes(2, [&](int process) { return play_two(id, process); });
}

// What two programs call the same function lies in two places.
int add(const void* in, void* inout, std::size_t count, void* context) {
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<int*>(inout)[i] += static_cast<const int*>(in)[i];
  }
  ++*static_cast<int*>(context);
  return 0;
}
int add_as_well(const void* in, void* inout, std::size_t count, void* context) {
  return add(in, inout, count, context);
}

int reduce_by_function(const rkUniqueId& id, int rank) {
  rkComm_t comm = RK_COMM_NULL, part = RK_COMM_NULL;
  if (rkCommInitRank(&comm, 2, id, rank) != rkSuccess) return 1;
  if (rkCommSplit(comm, 0, 0, &part) != rkSuccess) return 2;
  for (const rkComm_t one : {comm, part}) {
    int x[3] = {1, rank, 7}, calls = 0;
    rkRedOp_t op;
    const rkRedFunction_t function = rank == 0 ? add : add_as_well;
    if (rkRedOpCreate(&op, function, sizeof(int), 1, &calls, one) != rkSuccess) return 3;
    if (rkAllReduce(x, x, 3, rkOpaque, op, one) != rkSuccess) return 4;
    if (x[0] != 2 || x[1] != 1 || x[2] != 14) return 5;
    rkGroupStart();
    rkAllReduce(x, x, 3, rkOpaque, op, one);
    if (rkGroupEnd() != rkSuccess || x[2] != 28) return 6;
  }
  return rkCommDestroy(part) == rkSuccess && rkCommDestroy(comm) == rkSuccess ? 0 : 7;
}

TEST(CProcesses, ReduceByFunctionsThatLieElsewhereInEach) {
  rkUniqueId id;
  ASSERT_EQ(rkGetUniqueIdOfProcesses(&id), rkSuccess);
  ASSERT_NE(add, add_as_well);
  in_processes(2, [&](int rank) { return reduce_by_function(id, rank); });
}

TEST(CProcesses, GroupsOfRanksAreToldWhatIsWrong) {
  rkUniqueId id;
  ASSERT_EQ(rkGetUniqueIdOfProcesses(&id), rkSuccess);
  rkComm_t comms[2];
  rkGroupStart();
  rkCommInitRank(&comms[0], 2, id, 0);
  rkCommInitRank(&comms[1], 3, id, 1);
  EXPECT_EQ(rkGroupEnd(), rkInvalidArgument);
  EXPECT_EQ(last_error(),
            "rkGroupEnd: rkCommInitRank of rank 1: ranks is 3; the first rank of this id gave 2");
  EXPECT_TRUE(comms[0] == RK_COMM_NULL);
  rkGroupStart();
  rkCommInitRank(&comms[0], 2, id, 0);
  rkCommInitRank(&comms[1], 2, id, 0);
  EXPECT_EQ(rkGroupEnd(), rkInvalidArgument);
  EXPECT_EQ(last_error(),
            "rkGroupEnd: rkCommInitRank of rank 0: more_ranks has 0, which this process plays "
            "already");
}

TEST(CProcesses, AreToldWhatIsWrong) {
  rkUniqueId id;
  rkComm_t comm = RK_COMM_NULL;
  const auto refused = [](rkResult_t result, const std::string& text) {
    EXPECT_EQ(result, rkInvalidArgument);
    EXPECT_EQ(last_error(), text);
  };
  refused(rkGetUniqueIdOfProcesses(nullptr), "rkGetUniqueIdOfProcesses: id is NULL");
  refused(rkGetUniqueIdByName(nullptr, "job"), "rkGetUniqueIdByName: id is NULL");
  refused(rkGetUniqueIdByName(&id, nullptr), "rkGetUniqueIdByName: name is NULL");
  refused(rkGetUniqueIdByName(&id, "a/b"),
          "rkGetUniqueIdByName: name is 'a/b'; ranks that are processes find each other by one of "
          "1 to 100 letters, digits, '.', '-' and '_'");
  ASSERT_EQ(rkGetUniqueIdByName(&id, std::string(100, 'x').c_str()), rkSuccess);
  refused(rkCommInitRank(&comm, 2, id, 2), "rkCommInitRank: rank is 2; allowed are 0 to 1");
  refused(rkCommInitRank(&comm, 257, id, 2), "rkCommInitRank: ranks is 257; allowed are 1 to 256");
  std::memset(id.internal + 8, '/', sizeof id.internal - 8);
  EXPECT_EQ(rkCommInitRank(&comm, 2, id, 1), rkInvalidArgument) << "no name ends there";
  EXPECT_EQ(comm, nullptr);
}

TEST(CProcesses, WaitForTheOthersAsLongAsTheirTimeout) {
  rkUniqueId id;
  ASSERT_EQ(rkGetUniqueIdOfProcesses(&id), rkSuccess);
  rkConfig_t config = RK_CONFIG_INITIALIZER;
  config.timeoutMs = 50;
  rkComm_t comm = RK_COMM_NULL;
  EXPECT_EQ(rkCommInitRankConfig(&comm, 3, id, 1, &config), rkTimeout);
  EXPECT_NE(last_error().find("ranks 0, 2 of 'id."), std::string::npos) << last_error();
  EXPECT_EQ(comm, nullptr);
}

TEST(CProcesses, DisagreeAndAreTold) {
  rkUniqueId id;
  ASSERT_EQ(rkGetUniqueIdOfProcesses(&id), rkSuccess);
  in_processes(2, [&](int rank) {
    rkConfig_t config = RK_CONFIG_INITIALIZER;
    if (rank == 1) config.planBytes = 1 << 20;
    rkComm_t comm = RK_COMM_NULL;
    return rkCommInitRankConfig(&comm, 2, id, rank, &config) == rkMismatch ? 0 : 1;
  });
}

}  // namespace
