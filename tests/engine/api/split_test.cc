// Groups of ranks by split(): their members, the inherited properties, and their ends. Messages
// between two ranks are tested too.

#include <sched.h>

#include "engine/api/network.h"
#include "engine/api/request.h"
#include "engine/api/split.h"
#include "engine/api/team.h"
#include "engine/base/numbers.h"
#include "engine/run/wait.h"
#include "numa/placement.h"
#include "numa/system_calls.h"
#include "numa/topology.h"
#include "tests/budget.h"
#include "tests/engine/api/ranks.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using std::chrono_literals::operator""ms;

constexpr std::chrono::milliseconds kLong{60'000};

// Returns the sum of `mine` over the ranks of a group.
std::int32_t sum_of(Member& group, std::int32_t mine) {
  std::int32_t sum = -1;
  group.all_reduce(std::span<const std::int32_t>(&mine, 1), std::span(&sum, 1)).throw_if_error();
  return sum;
}

TEST(Split, DividesByColorAndOrdersByKey) {
  std::mt19937 random(5);
  for (int turn = 0; turn < 40; ++turn) {
    const int ranks = 1 + static_cast<int>(random() % 9);
    std::vector<int> color, key;
    for (int r = 0; r < ranks; ++r) {
      color.push_back(static_cast<int>(random() % 4) - 1);  // kNoColor for some
      key.push_back(static_cast<int>(random() % 3) - 1);
    }
    Ranks all({.ranks = ranks, .timeout = kLong});
    expect_ok(all.run([&](Member& me) -> Status {
      const auto self = static_cast<std::size_t>(me.rank());
      auto group = me.split(color[self], key[self]);
      if (!group.ok()) return group.status();
      if (color[self] == kNoColor) {
        EXPECT_EQ(*group, nullptr);
        return {};
      }
      std::vector<std::pair<int, int>> members;  // key, rank
      for (int r = 0; r < ranks; ++r) {
        if (color[static_cast<std::size_t>(r)] == color[self]) {
          members.emplace_back(key[static_cast<std::size_t>(r)], r);
        }
      }
      std::sort(members.begin(), members.end());
      EXPECT_EQ((*group)->ranks(), static_cast<int>(members.size()));
      EXPECT_EQ(members[static_cast<std::size_t>((*group)->rank())].second, me.rank());
      std::int32_t wanted = 0;
      for (const auto& [k, r] : members) wanted += 1 << r;
      EXPECT_EQ(sum_of(**group, 1 << me.rank()), wanted);
      return {};
    }));
  }
}

TEST(Split, NestsAndGoesOnBesideTheWhole) {
  expect_team_succeeds({.ranks = 8, .timeout = kLong}, [](Member& me) {
    const auto half = me.split(me.rank() / 4, 0).value();
    const auto pair = half->split(half->rank() / 2, -half->rank()).value();
    EXPECT_EQ(pair->rank(), 1 - me.rank() % 2) << "keys turned it round";
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(sum_of(*pair, 1), 2);
      EXPECT_EQ(sum_of(me, 1), 8);
      // Start a call on one group and wait inside a call on another.
      std::int32_t one = 1, sum = 0, got = -1;
      Request request =
          half->start({.in = &one, .out = &sum, .count = 1, .type = DataType::i32}).value();
      EXPECT_EQ(sum_of(me, 2), 16);
      request.wait().throw_if_error();
      EXPECT_EQ(sum, 4);
      // Messages in a group use the group's rank numbers.
      const std::int32_t mine = me.rank();
      const Rank peer = 1 - pair->rank();
      pair->exchange(std::span<const std::int32_t>(&mine, 1), peer, std::span(&got, 1), peer)
          .throw_if_error();
      EXPECT_EQ(got, me.rank() ^ 1);
    }
  });
}

TEST(Split, AGroupOutlivesWhatItCameFrom) {
  std::vector<std::unique_ptr<Member>> groups(2);
  {
    Ranks all({.ranks = 2, .timeout = kLong});
    expect_ok(all.run([&](Member& me) -> Status {
      auto group = me.split(0, 0);
      groups[static_cast<std::size_t>(me.rank())] = std::move(group.value());
      return {};
    }));
  }
  std::thread other([&] { EXPECT_EQ(sum_of(*groups[1], 2), 3); });
  EXPECT_EQ(sum_of(*groups[0], 1), 3);
  other.join();
}

