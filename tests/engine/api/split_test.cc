// Groups of ranks by split(): their members, the inherited properties, and their ends. Messages
// between two ranks are tested too.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/network.h"
#include "engine/api/request.h"
#include "engine/api/split.h"
#include "engine/api/team.h"
#include "engine/base/numbers.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

using std::chrono_literals::operator""ms;

constexpr std::chrono::milliseconds kLong{60'000};

void expect_ok(const std::vector<Status>& results) {
  for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
}

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
  Ranks all({.ranks = 8, .timeout = kLong});
  expect_ok(all.run([&](Member& me) -> Status {
    auto half = me.split(me.rank() / 4, 0);
    if (!half.ok()) return half.status();
    auto pair = (*half)->split((*half)->rank() / 2, -(*half)->rank());
    if (!pair.ok()) return pair.status();
    EXPECT_EQ((*pair)->rank(), 1 - me.rank() % 2) << "keys turned it round";
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(sum_of(**pair, 1), 2);
      EXPECT_EQ(sum_of(me, 1), 8);
      // Start a call on one group and wait inside a call on another.
      std::int32_t one = 1, sum = 0;
      auto request = (*half)->start({.in = &one, .out = &sum, .count = 1, .type = DataType::i32});
      EXPECT_EQ(sum_of(me, 2), 16);
      if (Status status = request->wait(); !status.ok()) return status;
      EXPECT_EQ(sum, 4);
      // Messages in a group use the group's rank numbers.
      std::int32_t got = -1;
      const std::int32_t mine = me.rank();
      if (Status s = (*pair)->exchange(std::span<const std::int32_t>(&mine, 1), 1 - (*pair)->rank(),
                                       std::span(&got, 1), 1 - (*pair)->rank());
          !s.ok()) {
        return s;
      }
      EXPECT_EQ(got, me.rank() ^ 1);
    }
    return {};
  }));
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
    EXPECT_FALSE(groups[1]->communicator().health().ok());
  }
}

TEST(Split, WhoWaitsInAGroupHearsOfTheEndOfTheWhole) {
  Ranks all({.ranks = 2, .timeout = kLong});
  const auto results = all.run([&](Member& me) -> Status {
    auto group = me.split(0, 0);
    if (!group.ok()) return group.status();
    if (me.rank() == 0) return (*group)->barrier();
    wait_until_waiting((*group)->communicator(), 0);
    all.communicator().abort("enough");
    return {};
  });
  EXPECT_EQ(results[0].code(), Code::aborted);
  EXPECT_EQ(results[0].text(), "the communicator that this one was split from has ended: enough");
}

// A rank may hear of the end of the whole before the ending thread reaches the groups.
TEST(Split, NoCallOfAGroupSucceedsOnceARankHasHeardOfTheEndOfTheWhole) {
  for (int turn = 0; turn < 200; ++turn) {
    Ranks all({.ranks = 2, .timeout = kLong});
    std::vector<std::unique_ptr<Member>> parts(2), of_parts(2);
    expect_ok(all.run([&](Member& me) -> Status {
      const auto r = static_cast<std::size_t>(me.rank());
      std::vector<std::unique_ptr<Member>> others;  // groups that end first
      for (int i = 0; i < 20; ++i) others.push_back(me.split(0, 0).value());
      parts[r] = me.split(me.rank(), 0).value();
      of_parts[r] = parts[r]->split(0, 0).value();
      return {};
    }));
    std::thread ending([&] { all.communicator().abort("over"); });
    const auto results = all.run([&](Member& me) -> Status {
      const auto r = static_cast<std::size_t>(me.rank());
      while (me.barrier().ok()) {
      }
      EXPECT_FALSE(of_parts[r]->barrier().ok()) << turn;  // a group of one rank does not wait
      return parts[r]->barrier();
    });
    ending.join();
    for (const Status& status : results) {
      EXPECT_EQ(status.text(), "the communicator that this one was split from has ended: over");
    }
  }
}

