// Ranks that give way to other work while they wait.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "engine/run/wait.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

struct CountedWork : OtherWork {
  void give_way(int turn) noexcept override {
    if (turn != next.load(std::memory_order_relaxed)) began_anew.fetch_add(1);
    next.store(turn + 1, std::memory_order_relaxed);
    turns.fetch_add(1);
    std::this_thread::yield();
  }
  std::atomic<int> turns{0}, next{0}, began_anew{0};
};

// Rank 1 comes when rank 0, which waits for it, has given way three times. False: it never has.
bool comes_late(const CountedWork& work, int before) {
  const auto hopeless = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (work.turns.load() < before + 3) {
    if (std::chrono::steady_clock::now() > hopeless) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(GiveWay, IsCalledAgainAndAgainWhereARankWaits) {
  Ranks all({.ranks = 2, .timeout = std::chrono::minutes(2)});
  CountedWork work;
  const auto results = all.run([&](Member& me) -> Status {
    if (me.rank() == 0) me.give_way_to(&work);
    for (int call = 0; call < 3; ++call) {
      if (Status status = me.barrier(); !status.ok()) return status;
      const int before = work.turns.load();
      if (Status status = me.barrier(); !status.ok()) return status;
      EXPECT_TRUE(me.rank() == 0 || comes_late(work, before));
      std::array<int, 3> data = {1, 2, me.rank()};
      if (Status status = me.all_reduce(std::span(data)); !status.ok()) return status;
      EXPECT_EQ(data, (std::array<int, 3>{2, 4, 1}));
    }
    if (me.rank() == 0) me.give_way_to(nullptr);
    if (Status status = me.barrier(); !status.ok()) return status;
    const int after = work.turns.load();
    if (me.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (Status status = me.barrier(); !status.ok()) return status;
    EXPECT_TRUE(me.rank() == 1 || work.turns.load() == after);
    return {};
  });
  for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_GE(work.turns.load(), 9);
  EXPECT_GE(work.began_anew.load(), 2);  // each wait counts from 0
}

TEST(GiveWay, LeavesDeadlinesAsTheyAre) {
  Ranks all({.ranks = 2, .timeout = std::chrono::milliseconds(100)});
  CountedWork work;
  const auto results = all.run([&](Member& me) -> Status {
    if (me.rank() == 1) return me.barrier({.timeout = std::chrono::minutes(2)});
    me.give_way_to(&work);
    if (Status status = me.barrier({.timeout = std::chrono::minutes(2)}); !status.ok()) {
      return status;
    }
    return me.barrier();
  });
  EXPECT_NE(results[0].code(), Code::ok);
  EXPECT_GT(work.turns.load(), 0);
}

}  // namespace
}  // namespace rankine