TEST(Split, EndsWithItsParentAndNotTheOtherWayRound) {
  for (const bool ends_parent : {false, true}) {
    Ranks all({.ranks = 4, .timeout = kLong});
    std::vector<std::unique_ptr<Member>> groups(4);
    expect_ok(all.run([&](Member& me) -> Status {
      groups[static_cast<std::size_t>(me.rank())] =
          me.split(me.rank() % 2, 0, {.ends_parent = ends_parent}).value();
      return {};
    }));
    groups[0]->communicator().abort("over");
    EXPECT_FALSE(groups[2]->communicator().health().ok());
    EXPECT_EQ(all.communicator().health().ok(), !ends_parent);
    EXPECT_EQ(groups[1]->communicator().health().ok(), !ends_parent);
    if (ends_parent) {
      EXPECT_EQ(all.communicator().health().text(), "among ranks 0, 2: over");
      continue;
    }
    all.communicator().abort();  // as from a signal handler
    EXPECT_EQ(groups[1]->barrier().code(), Code::aborted);
  }
}

TEST(Split, KeepsItsOwnDeadline) {
  Ranks all({.ranks = 2, .timeout = kLong});
  std::vector<std::unique_ptr<Member>> groups(2);
  expect_ok(all.run([&](Member& me) -> Status {
    groups[static_cast<std::size_t>(me.rank())] = me.split(0, 0, {.timeout = 20ms}).value();
    return {};
  }));
  const Status status = groups[0]->barrier();
  EXPECT_EQ(status.code(), Code::timeout);
  expect_words(status, {"no answer within 20 ms"});
  EXPECT_TRUE(all.communicator().health().ok());
}

TEST(Split, RefusesWhatCannotBe) {
  Ranks one({.ranks = 1, .timeout = kLong});
  Member& me = *one.members()[0];
  EXPECT_EQ(me.split(-2, 0).status().text(), "color is -2; allowed are -1 (in no group) and more");
  EXPECT_EQ(me.split(0, 0, {.timeout = -1ms}).status().code(), Code::invalid_argument);
  EXPECT_TRUE(me.group([&] {
                  EXPECT_TRUE(
                      me.split(0, 0).status().text().starts_with("split: a group() is open"));
                }).ok());
  EXPECT_TRUE(one.communicator().health().ok());
  Ranks two({.ranks = 2, .timeout = kLong});
  expect_all(two.run([](Member& rank) {
    return rank.split(0, 0, {.ends_parent = rank.rank() == 0}).status();
  }),
             Code::mismatch, {"split: an option"});
  Ranks unequal({.ranks = 2, .timeout = kLong});
  expect_all(unequal.run([](Member& rank) {
    return rank.split(0, 0, {.timeout = kLong + rank.rank() * 1ms}).status();
  }),
             Code::mismatch, {"split: an option"});
}

TEST(Split, IsFinishedOnceItsRequestHasBeenWaitedFor) {
  Ranks two({.ranks = 2, .timeout = kLong});
  const auto results = two.run([](Member& me) -> Status {
    auto split = StartedSplit::prepare(me, 0, 0).value();
    const auto refused = [&](const char* when) {
      const auto early = split.finish();
      EXPECT_FALSE(early.ok()) << when;
      EXPECT_EQ(early.status().text(),
                "finish: the split's request is not complete; start it and wait for it, once")
          << when;
    };
    refused("not started");
    split.request().start().throw_if_error();
    refused("under way");
    split.request().wait().throw_if_error();
    const auto part = split.finish();
    if (!part.ok()) return part.status();
    refused("finished");
    return (*part)->barrier();
  });
  for (const Status& one : results) EXPECT_TRUE(one.ok()) << one.text();
}

TEST(Split, RankThatLeavesIsLostInItsGroupsToo) {
  auto team = Team::create({.ranks = 2, .timeout = kLong}).value();
  std::vector<std::unique_ptr<Member>> groups(2);
  ASSERT_TRUE(team->run([&](Member& me) {
                    groups[static_cast<std::size_t>(me.rank())] = me.split(0, 0).value();
                  })
                  .ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(team->run([&](Member& me) {
                      EXPECT_EQ(sum_of(*groups[static_cast<std::size_t>(me.rank())], 1), 2);
                    })
                    .ok());
  }
  Status status;
  static_cast<void>(team->run([&](Member& me) {
    if (me.rank() == 0) status = groups[0]->barrier();
  }));
  EXPECT_EQ(status.code(), Code::rank_lost) << status.text();
}