TEST(Split, KeepsItsOwnDeadline) {
  Ranks all({.ranks = 2, .timeout = kLong});
  std::vector<std::unique_ptr<Member>> groups(2);
  expect_ok(all.run([&](Member& me) -> Status {
    groups[static_cast<std::size_t>(me.rank())] = me.split(0, 0, {.timeout = 20ms}).value();
    return {};
  }));
  EXPECT_EQ(groups[0]->barrier().code(), Code::timeout);
  EXPECT_TRUE(all.communicator().health().ok());
}

TEST(Split, RefusesWhatCannotBe) {
  Ranks one({.ranks = 1, .timeout = kLong});
  Member& me = *one.members()[0];
  EXPECT_EQ(me.split(-2, 0).status().text(), "color is -2; allowed are -1 (in no group) and more");
  EXPECT_EQ(me.split(0, 0, {.timeout = -1ms}).status().code(), Code::invalid_argument);
  EXPECT_TRUE(me.group([&] {
                  EXPECT_EQ(me.split(0, 0).status().text(),
                            "split: ranks cannot be divided in a group()");
                }).ok());
  EXPECT_TRUE(one.communicator().health().ok());
  Ranks two({.ranks = 2, .timeout = kLong});
  const auto results = two.run([](Member& rank) -> Status {
    return rank.split(0, 0, {.ends_parent = rank.rank() == 0}).status();
  });
  EXPECT_EQ(results[0].code(), Code::mismatch) << results[0].text();
  EXPECT_NE(results[0].text().find("split: an option"), std::string::npos) << results[0].text();
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

// A rank that waits for a call on one group also executes its part of another group's call, which a
// peer makes first.
TEST(Split, CallsOnGroupsGoOnBesideEachOther) {
  Ranks all({.ranks = 2, .timeout = kLong});
  std::atomic<bool> started{false};
  expect_ok(all.run([&](Member& me) -> Status {
    auto one = me.split(0, 0), two = me.split(0, 0);
    if (!one.ok() || !two.ok()) return one.ok() ? two.status() : one.status();
    std::int32_t in[2][8], out[2][8];
    for (auto& mine : in) std::fill(std::begin(mine), std::end(mine), me.rank() + 1);
    // In a ring of two, each rank needs data of the other after both have exchanged data.
    const CallOptions ring{.algorithm = "ring", .transport = Transport::mailbox};
    const auto sum = [&](auto&& calls, int i) {
      return calls.all_reduce(std::span<const std::int32_t>(in[i]), std::span<std::int32_t>(out[i]),
                              ReduceOp::sum, ring);
    };
    if (me.rank() == 0) {
      auto first = sum((*one)->async(), 0), second = sum((*two)->async(), 1);
      if (!first.ok() || !second.ok()) return first.ok() ? second.status() : first.status();
      started.store(true);
      if (Status s = first->wait(); !s.ok()) return s;
      if (Status s = second->wait(); !s.ok()) return s;
    } else {
      while (!started.load()) std::this_thread::yield();
      if (Status s = sum(**two, 1); !s.ok()) return s;
      if (Status s = sum(**one, 0); !s.ok()) return s;
    }
    EXPECT_EQ(out[0][7] + out[1][0], 6);
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
    auto plane = grid->across({"dp", "tp"});
    if (!plane.ok()) return plane.status();
    EXPECT_EQ((*plane)->ranks(), 4);
    EXPECT_EQ((*plane)->rank(), grid->at("dp") * 2 + grid->at("tp"));
    EXPECT_THROW(grid->axis("ep"), std::out_of_range);
    EXPECT_EQ(grid->across({"ep"}).status().text(),
              "axis 'ep' is not of this grid; it has dp, pp, tp");
    return {};
  }));
}

TEST(Grids, RefuseAxesThatDoNotFit) {
  Ranks all({.ranks = 1, .timeout = kLong});
  Member& me = *all.members()[0];
  const auto text = [&](std::vector<GridAxis> axes) {
    return Grid::make(me, std::move(axes)).status().text();
  };
  EXPECT_EQ(text({{"dp", 2}, {"tp", 3}}), "axes dp 2 x tp 3 have 6 ranks; there are 1");
  EXPECT_EQ(text({{"dp", 65'536}, {"tp", 65'536}}),
            "axes dp 65536 x tp 65536 have 2147483647 ranks or more; there are 1");
  EXPECT_EQ(text({}), "axes (none) have 0 ranks; there are 1");
  EXPECT_EQ(text({{"", 1}}), "axes[0] has no name");
  EXPECT_EQ(text({{"a", 1}, {"a", 1}}), "axis 'a' is there twice");
  EXPECT_EQ(text({{"a", 0}}), "axis 'a' is 0; allowed are 1 and more");
}

TEST(Teams, ShareOutTheCores) {
  auto one = Team::create({.ranks = 1}).value();
  const int first = one->report()[0].place.cpu;
  auto two = Team::create({.ranks = 1}).value();
  auto same = Team::create({.ranks = 1, .share_out_cores = false}).value();
  EXPECT_EQ(same->report()[0].place.cpu, first);
  if (std::thread::hardware_concurrency() > 1) {
    EXPECT_NE(two->report()[0].place.cpu, first);
  }
  one.reset();
  same.reset();
  EXPECT_EQ(Team::create({.ranks = 1}).value()->report()[0].place.cpu, first) << "it is free again";
}

}  // namespace

