// How ranks find out together which way to store what they stage.
#include "engine/run/staging_stores.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rankine {
namespace {

// A machine on which a byte takes so long to be stored past the caches or into them, and to be
// fetched from there.
struct Machine {
  double store_past, store_into, fetch_past, fetch_into;
};

// Ranks that make their calls one after the other. In each, every rank stores and fetches, or the
// first one stores and the others fetch.
class Ranks {
 public:
  explicit Ranks(std::size_t n) : stores_(n), told_(n) {}

  struct Call {
    std::size_t bytes = 1000;
    bool from_one = false;
    double interrupted = 1;  // it takes so many times as long
  };
  // Makes so many calls: how many of these the last rank stored past the caches, or would have.
  int call(const Machine& machine, int times, const Call& made) {
    int past = 0;
    for (int i = 0; i < times; ++i) {
      for (std::size_t r = 0; r < stores_.size(); ++r) {
        stores_[r].begin_call(
            static_cast<Rank>(r), static_cast<int>(stores_.size()),
            [this](Rank of) -> StagingTimes& { return told_[static_cast<std::size_t>(of)]; });
      }
      for (std::size_t r = 0; r < stores_.size(); ++r) {
        const std::size_t from = made.from_one ? 0 : (r + 1) % stores_.size();
        const bool fetches_past = stores_[from].past_caches();
        if (!made.from_one || r == 0)
          add(r, true, stores_[r].past_caches() ? machine.store_past : machine.store_into, made);
        if (!made.from_one || r > 0)
          add(r, false, fetches_past ? machine.fetch_past : machine.fetch_into, made);
      }
      past += stores_.back().past_caches() ? 1 : 0;
      timed_ += stores_.back().is_timed() ? 1 : 0;
    }
    return past;
  }
  int call(const Machine& machine, int times) { return call(machine, times, Call{}); }
  int timed() const { return timed_; }

 private:
  void add(std::size_t rank, bool stores, double ns_per_byte, const Call& made) {
    if (!stores_[rank].is_timed()) return;
    const double ns = made.interrupted * ns_per_byte * static_cast<double>(made.bytes);
    stores_[rank].add(stores, made.bytes, static_cast<std::int64_t>(ns));
  }

  std::vector<StagingStores> stores_;
  std::vector<StagingTimes> told_;
  int timed_ = 0;
};

constexpr Machine kNear{
    .store_past = 0.1, .store_into = 0.05, .fetch_past = 0.1, .fetch_into = 0.02};
constexpr Machine kFar{.store_past = 0.1, .store_into = 0.3, .fetch_past = 0.1, .fetch_into = 0.2};

TEST(StagingStores, PastTheCachesWhereCoresAreFarAndIntoThemWhereTheyAreNear) {
  for (const std::size_t n : {1U, 2U, 8U}) {
    Ranks far(n);
    EXPECT_GE(far.call(kFar, 25'600), 25'600 - 4 * 105);
    EXPECT_LE(far.timed(), 6 * 105);
    Ranks near(n);
    EXPECT_LE(near.call(kNear, 32), 20);  // soon
    EXPECT_LE(near.call(kNear, 25'600), 4 * 105);
  }
}

// What the others gain outweighs what the one that stores loses, which it cannot see by itself.
TEST(StagingStores, FollowWhatAllFindTogether) {
  constexpr Machine kDearToStore{
      .store_past = 0.1, .store_into = 0.12, .fetch_past = 0.1, .fetch_into = 0.05};
  constexpr Machine kDearerToStore{
      .store_past = 0.1, .store_into = 0.2, .fetch_past = 0.1, .fetch_into = 0.05};
  for (const std::size_t n : {2U, 8U}) {
    Ranks gain(n);
    gain.call(kDearToStore, 32, {.from_one = true});
    EXPECT_LE(gain.call(kDearToStore, 256, {.from_one = true}), 12);
    Ranks lose(n);
    lose.call(kDearerToStore, 32, {.from_one = true});
    EXPECT_GE(lose.call(kDearerToStore, 256, {.from_one = true}), 244);
  }
}

TEST(StagingStores, FollowCoresThatMove) {
  Ranks ranks(3);
  for (int i = 0; i < 3; ++i) {
    ranks.call(kNear, 512);
    EXPECT_LE(ranks.call(kNear, 1280), 24);
    ranks.call(kFar, 512);
    EXPECT_GE(ranks.call(kFar, 1280), 1280 - 24);
  }
}

TEST(StagingStores, WhatIsHardlySoonerDoneStaysAsItIs) {
  const auto sooner = [](double share) {
    return Machine{.store_past = 1, .store_into = share, .fetch_past = 1, .fetch_into = share};
  };
  Ranks hardly(2);
  EXPECT_GE(hardly.call(sooner(0.96), 25'600), 25'600 - 4 * 105);
  Ranks well(2);
  EXPECT_LE(well.call(sooner(0.94), 25'600), 20 + 4 * 105);
}

TEST(StagingStores, OneInterruptionProvesNothing) {
  Ranks ranks(2);
  for (int i = 0; i < 2560; ++i)  // every other call that is timed is interrupted
    ranks.call(kFar, 1, {.interrupted = i % 2 == 0 ? 100.0 : 1.0});
  EXPECT_GE(ranks.call(kFar, 128), 124);
}

// Short calls take longer per byte, whichever way.
TEST(StagingStores, OnlyCallsOfAboutOneSizeAreCompared) {
  constexpr Machine kShort{
      .store_past = 0.4, .store_into = 1.2, .fetch_past = 0.4, .fetch_into = 1};
  Ranks far(2);
  int past = 0;
  for (int i = 0; i < 25'600; ++i) {
    // Long and short ones by threes, so that three are often compared with three others.
    past += i / 3 % 2 == 0 ? far.call(kShort, 1) : far.call(kFar, 1, {.bytes = 100'000});
  }
  EXPECT_GE(past, 25'600 - 4 * 105);
  Ranks near(2);
  for (std::size_t i = 0; i < 1000; ++i) near.call(kNear, 1, {.bytes = 1000 + i % 10 * 100});
  EXPECT_LE(near.call(kNear, 1280), 24);
}

}  // namespace
}  // namespace rankine