// A rank passes its color and leaves before it has a member of the group. The other ranks get an
// error, and nothing is kept for the rank.
TEST(Split, RankThatNeverTakesItsPlaceIsLost) {
  for (const bool is_awaited : {false, true}) {
    Ranks all({.ranks = 2, .timeout = kLong});
    std::atomic<bool> is_there{false};
    const auto results = all.run([&](Member& me) -> Status {
      if (me.rank() == 0) {
        auto group = me.split(0, 0);
        if (!group.ok()) return group.status();
        is_there.store(true);
        return (*group)->barrier();
      }
      // The call that split() makes first.
      std::int64_t word = 0, words[2];
      const std::uint64_t agree = mixed(mixed(kSplitMixStep, 0), 2);
      const Status status = me.call({.collective = Collective::all_gather,
                                     .in = &word,
                                     .out = words,
                                     .count = 1,
                                     .type = DataType::i64,
                                     .options = {.tag = agree}});
      while (is_awaited && !is_there.load()) std::this_thread::yield();
      all.drop(1);
      return status;
    });
    EXPECT_TRUE(results[1].ok()) << results[1].text();
    EXPECT_EQ(results[0].code(), Code::rank_lost) << results[0].text();
  }
}

// --- Survivors ---

// Shrinks, and returns the sum of 1 << (rank before) over the survivors.
std::int32_t survivors_of(Member& me) {
  const auto smaller = me.shrink({.timeout = kLong}).value();
  return sum_of(*smaller, 1 << me.rank());
}

TEST(Shrink, LeavesAHealthyCommunicatorAsItIs) {
  Ranks all({.ranks = 4, .timeout = kLong});
  expect_ok(all.run([&](Member& me) -> Status {
    for (int i = 0; i < 3; ++i) {
      const auto same = me.shrink().value();
      EXPECT_EQ(same->rank(), me.rank());
      EXPECT_EQ(sum_of(*same, 1), 4);
      EXPECT_EQ(me.agree(~(1U << me.rank())).value(), ~15U);
    }
    return me.barrier();
  }));
}

TEST(Shrink, KeepsTheOthersOfALostRank) {
  for (const std::vector<Rank>& lost : std::vector<std::vector<Rank>>{{1}, {0, 2}, {0, 1, 3}}) {
    Ranks all({.ranks = 4, .timeout = kLong});
    for (const Rank r : lost) all.drop(r);
    std::int32_t wanted = 15;
    for (const Rank r : lost) wanted -= 1 << r;
    expect_ok(all.run([&](Member& me) -> Status {
      EXPECT_EQ(me.barrier().code(), Code::rank_lost);
      EXPECT_EQ(me.agree(~(1U << me.rank())).value(), ~static_cast<std::uint32_t>(wanted));
      EXPECT_EQ(survivors_of(me), wanted);
      return {};
    }));
  }
}

// A rank leaves while the others wait for it in shrink().
TEST(Shrink, WaitsForARankUntilItLeaves) {
  Ranks all({.ranks = 3, .timeout = kLong});
  std::atomic<int> there{0};
  expect_ok(all.run([&](Member& me) -> Status {
    if (me.rank() == 2) {
      while (there.load() < 2) std::this_thread::yield();
      all.drop(2);
      return {};
    }
    ++there;
    EXPECT_EQ(survivors_of(me), 3);
    return {};
  }));
}

TEST(Shrink, WorksInAGroupAndInASmallerCommunicator) {
  Ranks all({.ranks = 5, .timeout = kLong});
  expect_ok(all.run([&](Member& me) -> Status {
    auto group = me.split(me.rank() == 0 ? kNoColor : 0, -me.rank()).value();
    for (int lost = 4; group != nullptr && lost > 1; --lost) {
      if (me.rank() == lost) {
        group.reset();
        break;
      }
      EXPECT_EQ(group->barrier().code(), Code::rank_lost);
      auto smaller = group->shrink().value();
      EXPECT_EQ(smaller->rank(), lost - 1 - me.rank());  // still in the order of keys
      group = std::move(smaller);
    }
    EXPECT_EQ(group != nullptr ? sum_of(*group, me.rank()) : 1, 1);
    return me.barrier();  // the communicator of all works
  }));
}

TEST(Shrink, FollowsARevocationThatEndsEachWait) {
  Ranks all({.ranks = 3, .timeout = kLong});
  const auto results = all.run([&](Member& me) -> Status {
    if (me.rank() == 0) {
      wait_until_waiting(all.communicator(), 1);
      wait_until_waiting(all.communicator(), 2);
      me.revoke();
    }
    Status status = me.barrier();
    EXPECT_EQ(survivors_of(me), 7);
    return status;
  });
  expect_all(results, Code::aborted, {"rank 0 has revoked the communicator", "shrink()"});
}