// Messages between two ranks: matched in order, short and long, blocking and started, in groups
// that cannot deadlock in any order, and failures.

namespace {

using std::chrono_literals::operator""ms;

std::vector<std::int32_t> message(Rank from, Rank to, int number, std::size_t count) {
  std::vector<std::int32_t> data(count);
  std::iota(data.begin(), data.end(), from * 1'000'000 + to * 10'000 + number * 100);
  return data;
}

TEST(PointToPoint, ArrivesInOrder) {
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{500}, std::size_t{100'000}}) {
    Ranks all({.ranks = 3, .timeout = kLong});
    expect_ok(all.run([&](Member& me) -> Status {
      // From rank 0 to rank 2 over rank 1; rank 2 sees no call between ranks 0 and 1.
      for (int i = 0; i < 40; ++i) {
        std::vector<std::int32_t> data(count);
        if (me.rank() == 0) {
          data = message(0, 2, i, count);
          if (Status s = me.send(std::span<const std::int32_t>(data), 1); !s.ok()) return s;
        } else {
          if (Status s = me.recv(std::span(data), me.rank() - 1); !s.ok()) return s;
          EXPECT_EQ(data, message(0, 2, i, count)) << me.rank();
          if (me.rank() == 1) {
            if (Status s = me.send(std::span<const std::int32_t>(data), 2); !s.ok()) return s;
          }
        }
      }
      return {};
    }));
  }
}

// The example of the guide: every rank sends to the right and receives from the left.
TEST(PointToPoint, RunsRoundARing) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{200'000}}) {
      Ranks all({.ranks = ranks, .timeout = kLong});
      expect_ok(all.run([&](Member& me) -> Status {
        const Rank right = (me.rank() + 1) % ranks, left = (me.rank() + ranks - 1) % ranks;
        for (int i = 0; i < 10; ++i) {
          const auto mine = message(me.rank(), right, i, count);
          std::vector<std::int32_t> theirs(count);
          auto sent = me.async().send(mine, right);
          auto received = me.async().recv(theirs, left);
          if (!sent.ok()) return sent.status();
          if (!received.ok()) return received.status();
          if (Status s = sent->wait(); !s.ok()) return s;
          if (Status s = received->wait(); !s.ok()) return s;
          EXPECT_EQ(theirs, message(left, me.rank(), i, count));
          std::vector<std::int32_t> again(count);
          if (Status s =
                  me.exchange(std::span<const std::int32_t>(mine), right, std::span(again), left);
              !s.ok()) {
            return s;
          }
          EXPECT_EQ(again, theirs);
        }
        return {};
      }));
    }
  }
}

