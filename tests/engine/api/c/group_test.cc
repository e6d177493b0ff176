// Groups: one thread plays several ranks, a rank makes several calls, and a group with a call that
// is refused makes none.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "engine/api/c/rankine.h"

namespace {

constexpr int kRanks = 4;

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
      EXPECT_EQ(x[r][0], 1.5F);  // not before the end
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

// Its lists are its own until the end.
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
  // Found when it is made.
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (std::size_t r = 0; r + 1 < kRanks; ++r) ASSERT_EQ(add(r, 0), rkSuccess);
  ASSERT_EQ(rkAllReduce(&x[3], &x[3], 1, static_cast<rkDataType_t>(77), rkSum, comms[3]),
            rkInvalidArgument);
  EXPECT_EQ(rkGroupEnd(), rkInvalidArgument);
  EXPECT_STREQ(rkGetLastError(nullptr), "rkGroupEnd: rkAllReduce: type is 77; allowed are 0 to 14");
  // Found at the end.
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (std::size_t r = 0; r < kRanks; ++r) ASSERT_EQ(add(r, r < 3 ? 0 : 99), rkSuccess);
  EXPECT_EQ(rkGroupEnd(), rkInvalidArgument);
  EXPECT_STREQ(rkGetLastError(nullptr),
               "rkGroupEnd: rkReduce of rank 3: root is 99; allowed are 0 to 3");
  // Nothing has begun on any rank.
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
  // Large enough that a send waits for its receive.
  constexpr std::size_t kCount = 1 << 18;
  std::vector<std::vector<int>> x(kRanks), y(kRanks, std::vector<int>(kCount));
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  for (std::size_t r = 0; r < kRanks; ++r) {
    x[r].assign(kCount, static_cast<int>(r));
    const int to = static_cast<int>((r + 1) % kRanks), from = static_cast<int>((r + 3) % kRanks);
    ASSERT_EQ(rkSend(x[r].data(), kCount, rkInt32, to, comms[r]), rkSuccess);
    ASSERT_EQ(rkRecv(y[r].data(), kCount, rkInt32, from, comms[r]), rkSuccess);
  }
  ASSERT_EQ(rkGroupEnd(), rkSuccess) << rkGetLastError(nullptr);
  for (std::size_t r = 0; r < kRanks; ++r) EXPECT_EQ(y[r], x[(r + 3) % kRanks]);
  int none = 0;
  EXPECT_EQ(rkSend(&none, 1, rkInt32, kRanks, comms[0]), rkInvalidArgument);
  EXPECT_STREQ(rkGetLastError(nullptr), "rkSend: peer is 4; allowed are 0 to 3");
  EXPECT_EQ(rkRecv(nullptr, 1, rkInt32, 1, comms[0]), rkInvalidArgument);
  EXPECT_STREQ(rkGetLastError(nullptr), "rkRecv: data is NULL");
}

// One thread divides all ranks, twice, with other calls before, between and after.
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
    EXPECT_EQ(half[r], nullptr);  // not before the end
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
      // 0 and 2 in the other order; 1 is in none; 3 is alone.
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
  EXPECT_STREQ(rkGetLastError(nullptr), "rkGroupEnd: there is no group that rkGroupStart began");
  ASSERT_EQ(rkGroupStart(), rkSuccess);
  EXPECT_EQ(rkGroupEnd(), rkSuccess);  // of nothing
}

}  // namespace