TEST(Shrink, GoesOnWithoutAnInterruptedRank) {
  Ranks all({.ranks = 2, .timeout = std::chrono::hours(1)});
  std::atomic<bool> left{false};
  expect_ok(all.run([&](Member& me) -> Status {
    if (me.rank() == 1) {
      while (!left) std::this_thread::yield();
      EXPECT_EQ(survivors_of(me), 2);
      return {};
    }
    set_interrupt_check([] { return 1; });
    const Status status = me.shrink().status();
    set_interrupt_check(nullptr);
    EXPECT_EQ(status.code(), Code::aborted);
    expect_words(status, {"rank 0 waits for the survivors"});
    left = true;
    return {};
  }));
}

// A rank that waits in agree() completes a long send that it has started in a group.
TEST(Shrink, LetsOtherCallsGoOn) {
  Ranks all({.ranks = 2, .timeout = kLong});
  expect_ok(all.run([&](Member& me) -> Status {
    const auto group = me.split(0, 0).value();
    std::vector<std::int32_t> data(500'000, me.rank());
    if (me.rank() == 1) {
      if (Status status = group->recv(std::span(data), 0); !status.ok()) return status;
      EXPECT_EQ(data.back(), 0);
      return me.agree(1).status();
    }
    auto sent = group->async().send(data, 1).value();
    EXPECT_EQ(me.agree(1).value(), 1U);
    return sent.wait();
  }));
}

// A rank that does not come within the timeout is lost, and is told so.
TEST(Shrink, DoesNotWaitLongerThanTheTimeout) {
  Ranks all({.ranks = 3, .timeout = 2000ms});
  std::atomic<int> done{0};
  expect_ok(all.run([&](Member& me) -> Status {
    if (me.rank() > 0) {
      EXPECT_EQ(survivors_of(me), 6);
      ++done;
      return {};
    }
    while (done.load() < 2) std::this_thread::yield();
    const auto late = me.shrink();
    EXPECT_EQ(late.status().code(), Code::rank_lost);
    expect_words(late.status(), {"rank 0 is no survivor", "within 2000 ms", "start a new one"});
    EXPECT_EQ(me.agree(1).status().code(), Code::rank_lost);
    return {};
  }));
}

TEST(Shrink, RefusesWhatCannotBe) {
  Ranks all({.ranks = 2, .timeout = kLong});
  expect_all(all.run([&](Member& me) -> Status {
    return me.rank() == 0 ? me.shrink().status() : me.agree(1).status();
  }),
             Code::mismatch,
             {"some survivors call agree(), shrink() or grow() and others another"});
  expect_ok(all.run([&](Member& me) -> Status {
    expect_refused(me.shrink({.timeout = -1ms}).status(), {"timeout is -1"});
    expect_refused(me.shrink({.ends_parent = true}).status(), {"ends_parent is true"});
    Status status;
    me.group([&] { status = me.agree(1).status(); }).throw_if_error();
    expect_refused(status, {"agree: a group() is open"});
    EXPECT_EQ(survivors_of(me), 3);  // a refused call is no call
    return {};
  }));
  all.drop(1);
  EXPECT_TRUE(all.members()[0]->leave());
  EXPECT_EQ(all.members()[0]->shrink().status().code(), Code::rank_lost);
}

// Ranks are lost at any time: before, in and after their shrink. The others find one another.
TEST(Shrink, GoesOnWhileRanksAreLost) {
  std::mt19937 random(7);
  for (std::uint64_t turn = 0; turn < budgeted(20, 1000); ++turn) {
    constexpr int kRanks = 6;
    Ranks all({.ranks = kRanks, .timeout = kLong});
    std::vector<int> lives(kRanks);
    for (int& steps : lives) steps = static_cast<int>(random() % 6);
    lives[turn % kRanks] = 100;
    std::vector<std::int32_t> left(kRanks, 0);
    expect_ok(all.run([&](Member& me) -> Status {
      const auto self = static_cast<std::size_t>(me.rank());
      std::unique_ptr<Member> now;
      for (int step = 0; step < 12; ++step) {
        if (step == lives[self]) {
          now.reset();
          all.drop(me.rank());
          return {};
        }
        Member& last = now != nullptr ? *now : me;
        if (step % 2 == 0) {
          static_cast<void>(last.agree(1));
          continue;
        }
        auto smaller = last.shrink();
        if (!smaller.ok()) return smaller.status();
        now = std::move(*smaller);
      }
      left[self] = sum_of(*now, 1 << me.rank());
      return {};
    }));
    for (int r = 0; r < kRanks; ++r) {
      if (lives[static_cast<std::size_t>(r)] == 100) {
        EXPECT_EQ(left[static_cast<std::size_t>(r)], 1 << r) << turn;
      }
    }
  }
}

// --- Growth ---

// New threads join the larger communicator, also one that has shrunk before, and the smaller one
// works on.
TEST(Grow, LetsThreadsJoinAgainAndAgain) {
  constexpr int kRanks = 3;
  Ranks all({.ranks = kRanks, .timeout = kLong});
  std::vector<std::unique_ptr<Member>> now(kRanks);
  for (int turn = 0; turn < 3; ++turn) {
    std::atomic<Communicator*> larger{nullptr};
    std::atomic<int> done{0};
    std::thread newcomer([&] {
      while (larger.load() == nullptr) std::this_thread::yield();
      const auto me = larger.load()->join(kRanks).value();
      EXPECT_EQ(sum_of(*me, 1 << me->rank()), 15);
      ++done;
      while (done.load() <= kRanks) std::this_thread::yield();
    });
    expect_ok(all.run([&](Member& first) -> Status {
      auto& mine = now[static_cast<std::size_t>(first.rank())];
      Member& me = mine == nullptr ? first : *mine;
      auto grown = me.grow({.ranks = kRanks + 1, .timeout = kLong}).value();
      EXPECT_EQ(grown->rank(), me.rank());
      if (me.rank() == 1) larger.store(&grown->communicator());
      EXPECT_EQ(sum_of(*grown, 1 << me.rank()), 15);
      EXPECT_EQ(sum_of(me, 1), kRanks);
      ++done;
      while (done.load() <= kRanks) std::this_thread::yield();
      EXPECT_FALSE(grown->communicator().join(me.rank()).ok());
      mine = grown->shrink().value();  // when the new rank has left
      EXPECT_EQ(sum_of(*mine, 1), kRanks);
      return {};
    }));
    newcomer.join();
  }
}

TEST(Grow, FailsAlikeAndLeavesTheSmallerOneAsItIs) {
  Ranks all({.ranks = 3, .timeout = kLong});
  const auto asks_for = [](int ranks) {
    return CommunicatorOptions{.ranks = ranks, .timeout = kLong};
  };
  for (const std::string what : {"ranks", "timeout", "name"}) {
    expect_all(all.run([&](Member& me) {
      CommunicatorOptions options = asks_for(4);
      if (me.rank() == 1 && what == "ranks") options.ranks = 5;
      if (me.rank() == 1 && what == "timeout") options.timeout += std::chrono::milliseconds(1);
      if (me.rank() == 1 && what == "name") options.name = "another";
      return me.grow(options).status();
    }),
               Code::mismatch, {"ranks, name or timeout of grow() differ"});
  }
  expect_all(all.run([&](Member& me) {
    return me.rank() == 0 ? me.shrink().status() : me.grow(asks_for(4)).status();
  }),
             Code::mismatch, {"some survivors call agree(), shrink() or grow()"});
  expect_all(all.run([&](Member& me) {
    CommunicatorOptions options = asks_for(4);
    options.ports = -1;
    return me.grow(options).status();
  }),
             Code::invalid_argument, {"ports is -1"});
  const Rank here[] = {2};
  expect_ok(all.run([&](Member& me) -> Status {
    CommunicatorOptions options = asks_for(3);
    expect_refused(me.grow(options).status(), {"ranks is 3; allowed are 4 and more"});
    options = asks_for(4);
    options.rank = 3;
    expect_refused(me.grow(options).status(), {"rank or more_ranks is set"});
    options = asks_for(4);
    options.more_ranks = here;
    expect_refused(me.grow(options).status(), {"rank or more_ranks is set"});
    Status status;
    me.group([&] { status = me.grow(asks_for(4)).status(); }).throw_if_error();
    expect_refused(status, {"grow: a group() is open"});
    return me.barrier();
  }));
  Ranks ended({.ranks = 3, .timeout = kLong});
  ended.communicator().abort("over");
  expect_all(ended.run([&](Member& me) { return me.grow(asks_for(4)).status(); }), Code::aborted,
             {"over"});
  all.drop(1);
  expect_ok(all.run([&](Member& me) -> Status {
    for (int turn = 0; turn < 2; ++turn) {
      const Status status = me.grow(asks_for(4)).status();
      EXPECT_EQ(status.code(), Code::rank_lost);
      expect_words(status, {"rank 1 is lost or late while the communicator grows", "shrink()"});
    }
    EXPECT_EQ(survivors_of(me), 5);
    return {};
  }));
}

TEST(Split, TakesLevelsAlong) {
  const int levels[] = {2, 4};
  Ranks all({.ranks = 8, .timeout = kLong, .levels = levels});
  expect_ok(all.run([&](Member& me) -> Status {
    auto even = me.split(me.rank() % 2, 0);
    if (!even.ok()) return even.status();
    const Call call{.collective = Collective::broadcast,
                    .in = &levels,
                    .out = const_cast<int*>(levels),
                    .count = 1,
                    .type = DataType::i32,
                    .options = {.algorithm = "level_tree"}};
    const auto plan = (*even)->plan_of(call);
    if (!plan.ok()) return plan.status();
    EXPECT_NE(plan->find("levels 2"), std::string::npos) << *plan;
    return {};
  }));
}

TEST(Split, SharesTheNetworksPortsAndTimes) {
  Ranks all({.ranks = 4, .timeout = kLong, .network = find_call_network("scale_out").value()});
  expect_ok(all.run([&](Member& me) -> Status {
    auto half = me.split(me.rank() / 2, 0);
    if (!half.ok()) return half.status();
    const double before = me.model_time();
    if (Status status = (*half)->barrier(); !status.ok()) return status;
    EXPECT_GT(me.model_time(), before);
    EXPECT_EQ(me.model_time(), (*half)->model_time());
    return {};
  }));
}

TEST(Grids, NameTheirAxes) {
  Ranks all({.ranks = 12, .timeout = kLong});
  expect_ok(all.run([&](Member& me) -> Status {
    auto grid = Grid::make(me, {{"dp", 2}, {"pp", 3}, {"tp", 2}});
    if (!grid.ok()) return grid.status();
    EXPECT_EQ(me.rank(), (grid->at("dp") * 3 + grid->at("pp")) * 2 + grid->at("tp"));
    for (const GridAxis& axis : grid->axes()) {
      Member& along = grid->axis(axis.name);
      EXPECT_EQ(along.ranks(), axis.size);
      EXPECT_EQ(along.rank(), grid->at(axis.name));
    }
    EXPECT_EQ(sum_of(grid->axis("dp"), me.rank()), me.rank() % 6 * 2 + 6);
    auto plane = grid->across({"tp", "dp"});
    if (!plane.ok()) return plane.status();
    EXPECT_EQ((*plane)->ranks(), 4);
    EXPECT_EQ((*plane)->rank(), grid->at("tp") * 2 + grid->at("dp"));
    EXPECT_THROW(grid->axis("ep"), std::out_of_range);
    EXPECT_EQ(grid->across({"ep"}).status().text(),
              "axis 'ep' is not in this grid; allowed are dp, pp, tp");
    return {};
  }));
}

TEST(Grids, RefuseAxesThatDoNotFit) {
  Ranks all({.ranks = 1, .timeout = kLong});
  Member& me = *all.members()[0];
  const auto text = [&](std::vector<GridAxis> axes) {
    return Grid::make(me, std::move(axes)).status().text();
  };
  EXPECT_EQ(text({{"dp", 2}, {"tp", 3}}),
            "axes dp 2 x tp 3 have 6 ranks; allowed are 1, all ranks");
  EXPECT_EQ(text({{"dp", 65'536}, {"tp", 65'536}}),
            "axes dp 65536 x tp 65536 have 2147483647 ranks or more; allowed are 1, all ranks");
  EXPECT_TRUE(text({}).starts_with("axes (none) have 0 ranks; allowed are 1"));
  EXPECT_TRUE(text({{"", 1}}).starts_with("axes[0].name is empty"));
  EXPECT_TRUE(text({{"a", 1}, {"a", 1}}).starts_with("axis 'a' is given twice"));
  EXPECT_EQ(text({{"a", 0}}), "axis 'a' is 0; allowed are 1 and more");
  EXPECT_EQ(Grid::make(me, {{"a", 1}}).value().across({"a", "a"}).status().text(),
            "axis 'a' is given twice; allowed is once");
}

TEST(Teams, ShareOutTheCores) {
  auto one = Team::create({.ranks = 1}).value();
  const int first = one->report()[0].place.cpu;
  auto two = Team::create({.ranks = 1}).value();
  auto same = Team::create({.ranks = 1, .share_out_cores = false}).value();
  EXPECT_EQ(same->report()[0].place.cpu, first);
  if (!place_ranks(Topology::detect(), 2).oversubscribed) {
    EXPECT_NE(two->report()[0].place.cpu, first);
  }
  one.reset();
  same.reset();
  EXPECT_EQ(Team::create({.ranks = 1}).value()->report()[0].place.cpu, first) << "it is free again";
}

// Ranks that are not pinned begin each run on different CPUs, and may leave these.
TEST(Teams, SpreadRanksThatAreNotPinned) {
  if (place_ranks(Topology::detect(), 2).oversubscribed) GTEST_SKIP() << "there is one core";
  static thread_local int begins_at = -1;
  static thread_local bool may_leave = false;
  SystemCalls calls = real_system_calls();
  calls.sched_setaffinity = [](pid_t, std::size_t bytes, const cpu_set_t* mask) {
    may_leave = CPU_COUNT_S(bytes, mask) > 1;
    if (may_leave) return 0;
    begins_at = 0;
    while (!CPU_ISSET_S(static_cast<std::size_t>(begins_at), bytes, mask)) ++begins_at;
    return 0;
  };
  const ScopedSystemCalls scope(calls);
  const auto team =
      Team::create({.ranks = 2, .placement = {.kind = PlacementPolicy::Kind::none, .cpus = {}}})
          .value();
  for (int run = 0; run < 2; ++run) {
    int cpus[2] = {-1, -1};
    const Status status = team->run([&](Member& me) {
      EXPECT_TRUE(may_leave);
      cpus[me.rank()] = std::exchange(begins_at, -1);
    });
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_GE(cpus[0], 0);
    EXPECT_GE(cpus[1], 0);
    EXPECT_NE(cpus[0], cpus[1]);
  }
}

// Messages between two ranks: matched in order, short and long, blocking and started, in groups
// that cannot deadlock in any order, and failures.

using std::chrono_literals::operator""ms;

std::vector<std::int32_t> message(Rank from, Rank to, int number, std::size_t count) {
  std::vector<std::int32_t> data(count);
  std::iota(data.begin(), data.end(), from * 1'000'000 + to * 10'000 + number * 100);
  return data;
}

TEST(PointToPoint, ArrivesInOrder) {
  for (const std::size_t count : {0U, 500U, 100'000U}) {
    expect_team_succeeds({.ranks = 3, .timeout = kLong}, [count](Member& me) {
      // From rank 0 to rank 2 over rank 1; rank 2 sees no call between ranks 0 and 1.
      for (int i = 0; i < 40; ++i) {
        std::vector<std::int32_t> data = message(0, 2, i, count);
        if (me.rank() > 0) {
          std::fill(data.begin(), data.end(), 0);
          me.recv(std::span(data), me.rank() - 1).throw_if_error();
          EXPECT_EQ(data, message(0, 2, i, count)) << me.rank();
        }
        if (me.rank() < 2) {
          me.send(std::span<const std::int32_t>(data), me.rank() + 1).throw_if_error();
        }
      }
    });
  }
}

// The example of the guide: every rank sends to the right and receives from the left.
TEST(PointToPoint, RunsRoundARing) {
  for (const int ranks : {1, 2, 8}) {
    expect_team_succeeds({.ranks = ranks, .timeout = kLong}, [ranks](Member& me) {
      const Rank right = (me.rank() + 1) % ranks, left = (me.rank() + ranks - 1) % ranks;
      for (const std::size_t count : {1U, 200'000U}) {
        for (int i = 0; i < 10; ++i) {
          const auto mine = message(me.rank(), right, i, count);
          const auto wanted = message(left, me.rank(), i, count);
          std::vector<std::int32_t> theirs(count), again(count);
          auto sent = me.async().send(mine, right).value();
          auto received = me.async().recv(theirs, left).value();
          sent.wait().throw_if_error();
          received.wait().throw_if_error();
          EXPECT_EQ(theirs, wanted);
          me.exchange(std::span<const std::int32_t>(mine), right, std::span(again), left)
              .throw_if_error();
          EXPECT_EQ(again, wanted);
        }
      }
    });
  }
}

// A rank in a collective still completes a long send that it has started.
TEST(PointToPoint, GoesOnWhileARankWaitsForSomethingElse) {
  constexpr std::size_t kCount = 500'000;
  expect_team_succeeds({.ranks = 2, .timeout = kLong}, [](Member& me) {
    for (int i = 0; i < 5; ++i) {
      std::vector<std::int32_t> data = message(0, 1, i, kCount);
      if (me.rank() == 0) {
        auto sent = me.prepared().send(data, 1).value();
        sent.start().throw_if_error();
        me.barrier().throw_if_error();
        sent.wait().throw_if_error();
      } else {
        std::fill(data.begin(), data.end(), 0);
        me.recv(std::span(data), 0).throw_if_error();
        EXPECT_EQ(data, message(0, 1, i, kCount));
        me.barrier().throw_if_error();
      }
    }
  });
}

TEST(PointToPoint, RefusesWhatCannotBe) {
  Ranks all({.ranks = 2, .timeout = kLong});
  Member& me = *all.members()[0];
  std::int32_t data[4] = {};
  const std::span<const std::int32_t> sent(data);
  const std::span<std::int32_t> got(data);
  expect_refused(me.send(sent, 2), {"to is 2; allowed are 0 to 1"});
  expect_refused(me.recv(got, -1), {"from is -1; allowed are 0 to 1"});
  expect_refused(me.submit(Message{nullptr, 4, DataType::i32, 1}), {"null"});
  expect_refused(me.exchange(sent, 1, got, 9), {"from is 9; allowed are 0 to 1"});
  expect_refused(me.send(sent, 1, {.algorithm = "ring"}), {"ring"});
  expect_refused(me.group({}), {"calls is empty"});
  EXPECT_TRUE(me.group([&] { expect_refused(me.group({}), {"calls is empty"}); }).ok());
  EXPECT_TRUE(all.communicator().health().ok());
}

// A message in flight arrives after its sender has left, even if the receive comes later.
TEST(PointToPoint, AMessageOutlivesItsSender) {
  Ranks all({.ranks = 2, .timeout = kLong});
  const auto data = message(0, 1, 0, 10);
  std::vector<std::int32_t> got(10);
  EXPECT_TRUE(all.members()[0]->send(std::span<const std::int32_t>(data), 1).ok());
  all.drop(0);
  EXPECT_TRUE(all.members()[1]->recv(std::span(got), 0).ok());
  EXPECT_EQ(got, data);
  EXPECT_EQ(all.members()[1]->recv(std::span(got), 0).code(), Code::rank_lost);
}

// The first message to a rank does not change the deadline of a call in flight.
TEST(PointToPoint, LeavesTheDeadlinesOfOtherCalls) {
  Ranks all({.ranks = 2, .timeout = kLong});
  Member& me = *all.members()[0];
  std::int32_t one = 1, sum = 0;
  auto late = me.async().all_reduce(std::span<const std::int32_t>(&one, 1), std::span(&sum, 1),
                                    ReduceOp::sum, {.timeout = 30ms});
  EXPECT_TRUE(me.send(std::span<const std::int32_t>(&one, 1), 1).ok());
  const Status status = late->wait();
  EXPECT_EQ(status.code(), Code::timeout);
  expect_words(status, {"no answer within 30 ms"});
}

// Requests keep their objects alive: a request may outlive the rest of the communicator.
TEST(PointToPoint, RequestsOutliveEverybody) {
  std::int32_t one = 1;
  Request last;
  {
    Ranks all({.ranks = 2, .timeout = kLong});
    auto prepared =
        all.members()[0]->prepared().send(std::span<const std::int32_t>(&one, 1), 1).value();
    last = std::move(prepared);
  }
  EXPECT_EQ(last.start().code(), Code::invalid_argument);
}

TEST(PointToPoint, AGroupThatThrowsLetsGo) {
  Ranks all({.ranks = 2, .timeout = kLong});
  std::int32_t got = 0;
  EXPECT_THROW(static_cast<void>(all.members()[0]->group([&] {
                 all.members()[0]->recv(std::span(&got, 1), 1).throw_if_error();
                 throw std::runtime_error("no more");
               })),
               std::runtime_error);
  expect_words(all.communicator().health(), {"its request"});
}

// On a network a message takes the modelled time, the same every time, no matter what else is in
// flight.
TEST(PointToPoint, TakesItsTimeOnANetwork) {
  constexpr std::size_t kCount = 1'000'000;
  for (const std::size_t count : {std::size_t{1}, kCount}) {
    Ranks all({.ranks = 4, .timeout = kLong, .network = find_call_network("scale_out").value()});
    std::vector<double> ends(4);
    expect_ok(all.run([&](Member& me) -> Status {
      const Rank right = (me.rank() + 1) % 4, left = (me.rank() + 3) % 4;
      const auto mine = message(me.rank(), right, 0, count);
      std::vector<std::int32_t> theirs(count);
      for (int i = 1; i <= 3; ++i) {
        if (Status s =
                me.exchange(std::span<const std::int32_t>(mine), right, std::span(theirs), left);
            !s.ok()) {
          return s;
        }
        if (i == 1) ends[static_cast<std::size_t>(me.rank())] = me.model_time();
        EXPECT_DOUBLE_EQ(me.model_time(), i * ends[static_cast<std::size_t>(me.rank())]);
      }
      EXPECT_EQ(theirs, message(left, me.rank(), 0, count));
      const double before = me.model_time();
      me.exchange(std::span<const std::int32_t>(mine), me.rank(), std::span(theirs), me.rank())
          .throw_if_error();
      EXPECT_EQ(me.model_time(), before) << "a message to oneself uses no network";
      EXPECT_EQ(theirs, mine);
      return {};
    }));
    EXPECT_GT(ends[0], 0);
    for (const double end : ends) EXPECT_DOUBLE_EQ(end, ends[0]);
  }
}

}  // namespace
}  // namespace rankine