// Every rank sends to every rank in a different random order, with collectives in the same group.
TEST(PointToPoint, GroupsCannotDeadlockByOrder) {
  constexpr int kRanks = 5;
  Ranks all({.ranks = kRanks, .timeout = kLong});
  expect_ok(all.run([&](Member& me) -> Status {
    std::mt19937 own(static_cast<unsigned>(me.rank())), same(3);
    for (int turn = 0; turn < 30; ++turn) {
      const std::size_t count = std::size_t{1} << same() % 17;
      std::vector<std::vector<std::int32_t>> sent, got(kRanks, std::vector<std::int32_t>(count));
      for (Rank r = 0; r < kRanks; ++r) sent.push_back(message(me.rank(), r, turn, count));
      std::vector<int> order(2 * kRanks + 1);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), own);
      std::int32_t one = 1, sum = 0;
      const Status status = me.group([&] {
        for (const int what : order) {
          if (what == 2 * kRanks) {
            me.all_reduce(std::span<const std::int32_t>(&one, 1), std::span(&sum, 1))
                .throw_if_error();
          } else if (what < kRanks) {
            me.send(std::span<const std::int32_t>(sent[static_cast<std::size_t>(what)]), what)
                .throw_if_error();
          } else {
            me.group([&] {
                me.recv(std::span(got[static_cast<std::size_t>(what - kRanks)]), what - kRanks)
                    .throw_if_error();
              }).throw_if_error();
          }
        }
      });
      if (!status.ok()) return status;
      EXPECT_EQ(sum, kRanks);
      for (Rank r = 0; r < kRanks; ++r) {
        EXPECT_EQ(got[static_cast<std::size_t>(r)], message(r, me.rank(), turn, count));
      }
    }
    return {};
  }));
}

// A rank in a collective still completes a long send that it has started.
TEST(PointToPoint, GoesOnWhileARankWaitsForSomethingElse) {
  Ranks all({.ranks = 2, .timeout = kLong});
  constexpr std::size_t kCount = 500'000;
  expect_ok(all.run([&](Member& me) -> Status {
    for (int i = 0; i < 5; ++i) {
      if (me.rank() == 0) {
        const auto data = message(0, 1, i, kCount);
        auto sent = me.prepared().send(data, 1);
        if (!sent.ok()) return sent.status();
        if (Status s = sent->start(); !s.ok()) return s;
        if (Status s = me.barrier(); !s.ok()) return s;
        if (Status s = sent->wait(); !s.ok()) return s;
      } else {
        std::vector<std::int32_t> data(kCount);
        if (Status s = me.recv(std::span(data), 0); !s.ok()) return s;
        EXPECT_EQ(data, message(0, 1, i, kCount));
        if (Status s = me.barrier(); !s.ok()) return s;
      }
    }
    return {};
  }));
}

TEST(PointToPoint, OneThreadPlaysBothEnds) {
  Ranks all({.ranks = 2, .timeout = kLong});
  const auto data = message(0, 1, 0, 1000);
  std::vector<std::int32_t> got(1000);
  auto sent = all.members()[0]->async().send(data, 1);
  auto received = all.members()[1]->async().recv(got, 0);
  while (!sent->test().value() || !received->test().value()) {
  }
  EXPECT_EQ(got, data);
}

TEST(PointToPoint, RefusesWhatCannotBe) {
  Ranks all({.ranks = 2, .timeout = kLong});
  Member& me = *all.members()[0];
  std::int32_t data[4] = {};
  const auto text = [](const Status& status) {
    EXPECT_EQ(status.code(), Code::invalid_argument);
    return status.text();
  };
  EXPECT_EQ(text(me.send(std::span<const std::int32_t>(data), 2)), "to is 2; allowed are 0 to 1");
  EXPECT_EQ(text(me.recv(std::span<std::int32_t>(data), -1)), "from is -1; allowed are 0 to 1");
  EXPECT_NE(text(me.submit(Message{nullptr, 4, DataType::i32, 1})).find("null"), std::string::npos);
  EXPECT_EQ(
      text(me.exchange(std::span<const std::int32_t>(data), 1, std::span<std::int32_t>(data), 9)),
      "from is 9; allowed are 0 to 1");
  EXPECT_NE(
      text(me.send(std::span<const std::int32_t>(data), 1, {.algorithm = "ring"})).find("ring"),
      std::string::npos);
  EXPECT_TRUE(all.communicator().health().ok());
}

