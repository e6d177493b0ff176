// How ranks find out which way to store what they stage.
#include "engine/run/staging_stores.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace rankine {
namespace {

// A machine on which a byte takes so long to be stored and fetched, either way.
struct Machine {
  double past_ns, into_ns;
};

class Rank {
 public:
  // Makes so many calls: how many of these stored past the caches.
  int call(const Machine& machine, int times, std::size_t bytes = 1000, double interrupted = 1) {
    int past = 0;
    for (int i = 0; i < times; ++i) {
      stores_.begin_call();
      past += stores_.past_caches() ? 1 : 0;
      if (!stores_.is_timed()) continue;
      ++timed_;
      const double per_byte = stores_.past_caches() ? machine.past_ns : machine.into_ns;
      const auto ns =
          static_cast<std::int64_t>(interrupted * per_byte * static_cast<double>(bytes));
      stores_.add(bytes, ns);
      stores_.add(bytes, ns);
    }
    return past;
  }
  int timed() const { return timed_; }
  StagingStores& stores() { return stores_; }

 private:
  StagingStores stores_;
  int timed_ = 0;
};

constexpr Machine kNear{0.1, 0.03}, kFar{0.1, 0.3};

TEST(StagingStores, PastTheCachesWhereCoresAreFarAndIntoThemWhereTheyAreNear) {
  Rank far;
  EXPECT_GE(far.call(kFar, 12'800), 12'800 - 104);
  EXPECT_LE(far.timed(), 206);
  Rank near;
  EXPECT_LE(near.call(kNear, 8), 6);  // soon
  EXPECT_LE(near.call(kNear, 12'800), 104);
}

TEST(StagingStores, FollowCoresThatMove) {
  Rank rank;
  for (int i = 0; i < 3; ++i) {
    rank.call(kNear, 512);
    EXPECT_LE(rank.call(kNear, 1280), 11);
    rank.call(kFar, 512);
    EXPECT_GE(rank.call(kFar, 1280), 1269);
  }
}

TEST(StagingStores, WhatIsHardlySoonerDoneStaysAsItIs) {
  Rank rank;
  EXPECT_GE(rank.call({0.1, 0.096}, 12'800), 12'800 - 104);
  EXPECT_LE(rank.call({0.1, 0.094}, 12'800), 400 + 104);
}

TEST(StagingStores, OneInterruptionProvesNothing) {
  Rank rank;
  for (int i = 0; i < 100; ++i) {
    rank.call(kFar, 1, 1000, i % 2 == 0 ? 100 : 1);  // every other comparison is spoilt
    rank.call(kFar, 255);
  }
  EXPECT_GE(rank.call(kFar, 128), 127);
}

// Short calls take longer per byte, whichever way.
TEST(StagingStores, OnlyCallsOfAboutOneSizeAreCompared) {
  Rank rank;
  int past = 0;
  for (int i = 0; i < 12'800; ++i)
    past += rank.call(i % 2 == 0 ? Machine{0.4, 1.2} : kFar, 1, i % 2 == 0 ? 1000 : 100'000);
  EXPECT_GE(past, 12'800 - 104);
  Rank near;
  for (std::size_t i = 0; i < 1000; ++i) near.call(kNear, 1, 1000 + i % 10 * 100);
  EXPECT_LE(near.call(kNear, 1280), 11);
}

// All ranks try in the same calls, whatever each has found.
TEST(StagingStores, TriesAreInTheSameCalls) {
  Rank near, far;
  for (int i = 0; i < 1000; ++i) {
    near.call(kNear, 1);
    far.call(kFar, 1);
    EXPECT_EQ(near.stores().is_timed(), far.stores().is_timed()) << i;
  }
}

}  // namespace
}  // namespace rankine
