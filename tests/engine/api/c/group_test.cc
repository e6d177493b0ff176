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
  EXPECT_STREQ(rkGetLastError(nullptr), "rkGroupEnd: rkAllReduce: type is 77; allowed are 0 to 9");
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