TEST(PointToPoint, EndsTheCommunicatorWhereItFails) {
  const auto fails = [](const std::function<Status(Member&)>& f) {
    Ranks all({.ranks = 3, .timeout = 200ms});
    const auto results = all.run(f);
    EXPECT_FALSE(all.communicator().health().ok());
    return all.communicator().health();
  };
  std::int32_t data[3][8] = {};
  const Status mismatch = fails([&](Member& me) -> Status {
    auto* mine = data[me.rank()];
    if (me.rank() == 0) return me.send(std::span<const std::int32_t>(mine, 8), 1);
    if (me.rank() == 1) return me.recv(std::span(mine, 7), 0);
    return {};
  });
  EXPECT_EQ(mismatch.code(), Code::mismatch) << mismatch.text();
  EXPECT_NE(mismatch.text().find("among ranks 0, 1: "), std::string::npos) << mismatch.text();
  const Status timeout = fails([&](Member& me) -> Status {
    if (me.rank() == 1) return me.recv(std::span<std::int32_t>(data[1]), 0);
    return {};
  });
  EXPECT_EQ(timeout.code(), Code::timeout) << timeout.text();
}

TEST(PointToPoint, NobodyWaitsForARankThatHasLeft) {
  // Before and after the first message between the two ranks.
  for (const bool met : {false, true}) {
    Ranks all({.ranks = 2, .timeout = kLong});
    std::int32_t one = 1, got = 0;
    if (met) {
      auto sent = all.members()[0]->async().send(std::span(&one, 1), 1);
      EXPECT_TRUE(all.members()[1]->recv(std::span(&got, 1), 0).ok());
      EXPECT_TRUE(sent->wait().ok());
    }
    all.drop(0);
    const Status status = all.members()[1]->recv(std::span(&got, 1), 0);
    EXPECT_EQ(status.code(), Code::rank_lost) << status.text();
  }
  auto team = Team::create({.ranks = 2, .timeout = kLong}).value();
  for (const bool met : {false, true}) {
    std::int32_t one = 1, got = 0;
    EXPECT_TRUE(team->run([&](Member& me) {
                      if (me.rank() == 0)
                        me.send(std::span<const std::int32_t>(&one, 1), 1).throw_if_error();
                      if (me.rank() == 1) me.recv(std::span(&got, 1), 0).throw_if_error();
                    })
                    .ok());
    EXPECT_EQ(got, 1) << met;
  }
  std::int32_t got = 0;
  const Status status = team->run([&](Member& me) {
    if (me.rank() == 1) {
      EXPECT_EQ(me.recv(std::span(&got, 1), 0).code(), Code::rank_lost);
    }
  });
  EXPECT_EQ(status.code(), Code::rank_lost);
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
  EXPECT_NE(status.text().find("no answer within 30 ms"), std::string::npos) << status.text();
}

// Requests keep their objects alive: a request may outlive the rest of the communicator.
TEST(PointToPoint, RequestsOutliveEverybody) {
  std::int32_t one = 1;
  Request last;
  {
    Ranks all({.ranks = 2, .timeout = kLong});
    auto prepared = all.members()[0]->prepared().send(std::span<const std::int32_t>(&one, 1), 1);
    ASSERT_TRUE(prepared.ok());
    last = std::move(*prepared);
  }
  EXPECT_EQ(last.start().code(), Code::invalid_argument);
}

TEST(PointToPoint, AGroupOfNothingToCallIsRefused) {
  Ranks one({.ranks = 1});
  Member& me = *one.members()[0];
  EXPECT_EQ(me.group({}).text(), "group: calls is empty; it must be a function");
  EXPECT_TRUE(me.group([&] { EXPECT_EQ(me.group({}).code(), Code::invalid_argument); }).ok());
  EXPECT_TRUE(me.barrier().ok());
}

TEST(PointToPoint, AGroupThatThrowsLetsGo) {
  Ranks all({.ranks = 2, .timeout = kLong});
  std::int32_t got = 0;
  EXPECT_THROW(static_cast<void>(all.members()[0]->group([&] {
                 all.members()[0]->recv(std::span(&got, 1), 1).throw_if_error();
                 throw std::runtime_error("no more");
               })),
               std::runtime_error);
  EXPECT_NE(all.communicator().health().text().find("let go of its request"), std::string::npos)
      << all.communicator().health().text();
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
      return {};
    }));
    EXPECT_GT(ends[0], 0);
    for (const double end : ends) EXPECT_DOUBLE_EQ(end, ends[0]);
  }
}

}  // namespace
}  // namespace rankine
